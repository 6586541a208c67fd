"""The fit of the least-squares estimators, and their targets: classes or numbers.

An estimator has two sides, which do not know each other: `SquareLossClassifier` or `SquareLossRegressor`
(targets, weights, the meaning of leave-one-out values) and a solver (`ExactLeastSquares`,
`LowRankLeastSquares`, `LinearLeastSquares`), which has

* ``_fit(X, targets, weights)``: fits rows of positive weight, returns leave-one-out values if requested;
* ``_spread(X, counted)``: converts a model of some rows to one of all rows;
* ``_bytes(X, outputs)`` and ``_remedy()``: the memory of a fit, and what to do if it is too small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from svmarrow._support.bases import MultiOutputMixin
from svmarrow._support.parameters import Rule, atomic_fit, either, is_missing, none
from svmarrow._support.progress import fitting
from svmarrow._support.rows import select_rows, validated
from svmarrow._support.training import (
    MemoryEstimate,
    class_targets,
    class_weights,
    default_gamma,
    encode_classes,
    refuse_beyond_memory,
    refuse_zero_weights,
    sample_weights,
    weights_differ,
)
from svmarrow._support.training import estimate_memory as memory_method
from svmarrow.models.machine import Columns
from svmarrow.models.outputs import ClassifierOutputMixin, RegressorOutputMixin, class_indices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = [
    "PENALTIES",
    "SquareLossClassifier",
    "SquareLossRegressor",
    "average",
    "descend",
    "fit_all",
    "gain",
    "group_numbers",
    "is_clear_gain",
    "kernel_of",
    "with_chosen_penalty",
]


def fit_all(model: Any, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Any:
    """Validates the data, fits the model, stores the leave-one-out values, and returns the model."""
    with fitting(model, X, y, sample_weight, groups):
        model._check_parameters()
        X, y = model._validated_pair(X, y, precomputed=model._is_precomputed())
        model._check_training_rows(X)
        targets = model._targets(y)
        weights = model._row_weights(targets, sample_weights(sample_weight, X.shape[0]))
        model._weighted = weights_differ(weights)
        numbers = None if groups is None else group_numbers(groups, X.shape[0], weights)
        # A block of the inverse for the largest group.
        block = 0 if numbers is None else 8 * int(np.bincount(numbers).max()) ** 2
        needed = model._bytes(X, int(targets.shape[1])) + block
        refuse_beyond_memory(f"{type(model).__name__}.fit", needed, model._remedy())
        left = _fit_counted(model, X, targets, weights, numbers)
        if left is not None:
            model.loo_error_ = model._loo_error(left, targets, weights)
    return model


def group_numbers(groups: Any, n: int, weights: NDArray[np.float64] | None) -> NDArray[np.intp]:
    """Returns the number of the group of each of n samples, from 0; samples of weight 0 make no group."""
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups has shape {labels.shape}: it must have one group for each of {n} samples")
    if any(map(is_missing, labels.tolist())):
        raise ValueError("groups has missing values: each sample must belong to a group")
    try:
        numbers = np.unique(labels, return_inverse=True)[1].ravel()
    except TypeError as error:
        raise ValueError(f"groups cannot be sorted: {error}; pass integers or strings") from None
    if np.unique(numbers if weights is None else numbers[weights > 0.0]).size < 2:
        raise ValueError("groups holds one group: at least 2 are needed, since each is left out in turn")
    return numbers


def _fit_counted(
    model: Any,
    X: Any,
    targets: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    groups: NDArray[np.intp] | None = None,
) -> NDArray[np.float64] | None:
    """Fits without the rows of weight 0, whose leave-one-out values are the model's outputs."""
    numbers = {} if groups is None else {"groups": groups}
    if weights is None or weights.all():
        left: NDArray[np.float64] | None = model._fit(X, targets, weights, **numbers)
        return left
    counted = np.flatnonzero(weights)
    refuse_zero_weights(weights)
    rows = select_rows(X, counted, precomputed=model._is_precomputed())
    if groups is not None:
        numbers = {"groups": np.unique(groups[counted], return_inverse=True)[1].ravel()}
    few_targets, few_weights = (np.ascontiguousarray(values[counted]) for values in (targets, weights))
    left = model._fit(rows, few_targets, few_weights, **numbers)
    model._spread(X, counted)
    if left is None:
        return None
    outputs: NDArray[np.float64] = model.expansion_._evaluate(X, model.n_jobs)
    outputs[counted] = left
    return outputs


def memory_of(self: Any, rows: Any, y: Any) -> MemoryEstimate:
    """Returns the estimate of a fit to validated samples."""
    return MemoryEstimate.of(self._bytes(rows, 1 if y is None else self._outputs_of(y)))


def kernel_of(self: Any, X: Any, weights: NDArray[np.float64] | None = None) -> tuple[Any, float, float, int]:
    """Returns (kernel, gamma, coef0, degree) for these rows."""
    gamma = default_gamma(self.gamma, X, kernel=self.kernel, weights=weights)
    return (self.kernel, gamma, float(self.coef0), int(self.degree))


class SquareLossClassifier(ClassifierOutputMixin):
    """Classification targets -1 and +1: one output for two classes, else one per class."""

    _margin_loss: ClassVar[str] = "square"

    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    loo_decision_: NDArray[np.float64]
    loo_error_: float
    expansion_: KernelExpansion
    classes_: NDArray[Any]
    #: Whether leave-one-out errors are shares of wrong labels; else they are mean squares.
    _by_rate: ClassVar[bool] = True

    estimate_memory: ClassVar[Callable[..., MemoryEstimate]] = memory_method
    _memory: ClassVar[Callable[..., MemoryEstimate]] = memory_of

    if TYPE_CHECKING:

        def _bytes(self, X: Any, outputs: int) -> int: ...
        def _check_parameters(self) -> None: ...

    def _validated_pair(self, X: Any, y: Any, *, precomputed: bool, reset: bool = True) -> tuple[Any, Any]:
        X, y = validated(self, X, y, reset=reset, precomputed=precomputed, with_y=True)
        return X, y

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
        fitted: Self = fit_all(self, X, y, sample_weight)
        return fitted

    def _targets(self, y: Any) -> NDArray[np.float64]:
        """Stores the classes and returns the targets (n, q)."""
        self.classes_, labels = encode_classes(y)
        return class_targets(labels, self.classes_.size)

    def _targets_of_piece(self, y: Any, classes: Any, *, first: bool) -> NDArray[np.float64]:
        """Returns the targets (n, q) of a batch; the first one stores the classes."""
        check_classification_targets(y)
        if first:
            if classes is None:
                raise ValueError(
                    "classes=None is not allowed: the first call of partial_fit must name them all"
                )
            self.classes_ = np.unique(np.asarray(classes))
            if self.classes_.size < 2:
                raise ValueError(f"classes has {self.classes_.size} class: it must have at least 2 classes")
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not allowed: it must be {self.classes_.tolist()} or None"
            )
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y has the label {unknown.tolist()[0]!r}, which is not among the classes")
        return class_targets(np.searchsorted(self.classes_, y), int(self.classes_.size))

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

    def _losses(self, left: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns 1 for each wrong label (n,), and a thousandth of the squared error for a tie of rates."""
        wrong = self._winners_of(left) != self._winners_of(targets)
        losses: NDArray[np.float64] = wrong + 1e-3 * ((left - targets) ** 2).mean(axis=1)
        return losses

    def _fit_columns(
        self, X: Any, y: NDArray[Any], matrix: NDArray[np.int8], sample_weight: NDArray[np.float64] | None
    ) -> Columns | None:
        """Fits all columns by one system, see `svmarrow.models.machine.ColumnTrainer`."""
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


class SquareLossRegressor(MultiOutputMixin, RegressorOutputMixin):
    """Regression targets, one column or several."""

    loo_prediction_: NDArray[np.float64]
    loo_error_: float
    _stored_as: ClassVar[dict[str, str]] = {"_single": "flat_"}
    _by_rate: ClassVar[bool] = False

    estimate_memory: ClassVar[Callable[..., MemoryEstimate]] = memory_method
    _memory: ClassVar[Callable[..., MemoryEstimate]] = memory_of

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
        fitted: Self = fit_all(self, X, y, sample_weight)
        return fitted

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
        return float(average(self._losses(left, targets), weights))

    def _losses(self, left: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the squared error of each sample (n,), the mean over the outputs."""
        squares: NDArray[np.float64] = ((left - targets) ** 2).mean(axis=1)
        return squares


def are_penalties(value: Any) -> bool:
    """Returns whether a value is a list of penalties."""
    try:
        alphas = np.asarray(value, dtype=np.float64)
    except Exception:  # noqa: BLE001 - what converts a number is the caller's own, and may raise anything
        return False
    return alphas.ndim == 1 and alphas.size > 0 and bool(np.isfinite(alphas).all() and (alphas >= 0.0).all())


#: The rule of ``alphas``.
PENALTIES = either(none, Rule("a list of finite numbers at least 0", are_penalties))


def with_chosen_penalty(
    model: Any,
    fit: Callable[[float], NDArray[np.float64]],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Fits with the one of ``model.alphas`` that has the least leave-one-out error.

    `fit` sets the model of a penalty and returns the outputs without each sample (n, q); those of the penalty
    that is taken are returned. Sets ``alpha_`` and ``loo_errors_``.
    """
    alphas = np.asarray(model.alphas, dtype=np.float64)
    errors = np.array([model._loo_error(fit(alpha), targets, weights) for alpha in alphas.tolist()])
    model.loo_errors_, model.alpha_ = errors, float(alphas[np.argmin(errors)])
    return fit(model.alpha_)


#: Factors of a step of the width and of the penalty, and the maximum number of fits of a search for both.
WIDTH_FACTOR, PENALTY_FACTOR, MAX_FITS = 2.0, 4.0, 24
#: Share of the error that a step must gain, so that a search ends in a flat valley.
MIN_STEP_GAIN = 1e-3
#: Range of the penalties of a search.
PENALTY_LIMITS = (1e-7, 1e4)

Fit = TypeVar("Fit")


def descend(
    fit: Callable[[float, float], Fit | None],
    error: Callable[[Fit], float],
    width: float,
    alpha: float,
    best: Fit | None = None,
    max_fits: int = MAX_FITS,
    min_gain: float = MIN_STEP_GAIN,
) -> Fit | None:
    """Returns the fit whose width and penalty no step improves: pattern search (Hooke and Jeeves 1961).

    One of the two is changed at a time, in one direction as long as the error falls, so an optimum costs the
    fits of its four neighbors instead of all eight.

    Parameters
    ----------
    fit : callable
        Fits with a width and a penalty; None ends the search.
    error : callable
        The error of a fit.
    width, alpha : float
        Where the search begins.
    best : Fit, default=None
        The fit there, if there is one.
    max_fits : int, default=24
        Limit of the fits.
    min_gain : float, default=1e-3
        Share of the error that a step must gain.

    Returns
    -------
    Fit or None
        None if the search ended before its first fit.

    Raises
    ------
    LinAlgError
        If no fit has a solution.
    """
    here = (width, alpha)
    errors: dict[tuple[float, float], float] = {}
    refused: np.linalg.LinAlgError | None = None

    def improves(point: tuple[float, float]) -> bool | None:
        """Returns whether a new point replaces the best one; None ends the search."""
        nonlocal best, here, refused
        if point in errors:
            return False
        errors[point] = np.inf
        try:
            other = fit(*point)
        except np.linalg.LinAlgError as failure:
            refused = failure
            return False
        if other is None:
            return None
        errors[point] = error(other)
        if best is not None and not errors[point] < (1.0 - min_gain) * errors[here]:
            return False
        best, here = other, point
        return True

    if best is not None:
        errors[here] = error(best)
    elif improves(here) is None:
        return None
    has_moved = True
    while has_moved:
        has_moved = False
        for width_step, penalty_step in ((WIDTH_FACTOR, 1.0), (1.0, PENALTY_FACTOR)):
            for power in (1.0, -1.0):
                start = here
                is_better: bool | None = True
                while is_better and len(errors) < max_fits:
                    penalty = float(np.clip(here[1] * penalty_step**power, *PENALTY_LIMITS))
                    is_better = improves((here[0] * width_step**power, penalty))
                if is_better is None:
                    return best
                if here != start:
                    has_moved = True
                    break
    if best is None and refused is not None:
        raise refused
    return best


def is_clear_gain(
    gains: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    standard_errors: float,
    groups: NDArray[np.intp] | None = None,
) -> bool:
    """Returns whether the mean of paired gains (n,) is larger than a number of its standard errors.

    Gains of different groups are independent, those of a group are not.
    """
    mean, error = gain(gains, weights, groups)
    return mean > standard_errors * error


def gain(
    gains: NDArray[np.float64], weights: NDArray[np.float64] | None, groups: NDArray[np.intp] | None = None
) -> tuple[float, float]:
    """Returns the mean of paired gains (n,) and its standard error, for gains that differ between groups."""
    w = np.full(len(gains), 1.0 / len(gains)) if weights is None else weights / weights.sum()
    mean = float(w @ gains)
    deviations = w * (gains - mean)
    if groups is not None:
        deviations = np.bincount(groups, deviations)
    return mean, float(np.sqrt(np.sum(deviations**2)))


def average(values: NDArray[Any], weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Returns the weighted mean over rows."""
    with np.errstate(over="ignore"):
        if weights is not None and not np.isfinite(weights.sum()):
            weights = weights / weights.max()
    mean: NDArray[np.float64] = np.average(values, axis=0, weights=weights)
    return mean
