"""What an exact fit over partitions will need, before it is begun.

The number of support vectors decides all of it. It is found by fits to a sample of the rows and to half of
it: with s(m) vectors of m rows it is taken to grow like m^p, p = log2 s(m) - log2 s(m / 2) between 0 and 1 (1
where labels are noisy: then vectors are a share of the rows). The rest is counted as the rounds go
(`svmarrow.dask.rounds`), n rows, s vectors:

    workers        n s (1 + c) kernel values, c for the coefficients that change after the first round
    driver         s^2 (1 + b c), in its solver; memory for the b s rows that it holds at most
    to a worker    s (1 + c) vectors with their coefficients
    to the driver  (1 + b) s rows, and b s outputs each round

with b, c and the number of rounds a little above what was measured on moons and mnist
(`benches/dask/scaling.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.memory import bytes_of_rows
from svmarrow._support.rows import threads
from svmarrow.dask.exact import INSTEAD, bytes_of_driver, bytes_to_solve
from svmarrow.dask.partition import begun, chosen
from svmarrow.dask.parts import Part
from svmarrow.dask.rounds import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from svmarrow.dask.cluster import Cluster
    from svmarrow.dask.partition import Found, Machines

__all__ = ["CHANGED", "HELD", "ROUNDS", "FitEstimate", "counted_work", "forecast"]

#: Rounds of a fit.
ROUNDS = 5
#: Vectors whose coefficients change after the first round, all rounds together, as a share of all vectors.
CHANGED = 0.1
#: Rows that the driver holds at most, for each support vector.
HELD = 2.3


@dataclass(frozen=True)
class FitEstimate:
    """What an exact fit over partitions will need: estimates, but for the rows.

    Attributes
    ----------
    rows : int
        Rows of all partitions that count.
    support : int
        Support vectors.
    rounds : int
        Rounds.
    driver_bytes : int
        Memory that the driver cannot do without.
    driver_free : int
        Memory that it may take now.
    worker_bytes : int
        Memory of a task on the largest partition, beside its rows. A worker runs one such task at a time.
    sent_bytes : int
        To each worker.
    received_bytes : int
        From all workers.
    worker_values : int
        Kernel values on all workers together, without the machines that the partitions begin with.
    driver_values : int
        Kernel values on the driver.
    advice : str or None
        What to do instead where the driver cannot hold the support vectors.
    """

    rows: int
    support: int
    rounds: int
    driver_bytes: int
    driver_free: int
    worker_bytes: int
    sent_bytes: int
    received_bytes: int
    worker_values: int
    driver_values: int
    advice: str | None


def counted_work(
    rows: int, support: int, row_bytes: float, outputs: int, rounds: int = ROUNDS
) -> dict[str, int]:
    """Kernel values and bytes of a fit with so many support vectors."""
    again, beside = 1.0 + CHANGED, 8.0 * outputs
    # Rows come with number of partition and row, label, bound and coefficients or outputs.
    whole = row_bytes + 32.0 + beside
    return {
        "sent_bytes": round(support * again * (row_bytes + beside)),
        "received_bytes": round(support * ((1.0 + HELD) * whole + rounds * HELD * beside)),
        "worker_values": round(rows * support * again),
        "driver_values": round(support * support * (1.0 + HELD * CHANGED)),
    }


def forecast(
    name: str, cluster: Cluster, parts: Sequence[Any], machines: Machines, sample: int, n_jobs: int | None
) -> FitEstimate:
    """The estimate, from so many rows of the parts."""
    counts = cluster.gather(cluster.each(_counted, parts), "the rows")
    rows, jobs, q = sum(counts), threads(n_jobs), int(machines.matrix.shape[1])
    drawn = np.sort(np.random.default_rng(0).choice(rows, min(rows, sample), replace=False))
    ends = np.concatenate([[0], np.cumsum(counts)])
    cuts = np.searchsorted(drawn, ends)
    asked = [number for number in range(len(parts)) if cuts[number] < cuts[number + 1]]
    told = [
        cluster.submit(chosen, parts[number], drawn[cuts[number] : cuts[number + 1]] - ends[number], 0)
        for number in asked
    ]
    support, row_bytes = _support(joined(cluster.gather(told, "the rows")), rows, machines, jobs)
    held = min(rows, round(HELD * support))
    needed = bytes_of_driver(machines, held, round(held * row_bytes), jobs)
    free, largest = int(_core.available_memory()), max(counts)
    beside = round(8.0 * q * (2 * largest + support) + support * row_bytes)
    advice = None
    if needed > free:
        advice = (
            f"{name}.fit would need about {needed / 1e9:.2f} GB on the driver for the {support:,} support "
            f"vectors that are expected, and {free / 1e9:.2f} GB are free: {INSTEAD}"
        )
    return FitEstimate(
        rows=rows,
        support=support,
        rounds=ROUNDS,
        driver_bytes=needed,
        driver_free=free,
        worker_bytes=bytes_to_solve(machines, largest, round(largest * row_bytes), jobs) + beside,
        advice=advice,
        **counted_work(rows, support, row_bytes, q),
    )


def _support(found: Found, rows: int, machines: Machines, jobs: int) -> tuple[int, float]:
    """How many vectors so many rows will have, and the bytes of one."""
    row_bytes = bytes_of_rows(found.X) / found.size
    whole = _vectors(found, machines, jobs)
    if found.size == rows:
        return whole, row_bytes
    half = _vectors(found.take(np.arange(0, found.size, 2)), machines, jobs)
    power = min(1.0, max(0.0, math.log2(max(whole, 1) / max(half, 1))))
    return min(rows, round(whole * (rows / found.size) ** power)), row_bytes


def _vectors(found: Found, machines: Machines, jobs: int) -> int:
    """Support vectors of some rows."""
    part = Part(0, found.X, found.labels, found.upper, None)
    return int(begun(part, machines, None, jobs).beta.any(axis=1).sum())


def _counted(part: Part) -> int:
    return int(part.labels.size)
