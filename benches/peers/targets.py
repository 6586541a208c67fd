"""What svmarrow set out to show, and whether the figures show it: one line a target, met or missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import latency
from cells import Cell, best_peer, geometric_mean, times_as_fast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speedup import Speedup

TIMES_AS_FAST = 3.0
OVER_BOUND = 5.0
MICROSECONDS = 5.0
SPEEDUP_OF_TWO = 1.7


class Verdict(NamedTuple):
    """A target and whether it is met."""

    met: bool
    text: str

    def __str__(self) -> str:
        return f"{'met   ' if self.met else 'MISSED'} {self.text}"


def of_comparison(cells: Sequence[Cell]) -> list[Verdict]:
    """Targets of the svm suite for each of svmarrow's engines; one without a time of ours is a miss."""
    engines = dict.fromkeys(cell.engine for cell in cells if cell.ours)
    return [verdict for engine in engines for verdict in _of_engine(cells, engine)]


def _of_engine(cells: Sequence[Cell], engine: str) -> list[Verdict]:
    ours = [cell for cell in cells if cell.engine == engine]
    found = []
    for verb, what, each in (("fit", "fit_seconds", True), ("predict", "predict_seconds", False)):
        compared = [cell for cell in ours if best_peer(cells, cell.workload, what) is not None]
        if not compared:
            # No peer ran: nothing is claimed.
            continue
        ratios = {cell.workload: times_as_fast(cells, cell, what) for cell in compared}
        known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
        untimed = [name for name in ratios if name not in known]
        lacking = f"; no time: {', '.join(untimed)}" if untimed else ""
        if not known:
            found.append(Verdict(False, f"{engine} {verb}: no time to compare"))
            continue
        mean = geometric_mean(list(known.values()))
        text = (
            f"{engine} {verb}: {mean:.2f} times as fast as the best peer, geometric mean of {len(known)} "
            f"(at least {TIMES_AS_FAST:g}){lacking}"
        )
        found.append(Verdict(mean >= TIMES_AS_FAST and not untimed, text))
        if each:
            slower = [f"{name} {ratio:.2f}" for name, ratio in known.items() if ratio <= 1.0]
            text = (
                f"{engine} {verb}: faster than the best peer on {len(known) - len(slower)} of {len(ratios)}"
            )
            rest = f", not on {', '.join(slower)}" if slower else ""
            found.append(Verdict(not slower and not untimed, text + rest + lacking))
    bounds = [cell.over_bound for cell in ours if cell.over_bound is not None]
    if bounds:
        mean = geometric_mean(bounds)
        text = (
            f"{engine} fit: {mean:.2f} times the lower bound, geometric mean of {len(bounds)} "
            f"(at most {OVER_BOUND:g})"
        )
        found.append(Verdict(mean <= OVER_BOUND, text))
    shares = {cell.workload: cell.memory_share for cell in ours}
    shares_known = {name: share for name, share in shares.items() if share is not None}
    if shares_known:
        worst = max(shares_known, key=lambda name: shares_known[name])
        text = f"{engine} memory: at most {shares_known[worst]:.1%} of data, cache and 10 % ({worst})"
        found.append(Verdict(shares_known[worst] <= 1.0, text))
    return found


def of_threads(results: Sequence[Speedup]) -> list[Verdict]:
    """Speed-up from one thread to two on each workload."""
    found = []
    for result in results:
        factor = result.of(2)
        said = "no time" if factor is None else f"{factor:.2f}"
        text = (
            f"{result.engine} {result.workload}: speed-up of 2 threads {said} (at least {SPEEDUP_OF_TWO:g})"
        )
        found.append(Verdict(factor is not None and factor >= SPEEDUP_OF_TWO, text))
    return found


def of_latency(results: Sequence[dict[str, Any]]) -> list[Verdict]:
    """A bare expansion's answer for one row."""
    found = []
    for result in results:
        if result["name"] == latency.BARE:
            microseconds = 1e6 * result["seconds"]["1"]
            text = (
                f"{latency.BARE}, {result['dtype']}: {microseconds:.2f} us for one row "
                f"(at most {MICROSECONDS:g})"
            )
            found.append(Verdict(microseconds <= MICROSECONDS, text))
    return found
