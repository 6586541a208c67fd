"""Base class of the low-rank estimators: points, sums over samples, the system or its iteration, merging."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.parameters import (
    atomic_update,
    boolean,
    check,
    consistent,
    one_of,
    real,
    refuse,
    snapshot,
)
from svmarrow._support.progress import progress
from svmarrow._support.rows import core_rows, same_vectors, threads
from svmarrow._support.training import any_weighted, weights_differ
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.expansion.points import (
    POINT_RULES,
    VALUE_RULES,
    Points,
    bytes_of_points,
    bytes_of_sums,
    choose_points,
    factor_points,
    has_only_values,
    number_of_points,
)
from svmarrow.least_squares._base import PENALTIES, kernel_of, with_chosen_penalty
from svmarrow.least_squares._exact import ITERATION_RULES, refuse_time, stopping, warn_unconverged
from svmarrow.least_squares.targets import check_leaves_samples, check_sums, left_out, solve
from svmarrow.models.machine import KernelMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.parameters import Rule
    from svmarrow.expansion.kernel_expansion import KernelFunction


__all__ = [
    "LOW_RANK_RULES",
    "LowRankLeastSquares",
    "takes_batches",
    "takes_pieces",
]


LOW_RANK_RULES = {
    **POINT_RULES,
    **VALUE_RULES,
    "alpha": real(least=0.0),
    "alphas": PENALTIES,
    "method": one_of("subset_of_regressors", "subset", "nystrom"),
    "fit_intercept": boolean,
    "leave_one_out": boolean,
    "solver": one_of("auto", "cholesky", "cg"),
    **ITERATION_RULES,
}

#: Number of passes of conjugate gradients that "auto" expects, and the cost of a kernel value beyond its
#: features, in multiply-adds of a factorization.
EXPECTED_PASSES, VALUE_COST = 25, 40
#: Maximum number of vectors that are always factored.
MAX_FACTORED = 1000
#: Kernels that are positive definite for all parameters.
POSITIVE_DEFINITE = ("linear", "rbf", "laplacian", "chi2", "matern12", "matern32", "matern52")


def takes_pieces(model: Any) -> bool:
    """Returns whether the model is a function of sums over rows."""
    return bool(model.method == "subset_of_regressors")


def takes_batches(model: Any) -> bool:
    """Returns whether `partial_fit` applies: conjugate gradients keep no sums."""
    return takes_pieces(model) and bool(model.solver != "cg")


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
    alphas: ArrayLike | None
    method: Literal["subset_of_regressors", "subset", "nystrom"]
    selection: str | ArrayLike
    fit_intercept: bool
    leave_one_out: bool
    solver: Literal["auto", "cholesky", "cg"]
    tol: float
    max_iter: int
    max_time: float | None
    random_state: Any

    solver_: str
    n_iter_: int
    residual_: float
    alpha_: float
    loo_errors_: NDArray[np.float64]
    indices_: NDArray[np.int64] | None
    remaining_trace_: NDArray[np.float64]
    jitter_: float
    n_seen_: int
    _sums: Any
    _spec: tuple[str, float, float, int]
    _vectors: Any
    #: Features of the points, where the kernel is known by its values only.
    _triangle: NDArray[np.float64] | None = None
    _stored_as: ClassVar[dict[str, str]] = {
        "_spec": "kernel_spec_",
        "_sums": "sums_",
        "_triangle": "triangle_",
        "_vectors": "points_",
    }
    expansion_: KernelExpansion

    def _after_load(self) -> None:
        super()._after_load()
        if self._sums is not None:
            check_sums(self, self._vectors, self._spec, self._sums, is_model=takes_pieces(self))

    def _choice(self, X: Any, outputs: int) -> str:
        """Returns the solver for these samples; an iteration may be much cheaper, but has no sums."""
        if not takes_pieces(self):
            return "cholesky"
        if self.solver != "auto":
            return self.solver
        is_possible = isinstance(self.kernel, str) and self.kernel in POSITIVE_DEFINITE and self.alpha > 0.0
        if not is_possible or self._needs_left_out():
            return "cholesky"
        if self.max_time is not None:
            return "cg"
        n, m = int(X.shape[0]), number_of_points(X, self.n_vectors, self.selection)
        features = X.nnz / max(n, 1) if sp.issparse(X) else X.shape[1]
        passes = EXPECTED_PASSES * n * m * (features + VALUE_COST + 2 * outputs)
        iteration = passes + min(4 * m, n) * m**2 + m**3 / 3
        direct = n * m * (features + VALUE_COST + m / 2) + m**3 / 6
        return "cg" if m > MAX_FACTORED and iteration < direct else "cholesky"

    def _check_solver(self) -> None:
        """Checks that the solver has what other parameters ask for."""
        if self.solver == "cg":
            if not takes_pieces(self):
                raise refuse("solver", "cg", f"'auto' or 'cholesky' for method={self.method!r}")
            if has_only_values(self.kernel):
                raise refuse("kernel", self.kernel, "computed from rows for solver='cg'")
            if self.leave_one_out:
                raise refuse("leave_one_out", True, "False for solver='cg'")
            if self.alphas is not None:
                raise refuse("alphas", self.alphas, "None for solver='cg'")
        refuse_time(self.max_time, self.solver_)

    def _refuse_without_sums(self, method: str) -> None:
        """Raises ``ValueError`` if the model was fitted by conjugate gradients, which keep no sums."""
        if getattr(self, "solver_", None) == "cg":
            raise ValueError(
                f"{method} needs the sums over the samples, which a fit with solver_='cg' does not keep: fit "
                "again with solver='cholesky'"
            )

    def _bytes(self, X: Any, outputs: int) -> int:
        n, d = int(X.shape[0]), int(X.shape[1])
        m = number_of_points(X, self.n_vectors, self.selection)
        points = bytes_of_points(X, self.n_vectors, self.selection, self.kernel)
        if self.method == "subset":
            system = _core.least_squares_bytes(m, X.dtype != np.float64, bool(self.leave_one_out))
            return points + int(system) + 8 * (m * (2 * d + 8 * outputs) + 2 * n * outputs)
        if self._choice(X, outputs) == "cg":
            # Matrices; packed vectors and panels; blocks of kernel values and sums of the threads.
            blocks = threads(self.n_jobs) * m * (48 + 4 * (outputs + 16))
            sample = min(n, 4 * m) * d + m * 1024
            return points + 8 * (
                int(2.5 * m * m) + sample + m * (2 * d + 10 * outputs + 512) + blocks + 2 * n * outputs
            )
        return points + bytes_of_sums(n, d, m, outputs, with_hat=self._needs_left_out())

    def _needs_left_out(self) -> bool:
        return bool(self.leave_one_out) or self.alphas is not None

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
        self._triangle = None
        # The loss of "subset" is that of the points: dependent ones count too.
        if has_only_values(self._spec[0]) and self.method != "subset":
            factored = factor_points(self._spec[0], vectors, X)
            vectors, self._triangle = factored.features.points, factored.features.triangle
            rows = None if rows is None else rows[factored.places]
        self._vectors, self.indices_, self._sums = vectors, rows, None
        self.n_seen_ = 0
        if remaining is not None:
            self.remaining_trace_ = remaining

    @property
    def _points(self) -> Points:
        return Points(self._vectors, self._spec, self._triangle)

    def _add(self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None) -> None:
        with progress(self.verbose) as reporter:
            self._sums = _core.low_rank_sums(
                core_rows(X),
                (np.ascontiguousarray(targets), weights),
                self._points.core(),
                self._sums,
                *self._call(reporter),
            )
        self.n_seen_ = int(self._sums["rows"])

    def _finish(self, X: Any = None, alpha: float | None = None) -> NDArray[np.float64] | None:
        """Solves the system of the sums; returns the hat diagonal of X if given."""
        self.alpha_ = float(self.alpha) if alpha is None else alpha
        with progress(self.verbose) as reporter:
            solved = _core.low_rank_solve(
                {
                    "points": self._points.core(),
                    "sums": self._sums,
                    "alpha": self.alpha_,
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
        if self.alphas is not None and not takes_pieces(self):
            raise refuse("alphas", self.alphas, f"None for method={self.method!r}")
        self.solver_, self.n_iter_ = self._choice(X, targets.shape[1]), 1
        self._check_solver()
        self._begin(X, weights)
        if self.solver_ == "cg":
            self._by_conjugate_gradients(X, targets, weights)
            return None
        if self.method == "subset":
            return self._fit_subset(X, targets, weights)
        needs_samples = self._needs_left_out() and takes_pieces(self)
        if needs_samples:
            check_leaves_samples(X, fit_intercept=bool(self.fit_intercept))
        samples = self._points.samples(X)
        self._add(samples, targets, weights)

        def without_each(alpha: float | None = None) -> NDArray[np.float64]:
            hat = self._finish(samples, alpha)
            assert hat is not None
            outputs = self._points.outputs(self.expansion_, samples, self.n_jobs)
            return left_out(targets, outputs, hat, weights)

        if self.alphas is not None:
            return with_chosen_penalty(self, without_each, targets, weights)
        if needs_samples:
            return without_each()
        self._finish()
        if self.method == "nystrom":
            residuals = targets - self._points.outputs(self.expansion_, samples, self.n_jobs)
            if weights is not None:
                residuals *= weights[:, np.newaxis]
            vectors = np.arange(float(len(X)))[:, np.newaxis] if self._is_precomputed() else X.copy()
            self.expansion_ = KernelExpansion(
                vectors, residuals / float(self.alpha), np.zeros(targets.shape[1]), *self._spec
            )
        return None

    def _by_conjugate_gradients(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> None:
        """Solves the system without its matrix; the model has no sums."""
        self.alpha_ = float(self.alpha)
        with progress(self.verbose) as reporter:
            solution = _core.low_rank_cg(
                {
                    "points": self._points.core(),
                    "alpha": self.alpha_,
                    "fit_intercept": bool(self.fit_intercept),
                },
                core_rows(X),
                (np.ascontiguousarray(targets), weights),
                stopping(self),
                *self._call(reporter),
            )
        self.jitter_, self.residual_ = float(solution["jitter"]), solution["residual"]
        self.n_iter_, self.n_seen_ = solution["products"], int(X.shape[0])
        self.expansion_ = KernelExpansion(
            self._vectors, solution["coefficients"], solution["intercepts"], *self._spec
        )
        warn_unconverged(self, solution["stop"], solution["residual"], float(self.tol))

    def _spread(self, X: Any, kept: NDArray[np.intp]) -> None:  # noqa: ARG002
        if self.indices_ is not None:
            self.indices_ = kept[self.indices_].astype(np.int64)
        if self._is_precomputed():
            self._vectors = kept[self._vectors.astype(np.intp)].astype(np.float64)
            vectors = kept[self.expansion_.vectors.astype(np.intp)].astype(np.float64)
            self.expansion_ = self.expansion_.replaced(vectors=vectors)

    def _fit_subset(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        rows = self.indices_
        if rows is None:
            raise refuse("selection", self.selection, "one that chooses rows, for method='subset'")
        fit = solve(
            X[np.ix_(rows, rows)] if self._is_precomputed() else self._vectors,
            targets[rows],
            float(self.alpha),
            self._spec,
            fit_intercept=bool(self.fit_intercept),
            leave_one_out=bool(self.leave_one_out),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            weights=None if weights is None else np.ascontiguousarray(weights[rows]),
        )
        solved = fit.expansion
        self.expansion_ = KernelExpansion(self._vectors, solved.coefficients, solved.intercepts, *self._spec)
        self.alpha_, self.jitter_, self.n_seen_ = float(self.alpha), 0.0, int(X.shape[0])
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
        if self.alphas is not None:
            raise refuse("alphas", self.alphas, "None for partial_fit: earlier rows are gone")
        if self._is_precomputed():
            raise refuse("kernel", self.kernel, "another for partial_fit: later samples have no columns")
        refuse_time(self.max_time, "cholesky")
        self._refuse_without_sums("partial_fit")
        self.solver_, self.n_iter_ = "cholesky", 1
        # Earlier rows may have had other weights: all are compared with 1.
        differ = weights is not None and weights_differ(np.append(weights, 1.0))
        self._weighted = differ or (not first and self._weighted is not False)
        weighted_rows = None if weights is None or weights.all() else np.flatnonzero(weights)
        if weighted_rows is not None and weights is not None:
            if first and weighted_rows.size == 0:
                raise ValueError(
                    "the sample weights are all zero: the first batch needs a sample of positive weight"
                )
            X, targets = X[weighted_rows], targets[weighted_rows]
            weights = np.ascontiguousarray(weights[weighted_rows])
        if first:
            self._begin(X, weights)
            if weighted_rows is not None:
                self._spread(X, weighted_rows)
        if X.shape[0]:
            self._add(self._points.samples(X), targets, weights)
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
            For a ``method`` other than "subset_of_regressors", whose model is no function of sums, and after
            a fit with ``solver_ == "cg"``, which keeps none.
        """
        check_is_fitted(self)
        self._refuse_without_sums("path")
        if getattr(self, "_sums", None) is None or not takes_pieces(self):
            raise refuse("method", self.method, "'subset_of_regressors' for a path of penalties")
        models = []
        for alpha in np.ravel(np.asarray(alphas, dtype=np.float64)).tolist():
            check({"alpha": alpha}, {"alpha": self._rules["alpha"]})
            model = clone(self).set_params(alpha=alpha, alphas=None)
            others = ("loo_decision_", "loo_prediction_", "loo_error_", "loo_errors_", "alpha", "alphas")
            fitted = {name: value for name, value in vars(self).items() if name not in others}
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
            If the two do not agree, or one was fitted with ``solver_ == "cg"``, which keeps no sums.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        other = snapshot(other)
        for model in (self, other):
            model._refuse_without_sums("merge")
        mine, theirs = getattr(self, "_sums", None), getattr(other, "_sums", None)
        if mine is None or theirs is None:
            raise ValueError("merge needs two models of method='subset_of_regressors'")
        same = self.expansion_.vectors, other.expansion_.vectors
        # The same numbers may be stored in two types.
        equal = same_vectors(*(z if z.dtype == object else z.astype(np.float64) for z in same))
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
