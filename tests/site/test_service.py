"""The application of the page on services answers requests."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest

import svmarrow

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "service.md"
APPLICATION = re.compile(
    r"^```\{code-block\} python\n:caption: app\.py\n\n(.*?)^```\n", re.MULTILINE | re.DOTALL
)
CUSTOMER = {"contract": "monthly", "calls": 6, "income": None, "months": 3.5}


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model with the features of the page, in the file that the application reads."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(
        {
            "contract": ["monthly", "yearly"] * 20,
            "calls": [i % 7 for i in range(40)],
            "income": [None if i % 5 == 0 else 1000.0 * i for i in range(40)],
            "months": [(i * 7) % 31 for i in range(40)],
        }
    )
    model = svmarrow.TabularClassifier().fit(frame, frame["calls"] > 3)
    svmarrow.save(model, "churn.safetensors", metadata={"month": "2026-01"})
    return model


def started():
    """Returns the names of the application after it has started."""
    names = {"__name__": "app"}
    code = APPLICATION.search(PAGE.read_text(encoding="utf-8"))[1]
    exec(compile(code, "app.py", "exec", dont_inherit=True), names)
    return names


def test_the_functions_of_the_application_predict(model, monkeypatch):
    fastapi, pydantic = ModuleType("fastapi"), ModuleType("pydantic")
    fastapi.FastAPI = lambda: SimpleNamespace(get=lambda _: lambda f: f, post=lambda _: lambda f: f)
    pydantic.BaseModel, pydantic.FiniteFloat, pydantic.ConfigDict = object, float, dict
    monkeypatch.setitem(sys.modules, "fastapi", fastapi)
    monkeypatch.setitem(sys.modules, "pydantic", pydantic)
    names = started()
    answer = names["churn"](SimpleNamespace(model_dump=lambda: CUSTOMER))
    expected = model.predict_proba(pd.DataFrame([CUSTOMER]).astype({"income": float}))[0, 1]
    assert names["health"]() == {"model": "2026-01"}
    assert answer == {"model": "2026-01", "probability": pytest.approx(expected, abs=1e-6)}


def test_the_application_answers_and_refuses_requests(model):
    pytest.importorskip("fastapi", reason="FastAPI is not a dependency")
    client = pytest.importorskip("fastapi.testclient").TestClient(started()["app"])
    assert client.get("/health").json() == {"model": "2026-01"}
    answer = client.post("/churn", json=CUSTOMER)
    assert answer.status_code == 200
    assert 0 < answer.json()["probability"] < 1
    assert client.post("/churn", json={**CUSTOMER, "call": 1}).status_code == 422
    assert client.post("/churn", json={"calls": 6}).status_code == 422
