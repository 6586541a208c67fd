"""Base classes of the least-squares estimators: validation, target matrix, outputs, conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from svmarrow._support.atomic import atomic_fit
from svmarrow._support.bases import MultiOutputMixin
from svmarrow._support.callbacks import fitting
from svmarrow._support.decoding import class_indices, class_targets, encode_classes
from svmarrow._support.memory import EstimatesMemory, MemoryEstimate, refuse_beyond_memory
from svmarrow._support.parameters import check
from svmarrow._support.rows import (
    class_weights,
    default_gamma,
    refuse_zero_weights,
    sample_weights,
    select_rows,
    validated,
    weights_differ,
)
from svmarrow.models.columns import Columns
from svmarrow.models.fitted import FittedClassifier, FittedExpansion
from svmarrow.models.output_mixins import RegressorOutputMixin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from svmarrow._support.kernel_function import KernelFunction
    from svmarrow._support.parameters import Rule

__all__ = ["LeastSquares", "SquareLossClassifier", "SquareLossRegressor"]


class LeastSquares(EstimatesMemory, FittedExpansion):
    """Base class of the least-squares estimators."""

    kernel: str | KernelFunction
    gamma: str | float
    degree: int
    coef0: float
    verbose: bool | int

    loo_error_: float
    _rules: ClassVar[Mapping[str, Rule]]
    #: Whether leave-one-out errors are shares of wrong labels; else they are mean squares.
    _by_rate: ClassVar[bool]

    def _fit_all(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Validates the data, fits the model, and stores the leave-one-out values."""
        with fitting(self, X, y, sample_weight):
            X, y = self._checked_rows(X, y)
            targets = self._targets(y)
            needed = self._bytes(X, int(targets.shape[1]))
            refuse_beyond_memory(f"{type(self).__name__}.fit", needed, self._remedy())
            weights = self._row_weights(targets, sample_weights(sample_weight, X.shape[0]))
            self._weighted = weights_differ(weights)
            left = self._fit_counted(X, targets, weights)
            if left is not None:
                self.loo_error_ = self._loo_error(left, targets, weights)
        return self

    def _fit_counted(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Fits without the rows of weight 0, whose leave-one-out values are the model's outputs."""
        if weights is None or weights.all():
            return self._fit(X, targets, weights)
        kept = np.flatnonzero(weights)
        refuse_zero_weights(weights)
        rows = select_rows(X, kept, precomputed=self._is_precomputed())
        left = self._fit(rows, np.ascontiguousarray(targets[kept]), np.ascontiguousarray(weights[kept]))
        self._spread(X, kept)
        if left is None:
            return None
        whole = self.expansion_._evaluate(X, self.n_jobs)
        whole[kept] = left
        return whole

    def _fit(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Fits rows of positive weight; returns leave-one-out values (n, q) if requested."""
        raise NotImplementedError

    def _spread(self, X: Any, kept: NDArray[np.intp]) -> None:
        """Converts a model of some rows to one of all rows."""

    def _memory(self, rows: Any, y: Any) -> MemoryEstimate:
        return MemoryEstimate.of(self._bytes(rows, 1 if y is None else self._outputs_of(y)))

    def _bytes(self, X: Any, outputs: int) -> int:
        """Returns the memory of a fit with ``outputs`` outputs in addition to the samples."""
        raise NotImplementedError

    def _remedy(self) -> str:
        """Returns the remedy if the memory is too small."""
        raise NotImplementedError

    def _outputs_of(self, y: Any) -> int:
        """Returns the number of outputs for labels or targets."""
        raise NotImplementedError

    def _targets(self, y: Any) -> NDArray[np.float64]:
        """Returns the target matrix (n, q)."""
        raise NotImplementedError

    def _row_weights(
        self, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Returns the weights of the squared errors: sample weights, times class weights for classes."""
        raise NotImplementedError

    def _loo_error(
        self, left: NDArray[np.float64], targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> float:
        """Stores leave-one-out values (n, q) and their error."""
        raise NotImplementedError

    def _checked_rows(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Returns validated X and y."""
        check({name: getattr(self, name) for name in self._rules}, self._rules)
        X, y = self._validated_pair(X, y, precomputed=self._is_precomputed())
        self._check_training_rows(X)
        return X, y

    def _validated_pair(self, X: Any, y: Any, *, precomputed: bool, reset: bool = True) -> tuple[Any, Any]:
        X, y = validated(self, X, y, reset=reset, precomputed=precomputed, with_y=True)
        return X, y

    def _kernel(self, X: Any, weights: NDArray[np.float64] | None = None) -> tuple[Any, float, float, int]:
        """(kernel, gamma, coef0, degree) for these rows."""
        gamma = default_gamma(self.gamma, X, kernel=self.kernel, weights=weights)
        return (self.kernel, gamma, float(self.coef0), int(self.degree))


class SquareLossClassifier(FittedClassifier, LeastSquares):
    """Classification targets -1 and +1: one output for two classes, else one per class."""

    _margin_loss: ClassVar[str] = "square"

    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    loo_decision_: NDArray[np.float64]
    classes_: NDArray[Any]
    _by_rate = True

    def _outputs_of(self, y: Any) -> int:
        classes = np.unique(np.asarray(y)).size
        return classes if classes > 2 else 1

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the system.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Samples; the (n, n) kernel matrix for the precomputed kernel.
        y : array-like of shape (n,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights w of the squares, and of the samples in leave-one-out errors; None is 1 for each. A sample
            of weight 2 counts as two samples, one of weight 0 takes no part.

        Returns
        -------
        object
            The fitted classifier.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, a single class, and a system that is not
            positive definite: raise alpha.
        MemoryError
            If a kernel matrix that is needed does not fit in the free memory.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.
        """
        return self._fit_all(X, y, sample_weight)

    def _targets(self, y: Any) -> NDArray[np.float64]:
        """Stores the classes and returns the targets (n, q)."""
        self.classes_, labels = encode_classes(y)
        return class_targets(labels, self.classes_.size)

    def _row_weights(
        self, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        labels = class_indices(targets, self._decoding, self.classes_.size)
        return class_weights(self.class_weight, weights, self.classes_, labels)[1]

    def _loo_error(
        self, left: NDArray[np.float64], targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> float:
        self.loo_decision_ = self._scores_of(left)
        wrong = self._winners_of(left) != self._winners_of(targets)
        return float(average(wrong, weights))

    def _fit_columns(
        self, X: Any, y: NDArray[Any], matrix: NDArray[np.int8], sample_weight: NDArray[np.float64] | None
    ) -> Columns | None:
        """Fits all columns by one system, see `svmarrow.models.columns.ColumnTrainer`."""
        if not matrix.all():
            return None
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.fit(X, y, **weights)
        return self._columns(matrix)

    def _column_memory(
        self, X: Any, matrix: NDArray[np.int8], counts: NDArray[np.int64]
    ) -> MemoryEstimate | None:
        if not matrix.all():
            return None
        self._check_parameters()
        # One-vs-rest is what is fitted, whatever the code.
        return MemoryEstimate.of(self._bytes(X, 1 if counts.size == 2 else int(counts.size)))

    def _columns(self, matrix: NDArray[np.int8]) -> Columns:
        """Returns the machines of a code without zeros from one machine per class (Rifkin 2002, (4.67)).

        With u_j the solution for the targets [class is j], one-vs-rest has g_j = 2 u_j - s, s = sum_j u_j,
        and a column of the code sum_j M_ji u_j. From sum_j g_j = (2 - N) s follows u_j = (g_j - sum_i g_i /
        (N - 2)) / 2. Two classes have one output g = u_1 - u_0.
        """
        code, n = matrix.astype(np.float64), self.classes_.size
        mixing = code[1:] if n == 2 else 0.5 * (code - code.sum(axis=0) / (n - 2))
        left = getattr(self, "loo_decision_", None)
        left = None if left is None else left.reshape(len(left), -1)
        return Columns(self.expansion_, left_out=left).mixed(mixing)


class SquareLossRegressor(MultiOutputMixin, RegressorOutputMixin, LeastSquares):
    """Regression targets, one column or several."""

    loo_prediction_: NDArray[np.float64]
    _by_rate = False

    def _outputs_of(self, y: Any) -> int:
        return 1 if np.ndim(y) == 1 else int(np.shape(y)[1])

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the system.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Samples; the (n, n) kernel matrix for the precomputed kernel.
        y : array-like of shape (n,) or (n, n_outputs)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights w of the squares, and of the samples in leave-one-out errors; None is 1 for each. A sample
            of weight 2 counts as two samples, one of weight 0 takes no part.

        Returns
        -------
        object
            The fitted regressor.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, and a system that is not positive definite:
            raise alpha.
        MemoryError
            If a kernel matrix that is needed does not fit in the free memory.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.
        """
        return self._fit_all(X, y, sample_weight)

    def _validated_pair(self, X: Any, y: Any, *, precomputed: bool, reset: bool = True) -> tuple[Any, Any]:
        X, y = validated(
            self,
            X,
            y,
            reset=reset,
            precomputed=precomputed,
            with_y=True,
            multi_output=True,
            y_numeric=True,
        )
        return X, y

    def _targets(self, y: Any) -> NDArray[np.float64]:
        targets = np.asarray(y, dtype=np.float64)
        self._single = targets.ndim == 1
        return targets[:, np.newaxis] if self._single else targets

    def _row_weights(
        self,
        targets: NDArray[np.float64],  # noqa: ARG002
        weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64] | None:
        return weights

    def _loo_error(
        self, left: NDArray[np.float64], targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> float:
        self.loo_prediction_ = self._shaped(left)
        return float(average(((left - targets) ** 2).mean(axis=1), weights))


def average(values: NDArray[Any], weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Returns the weighted mean over rows."""
    with np.errstate(over="ignore"):
        if weights is not None and not np.isfinite(weights.sum()):
            weights = weights / weights.max()
    mean: NDArray[np.float64] = np.average(values, axis=0, weights=weights)
    return mean
