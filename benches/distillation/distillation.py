"""Distillation of random forests, boosted trees and neural networks: what students lose, weigh and take.

    python benches/distillation/distillation.py [--sets NAME ...] [--splits 5]
        [--json docs/benchmarks/distillation.json]

Runs that the JSON file already has are kept, so that a run that was interrupted continues; each of them names
its commit. At the end the tables of the guide are printed, with ``--splits 0`` of the file alone.

Ten sets, five random splits of at most 8,000 samples: 50 % to train the teacher and to learn from, 20 % held
out for the choice and the bound, 30 % to test. One call of `compress` with ``max_loss=0.01`` makes students
of 8 to 512 vectors; each of them is scored on the test samples. The bound of the chosen one holds if its loss
on the test samples is at most `loss_bound_.upper`, and the same for the agreement. Microseconds a sample are
those of all test samples in one call on one thread (C: one after the other), kB those of the pickled teacher
and of the student's file.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import subprocess
import tempfile
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import sklearn
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import svmarrow
from svmarrow.exceptions import SizeWarning
from svmarrow.export import to_c, to_onnx

DATA = Path(os.environ.get("SVMARROW_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
CLASSES = ("ratsch_german", "ratsch_image", "magic", "page_blocks", "satimage", "letter")
NUMBERS = ("cal_housing", "cpu_act", "kin8nm", "pol")
MAX_SAMPLES = 8000
TEACHERS = ("random forest", "HistGradientBoosting", "MLP")
MAX_LOSS = 0.01


def samples(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All samples of a set."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        X, y = file["X"].astype(float), file["y"]
        if "X_test" in file and len(X) < MAX_SAMPLES:
            X, y = np.vstack([X, file["X_test"].astype(float)]), np.concatenate([y, file["y_test"]])
    return X, y


def teacher_of(kind: str, numbers: bool, seed: int) -> object:
    """An estimator that is not fitted."""
    if kind == "random forest":
        forest = RandomForestRegressor if numbers else RandomForestClassifier
        return forest(100, random_state=seed, n_jobs=1)
    if kind == "HistGradientBoosting":
        boosting = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
        return boosting(random_state=seed)
    network = MLPRegressor if numbers else MLPClassifier
    layers = {"hidden_layer_sizes": (100, 100), "early_stopping": True, "max_iter": 200}
    return make_pipeline(StandardScaler(), network(**layers, random_state=seed))


def micros(work, n: int, seconds: float = 0.1) -> float:
    """Microseconds a sample, the least of several calls."""
    work()
    times: list[float] = []
    while len(times) < 3 or sum(times) < seconds:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / n


C_LOOP = """#include <stdio.h>
#include <time.h>
#include "model.h"
static float rows[{n}][{d}];
static double answers[{n}];
int main(int argc, char **argv) {{
    FILE *file = fopen(argv[1], "rb");
    struct timespec a, b;
    double least = 1e9;
    (void)argc;
    if (fread(rows, sizeof rows, 1, file) != 1) return 1;
    for (int turn = 0; turn < 3; ++turn) {{
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < {n}; ++i) answers[i] = p_predict(rows[i]);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double took = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        least = took < least ? took : least;
    }}
    printf("%.9g\\n", 1e6 * least / {n});
    for (int i = 0; i < {n}; ++i) printf("%.9g\\n", answers[i]);
    return 0;
}}
"""


def in_c(model: object, X: np.ndarray) -> tuple[float, np.ndarray]:
    """Microseconds a sample in C and the answers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.h").write_text(to_c(model, prefix="p").text)
        (folder / "main.c").write_text(C_LOOP.format(n=len(X), d=X.shape[1]))
        np.ascontiguousarray(X, np.float32).tofile(folder / "rows")
        subprocess.run(
            ["gcc", "-std=gnu99", "-O2", folder / "main.c", "-o", folder / "main", "-lm"],
            check=True,
            timeout=120,
        )
        done = subprocess.run(
            [folder / "main", folder / "rows"], capture_output=True, text=True, check=True, timeout=120
        )
    lines = done.stdout.split()
    return float(lines[0]), np.array(lines[1:], dtype=float)


def in_onnx(model: object, X: np.ndarray) -> tuple[float, np.ndarray]:
    """Microseconds a sample in onnxruntime and the answers."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    made = to_onnx(model, dtype="float32").SerializeToString()
    session = onnxruntime.InferenceSession(made, options)
    rows = np.ascontiguousarray(X, np.float32)
    output = session.get_outputs()[0].name
    answers = session.run([output], {"X": rows})[0]
    return micros(lambda: session.run([output], {"X": rows}), len(rows)), np.asarray(answers).reshape(-1)


def kilobytes(model: object) -> float:
    """Size of a student's file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        svmarrow.save(model, file)
        return file.stat().st_size / 1000


def run(name: str, kind: str, split: int) -> dict:
    """One teacher on one split."""
    numbers = name in NUMBERS
    X, y = samples(name)
    chosen = np.random.default_rng(split).permutation(len(X))[:MAX_SAMPLES]
    X, y = X[chosen], y[chosen]
    first, last = int(0.5 * len(X)), int(0.7 * len(X))
    train, held, test = ((X[part], y[part]) for part in (slice(first), slice(first, last), slice(last, None)))
    X_test, y_test = test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        teacher = teacher_of(kind, numbers, split).fit(*train)
    scoring = "r2" if numbers else "accuracy"
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SizeWarning)
        made: dict[int, object] = {}
        students = svmarrow.distillation.students.Student
        original = students.model

        def keep(self, size):
            made[size] = original(self, size)
            return made[size]

        students.model = keep
        small = svmarrow.distil(
            teacher, *train, validation=held, max_loss=MAX_LOSS, scoring=scoring, random_state=split
        )
        students.model = original
    seconds = time.perf_counter() - started
    wanted = teacher.predict(X_test)

    def score(answers: np.ndarray, targets: np.ndarray) -> float:
        if not numbers:
            return float(np.mean(answers == targets))
        return 1.0 - float(((answers - targets) ** 2).sum() / ((targets - targets.mean()) ** 2).sum())

    curve = []
    for size in sorted(made, reverse=True):
        answers = made[size].predict(X_test)
        curve.append(
            {
                "n_vectors": size,
                "score": round(score(answers, y_test), 5),
                "agreement": round(score(answers, wanted), 5),
                "kB": round(kilobytes(made[size]), 2),
            }
        )
    bound = small.loss_bound_
    teacher_score, answers = score(wanted, y_test), small.predict(X_test)
    loss, agreement = teacher_score - score(answers, y_test), score(answers, wanted)
    small.set_params(n_jobs=1)
    with threadpool_limits(1):
        times = {
            "teacher": micros(lambda: teacher.predict(X_test), len(X_test)),
            "python": micros(lambda: small.predict(X_test), len(X_test)),
        }
    times["onnx"], of_onnx = in_onnx(small, X_test)
    times["c"], of_c = in_c(small, X_test)
    if not numbers:
        of_c = small.classes_[of_c.astype(int)]
    return {
        "set": name,
        "teacher": kind,
        "split": split,
        "n_vectors": small.expansion_.n_vectors,
        "reached": not any(issubclass(w.category, SizeWarning) for w in caught),
        "teacher_score": round(teacher_score, 5),
        "loss": round(loss, 5),
        "bound": round(bound.upper, 5),
        "bound_held": bool(loss <= bound.upper),
        "agreement": round(agreement, 5),
        "min_agreement": round(bound.min_agreement, 5),
        "agreement_held": bool(agreement >= bound.min_agreement),
        "teacher_kB": round(len(pickle.dumps(teacher)) / 1000, 1),
        "kB": round(kilobytes(small), 2),
        "microseconds": {key: round(value, 3) for key, value in times.items()},
        "onnx_agrees": round(score(of_onnx, answers), 5),
        "c_agrees": round(score(of_c, answers), 5),
        "seconds": round(seconds, 1),
        "curve": curve,
    }


def print_tables(runs: list[dict]) -> None:
    """Prints the losses by size, the number of bounds that held, and medians by teacher, in Markdown."""
    for size in sorted({point["n_vectors"] for run in runs for point in run["curve"]}, reverse=True):
        losses = [
            run["teacher_score"] - point["score"]
            for run in runs
            for point in run["curve"]
            if point["n_vectors"] == size
        ]
        if len(losses) == len(runs):
            reached = sum(loss <= MAX_LOSS for loss in losses)
            quantiles = np.quantile(losses, [0.5, 0.9])
            print(f"| {size} | {quantiles[0]:.3f} | {quantiles[1]:.3f} | {reached} of {len(losses)} |")
    for kind in ("bound_held", "agreement_held"):
        print(f"{kind}: {sum(run[kind] for run in runs)} of {len(runs)}")
    for kind in TEACHERS:
        of_kind = [run for run in runs if run["teacher"] == kind]
        timed = [run["microseconds"] for run in of_kind if "microseconds" in run]
        columns = [f"{sum(run['reached'] for run in of_kind)} of {len(of_kind)}"]
        columns += [f"{np.median([r[key] for r in of_kind]):.3f}" for key in ("loss", "agreement")]
        columns += [
            f"{np.median([r[key] for r in of_kind]):,.1f}" for key in ("n_vectors", "teacher_kB", "kB")
        ]
        columns += [f"{np.median([t[key] for t in timed]):.2f}" for key in ("teacher", "python", "onnx", "c")]
        print(f"| {kind} | {' | '.join(columns)} |")


def cpu() -> str:
    """Name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main() -> None:
    """Runs what is asked for and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=[*CLASSES, *NUMBERS])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--teachers", nargs="*", default=list(TEACHERS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    )
    table = {
        "command": "python benches/distillation/distillation.py --json docs/benchmarks/distillation.json",
        "cpu": cpu(),
        "versions": {"scikit-learn": sklearn.__version__, "svmarrow": svmarrow.__version__},
        "runs": [],
    }
    if options.json and options.json.exists():
        table["runs"] = json.loads(options.json.read_text(encoding="utf-8"))["runs"]
    known = {(row["set"], row["teacher"], row["split"]) for row in table["runs"]}
    for split in range(options.splits):
        for name in options.sets:
            for kind in options.teachers:
                if (name, kind, split) in known:
                    continue
                row = run(name, kind, split)
                row |= {"commit": commit.stdout.strip(), "date": datetime.now(UTC).date().isoformat()}
                table["runs"].append(row)
                about = {
                    key: row[key] for key in ("n_vectors", "teacher_score", "loss", "bound", "agreement")
                }
                print(name, kind, split, about, f"{row['seconds']} s", flush=True)
                if options.json:
                    options.json.write_text(json.dumps(table, indent=1) + "\n")
    print_tables(table["runs"])


if __name__ == "__main__":
    main()
