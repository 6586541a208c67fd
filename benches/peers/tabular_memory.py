"""Memory of the models of the suite tabular: how much a fit and the predictions add to a process.

    python benches/peers/tabular_memory.py --json docs/benchmarks/tabular_memory.json
    python benches/peers/tabular_memory.py --sets letter --sizes 1000 --engines svmarrow.Tabular* CatBoost

Each model is fitted on the first split of a set, in a process of its own, after a fit to 100 samples, which
loads libraries and starts threads. The figure is the largest resident size of the process above that before
the fit. Linux alone tells it; models that are not installed are named and left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import report
from process import say
from worker import forget_peak, memory_bytes

import tabular

SETS, SIZES = ("cal_housing", "letter"), (1000, 5000, 20_000)
ENGINES = (
    tabular.OURS,
    tabular.BOOSTING,
    tabular.CATBOOST,
    tabular.LIGHTGBM,
    tabular.XGBOOST,
    "random forest",
    "extra trees",
)
#: Samples of the fit before.
WARM_UP = 100


def megabytes(name: str, n: int, engine: str) -> float | None:
    """Returns what a fit and predictions add to this process; None for a model that is not here."""
    parts = tabular.split_of(name, n, 0)
    assert parts is not None
    X, y, X_test, _ = parts
    classify = name not in tabular.REGRESSION
    models = [tabular.engines(classify, X.shape[1], [engine]).get(engine) for _ in range(2)]
    if None in models:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models[0].fit(X[:WARM_UP], y[:WARM_UP]).predict(X_test[:WARM_UP])
        forget_peak()
        before = memory_bytes("VmRSS")
        models[1].fit(X, y).predict(X_test)
    return max(0, memory_bytes() - before) / 2.0**20


def main() -> int:
    """Measures every model of every set and size; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS, help="sets of the suite tabular")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="training samples")
    parser.add_argument("--engines", nargs="+", default=ENGINES, help="models of the suite tabular")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--one", nargs=3, metavar=("SET", "SIZE", "ENGINE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, n, engine = options.one
        print(json.dumps(megabytes(name, int(n), engine)))
        return 0
    record: dict[str, Any] = {
        "commit": report.commit(),
        "command": " ".join(["python", "benches/peers/tabular_memory.py", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": report.machine(),
        "memory": [],
    }
    for name in options.sets:
        for n in options.sizes:
            parts = tabular.split_of(name, n, 0)
            if parts is None:
                say(f"SKIPPED {name} with {n} samples: no file, or too few samples")
                continue
            found: dict[str, float] = {}
            for engine in options.engines:
                command = [sys.executable, __file__, "--one", name, str(n), engine]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                added = json.loads(done.stdout.splitlines()[-1])
                if added is None:
                    say(f"SKIPPED {engine}: it is not installed")
                else:
                    found[engine] = added
                    print(f"{name}, {len(parts[0])} samples, {engine}: {added:.0f} MB")
            record["memory"].append({"set": name, "samples": len(parts[0]), "megabytes": found})
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
