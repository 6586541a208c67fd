"""Looking into fitted models.

Exact Shapley values, doubtful labels, parameters that are far off, a picture of the decision boundary.
"""

from svmarrow._support.displays import DecisionVectorsDisplay
from svmarrow.inspection.diagnosis import Diagnosis, SuspiciousSamples, diagnose, suspicious_samples
from svmarrow.inspection.shapley import ShapleyDisplay, ShapleyValues, shapley_values

__all__ = [
    "DecisionVectorsDisplay",
    "Diagnosis",
    "ShapleyDisplay",
    "ShapleyValues",
    "SuspiciousSamples",
    "diagnose",
    "shapley_values",
    "suspicious_samples",
]
