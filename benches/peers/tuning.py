"""Choosing C and gamma: `SVCCV` beside searches of scikit-learn and liquidSVM, ten by ten points, five folds.

Every run is `tuner.py` in a process of its own, engines in turn, so that a noisy hour hits all of them.
liquidSVM (1.0.1, AGPL) lives in an environment of its own, whose Python ``SVMARROW_LIQUIDSVM`` names;
without, it is left out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import data
import numpy as np
from process import HERE, say

#: File and most training rows of each set.
SETS = {
    "banana": ("ratsch_banana", None),
    "german": ("ratsch_german", None),
    "image": ("ratsch_image", None),
    "satimage": ("satimage", None),
    "mushrooms": ("mushrooms", None),
    "usps": ("usps", None),
    "letter": ("letter", 4000),
    "cod_rna": ("cod_rna", 10_000),
    "magic": ("magic", None),
    "page_blocks": ("page_blocks", None),
    "shuttle": ("shuttle", 10_000),
}
QUICK = ("banana", "german")
ENGINES = ("SVCCV full", "SVCCV racing", "GridSearchCV(svmarrow)", "GridSearchCV(intelex)", "liquidSVM")
LIQUID = "SVMARROW_LIQUIDSVM"
#: Seconds after which a run is given up.
LIMIT = 3600
HEADINGS = ["set", "rows", "engine", "s", "processor s", "test error %", "C", "gamma"]


def read(name: str) -> dict[str, np.ndarray] | None:
    """Scaled training and test rows; None where the file is not here."""
    file, most = SETS[name]
    path = data.folder() / f"{file}.npz"
    if not path.exists():
        return None
    held = np.load(path, allow_pickle=False)
    X, y = held["X"].astype(np.float64), held["y"]
    if "train_idx" in held:
        train, test = held["train_idx"][0], held["test_idx"][0]
        (X, X_test), (y, y_test) = (X[train], X[test]), (y[train], y[test])
    elif "X_test" in held:
        X_test, y_test = held["X_test"].astype(np.float64), held["y_test"]
    else:
        order = np.random.default_rng(0).permutation(len(y))
        cut = int(0.7 * len(y))
        (X, X_test), (y, y_test) = (X[order[:cut]], X[order[cut:]]), (y[order[:cut]], y[order[cut:]])
    if most is not None and len(y) > most:
        some = np.random.default_rng(1).permutation(len(y))[:most]
        X, y = X[some], y[some]
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0.0] = 1.0
    return {"X": (X - mean) / spread, "y": y, "X_test": (X_test - mean) / spread, "y_test": y_test}


def python_of(engine: str) -> str | None:
    """The Python that has an engine; None where there is none."""
    if engine == "liquidSVM":
        return os.environ.get(LIQUID)
    if "intelex" in engine and importlib.util.find_spec("sklearnex") is None:
        return None
    return sys.executable


def run(name: str, repeat: int, threads: int | None) -> dict[str, Any] | None:
    """Runs of all engines on a set; None where it is not here."""
    rows = read(name)
    if rows is None:
        return None
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "rows.npz"
        np.savez(file, **rows)
        for _ in range(repeat):
            for engine in ENGINES:
                python = python_of(engine)
                if python is None:
                    continue
                said = _search(python, file, engine, threads)
                say(f"  {engine}: {said}")
                found.setdefault(engine, []).append(said)
    return {"set": name, "rows": len(rows["y"]), "columns": rows["X"].shape[1], "engines": found}


def _search(python: str, file: Path, engine: str, threads: int | None) -> dict[str, Any]:
    bound = (lambda: os.sched_setaffinity(0, range(threads))) if threads else None
    command = [python, str(HERE / "tuner.py"), str(file), engine]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, preexec_fn=bound, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {LIMIT} s"}
    said = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not said:
        return {"failed": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]}
    result: dict[str, Any] = json.loads(said[-1])
    return result


def middle(result: dict[str, Any], engine: str, key: str) -> float | None:
    """Median over the runs of an engine."""
    values = [one[key] for one in result["engines"].get(engine, []) if key in one]
    return median(values) if values else None


def lines(result: dict[str, Any]) -> list[list[str]]:
    """Table rows."""
    table = []
    for engine, runs in result["engines"].items():
        last = runs[-1]
        if "failed" in last:
            table.append([result["set"], str(result["rows"]), engine, last["failed"], "", "", "", ""])
            continue
        numbers = [middle(result, engine, key) for key in ("seconds", "processor_seconds", "error")]
        point = [f"{last[key]:.3g}" if key in last else "" for key in ("C", "gamma")]
        shown = [f"{number:.2f}" for number in numbers if number is not None]
        table.append([result["set"], str(result["rows"]), engine, *shown, *point])
    return table


def ratios(results: list[dict[str, Any]], key: str = "seconds") -> list[str]:
    """Geometric means of how many times as long the others take, and the difference of the test errors."""
    told = []
    for ours in ENGINES[:2]:
        for other in ENGINES[2:]:
            pairs = [(middle(r, other, key), middle(r, ours, key)) for r in results]
            factors = [a / b for a, b in pairs if a and b]
            errors = [(middle(r, ours, "error"), middle(r, other, "error")) for r in results]
            apart = [a - b for a, b in errors if a is not None and b is not None]
            if factors:
                mean, least = geometric_mean(factors), min(factors)
                told.append(
                    f"{other} takes {mean:.2f} times as long as {ours} ({key}, geometric mean of "
                    f"{len(factors)} sets, {least:.2f} at least); test error of {ours} minus its own "
                    f"{sum(apart) / len(apart):+.2f} points in the mean"
                )
    return told
