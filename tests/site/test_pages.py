"""Every Python block of the guide runs as it stands there, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest

from helpers.pages import blocks, run_python

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
WITH_CODE = [
    path
    for path in [DOCS / "index.md", DOCS / "choosing.md", *sorted((DOCS / "guide").glob("*.md"))]
    if path.exists() and blocks(path.read_text(encoding="utf-8"), "python")
]


def test_pages_have_code():
    assert WITH_CODE


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.stem)
def test_python_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    run_python(path, {"__name__": "__page__"})
