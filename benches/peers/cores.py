"""Seconds of every family bound to 1, 2, 4, ... and all processors, and whether results have the same bits.

    python benches/peers/cores.py --json docs/benchmarks/cores.json

Each number of processors has a process of its own, because a pool of threads is made once. A workload runs
once to warm up; then the fastest of several runs counts. Its result (the coefficients of a fit, the scores of
a search, the predictions) is hashed: a different hash with other threads is an error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import data
import numpy as np
import report
import speedup
from scipy import sparse

import svmarrow
from svmarrow.inspection import shapley_values
from svmarrow.least_squares import LowRankRLSRegressor
from svmarrow.reduced_set import GradientSettings

if TYPE_CHECKING:
    from collections.abc import Callable

#: Runs after the first one, while they fit into so many seconds.
REPEATS, SECONDS = 7, 3.0
FITS = ["usps", "letter", "a9a", "ijcnn1", "w8a", "cod_rna", "mnist", "moons", "blobs"]


def problem(name: str, rows: int | None = None, dtype: Any = np.float32) -> data.Problem:
    """A workload of `workloads.toml` in single precision."""
    table = {entry["name"]: entry for entry in data.read_table()["workload"]}
    found = data.load(table[name], rows)
    return data.Problem(found.X.astype(dtype), found.y, found.X_test.astype(dtype), found.y_test)


def settings(name: str) -> dict[str, float]:
    """The parameters of a workload."""
    table = {entry["name"]: entry for entry in data.read_table()["workload"]}
    return {"C": table[name]["C"], "gamma": table[name]["gamma"]}


def fit(name: str) -> Callable[[], Any]:
    """A fit of all training samples."""
    found, machine = problem(name), svmarrow.SVC(cache_size=4000, **settings(name))
    return lambda: machine.fit(found.X, found.y).dual_coef_


def predict(name: str) -> Callable[[], Any]:
    """Predictions of all training samples by a machine of 8,000."""
    found = problem(name)
    machine = svmarrow.SVC(**settings(name)).fit(found.X[:8000], found.y[:8000])
    return lambda: machine.decision_function(found.X)


def smooth(n: int, d: int) -> tuple[Any, Any]:
    """Samples with a smooth target and noise."""
    random = np.random.default_rng(0)
    X = random.uniform(-1.5, 1.5, size=(n, d))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, -1] + 0.1 * random.normal(size=n)


def noisy(n: int, d: int) -> tuple[Any, Any]:
    """Two classes, overlapping, with 15 % of random labels."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(8, d))
    group = random.integers(8, size=n)
    X = centres[group] + 0.8 * random.normal(size=(n, d))
    return X.astype(np.float32), np.where(random.random(n) < 0.15, random.integers(2, size=n), group % 2)


def search(**parameters: Any) -> Callable[[], Any]:
    """A search of 10 x 10 points by five folds."""
    X, y = noisy(3000, 10)
    grid = {"Cs": np.geomspace(0.1, 1000, 10), "gammas": np.geomspace(0.002, 2, 10), "cv": 5, **parameters}
    return lambda: svmarrow.SVCCV(**grid).fit(X, y).cv_results_["mean_test_score"]


def regression() -> Callable[[], Any]:
    """A search of a regressor."""
    X, y = smooth(1500, 6)
    grid = {"Cs": np.geomspace(0.1, 100, 4), "gammas": np.geomspace(0.02, 2, 6), "cv": 5}
    return lambda: svmarrow.SVRCV(**grid).fit(X, y).cv_results_["mean_test_score"]


def least_squares() -> Callable[[], Any]:
    """Regularized least squares with leave-one-out predictions."""
    X, y = smooth(6000, 8)
    machine = svmarrow.RLSRegressor(alpha=0.1, gamma=0.1, leave_one_out=True)
    return lambda: machine.fit(X, y).dual_coef_


def low_rank() -> Callable[[], Any]:
    """Regularized least squares in 1,000 vectors."""
    X, y = smooth(100_000, 8)
    machine = LowRankRLSRegressor(1000, gamma=0.1, random_state=0)
    return lambda: machine.fit(X, y).predict(X[:100])


def pursuit() -> Callable[[], Any]:
    """Kernel matching pursuit."""
    X, y = noisy(10_000, 10)
    machine = svmarrow.KMPClassifier(n_vectors=200, gamma=0.1)
    return lambda: machine.fit(X, y).predict(X[:1000])


def tree() -> Callable[[], Any]:
    """A perceptron tree."""
    found = problem("ijcnn1", 20_000)
    machine = svmarrow.PerceptronTreeClassifier(random_state=0)
    return lambda: machine.fit(found.X, found.y).predict(found.X[:1000])


def compress(method: str, **parameters: Any) -> Callable[[], Any]:
    """A compression of a machine of ten classes to 200 vectors."""
    found = problem("usps")
    machine = svmarrow.SVC(**settings("usps")).fit(found.X, found.y)
    options = {"method": method, "n_vectors": 200, "random_state": 0, **parameters}
    return lambda: svmarrow.compress(machine, found.X, found.y, **options).predict(found.X_test)


def shapley() -> Callable[[], Any]:
    """Shapley values of 200 samples."""
    X, y = smooth(2000, 8)
    machine = svmarrow.SVR(gamma=0.3).fit(X, y)
    return lambda: shapley_values(machine, X[:200], background=X[:100])


def table() -> Callable[[], Any]:
    """A regressor of tables with all that it chooses by itself."""
    X, y = smooth(1000, 8)
    return lambda: svmarrow.TabularRegressor().fit(X, y).predict(X[:500])


WORKLOADS: dict[str, Callable[[], Callable[[], Any]]] = {
    **{f"fit: {name}": lambda name=name: fit(name) for name in FITS},
    "predict: ijcnn1": lambda: predict("ijcnn1"),
    "predict: mnist": lambda: predict("mnist"),
    "search: 10 x 10 x 5": search,
    "search: racing": lambda: search(search="racing"),
    "search: regression": regression,
    "least squares: leave-one-out": least_squares,
    "least squares: 1,000 vectors": low_rank,
    "matching pursuit": pursuit,
    "perceptron tree": tree,
    "compress: gradient": lambda: compress("gradient", settings=GradientSettings(steps=50)),
    "compress: backfit": lambda: compress("backfit"),
    "Shapley values": shapley,
    "table": table,
}


def digest(result: Any) -> str:
    """Hash of a result's bits."""
    parts = result.data if sparse.issparse(result) else getattr(result, "values", result)
    return hashlib.sha256(np.ascontiguousarray(parts).tobytes()).hexdigest()[:16]


def work(count: int, names: list[str]) -> None:
    """Run the workloads on so many processors; a line of JSON each."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    warnings.simplefilter("ignore")
    for name in names:
        run = WORKLOADS[name]()
        seconds: list[float] = []
        while True:
            start = time.perf_counter()
            found = digest(run())
            seconds.append(time.perf_counter() - start)
            if (
                len(seconds) > REPEATS
                or (len(seconds) > 1 and sum(seconds) > SECONDS)
                or seconds[0] > SECONDS
            ):
                break
        print(json.dumps({"name": name, "seconds": min(seconds), "digest": found}), flush=True)


def main() -> int:
    """Run every workload with every number of processors, the largest first; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of names of workloads")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [name for name in WORKLOADS if name.startswith(tuple(options.names or [""]))]
    if options.worker:
        work(options.worker, names)
        return 0
    counts = speedup.counts(report.processors())
    found: dict[str, Any] = {name: {"seconds": {}, "digests": []} for name in names}
    head = {
        "commit": report.commit(),
        "command": "python benches/peers/cores.py --json docs/benchmarks/cores.json",
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": report.machine(),
    }
    for count in reversed(counts):
        asked = [sys.executable, __file__, *names, "--worker", str(count)]
        with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or []:
                one = json.loads(line)
                found[one["name"]]["seconds"][str(count)] = one["seconds"]
                found[one["name"]]["digests"].append(one["digest"])
                print(f"{count:3d} {one['name']:30s} {one['seconds']:8.3f}", flush=True)
                if options.json:
                    options.json.write_text(json.dumps({**head, "cores": found}, indent=1) + "\n")
        if process.returncode:
            return process.returncode
    wrong = [name for name, one in found.items() if len(set(one["digests"])) > 1]
    for name in wrong:
        print(f"{name}: other bits with other threads")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
