"""Kernel machines trained exactly and fast, compressed to few vectors, and served at the speed of what is
left.

The names here are those of a first week. Everything else has its home in a submodule: `cascade`, `dask`,
`exceptions`, `export`, `inspection`, `io`, `least_squares`, `libsvm`, `matching_pursuit`, `model_selection`,
`models`, `multiclass`, `online`, `reduced_set`, `svm`.

>>> from sklearn.datasets import load_iris
>>> from svmarrow import SVC
>>> X, y = load_iris(return_X_y=True)
>>> SVC().fit(X, y).score(X, y) > 0.95
True
"""

from importlib.metadata import version as _version

from svmarrow import cascade as cascade
from svmarrow import export as export
from svmarrow import inspection as inspection
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.io.model import load, save
from svmarrow.least_squares.classification import RLSClassifier
from svmarrow.least_squares.regression import RLSRegressor
from svmarrow.matching_pursuit.classification import KMPClassifier
from svmarrow.matching_pursuit.regression import KMPRegressor
from svmarrow.model_selection.classification import SVCCV
from svmarrow.model_selection.regression import SVRCV
from svmarrow.multiclass.classifier import CodedClassifier
from svmarrow.online.tree import PerceptronTreeClassifier
from svmarrow.patch.patching import patch_sklearn, unpatch_sklearn
from svmarrow.reduced_set.compression import compress
from svmarrow.reduced_set.estimator import ReducedSet
from svmarrow.reduced_set.paths import compression_path
from svmarrow.reduced_set.quantization import quantize
from svmarrow.svm.classification import SVC, NuSVC
from svmarrow.svm.low_rank import LowRankSVC
from svmarrow.svm.one_class import OneClassSVM
from svmarrow.svm.regression import SVR, NuSVR
from svmarrow.tabular.estimators import TabularClassifier, TabularRegressor

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "CodedClassifier",
    "KMPClassifier",
    "KMPRegressor",
    "KernelExpansion",
    "LowRankSVC",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "PerceptronTreeClassifier",
    "RLSClassifier",
    "RLSRegressor",
    "ReducedSet",
    "TabularClassifier",
    "TabularRegressor",
    "as_expansion",
    "compress",
    "compression_path",
    "load",
    "patch_sklearn",
    "quantize",
    "save",
    "unpatch_sklearn",
]

__version__ = _version("svmarrow")
