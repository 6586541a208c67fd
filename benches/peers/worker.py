"""One engine on one workload in a process of its own; `run.py` starts it and reads what it leaves.

Argument: a JSON object with `engine`, `workload`, `limit`, `threads`, `output`. Writes an `.npz` with the
solution and the measurements. Exit status 3 means "not available here"; the reason is the last line of
standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import data
import engines
import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Callable

UNAVAILABLE = 3
# Prediction is repeated while it is short, so that a single hiccup does not decide.
PREDICT_REPEATS, PREDICT_SECONDS = 5, 2.0


def memory_bytes(field: str = "VmHWM") -> int:
    """Largest resident size of this process so far, or with "VmRSS" the present one where Linux tells it."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux ru_maxrss starts from the parent's size; the new address space's high-water mark does not.
        for line in status.read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Set the high-water mark to the present size (Linux): loading data must not hide a fit's memory."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def size_of(X: Any) -> int:
    """Bytes of a matrix."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes)


def restrict(threads: int | None) -> None:
    """Bind this process to so many processors: the one limit that every engine's thread pool respects."""
    if threads is None:
        return
    if not hasattr(os, "sched_setaffinity"):
        raise RuntimeError("--threads needs Linux")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def print_result(measure: Callable[..., Any]) -> None:
    """Prints the result of a measurement of the table that the first argument specifies, as JSON."""
    spec = json.loads(sys.argv[1])
    restrict(spec["threads"])
    print(json.dumps(measure(spec["table"], quick=spec["quick"])))


def warm_up(engine: engines.Engine, parameters: dict[str, Any], X: Any, y: np.ndarray) -> None:
    """A fit on a few rows, so that loading libraries and starting threads is not part of a time."""
    rows = np.concatenate([np.flatnonzero(y == c)[:30] for c in (0, 1)])
    engine.new(**parameters).fit(X[rows], y[rows]).predict(X[rows])


def main() -> int:
    """Run the specification given as the first argument."""
    spec = json.loads(sys.argv[1])
    restrict(spec["threads"])
    workload = spec["workload"]
    try:
        engine = engines.ENGINES[spec["engine"]]()
        problem = data.load(workload, spec["limit"])
    except (engines.EngineMissingError, data.DataMissingError) as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE
    parameters = {name: workload[name] for name in ("C", "gamma", "tolerance", "cache_megabytes")}
    order = np.argsort(problem.y, kind="stable") if engine.by_class else np.arange(len(problem.y))
    dense = spec["engine"] in workload["dense_for"]
    y, X = problem.y[order], engine.rows(problem.X[order], dense=dense)
    X_test = engine.rows(problem.X_test, dense=dense)
    del problem
    warm_up(engine, parameters, X, y)

    loading_peak = memory_bytes()
    forget_peak()
    before = memory_bytes("VmRSS")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start, cpu_start = time.perf_counter(), time.process_time()
        model = engine.new(**parameters).fit(X, y)
        fit_seconds, fit_cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    fit_peak = memory_bytes()
    engine.check(model)
    predict_seconds: list[float] = []
    for _ in range(PREDICT_REPEATS):
        start = time.perf_counter()
        predicted = model.predict(X_test)
        predict_seconds.append(time.perf_counter() - start)
        if sum(predict_seconds) > PREDICT_SECONDS:
            break
    peak = max(loading_peak, memory_bytes())
    coefficients = model.dual_coef_
    coefficients = coefficients.toarray() if hasattr(coefficients, "toarray") else np.asarray(coefficients)
    measured = {
        "fit_seconds": fit_seconds,
        "fit_cpu_seconds": fit_cpu_seconds,
        "bound_seconds": engine.bound_seconds(model, X, workload["gamma"]),
        "predict_seconds": median(predict_seconds),
        "first_predict_seconds": predict_seconds[0],
        "peak_bytes": peak,
        "added_bytes": max(0, fit_peak - before),
        "data_bytes": size_of(X) + y.nbytes,
        "version": engine.version,
        "warnings": sorted({str(warning.message) for warning in caught}),
    }
    np.savez(
        spec["output"],
        support=order[np.asarray(model.support_, dtype=np.int64)],
        dual_coef=coefficients.astype(np.float64),
        intercept=np.asarray(model.intercept_, dtype=np.float64),
        predicted=np.asarray(predicted).astype(np.int64),
        measured=json.dumps(measured),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
