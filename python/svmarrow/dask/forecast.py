"""Estimates of the memory, communication and work of an exact fit over partitions.

All estimates follow from the number of support vectors, which is extrapolated from fits to a sample of the
rows and to half of it: with s(m) vectors of m rows it is assumed to grow like m^p, p = log2 s(m) - log2
s(m / 2) between 0 and 1 (1 for noisy labels, where the vectors are a share of the rows). The rounds
(`svmarrow.dask.rounds`) then need, for n rows and s vectors:

    workers        n s (1 + c) kernel values, c for the coefficients that change after the first round
    driver         s^2 (1 + b c) in its solver; memory for at most b s rows
    to a worker    s (1 + c) vectors with their coefficients
    to the driver  (1 + b) s rows, and b s outputs each round

The constants b, c and the number of rounds are slightly above the values measured on moons and mnist
(`benches/dask/scaling.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.rows import threads
from svmarrow._support.training import bytes_of_rows
from svmarrow.dask.blocks import Part, rows_by_part
from svmarrow.dask.partition import fitted_rows, row_subset
from svmarrow.dask.rounds import concatenate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from svmarrow.dask.estimator import Cluster
    from svmarrow.dask.partition import Machines, RowSubset

__all__ = [
    "ALTERNATIVE",
    "CHANGED_SHARE",
    "DRIVER_ROWS_PER_VECTOR",
    "EXPECTED_ROUNDS",
    "FitEstimate",
    "bytes_of_driver",
    "bytes_to_solve",
    "estimate_fit",
    "estimate_work",
]


#: Remedy if the driver cannot store the support vectors.
ALTERNATIVE = "train DaskLowRankRLSClassifier, whose memory does not grow with the samples"


def bytes_to_solve(machines: Machines, rows: int, held: int, jobs: int) -> int:
    """Returns the memory that a process needs at least to train the machines on ``rows`` samples of ``held``
    bytes.
    """
    # A few rows stand for those that are not loaded yet.
    sample = np.ones((min(max(1, rows), 512), max(1, held // max(1, 8 * rows))))
    kernel: Any = machines.kernel if isinstance(machines.kernel[0], str) else machines.kernel[0]
    sizes = [rows] * int(machines.matrix.shape[1])
    return int(_core.estimate_svm_memory(sample, rows, kernel, sizes, 0, jobs)["least"])


def bytes_of_driver(machines: Machines, rows: int, held: int, jobs: int) -> int:
    """Returns the memory that the driver needs at least, which stores three copies of its rows: as received,
    as concatenated and as sorted.
    """
    return bytes_to_solve(machines, rows, held, jobs) + 3 * held


#: Number of rounds of a fit.
EXPECTED_ROUNDS = 5
#: Number of changed coefficients after the first round, summed over the rounds, as a share of all vectors.
CHANGED_SHARE = 0.1
#: Maximum number of rows on the driver for each support vector.
DRIVER_ROWS_PER_VECTOR = 2.3


@dataclass(frozen=True)
class FitEstimate:
    """Estimated resources of an exact fit over partitions.

    Attributes
    ----------
    n_samples : int
        Number of samples of positive weight in all partitions.
    support : int
        Number of support vectors.
    rounds : int
        Number of rounds.
    driver_bytes : int
        Minimum memory of the driver.
    driver_free : int
        Free memory of the driver.
    worker_bytes : int
        Memory of a task on the largest partition, in addition to its samples. A worker runs one such task at
        a time.
    sent_bytes : int
        Number of bytes that each worker receives.
    received_bytes : int
        Number of bytes that all workers send.
    worker_values : int
        Number of kernel values on all workers, without the first fits of the partitions.
    driver_values : int
        Number of kernel values on the driver.
    advice : str or None
        Alternative if the driver cannot store the support vectors.
    """

    n_samples: int
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


def estimate_work(
    rows: int, support: int, row_bytes: float, outputs: int, rounds: int = EXPECTED_ROUNDS
) -> dict[str, int]:
    """Returns the kernel values and bytes of a fit with ``support`` support vectors."""
    sent_share, output_bytes = 1.0 + CHANGED_SHARE, 8.0 * outputs
    # A row has the indices of partition and row, label, upper bound and coefficients or outputs.
    record_bytes = row_bytes + 32.0 + output_bytes
    return {
        "sent_bytes": round(support * sent_share * (row_bytes + output_bytes)),
        "received_bytes": round(
            support
            * ((1.0 + DRIVER_ROWS_PER_VECTOR) * record_bytes + rounds * DRIVER_ROWS_PER_VECTOR * output_bytes)
        ),
        "worker_values": round(rows * support * sent_share),
        "driver_values": round(support * support * (1.0 + DRIVER_ROWS_PER_VECTOR * CHANGED_SHARE)),
    }


def estimate_fit(
    name: str, cluster: Cluster, parts: Sequence[Any], machines: Machines, sample: int, n_jobs: int | None
) -> FitEstimate:
    """Estimates the fit from ``sample`` rows of the parts."""
    counts = cluster.gather(cluster.each(_counted, parts), "the rows")
    rows, jobs, q = sum(counts), threads(n_jobs), int(machines.matrix.shape[1])
    drawn = np.sort(np.random.default_rng(0).choice(rows, min(rows, sample), replace=False))
    futures = [
        cluster.submit(row_subset, parts[number], local, 0)
        for number, local in rows_by_part(counts, drawn).items()
    ]
    support, row_bytes = _support(concatenate(cluster.gather(futures, "the rows")), rows, machines, jobs)
    held = min(rows, round(DRIVER_ROWS_PER_VECTOR * support))
    needed = bytes_of_driver(machines, held, round(held * row_bytes), jobs)
    free, largest = int(_core.available_memory()), max(counts)
    beside = round(8.0 * q * (2 * largest + support) + support * row_bytes)
    advice = None
    if needed > free:
        advice = (
            f"{name}.fit would need about {needed / 1e9:.2f} GB on the driver for the {support:,} expected "
            f"support vectors, and {free / 1e9:.2f} GB are free: {ALTERNATIVE}"
        )
    return FitEstimate(
        n_samples=rows,
        support=support,
        rounds=EXPECTED_ROUNDS,
        driver_bytes=needed,
        driver_free=free,
        worker_bytes=bytes_to_solve(machines, largest, round(largest * row_bytes), jobs) + beside,
        advice=advice,
        **estimate_work(rows, support, row_bytes, q),
    )


def _support(found: RowSubset, rows: int, machines: Machines, jobs: int) -> tuple[int, float]:
    """Extrapolates the number of support vectors to ``rows`` rows, and returns the bytes of a row."""
    row_bytes = bytes_of_rows(found.X) / found.size
    full = _vectors(found, machines, jobs)
    if found.size == rows:
        return full, row_bytes
    half = _vectors(found.take(np.arange(0, found.size, 2)), machines, jobs)
    power = min(1.0, max(0.0, math.log2(max(full, 1) / max(half, 1))))
    return min(rows, round(full * (rows / found.size) ** power)), row_bytes


def _vectors(found: RowSubset, machines: Machines, jobs: int) -> int:
    """Returns the number of support vectors of some rows."""
    part = Part(0, found.X, found.labels, found.upper, None)
    return int(fitted_rows(part, machines, None, jobs).beta.any(axis=1).sum())


def _counted(part: Part) -> int:
    return int(part.labels.size)
