"""Kernel machines down to the marrow: train exact and fast, shrink to the few vectors that matter, predict.

>>> from sklearn.datasets import load_iris
>>> from marrow import SVC
>>> X, y = load_iris(return_X_y=True)
>>> SVC().fit(X, y).score(X, y) > 0.95
True
"""

from importlib.metadata import version as _version

from marrow.classifier import ExpansionClassifier
from marrow.detector import ExpansionDetector
from marrow.expansion import KernelExpansion
from marrow.io import load
from marrow.least_squares import (
    BaggedKernelClassifier,
    BaggedKernelRegressor,
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
    LowRankSVC,
    RLSClassifier,
    RLSRegressor,
)
from marrow.matching_pursuit import KMPClassifier, KMPRegressor, MatchingPath
from marrow.multiclass import CodedClassifier
from marrow.perceptron import (
    BudgetPerceptron,
    Forgetron,
    KernelPerceptron,
    PerceptronTreeClassifier,
    Projectron,
    ProjectronPlusPlus,
    Stoptron,
)
from marrow.reduced_set import (
    CalibratedCascade,
    CompressionPath,
    ConstructionPath,
    ExactCascade,
    GradientSettings,
    ReducedSet,
    SelectionSettings,
    compact,
    compress,
)
from marrow.regressor import ExpansionRegressor
from marrow.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVR",
    "BaggedKernelClassifier",
    "BaggedKernelRegressor",
    "BudgetPerceptron",
    "CalibratedCascade",
    "CodedClassifier",
    "CompressionPath",
    "ConstructionPath",
    "ExactCascade",
    "ExpansionClassifier",
    "ExpansionDetector",
    "ExpansionRegressor",
    "Forgetron",
    "GradientSettings",
    "KMPClassifier",
    "KMPRegressor",
    "KernelExpansion",
    "KernelPerceptron",
    "LinearRLSClassifier",
    "LinearRLSRegressor",
    "LowRankRLSClassifier",
    "LowRankRLSRegressor",
    "LowRankSVC",
    "MatchingPath",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "PerceptronTreeClassifier",
    "Projectron",
    "ProjectronPlusPlus",
    "RLSClassifier",
    "RLSRegressor",
    "ReducedSet",
    "SelectionSettings",
    "Stoptron",
    "compact",
    "compress",
    "load",
]

__version__ = _version("marrow")
