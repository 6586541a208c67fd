"""One unmodified program under scikit-learn, scikit-learn-intelex and svmarrow: what a user gains by no work.

The program is `user.py`: scaling, a search over nine points with five folds, a fit with probabilities,
prediction. It runs in a process of its own; its clock starts when the libraries and the rows are loaded.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import data
import numpy as np
from process import HERE, say

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How each library runs a program that does not know it.
LIBRARIES = {
    "scikit-learn": [],
    "scikit-learn-intelex": ["-m", "sklearnex"],
    "svmarrow": ["-m", "svmarrow.patch"],
}
OURS = "svmarrow"
STEPS = ("search", "fit with probabilities", "predict_proba", "predict", "all")
#: Largest difference of best scores and of test errors between libraries, in standard errors.
LEVEL = 3.0


def run(workload: dict[str, Any], rows: int, repeat: int, threads: int | None) -> dict[str, Any]:
    """`workload`, `rows`, and by library the program's findings with the medians of its seconds."""
    problem = data.load(workload, rows)
    dense = [part.toarray() if hasattr(part, "toarray") else part for part in (problem.X, problem.X_test)]
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "rows.npz"
        np.savez(file, X=dense[0], X_test=dense[1], y=problem.y, y_test=problem.y_test)
        for _ in range(repeat):
            for library, prefix in LIBRARIES.items():
                if library == "scikit-learn-intelex" and importlib.util.find_spec("sklearnex") is None:
                    continue
                found.setdefault(library, []).append(_program(prefix, file, threads))
    result = {"workload": workload["name"], "rows": len(problem.y), "tests": len(problem.y_test)}
    return result | {"libraries": {library: _middle(runs) for library, runs in found.items()}}


def _program(prefix: list[str], file: Path, threads: int | None) -> dict[str, Any]:
    """One run of the program."""
    command = [sys.executable, *prefix, str(HERE / "user.py"), str(file)]
    bound = (lambda: os.sched_setaffinity(0, range(threads))) if threads else None
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=bound)
    if done.returncode:
        say(done.stderr)
        return {"note": "failed"}
    # A library may print lines of its own before.
    return json.loads(done.stdout.strip().splitlines()[-1])


def _middle(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The first run with the medians of all runs' seconds."""
    if any("note" in run for run in runs):
        return {"note": "failed"}
    return runs[0] | {"seconds": {step: median(run["seconds"][step] for run in runs) for step in STEPS}}


def faults(result: dict[str, Any]) -> list[str]:
    """What of ours failed, or found something that scikit-learn does not."""
    ours, theirs = (result["libraries"][name] for name in (OURS, "scikit-learn"))
    where = f"dropin {result['workload']}"
    if "note" in ours or "note" in theirs:
        return [f"{where}: the program failed"]
    if not ours["class"].startswith("svmarrow."):
        return [f"{where}: the program ran with {ours['class']}"]
    found = []
    for what, count in (("score", result["rows"]), ("error", result["tests"])):
        spread = max((theirs[what] * (1 - theirs[what]) / count) ** 0.5, 1 / count)
        if abs(ours[what] - theirs[what]) > LEVEL * spread:
            found.append(f"{where}: {what} {ours[what]:.4f}, with scikit-learn {theirs[what]:.4f}")
    return found


HEADINGS = [
    "workload",
    "rows",
    "library",
    *(f"{step}, s" for step in STEPS),
    "best C, gamma",
    "error",
    "log loss",
]


def lines(result: dict[str, Any]) -> list[list[str]]:
    """Table rows."""
    rows = []
    for library, found in result["libraries"].items():
        start = [result["workload"], f"{result['rows']:,}", library]
        if "note" in found:
            rows.append([*start, *[""] * len(STEPS), found["note"], "", ""])
            continue
        seconds = [f"{found['seconds'][step]:.2f}" for step in STEPS]
        point = f"{found['C']:g}, {found['gamma']:.3g}"
        rows.append([*start, *seconds, point, f"{100 * found['error']:.2f} %", f"{found['log_loss']:.4f}"])
    return rows
