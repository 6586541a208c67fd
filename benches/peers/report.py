"""Tables from the runs, and what they were measured on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from cells import Cell, geometric_mean, times_as_fast

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
    "over bound",
    "predict s",
    "times as fast",
    "peak MB",
    "of allowed",
]


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model
        )
    return {
        "processor": model,
        "processors": processors(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def commit() -> str | None:
    """The commit of the benchmarks' own repository, None outside of one."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _number(value: float | None, form: str = ".2f") -> str:
    return "" if value is None else format(value, form)


def comparison(cells: Sequence[Cell]) -> list[list[str]]:
    """Table rows, workload by workload, then geometric means by engine."""
    rows: list[list[str]] = []
    ratios: dict[str, tuple[list[float], list[float], list[float]]] = {}
    shown = None
    for cell in cells:
        name = "" if cell.workload == shown else cell.workload
        shown = cell.workload
        if not cell.fit_seconds:
            rows.append([name, cell.engine, cell.note, *[""] * (len(HEADINGS) - 3)])
            continue
        fit, predict = (times_as_fast(cells, cell, what) for what in ("fit_seconds", "predict_seconds"))
        of_engine = ratios.setdefault(cell.engine, ([], [], []))
        for values, value in zip(of_engine, (fit, cell.over_bound, predict), strict=True):
            if value is not None:
                values.append(value)
        if not cell.checked:
            objective = "not checked"
        elif cell.reference:
            objective = "reference"
        else:
            objective = f"{cell.objective:+.1e}"
        rows.append(
            [
                name,
                cell.engine,
                objective,
                str(cell.vectors),
                _number(cell.agreement, ".2%"),
                _number(cell.seconds("fit_seconds"), ".3f") or "differs",
                _number(fit),
                _number(cell.over_bound),
                _number(cell.seconds("predict_seconds"), ".3f") or "differs",
                _number(predict),
                f"{median(cell.peak_bytes) / 1e6:.0f}",
                _number(cell.memory_share, ".1%"),
            ]
        )
    for engine, groups in ratios.items():
        if groups[0]:
            fit_mean, bound_mean, predict_mean = (
                _number(geometric_mean(values)) if values else "" for values in groups
            )
            name = f"geometric mean of {len(groups[0])}"
            rows.append([name, engine, *[""] * 4, fit_mean, bound_mean, "", predict_mean, "", ""])
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
