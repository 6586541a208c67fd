"""The grid of a search, and the run of its fits.

Values of C and gamma are given, or ranges derived from the samples. A search runs in this process, or one
kernel at a time in other processes and on other machines by joblib.

Fits of two kernels are independent, so a kernel with all folds and C is one task. It runs where
``joblib.parallel_config`` says and returns the outputs for the held-out rows, which are scored in this
process: scorers are not sent, and the results are the same bits for any worker.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.utils.parallel import Parallel, delayed

from svmarrow import _core
from svmarrow._support.parameters import (
    MAX_ITER,
    MAX_TIME,
    THREADS,
    UNIT_DIAGONAL_KERNELS,
    VERBOSE,
    Rule,
    boolean,
    either,
    function,
    integer,
    kernel_rules,
    none,
    one_of,
    real,
)
from svmarrow._support.rows import cache_bytes, threads, well_aligned
from svmarrow._support.training import default_gamma, gamma_power
from svmarrow.expansion.kernel_expansion import TrainingKernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["SEARCH_RULES", "cost_values", "gamma_values", "run_distributed", "run_search"]


# --- values of C and gamma ---

#: Kernels that have a gamma.
_KERNELS_WITH_GAMMA = ("poly", "sigmoid", *UNIT_DIAGONAL_KERNELS)
#: Smallest and largest C, in units of 1 / mean of k(x, x).
C_RANGE = (0.1, 1000.0)
#: Smallest and largest gamma, in units of ``gamma="scale"``; Matérn kernels have the square roots.
GAMMA_RANGE = (10.0**-1.5, 10.0**1.5)
#: Maximum number of rows from which the mean of k(x, x) is computed.
_MAX_DIAGONAL_ROWS = 1000
#: The same for a kernel function, which computes all pairs of these rows.
_MAX_FUNCTION_ROWS = 64
#: Maximum number of values in a range.
_MAX_POINTS = 10_000


def _numbers(rule: Rule, text: str) -> Rule:
    """Returns a rule for a sequence of distinct numbers that each satisfy ``rule``."""

    def holds(value: Any) -> bool:
        if isinstance(value, np.ndarray):
            values = value.tolist() if value.ndim == 1 else []
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            values = list(value)
        else:
            return False
        return bool(values) and all(map(rule.holds, values)) and len(set(map(float, values))) == len(values)

    return Rule(text, holds)


#: The rule of ``Cs``.
C_VALUES = either(
    integer(least=1, most=_MAX_POINTS, text=f"a number of points, at most {_MAX_POINTS}"),
    _numbers(real(above=0.0), "different finite numbers above 0"),
)
#: The rule of ``gammas``.
GAMMA_VALUES = either(
    integer(least=1, most=_MAX_POINTS, text=f"a number of points, at most {_MAX_POINTS}"),
    _numbers(real(least=0.0), "different finite numbers, none negative"),
)


def _spaced(first: float, last: float, count: int) -> NDArray[np.float64]:
    """Returns values at equal ratios; a single one is the geometric mean."""
    if count == 1:
        return np.array([np.sqrt(first * last)])
    return np.geomspace(first, last, count)


#: Rules of the shared parameters.
SEARCH_RULES = {
    "Cs": C_VALUES,
    "gammas": GAMMA_VALUES,
    "search": one_of("full", "racing"),
    "significance": real(above=0.0, below=1.0),
    "refit": boolean,
    "scoring": either(
        none, Rule("the name of a score or a scorer", lambda value: isinstance(value, str) or callable(value))
    ),
    **{name: rule for name, rule in kernel_rules().items() if name != "gamma"},
    "kernel": either(kernel_rules()["kernel"], function),
    "tol": real(above=0.0),
    "cache_size": either(none, real(above=0.0)),
    "max_iter": MAX_ITER,
    "max_time": MAX_TIME,
    "n_jobs": THREADS,
    "verbose": VERBOSE,
}


def cost_values(
    given: Any, X: Any, kernel: Any, gamma: float, coef0: float, degree: int
) -> NDArray[np.float64]:
    """Returns the values of C in increasing order.

    If ``given`` is a number of values, they range from .1 to 1,000 divided by the mean of k(x, x), which is 1
    for kernels of distances: C weighs the loss against 1/2 ||w||^2, whose unit is that of the kernel.
    """
    if not isinstance(given, (int, np.integer)):
        return np.sort(np.array([float(value) for value in given]))
    low, high = C_RANGE
    return _spaced(low, high, int(given)) / _mean_diagonal(X, kernel, gamma, coef0, degree)


def _mean_diagonal(X: Any, kernel: Any, gamma: float, coef0: float, degree: int) -> float:
    if kernel in UNIT_DIAGONAL_KERNELS:
        return 1.0
    n = int(X.shape[0])
    rows = (
        np.arange(n) if n <= _MAX_DIAGONAL_ROWS else np.arange(_MAX_DIAGONAL_ROWS) * n // _MAX_DIAGONAL_ROWS
    )
    if kernel == "precomputed":
        values = np.asarray(X[rows, rows], dtype=np.float64)
    elif callable(kernel):
        sample = X[rows[:: max(1, n // _MAX_FUNCTION_ROWS)][:_MAX_FUNCTION_ROWS]]
        values = TrainingKernel(kernel, sample).diagonal(np.arange(sample.shape[0]))
    elif kernel == "sigmoid":
        return 1.0  # Its values lie between -1 and 1.
    else:
        sample = X[rows]
        squares = sample.multiply(sample) if sp.issparse(sample) else np.square(sample, dtype=np.float64)
        values = np.asarray(squares.sum(axis=1, dtype=np.float64)).reshape(-1)
        if kernel == "poly":
            values = (gamma * values + coef0) ** degree
    mean = float(np.abs(values).mean())
    return mean if np.isfinite(mean) and mean > 0.0 else 1.0


def gamma_values(given: Any, X: Any, kernel: Any) -> NDArray[np.float64] | None:
    """Returns the values of gamma in increasing order; None for a kernel without gamma.

    If ``given`` is a number of values, they range from 10^-1.5 to 10^1.5 times 1 / (n_features X.var()),
    scikit-learn's "scale"; for Matérn kernels, whose gamma is in units of 1 / distance, by the square roots.
    """
    if callable(kernel) or kernel not in _KERNELS_WITH_GAMMA:
        return None
    if not isinstance(given, (int, np.integer)):
        return np.sort(np.array([float(value) for value in given]))
    scale = default_gamma("scale", X, kernel=kernel)
    low, high = (float(end ** gamma_power(kernel)) for end in GAMMA_RANGE)
    return _spaced(low * scale, high * scale, int(given))


# --- the run of the fits ---


def run_search(
    rows: Any, job: dict[str, Any], seconds: float | None, on_fit: Callable[..., None]
) -> str | None:
    """Runs a search for at most ``seconds``; returns why it ended early, or None.

    ``job`` has ``task``, ``grid`` and ``solver`` as `_core.search_svm` takes them, and ``n_jobs`` and
    ``cache_size``, which are resolved in the process that runs the search.
    """
    limits = {"n_jobs": threads(job["n_jobs"]), "cache_bytes": cache_bytes(job["cache_size"])}
    settings: Any = {**job["solver"], **limits, "max_time": seconds}
    return _core.search_svm(rows, job["task"], job["grid"], settings, on_fit)


def run_distributed(
    n_workers: int, rows: Any, job: dict[str, Any], seconds: float | None, on_fit: Callable[..., None]
) -> str | None:
    """Runs a search with a task for each kernel; for ``seconds``, the clocks of all machines must agree."""
    deadline = None if seconds is None else time.time() + seconds
    grid, solver = job["grid"], {**job["solver"], "progress": None}
    tasks = (
        delayed(_run_kernel)(
            rows,
            {**job, "solver": solver, "grid": {**grid, "kernels": [kernel], "points": points[None].copy()}},
            deadline,
        )
        for kernel, points in zip(grid["kernels"], grid["points"], strict=True)
    )
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    kind = "generator" if getattr(backend, "supports_return_generator", False) else "list"
    results, stop = Parallel(n_jobs=n_workers, return_as=kind)(tasks), None
    try:
        for kernel, (fits, reason) in enumerate(results):
            for fit in fits:
                on_fit(kernel, *fit)
            stop = stop or reason
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        if kind == "generator":
            with warnings.catch_warnings():
                # joblib warns of tasks that are canceled.
                warnings.simplefilter("ignore")
                results.close()
    return stop


def _run_kernel(rows: Any, job: dict[str, Any], deadline: float | None) -> tuple[list[Any], str | None]:
    """Returns the fits of one kernel, and why its search ended early."""
    fits: list[Any] = []
    seconds = None if deadline is None else max(0.0, deadline - time.time())
    stop = run_search(_aligned(rows), _aligned(job), seconds, lambda _, *fit: fits.append(fit))
    return fits, stop


def _aligned(value: Any) -> Any:
    """Copies arrays of a message, at any depth, that are not aligned as the extension module needs them."""
    if isinstance(value, (tuple, list)):
        return type(value)(_aligned(each) for each in value)
    if isinstance(value, dict):
        return {name: _aligned(each) for name, each in value.items()}
    return well_aligned(value)
