"""Points for a low-rank approximation of a kernel matrix, and features of samples by their kernel values.

Points are drawn, cluster centers, or chosen from the matrix: "pivoted_cholesky" is the pivoted incomplete
Cholesky factorization, "greedy_trace" looks at some rows a step and takes the one that lessens the trace of
what is missing the most, "leverage" draws rows by how much each decides its own value.

Features serve kernels that are known by their values only: a Python function, or a precomputed matrix.
Problem: low-rank training and the selection of vectors read samples as rows of numbers; a user's kernel has
values only. Method: with K = L L' the kernel matrix of m points, the rows of L are features of the points,
and phi(x) = L^-1 k(Z, x) of any sample. Inner products of features are kernel values, exact if one of the
two samples is a point, and projected on the points otherwise (Rifkin 2002, (3.81)). So the linear kernel on
features stands for the kernel, and coefficients of points hold for both. Invariant: `triangle` is the
factor of the kernel matrix of `points`, which are linearly independent: complete pivoting leaves out points
whose distance from the span of the others is rounding. Cost: m^2 / 2 kernel values, each pair once, and m^3
/ 3 multiplications; then m values for each sample.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from svmarrow import _core
from svmarrow._support.parameters import (
    RANDOM_STATE,
    ROW_KERNELS,
    THREADS,
    VERBOSE,
    Rule,
    either,
    function,
    integer,
    kernel_rules,
    one_of,
    refuse,
    warn_caller,
)
from svmarrow._support.progress import progress
from svmarrow._support.rows import are_points, as_points, core_rows, one_blas_thread, threads
from svmarrow._support.training import asymmetry, bytes_of_rows, tolerance
from svmarrow.expansion.kernel_expansion import KernelExpansion, function_matrix, function_values, prepared

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "LINEAR",
    "POINT_RULES",
    "VALUE_RULES",
    "Points",
    "bytes_of_features",
    "bytes_of_points",
    "bytes_of_sums",
    "choose_points",
    "factor_points",
    "has_only_values",
    "number_of_points",
]


#: The kernel of features, as the extension module takes it.
LINEAR = ("linear", 1.0, 0.0, 3)
#: What pivoting may leave of the kernel matrix, relative to its largest value.
_MAX_REMAINDER = 1e-6


def has_only_values(kernel: Any) -> bool:
    """Returns whether a kernel is known by its values only."""
    return callable(kernel) or kernel == "precomputed"


def bytes_of_features(points: int, samples: int) -> int:
    """Returns the approximate bytes of the features of points and of samples."""
    return 8 * (3 * points * points + 2 * points * samples)


class KernelFeatures(NamedTuple):
    """Features of samples whose inner products are kernel values."""

    #: The kernel: a function, or "precomputed".
    kernel: Any
    #: Linearly independent points (r, d): rows of numbers, objects, or indices (r, 1) for "precomputed".
    points: Any
    #: Their features (r, r), a lower triangle.
    triangle: NDArray[np.float64]

    def of(self, X: Any) -> NDArray[np.float64]:
        """Returns the features (n, r) of samples."""
        values = self._values(X)
        with one_blas_thread():
            solved = scipy.linalg.solve_triangular(self.triangle, values.T, lower=True, overwrite_b=True)
        return np.ascontiguousarray(solved.T)

    def coefficients(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the coefficients (r, q) of the points for linear functions of the features (r, q)."""
        with one_blas_thread():
            solved = scipy.linalg.solve_triangular(self.triangle, weights, lower=True, trans=1)
        return np.ascontiguousarray(solved)

    def _values(self, X: Any) -> NDArray[np.float64]:
        """Returns the kernel values (n, r) of samples and the points."""
        if callable(self.kernel):
            return function_values(self.kernel, prepared(self.kernel, X), prepared(self.kernel, self.points))
        return np.asarray(X[:, self.points[:, 0].astype(np.intp)], dtype=np.float64)


class Points(NamedTuple):
    """Points of a low-rank approximation, with features where the kernel is known by its values only."""

    #: Rows of numbers, objects, or indices (m, 1).
    vectors: Any
    #: (kernel, gamma, coef0, degree).
    spec: tuple[Any, float, float, int]
    #: Features of the points (m, m); None for a kernel of the extension module.
    triangle: NDArray[np.float64] | None

    def core(self) -> tuple[Any, tuple[Any, float, float, int]]:
        """Returns the points and the kernel as the extension module takes them."""
        return (core_rows(self.vectors), self.spec) if self.triangle is None else (self.triangle, LINEAR)

    def samples(self, X: Any) -> Any:
        """Returns samples for the points of `core`: as they are, or their features."""
        if self.triangle is None:
            return X
        return KernelFeatures(self.spec[0], self.vectors, self.triangle).of(X)

    def outputs(self, expansion: KernelExpansion, samples: Any, n_jobs: int | None) -> NDArray[np.float64]:
        """Returns the outputs of an expansion over the points for samples of `samples`."""
        if self.triangle is not None:
            coefficients, intercepts = expansion.coefficients, expansion.intercepts
            expansion = KernelExpansion(self.triangle, coefficients, intercepts, *LINEAR)
        return expansion._evaluate(samples, n_jobs)


class FactoredPoints(NamedTuple):
    """The factor of a kernel matrix of points, by `factor_points`."""

    features: KernelFeatures
    #: Which of the given points are those of the features, in the order of the pivots (r,).
    places: NDArray[np.intp]
    #: Features of all given points (m, r).
    lines: NDArray[np.float64]


def factor_points(kernel: Any, points: Any, X: NDArray[Any] | None = None) -> FactoredPoints:
    """Factors the kernel matrix of points.

    Parameters
    ----------
    kernel : callable or "precomputed"
        The kernel.
    points : array of shape (m, d)
        Rows of numbers, objects, or for "precomputed" indices of training samples (m, 1).
    X : ndarray of shape (n_train, n_train) or None
        For "precomputed": the kernel matrix of the training samples.

    Returns
    -------
    FactoredPoints
        Features of the points.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the kernel is not positive semidefinite.
    ValueError
        If its matrix is not symmetric.
    """
    if callable(kernel):
        matrix = function_matrix(kernel, points)
    else:
        if X is None:
            raise TypeError("points of a precomputed kernel need the kernel matrix of the training samples")
        rows = points[:, 0].astype(np.intp)
        matrix = np.array(X[np.ix_(rows, rows)], dtype=np.float64)
    _check_symmetry(matrix, kernel, np.float64 if X is None else X.dtype)
    with one_blas_thread():
        factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(matrix, lower=1)
    factor = np.tril(factor)[:, :rank]
    places: NDArray[np.intp] = (pivots - 1).astype(np.intp)
    lines = np.empty_like(factor, order="C")
    lines[places] = factor
    _check_remainder(matrix, lines, kernel)
    features = KernelFeatures(kernel, points[places[:rank]], np.ascontiguousarray(factor[:rank]))
    return FactoredPoints(features, places[:rank], lines)


def _check_symmetry(matrix: NDArray[np.float64], kernel: Any, dtype: Any) -> None:
    relative = tolerance(np.dtype(dtype))
    position = asymmetry(matrix, relative)
    if position is not None:
        i, j = position
        raise ValueError(
            f"kernel={kernel!r} is not symmetric: its values for the vectors {i} and {j} are "
            f"{matrix[i, j]:.6g} and {matrix[j, i]:.6g}"
        )


def _check_remainder(matrix: NDArray[np.float64], lines: NDArray[np.float64], kernel: Any) -> None:
    """Raises ``LinAlgError`` if the factor does not reproduce the matrix, as for one that is indefinite."""
    limit = _MAX_REMAINDER * float(np.abs(matrix).max())
    for start in range(0, len(matrix), 256):
        block = slice(start, start + 256)
        with one_blas_thread():
            remainder = float(np.abs(lines[block] @ lines.T - matrix[block]).max())
        if remainder > limit:
            raise np.linalg.LinAlgError(
                f"kernel={kernel!r} is not positive semidefinite: {remainder:.3g} of a kernel value is left "
                "after the pivoted factorization of its matrix"
            )


SELECTIONS = ("random", "kmeans", "pivoted_cholesky", "leverage", "greedy_trace")
#: Rows that "greedy_trace" looks at in a step: the best of 59 is among the best 5 % with 95 % probability.
CANDIDATES = 59
POINT_RULES = {
    "n_vectors": integer(least=1),
    "selection": either(one_of(*SELECTIONS), Rule("an array of points, (m, n_features)", are_points)),
    **kernel_rules(*ROW_KERNELS),
    "random_state": RANDOM_STATE,
    "n_jobs": THREADS,
    "verbose": VERBOSE,
}
"""Rules of the parameters that choose the points and the kernel."""
VALUE_RULES = {
    "kernel": either(one_of(*ROW_KERNELS, "precomputed"), function),
}
"""Rules of the kernel where kernels that are known by their values are allowed too."""


def choose_points(
    X: Any,
    n_vectors: int,
    kernel: tuple[Any, float, float, int],
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
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        Samples in order, see `svmarrow.least_squares.LowRankRLSClassifier`.
    n_vectors : int
        How many; at most n.
    kernel : tuple
        (name, gamma, coef0, degree).
    selection : str or array-like
        As in the estimators.
    alpha : float
        Penalty at which "leverage" measures how much a sample decides its own value.
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
        Which samples of X they are; None where they are not.
    remaining : ndarray of shape (m + 1,) or None
        Trace of K - L L' after each point, for "pivoted_cholesky" and "greedy_trace".
    """
    if has_only_values(kernel[0]):
        _refuse_reading(kernel[0], selection)
    if not isinstance(selection, str):
        return as_points(selection, "selection", X).copy(), None, None
    n = int(X.shape[0])
    if n_vectors > n:
        warn_caller(
            f"n_vectors={n_vectors} is more than the {n} samples: every sample is a vector", UserWarning
        )
    m = min(n_vectors, n)
    random = check_random_state(random_state)
    if selection == "kmeans":
        if sp.issparse(X):
            raise TypeError("selection='kmeans' is not allowed for sparse X: its centers would be dense")
        if m == n:
            return X, np.arange(n), None
        return _centres(X, m, random), None, None
    remaining = None
    if selection in ("pivoted_cholesky", "greedy_trace"):
        with progress(verbose) as reporter:
            rows, remaining = _core.select_points_by_kernel(
                core_rows(X),
                kernel,
                m,
                None if selection == "pivoted_cholesky" else (CANDIDATES, int(random.randint(2**31 - 1))),
                reporter.callback,
                threads(n_jobs),
            )
    elif selection == "leverage" and m < n:
        scores = _leverage(X, m, kernel, alpha, random, n_jobs, verbose)
        rows = random.choice(n, size=m, replace=False, p=scores / scores.sum())
        rows = np.sort(rows)
    else:
        rows = np.sort(random.choice(n, size=m, replace=False))
    rows = rows.astype(np.int64)
    if kernel[0] == "precomputed":
        return rows[:, np.newaxis].astype(np.float64), rows, remaining
    return X[rows], rows, remaining


def _refuse_reading(kernel: Any, selection: Any) -> None:
    """Refuses a selection that reads rows of numbers, for a kernel that is known by its values only."""
    is_random = isinstance(selection, str) and selection == "random"
    if not is_random and (isinstance(selection, str) or not callable(kernel)):
        allowed = "'random' or the points themselves" if callable(kernel) else "'random'"
        raise refuse("selection", selection, f"{allowed} for kernel={kernel!r}")


def number_of_points(X: Any, n_vectors: int, selection: str | ArrayLike) -> int:
    """The number of points that `choose_points` returns."""
    return min(int(n_vectors), int(X.shape[0])) if isinstance(selection, str) else _num_samples(selection)


def bytes_of_points(X: Any, n_vectors: int, selection: str | ArrayLike, kernel: Any) -> int:
    """Approximate bytes of `choose_points`, and of features of samples, in addition to X."""
    n, d, m = int(X.shape[0]), int(X.shape[1]), number_of_points(X, n_vectors, selection)
    chosen = 8 * m * d + (bytes_of_features(m, n) if has_only_values(kernel) else 0)
    if not isinstance(selection, str) or selection == "random":
        return chosen
    if selection == "kmeans":
        return chosen + 8 * (max(1024, 3 * m) * (m + d) + 2 * m * d + 4 * n)
    if selection == "leverage":
        return chosen + bytes_of_sums(n, d, m, 1, with_hat=True)
    return (
        chosen + 8 * n * (m + (CANDIDATES if selection == "greedy_trace" else 1) + 4) + 2 * bytes_of_rows(X)
    )


def bytes_of_sums(n: int, d: int, m: int, outputs: int, *, with_hat: bool) -> int:
    """Approximate bytes of sums over n samples for m points and of the solution of their system."""
    # The sums as Python keeps them and as the core does, the system and its factor; a factor by panels.
    squares = 8 * m * m * (5 if with_hat else 4)
    return squares + 8 * (m * (2 * d + 5 * outputs + 1024) + n * (4 * outputs + 2))


def _centres(X: NDArray[Any], m: int, random: Any) -> NDArray[Any]:
    from sklearn.cluster import MiniBatchKMeans  # noqa: PLC0415 - start-up time: 40 ms

    batch = max(1024, 3 * m)
    means = MiniBatchKMeans(m, random_state=random, n_init=1, batch_size=batch, max_iter=10)
    # scikit-learn sets the threads of BLAS too: inside ours, so that it puts back what we have set.
    with warnings.catch_warnings(), one_blas_thread():
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
    """Leverage score of each sample, estimated from m points drawn uniformly."""
    points = X[np.sort(random.choice(X.shape[0], size=m, replace=False))]
    zeros = np.zeros((X.shape[0], 1))
    with progress(verbose) as reporter:
        call = (reporter.callback, threads(n_jobs))
        spec = (core_rows(points), kernel)
        sums = _core.low_rank_sums(core_rows(X), (zeros, None), spec, None, *call)
        hat = _core.low_rank_solve(
            {"points": spec, "sums": sums, "alpha": alpha, "fit_intercept": False}, core_rows(X), *call
        )["hat"]
    assert hat is not None
    return np.clip(hat, 1e-12, 1.0)
