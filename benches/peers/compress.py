"""How small a one-vs-rest machine can be made: train, compress once, read the test error at several sizes.

`run.py --suite compress` calls it. The time of the path is the time of `compression_path` alone: it holds
every size up to the largest. The threshold is then set anew on the training rows at each size, which is
reported beside it.
"""

from __future__ import annotations

import time
from typing import Any

import data
import numpy as np


def run(workload: dict[str, Any]) -> dict[str, Any]:
    """Measure one `[[compress]]` entry of `workloads.toml`.

    Returns
    -------
    dict
        ``name``, ``vectors``, ``fit_seconds``, ``path_seconds``, ``full_error`` and ``sizes``: for each size
        the test ``error``, the error with the threshold set anew (``adjusted_error``), the ``limit`` or None.
    """
    import svmarrow

    problem = data.load(workload)
    X, X_test = (np.ascontiguousarray(part, dtype=np.float32) for part in (problem.X, problem.X_test))

    def error(model: Any) -> float:
        return float(np.mean(model.predict(X_test) != problem.y_test))

    start = time.perf_counter()
    svc = svmarrow.SVC(
        C=workload["C"],
        gamma=workload["gamma"],
        tol=workload["tolerance"],
        cache_size=workload["cache_megabytes"],
        multi_class="ovr",
    ).fit(X, problem.y)
    fit_seconds = time.perf_counter() - start
    largest = max(workload["sizes"])
    start = time.perf_counter()
    path = svmarrow.compression_path(svc, n_vectors=largest)
    path_seconds = time.perf_counter() - start
    adjusted = svmarrow.compression_path(svc, n_vectors=largest, X=X, y=problem.y)
    limits = {int(size): limit for size, limit in workload["at_most"].items()}
    return {
        "name": workload["name"],
        "vectors": len(svc.support_),
        "fit_seconds": fit_seconds,
        "path_seconds": path_seconds,
        "full_error": error(svc),
        "sizes": [
            {
                "size": size,
                "error": error(path[size]),
                "adjusted_error": error(adjusted[size]),
                "limit": limits.get(size),
            }
            for size in workload["sizes"]
        ],
    }


def missed(result: dict[str, Any]) -> list[str]:
    """What a result owes: sizes whose better error is above its limit."""
    return [
        f"{result['name']}: {entry['size']} vectors err {min(entry['error'], entry['adjusted_error']):.2%}, "
        f"above the limit of {entry['limit']:.2%}"
        for entry in result["sizes"]
        if entry["limit"] is not None and min(entry["error"], entry["adjusted_error"]) > entry["limit"]
    ]


def lines(result: dict[str, Any]) -> list[list[str]]:
    """Table rows of a result."""
    full = f"{result['full_error']:.2%}"
    rows = [[result["name"], str(result["vectors"]), full, "", "", f"{result['fit_seconds']:.2f} fit"]]
    for entry in result["sizes"]:
        limit = "" if entry["limit"] is None else f"{entry['limit']:.1%}"
        rows.append(
            ["", str(entry["size"]), f"{entry['error']:.2%}", f"{entry['adjusted_error']:.2%}", limit, ""],
        )
    rows[-1][-1] = f"{result['path_seconds']:.2f} all sizes"
    return rows


HEADINGS = ["workload", "vectors", "test error", "threshold set anew", "at most", "seconds"]
