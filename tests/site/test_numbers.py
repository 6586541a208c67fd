"""Figures on the pages are those of the committed JSON, and pictures show the files they stand for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from measured import PARTS, ROOT, pages, renewed
from renew import PICTURES, digest, drawn_from

RENEW = "python docs/site/renew.py"


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_say_what_the_files_say(path):
    text = path.read_text(encoding="utf-8")
    assert renewed(text) == text, RENEW


def test_the_list_of_papers_agrees_with_their_pages():
    program = "benches/papers/rows.py"
    checked = subprocess.run([sys.executable, program, "--check"], cwd=ROOT, check=False)
    assert checked.returncode == 0, f"python {program}"


def test_every_file_of_runs_is_on_a_page():
    shown = "".join(path.read_text(encoding="utf-8") for path in pages())
    unused = [name for name in PARTS if f"<!-- made: {name} -->" not in shown]
    # What a sentence says of the promises' runs, their own page says in full.
    assert set(unused) <= {"from-promises"}


@pytest.mark.parametrize("picture", PICTURES)
def test_pictures_show_their_files(picture):
    assert drawn_from(ROOT / picture) == digest(ROOT / PICTURES[picture][0]), RENEW


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "benchmarks").glob("*.json")), ids=lambda path: path.stem
)
def test_files_of_runs_name_their_command(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    about = found.get("about", found)
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    promises = (ROOT / "docs" / "papers" / "promises.md").read_text(encoding="utf-8")
    command = about.get("command")
    if command is None:  # two older files: their page names it
        assert f"{path.name}" in page + promises
        assert any(
            f"benches/{program}" in page + promises for program in ("peers/ship.py", "papers/promises.py")
        )
    else:
        assert Path(ROOT / command.split()[1]).is_file()
