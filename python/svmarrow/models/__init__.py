"""A kernel expansion with a meaning: a classifier, a regressor, a detector of outliers.

They are what compression, model files and conversions give back, and what a fitted learner predicts with.
"""

from svmarrow._support.training import MemoryEstimate
from svmarrow.expansion.composites import ExpansionSum, ExpansionTree
from svmarrow.models.base import Distillation, LossBound, Quantization
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.models.outputs import Calibration

__all__ = [
    "Calibration",
    "Distillation",
    "ExpansionClassifier",
    "ExpansionDetector",
    "ExpansionRegressor",
    "ExpansionSum",
    "ExpansionTree",
    "LossBound",
    "MemoryEstimate",
    "Quantization",
]
