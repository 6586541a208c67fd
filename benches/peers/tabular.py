"""Tables: `TabularClassifier` and `TabularRegressor` beside tree ensembles and plain kernel machines.

All have their defaults; plain least squares has standardised columns, and its bandwidth and penalty by
leave-one-out errors. Training samples are drawn again for each split, at most 70 % of a set; up to 3,000
others test. Errors are percent of wrong labels, or the root of the mean squared error of the standardised
target. Every model is fitted in this process, one after the other.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import data
import numpy as np
from sklearn import datasets
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC, SVR, RLSClassifier, RLSRegressor, TabularClassifier, TabularRegressor

if TYPE_CHECKING:
    from collections.abc import Iterator

REGRESSION = (
    *("abalone", "airfoil", "bank32nh", "cal_housing", "concrete", "cpu_act", "energy", "kin8nm"),
    *("parkinsons", "pol", "skillcraft", "sml", "wine"),
)
CLASSIFICATION = (
    *("ratsch_german", "ratsch_image", "ratsch_waveform", "magic", "page_blocks", "segment", "letter"),
    *("satimage", "sonar", "pima_diabetes", "ionosphere", "yeast", "vowel", "digits", "breast_cancer"),
)
SETS = (*REGRESSION, *CLASSIFICATION)
QUICK = ("sonar", "energy")
SIZES, MAX_TEST = (1000, 500), 3000
OURS = "svmarrow.Tabular*"
BOOSTING = "HistGradientBoosting"
PLAIN = "least squares"
HEADINGS = [
    "set",
    "samples",
    *(f"{name}" for name in (OURS, PLAIN, "SVM", BOOSTING, "random forest", "extra trees")),
]


class PlainLeastSquares:
    """Standardised columns, one bandwidth and penalty by leave-one-out errors."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def fit(self, X: np.ndarray, y: np.ndarray) -> PlainLeastSquares:
        """Searches the bandwidth by factors of 4."""
        self.scaler = StandardScaler().fit(X)
        rows = self.scaler.transform(X)
        alphas = 10.0 ** np.arange(-5, 2, 0.5)
        widths = 2.0 ** np.arange(-5, 4, 2) / X.shape[1]
        models = [self.kind(alphas=alphas, gamma=g, fit_intercept=True).fit(rows, y) for g in widths]
        self.model = min(models, key=lambda model: model.loo_error_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicts."""
        return self.model.predict(self.scaler.transform(X))


def engines(classify: bool) -> dict[str, Any]:
    """The models by name."""
    return {
        OURS: (TabularClassifier if classify else TabularRegressor)(),
        PLAIN: PlainLeastSquares(RLSClassifier if classify else RLSRegressor),
        "SVM": make_pipeline(StandardScaler(), (SVC if classify else SVR)()),
        BOOSTING: (HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor)(
            random_state=0
        ),
        "random forest": (RandomForestClassifier if classify else RandomForestRegressor)(random_state=0),
        "extra trees": (ExtraTreesClassifier if classify else ExtraTreesRegressor)(random_state=0),
    }


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None] | None:
    """Samples, targets, and test samples if their distribution is another one; None without the file."""
    if name in ("digits", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return X, y, None
    path = data.folder() / f"{name}.npz"
    if not path.is_file():
        return None
    held = np.load(path)
    X, y = held["X_onehot" if name == "abalone" else "X"].astype(float), held["y"]
    if "X_test" not in held:
        return X, y, None
    if name == "vowel":  # other speakers
        return X, y, (held["X_test"].astype(float), held["y_test"])
    return np.vstack([X, held["X_test"]]).astype(float), np.concatenate([y, held["y_test"]]), None


def split_of(name: str, n: int, split: int) -> tuple[np.ndarray, ...] | None:
    """Training and test samples of a split."""
    found = rows_of(name)
    if found is None:
        return None
    X, y, test = found
    order = np.random.RandomState(split).permutation(len(X))
    if test is not None:
        return X[order[:n]], y[order[:n]], *test
    size = min(n, int(0.7 * len(X)))
    train, rest = order[:size], order[size : size + MAX_TEST]
    if name in REGRESSION:
        y = (y - y[train].mean()) / y[train].std()
    else:
        rest = rest[np.isin(y[rest], y[train])]
    return X[train], y[train], X[rest], y[rest]


def run(name: str, n: int, splits: int) -> dict[str, Any] | None:
    """Errors and seconds of all engines on some splits of a set."""
    classify = name in CLASSIFICATION
    found: dict[str, Any] = {"set": name, "samples": n, "classify": classify, "engines": {}}
    for split in range(splits):
        parts = split_of(name, n, split)
        if parts is None:
            return None
        X, y, X_test, y_test = parts
        found["training samples"] = len(X)
        for engine, model in engines(classify).items():
            cell = found["engines"].setdefault(engine, {"error": [], "seconds": []})
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers = model.fit(X, y).predict(X_test)
            cell["seconds"].append(time.perf_counter() - start)
            wrong = (
                100.0 * np.mean(answers != y_test) if classify else np.sqrt(np.mean((answers - y_test) ** 2))
            )
            cell["error"].append(float(wrong))
    return found


def line(result: dict[str, Any]) -> list[str]:
    """A row of the table: mean errors, seconds in brackets."""
    cells = []
    for engine in HEADINGS[2:]:
        cell = result["engines"][engine]
        digits = 1 if result["classify"] else 3
        cells.append(f"{np.mean(cell['error']):.{digits}f} ({np.mean(cell['seconds']):.1f})")
    return [result["set"], str(result["training samples"]), *cells]


def summary(results: list[dict[str, Any]]) -> Iterator[str]:
    """What the targets are about, for each number of training samples."""
    for n in sorted({result["samples"] for result in results}):
        of = [result for result in results if result["samples"] == n]

        def mean(result: dict[str, Any], engine: str) -> float:
            return float(np.mean(result["engines"][engine]["error"]))

        ahead = [mean(one, OURS) < mean(one, BOOSTING) for one in of]
        level = []
        for one in of:
            apart = np.subtract(one["engines"][OURS]["error"], one["engines"][BOOSTING]["error"])
            level.append(
                apart.mean() <= apart.std(ddof=1) / np.sqrt(apart.size) if apart.size > 1 else ahead[0]
            )
        ratios = [mean(one, OURS) / mean(one, PLAIN) for one in of]
        worst = int(np.argmax(ratios))
        yield (
            f"{n} samples, {len(of)} sets: ahead of {BOOSTING} on {100 * np.mean(ahead):.0f} %, "
            f"ahead or level within a standard error on {100 * np.mean(level):.0f} %; "
            f"error relative to plain least squares: median {np.median(ratios):.3f}, "
            f"worst {ratios[worst]:.3f} ({of[worst]['set']})"
        )
