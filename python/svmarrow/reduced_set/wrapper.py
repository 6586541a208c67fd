"""What the meta-estimators around a kernel classifier share: `ReducedSet` and the cascades."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.parameters import check
from svmarrow._support.saving import Savable
from svmarrow.interop.convert import as_expansion
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.decoded import Labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["ClassifierWrapper"]


class ClassifierWrapper(MetaEstimatorMixin, Labels, Savable, BaseEstimator):
    """Fits a classifier, and has a model of its own, ``model_``, out of it."""

    estimator: Any
    estimator_: Any
    model_: ExpansionClassifier

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the estimator, and compress what it became.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Training rows.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default=None
            Weights, passed to the estimator's fit.

        Returns
        -------
        object
            This object.

        Raises
        ------
        ValueError
            If a parameter is out of its range, the kernel is none that is allowed, or the estimator refuses
            the data.
        TypeError
            If the estimator does not become an expansion that classifies.
        """
        check(self.get_params(deep=False), self._rules)
        self._fit(X, y, sample_weight)
        return self

    @abstractmethod
    def _fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        """Check the parameters, fit the estimator, make ``model_``."""

    def _fit_full(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> ExpansionClassifier:
        """Fit a clone of the estimator; the expansion of what it became."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, y, **weights)
        return self._full(self.estimator_)

    def _full(self, model: Any) -> ExpansionClassifier:
        """The expansion of a fitted classifier; its columns become those of this object."""
        full = as_expansion(model)
        if not isinstance(full, ExpansionClassifier):
            raise TypeError(f"{model!r} is not allowed: it must be a classifier")
        self.n_features_in_ = full.n_features_in_
        if hasattr(full, "feature_names_in_"):
            self.feature_names_in_ = full.feature_names_in_
        return full

    @property
    def classes_(self) -> NDArray[Any]:  # type: ignore[override]  # read-only here
        """The labels, (n_classes,)."""
        check_is_fitted(self, "model_")
        return self.model_.classes_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags = inner.classifier_tags
        tags.target_tags = inner.target_tags
        return tags
