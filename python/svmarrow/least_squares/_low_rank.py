"""Base class of the low-rank estimators: points, sums over rows, the system, batches, merging."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.atomic import atomic_update, consistent, snapshot
from svmarrow._support.parameters import boolean, check, one_of, real, refuse
from svmarrow._support.progress import progress
from svmarrow._support.rows import any_weighted, core_rows, threads, weights_differ
from svmarrow._support.saving import check_columns
from svmarrow._support.stored import check_state
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.expansion.points import (
    POINT_RULES,
    bytes_of_points,
    bytes_of_sums,
    choose_points,
    number_of_points,
)
from svmarrow.least_squares._base import kernel_of
from svmarrow.least_squares.targets import check_leaves_samples, left_out, solve
from svmarrow.models.machine import KernelMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.kernel_function import KernelFunction
    from svmarrow._support.parameters import Rule

__all__ = ["LOW_RANK_RULES", "LowRankLeastSquares", "takes_pieces"]

LOW_RANK_RULES = {
    **POINT_RULES,
    "alpha": real(least=0.0),
    "method": one_of("subset_of_regressors", "subset", "nystrom"),
    "fit_intercept": boolean,
    "leave_one_out": boolean,
}


def takes_pieces(model: Any) -> bool:
    """Returns whether the model is a function of sums over rows."""
    return bool(model.method == "subset_of_regressors")


class LowRankLeastSquares(KernelMachine):
    """Base class of the low-rank estimators."""

    _rules: ClassVar[Mapping[str, Rule]] = LOW_RANK_RULES
    kernel: str | KernelFunction
    gamma: str | float
    degree: int
    coef0: float
    verbose: bool | int

    _kernel: ClassVar[Callable[..., tuple[Any, float, float, int]]] = kernel_of
    n_vectors: int
    alpha: float
    method: Literal["subset_of_regressors", "subset", "nystrom"]
    selection: str | ArrayLike
    fit_intercept: bool
    leave_one_out: bool
    random_state: Any

    indices_: NDArray[np.int64] | None
    remaining_trace_: NDArray[np.float64]
    jitter_: float
    n_seen_: int
    _sums: Any
    _spec: tuple[str, float, float, int]
    _vectors: Any
    expansion_: KernelExpansion

    def _after_load(self) -> None:
        super()._after_load()
        made, sums = self.expansion_, self._sums
        if sums is None:
            return
        m, q = self._vectors.shape[0], made.coefficients.shape[1]
        table, line = np.zeros((0, 0)), np.zeros(0)
        points = KernelExpansion(self._vectors, np.zeros((m, 1)), np.zeros(1), *self._spec)
        check_columns(self, points)
        if takes_pieces(self) and made.vectors.shape != points.vectors.shape:
            raise ValueError("expansion_ is not one of the points")
        empty = {"gram": table, "products": table, "columns": line, "targets": line}
        check_state(sums, {**empty, "rows": 0, "weight": 0.0})
        shapes = {"gram": (m, m), "products": (m, q), "columns": (m,), "targets": (q,)}
        for key, shape in shapes.items():
            if sums[key].shape != shape:
                raise ValueError(f"{key} of the sums has shape {sums[key].shape}, expected {shape}")
        if sums["rows"] != self.n_seen_:
            raise ValueError("the sums are of another number of rows")

    def _bytes(self, X: Any, outputs: int) -> int:
        n, d = int(X.shape[0]), int(X.shape[1])
        m = number_of_points(X, self.n_vectors, self.selection)
        points = bytes_of_points(X, self.n_vectors, self.selection)
        if self.method == "subset":
            system = _core.least_squares_bytes(m, X.dtype != np.float64, bool(self.leave_one_out))
            return points + int(system) + 8 * (m * (2 * d + 8 * outputs) + 2 * n * outputs)
        return points + bytes_of_sums(n, d, m, outputs, with_hat=bool(self.leave_one_out))

    def _remedy(self) -> str:
        return "lower n_vectors"

    def _call(self, reporter: Any) -> tuple[Any, int]:
        return (reporter.callback, threads(self.n_jobs))

    def _begin(self, X: Any, weights: NDArray[np.float64] | None) -> None:
        """Chooses the points from the first batch."""
        self._spec = self._kernel(X, weights)
        vectors, rows, remaining = choose_points(
            X,
            self.n_vectors,
            self._spec,
            selection=self.selection,
            alpha=float(self.alpha),
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self._vectors, self.indices_, self._sums = vectors, rows, None
        self.n_seen_ = 0
        if remaining is not None:
            self.remaining_trace_ = remaining

    def _add(self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None) -> None:
        with progress(self.verbose) as reporter:
            self._sums = _core.low_rank_sums(
                core_rows(X),
                (np.ascontiguousarray(targets), weights),
                (core_rows(self._vectors), self._spec),
                self._sums,
                *self._call(reporter),
            )
        self.n_seen_ = int(self._sums["rows"])

    def _finish(self, X: Any = None) -> NDArray[np.float64] | None:
        """Solves the system of the sums; returns the hat diagonal of X if given."""
        with progress(self.verbose) as reporter:
            solved = _core.low_rank_solve(
                {
                    "points": (core_rows(self._vectors), self._spec),
                    "sums": self._sums,
                    "alpha": float(self.alpha),
                    "fit_intercept": bool(self.fit_intercept),
                },
                None if X is None else core_rows(X),
                *self._call(reporter),
            )
        self.jitter_ = float(solved["jitter"])
        self.expansion_ = KernelExpansion(
            self._vectors, solved["coefficients"], solved["intercepts"], *self._spec
        )
        return solved["hat"]

    def _fit(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        if self.method == "nystrom" and self.leave_one_out:
            raise refuse("leave_one_out", True, "False for method='nystrom'")
        if self.method == "nystrom" and self.fit_intercept:
            raise refuse("fit_intercept", True, "False for method='nystrom'")
        if self.method == "nystrom" and self.alpha == 0.0:
            raise refuse("alpha", self.alpha, "above 0 for method='nystrom'")
        self._begin(X, weights)
        if self.method == "subset":
            return self._fit_subset(X, targets, weights)
        wanted = self.leave_one_out and self.method == "subset_of_regressors"
        if wanted:
            check_leaves_samples(X, fit_intercept=bool(self.fit_intercept))
        self._add(X, targets, weights)
        hat = self._finish(X if wanted else None)
        if self.method == "nystrom":
            residuals = targets - self.expansion_._evaluate(X, self.n_jobs)
            if weights is not None:
                residuals *= weights[:, np.newaxis]
            self.expansion_ = KernelExpansion(
                X, residuals / float(self.alpha), np.zeros(targets.shape[1]), *self._spec
            )
        if hat is None:
            return None
        return left_out(targets, self.expansion_._evaluate(X, self.n_jobs), hat, weights)

    def _spread(self, X: Any, kept: NDArray[np.intp]) -> None:  # noqa: ARG002
        if self.indices_ is not None:
            self.indices_ = kept[self.indices_].astype(np.int64)

    def _fit_subset(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        rows = self.indices_
        if rows is None:
            raise refuse("selection", self.selection, "one that chooses rows, for method='subset'")
        fit = solve(
            self._vectors,
            targets[rows],
            float(self.alpha),
            self._spec,
            fit_intercept=bool(self.fit_intercept),
            leave_one_out=bool(self.leave_one_out),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            weights=None if weights is None else np.ascontiguousarray(weights[rows]),
        )
        self.expansion_, self.jitter_, self.n_seen_ = fit.expansion, 0.0, int(X.shape[0])
        if fit.loo is None:
            return None
        # Rows that are not points are out of the model as it is.
        left = self.expansion_._evaluate(X, self.n_jobs)
        left[rows] = fit.loo
        return left

    def _piece(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None, *, first: bool
    ) -> None:
        """Adds rows of positive weight and solves the system again."""
        if self.leave_one_out:
            raise refuse("leave_one_out", True, "False for partial_fit: earlier rows are gone")
        # Earlier rows may have had other weights: all are compared with 1.
        differ = weights is not None and weights_differ(np.append(weights, 1.0))
        self._weighted = differ or (not first and self._weighted is not False)
        kept = None if weights is None or weights.all() else np.flatnonzero(weights)
        if kept is not None and weights is not None:
            if first and kept.size == 0:
                raise ValueError(
                    "the sample weights are all zero: the first batch needs a sample of positive weight"
                )
            X, targets, weights = X[kept], targets[kept], np.ascontiguousarray(weights[kept])
        if first:
            self._begin(X, weights)
            if kept is not None:
                self._spread(X, kept)
        if X.shape[0]:
            self._add(X, targets, weights)
        self._finish()

    @consistent
    def path(self, alphas: ArrayLike) -> list[Self]:
        """Fit models with other penalties from the sums, without a pass over the samples.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,)
            Weights of the penalty, not negative.

        Returns
        -------
        list of estimators
            Fitted, one for each alpha in turn, with the same points.

        Raises
        ------
        ValueError
            For a ``method`` other than "subset_of_regressors", whose model is no function of sums.
        """
        check_is_fitted(self)
        if getattr(self, "_sums", None) is None or not takes_pieces(self):
            raise refuse("method", self.method, "'subset_of_regressors' for a path of penalties")
        models = []
        for alpha in np.ravel(np.asarray(alphas, dtype=np.float64)).tolist():
            check({"alpha": alpha}, {"alpha": self._rules["alpha"]})
            model = clone(self).set_params(alpha=alpha)
            left = ("loo_decision_", "loo_prediction_", "loo_error_")
            fitted = {name: value for name, value in vars(self).items() if name not in (*left, "alpha")}
            model.__dict__ |= fitted
            model._finish()
            models.append(model)
        return models

    @atomic_update
    def merge(self, other: Self) -> Self:
        """Add the samples that another estimator has seen.

        Parameters
        ----------
        other : object
            An estimator of the same class with the same points, kernel and outputs, fitted by `fit` or
            `partial_fit` with ``method="subset_of_regressors"``; pass the points as ``selection`` to both.

        Returns
        -------
        object
            The model of all samples of both.

        Raises
        ------
        ValueError
            If the two do not agree.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        other = snapshot(other)
        mine, theirs = getattr(self, "_sums", None), getattr(other, "_sums", None)
        if mine is None or theirs is None:
            raise ValueError("merge needs two models of method='subset_of_regressors'")
        same = self.expansion_.vectors, other.expansion_.vectors
        equal = same[0].shape == same[1].shape and abs(same[0] - same[1]).max() == 0
        classes = getattr(self, "classes_", ()), getattr(other, "classes_", ())
        if not equal or self._spec != other._spec or not np.array_equal(classes[0], classes[1]):
            raise ValueError("merge needs two models of the same points, kernel and classes")
        if mine["products"].shape != theirs["products"].shape:
            raise ValueError("merge needs two models of as many outputs")
        self._sums = {name: mine[name] + theirs[name] for name in mine}
        self.n_seen_ = int(self._sums["rows"])
        self._weighted = any_weighted([self._weighted, other._weighted])
        self._finish()
        return self
