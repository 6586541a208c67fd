"""Microseconds a call for one row, rows a second for more: what stands between a program and its answer.

`run.py --suite latency` starts it in a process of its own. The machine is an RBF expansion whose vectors are
all rows of a small problem with random labels; at gamma 1 rows of 20 normal columns are so far apart that
every row is a support vector, so that all contestants hold the same vectors. Rows are C-contiguous, in the
precision of the machine. A time is the median of `REPEATS` runs of timeit.
"""

from __future__ import annotations

import importlib
import timeit
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from worker import print_result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

REPEATS = 7
# Seconds that one timeit run lasts at least.
LEAST_SECONDS = 0.05
SEED = 20070
#: The row of the target.
BARE = "KernelExpansion.decision_function"


def seconds_a_call(call: Callable[[], object], least: float) -> float:
    """Median over repeats of the mean of so many calls that they last `least` seconds."""
    timer = timeit.Timer(call)
    number = 1
    while (once := timer.timeit(number)) < least:
        number = max(2 * number, int(1.2 * number * least / max(once, 1e-9)))
    return median(timer.repeat(REPEATS, number)) / number


def contestants(n_vectors: int, n_features: int, dtype: type) -> dict[str, Callable[[Any], object]]:
    """Callables of rows by name, all on one machine."""
    import sklearn.svm
    from sklearn.utils.validation import validate_data

    import svmarrow
    from svmarrow import _core

    rng = np.random.default_rng(SEED)
    X: np.ndarray = rng.standard_normal((n_vectors, n_features)).astype(dtype)
    y = rng.permutation(np.arange(n_vectors) % 2)
    ours = svmarrow.SVC(gamma=1.0).fit(X, y)
    theirs = sklearn.svm.SVC(gamma=1.0).fit(X, y)
    for model in (ours, theirs):
        if len(model.support_) != n_vectors:
            raise RuntimeError(f"{type(model)} has {len(model.support_)} vectors: it must have {n_vectors}")
    bare = svmarrow.KernelExpansion(
        ours.support_vectors_, np.ascontiguousarray(ours.dual_coef_.T), ours.intercept_, "rbf", 1.0
    )
    core = _core.Expansion(bare.vectors, bare.coefficients, bare.intercepts, bare.kernel_spec)
    found: dict[str, Callable[[Any], object]] = {
        "_core.Expansion.decision, 1 thread": lambda rows: core.decision(rows, 1),
        BARE: bare.decision_function,
        "scikit-learn's validation alone": lambda rows: validate_data(
            ours, rows, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        ),
        "SVC.predict": ours.predict,
        "scikit-learn SVC.predict": theirs.predict,
    }
    try:
        intelex = importlib.import_module("sklearnex.svm")
    except ModuleNotFoundError:
        return found
    found["scikit-learn-intelex SVC.predict"] = intelex.SVC(gamma=1.0).fit(X, y).predict
    return found


def measure(table: dict[str, Any], *, quick: bool) -> list[dict[str, Any]]:
    """The `[latency]` table of ``workloads.toml``: `name`, `dtype` and `seconds` by batch size."""
    least = 0.002 if quick else LEAST_SECONDS
    rng = np.random.default_rng(SEED + 1)
    found = []
    for dtype in (np.float32, np.float64):
        calls = contestants(table["vectors"], table["features"], dtype)
        batches = {
            size: rng.standard_normal((size, table["features"])).astype(dtype) for size in table["batches"]
        }
        for name, call in calls.items():
            seconds = {
                str(size): seconds_a_call(lambda call=call, rows=rows: call(rows), least)  # type: ignore[misc]
                for size, rows in batches.items()
            }
            found.append({"name": name, "dtype": np.dtype(dtype).name, "seconds": seconds})
    return found


def headings(table: dict[str, Any]) -> list[str]:
    """Of the table."""
    rates = [f"rows/s, {size:,} a call" for size in table["batches"]]
    return ["call", "rows", "us for 1 row", *rates]


def lines(results: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Table rows."""
    rows = []
    for result in results:
        seconds = {int(size): value for size, value in result["seconds"].items()}
        rates = [f"{size / value:,.0f}" for size, value in seconds.items()]
        rows.append([result["name"], result["dtype"], f"{1e6 * seconds[1]:.2f}", *rates])
    return rows


if __name__ == "__main__":
    print_result(measure)
