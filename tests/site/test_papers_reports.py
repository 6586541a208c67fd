"""Reports of the papers' scripts: where they may be saved, and the bands of quick runs."""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
from pathlib import Path

import pytest

PAPERS = Path(__file__).resolve().parents[2] / "benches" / "papers"
MODULES = ("common", "judging", "quick")


@pytest.fixture
def papers(monkeypatch):
    """A function that imports a module of the scripts' folder."""
    monkeypatch.syspath_prepend(PAPERS)
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)


def test_a_page_is_not_saved_from_changed_files(papers, monkeypatch, tmp_path):
    common = papers("common")
    options = argparse.Namespace(save=tmp_path, json=None, quick=False, only=["one"], parts=("one",))
    monkeypatch.setattr(common, "git", lambda *_: "M src/lib.rs")
    with pytest.raises(common.DirtyTreeError, match=r"--save=.* is not allowed: .*src/lib\.rs\. Commit"):
        common.Report("page", "A page", options)
    # Without a page there is nothing to refuse, and a clean tree may be saved.
    common.Report("page", "A page", argparse.Namespace(**vars(options) | {"save": None}))
    monkeypatch.setattr(common, "git", lambda *_: "")
    common.Report("page", "A page", options).run({"one": lambda report, _: report.say("text")})
    assert "text" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_a_refusal_is_one_line(papers, monkeypatch, capsys):
    common = papers("common")

    def refused() -> int:
        raise common.DirtyTreeError("commit first")

    with pytest.raises(SystemExit) as end:
        common.run(refused)
    assert end.value.code == 2
    assert capsys.readouterr().err == "commit first\n"


OUTPUT = """**Errors by size**

| size | error |
|---|---|
| 10 | 0.25 / 0.3 |
| 20 | {error} |

*first: 3 s by `python benches/papers/page.py --only first --quick --save`; commit 1; 2 processors; 2026-1-1.*
"""


def test_bands_of_quick_runs(papers, monkeypatch):
    quick = papers("quick")
    band = quick.Band("Errors by", 1, "error", 0.1, 0.2)
    monkeypatch.setattr(quick, "BANDS", {"page": {"first": band}})
    assert quick.failures("page", OUTPUT.format(error="0.15 +- 0.3")) == []
    (wrong,) = quick.failures("page", OUTPUT.format(error=0.21))
    assert "page first: 'Errors by', line 1, 'error' is 0.21, not between 0.1 and 0.2" in wrong
    monkeypatch.setattr(quick, "BANDS", {"page": {"first": band, "second": band}})
    (wrong,) = quick.failures("page", OUTPUT.format(error=0.15))
    assert "second" in wrong


def test_every_script_with_parts_has_bands(papers):
    scripts = set()
    for path in PAPERS.glob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        if any(isinstance(call.func, ast.Name) and call.func.id == "Report" for call in calls):
            scripts.add(path.stem)
    assert set(papers("quick").BANDS) == scripts
