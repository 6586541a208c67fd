"""Ways to answer with few kernel values, at equal numbers of them.

    python benches/trees/local.py [--only SET ...] [--times] [--wpq] --json docs/benchmarks/trees.json

A machine is fitted with C = 10 and gamma = "scale" to standardized columns, at most 15,000 training rows, and
reduced to 50 and to 200 kernel values for an answer: to a tree of local expansions, by `compress` to one
expansion, by `compress(max_evaluations=)`, which takes the better of both, and by kernel matching pursuit on
the labels, with the machine's width and with five widths, from a tenth to ten times "scale". A support vector
machine in the span of the compressed machine's vectors (`LowRankSVC`) is trained for these vectors. `--wpq`
adds the paper's split of a perceptron tree. Errors are those of at most 5,000 test rows. `--times` adds
microseconds for a row and the size of the saved file; nothing else may run then.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.preprocessing import StandardScaler

import svmarrow as s
from svmarrow.models import ExpansionTree
from svmarrow.svm.low_rank import LowRankSVC

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(os.environ.get("SVMARROW_DATA", "../shared/data"))
SETS = (
    "letter",
    "satimage",
    "usps",
    "magic",
    "cod_rna",
    "ijcnn1",
    "shuttle",
    "segment",
    "page_blocks",
    "a9a",
)
SIZES = (50, 200)
#: Widths of the pursuit of several, in units of the machine's.
WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
TRAIN, TEST = 15_000, 5_000


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows and labels of a set, training and test rows of the file together."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        found = dict(file)
    parts, labels = [], []
    for prefix in ("", "test_"):
        if f"{prefix}indptr" in found:
            entries = [found[prefix + part] for part in ("data", "indices", "indptr")]
            matrix = csr_matrix((entries[0].astype(float), *entries[1:]), shape=found[f"{prefix}shape"])
            parts.append(matrix.toarray())
            labels.append(found["y_test" if prefix else "y"])
        elif ("X_test" if prefix else "X") in found:
            parts.append(np.asarray(found["X_test" if prefix else "X"], dtype=float))
            labels.append(found["y_test" if prefix else "y"])
    width = max(part.shape[1] for part in parts)
    parts = [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts]
    return np.vstack(parts), np.concatenate(labels)


def split(name: str, seed: int) -> tuple[np.ndarray, ...]:
    """Standardized training and test rows with their labels."""
    X, y = rows_of(name)
    order = np.random.default_rng(seed).permutation(len(y))
    n_train = min(TRAIN, 2 * len(y) // 3)
    train, test = order[:n_train], order[n_train : n_train + TEST]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def methods(
    machine: Any, X: np.ndarray, y: np.ndarray, size: int, with_wpq: bool
) -> dict[str, Callable[[], Any]]:
    """The ways to answer with so many kernel values."""
    tree = s.PerceptronTreeClassifier.from_expansion
    full = s.as_expansion(machine)
    gamma = full.expansion_.gamma
    widths = [factor * gamma for factor in WIDTHS]
    small = cache(lambda: s.compress(machine, X, y, n_vectors=size, random_state=0))
    made = {
        "tree": lambda: full.with_expansion(ExpansionTree.of(full.expansion_, X, size, random_state=0)),
        "compress": small,
        "max_evaluations": lambda: s.compress(machine, X, y, max_evaluations=size, random_state=0),
        "retrained": lambda: LowRankSVC(
            size, C=10.0, gamma=gamma, selection=small().expansion_.vectors.astype(np.float64)
        ).fit(X, y),
        "pursuit": lambda: s.KMPClassifier(n_vectors=size, gamma=gamma, random_state=0).fit(X, y),
        "five widths": lambda: s.KMPClassifier(n_vectors=size, gamma=widths, random_state=0).fit(X, y),
    }
    if with_wpq:
        made["tree, wpq"] = lambda: tree(machine, X, budget=size, split="wpq", random_state=0)
    return made


def microseconds(model: Any, X: np.ndarray) -> float:
    """The shortest of five predictions of all rows, for each row."""
    durations = []
    for _ in range(6):
        start = time.perf_counter()
        model.predict(X)
        durations.append(time.perf_counter() - start)
    return 1e6 * min(durations[1:]) / len(X)


def measured(model: Any, X: np.ndarray, y: np.ndarray, with_times: bool) -> dict[str, float]:
    result = {"error": round(100.0 * float(np.mean(model.predict(X) != y)), 2)}
    if with_times:
        result["microseconds"] = round(microseconds(model, np.asarray(X, dtype=np.float32)), 3)
        with tempfile.TemporaryDirectory() as folder:
            s.save(s.as_expansion(model), Path(folder) / "model")
            result["kilobytes"] = round((Path(folder) / "model").stat().st_size / 1000, 1)
    return result


def run_set(name: str, splits: int, with_times: bool, with_wpq: bool) -> dict[str, Any]:
    results: dict[str, Any] = {"vectors": [], "full": [], "reduced": {}}
    for seed in range(splits):
        X, y, X_test, y_test = split(name, seed)
        machine = s.SVC(C=10.0, gamma="scale").fit(X, y)
        results["vectors"].append(machine.expansion_.n_vectors)
        results["full"].append(measured(machine, X_test, y_test, with_times))
        for size in SIZES:
            for method, build in methods(machine, X, y, size, with_wpq).items():
                start = time.process_time()
                model = build()
                seconds = time.process_time() - start
                line = measured(model, X_test, y_test, with_times) | {"cpu_seconds": round(seconds, 1)}
                results["reduced"].setdefault(f"{method}, {size}", []).append(line)
                print(name, seed, size, method, line, flush=True)
        print(name, seed, "full", results["full"][-1], results["vectors"][-1], flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--wpq", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True)
    written: dict[str, Any] = {
        "commit": commit.strip(),
        "command": " ".join(["python", "benches/trees/local.py", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": platform.processor() or platform.machine(),
        "sets": {},
    }
    for name in options.only:
        if not (DATA / f"{name}.npz").exists():
            print(f"{name}: not in {DATA}, left out")
            continue
        written["sets"][name] = run_set(name, options.splits, options.times, options.wpq)
        if options.json:
            options.json.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
