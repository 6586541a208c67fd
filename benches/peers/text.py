"""Text: 20newsgroups by date as tf-idf, beside LIBSVM and LIBLINEAR on one thread.

    python benches/peers/text.py [--quick] [--rows N] [--json docs/benchmarks/text.json]

11,314 documents of 20 classes, 7,532 for testing, 56,436 words. C = 1. scikit-learn's SVC is LIBSVM, its
LinearSVC is LIBLINEAR: one machine a class, with another loss (squared) and a penalty on the intercept.
Seconds are processor time, so what else the machine does counts little; the second prediction has what the
first prepared.
"""

from __future__ import annotations

import os

# Before the libraries that read it.
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import report
import scipy.sparse as sp
import sklearn
from sklearn import svm
from sklearn.feature_extraction.text import TfidfTransformer

import svmarrow

sys.path.insert(0, str(Path(__file__).resolve().parent))
from data import folder


def rows(limit: int) -> tuple[sp.csr_matrix, sp.csr_matrix, np.ndarray, np.ndarray]:
    """Training and test rows and their classes, the first of each."""
    with np.load(folder() / "news20_bydate.npz", allow_pickle=False) as file:
        counts = [
            sp.csr_matrix(
                (file[f"{part}data"].astype(float), file[f"{part}indices"], file[f"{part}indptr"]),
                shape=tuple(file[f"{part}shape"]),
            )[:limit]
            for part in ("", "test_")
        ]
        labels = file["y"][:limit], file["y_test"][:limit]
    weights = TfidfTransformer(sublinear_tf=True).fit(counts[0])
    X, X_test = (weights.transform(part).tocsr() for part in counts)
    return X, X_test, *labels


def contestants() -> dict[str, Any]:
    """Makers of unfitted classifiers, by name."""
    ours = {"C": 1.0, "cache_size": 2000, "n_jobs": 1}
    libsvm = {"C": 1.0, "cache_size": 2000}
    return {
        "svmarrow, linear": lambda: svmarrow.SVC(kernel="linear", **ours),
        "LIBSVM, linear": lambda: svm.SVC(kernel="linear", **libsvm),
        "svmarrow, linear, one-vs-rest": lambda: svmarrow.SVC(kernel="linear", multi_class="ovr", **ours),
        "LIBLINEAR": lambda: svm.LinearSVC(C=1.0),
        "svmarrow, RBF": lambda: svmarrow.SVC(gamma=1.0, **ours),
        "LIBSVM, RBF": lambda: svm.SVC(gamma=1.0, **libsvm),
    }


def main() -> None:
    """Every contestant once, then every one again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first 1,000 documents")
    parser.add_argument("--rows", type=int, default=20_000, help="at most so many documents of each part")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    X, X_test, y, y_test = rows(1000 if options.quick else options.rows)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in contestants()}
    for _ in range(options.repeat):
        for name, make in contestants().items():
            model, times = make(), [time.process_time()]
            model.fit(X, y)
            times.append(time.process_time())
            for _ in range(2):
                predicted = model.predict(X_test)
                times.append(time.process_time())
            keys = ("fit", "first prediction", "prediction")
            run = dict(zip(keys, np.diff(times).tolist(), strict=True))
            runs[name].append({**run, "error": float((predicted != y_test).mean())})
            print(f"{name:30}", {key: round(value, 4) for key, value in runs[name][-1].items()}, flush=True)
    medians = {
        name: {key: round(statistics.median(run[key] for run in all_), 4) for key in all_[0]}
        for name, all_ in runs.items()
    }
    for kernel in ("linear", "RBF"):
        ours, peer = medians[f"svmarrow, {kernel}"], medians[f"LIBSVM, {kernel}"]
        print(
            kernel, {key: round(peer[key] / ours[key], 1) for key in ("fit", "prediction")}, "times as fast"
        )
    if options.json:
        found = {
            "command": " ".join(["python", *sys.argv]),
            "commit": report.commit(),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": report.machine(),
            "times": "processor seconds of one thread",
            "versions": {"scikit-learn": sklearn.__version__, "svmarrow": svmarrow.__version__},
            "documents": [X.shape[0], X_test.shape[0]],
            "medians": medians,
            "runs": runs,
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
