"""What the low-rank estimators share: points, sums over rows, the system, pieces and merging."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._params import THREADS, Rule, boolean, either, integer, none, one_of, real, refuse
from svmarrow._progress import progress
from svmarrow._validation import as_rows, core_rows, threads
from svmarrow.expansion import KernelExpansion
from svmarrow.least_squares._base import LeastSquares
from svmarrow.least_squares.targets import solve

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["LOW_RANK_RULES", "LowRankLeastSquares", "choose_points", "takes_pieces"]

SELECTIONS = ("random", "kmeans", "ic", "leverage", "trace")
#: Rows that "trace" looks at in a step: the best of 59 is among the best 5 % with 95 % probability.
CANDIDATES = 59

LOW_RANK_RULES = {
    "n_vectors": integer(least=1),
    "alpha": real(least=0.0),
    "method": one_of("rectangle", "subset", "nystrom"),
    "selection": either(
        one_of(*SELECTIONS), Rule("an array of points", lambda value: not isinstance(value, str | None))
    ),
    "kernel": one_of("linear", "poly", "rbf", "sigmoid", "laplacian", "chi2"),
    "degree": integer(least=0, most=2**31 - 1),
    "gamma": either(one_of("scale", "auto"), real(least=0.0)),
    "coef0": real(),
    "fit_intercept": boolean,
    "leave_one_out": boolean,
    "random_state": either(none, Rule("a seed or a generator", lambda value: not isinstance(value, str))),
    "n_jobs": THREADS,
    "verbose": either(boolean, integer(least=0)),
}


def choose_points(
    X: Any,
    n_vectors: int,
    kernel: tuple[str, float, float, int],
    *,
    selection: str | ArrayLike = "random",
    alpha: float = 1.0,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool | int = False,
) -> tuple[Any, NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """Points for a low-rank approximation of the kernel matrix of X.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows in order, see `svmarrow.least_squares.LowRankRLSClassifier`.
    n_vectors : int
        How many; at most n.
    kernel : tuple
        (name, gamma, coef0, degree).
    selection : str or array-like
        As in the estimators.
    alpha : float
        Penalty at which "leverage" measures how much a row decides its own value.
    random_state : int, RandomState or None
        Seed of the draws.
    n_jobs : int or None
        Threads.
    verbose : bool or int
        Whether to show the progress.

    Returns
    -------
    vectors : {ndarray, CSR matrix} of shape (m, d)
        The points.
    rows : ndarray of shape (m,) or None
        Which rows of X they are; None where they are not.
    remaining : ndarray of shape (m + 1,) or None
        Trace of K - L L' after each point, for "ic" and "trace".
    """
    if not isinstance(selection, str):
        points = as_rows(selection, "selection")
        if points.shape[1] != X.shape[1]:
            raise ValueError(f"selection has {points.shape[1]} columns: X has {X.shape[1]}")
        return points, None, None
    n = int(X.shape[0])
    if n_vectors > n:
        warnings.warn(f"n_vectors={n_vectors} is more than the {n} rows: every row is a point", stacklevel=4)
    m = min(n_vectors, n)
    random = check_random_state(random_state)
    if selection == "kmeans":
        if sp.issparse(X):
            raise TypeError("selection='kmeans' is not allowed for sparse X: its centres would be dense")
        if m == n:
            return X, np.arange(n), None
        return _centres(X, m, random), None, None
    remaining = None
    if selection in ("ic", "trace"):
        with progress(verbose) as told:
            rows, remaining = _core.select_points_by_kernel(
                core_rows(X),
                kernel,
                m,
                None if selection == "ic" else CANDIDATES,
                int(random.randint(2**31 - 1)),
                told.callback,
                threads(n_jobs),
            )
    elif selection == "leverage" and m < n:
        scores = _leverage(X, m, kernel, alpha, random, n_jobs, verbose)
        rows = random.choice(n, size=m, replace=False, p=scores / scores.sum())
        rows = np.sort(rows)
    else:
        rows = np.sort(random.choice(n, size=m, replace=False))
    rows = rows.astype(np.int64)
    return X[rows], rows, remaining


def _centres(X: NDArray[Any], m: int, random: Any) -> NDArray[Any]:
    from sklearn.cluster import MiniBatchKMeans

    batch = max(1024, 3 * m)
    means = MiniBatchKMeans(m, random_state=random, n_init=1, batch_size=batch, max_iter=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        centres: NDArray[Any] = means.fit(X).cluster_centers_
    kind = np.float32 if X.dtype == np.uint8 else X.dtype
    centres = np.ascontiguousarray(centres, dtype=kind)
    if X.dtype == np.uint8 or (X.min(initial=0.0) >= 0.0):
        np.maximum(centres, 0.0, out=centres)
    return centres


def _leverage(
    X: Any,
    m: int,
    kernel: tuple[str, float, float, int],
    alpha: float,
    random: Any,
    n_jobs: int | None,
    verbose: bool | int,
) -> NDArray[np.float64]:
    """How much each row decides its own value, measured with as many points drawn evenly."""
    points = X[np.sort(random.choice(X.shape[0], size=m, replace=False))]
    zeros = np.zeros((X.shape[0], 1))
    with progress(verbose) as told:
        call = (told.callback, threads(n_jobs))
        sums = _core.low_rank_sums(core_rows(X), zeros, core_rows(points), kernel, None, *call)
        system = _core.low_rank_solve(core_rows(points), kernel, sums, alpha, False, core_rows(X), *call)
    hat = system["hat"]
    assert hat is not None
    return np.clip(hat, 1e-12, 1.0)


def takes_pieces(model: Any) -> bool:
    """Whether the model is a function of sums over rows."""
    return bool(model.method == "rectangle")


class LowRankLeastSquares(LeastSquares):
    """Base of the low-rank estimators."""

    n_vectors: int
    alpha: float
    method: Literal["rectangle", "subset", "nystrom"]
    selection: str | ArrayLike
    fit_intercept: bool
    leave_one_out: bool
    random_state: Any

    indices_: NDArray[np.int64] | None
    jitter_: float
    n_seen_: int
    _sums: Any
    _spec: tuple[str, float, float, int]
    _vectors: Any

    def _call(self, told: Any) -> tuple[Any, int]:
        return (told.callback, threads(self.n_jobs))

    def _begin(self, X: Any) -> None:
        """Chooses the points from the first rows."""
        self._spec = self._kernel(X)
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
        elif hasattr(self, "remaining_trace_"):
            del self.remaining_trace_

    def _add(self, X: Any, targets: NDArray[np.float64]) -> None:
        with progress(self.verbose) as told:
            self._sums = _core.low_rank_sums(
                core_rows(X),
                np.ascontiguousarray(targets),
                core_rows(self._vectors),
                self._spec,
                self._sums,
                *self._call(told),
            )
        self.n_seen_ = int(self._sums["rows"])

    def _finish(self, X: Any = None) -> NDArray[np.float64] | None:
        """Solves the system of the sums; the hat diagonal of X where it is given."""
        with progress(self.verbose) as told:
            solved = _core.low_rank_solve(
                core_rows(self._vectors),
                self._spec,
                self._sums,
                float(self.alpha),
                bool(self.fit_intercept),
                None if X is None else core_rows(X),
                *self._call(told),
            )
        self.jitter_ = float(solved["jitter"])
        self.expansion_ = KernelExpansion(
            self._vectors, solved["coefficients"], solved["intercepts"], *self._spec
        )
        return solved["hat"]

    def _fit(self, X: Any, targets: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Fits all rows; leave-one-out values (n, q) where they are asked for."""
        if self.method == "nystrom" and self.leave_one_out:
            raise refuse("leave_one_out", True, "False for method='nystrom'")
        if self.method == "nystrom" and self.fit_intercept:
            raise refuse("fit_intercept", True, "False for method='nystrom'")
        if self.method == "nystrom" and self.alpha == 0.0:
            raise refuse("alpha", self.alpha, "above 0 for method='nystrom'")
        self._begin(X)
        if self.method == "subset":
            return self._fit_subset(X, targets)
        self._add(X, targets)
        wanted = self.leave_one_out and self.method == "rectangle"
        hat = self._finish(X if wanted else None)
        if self.method == "nystrom":
            residuals = targets - self.expansion_._evaluate(X, self.n_jobs)
            self.expansion_ = KernelExpansion(
                X, residuals / float(self.alpha), np.zeros(targets.shape[1]), *self._spec
            )
        if hat is None:
            return None
        residuals = targets - self.expansion_._evaluate(X, self.n_jobs)
        left: NDArray[np.float64] = targets - residuals / (1.0 - hat)[:, np.newaxis]
        return left

    def _fit_subset(self, X: Any, targets: NDArray[np.float64]) -> NDArray[np.float64] | None:
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
        )
        self.expansion_, self.jitter_, self.n_seen_ = fit.expansion, 0.0, int(X.shape[0])
        if fit.loo is None:
            return None
        # Rows that are not points are out of the model as it is.
        left = self.expansion_._evaluate(X, self.n_jobs)
        left[rows] = fit.loo
        return left

    def _piece(self, X: Any, targets: NDArray[np.float64], *, first: bool) -> None:
        """Adds rows and solves anew."""
        if self.leave_one_out:
            raise refuse("leave_one_out", True, "False for partial_fit: earlier rows are gone")
        if first:
            self._begin(X)
        self._add(X, targets)
        self._finish()

    def merge(self, other: Self) -> Self:
        """Add the rows that another estimator has seen: one model of both.

        Parameters
        ----------
        other : object
            An estimator of the same class with the same points, kernel and outputs, fitted by `fit` or
            `partial_fit` with ``method="rectangle"``; pass the points as ``selection`` to both.

        Returns
        -------
        self : object
            The model of all rows of both.

        Raises
        ------
        ValueError
            If the two do not agree.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        mine, theirs = getattr(self, "_sums", None), getattr(other, "_sums", None)
        if mine is None or theirs is None:
            raise ValueError("merge needs two models of method='rectangle'")
        same = self.expansion_.vectors, other.expansion_.vectors
        equal = same[0].shape == same[1].shape and abs(same[0] - same[1]).max() == 0
        classes = getattr(self, "classes_", ()), getattr(other, "classes_", ())
        if not equal or self._spec != other._spec or not np.array_equal(classes[0], classes[1]):
            raise ValueError("merge needs two models of the same points, kernel and classes")
        if mine["products"].shape != theirs["products"].shape:
            raise ValueError("merge needs two models of as many outputs")
        self._sums = {name: mine[name] + theirs[name] for name in mine}
        self.n_seen_ = int(self._sums["rows"])
        self._finish()
        return self
