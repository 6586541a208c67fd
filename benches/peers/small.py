"""Seconds of a fit on few samples, where the overhead of a call counts.

`run.py --suite small` starts it in a process of its own. Each size takes the first samples of a shuffled set
of scikit-learn's. The estimators fit in turn in every round, and the median over the rounds is reported.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from worker import print_result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEADINGS = ["set", "samples", "scikit-learn ms", "svmarrow.SVC", "svmarrow.patch's SVC", "times as fast"]
SEED = 20071
#: Rounds, at least three.
SECONDS = 1.5
MAX_ROUNDS = 300


def estimators() -> dict[str, Callable[[], Any]]:
    """Constructors by name, the reference first."""
    import sklearn.svm

    import svmarrow
    from svmarrow.patch.svm import SVC

    return {"sklearn": sklearn.svm.SVC, "svmarrow": svmarrow.SVC, "patch": SVC}


def measure(table: dict[str, Any], *, quick: bool) -> list[dict[str, Any]]:
    """The `[small]` table of ``workloads.toml``: `set`, `samples` and the median `seconds` by estimator."""
    from sklearn import datasets

    found = []
    for name, sizes in table["sizes"].items():
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        order = np.random.default_rng(SEED).permutation(len(X))
        X, y = X[order], y[order]
        for size in sizes[:1] if quick else sizes:
            seconds: dict[str, list[float]] = {key: [] for key in estimators()}
            start = time.perf_counter()
            rounds = 3 if quick else MAX_ROUNDS
            while len(seconds["sklearn"]) < rounds and (
                len(seconds["sklearn"]) < 3 or time.perf_counter() - start < SECONDS
            ):
                for key, make in estimators().items():
                    model = make()
                    before = time.perf_counter()
                    model.fit(X[:size], y[:size])
                    seconds[key].append(time.perf_counter() - before)
            medians = {key: median(values) for key, values in seconds.items()}
            found.append({"set": name, "samples": size, "seconds": medians})
    return found


def lines(results: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Table rows."""
    rows = []
    for result in results:
        seconds = result["seconds"]
        times = [f"{1e3 * seconds[key]:.2f}" for key in ("sklearn", "svmarrow", "patch")]
        ratio = seconds["sklearn"] / seconds["svmarrow"]
        rows.append([result["set"], f"{result['samples']:,}", *times, f"{ratio:.2f}"])
    return rows


if __name__ == "__main__":
    print_result(measure)
