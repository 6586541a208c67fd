"""Looking into fitted models: exact Shapley values, doubtful labels, a picture of the decision boundary."""

from svmarrow._support.displays import DecisionVectorsDisplay
from svmarrow.inspection.audit import SuspiciousSamples, suspicious_samples
from svmarrow.inspection.display import ShapleyDisplay
from svmarrow.inspection.shapley import ShapleyValues, shapley_values

__all__ = [
    "DecisionVectorsDisplay",
    "ShapleyDisplay",
    "ShapleyValues",
    "SuspiciousSamples",
    "shapley_values",
    "suspicious_samples",
]
