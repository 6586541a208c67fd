"""The base classes of scikit-learn, whose types ``bases.pyi`` declares: scikit-learn has none of its own."""

from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    MultiOutputMixin,
    OutlierMixin,
    RegressorMixin,
)

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Takes the place of scikit-learn's, without callbacks."""


__all__ = [
    "BaseEstimator",
    "CallbackSupportMixin",
    "ClassifierMixin",
    "MetaEstimatorMixin",
    "MultiOutputMixin",
    "OutlierMixin",
    "RegressorMixin",
]
