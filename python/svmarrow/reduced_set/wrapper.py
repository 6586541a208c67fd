"""Base class of the meta-estimators around a kernel machine: `ReducedSet` and the cascades."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples

from svmarrow._support import memory
from svmarrow._support.atomic import atomic_fit
from svmarrow._support.bases import MetaEstimatorMixin
from svmarrow._support.callbacks import fitting, subtasks
from svmarrow._support.estimator import Estimator
from svmarrow._support.memory import (
    MemoryEstimate,
    bytes_of_rows,
    estimate_of,
    refuse_beyond_memory,
)
from svmarrow._support.parameters import ESTIMATOR, check
from svmarrow._support.routing import RoutesFit, check_takes_weights
from svmarrow._support.rows import sample_weights, weights_differ
from svmarrow.interop.convert import as_expansion
from svmarrow.models.classifier import n_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.models.base import ExpansionModel

__all__ = ["ModelWrapper"]


class ModelWrapper(RoutesFit, MetaEstimatorMixin, Estimator):
    """Fits an estimator, and makes its own model, ``model_``, of it."""

    estimator: Any
    estimator_: Any
    model_: Any
    #: The kinds of models that an estimator may become, and their name in an error.
    _kinds: ClassVar[tuple[type[ExpansionModel], ...]]
    _kind_text: ClassVar[str]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    @atomic_fit
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **metadata: Any
    ) -> Self:
        """Fit the estimator, and compress what it became.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, passed to the estimator's fit.
        **metadata : Any
            With scikit-learn's metadata routing: whatever else the estimator requests.

        Returns
        -------
        object
            This object.

        Raises
        ------
        ValueError
            If a parameter is out of its range, the kernel is not allowed, the estimator refuses the
            data, or weights are given that it does not take or ask for.
        TypeError
            If the estimator does not become an expansion of a kind that is allowed.
        MemoryError
            If the estimator or the compression needs more memory than this process may take, see
            `estimate_memory`.
        """
        check(self.get_params(deep=False), {"estimator": ESTIMATOR, **self._rules})
        with fitting(self, X, y, sample_weight):
            self._refuse_beyond_memory(X, y)
            self._fit(X, y, self._for_estimator(sample_weight, metadata))
        return self

    estimate_memory: ClassVar[Callable[..., MemoryEstimate]] = memory.estimate_memory

    def _memory(self, rows: Any, y: Any) -> MemoryEstimate:
        check(self.get_params(deep=False), {"estimator": ESTIMATOR, **self._rules})
        outputs = self._n_outputs(y)
        # Vectors and coefficients of the full model are here while it is compressed.
        full = bytes_of_rows(rows) + 16 * int(rows.shape[0]) * outputs
        own = estimate_of(self.estimator, rows, y)
        return MemoryEstimate(full + max(own.total, self._bytes_after(rows, outputs)), own.minimum)

    def _n_outputs(self, y: Any) -> int:
        """The number of outputs of a model of these labels or targets."""
        if y is None:
            return 1
        if is_regressor(self.estimator):
            return 1 if np.ndim(y) == 1 else int(np.shape(y)[1])
        classes = int(np.unique(np.asarray(y)).size)
        pairs = getattr(self.estimator, "multi_class", "ovr") == "ovo"
        return n_outputs("binary" if classes <= 2 else "ovo" if pairs else "ovr", classes)

    @abstractmethod
    def _bytes_after(self, rows: Any, outputs: int) -> int:
        """Bytes of the work after the fit of the full model, if all samples are vectors of it."""

    def _refuse_beyond_memory(self, X: Any, y: Any) -> None:
        try:
            least = estimate_of(self.estimator, X, y).minimum
        except (TypeError, ValueError):
            return  # The estimator reports what is wrong with X and y.
        remedy = f"give another {type(self.estimator).__name__}, whose estimate_memory is less"
        refuse_beyond_memory(f"{type(self).__name__}.fit", least, remedy)

    @abstractmethod
    def _fit(self, X: ArrayLike, y: ArrayLike, metadata: dict[str, Any]) -> None:
        """Fit the estimator with its metadata, make ``model_``."""

    def _fit_full(self, X: ArrayLike, y: ArrayLike, metadata: dict[str, Any]) -> Any:
        """Fit a clone of the estimator; the expansion of what it became."""
        given = metadata.get("sample_weight")
        if given is not None:
            check_takes_weights(self.estimator)
        self.estimator_ = clone(self.estimator)
        with subtasks("estimator", 1) as one, one.part(0, self.estimator_):
            self.estimator_.fit(X, y, **metadata)
        full = self._full(self.estimator_)
        if full.weighted is None and weights_differ(sample_weights(given, _num_samples(X))):
            # Estimators of other packages do not keep the weights of samples.
            full = full.with_weighted(True)
        return full

    def _full(self, model: Any) -> Any:
        """The expansion of a fitted estimator; its columns become those of this object."""
        full = as_expansion(model)
        if not isinstance(full, self._kinds):
            raise TypeError(f"{model!r} is not allowed: it must be {self._kind_text}")
        self.n_features_in_ = full.n_features_in_
        if hasattr(full, "feature_names_in_"):
            self.feature_names_in_ = full.feature_names_in_
        return full

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        return tags
