"""Every part of the papers' pages ends with what made it: a command that is there, and a commit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Written by other means: a list of pages, and what is gathered from them.
NO_PARTS = ("index", "rows")
PAGES = sorted(page for page in (ROOT / "docs" / "papers").glob("*.md") if page.stem not in NO_PARTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_parts_name_their_command_and_commit(page):
    script = ROOT / "benches" / "papers" / f"{page.stem}.py"
    assert script.is_file()
    _, *pieces = re.split(r"^<!-- part: (\S+) -->$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert pieces
    for part, text in zip(pieces[::2], pieces[1::2], strict=True):
        footer = text.strip().splitlines()[-1]
        assert footer.startswith(f"*{part}: "), part
        assert f"`python benches/papers/{page.stem}.py --only {part} --save`" in footer, part
        assert re.search(r"\bcommits? [0-9a-f]{7}\b", footer), part
        assert re.search(r"\d+ processors\b", footer), part
