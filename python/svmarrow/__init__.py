"""Support vectors down to the marrow: kernel machines trained exact and fast, then shrunk, then served.

>>> from sklearn.datasets import load_iris
>>> from svmarrow import SVC
>>> X, y = load_iris(return_X_y=True)
>>> SVC().fit(X, y).score(X, y) > 0.95
True
"""

from importlib.metadata import version as _version

from svmarrow import export
from svmarrow._support.boundary import DecisionVectorsDisplay
from svmarrow._support.grid_scores import GridScoresDisplay
from svmarrow._support.size_accuracy import SizeAccuracyDisplay
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.expansion import KernelExpansion
from svmarrow.interop import as_expansion
from svmarrow.io import load, save
from svmarrow.least_squares import (
    BaggedKernelClassifier,
    BaggedKernelRegressor,
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
    RLSClassifier,
    RLSRegressor,
)
from svmarrow.matching_pursuit import KMPClassifier, KMPRegressor, MatchingPath
from svmarrow.model_selection import SVCCV, SVRCV
from svmarrow.models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.multiclass import CodedClassifier
from svmarrow.patch import patch_sklearn, unpatch_sklearn
from svmarrow.online import (
    BudgetPerceptron,
    Forgetron,
    KernelPerceptron,
    PerceptronTreeClassifier,
    Projectron,
    ProjectronPlusPlus,
    Stoptron,
)
from svmarrow.reduced_set import (
    CompressionPath,
    GradientPath,
    GradientSettings,
    ReducedSet,
    SelectionSettings,
    quantize,
    compress,
    compression_path,
)
from svmarrow.svm import SVC, SVR, LowRankSVC, NuSVC, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "BaggedKernelClassifier",
    "BaggedKernelRegressor",
    "BudgetPerceptron",
    "CalibratedCascade",
    "CodedClassifier",
    "CompressionPath",
    "GradientPath",
    "DecisionVectorsDisplay",
    "ExactCascade",
    "ExpansionClassifier",
    "ExpansionDetector",
    "ExpansionRegressor",
    "Forgetron",
    "GradientSettings",
    "GridScoresDisplay",
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
    "SizeAccuracyDisplay",
    "Stoptron",
    "as_expansion",
    "quantize",
    "compress",
    "compression_path",
    "export",
    "load",
    "patch_sklearn",
    "save",
    "unpatch_sklearn",
]

__version__ = _version("svmarrow")
