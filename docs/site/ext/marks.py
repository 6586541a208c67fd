"""Removes the marks of generated figures, `<!-- made: NAME -->` and `<!-- end -->`, before a page is parsed.

In Markdown a comment at the start of a line begins a block of HTML, whose text is not parsed.
"""

from __future__ import annotations

import re
from typing import Any

MARK = re.compile(r"<!-- (?:made: [\w-]+|end) -->")


def remove_marks(_app: Any, _page: str, source: list[str]) -> None:
    """Removes the marks from a page, in place."""
    source[0] = MARK.sub("", source[0])


def setup(app: Any) -> dict[str, Any]:
    """Connects to the reading of the sources."""
    app.connect("source-read", remove_marks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
