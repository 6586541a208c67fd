"""What the scripts of this folder share: rows of the real sets, timings, and a report.

A script imports it as ``from common import ...``: it is run as ``python benches/papers/NAME.py``, so its
folder is on the path. The rows come from ``MARROW_DATA``, else from ``../shared/data`` beside the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
#: Where reports and figures that belong to the documentation are kept.
PAGES = ROOT / "docs" / "papers"


class DataMissingError(Exception):
    """A set is not on this machine."""


@dataclass(frozen=True)
class Rows:
    """A set as its file has it; ``X_test`` and ``y_test`` are None where it has no split of its own."""

    X: Any
    y: np.ndarray
    X_test: Any = None
    y_test: Any = None

    def all(self) -> tuple[Any, np.ndarray]:
        """All rows, the test rows last."""
        if self.X_test is None:
            return self.X, self.y
        stack = sp.vstack if sp.issparse(self.X) else np.vstack
        return stack([self.X, self.X_test]), np.concatenate([self.y, self.y_test])


def folder() -> Path:
    """Where the ``.npz`` files are."""
    named = os.environ.get("MARROW_DATA")
    return Path(named) if named else ROOT.parent / "shared" / "data"


def _open(name: str) -> Any:
    path = folder() / f"{name}.npz"
    if not path.is_file():
        raise DataMissingError(f"{path} is not here: set MARROW_DATA to the folder of the data sets")
    return np.load(path, allow_pickle=False)


def load(name: str, dtype: Any = np.float64) -> Rows:
    """Read a set; dense rows C-contiguous, sparse ones as CSR, values as ``dtype`` and not scaled."""
    with _open(name) as file:
        if "data" in file:

            def rows(prefix: str) -> Any:
                values = file[f"{prefix}data"].astype(dtype)
                parts = (values, file[f"{prefix}indices"], file[f"{prefix}indptr"])
                return sp.csr_array(parts, shape=tuple(int(size) for size in file[f"{prefix}shape"]))

            test = (rows("test_"), file["y_test"]) if "test_data" in file else (None, None)
            return Rows(rows(""), file["y"], *test)
        X = np.ascontiguousarray(file["X"], dtype=dtype)
        if "X_test" in file:
            return Rows(X, file["y"], np.ascontiguousarray(file["X_test"], dtype=dtype), file["y_test"])
        return Rows(X, file["y"])


def splits(name: str) -> Iterator[Rows]:
    """Yield the ten original splits of a Raetsch set, such as ``ratsch_banana``."""
    with _open(name) as file:
        X, y = np.ascontiguousarray(file["X"], dtype=np.float64), file["y"]
        for train, test in zip(file["train_idx"], file["test_idx"], strict=True):
            yield Rows(X[train], y[train], X[test], y[test])


def seconds(work: Callable[[], Any], repeat: int = 3) -> float:
    """Median time of ``repeat`` calls."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class Report:
    """Tables and sentences in Markdown, printed as they come; with ``--save`` a page of the documentation."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.numbers: dict[str, Any] = {}
        self._pages: list[str] = []
        self.say(f"# {title}")

    def say(self, text: str) -> None:
        """Add a paragraph or a heading."""
        self._pages.append(text.strip())
        print(text.strip() + "\n", flush=True)

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add a table; numbers get four digits."""

        def cell(value: Any) -> str:
            return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)

        lines = [f"**{title}**", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
        self.say("\n".join(lines))

    def figure(self, figure: Any, label: str, options: argparse.Namespace) -> None:
        """Save a Matplotlib figure beside the page."""
        path = self._at(options, f"{self.name}-{label}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110, bbox_inches="tight")
        self.say(f"![{label}]({path.name})")

    def finish(self, options: argparse.Namespace) -> int:
        """Write what ``--save`` and ``--json`` ask for; the exit code."""
        if options.save is not None:
            path = self._at(options, f"{self.name}.md")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n\n".join(self._pages) + "\n", encoding="utf-8")
        if options.json is not None:
            options.json.write_text(
                json.dumps(self.numbers, indent=1, default=float) + "\n", encoding="utf-8"
            )
        return 0

    def _at(self, options: argparse.Namespace, file: str) -> Path:
        return Path("." if options.save is None else options.save) / file


def arguments(doc: str, parts: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser with what all scripts take; ``parts`` are the names of the tables and figures."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts), help="these parts only")
    parser.add_argument("--quick", action="store_true", help="few rows and repeats: shows that it runs")
    parser.add_argument(
        "--save", nargs="?", type=Path, const=PAGES, help="write page and figures there (docs/papers)"
    )
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    return parser


def run(main: Callable[[], int]) -> None:
    """Leave the process; a set that is missing is said in one line."""
    try:
        sys.exit(main())
    except DataMissingError as missing:
        print(missing, file=sys.stderr)
        sys.exit(2)
