"""Pages of the documentation as tests see them: fenced blocks, run in order and in one namespace."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(
    r"^(?P<fence>```+|:::+) *\{?(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)


def blocks(text, language):
    """Line number and text of each fenced block in a language."""
    return [
        (text.count("\n", 0, found.start("body")) + 1, found["body"])
        for found in FENCE.finditer(text)
        if found["language"] == language
    ]


def run_python(path, names):
    """Run a page's Python; a block with prompts must also print what the page says it prints."""
    for line, body in blocks(path.read_text(encoding="utf-8"), "python"):
        if body.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(body, names, path.name, str(path), line)
            report = []
            doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
            assert not report, "".join(report)
            names.update(test.globs)
        else:
            exec(compile("\n" * (line - 1) + body, str(path), "exec"), names)
