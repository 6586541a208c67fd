"""Facts that travel with a model: metadata, model cards, certificates as text, versions."""

from __future__ import annotations

import datetime as dt
import json
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest

import svmarrow
from helpers.data import IRIS, KIND
from svmarrow import SVC, SVR, TabularClassifier, compress
from svmarrow.io import info, model_card


def test_metadata_travel_with_a_model(tmp_path):
    model = SVC(C=3.0).fit(IRIS, KIND)
    metadata = {"data": "iris of 1936", "score": 0.97, "folds": [1, 2], "by": None}
    for save in (lambda path: svmarrow.save(model, path, metadata), lambda path: model.save(path, metadata)):
        save(tmp_path / "model")
        facts = info(tmp_path / "model")
        assert facts["metadata"] == metadata
        assert facts["version"] == version("svmarrow")
        assert abs((dt.date.fromisoformat(facts["date"]) - dt.datetime.now(dt.UTC).date()).days) <= 1
        assert facts["C"] == 3.0
        json.dumps(facts, allow_nan=False)
        again = svmarrow.load(tmp_path / "model")
        assert np.array_equal(again.decision_function(IRIS), model.decision_function(IRIS))
    model.save(tmp_path / "plain")
    assert "metadata" not in info(tmp_path / "plain")


@pytest.mark.parametrize("value", [np.nan, object(), np.arange(3), {3: "b"}, np.float64(np.inf)])
def test_metadata_are_plain(value, tmp_path):
    model = SVC().fit(IRIS, KIND)
    with pytest.raises(ValueError, match=r"metadata=\{'wrong': .* must be a dict from names"):
        svmarrow.save(model, tmp_path / "model", {"right": 1, "wrong": value})
    with pytest.raises(ValueError, match=r"metadata=\{3: 'b'\} .* must be a dict from names"):
        svmarrow.save(model, tmp_path / "model", {3: "b"})
    with pytest.raises(ValueError, match=r"metadata='text' .* must be a dict from names"):
        svmarrow.save(model, tmp_path / "model", "text")
    assert not (tmp_path / "model").exists()


def test_metadata_may_be_numbers_of_numpy(tmp_path):
    metadata = {"n": np.int64(3), "score": np.float32(0.5), "good": np.bool_(True), "list": [np.int8(1)]}
    svmarrow.save(SVC().fit(IRIS, KIND), tmp_path / "model", metadata)
    assert info(tmp_path / "model")["metadata"] == {"n": 3, "score": 0.5, "good": True, "list": [1]}


def test_info_has_the_loss_of_a_compression(tmp_path):
    labels = np.where(KIND[0] == KIND, "first", "other")
    small = compress(SVC().fit(IRIS, labels), IRIS, labels, max_loss=0.1, random_state=0)
    small.save(tmp_path / "small")
    assert info(tmp_path / "small")["loss_bound"] == str(small.loss_bound_)
    assert f"## Loss by compression\n\n{small.loss_bound_}" in model_card(small, IRIS, labels)


def test_a_certificate_is_five_lines():
    lines = str(SVC().fit(IRIS, KIND).certificate_).splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("converged after")
    assert lines[0].endswith("3 binary machines")
    assert max(map(len, lines)) < 80


def test_a_card_of_a_table():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"age": random.normal(size=120), "kind": random.choice(["a", "b"], 120)})
    y = np.where(frame["age"] + 0.3 * random.normal(size=120) > 0.0, "high", "low")
    model = TabularClassifier(n_samples=60).fit(frame[:80], y[:80])
    card = model_card(model, frame[80:], y[80:])
    assert f"| accuracy | {model.score(frame[80:], y[80:]):.4f} |" in card
    assert "| samples | 40 |" in card
    assert "| age | " in card
    assert "](data:image/svg+xml;base64," in card
    assert "log loss" in card
    with pytest.raises(ValueError, match="y='other' is not allowed: it must be a class of the model"):
        model_card(model, frame[80:], ["other"] * 40)


def test_a_card_of_a_regressor():
    model = SVR().fit(IRIS[:, :3], IRIS[:, 3])
    card = model_card(model, IRIS[:, :3], IRIS[:, 3])
    assert f"| R² | {model.score(IRIS[:, :3], IRIS[:, 3]):.4g} |" in card
    assert "Calibration" not in card


def test_versions(capsys):
    svmarrow.show_versions()
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if " " in line)
    assert shown["svmarrow"] == version("svmarrow")
    assert shown["numpy"] == np.__version__
