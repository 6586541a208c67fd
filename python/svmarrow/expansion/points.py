"""Points for a low-rank approximation of a kernel matrix: drawn, cluster centers, or chosen from the matrix.

"pivoted_cholesky" is the pivoted incomplete Cholesky factorization, "greedy_trace" looks at some rows a step
and takes the one that lessens the trace of what is missing the most, "leverage" draws rows by how much each
decides its own value.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from svmarrow import _core
from svmarrow._support.atomic import warn_caller
from svmarrow._support.blas import one_blas_thread
from svmarrow._support.memory import bytes_of_rows
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
)
from svmarrow._support.progress import progress
from svmarrow._support.rows import are_points, as_points, core_rows, threads
from svmarrow.expansion.kernel_features import bytes_of_features, has_only_values

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "POINT_RULES",
    "VALUE_RULES",
    "bytes_of_points",
    "bytes_of_sums",
    "choose_points",
    "number_of_points",
]

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
