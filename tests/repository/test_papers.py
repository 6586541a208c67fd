"""Every part of the papers' pages ends with what made it: a command that is there, and a commit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Written by other means: a list of pages, and what is gathered from them.
NO_PARTS = ("errata", "index", "rows")
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
        assert re.search(r"\bcommits? [0-9a-f]{7,}\b", footer), part
        assert re.search(r"\d+ processors\b", footer), part


#: Pages that compare with a paper, all but the measurements of our own.
COMPARED = sorted({page.stem for page in PAGES} - {"cascades", "promises", "perceptron_variants"})
LABELS = ["Claim", "Differences in setting", "Result", "Verdict", "Why"]


@pytest.mark.parametrize("page", COMPARED)
def test_parts_open_with_their_account(page):
    text = (ROOT / "docs" / "papers" / f"{page}.md").read_text(encoding="utf-8")
    _, *pieces = re.split(r"^<!-- part: (\S+) -->$", text, flags=re.MULTILINE)
    own = False
    for part, body in zip(pieces[::2], pieces[1::2], strict=True):
        begin, end = "<!-- account -->", "<!-- end of account -->"
        assert body.strip().startswith(begin), part
        account = body.split(begin)[1].split(end)[0]
        found = re.findall(r"^\*\*([^*]+)\.\*\* (.+)$", account, flags=re.MULTILINE)
        assert [label for label, _ in found] == LABELS, part
        # Once a page has come to its own measurements, no claim of the paper follows.
        heading = "## Measurements and targets of our own" in account
        assert not (own and heading), part
        own = own or heading
        assert bool(re.search(r"^### ", account, flags=re.MULTILINE)) == own, part
        assert not re.search(r"^#+ ", body.split(end)[1].replace("### ", ""), flags=re.MULTILINE), part
