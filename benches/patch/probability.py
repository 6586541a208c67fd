"""Probabilities of classes: the drop-in replacement's beside scikit-learn's SVC and CalibratedClassifierCV.

    python benches/patch/probability.py [--quick] [--out docs/benchmarks/probability.json]

Five sets, standardised, C = 10, gamma = "scale", seeds 0 to 2: log loss and Brier score on test rows, the
share of test rows whose most probable class is not the predicted one, seconds to fit and to predict.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import svmarrow
from svmarrow.patch import svm as replacements

DATA = Path(os.environ.get("SVMARROW_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SETS = ("pima_diabetes", "yeast", "page_blocks", "satimage", "letter")


def rows(name: str, seed: int) -> tuple[np.ndarray, ...]:
    """Training and test rows and labels, standardised with the training rows."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        X, y = file["X"].astype(float), file["y"]
        if "X_test" in file:
            parts = X, file["X_test"].astype(float), y, file["y_test"]
        else:
            parts = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(parts[0])
    return scaler.transform(parts[0]), scaler.transform(parts[1]), parts[2], parts[3]


def contestants(seed: int) -> dict[str, object]:
    """What gives probabilities, by name."""
    common = {"C": 10.0, "random_state": seed}
    return {
        "svmarrow": replacements.SVC(probability=True, **common),
        "scikit-learn": svm.SVC(probability=True, **common),
        "CalibratedClassifierCV": CalibratedClassifierCV(svm.SVC(**common), ensemble=False),
        "CalibratedClassifierCV, svmarrow": CalibratedClassifierCV(svmarrow.SVC(C=10.0), ensemble=False),
    }


def judged(model: object, X: np.ndarray, X_test: np.ndarray, y: np.ndarray, y_test: np.ndarray) -> dict:
    """Scores and times of one."""
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    p = model.predict_proba(X_test)
    done = time.perf_counter()
    machine = (
        model.calibrated_classifiers_[0].estimator if hasattr(model, "calibrated_classifiers_") else model
    )
    predicted = machine.predict(X_test)
    hot = (y_test[:, None] == model.classes_).astype(float)
    return {
        "log_loss": log_loss(y_test, p, labels=model.classes_),
        "brier": float(((p - hot) ** 2).sum(axis=1).mean()),
        "disagree": float((model.classes_[p.argmax(axis=1)] != predicted).mean()),
        "error": float((predicted != y_test).mean()),
        "error_of_most_probable": float((model.classes_[p.argmax(axis=1)] != y_test).mean()),
        "fit_seconds": fitted - start,
        "predict_proba_seconds": done - fitted,
    }


def main() -> None:
    """Measure, print a table, keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the two small sets, one seed")
    parser.add_argument("--only", nargs="*", default=[], help="contestants")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--note", default="", help="about the machine, to be kept with the numbers")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for name in SETS[:2] if asked.quick else SETS:
        # Where the rows are split by their makers the seed only deals the folds.
        for seed in range(1 if asked.quick else 3):
            parts = rows(name, seed)
            for who, model in contestants(seed).items():
                if not asked.only or who in asked.only:
                    found.append({"set": name, "seed": seed, "who": who} | judged(model, *parts))
        for who in contestants(0):
            mine = [run for run in found if (run["set"], run["who"]) == (name, who)]
            if mine:
                means = {
                    key: np.mean([run[key] for run in mine])
                    for key in mine[0]
                    if key not in ("set", "seed", "who")
                }
                print(
                    f"{name:14} {who:33}", *(f"{key} {value:.4f}" for key, value in means.items()), flush=True
                )
    if asked.out:
        for run in found:
            run.update({key: round(value, 6) for key, value in run.items() if isinstance(value, float)})
        about = {
            "command": "python benches/patch/probability.py",
            "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
            "note": asked.note,
            "versions": {"scikit-learn": sklearn.__version__, "svmarrow": svmarrow.__version__},
        }
        asked.out.write_text(json.dumps(about | {"runs": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
