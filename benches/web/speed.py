"""The engine in Node.js beside the scalar and the AVX2 level in Python: fits, samples, bytes of the module.

    web/build && python benches/web/speed.py --json docs/benchmarks/browser.json

Every run is on one core, one after the other. Each number is the median of repeated runs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DIST = ROOT / "web" / "dist"
LEVELS = ("scalar", "avx2")
SAMPLES = 5000


def workloads() -> list[dict[str, Any]]:
    """Small problems of the playground's kind and a larger one, as lists for JSON."""
    rng = np.random.default_rng(20260)

    def problem(name: str, estimator: str, shape: tuple[int, int], **options: Any) -> dict[str, Any]:
        X = rng.uniform(-1, 1, shape)
        f = np.sin(3 * X[:, 0]) + X[:, 1:].sum(axis=1) / np.sqrt(shape[1])
        y = f + 0.2 * rng.standard_normal(len(f))
        return {
            "name": name,
            "estimator": estimator,
            "X": X.tolist(),
            "y": y.tolist() if estimator.endswith(("R", "Regressor")) else (y > 0).astype(int).tolist(),
            "options": options,
            "samples": rng.uniform(-1, 1, (SAMPLES, shape[1])).tolist(),
        }

    return [
        problem("SVC, RBF", "SVC", (300, 2), C=10, gamma=2.0),
        problem("SVC, Matérn 3/2", "SVC", (300, 2), C=10, kernel="matern32", gamma=1.0),
        problem("SVC, polynomial", "SVC", (300, 4), C=1, kernel="poly", gamma=0.5, coef0=1.0),
        problem("SVR, RBF", "SVR", (300, 2), C=10, gamma=2.0, epsilon=0.1),
        problem("RLSRegressor, RBF", "RLSRegressor", (300, 2), alpha=0.1, gamma=2.0),
        problem("SVC, RBF", "SVC", (2000, 16), C=10, gamma=0.2),
    ]


def seconds(work: Any, repeats: int) -> float:
    """Returns the median of the seconds of a call."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure_python(calls: list[dict[str, Any]], repeats: int) -> dict[str, Any]:
    """Times this process, whose level the environment sets."""
    import svmarrow
    from svmarrow import _core

    results = []
    for call in calls:
        X, y, samples = (np.array(call[name]) for name in ("X", "y", "samples"))
        estimator = getattr(svmarrow, call["estimator"])(**call["options"], n_jobs=1)
        model = estimator.fit(X, y)
        results.append(
            {
                "n_vectors": svmarrow.as_expansion(model).expansion_.n_vectors,
                "fit": seconds(lambda estimator=estimator, X=X, y=y: estimator.fit(X, y), repeats),
                "predict": seconds(lambda model=model, samples=samples: model.predict(samples), repeats),
            }
        )
    return {"level": _core.simd_level(), "results": results}


def run(command: list[str], text: str, **environment: str) -> Any:
    """Runs a program on one core and returns the JSON that it writes."""
    done = subprocess.run(
        ["taskset", "-c", "0", *command],
        input=text, capture_output=True, text=True, check=True, env={**os.environ, **environment},
    )  # fmt: skip
    return json.loads(done.stdout)


def processor() -> str:
    """Returns the name of the processor."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main() -> None:
    """Measures, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--python", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.python:
        print(json.dumps(measure_python(json.load(sys.stdin), arguments.repeats)))
        return
    calls = workloads()
    module = DIST / "svmarrow.wasm"
    script = DIST / "svmarrow.js"
    task = {"module": str(module), "script": str(script), "calls": calls, "repeats": arguments.repeats}
    node = run(["node", str(HERE / "speed.mjs")], json.dumps(task))
    own = [sys.executable, __file__, "--python", "--repeats", str(arguments.repeats)]
    levels = {level: run(own, json.dumps(calls), SVMARROW_SIMD=level) for level in LEVELS}
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    found = {
        "about": {
            "command": "python benches/web/speed.py --json docs/benchmarks/browser.json",
            "commit": commit,
            "date": datetime.now(UTC).date().isoformat(),
            "processor": processor(),
            "node": node["node"],
        },
        "module": {"bytes": module.stat().st_size, "compressed": len(gzip.compress(module.read_bytes(), 9))},
        "script": {"bytes": script.stat().st_size, "compressed": len(gzip.compress(script.read_bytes(), 9))},
        "samples": SAMPLES,
        "workloads": [
            {
                "name": call["name"],
                "shape": [len(call["X"]), len(call["X"][0])],
                "n_vectors": node["results"][i]["n_vectors"],
                "runs": {
                    name: {
                        "fit_ms": 1e3 * result["fit"],
                        "predict_us": 1e6 * result["predict"] / SAMPLES,
                    }
                    for name, result in [
                        ("node", node["results"][i]),
                        *((levels[level]["level"], levels[level]["results"][i]) for level in LEVELS),
                    ]
                },
            }
            for i, call in enumerate(calls)
        ],
    }
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    if arguments.json:
        arguments.json.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
