"""The examples of the guide run, and print what the page shows below them."""

from __future__ import annotations

import re

import matplotlib as mpl
import pytest

from outputs import EXAMPLE, agree, examples, pages, run, written

WRITE = "python docs/site/outputs.py"
#: A mark of a generated figure at the start of a line, which in Markdown begins a block of HTML.
BROKEN_MARK = re.compile(r"^<!-- (?:made: [\w-]+|end) -->(?!\n|$)", re.MULTILINE)


def test_pages_have_examples():
    assert len(pages()) > 20


@pytest.mark.quick_every(4)
@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_examples_print_what_is_shown(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    printed = run(path)
    for example, output in zip(examples(path.read_text(encoding="utf-8")), printed, strict=True):
        shown = example.output or ""
        assert agree(output, shown), (
            f"line {example.line} printed:\n{output}\nbut the page shows:\n{shown}\n{WRITE}"
        )


def test_marks_do_not_begin_blocks_of_html():
    assert [path for path in pages() if BROKEN_MARK.search(path.read_text(encoding="utf-8"))] == []


def test_outputs_are_compared_number_by_number():
    assert agree("accuracy 0.951\n", "accuracy 0.950\n")
    assert agree("1,234 vectors\n", "1,240 vectors\n")
    assert not agree("accuracy 0.85\n", "accuracy 0.95\n")
    assert not agree("10 vectors\n", "14 vectors\n")
    assert not agree("error 0.95\n", "accuracy 0.95\n")
    assert not agree("0.95\n", "0.95 0.95\n")
    assert not agree("0.95\n", "")


def test_outputs_are_written_below_their_examples():
    page = "Text.\n\n```python\nprint(1)\n```\n\n```output\nold\n```\n\nMore.\n\n```python\nx = 2\n```\n"
    assert [example.output for example in examples(page)] == ["old\n", None]
    new = written(page, ["1\n", ""])
    assert new == page.replace("old", "1")
    assert len(EXAMPLE.findall(new)) == 2
