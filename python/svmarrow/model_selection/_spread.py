"""A search in this process, or its kernels shared out by joblib to other processes and machines.

Fits of two kernels share nothing, so a kernel with all folds and C is a part. It goes where
``joblib.parallel_config`` says, and comes back with the outputs of the held-out rows, which are judged here:
no scorer leaves this process, and no bit depends on where a part was done.
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
    from collections.abc import Callable, Mapping

__all__ = ["searched", "spread"]


def searched(
    rows: Any,
    task: Any,
    grid: Any,
    solver: Any,
    have: Mapping[str, Any],
    left: float | None,
    told: Callable[..., None],
) -> str | None:
    """Runs a search; why it ended early, or None. It may take ``left`` seconds, and the threads and the cache
    that ``n_jobs`` and ``cache_size`` mean here.
    """
    own = {"n_jobs": threads(have["n_jobs"]), "cache_bytes": cache_bytes(have["cache_size"])}
    settings: Any = {**solver, **own, "max_time": left}
    return _core.search_svm(rows, task, grid, settings, told)


def spread(
    at_once: int,
    rows: Any,
    task: Any,
    grid: Any,
    solver: Any,
    have: Mapping[str, Any],
    left: float | None,
    told: Callable[..., None],
) -> str | None:
    """The same, a kernel a part, so many at once; seconds that are left are counted by clocks that agree."""
    end = None if left is None else time.time() + left
    solver = {**solver, "progress": None}
    shared = {"costs": grid["costs"], "folds": grid["folds"]}
    parts = (
        delayed(_part)(rows, task, shared, kernel, wanted, solver, have, end)
        for kernel, wanted in zip(grid["kernels"], grid["wanted"], strict=True)
    )
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    kind = "generator" if getattr(backend, "supports_return_generator", False) else "list"
    found, ended = Parallel(n_jobs=at_once, return_as=kind)(parts), None
    try:
        for number, (answers, stop) in enumerate(found):
            for about in answers:
                told(number, *about)
            ended = ended or stop
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        if kind == "generator":
            with warnings.catch_warnings():
                # joblib warns of parts that are given up.
                warnings.simplefilter("ignore")
                found.close()
    return ended


def _part(
    rows: Any,
    task: Any,
    shared: Any,
    kernel: Any,
    wanted: Any,
    solver: Any,
    have: Mapping[str, Any],
    end: float | None,
) -> tuple[list[Any], str | None]:
    """What the search of one kernel has told, and why it ended early."""
    answers: list[Any] = []
    grid = {"kernels": [kernel], "wanted": wanted[None].copy(), **shared}
    left = None if end is None else max(0.0, end - time.time())
    rows, task, grid = (_in_order(value) for value in (rows, task, grid))
    stop = searched(rows, task, grid, solver, have, left, lambda _, *about: answers.append(about))
    return answers, stop


def _in_order(value: Any) -> Any:
    """Arrays of a message, wherever they are in it, as the extension module takes them."""
    if isinstance(value, (tuple, list)):
        return type(value)(_in_order(each) for each in value)
    if isinstance(value, dict):
        return {name: _in_order(each) for name, each in value.items()}
    return well_aligned(value)
