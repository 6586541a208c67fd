"""Runs a search in this process, or one kernel at a time in other processes and on other machines by joblib.

Fits of two kernels are independent, so a kernel with all folds and C is one task. It runs where
``joblib.parallel_config`` says and returns the outputs for the held-out rows, which are scored in this
process: scorers are not sent, and the results are the same bits for any worker.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import joblib
from sklearn.utils.parallel import Parallel, delayed

from svmarrow import _core
from svmarrow._support.rows import cache_bytes, threads, well_aligned

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["run_distributed", "run_search"]


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
