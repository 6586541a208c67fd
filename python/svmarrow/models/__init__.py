"""A kernel expansion with a meaning: a classifier, a regressor, a detector of outliers.

They are what compression, model files and conversions give back, and what a fitted learner predicts with.
"""

from svmarrow._support.memory import MemoryEstimate
from svmarrow.models.calibration import Calibration
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.models.distillation import Distillation
from svmarrow.models.loss_bound import LossBound
from svmarrow.models.regressor import ExpansionRegressor

__all__ = [
    "Calibration",
    "Distillation",
    "ExpansionClassifier",
    "ExpansionDetector",
    "ExpansionRegressor",
    "LossBound",
    "MemoryEstimate",
]
