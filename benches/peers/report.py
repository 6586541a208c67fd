"""Medians, ratios and tables from the runs."""

from __future__ import annotations

import math
import os
import platform
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from engines import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HEADINGS = [
    "workload",
    "engine",
    "objective",
    "vectors",
    "agreement",
    "fit s",
    "times as fast",
    "predict s",
    "times as fast",
    "peak MB",
]


@dataclass
class Cell:
    """One engine on one workload, all repeats.

    `objective` is relative to the reference's, positive where larger (better: the dual is maximised); None
    where it was not checked. `trusted` is whether the times may be shown and compared.
    """

    workload: str
    engine: str
    version: str = ""
    fit_seconds: list[float] = field(default_factory=list)
    predict_seconds: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    vectors: int = 0
    agreement: float = 1.0
    error: float = 0.0
    objective: float | None = None
    infeasibility: float | None = None
    trusted: bool = True
    checked: bool = False
    note: str = ""
    warnings: list[str] = field(default_factory=list)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model
        )
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": model,
        "processors": count,
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _ratio(reference: Cell | None, cell: Cell, what: str) -> float | None:
    if reference is None or not (reference.trusted and cell.trusted):
        return None
    ours, theirs = getattr(cell, what), getattr(reference, what)
    return median(theirs) / median(ours) if ours and theirs else None


def geometric_mean(values: Sequence[float]) -> float:
    """The exp of the mean logarithm."""
    return math.exp(sum(map(math.log, values)) / len(values))


def comparison(cells: Iterable[Cell]) -> list[list[str]]:
    """Table rows, workload by workload, then the geometric means of the ratios by engine."""
    cells = list(cells)
    reference = {cell.workload: cell for cell in cells if cell.engine == REFERENCE}
    rows: list[list[str]] = []
    ratios: dict[str, tuple[list[float], list[float]]] = {}
    shown = None
    for cell in cells:
        name = "" if cell.workload == shown else cell.workload
        shown = cell.workload
        if not cell.fit_seconds:
            rows.append([name, cell.engine, cell.note, *[""] * 7])
            continue
        theirs = reference.get(cell.workload)
        fit, predict = (_ratio(theirs, cell, what) for what in ("fit_seconds", "predict_seconds"))
        if cell.engine != REFERENCE:
            of_engine = ratios.setdefault(cell.engine, ([], []))
            for values, value in zip(of_engine, (fit, predict), strict=True):
                if value is not None:
                    values.append(value)
        if not cell.checked:
            objective = "not checked"
        elif cell.engine == REFERENCE:
            objective = "reference"
        else:
            objective = f"{cell.objective:+.1e}"
        times = [
            f"{median(cell.fit_seconds):.3f}" if cell.trusted else "differs",
            f"{fit:.2f}" if fit is not None else "",
            f"{median(cell.predict_seconds):.3f}" if cell.trusted else "differs",
            f"{predict:.2f}" if predict is not None else "",
        ]
        peak = f"{median(cell.peak_bytes) / 1e6:.0f}"
        rows.append([name, cell.engine, objective, str(cell.vectors), f"{cell.agreement:.2%}", *times, peak])
    for engine, (fits, predicts) in ratios.items():
        if fits and predicts:
            means = [f"{geometric_mean(values):.2f}" for values in (fits, predicts)]
            name = f"geometric mean of {len(fits)}"
            rows.append([name, engine, "", "", "", "", means[0], "", means[1], ""])
    return rows


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool) -> str:
    """A text table, aligned, as Markdown if asked."""
    widths = [max(len(line[i]) for line in [headings, *rows]) for i in range(len(headings))]

    def join(line: Sequence[str]) -> str:
        # The first two columns are names, the others numbers.
        names = [text.ljust(width) for text, width in zip(line[:2], widths[:2], strict=True)]
        numbers = [text.rjust(width) for text, width in zip(line[2:], widths[2:], strict=True)]
        padded = names + numbers
        return f"| {' | '.join(padded)} |" if markdown else "  ".join(padded).rstrip()

    rule = ["-" * width for width in widths]
    if markdown:
        rule[2:] = [line[:-1] + ":" for line in rule[2:]]
    return "\n".join([join(headings), join(rule), *map(join, rows)])


def versions(cells: Iterable[Cell]) -> str:
    """The engines that ran, with their versions."""
    found = {re.sub("-f(32|64)$", "", cell.engine): cell.version for cell in cells if cell.version}
    return ", ".join(f"{engine} {version}" for engine, version in found.items())


def as_json(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """Everything measured, for a file."""
    return [asdict(cell) for cell in cells]
