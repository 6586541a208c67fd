"""Tasks of an exact support vector machine on one partition, and the estimate of a fit.

A machine is a column of a code: its sign for a row is that of the row's class, 0 for an omitted class.

The memory, communication and work of a fit follow from the number of support vectors, which is extrapolated
from fits to a sample of the rows and to half of it: with s(m) vectors of m rows it is assumed to grow like
m^p, p = log2 s(m) - log2 s(m / 2) between 0 and 1 (1 for noisy labels, where the vectors are a share of the
rows). The rounds (`svmarrow.dask.rounds`) then need, for n rows and s vectors:

    workers        n s (1 + c) kernel values, c for the coefficients that change after the first round
    driver         s^2 (1 + b c) in its solver; memory for at most b s rows
    to a worker    s (1 + c) vectors with their coefficients
    to the driver  (1 + b) s rows, and b s outputs each round

The constants b, c and the number of rounds are slightly above the values measured on moons and mnist
(`benches/dask/scaling.py`).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.rows import cache_bytes, core_rows, threads
from svmarrow._support.training import bytes_of_rows
from svmarrow.dask.blocks import Part, RealignOnUnpickle, rows_by_part
from svmarrow.dask.estimator import all_threads
from svmarrow.expansion.kernel_expansion import TrainingKernel, kernel_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from svmarrow.dask.estimator import Cluster
    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = [
    "ALTERNATIVE",
    "CHANGED_SHARE",
    "DRIVER_ROWS_PER_VECTOR",
    "EXPECTED_ROUNDS",
    "Change",
    "FitEstimate",
    "Machines",
    "Outputs",
    "Report",
    "RowSubset",
    "bytes_of_driver",
    "bytes_to_solve",
    "concatenate",
    "estimate_fit",
    "estimate_work",
    "evaluate_outputs",
    "fit_partition",
    "fitted_rows",
    "fitted_size",
    "kernel_bound",
    "partition_report",
    "row_subset",
    "size_of",
    "update_outputs",
    "warm_start_rows",
]

#: Number of rows that are evaluated in double precision at a time.
_BLOCK_ROWS = 8192
#: Number of rows that represent a partition of a single class in the first round.
_SINGLE_CLASS_ROWS = 64


@dataclass(frozen=True, eq=False)
class Machines(RealignOnUnpickle):
    """The machines to train, the same for all partitions."""

    #: The code (k, q).
    matrix: NDArray[np.int8]
    #: (kernel, gamma, coef0, degree).
    kernel: tuple[Any, float, float, int]
    loss: str
    fit_intercept: bool
    tol: float
    #: Shared arguments of the solver.
    solver: Mapping[str, Any]

    def fit(self, rows: RowSubset, jobs: int, start: Any = None, **solver: Any) -> Any:
        """Trains all machines on some rows."""
        kernel: Any = self.kernel
        if callable(kernel[0]):
            kernel = TrainingKernel(kernel[0], rows.X)
        task: Any = {
            "labels": rows.labels.astype(np.int64),
            "n_classes": int(self.matrix.shape[0]),
            "upper": rows.upper,
            "coding": self.matrix,
            "loss": self.loss,
            "nu": None,
            "fit_intercept": self.fit_intercept,
        }
        settings: Any = {
            "tol": 0.5 * self.tol,
            "cache_bytes": cache_bytes(self.solver["cache_size"]),
            "shrinking": self.solver["shrinking"],
            "max_iter": None,
            "max_time": None,
            "progress": None,
            "keep_interrupted": False,
            "n_jobs": jobs,
            "start": start,
            **solver,
        }
        return _core.fit_svc(core_rows(rows.X), kernel, task, settings)


@dataclass(frozen=True, eq=False)
class RowSubset(RealignOnUnpickle):
    """Some rows of one or all partitions with their coefficients (n_rows, q)."""

    #: Index of each row's partition.
    part: NDArray[np.int64]
    #: Index of each row among those of positive weight in its partition.
    local: NDArray[np.int64]
    X: Any
    labels: NDArray[np.intp]
    upper: NDArray[np.float64]
    beta: NDArray[np.float64]

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.local.size)

    def take(self, rows: Any) -> RowSubset:
        """Returns some of the rows."""
        X, part, local = self.X[rows], self.part[rows], self.local[rows]
        return RowSubset(part, local, X, self.labels[rows], self.upper[rows], self.beta[rows])


@dataclass(frozen=True)
class Change:
    """A change of the coefficients of some vectors as an expansion."""

    expansion: KernelExpansion


@dataclass(frozen=True, eq=False)
class Report(RealignOnUnpickle):
    """Losses, gradients and violations of the current machines on a partition."""

    #: sum C_i loss(y_i f(x_i)), (q,).
    losses: NDArray[np.float64]
    #: Maximum derivative of these losses with respect to an error of all outputs, (q,).
    slopes: NDArray[np.float64]
    #: sum C_i, (q,).
    uppers: NDArray[np.float64]
    #: Minimum gradient of the rows outside the driver whose coefficients may increase, (q,).
    rise: NDArray[np.float64]
    #: Maximum gradient of the rows outside the driver whose coefficients may decrease, (q,).
    fall: NDArray[np.float64]
    #: Outputs without intercepts of the rows on the driver (n_rows, q).
    outputs: NDArray[np.float64]
    #: Number of violating rows, the worst of them, and their outputs.
    violators: int
    worst: RowSubset
    worst_outputs: NDArray[np.float64]
    #: Processor seconds of the evaluation.
    seconds: float

    @property
    def nbytes(self) -> int:
        """Number of bytes of the rows and outputs."""
        return bytes_of_rows(self.worst.X) + self.outputs.nbytes + self.worst_outputs.nbytes


@dataclass(frozen=True, eq=False)
class Outputs(RealignOnUnpickle):
    """Outputs of a partition's rows."""

    #: Outputs without intercepts (n_rows, q).
    values: NDArray[np.float64]
    #: Processor seconds of their last change.
    seconds: float


def row_subset(part: Part, local: NDArray[np.int64], outputs: int) -> RowSubset:
    """Returns some rows of a partition with coefficients 0."""
    parts = np.full(local.size, part.number, dtype=np.int64)
    beta = np.zeros((local.size, outputs))
    return RowSubset(parts, local, part.X[local], part.labels[local], part.upper[local], beta)


def concatenate(found: Sequence[RowSubset]) -> RowSubset:
    """Concatenates the rows of several partitions in their order."""
    subsets = [each for each in found if each.size] or list(found[:1])
    X = [each.X for each in subsets]
    return RowSubset(
        np.concatenate([each.part for each in subsets]),
        np.concatenate([each.local for each in subsets]),
        sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.concatenate(X),
        np.concatenate([each.labels for each in subsets]),
        np.concatenate([each.upper for each in subsets]),
        np.concatenate([each.beta for each in subsets]),
    )


def fit_partition(part: Part, machines: Machines, max_time: float | None) -> tuple[RowSubset, float]:
    """Returns the rows of `fitted_rows` and the processor seconds of the fit."""
    with all_threads() as jobs:
        started = time.process_time()
        return fitted_rows(part, machines, max_time, jobs), time.process_time() - started


def fitted_rows(part: Part, machines: Machines, max_time: float | None, jobs: int) -> RowSubset:
    """Returns the support vectors of the partition (Graf et al. 2005), at least one row of each class."""
    q, n = int(machines.matrix.shape[1]), int(part.labels.size)
    if n == 0:
        return row_subset(part, np.empty(0, dtype=np.int64), q)
    present, first, numbers = np.unique(part.labels, return_index=True, return_inverse=True)
    spaced = np.unique(np.linspace(0, n - 1, min(n, _SINGLE_CLASS_ROWS)).astype(np.int64))
    sample = row_subset(part, np.union1d(spaced, first), q)
    if present.size < 2:
        return sample
    code = machines.matrix[present]
    active = np.flatnonzero((code > 0).any(axis=0) & (code < 0).any(axis=0))
    active_machines = replace(machines, matrix=np.ascontiguousarray(code[:, active]))
    every = row_subset(part, np.arange(n), 0)
    try:
        fitted = active_machines.fit(replace(every, labels=numbers.reshape(-1)), jobs, max_time=max_time)
    except ValueError:
        # The rows of one partition may be inseparable by any machine; the driver checks all rows.
        return sample
    beta = np.zeros((n, q))
    beta[np.ix_(fitted["support"], active)] = fitted["coefficients"]
    rows = np.union1d(fitted["support"], first).astype(np.int64)
    return replace(row_subset(part, rows, q), beta=beta[rows])


def warm_start_rows(part: Part, rows: NDArray[np.int64], beta: NDArray[np.float64]) -> RowSubset:
    """Returns the support vectors of an earlier fit in the partition, and at least one row of each class."""
    kept_rows = np.arange(part.labels.size) if part.kept is None else part.kept
    place = np.minimum(np.searchsorted(kept_rows, rows), max(kept_rows.size - 1, 0))
    present = kept_rows[place] == rows if kept_rows.size else np.zeros(rows.size, dtype=bool)
    full = np.zeros((part.labels.size, beta.shape[1]))
    full[place[present]] = beta[present]
    local = np.union1d(place[present], np.unique(part.labels, return_index=True)[1]).astype(np.int64)
    return replace(row_subset(part, local, beta.shape[1]), beta=full[local])


def size_of(found: RowSubset) -> tuple[int, int]:
    """Returns the number of rows and of their bytes."""
    return found.size, bytes_of_rows(found.X)


def fitted_size(begun: tuple[RowSubset, float]) -> tuple[int, int, float]:
    """Returns the number of rows, their bytes, and the seconds of a result of `fit_partition`."""
    return (*size_of(begun[0]), begun[1])


def evaluate_outputs(expansion: KernelExpansion, X: Any, jobs: int) -> NDArray[np.float64]:
    """Computes outputs in double precision for rows of any type, since coefficients may be large."""
    out = np.empty((X.shape[0], expansion.n_outputs))
    for first in range(0, X.shape[0], _BLOCK_ROWS):
        rows = X[first : first + _BLOCK_ROWS]
        out[first : first + _BLOCK_ROWS] = expansion._evaluate(rows.astype(np.float64, copy=False), jobs)
    return out


def kernel_bound(part: Part, machines: Machines) -> float:
    """Returns the maximum squared norm of the samples, or the bound of other kernels' values.

    It is the maximum sum of absolute values for the Laplacian and the chi-squared kernel, and the maximum
    k(x, x) for a function.
    """
    kernel, largest = machines.kernel[0], 0.0
    step = 32 if callable(kernel) else _BLOCK_ROWS
    for first in range(0, part.X.shape[0], step):
        rows = part.X[first : first + step]
        if callable(kernel):
            values = np.diagonal(kernel_values(kernel, rows, rows))
        else:
            rows = rows.astype(np.float64, copy=False)
            sizes = abs(rows)
            if kernel not in ("laplacian", "chi2"):
                sizes = sizes.multiply(sizes) if sp.issparse(sizes) else sizes * sizes
            values = np.asarray(sizes.sum(axis=1))
        largest = max(largest, float(np.max(np.abs(values), initial=0.0)))
    return largest


def update_outputs(part: Part, before: Outputs | None, change: Change | None, q: int) -> Outputs:
    """Returns the outputs after a change; ``before=None`` starts from 0."""
    if change is None or part.labels.size == 0:
        return Outputs(np.zeros((part.labels.size, q)) if before is None else before.values, 0.0)
    with all_threads() as jobs:
        started = time.process_time()
        values = evaluate_outputs(change.expansion, part.X, jobs)
        if before is not None:
            values += before.values
        return Outputs(values, time.process_time() - started)


def partition_report(
    part: Part,
    found: Outputs,
    machines: Machines,
    driver: tuple[NDArray[np.int64], NDArray[np.float64], int],
) -> Report:
    """Computes losses, extreme gradients and the worst violators.

    ``driver`` has the indices of the driver's samples in the partition, the intercepts, and the maximum
    number of violators to return. A sample without coefficients violates a machine by its missing margin.
    """
    members, intercepts, max_violators = driver
    outputs = found.values
    q = int(machines.matrix.shape[1])
    away = np.ones(part.labels.size, dtype=bool)
    away[members] = False
    losses, slopes, uppers = np.zeros(q), np.zeros(q), np.zeros(q)
    rise, fall = np.full(q, np.inf), np.full(q, -np.inf)
    worst = np.full(part.labels.size, -np.inf)
    for machine in range(q):
        signs = machines.matrix[part.labels, machine].astype(np.float64)
        missed = 1.0 - signs * (outputs[:, machine] + intercepts[machine])
        loss = np.maximum(missed, 0.0)
        takes = signs != 0.0
        uppers[machine] = slopes[machine] = float(part.upper[takes].sum())
        if machines.loss == "squared_hinge":
            slopes[machine] = 2.0 * float((part.upper * loss)[takes].sum())
            loss *= loss
        losses[machine] = float((part.upper * loss)[takes].sum())
        gradient = outputs[:, machine] - signs
        rise[machine] = gradient[away & (signs > 0.0)].min(initial=np.inf)
        fall[machine] = gradient[away & (signs < 0.0)].max(initial=-np.inf)
        np.maximum(worst, np.where(takes & away, missed, -np.inf), out=worst)
    violating = np.flatnonzero(worst > 0.25 * machines.tol)
    order = np.sort(violating[np.argsort(-worst[violating], kind="stable")][:max_violators]).astype(np.int64)
    return Report(
        losses,
        slopes,
        uppers,
        rise,
        fall,
        outputs[members],
        int(violating.size),
        row_subset(part, order, q),
        outputs[order],
        found.seconds,
    )


# --- memory, communication and work of a fit ---


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
