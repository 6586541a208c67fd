"""Chooses where lines of the built pages may break: long names after a dot or a slash, numbers nowhere.

Sphinx writes each word of inline code as one unbreakable span. On a telephone a long name would then widen
its table, and a break at any letter would make it unreadable.
"""

from __future__ import annotations

import re
from typing import Any

#: Names up to this length are never broken.
MAX_UNBROKEN_NAME = 18

#: A word of inline code; names in signatures are never broken.
WORD = re.compile(r'(?<!class="n">)<span class="pre">([^<]+)</span>')
PLACE = re.compile(r"(?<=[./(=,])(?=[\w\"']{4})|(?<=\w)_(?=\w{3})")
CELL = re.compile(r"<td>(<p>)?([\d.,+\u00d7/%\u2192e \u2212-]{1,12})(</p>)?</td>")


def break_word(match: re.Match[str]) -> str:
    """Returns a word of inline code, with places to break if it is long."""
    word = match[1]
    if len(word) <= MAX_UNBROKEN_NAME:
        return match[0]
    pieces = PLACE.sub(lambda place: place[0] + "\0", word).split("\0")
    return "<wbr>".join(f'<span class="pre">{piece}</span>' for piece in pieces)


def break_lines(_app: Any, _page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Marks these places in the body of a page."""
    if "body" in context:
        body = WORD.sub(break_word, context["body"])
        context["body"] = CELL.sub(r'<td class="unbroken">\1\2\3</td>', body)


def setup(app: Any) -> dict[str, Any]:
    """Connects to the rendering of pages."""
    app.connect("html-page-context", break_lines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
