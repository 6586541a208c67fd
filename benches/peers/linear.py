"""Linear machines in few columns: svmarrow beside LIBSVM (scikit-learn's SVC and SVR) and LIBLINEAR.

    python benches/peers/linear.py [--quick] [--limit S] [--json docs/benchmarks/linear.json]

Each set with its columns as they are and standardised, C = 1 and 100, and 500 targets against one matrix of
547 x 22 signatures. LIBSVM is stopped after ``--limit`` million steps; LIBLINEAR (``LinearSVC`` and
``LinearSVR`` with the plain losses) has its default of 1,000 iterations and solves another problem, since it
penalises the intercept. "above" is the primal objective of the problem with a free intercept, relative to the
largest dual objective of svmarrow, which bounds the optimum from below. Seconds are those of one fit on all
cores that a library uses.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import report
import sklearn
from sklearn import svm
from sklearn.preprocessing import StandardScaler

import svmarrow

sys.path.insert(0, str(Path(__file__).resolve().parent))
from data import folder

CLASSES = [
    "pima_diabetes",
    "magic",
    "cod_rna",
    "breast_cancer_wisconsin",
    "ijcnn1",
    "page_blocks",
    "satimage",
]
TARGETS = ["cal_housing", "abalone", "cpu_act", "autompg", "parkinsons"]
MAX_SAMPLES = 20_000
EPSILON = 0.1


def rows(name: str, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """The first rows of a set in random order, dense, with their labels or targets."""
    with np.load(folder() / f"{name}.npz", allow_pickle=False) as file:
        if "X" in file:
            X = np.asarray(file["X"], np.float64)
        else:
            from scipy.sparse import csr_matrix

            parts = file["data"], file["indices"], file["indptr"]
            X = np.asarray(csr_matrix(parts, shape=tuple(file["shape"])).todense(), np.float64)
        y = file["y"]
    chosen = np.random.default_rng(0).permutation(len(y))[:limit]
    return np.ascontiguousarray(X[chosen]), np.asarray(y[chosen])


def signatures() -> tuple[np.ndarray, np.ndarray]:
    """A matrix of gene signatures, made, and 500 mixtures of its columns."""
    random = np.random.default_rng(0)
    X = random.lognormal(5.0, 2.0, (547, 22))
    shares = random.dirichlet(np.ones(22), 500)
    Y = X @ shares.T * np.exp(0.1 * random.normal(size=(547, 500)))
    return X, (Y - Y.mean(axis=0)) / Y.std(axis=0)


def contestants(C: float, steps: int, *, classes: bool) -> dict[str, Any]:
    """The unfitted estimators, by name."""
    libsvm = {"kernel": "linear", "C": C, "max_iter": steps, "cache_size": 1000}
    if classes:
        return {
            "svmarrow": svmarrow.SVC(kernel="linear", C=C),
            "LIBSVM": svm.SVC(**libsvm),
            "LIBLINEAR": svm.LinearSVC(C=C, loss="hinge", random_state=0),
        }
    return {
        "svmarrow": svmarrow.SVR(kernel="linear", C=C, epsilon=EPSILON),
        "LIBSVM": svm.SVR(epsilon=EPSILON, **libsvm),
        "LIBLINEAR": svm.LinearSVR(C=C, epsilon=EPSILON, random_state=0),
    }


def objective(model: Any, X: np.ndarray, y: np.ndarray, C: float, *, classes: bool) -> float:
    """The primal objective of a linear function with a free intercept."""
    weights = np.ravel(model.coef_)
    outputs = X @ weights + np.ravel(model.intercept_)[0]
    losses = (
        np.maximum(0.0, 1.0 - np.where(y == model.classes_[1], 1.0, -1.0) * outputs)
        if classes
        else np.maximum(0.0, np.abs(y - outputs) - EPSILON)
    )
    return float(0.5 * weights @ weights + C * losses.sum())


def fit(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, bool]:
    """Seconds of a fit, and whether it came to its end."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        start = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - start, not told


def compare(name: str, limit: int, steps: int, *, classes: bool) -> list[dict[str, Any]]:
    """The fits of all contestants to a set."""
    X, y = rows(name, limit)
    if classes:
        # The two largest classes.
        values, counts = np.unique(y, return_counts=True)
        kept = np.isin(y, values[np.argsort(-counts)[:2]])
        X, y = X[kept], y[kept]
    else:
        y = (y - y.mean()) / y.std()
    cells = []
    for scaled in (False, True):
        Z = StandardScaler().fit_transform(X) if scaled else X
        for C in (1.0, 100.0):
            cell: dict[str, Any] = {"set": name, "samples": len(y), "columns": X.shape[1]}
            cell |= {"standardised": scaled, "C": C}
            dual = -np.inf
            for engine, model in contestants(C, steps, classes=classes).items():
                seconds, ended = fit(model, Z, y)
                cell[engine] = {"seconds": seconds, "ended": ended}
                cell[engine]["objective"] = objective(model, Z, y, C, classes=classes)
                if engine == "svmarrow":
                    dual = model.certificate_.machines[0].dual
            for engine in ("svmarrow", "LIBSVM", "LIBLINEAR"):
                cell[engine]["above"] = cell[engine].pop("objective") / dual - 1.0
            cells.append(cell)
            print(line(cell), flush=True)
    return cells


def line(cell: dict[str, Any]) -> str:
    """A row of the table."""
    name = f"{cell['set']}{', standardised' if cell['standardised'] else ''}"
    parts = [f"| {name} | {cell['samples']:,} x {cell['columns']} | {cell['C']:g}"]
    for engine in ("svmarrow", "LIBSVM", "LIBLINEAR"):
        of = cell[engine]
        parts.append(f"{of['seconds']:.3f} | {of['above']:.1e}{'' if of['ended'] else ', stopped'}")
    return " | ".join(parts) + " |"


def batch(count: int, steps: int) -> dict[str, Any]:
    """Machines of many targets over one matrix."""
    X, Y = signatures()
    result: dict[str, Any] = {"targets": count}
    makers = {
        "svmarrow": lambda: svmarrow.NuSVR(kernel="linear", nu=0.5),
        "LIBSVM": lambda: svm.NuSVR(kernel="linear", nu=0.5, max_iter=steps),
    }
    for engine, make in makers.items():
        # LIBSVM is measured on a few: it is stopped on each.
        measured = count if engine == "svmarrow" else min(count, 5)
        fits = [fit(make(), X, Y[:, j]) for j in range(measured)]
        result[engine] = {
            "fits": measured,
            "seconds a fit": sum(seconds for seconds, _ in fits) / measured,
            "ended": sum(ended for _, ended in fits),
        }
    print(json.dumps(result), flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="500 samples, few steps")
    parser.add_argument("--limit", type=float, default=20.0, help="steps of LIBSVM, in millions")
    parser.add_argument("--json", type=Path, help="where to keep the figures")
    given = parser.parse_args()
    samples, steps = (500, 100_000) if given.quick else (MAX_SAMPLES, int(1e6 * given.limit))
    print("| set | samples | C | svmarrow s | above | LIBSVM s | above | LIBLINEAR s | above |")
    print("|---|---|---|---|---|---|---|---|---|")
    versions = {"svmarrow": svmarrow.__version__, "scikit-learn": sklearn.__version__}
    about = {
        "command": f"python benches/peers/linear.py --limit {given.limit:g} --json {given.json}",
        "commit": report.commit(),
        "date": time.strftime("%Y-%m-%d"),
        **report.machine(),
        **versions,
    }
    result: dict[str, Any] = {"about": about, "cells": [], "batch": None}

    def keep() -> None:
        # LIBSVM needs a minute for many of the fits: what is measured is not lost.
        if given.json:
            given.json.write_text(json.dumps(result, indent=1) + "\n")

    for names, classes in ((CLASSES, True), (TARGETS, False)):
        for name in names:
            if (folder() / f"{name}.npz").is_file():
                result["cells"] += compare(name, samples, steps, classes=classes)
                keep()
            else:
                print(f"{name}: not on this machine", file=sys.stderr)
    result["batch"] = batch(20 if given.quick else 500, steps)
    keep()


if __name__ == "__main__":
    main()
