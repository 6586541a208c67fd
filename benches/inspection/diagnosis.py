"""What `svmarrow.inspection.diagnose` says over a sweep of gamma and C, and whether it is right.

    python benches/inspection/diagnosis.py --json docs/benchmarks/diagnosis.json

On each set, at most 1,200 standardized training samples, an SVC is fitted for gamma from 1/1,000 to 1,000
times "scale" and C from .01 to 10,000. A finding is right where the error on at most 2,000 other samples is
more than one point above the lowest of the sweep; its advice helps where the fit that it names is more than
one point better.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC
from svmarrow.inspection import diagnose

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "papers"))
from promises import MACHINES, NUMBERS, all_rows

#: Powers of ten: of gamma in units of "scale", and of C.
GAMMAS, CS = np.arange(-3.0, 3.01, 0.5), range(-2, 5)
MAX_TRAIN, MAX_TEST = 1_200, 2_000
MORE = ("segment", "vowel")
#: The beginning of a finding, the rule that it follows, and the step (gamma, C) in powers of ten that it
#: advises.
RULES = {
    "too large": ("gamma is too large", (-2.0, 0)),
    "too small for": ("gamma is too small", (1.0, 0)),
    "at C. Try C": ("C is too small: vectors at C", (0.0, 2)),
    "training error": ("C is too small: training error", (0.0, 2)),
}


def sweep(name: str) -> list[dict[str, Any]]:
    """All fits of a set."""
    X, y = all_rows(name)
    X = X.toarray() if hasattr(X, "toarray") else X
    order = np.random.default_rng(0).permutation(len(y))
    n = min(MAX_TRAIN, 2 * len(y) // 3)
    train, test = order[:n], order[n : n + MAX_TEST]
    scaler = StandardScaler().fit(X[train])
    A, B = scaler.transform(X[train]), scaler.transform(X[test])
    scale = 1.0 / (A.shape[1] * A.var())
    found = []
    for gamma in GAMMAS:
        for C in CS:
            svc = SVC(C=10.0**C, gamma=scale * 10.0**gamma, max_time=5, multi_class="ovr").fit(A, y[train])
            finding = diagnose(svc, A, y[train]).finding
            error = 1.0 - float(svc.score(B, y[test]))
            found.append({"gamma": float(gamma), "C": C, "error": error, "finding": finding})
    return found


def judged(sets: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """How often each rule speaks, is right, and helps."""
    rules = {name: {"fits": 0, "right": 0, "followed": 0, "better": 0} for name, _ in RULES.values()}
    silent, silent_near = 0, 0
    for fits in sets.values():
        errors = {(fit["gamma"], fit["C"]): fit["error"] for fit in fits}
        least = min(errors.values())
        for fit in fits:
            far = fit["error"] > least + 0.01
            if not fit["finding"]:
                silent += 1
                silent_near += not far
                continue
            name, (gamma, C) = next(rule for words, rule in RULES.items() if words in fit["finding"])
            counts = rules[name]
            counts["fits"] += 1
            counts["right"] += far
            advised = errors.get((fit["gamma"] + gamma, fit["C"] + C))
            if advised is not None:
                counts["followed"] += 1
                counts["better"] += advised < fit["error"] - 0.01
    return {"rules": rules, "silent": silent, "silent within a point": silent_near}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(os.environ.get("SVMARROW_DATA", "../shared/data"))
    names = sorted(
        name for name in (*MACHINES, *MORE) if name not in (*NUMBERS, "mnist", "news20_bydate", "a9a", "w8a")
    )
    sets = {}
    for name in names:
        if not (folder / f"{name}.npz").exists():
            print(f"{name}: not in {folder}, left out")
            continue
        sets[name] = sweep(name)
        print(name, flush=True)
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True)
    written = {
        "commit": commit.strip(),
        "command": " ".join(["python", "benches/inspection/diagnosis.py", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "sets": list(sets),
        **judged(sets),
    }
    print(json.dumps(written, indent=1))
    if options.json:
        options.json.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
