"""Coverage and width of prediction intervals, and the pinball loss of quantiles, on ten regression sets.

    python benches/inspection/intervals.py --output docs/benchmarks/intervals.json

Data: the sets of ``SVMARROW_DATA`` (or ``../shared/data`` beside the repository). Each split draws at most
800 training and 2,000 test samples, features and target standardised by the training samples. alpha and gamma
of least squares are those of the smallest leave-one-out error; the same model is wrapped by MAPIE (CV+, five
folds), and the Gaussian process has the same kernel with noise and signal variance by maximum likelihood.
Quantiles are compared on the first split: `QuantileSVRCV` for each quantile, gradient boosting, and
scikit-learn's `QuantileRegressor` on 200 Nystroem features; and, where ``SVMARROW_LIQUIDSVM`` names a Python
that has it, liquidSVM, which chooses its parameters itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from mapie.regression import CrossConformalRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.pipeline import make_pipeline

from svmarrow import SVR, RLSRegressor
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.svm import QuantileSVR

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "papers"))

from common import load, place

SETS = (
    *("abalone", "kin8nm", "cpu_act", "cal_housing", "bank32nh"),
    *("airfoil", "concrete", "parkinsons", "skillcraft", "sml"),
)
COVERAGE, MAX_TRAIN, MAX_TEST = 0.9, 800, 2000
QUANTILES = (0.1, 0.5, 0.9)


def split_of(name: str, split: int, max_train: int = MAX_TRAIN) -> tuple[np.ndarray, ...]:
    """Training and test samples and targets, standardised by the training samples."""
    X, y = load(name).all()
    y = np.asarray(y, dtype=np.float64)
    order = np.random.default_rng(split).permutation(y.size)
    n = min(max_train, int(0.7 * y.size))
    train, test = order[:n], order[n : n + MAX_TEST]
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    y = (y - y[train].mean()) / y[train].std()
    return X[train], y[train], X[test], y[test]


def tuned(X: np.ndarray, y: np.ndarray) -> RLSRegressor:
    """Least squares with the alpha and gamma of the smallest leave-one-out error."""
    models = [
        RLSRegressor(alphas=np.geomspace(1e-3, 10.0, 9), gamma=scale / X.shape[1], fit_intercept=True).fit(
            X, y
        )
        for scale in (0.03, 0.1, 0.3, 1.0)
    ]
    best = min(models, key=lambda model: float(np.min(model.loo_errors_)))
    return RLSRegressor(best.alpha_, gamma=best.gamma, fit_intercept=True)


def about(low: Any, high: Any, y: np.ndarray, seconds: float) -> dict[str, float]:
    """The coverage, the mean width and the time of intervals."""
    inside = float(np.mean((low <= y) & (y <= high)))
    return {"coverage": inside, "width": float(np.mean(high - low)), "seconds": seconds}


def intervals(name: str, split: int) -> dict[str, Any]:
    """The intervals of the three methods on one split."""
    X, y, X_test, y_test = split_of(name, split)
    model = tuned(X, y)
    found: dict[str, Any] = {"set": name, "split": split, "train": len(y), "test": len(y_test)}
    start = time.perf_counter()
    low, high = model.fit(X, y).predict_interval(X_test, COVERAGE).T
    found["jackknife+"] = about(low, high, y_test, time.perf_counter() - start)
    start = time.perf_counter()
    wrapped = CrossConformalRegressor(model, confidence_level=COVERAGE, cv=5).fit_conformalize(X, y)
    ends = wrapped.predict_interval(X_test)[1][:, :, 0]
    found["MAPIE CV+"] = about(ends[:, 0], ends[:, 1], y_test, time.perf_counter() - start)
    start = time.perf_counter()
    kernel = ConstantKernel() * RBF((0.5 / model.gamma) ** 0.5, "fixed") + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, random_state=0).fit(X, y)
    mean, std = process.predict(X_test, return_std=True)
    found["Gaussian process"] = about(
        mean - 1.6449 * std, mean + 1.6449 * std, y_test, time.perf_counter() - start
    )
    return found


def scores_of(y: np.ndarray, predicted: Any, seconds: float) -> dict[str, Any]:
    """The mean pinball loss, the shares of samples below each quantile and the time."""
    losses = [mean_pinball_loss(y, p, alpha=q) for q, p in zip(QUANTILES, predicted, strict=True)]
    below = [float(np.mean(y < p)) for p in predicted]
    return {"pinball": float(np.mean(losses)), "below": below, "seconds": seconds}


def liquid(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> tuple[Any, float]:
    """The quantiles of liquidSVM and its time, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/problem.npz", f"{folder}/predictions.npz"]
        np.savez(paths[0], X=X, y=y, X_test=X_test, y_test=y_test, quantiles=QUANTILES)
        program = str(Path(__file__).with_name("liquid.py"))
        command = [os.environ["SVMARROW_LIQUIDSVM"], program, *paths]
        subprocess.run(command, check=True, capture_output=True)
        with np.load(paths[1]) as file:
            return file["predicted"].T, float(file["seconds"])


def quantiles(name: str) -> dict[str, Any]:
    """Pinball losses, shares below and times on the first split, means over the quantiles."""
    X, y, X_test, y_test = split_of(name, 0)
    found: dict[str, Any] = {"set": name, "train": len(y), "test": len(y_test)}
    makers: dict[str, Any] = {
        "QuantileSVRCV": QuantileSVRCV,
        "GradientBoostingRegressor": lambda q: GradientBoostingRegressor(
            loss="quantile", alpha=q, random_state=0
        ),
        "QuantileRegressor on Nystroem": lambda q: make_pipeline(
            Nystroem(gamma=0.3 / X.shape[1], n_components=200, random_state=0),
            QuantileRegressor(quantile=q, alpha=1e-4),
        ),
    }
    for label, make in makers.items():
        start = time.perf_counter()
        predicted = [make(q).fit(X, y).predict(X_test) for q in QUANTILES]
        found[label] = scores_of(y_test, predicted, time.perf_counter() - start)
    if "SVMARROW_LIQUIDSVM" in os.environ:
        found["liquidSVM"] = scores_of(y_test, *liquid(X, y, X_test, y_test))
    start = time.perf_counter()
    QuantileSVR(QUANTILES, C=10.0).fit(X, y)
    middle = time.perf_counter()
    SVR(C=10.0).fit(X, y)
    found["seconds of three quantiles, of SVR"] = [middle - start, time.perf_counter() - middle]
    return found


def large() -> dict[str, float]:
    """Seconds for 5,000 training samples."""
    X, y, X_test, _ = split_of("cal_housing", 0, 5000)
    model = RLSRegressor(0.1, gamma=0.05, fit_intercept=True)
    times = [time.perf_counter()]
    for work in (lambda: model.fit(X, y), *2 * [lambda: model.predict_interval(X_test[:1000])]):
        work()
        times.append(time.perf_counter())
    names = ("fit", "intervals of 1,000 samples", "the same again")
    return dict(zip(names, np.diff(times).tolist(), strict=True))


def main() -> None:
    """Run, print the tables, write the numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--only", choices=("quantiles",), help="a part; the rest of the JSON file is kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    command = "python benches/inspection/intervals.py --output docs/benchmarks/intervals.json"
    numbers: dict[str, Any] = {
        "command": command,
        "place": place(),
        "coverage": COVERAGE,
        "intervals": [],
        "quantiles": [],
    }
    for name in () if options.only else options.sets:
        runs = [intervals(name, split) for split in range(options.splits)]
        numbers["intervals"] += runs
        for label in ("jackknife+", "MAPIE CV+", "Gaussian process"):
            of = {
                key: np.array([run[label][key] for run in runs]) for key in ("coverage", "width", "seconds")
            }
            error = float(of["coverage"].std() / max(1, len(runs) - 1) ** 0.5)
            print(
                f"| {name} | {label} | {of['coverage'].mean():.3f} +- {error:.3f} | {of['width'].mean():.3f} "
                f"| {of['seconds'].mean():.2f} |",
                flush=True,
            )
    for name in options.sets:
        run = quantiles(name)
        numbers["quantiles"].append(run)
        print(name, {key: run[key] for key in list(run)[3:]}, flush=True)
    if options.only:
        known = json.loads(options.output.read_text(encoding="utf-8"))
        numbers = {**known, "quantiles": numbers["quantiles"], "place of quantiles": place()}
    else:
        numbers["5,000 samples"] = large()
        print(numbers["5,000 samples"])
    if options.output is not None:
        options.output.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
