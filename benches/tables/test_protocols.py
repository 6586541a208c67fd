"""Both protocols end with a value for each engine, and sets that are not here are named."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import protocols
import pytest


def small_set(kind):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=150), "b": pd.Categorical(random.choice(list("uvw"), 150))})
    X.loc[3, "a"] = np.nan
    shift = X["b"].cat.codes + X["a"].fillna(0.0) + 0.1 * random.normal(size=150)
    if kind == "numbers":
        return X, shift
    edges = np.quantile(shift, [0.5] if kind == "two classes" else [0.3, 0.7])
    return X, pd.Series(pd.Categorical(np.array(["low", "middle", "high"])[np.searchsorted(edges, shift)]))


@pytest.mark.parametrize("kind", ["numbers", "two classes", "three classes"])
@pytest.mark.parametrize("protocol", ["automl", "tabarena"])
def test_a_set(protocol, kind, monkeypatch, tmp_path):
    X, y = small_set(kind)
    monkeypatch.setattr(protocols, "fetch_openml", lambda **_: SimpleNamespace(data=X, target=y))
    path = tmp_path / "found.json"
    name = protocols.PROTOCOLS[protocol][0].name
    engines = ["--engines", "svmarrow.Tabular*", "HistGradientBoosting"]
    protocols.main(["--protocol", protocol, "--only", name, "--repeats", "1", *engines, "--json", str(path)])
    (result,) = json.loads(path.read_text())["sets"]
    assert result["source"] == "OpenML"
    assert result["classes"] == {"numbers": 0, "two classes": 2, "three classes": 3}[kind]
    cells = result["engines"]
    assert set(cells) == {"svmarrow.Tabular*", "HistGradientBoosting"}
    for cell in cells.values():
        assert len(cell["value"]) == (1 if protocol == "automl" else 3)
        if kind != "three classes":
            # Nearly all of the target is known: 100 is the best of `automl`, 0 that of `tabarena`.
            assert np.mean(cell["value"]) > 80.0 if protocol == "automl" else np.mean(cell["value"]) < 0.5


def test_sets_that_are_not_here(monkeypatch, capsys):
    def unreachable(**_):
        raise OSError("no route")

    monkeypatch.setattr(protocols, "fetch_openml", unreachable)
    protocols.main(["--only", "kr-vs-kp"])
    assert "left out: kr-vs-kp is not here" in capsys.readouterr().out


def test_the_lists():
    assert len(protocols.AUTOML) == 41
    assert len(protocols.TABARENA) == 17
