"""Support vector machines and other kernel methods: exact training, model compression, deployment.

Start with these ten names:

- `SVC` and `SVR`: support vector classification and regression, with scikit-learn's parameters;
- `SVCCV` and `SVRCV`: the same with C and gamma chosen by cross-validation;
- `RLSClassifier` and `RLSRegressor`: kernel ridge regression with exact leave-one-out errors;
- `TabularClassifier`: data frames with categories and missing values, without tuning;
- `compress`: fewer vectors for any fitted kernel model, with a bound on the loss of accuracy;
- `save` and `load`: model files without code.

`export.to_onnx` and `export.to_c` write models for other programs, and `patch_sklearn` accelerates programs
that import scikit-learn's support vector machines. Further names are in the submodules `cascade`, `dask`,
`distillation`, `exceptions`, `export`, `inspection`, `io`, `least_squares`, `libsvm`, `matching_pursuit`,
`model_selection`, `models`, `multiclass`, `online`, `preprocessing`, `reduced_set` and `svm`.

Compress a classifier to ten vectors, and compare:

>>> from sklearn.datasets import load_iris
>>> from svmarrow import SVC, compress
>>> X, y = load_iris(return_X_y=True)
>>> svc = SVC(C=10).fit(X, y)
>>> small = compress(svc, n_vectors=10)
>>> svc.expansion_.n_vectors, small.expansion_.n_vectors
(27, 10)
>>> svc.score(X, y) > 0.95, small.score(X, y) > 0.95
(True, True)
"""

from importlib.metadata import version as _version

from svmarrow import cascade as cascade
from svmarrow import export as export
from svmarrow import inspection as inspection
from svmarrow import kernels as kernels
from svmarrow._support.saving import load
from svmarrow._support.system import show_versions
from svmarrow.distillation.imitation import distil
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.io import save
from svmarrow.least_squares.estimators import RLSClassifier, RLSRegressor
from svmarrow.matching_pursuit.estimators import KMPClassifier, KMPRegressor
from svmarrow.model_selection.estimators import SVCCV, SVRCV
from svmarrow.multiclass.classifier import CodedClassifier
from svmarrow.online.tree import PerceptronTreeClassifier
from svmarrow.patch.replacement import patch_sklearn, unpatch_sklearn
from svmarrow.reduced_set.compression import compress
from svmarrow.reduced_set.estimator import ReducedSet
from svmarrow.reduced_set.paths import compression_path
from svmarrow.reduced_set.quantization import quantize
from svmarrow.svm.classification import SVC, NuSVC
from svmarrow.svm.low_rank import LowRankSVC
from svmarrow.svm.regression import SVR, NuSVR, OneClassSVM
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
    "distil",
    "load",
    "patch_sklearn",
    "quantize",
    "save",
    "show_versions",
    "unpatch_sklearn",
]

__version__ = _version("svmarrow")
