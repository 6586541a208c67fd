"""Tasks of an exact support vector machine on one partition, run by the workers.

A machine is a column of a code: its sign for a row is that of the row's class, 0 for an omitted class.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.rows import cache_bytes, core_rows
from svmarrow._support.training import bytes_of_rows
from svmarrow.dask.blocks import RealignOnUnpickle
from svmarrow.dask.estimator import all_threads
from svmarrow.expansion.kernel_expansion import TrainingKernel, kernel_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from svmarrow.dask.blocks import Part
    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = [
    "Change",
    "Machines",
    "Outputs",
    "Report",
    "RowSubset",
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
