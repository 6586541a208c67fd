"""Choosing C and gamma: `SVCCV` beside searches of scikit-learn and liquidSVM, ten by ten points, five folds.

Every run is `tuner.py` in a process of its own, engines in turn, so that a noisy hour hits all of them.
liquidSVM (1.0.1, AGPL) lives in an environment of its own, whose Python ``SVMARROW_LIQUIDSVM`` names;
without, it is left out. So may scikit-learn-intelex, see ``SVMARROW_INTELEX``. A peer that takes longer than
the time-out is not run again, and counts as if it had taken that long, which is told.

`PATH_ENGINES` search along C alone: fifty values at one gamma, ten folds. TorchKM (4.3, on the CPU) knows two
classes and needs PyTorch; ``SVMARROW_TORCHKM`` names a Python that has both.

`growth` is about `SVCCV` alone: more rows, more points, less memory.
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
from typing import TYPE_CHECKING, Any

import data
import numpy as np
from process import HERE, say

if TYPE_CHECKING:
    from collections.abc import Iterable

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
PATH_ENGINES = ("SVCCV path", "GridSearchCV(intelex) path", "TorchKM path")
PATH_SETS = ("banana", "german", "image", "mushrooms", "cod_rna")
LIQUID = "SVMARROW_LIQUIDSVM"
TORCHKM = "SVMARROW_TORCHKM"
INTELEX = "SVMARROW_INTELEX"
#: Seconds after which a run is given up, unless told.
LIMIT = 3600.0
#: Rows, points of C and of gamma, megabytes (None is the budget there is) of the searches that show growth.
GROWTH = (
    *((rows, 10, None) for rows in (1000, 2000, 4000, 8000)),
    *((2000, points, None) for points in (5, 20)),
    *((4000, 10, megabytes) for megabytes in (16, 32, 64, 128, 256)),
)
GROWTH_SET = "magic"
QUICK_GROWTH = ((200, 3, None), (200, 3, 1))
COSTS = ("seconds", "processor_seconds", "megabytes")
GROWTH_HEADINGS = ["rows", "points", "budget, MB", "engine", "s", "processor s", "took, MB"]
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
    if engine.startswith("TorchKM"):
        return os.environ.get(TORCHKM)
    if "intelex" in engine:
        here = sys.executable if importlib.util.find_spec("sklearnex") else None
        return os.environ.get(INTELEX, here)
    return sys.executable


def run(
    name: str,
    repeat: int,
    threads: int | None,
    limit: float = LIMIT,
    engines: Iterable[str] = ENGINES,
) -> dict[str, Any] | None:
    """Runs of all engines on a set; None where it is not here."""
    rows = read(name)
    if rows is None:
        return None
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "rows.npz"
        np.savez(file, **rows)
        for _ in range(repeat):
            for engine in engines:
                python = python_of(engine)
                if python is None or "failed" in found.get(engine, [{}])[-1]:
                    continue
                said = _search(python, file, engine, threads, limit)
                say(f"  {engine}: {said}")
                found.setdefault(engine, []).append(said)
    return {"set": name, "rows": len(rows["y"]), "columns": rows["X"].shape[1], "engines": found}


def growth(cells: Iterable[tuple[int, int, int | None]], threads: int | None) -> list[dict[str, Any]]:
    """Searches over more rows, over more points and with less memory; none where the set is not here."""
    rows = read(GROWTH_SET)
    if rows is None:
        return []
    order = np.random.default_rng(2).permutation(len(rows["y"]))
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "rows.npz"
        for count, points, megabytes in cells:
            np.savez(file, **rows | {name: rows[name][order[:count]] for name in ("X", "y")})
            options = [points] if megabytes is None else [points, megabytes]
            for engine in ENGINES[:2] if megabytes is None else ENGINES[:1]:
                said = _search(sys.executable, file, engine, threads, LIMIT, *options)
                say(f"  {count} rows, {points} x {points} points, {megabytes or 'free'} MB, {engine}: {said}")
                about = {"set": GROWTH_SET, "rows": count, "points": points, "budget": megabytes}
                found.append({**about, "engine": engine, **said})
    return found


def growth_lines(found: list[dict[str, Any]]) -> list[list[str]]:
    """Table rows."""
    return [
        [
            f"{one['rows']}",
            f"{one['points']} x {one['points']}",
            f"{one['budget'] or ''}",
            one["engine"],
            *([f"{one[key]:.2f}" for key in COSTS] if "failed" not in one else [one["failed"], "", ""]),
        ]
        for one in found
    ]


def _search(
    python: str, file: Path, engine: str, threads: int | None, limit: float, *options: int
) -> dict[str, Any]:
    bound = (lambda: os.sched_setaffinity(0, range(threads))) if threads else None
    command = [python, str(HERE / "tuner.py"), str(file), engine, *map(str, options)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, preexec_fn=bound, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {limit:g} s", "limit": limit}
    said = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not said:
        return {"failed": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]}
    result: dict[str, Any] = json.loads(said[-1])
    return result


def middle(result: dict[str, Any], engine: str, key: str) -> float | None:
    """Median over the runs of an engine."""
    values = [one[key] for one in result["engines"].get(engine, []) if key in one]
    return median(values) if values else None


def _limit(result: dict[str, Any], engine: str) -> float | None:
    """What an engine that was given up has taken at least."""
    runs = result["engines"].get(engine, [])
    return next((one["limit"] for one in runs if "limit" in one), None)


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


def ratios(
    results: list[dict[str, Any]],
    key: str = "seconds",
    own: Iterable[str] = ENGINES[:2],
    others: Iterable[str] = ENGINES[2:],
) -> list[str]:
    """Geometric means of how many times as long the others take, and the difference of the test errors."""
    told = []
    for ours in own:
        for other in others:
            late = [_limit(r, other) for r in results]
            pairs = [(middle(r, other, key) or _limit(r, other), middle(r, ours, key)) for r in results]
            factors = [a / b for a, b in pairs if a and b]
            besides = f", {len(late) - late.count(None)} of them by the time-out" if any(late) else ""
            errors = [(middle(r, ours, "error"), middle(r, other, "error")) for r in results]
            apart = [a - b for a, b in errors if a is not None and b is not None]
            if factors:
                mean, least = geometric_mean(factors), min(factors)
                told.append(
                    f"{other} takes {mean:.2f} times as long as {ours} ({key}, geometric mean of "
                    f"{len(factors)} sets{besides}, {least:.2f} at least); test error of {ours} minus "
                    f"its own {sum(apart) / len(apart):+.2f} points in the mean"
                )
    return told
