"""Writes the output below each example of the guide: `python docs/site/outputs.py [PAGE...]`.

A fenced block of Python that prints something is followed by a block ```output with what it printed. The
test of the pages runs the examples again and compares the two; numbers may differ slightly between machines.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```output\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
#: Relative difference allowed between two numbers, in addition to two units of the last digit.
TOLERANCE = 0.05


class Example(NamedTuple):
    """A block of Python, the line where it begins, and the output shown below it (None if there is none)."""

    line: int
    code: str
    output: str | None


def pages() -> list[Path]:
    """Returns the pages whose examples are run: the README, the front page and the guide."""
    docs = ROOT / "docs"
    found = [
        ROOT / "README.md",
        docs / "index.md",
        docs / "choosing.md",
        *sorted((docs / "guide").glob("*.md")),
    ]
    return [path for path in found if examples(path.read_text(encoding="utf-8"))]


def examples(text: str) -> list[Example]:
    """Returns the examples of a page."""
    return [
        Example(text.count("\n", 0, found.start("code")) + 1, found["code"], found["output"])
        for found in EXAMPLE.finditer(text)
    ]


def run(path: Path) -> list[str]:
    """Runs the examples of a page in one namespace and returns what each printed."""
    names, printed = {"__name__": "__page__"}, []
    for example in examples(path.read_text(encoding="utf-8")):
        stream = io.StringIO()
        code = compile("\n" * (example.line - 1) + example.code, str(path), "exec")
        with contextlib.redirect_stdout(stream):
            exec(code, names)
        lines = [line.rstrip() + "\n" for line in stream.getvalue().splitlines()]
        printed.append("".join(lines))
    return printed


def _unit(text: str) -> float:
    """Returns the unit of a number's last digit."""
    mantissa, _, exponent = text.replace(",", "").partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def _close(first: str, second: str) -> bool:
    a, b = (float(text.replace(",", "")) for text in (first, second))
    unit = max(_unit(first), _unit(second))
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) + 2.0001 * unit


def agree(printed: str, shown: str) -> bool:
    """Returns whether two outputs have the same words, and numbers that are nearly equal."""
    words = ["".join(NUMBER.sub("#", text).split()) for text in (printed, shown)]
    numbers = [NUMBER.findall(text) for text in (printed, shown)]
    return words[0] == words[1] and all(map(_close, *numbers))


def written(text: str, printed: list[str]) -> str:
    """Returns a page with the outputs below its examples."""
    outputs = iter(printed)

    def block(found: re.Match[str]) -> str:
        output = next(outputs)
        below = f"\n```output\n{output}```\n" if output else ""
        return f"```python\n{found['code']}```\n{below}"

    return EXAMPLE.sub(block, text)


def main() -> None:
    """Writes the outputs of the given pages, or of all."""
    os.environ["MPLBACKEND"] = "Agg"
    for path in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
            warnings.simplefilter("error")
            printed = run(path)
        shown = [example.output or "" for example in examples(text)]
        if not all(map(agree, printed, shown)):
            path.write_text(written(text, printed), encoding="utf-8")
            print("written", path.relative_to(ROOT))


if __name__ == "__main__":
    main()
