"""Support vectors down to the marrow: kernel machines trained exact and fast, then shrunk, then served.

>>> from sklearn.datasets import load_iris
>>> from svmarrow import SVC
>>> X, y = load_iris(return_X_y=True)
>>> SVC().fit(X, y).score(X, y) > 0.95
True
"""

from importlib.metadata import version as _version

from svmarrow.classifier import ExpansionClassifier
from svmarrow.detector import ExpansionDetector
from svmarrow.expansion import KernelExpansion
from svmarrow.io import load
from svmarrow.least_squares import (
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
from svmarrow.matching_pursuit import KMPClassifier, KMPRegressor, MatchingPath
from svmarrow.multiclass import CodedClassifier
from svmarrow.perceptron import (
    BudgetPerceptron,
    Forgetron,
    KernelPerceptron,
    PerceptronTreeClassifier,
    Projectron,
    ProjectronPlusPlus,
    Stoptron,
)
from svmarrow.reduced_set import (
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
from svmarrow.regressor import ExpansionRegressor
from svmarrow.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

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

__version__ = _version("svmarrow")
