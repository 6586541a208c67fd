"""Low rank on ten million rows from a disk, in a gigabyte of memory; beside Nystroem + SGD, and an exact fit
of a sample.

    python benches/dask/stream.py [--rows 10000000] [--points 500] --json docs/benchmarks/stream.json

The rows are generated into a file once. Each learner runs in a process of its own, reads the file in pieces
by ``partial_fit``, and tells its peak of resident memory, its processor seconds and its error on rows that
it has not seen. With ``--only`` the other learners stay in the file as they are.

Low rank is measured with two losses: squares, and the logistic loss by Newton's method, of which a step is a
pass of weighted squares over the rows (iteratively reweighted least squares): with outputs f, probabilities
p = 1 / (1 + e^-f) and labels y in {0, 1} the targets are f + (y - p) / w, the weights w = p (1 - p). Steps on
a tenth of the rows come first; one over all rows then ends as near as rows tell.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

COLUMNS, PIECE, TEST = 8, 100_000, 100_000
#: The width of the kernel.
GAMMA = 2.0
#: Pieces that are read for each step of the logistic loss, None for all.
STEPS = (10, 10, 10, 10, None)
KINDS = ("low rank", "low rank, logistic", "nystroem + sgd", "exact on 20,000 rows")


def piece(number, n):
    """Rows in a cube, labelled by a smooth function of four columns, one in twenty wrongly."""
    random = np.random.default_rng([7, number])
    X = random.random((n, COLUMNS), dtype=np.float32)
    f = np.sin(6.0 * X[:, 0]) + 2.0 * X[:, 1] * X[:, 2] - X[:, 3] - 0.2
    return X, (f > 0.0) ^ (random.random(n) < 0.05)


def generate(folder, rows):
    with (folder / "X").open("wb") as X_file, (folder / "y").open("wb") as y_file:
        for number in range(-(-rows // PIECE)):
            X, y = piece(number, min(PIECE, rows - number * PIECE))
            X.tofile(X_file)
            y.astype(np.int8).tofile(y_file)


def pieces(folder):
    labels = np.memmap(folder / "y", dtype=np.int8, mode="r")
    for first in range(0, labels.size, PIECE):
        n = min(PIECE, labels.size - first)
        # A map for each piece: pages of the ones before count for this process no more.
        X = np.memmap(
            folder / "X", dtype=np.float32, mode="r", offset=first * COLUMNS * 4, shape=(n, COLUMNS)
        )
        yield X, np.asarray(labels[first : first + n])


def logistic(folder, points):
    """Low rank with the logistic loss: steps on the first pieces, the last on all."""
    from svmarrow.least_squares import LowRankRLSRegressor
    from svmarrow.models import ExpansionClassifier

    first = next(pieces(folder))[0]
    chosen = np.random.default_rng(0).choice(len(first), points, replace=False)
    model = None
    for read in STEPS:
        step = LowRankRLSRegressor(selection=first[chosen], alpha=0.1, gamma=GAMMA, n_jobs=1)
        for X, y in islice(pieces(folder), read):
            f = np.zeros(len(X)) if model is None else model.predict(X)
            p = 1.0 / (1.0 + np.exp(-f))
            w = np.maximum(p * (1.0 - p), 1e-6)
            step.partial_fit(X, f + (y - p) / w, sample_weight=w)
        model = step
    return ExpansionClassifier(model.expansion_, [0, 1], "binary")


def learn(kind, folder, points):
    if kind == "low rank, logistic":
        model = logistic(folder, points)
    elif kind == "low rank":
        from svmarrow.least_squares import LowRankRLSClassifier

        model = LowRankRLSClassifier(points, alpha=1.0, gamma=GAMMA, random_state=0, n_jobs=1)
        for X, y in pieces(folder):
            model.partial_fit(X, y, classes=[0, 1])
    elif kind == "nystroem + sgd":
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import SGDClassifier
        from sklearn.pipeline import make_pipeline

        features = Nystroem(n_components=points, gamma=GAMMA, random_state=0)
        linear = SGDClassifier(alpha=1e-7, average=True, random_state=0)
        for number, (X, y) in enumerate(pieces(folder)):
            X = np.asarray(X, dtype=np.float64)
            if number == 0:
                features.fit(X)
            for part in np.array_split(np.arange(len(X)), 10):
                linear.partial_fit(features.transform(X[part]), y[part], classes=[0, 1])
        model = make_pipeline(features, linear)
    else:
        from svmarrow import SVC

        X, y = next(pieces(folder))
        model = SVC(C=1.0, gamma=GAMMA, n_jobs=1).fit(X[:20_000], y[:20_000])
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--only", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--learn", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.learn:
        kind, folder = arguments.learn
        began = time.perf_counter()
        model = learn(kind, Path(folder), arguments.points)
        result = {"seconds": time.perf_counter() - began, "processor": time.process_time()}
        # Before rows to judge by are there. Kilobytes on Linux.
        result["peak_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        X, y = piece(10**6, TEST)
        result["error"] = float((model.predict(X) != y).mean())
        print(json.dumps(result))
        return
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        generate(Path(folder), arguments.rows)
        for kind in arguments.only:
            command = [sys.executable, __file__, "--points", str(arguments.points), "--learn", kind, folder]
            told = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            found[kind] = json.loads(told.stdout.splitlines()[-1])
            print(kind, found[kind], flush=True)
    if arguments.json:
        size = {"rows": arguments.rows, "points": arguments.points}
        if arguments.json.exists():
            before = json.loads(arguments.json.read_text())
            if {name: before["about"][name] for name in size} == size:
                found = {kind: found.get(kind, before["found"].get(kind)) for kind in KINDS}
                found = {kind: row for kind, row in found.items() if row}
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        about = {
            "command": "python " + " ".join(sys.argv),
            "commit": commit.stdout.strip(),
            "machine": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            **size,
        }
        arguments.json.write_text(json.dumps({"about": about, "found": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
