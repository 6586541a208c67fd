"""The rules for English that a program can check: phrases, American spelling, length of sentences."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NAMES = ("index", "choosing", "reliability", "dask", "glossary", "platforms")
#: Pages for users.
PAGES = [
    ROOT / "README.md",
    *(DOCS / f"{name}.md" for name in NAMES),
    *sorted((DOCS / "guide").glob("*.md")),
]
MAX_WORDS = 40
#: Not prose: generated figures, blocks of code and output, comments, formulas, targets of links, inline code.
OUTSIDE = re.compile(
    r"^```.*?^```|<!-- made: [\w-]+ -->.*?<!-- end -->|<!--.*?-->|\$\$.*?\$\$|\]\([^)]*\)|`[^`]*`",
    re.MULTILINE | re.DOTALL,
)
#: Names in docstrings: inline code, quoted values, parameters before a colon, calls and attributes.
LITERAL = re.compile(
    r"``.*?``|`[^`]*`|\"[^\"\n]*\"|'[^'\n]*'|^[\w, *]+ : "
    r"|\b\w*_\w*\b|\w+\(|\w+\.\w+|\w+=\S+|^(?:>>>|\.\.\.) .*$",
    re.MULTILINE | re.DOTALL,
)
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |\|))")
CLAUSE = re.compile(r"(?<=[.?!:;])\s+")
RULES = {
    "a plain word exists": r"anew|oftener|not to be had|in the midst|nobody|wherever|the least of",
    "things do not speak": r"tells|vouch(?:es)?|betrays?|(?:is|are) told",
    "write the number of": r"so many",
    "American spelling": (
        r"(?:un)?learnt|"
        r"(?:standard|optim|minim|maxim|penal|normal|recogn|general|summar|regular|vector|real|organ|initial)is\w+"
        r"|(?:colou?r(?<=our)|behaviour|neighbour|favour|honour)\w*|cent(?:re|red|res)|licences?|labelled|grey"
        r"|analogue|catalogue|fulfil|cancelled"
    ),
}
#: Words that the last rule's stems would find.
AMERICAN = re.compile(r"realis(?:m|tic)\w*|generalist|optimis[mt]\w*", re.IGNORECASE)


def faults(text: str) -> list[str]:
    """Returns the phrases and sentences of a page that break a rule."""
    blocks = [" ".join(block.split()) for block in BLOCK.split(OUTSIDE.sub(" x ", text))]
    found = [
        f"{rule}: {match[0]}"
        for block in blocks
        for rule, pattern in RULES.items()
        for match in re.finditer(rf"\b(?:{pattern})\b", block, re.IGNORECASE)
        if not AMERICAN.fullmatch(match[0])
    ]
    long = (clause for block in blocks if not block.startswith("|") for clause in CLAUSE.split(block))
    return found + [f"too long: {clause}" for clause in long if len(clause.split()) > MAX_WORDS]


def test_docstrings_have_american_spelling():
    spelling = re.compile(rf"\b(?:{RULES['American spelling']})\b", re.IGNORECASE)
    found = []
    for path in sorted((ROOT / "python" / "svmarrow").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                continue
            text = LITERAL.sub(" x ", ast.get_docstring(node) or "")
            found += [
                f"{path.name}: {match[0]}"
                for match in spelling.finditer(text)
                if not AMERICAN.fullmatch(match[0])
            ]
    assert found == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_keep_the_rules(path):
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text", ["It tells you.", "The colour is grey.", "standardised", "word " * 41])
def test_broken_rules_are_found(text):
    assert faults(text)


def test_code_and_figures_are_not_prose():
    assert faults("```python\ncolour = 1\n```\n\n`colour`, <!-- made: x -->colour<!-- end --> realism.") == []
