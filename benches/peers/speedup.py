"""Fit time against the number of threads: an engine bound to 1, 2, 4, ... processors and all.

The solution with t threads must have the objective of the solution with one before its time is taken.

A machine with few processors cannot show the speed-up on many. `Speedup.model` extrapolates by Amdahl's law:
with t seconds of p threads and u seconds of one, the serial share is s = (p t / u - 1) / (p - 1), and q
threads take u (s + (1 - s) / q) seconds. Processor seconds do not tell it, since threads that wait may stay
awake. Memory bandwidth and the threads' overhead beyond those of p threads are left out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import data
from comparison import FEASIBILITY_TOLERANCE, OBJECTIVE_TOLERANCE, relative_difference, solution_dual
from process import NoResultError, Settings, run_worker, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from objective import Dual

HEADINGS = ["workload", "engine", "threads", "fit s", "speed-up", "serial share", "model for 16", "objective"]
#: Threads for which the table shows the model.
MODEL_THREADS = 16


@dataclass
class Speedup:
    """One engine on one workload: seconds and processor seconds of all repeats by number of threads."""

    workload: str
    engine: str
    seconds: dict[int, list[float]] = field(default_factory=dict)
    processor_seconds: dict[int, list[float]] = field(default_factory=dict)
    objective: dict[int, float] = field(default_factory=dict)
    note: str = ""

    def of(self, threads: int) -> float | None:
        """Time with one thread over time with `threads`, of medians."""
        if not (self.seconds.get(1) and self.seconds.get(threads)):
            return None
        return median(self.seconds[1]) / median(self.seconds[threads])

    def serial_share(self, threads: int) -> float | None:
        """Share of the work that one thread does while the others wait."""
        factor = self.of(threads)
        if threads < 2 or factor is None:
            return None
        return max(0.0, (threads / factor - 1) / (threads - 1))

    def record(self) -> dict[str, Any]:
        """The runs and what follows from them, for a file."""
        most = max(self.seconds)
        share, model = self.serial_share(most), self.model(MODEL_THREADS, most)
        return {**asdict(self), "speed_up": self.of(most), "serial_share": share, "model": model}

    def model(self, threads: int, measured: int) -> float | None:
        """Speed-up that Amdahl's law gives for `threads`, from a run with `measured` threads."""
        share = self.serial_share(measured)
        return None if share is None else 1 / (share + (1 - share) / threads)


def counts(processors: int) -> list[int]:
    """1, 2, 4, ... and all processors."""
    powers = [1 << i for i in range(processors.bit_length()) if 1 << i < processors]
    return [*powers, processors]


def run(workload: dict[str, Any], engine: str, threads: Sequence[int], settings: Settings) -> Speedup:
    """Every number of threads once, then every number again."""
    found = Speedup(
        workload["name"], engine, {count: [] for count in threads}, {count: [] for count in threads}
    )
    problem = data.load(workload, settings.limit)
    reference: Dual | None = None
    judged: dict[bytes, Dual] = {}
    for _ in range(settings.repeat):
        for count in threads:
            try:
                result = run_worker(engine, workload, replace(settings, threads=count))
            except NoResultError as error:
                found.note = f"{count} threads: {error}"
                return found
            if settings.check:
                key = result["support"].tobytes() + result["dual_coef"].tobytes()
                if key not in judged:
                    judged[key] = solution_dual(problem, workload, result)
                reference = reference or judged[key]
                difference = relative_difference(judged[key], reference)
                found.objective[count] = max(difference, found.objective.get(count, 0.0), key=abs)
                if abs(difference) > OBJECTIVE_TOLERANCE or judged[key].infeasibility > FEASIBILITY_TOLERANCE:
                    found.note = f"{count} threads: objective differs by {difference:+.1e}"
                    return found
            found.seconds[count].append(result["measured"]["fit_seconds"])
            found.processor_seconds[count].append(result["measured"]["fit_cpu_seconds"])
            say(f"  {count} threads: fit {found.seconds[count][-1]:.3f} s")
    return found


def lines(found: Speedup) -> list[list[str]]:
    """Table rows."""
    rows = []
    for i, (count, seconds) in enumerate(found.seconds.items()):
        names = ["", ""] if i else [found.workload, found.engine]
        factor, share, model = found.of(count), found.serial_share(count), found.model(MODEL_THREADS, count)
        rows.append(
            [
                *names,
                str(count),
                f"{median(seconds):.3f}" if seconds else "-",
                *("" if number is None else f"{number:.2f}" for number in (factor, share, model)),
                f"{found.objective[count]:+.1e}" if count in found.objective else "not checked",
            ]
        )
    if found.note:
        rows.append(["", found.engine, found.note, *[""] * (len(HEADINGS) - 3)])
    return rows
