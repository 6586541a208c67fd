"""Fit time against the number of rows, seconds = a n^p, for every engine in one table.

The sizes are nested random subsets of one generated set, so that every size is the same problem. p is the
least-squares slope of log seconds on log n, over all sizes of an engine and over the sizes that all engines
have, for a peer that leaves out the large ones is not compared on equal terms otherwise. A peer is not
started where the power through its last two sizes says that the fit takes longer than the time-out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from comparison import Comparison
from process import Settings, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cells import Cell

#: Without two sizes to tell: pairs of rows.
ASSUMED_EXPONENT = 2.0


@dataclass
class Series:
    """One engine on one workload: seconds by size, and why other sizes have none."""

    workload: str
    engine: str
    seconds: dict[int, float] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)
    cells: dict[int, Cell] = field(default_factory=dict)

    def expected(self, size: int) -> float:
        """Seconds that a size will take; 0 where nothing is known."""
        known = sorted(self.seconds)[-2:]
        if not known:
            return 0.0
        slope = exponent(self.seconds, known) if len(known) == 2 else ASSUMED_EXPONENT
        return self.seconds[known[-1]] * float((size / known[-1]) ** slope)

    def exponent(self, sizes: Sequence[int] | None = None) -> float | None:
        """The power over some sizes, or all; None for fewer than three."""
        chosen = sorted(self.seconds if sizes is None else sizes)
        return exponent(self.seconds, chosen) if len(chosen) >= 3 else None


def exponent(seconds: Mapping[int, float], sizes: Sequence[int]) -> float:
    """The p of seconds = a n^p by least squares of logarithms."""
    return float(np.polyfit(np.log(sizes), np.log([seconds[size] for size in sizes]), 1)[0])


def run(
    workload: dict[str, Any], engines: Sequence[str], sizes: Sequence[int], settings: Settings, test: int
) -> list[Series]:
    """Every engine at every size that it is expected to finish in time, small sizes first."""
    found = {name: Series(workload["name"], name) for name in engines}
    largest = workload | {"rows": max(sizes), "test": test}
    for size in sorted(sizes):
        say(f"growth {workload['name']}: {size} rows")
        asked = []
        for name, series in found.items():
            seconds = series.expected(size)
            if any(note.startswith("over") for note in series.missing.values()):
                series.missing[size] = "a smaller size was over time"
            elif settings.timeout is not None and seconds > settings.timeout and "svmarrow" not in name:
                series.missing[size] = f"expected {seconds:.0f} s, over {settings.timeout:g}"
            else:
                asked.append(name)
                continue
            say(f"  {name}: left out: {series.missing[size]}")
        for cell in Comparison(largest, asked, replace(settings, limit=size)).run():
            series = found[cell.engine]
            series.cells[size] = cell
            time = cell.seconds("fit_seconds")
            if time is None:
                series.missing[size] = cell.note or "differs"
            else:
                series.seconds[size] = time
    return list(found.values())


def headings(sizes: Sequence[int]) -> list[str]:
    """Of the table."""
    return ["workload", "engine", *(f"{size:,}" for size in sorted(sizes)), "exponent", "on shared sizes"]


def lines(group: Sequence[Series], sizes: Sequence[int]) -> list[list[str]]:
    """Table rows of the engines of one workload."""

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    ran = [set(series.seconds) for series in group if series.seconds]
    shared = sorted(set.intersection(*ran)) if ran else []
    rows = []
    for i, series in enumerate(group):
        seconds = [f"{series.seconds[size]:.3f}" if size in series.seconds else "-" for size in sorted(sizes)]
        powers = [series.exponent(), series.exponent(shared) if series.seconds else None]
        rows.append(["" if i else series.workload, series.engine, *seconds, *map(number, powers)])
    return rows


def left_out(group: Sequence[Series]) -> list[str]:
    """A sentence for every size without a time."""
    return [
        f"{series.workload}: {series.engine} has no time at {size:,} rows: {note}"
        for series in group
        for size, note in sorted(series.missing.items())
    ]
