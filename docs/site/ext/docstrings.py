"""Docstrings are written for a terminal; what reStructuredText would take for something else is quoted."""

from __future__ import annotations

import re
from typing import Any

#: A fitted attribute in a shape, `(n, n_features_in_)`: the underscore at its end would make it a link.
ATTRIBUTE = re.compile(r"(?<![\w`.])(n_features_in)_(?![\w`])")


def quote(_app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Quote the underscore, in place."""
    lines[:] = [ATTRIBUTE.sub(r"\1\\_", line) for line in lines]


def setup(app: Any) -> dict[str, Any]:
    """Come after numpydoc, whose text this is about."""
    app.connect("autodoc-process-docstring", quote, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
