"""AutoGluon's own checks of a custom model, a table with every kind of column, and TabArena's experiments."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from autogluon.tabular import TabularPredictor
from autogluon.tabular.testing import FitHelper
from model import SvmarrowTabularModel, experiments

FOLDER = Path(__file__).parent


def frame(n: int, seed: int) -> pd.DataFrame:
    """A table with numbers, gaps, a category, a boolean and a date."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "category": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
            "flag": rng.random(n) < 0.5,
            "date": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
        }
    )
    signal = table["number"] + (table["category"] == "red") + np.nan_to_num(table["gaps"])
    return table.assign(label=signal + 0.1 * rng.normal(size=n))


def test_autogluons_checks_of_a_model_pass(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FitHelper.verify_model(model_cls=SvmarrowTabularModel, model_hyperparameters={})


@pytest.mark.parametrize("classify", [False, True])
def test_a_table_with_every_kind_of_column(tmp_path, classify):
    train, test = frame(400, 0), frame(200, 1)
    if classify:
        for table in (train, test):
            table["label"] = np.where(table["label"] > 0.3, "high", "low")
    predictor = TabularPredictor("label", path=tmp_path / "predictor", verbosity=0)
    predictor.fit(
        train,
        hyperparameters={SvmarrowTabularModel: {"kernel": "rbf"}},
        time_limit=60,
        fit_weighted_ensemble=False,
    )
    (name,) = predictor.model_names()
    assert name == "SvmarrowTabular"
    scores = predictor.evaluate(test)
    if classify:
        assert scores["accuracy"] > 0.9
        assert predictor.class_labels == ["high", "low"]
        assert np.allclose(predictor.predict_proba(test).sum(axis=1), 1.0)
    else:
        assert scores["r2"] > 0.95
    again = TabularPredictor.load(tmp_path / "predictor")
    assert (again.predict(test) == predictor.predict(test)).all()


def test_a_fit_ends_within_its_time_limit(tmp_path):

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).assign(label=X[:, 0] * X[:, 1])
    predictor = TabularPredictor("label", path=tmp_path / "predictor", verbosity=0)
    begin = time.monotonic()
    predictor.fit(
        table, hyperparameters={SvmarrowTabularModel: {}}, time_limit=15, fit_weighted_ensemble=False
    )
    # Encoding, the probabilities of held-out samples and a busy machine take time too.
    assert time.monotonic() - begin < 60
    assert predictor.model_names() == ["SvmarrowTabular"]


PEAK = """
import resource, sys
import numpy as np
from svmarrow import TabularRegressor
n, d = int(sys.argv[1]), int(sys.argv[2])
X = np.random.default_rng(0).normal(size=(n, d))
TabularRegressor(max_time=60).fit(X, X[:, 0] * X[:, 1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.parametrize(("n", "d"), [(1000, 10), (5000, 30), (30_000, 20)])
def test_the_estimated_memory_is_that_of_a_fit(n, d):
    command = [sys.executable, "-c", PEAK, str(n), str(d)]
    peak = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    table = pd.DataFrame(np.zeros((n, d)))
    estimate = SvmarrowTabularModel.estimate_memory_usage_static(X=table, problem_type="regression")
    print(f"{n} x {d}: peak {peak / 1e6:.0f} MB, estimated {estimate / 1e6:.0f} MB")
    assert 0.3 * estimate < peak < 1.1 * estimate


def test_tabarena_makes_experiments_of_the_default_and_drawn_settings():
    pytest.importorskip("tabarena")
    assert len(experiments(3)) == 4
