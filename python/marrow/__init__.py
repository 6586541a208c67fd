"""Kernel machines down to the marrow: train exact and fast, shrink to the few vectors that matter, predict.

>>> from sklearn.datasets import load_iris
>>> from marrow import SVC
>>> X, y = load_iris(return_X_y=True)
>>> SVC().fit(X, y).score(X, y) > 0.95
True
"""

from importlib.metadata import version as _version

from marrow.classifier import ExpansionClassifier
from marrow.expansion import KernelExpansion
from marrow.io import load
from marrow.reduced_set import CompressionPath, GradientSettings, ReducedSet, compress
from marrow.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVR",
    "CompressionPath",
    "ExpansionClassifier",
    "GradientSettings",
    "KernelExpansion",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "ReducedSet",
    "compress",
    "load",
]

__version__ = _version("marrow")
