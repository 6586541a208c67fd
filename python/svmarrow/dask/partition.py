"""What a worker does for an exact support vector machine over partitions, one partition at a time.

A machine is a column of a code: its sign for a row is that of the row's class, 0 where the class takes no
part.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.kernel_function import TrainingKernel, kernel_values
from svmarrow._support.memory import bytes_of_rows
from svmarrow._support.rows import cache_bytes, core_rows
from svmarrow.dask.blocks import Sent
from svmarrow.dask.cluster import all_threads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from svmarrow.dask.parts import Part
    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = [
    "Change",
    "Found",
    "Machines",
    "Outputs",
    "Report",
    "advance",
    "again",
    "begin",
    "begun",
    "begun_size",
    "chosen",
    "evaluate",
    "extent",
    "report",
    "size_of",
]

#: Rows of a partition that are evaluated in double precision at a time.
_BLOCK = 8192
#: Rows of a partition of one class that are where its machines begin.
_ALONE = 64


@dataclass(frozen=True, eq=False)
class Machines(Sent):
    """What is trained: the same for all partitions."""

    #: The code (k, q).
    matrix: NDArray[np.int8]
    #: (kernel, gamma, coef0, degree).
    kernel: tuple[Any, float, float, int]
    loss: str
    fit_intercept: bool
    tol: float
    #: Arguments of the solver that are the same everywhere.
    solver: Mapping[str, Any]

    def fit(self, rows: Found, jobs: int, start: Any = None, **solver: Any) -> Any:
        """All machines on some rows, by the extension module."""
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
        told: Any = {
            "tol": 0.5 * self.tol,
            "cache_bytes": cache_bytes(self.solver["cache_size"]),
            "shrinking": self.solver["shrinking"],
            "max_iter": None,
            "max_time": None,
            "progress": None,
            "keep_interrupted": False,
            "n_jobs": jobs,
            "start": start,
            "tuning": None,
            **solver,
        }
        return _core.fit_svc(core_rows(rows.X), kernel, task, told)


@dataclass(frozen=True, eq=False)
class Found(Sent):
    """Some rows of a partition, or of all, with their coefficients (rows, q)."""

    #: Number of the partition of each.
    part: NDArray[np.int64]
    #: Number of each among the rows of its partition that count.
    local: NDArray[np.int64]
    X: Any
    labels: NDArray[np.intp]
    upper: NDArray[np.float64]
    beta: NDArray[np.float64]

    @property
    def size(self) -> int:
        """How many."""
        return int(self.local.size)

    def take(self, rows: Any) -> Found:
        """Some of them."""
        X, part, local = self.X[rows], self.part[rows], self.local[rows]
        return Found(part, local, X, self.labels[rows], self.upper[rows], self.beta[rows])


@dataclass(frozen=True)
class Change:
    """What has changed in the outputs of all machines: the coefficients of some vectors."""

    expansion: KernelExpansion


@dataclass(frozen=True, eq=False)
class Report(Sent):
    """What a partition says of the present machines."""

    #: sum C_i loss(y_i f(x_i)), (q,).
    losses: NDArray[np.float64]
    #: Derivative of these losses by an error of all outputs, at most, (q,).
    slopes: NDArray[np.float64]
    #: sum C_i, (q,).
    uppers: NDArray[np.float64]
    #: Of the rows that are not on the driver, the least gradient of those that could rise, (q,).
    rise: NDArray[np.float64]
    #: Of the same, the largest gradient of those that could fall, (q,).
    fall: NDArray[np.float64]
    #: Outputs without intercepts of the rows that are on the driver (rows, q).
    outputs: NDArray[np.float64]
    #: How many rows violate, the worst of them, and their outputs.
    violators: int
    worst: Found
    worst_outputs: NDArray[np.float64]
    #: Processor seconds of the evaluation.
    seconds: float

    @property
    def nbytes(self) -> int:
        """Bytes of what is large in it."""
        return bytes_of_rows(self.worst.X) + self.outputs.nbytes + self.worst_outputs.nbytes


@dataclass(frozen=True, eq=False)
class Outputs(Sent):
    """Outputs of a partition's rows."""

    #: Without intercepts (rows, q).
    values: NDArray[np.float64]
    #: Processor seconds of their last change.
    seconds: float


def chosen(part: Part, local: NDArray[np.int64], outputs: int) -> Found:
    """Some rows of a partition, without coefficients."""
    whole = np.full(local.size, part.number, dtype=np.int64)
    beta = np.zeros((local.size, outputs))
    return Found(whole, local, part.X[local], part.labels[local], part.upper[local], beta)


def begin(part: Part, machines: Machines, max_time: float | None) -> tuple[Found, float]:
    """The support vectors of the partition alone (Graf et al. 2005), a row at least of each class, and
    seconds.
    """
    with all_threads() as jobs:
        started = time.process_time()
        return begun(part, machines, max_time, jobs), time.process_time() - started


def begun(part: Part, machines: Machines, max_time: float | None, jobs: int) -> Found:
    """The same, on so many threads."""
    q, n = int(machines.matrix.shape[1]), int(part.labels.size)
    if n == 0:
        return chosen(part, np.empty(0, dtype=np.int64), q)
    present, first, numbers = np.unique(part.labels, return_index=True, return_inverse=True)
    spread = np.unique(np.linspace(0, n - 1, min(n, _ALONE)).astype(np.int64))
    evenly = chosen(part, np.union1d(spread, first), q)
    if present.size < 2:
        return evenly
    sub = machines.matrix[present]
    live = np.flatnonzero((sub > 0).any(axis=0) & (sub < 0).any(axis=0))
    own = replace(machines, matrix=np.ascontiguousarray(sub[:, live]))
    every = chosen(part, np.arange(n), 0)
    try:
        fitted = own.fit(replace(every, labels=numbers.reshape(-1)), jobs, max_time=max_time)
    except ValueError:
        # Rows of one partition may be ones that no machine tells apart; whether all are so, the driver sees.
        return evenly
    beta = np.zeros((n, q))
    beta[np.ix_(fitted["support"], live)] = fitted["coefficients"]
    rows = np.union1d(fitted["support"], first).astype(np.int64)
    return replace(chosen(part, rows, q), beta=beta[rows])


def again(part: Part, rows: NDArray[np.int64], beta: NDArray[np.float64]) -> Found:
    """Rows of the partition that an earlier fit has given coefficients, and a row at least of each class."""
    kept = np.arange(part.labels.size) if part.kept is None else part.kept
    place = np.minimum(np.searchsorted(kept, rows), max(kept.size - 1, 0))
    there = kept[place] == rows if kept.size else np.zeros(rows.size, dtype=bool)
    whole = np.zeros((part.labels.size, beta.shape[1]))
    whole[place[there]] = beta[there]
    local = np.union1d(place[there], np.unique(part.labels, return_index=True)[1]).astype(np.int64)
    return replace(chosen(part, local, beta.shape[1]), beta=whole[local])


def size_of(found: Found) -> tuple[int, int]:
    """How many rows, and their bytes."""
    return found.size, bytes_of_rows(found.X)


def begun_size(begun: tuple[Found, float]) -> tuple[int, int, float]:
    """How many rows a partition begins with, their bytes, and the seconds it took."""
    return (*size_of(begun[0]), begun[1])


def evaluate(expansion: KernelExpansion, X: Any, jobs: int) -> NDArray[np.float64]:
    """Outputs in double precision, whatever the rows are in: coefficients may be large."""
    out = np.empty((X.shape[0], expansion.n_outputs))
    for first in range(0, X.shape[0], _BLOCK):
        rows = X[first : first + _BLOCK]
        out[first : first + _BLOCK] = expansion._evaluate(rows.astype(np.float64, copy=False), jobs)
    return out


def extent(part: Part, machines: Machines) -> float:
    """Return the largest squared length of the rows, or what bounds kernel values of other kernels.

    It is the largest sum of sizes for the Laplacian and the chi-squared kernel, and the largest k(x, x) for a
    function.
    """
    kernel, largest = machines.kernel[0], 0.0
    step = 32 if callable(kernel) else _BLOCK
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


def advance(part: Part, before: Outputs | None, change: Change | None, q: int) -> Outputs:
    """Outputs after a change; from nothing where there are none before."""
    if change is None or part.labels.size == 0:
        return Outputs(np.zeros((part.labels.size, q)) if before is None else before.values, 0.0)
    with all_threads() as jobs:
        started = time.process_time()
        values = evaluate(change.expansion, part.X, jobs)
        if before is not None:
            values += before.values
        return Outputs(values, time.process_time() - started)


def report(
    part: Part,
    found: Outputs,
    machines: Machines,
    here: tuple[NDArray[np.int64], NDArray[np.float64], int],
) -> Report:
    """Losses, extremes and worst violators.

    ``here`` are the rows that are on the driver, by their numbers in the partition, the intercepts, and how
    many violators to tell at most. A row without coefficients violates a machine by what its margin lacks.
    """
    members, intercepts, most = here
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
    order = np.sort(violating[np.argsort(-worst[violating], kind="stable")][:most]).astype(np.int64)
    return Report(
        losses,
        slopes,
        uppers,
        rise,
        fall,
        outputs[members],
        int(violating.size),
        chosen(part, order, q),
        outputs[order],
        found.seconds,
    )
