"""Rules that choose the size of a matching pursuit, on 14 sets: test errors beside the best size of the path.

    python benches/matching_pursuit/sizes.py --json docs/benchmarks/pursuit_sizes.json

Standardized columns, gamma = "scale", at most 300 vectors and half of the samples. Errors are percent of
wrong labels, or the root of the mean squared error of the standardized target, on at most 3,000 others. The
best size is chosen by these samples: no rule can know it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from svmarrow import KMPClassifier, KMPRegressor

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from tabular import REGRESSION, split_of

SETS = (
    *("airfoil", "concrete", "kin8nm", "abalone", "wine", "cpu_act", "skillcraft", "energy"),
    *("ratsch_german", "ratsch_image", "magic", "pima_diabetes", "segment", "yeast"),
)
RULES: dict[str, dict[str, Any]] = {
    "generalized cross-validation": {"early_stopping": "gcv"},
    "five folds": {"early_stopping": True, "cv": 5},
    "a tenth held out": {"early_stopping": True},
    "all vectors": {},
}
MAX_VECTORS = 300


def measured(name: str, n: int, split: int) -> dict[str, dict[str, float]]:
    """The error and the number of vectors by rule; those of the best size under "best"."""
    parts = split_of(name, n, split)
    assert parts is not None
    X, y, X_test, y_test = parts
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    kind: Any = KMPRegressor if name in REGRESSION else KMPClassifier
    settings = {"n_vectors": min(MAX_VECTORS, len(X) // 2), "random_state": 0}

    def error(model: Any) -> float:
        answers = model.predict(X_test)
        if name in REGRESSION:
            return float(np.sqrt(np.mean((answers - y_test) ** 2)))
        return 100.0 * float(np.mean(answers != y_test))

    found = {}
    for rule, options in RULES.items():
        model = kind(**settings, **options).fit(X, y)
        found[rule] = {"error": error(model), "vectors": float(model.n_vectors_)}
    errors = [error(model.path_[size]) for size in range(1, model.n_vectors_ + 1)]
    found["best"] = {"error": min(errors), "vectors": float(np.argmin(errors) + 1)}
    return found


def main() -> None:
    """Measures all sets and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", nargs="+", type=int, default=[600, 1000])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    runs = [
        {"set": name, "samples": n, "split": split, "rules": measured(name, n, split)}
        for n in options.samples
        for name in SETS
        for split in range(options.splits)
    ]
    for rule in RULES:
        ratios = [run["rules"][rule]["error"] / run["rules"]["best"]["error"] for run in runs]
        vectors = np.mean([run["rules"][rule]["vectors"] for run in runs])
        print(f"{rule}: {np.exp(np.mean(np.log(ratios))):.3f} times the least error, {vectors:.0f} vectors")
    if options.json is not None:
        record = {
            "commit": git.stdout.strip(),
            "command": f"python benches/matching_pursuit/sizes.py {' '.join(sys.argv[1:])}",
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": {
                "processor": platform.processor() or platform.machine(),
                "processors": os.cpu_count(),
            },
            "runs": runs,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
