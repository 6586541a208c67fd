"""Exact support vector machines over partitions.

The dual problem of `svmarrow.SVC` over all rows is solved by decomposition (Osuna, Freund, Girosi 1997;
Rifkin 2002, section 2.4), where the working set is a set of rows on the driver. It starts with the support
vectors of the partitions, each trained separately (Graf et al. 2005). In a round the driver trains the
machines on its rows from the coefficients of the previous round; every worker evaluates the changed
coefficients on its partitions, sums the loss, and returns the rows outside the driver that violate the
optimality conditions most, which join the working set. The outputs of the driver's rows are returned too, so
that the next solution starts without computing kernel values. Rows without a coefficient for two rounds leave
the working set.

Every round raises the dual until no row violates the conditions, which then hold for all rows, and

    dual   = sum |b_i| - (b'Kb + sum r_i b_i^2) / 2        from the outputs of the rows on the driver,
    primal = b'Kb / 2 + sum of the losses of all rows      from the workers,

are the certificate of a fit on one machine. Changes are added to the outputs in double precision; after
sixteen rounds the outputs are computed again from the whole expansion, which bounds rounding errors and the
work that is repeated when a worker is lost. Both objectives account for the worst-case rounding error of
these outputs.

A round costs (all rows) x (changed vectors) kernel values on the workers, and the solver's steps on the
driver, in the first round (driver's rows) x (support vectors) kernel values. The memory of the driver is that
of its rows and of `SVC` on them.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.parameters import MATERN_KERNELS
from svmarrow._support.rows import core_rows
from svmarrow.dask.partition import (
    Change,
    RowSubset,
    concatenate,
    fit_partition,
    fitted_size,
    kernel_bound,
    partition_report,
    update_outputs,
)
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.machine import MachineCertificate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow._support.progress import Progress
    from svmarrow.dask.estimator import Cluster
    from svmarrow.dask.partition import Machines, Report

__all__ = ["Round", "Rounds", "Solved"]

#: Number of rounds without a coefficient after which a row leaves the driver.
_MAX_IDLE_ROUNDS = 2
#: Minimum limit of the rows that join in a round; otherwise it is the number of rows on the driver.
_MIN_JOINING_ROWS = 1024
#: Maximum number of changes that are added to the outputs before they are recomputed.
_MAX_OUTPUT_UPDATES = 16
#: Minimum relative increase of the dual if a machine cannot be solved to the tolerance.
_MIN_RELATIVE_GAIN = 1e-9


@dataclass(frozen=True)
class Round:
    """Statistics of a round of a fit over partitions."""

    #: Number of samples on the driver.
    n_samples: int
    #: Number of support vectors among them.
    support: int
    #: Number of other samples that violate the optimality conditions.
    violators: int
    #: Dual objective of the driver's machines.
    dual: float
    #: Duality gap over all samples.
    gap: float
    #: Number of vectors whose coefficients changed, which the workers evaluate.
    changed: int
    #: Number of bytes of vectors sent to each worker.
    sent: int
    #: Number of bytes of samples received from all workers.
    received: int
    #: Processor seconds of the driver's solver.
    driver: float
    #: Total processor seconds of the workers' evaluation.
    workers: float
    #: Processor seconds of the first fits of the partitions, in the first round.
    begin: float
    #: Wall-clock seconds since the end of the previous round.
    seconds: float


@dataclass(frozen=True, eq=False)
class Solved:
    """Trained machines and their certificates."""

    rows: RowSubset
    intercepts: NDArray[np.float64]
    certificates: tuple[MachineCertificate, ...]


class Rounds:
    """The rounds of a fit over partitions."""

    stopped: bool

    def __init__(
        self,
        cluster: Cluster,
        parts: Sequence[Any],
        machines: Machines,
        *,
        jobs: int,
        max_iter: int | None,
        max_time: float | None,
        reporter: Progress,
    ) -> None:
        self._cluster, self._parts, self._machines = cluster, parts, machines
        self._shared = cluster.shared(machines)
        self._jobs, self._reporter = jobs, reporter
        self._max_iter = max_iter
        self._max_time = max_time
        self._begin, self._beginning = time.monotonic(), 0.0
        self._q = int(machines.matrix.shape[1])
        self._counts = np.zeros((self._q, 2), dtype=np.int64)
        self._effort = np.zeros(3, dtype=np.int64)
        self._stops = ["stalled"] * self._q
        self._late = False
        reporter.stops_in = ("rounds", 1)
        #: Whether a callback has requested a stop.
        self.stopped = False
        #: Statistics of the rounds.
        self.log: list[Round] = []
        #: The last machines that have certificates.
        self.solved: Solved | None = None

    @property
    def effort(self) -> dict[str, Any]:
        """Cost of the fit so far, in the form of the extension module."""
        values, hits, misses = (int(count) for count in self._effort)
        seconds = time.monotonic() - self._begin
        return {"kernel_values": values, "cache_hits": hits, "cache_misses": misses, "seconds": seconds}

    def first(self, check: Any) -> RowSubset:
        """Returns the support vectors of the partitions, after ``check(rows, bytes)`` has accepted them."""
        left = self._remaining_seconds()
        found = [self._cluster.submit(fit_partition, part, self._shared, left) for part in self._parts]
        sizes = self._cluster.gather(self._cluster.each(fitted_size, found), "the machine")
        check(sum(rows for rows, *_ in sizes), sum(held for _, held, _ in sizes))
        self._beginning = sum(seconds for *_, seconds in sizes)
        return concatenate([rows for rows, _ in self._cluster.gather(found, "the machine")])

    def run(self, rows: RowSubset) -> Solved:
        """Runs rounds until no row violates the conditions or the fit is stopped."""
        idle = np.zeros(rows.size, dtype=np.int64)
        sent = np.zeros_like(rows.beta)
        outputs: list[Any] = [None] * len(self._parts)
        known: NDArray[np.float64] | None = None
        added = np.zeros(self._q)
        n_updates, dual = 0, -np.inf
        while True:
            started = time.process_time()
            rows, intercepts = self._solve(rows, known)
            solving = time.process_time() - started
            is_full = n_updates == 0
            difference = rows.beta if is_full else rows.beta - sent
            added = np.abs(difference).sum(axis=0) + (0.0 if is_full else added)
            change, changed, size = self._change(rows, difference)
            before = [None] * len(self._parts) if is_full else outputs
            outputs = self._cluster.each(
                update_outputs, self._parts, before, [change] * len(self._parts), [self._q] * len(self._parts)
            )
            sent, n_updates = rows.beta, n_updates + 1
            reports = self._reports(rows, outputs, intercepts)
            violators = sum(each.violators for each in reports)
            own = np.concatenate([each.outputs for each in reports])
            machines = self._certified(rows, own, reports, added)
            self.log.append(
                Round(
                    rows.size,
                    int(np.count_nonzero(rows.beta.any(axis=1))),
                    violators,
                    sum(each.dual for each in machines),
                    sum(each.gap for each in machines),
                    changed,
                    size,
                    sum(each.nbytes for each in reports),
                    solving,
                    sum(each.seconds for each in reports),
                    0.0 if self.log else self._beginning,
                    time.monotonic() - self._begin - sum(each.seconds for each in self.log),
                )
            )
            self._report_round()
            is_last = violators == 0 or self._is_over(dual)
            dual = self.log[-1].dual
            if is_last:
                machines = tuple(replace(each, stop=self._reason(each.stop, violators)) for each in machines)
            self.solved = Solved(rows, intercepts, machines)
            if is_last:
                return self.solved
            n_updates %= _MAX_OUTPUT_UPDATES
            idle = np.where(rows.beta.any(axis=1), 0, idle + 1)
            is_recent = idle < _MAX_IDLE_ROUNDS
            joining = concatenate([each.worst for each in reports])
            rows, order = _merged(rows.take(is_recent), joining)
            idle = np.concatenate([idle[is_recent], np.zeros(joining.size, dtype=np.int64)])[order]
            sent = np.concatenate([sent[is_recent], joining.beta])[order]
            known = np.concatenate([own[is_recent], *(each.worst_outputs for each in reports)])[order]

    def end(self, reason: str) -> None:
        """Ends the fit with the machines of the last round."""
        assert self.solved is not None
        certificates = tuple(replace(each, stop=reason) for each in self.solved.certificates)
        self.solved = replace(self.solved, certificates=certificates)

    def _remaining_seconds(self) -> float | None:
        """Returns the remaining seconds."""
        if self._max_time is None:
            return None
        return max(0.0, self._max_time - (time.monotonic() - self._begin))

    @property
    def _early_stop(self) -> str:
        """Stopping reason of a fit that was stopped early."""
        return "interrupted" if self.stopped else "max_time"

    def _watch(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool:
        if self._reporter.callback is not None:
            self._reporter.callback(phase, done, total, gap, steps)
        self._late |= self._remaining_seconds() == 0.0
        return self._late

    def _solve(
        self, rows: RowSubset, known: NDArray[np.float64] | None
    ) -> tuple[RowSubset, NDArray[np.float64]]:
        """Trains the machines on the driver's rows, whose outputs may be known, within the remaining time."""
        used = np.flatnonzero(rows.beta.any(axis=1)).astype(np.int64)
        start = (used, np.ascontiguousarray(rows.beta[used]), known) if used.size else None
        left = None if self._max_iter is None else max(1, self._max_iter - int(self._counts[:, 0].max()))
        try:
            fitted = self._machines.fit(rows, self._jobs, start, max_iter=left, progress=self._watch)
        except KeyboardInterrupt:
            if not self._late:
                raise
            # Without time for a first gradient, the machines are those of the previous round.
            previous = self.solved
            intercepts = np.zeros(self._q) if previous is None else previous.intercepts
            self._stops = [self._early_stop] * self._q
            return rows, intercepts
        beta = np.zeros_like(rows.beta)
        beta[fitted["support"]] = fitted["coefficients"]
        certificates = fitted["certificates"]
        self._counts += np.array([(each["iterations"], each["rounds"]) for each in certificates])
        self._stops = [
            self._early_stop if each["stop"] == "interrupted" else each["stop"] for each in certificates
        ]
        effort = fitted["effort"]
        self._effort += [effort[name] for name in ("kernel_values", "cache_hits", "cache_misses")]
        return replace(rows, beta=beta), fitted["intercepts"]

    def _change(self, rows: RowSubset, difference: NDArray[np.float64]) -> tuple[Any, int, int]:
        """Returns the future of a change of the coefficients, its number of vectors and of bytes."""
        changed = np.flatnonzero(difference.any(axis=1))
        if changed.size == 0:
            return None, 0, 0
        vectors, coefficients = rows.X[changed], difference[changed]
        kernel = self._machines.kernel
        if kernel[0] == "linear" and not sp.issparse(vectors) and self._q < changed.size:
            # A linear machine is one vector of weights.
            weights = _core.linear_weights(core_rows(vectors), coefficients, self._jobs)
            vectors, coefficients = weights, np.eye(self._q)
        expansion = KernelExpansion(vectors, coefficients, np.zeros(self._q), *kernel)
        # Every row of every partition is evaluated with every vector.
        self._effort[0] += int(changed.size) * sum(self._sizes())
        return self._cluster.shared(Change(expansion)), int(changed.size), expansion.nbytes

    def _sizes(self) -> list[int]:
        if not hasattr(self, "_rows_of_parts"):
            self._rows_of_parts = self._cluster.gather(self._cluster.each(_length, self._parts), "the rows")
        return self._rows_of_parts

    def _reports(
        self, rows: RowSubset, outputs: Sequence[Any], intercepts: NDArray[np.float64]
    ) -> list[Report]:
        """Returns the reports of all partitions."""
        max_violators = -(-max(_MIN_JOINING_ROWS, rows.size) // len(self._parts))
        members = [rows.local[rows.part == number] for number in range(len(self._parts))]
        driver = [(own, intercepts, max_violators) for own in members]
        shared = [self._shared] * len(self._parts)
        return self._cluster.gather(
            self._cluster.each(partition_report, self._parts, outputs, shared, driver), "the outputs"
        )

    def _certified(
        self,
        rows: RowSubset,
        outputs: NDArray[np.float64],
        reports: Sequence[Report],
        added: NDArray[np.float64],
    ) -> tuple[MachineCertificate, ...]:
        """Returns certificates over all rows; ``added`` is the sum of the absolute changes in the outputs."""
        machines = self._machines
        rounding = added * self._value_error(rows)
        signs = machines.matrix[rows.labels]
        certificates = []
        for j in range(self._q):
            takes = signs[:, j] != 0
            beta, sign, upper = rows.beta[takes, j], signs[takes, j].astype(np.float64), rows.upper[takes]
            squared = machines.loss == "squared_hinge"
            ridge = 0.5 / upper if squared else np.zeros(beta.size)
            product = outputs[takes, j]
            quadratic = float(beta @ product)
            size, off = float(np.abs(beta).sum()), float(rounding[j])
            dual = size - 0.5 * (quadratic + float(ridge @ (beta * beta))) - 0.5 * size * off
            loss = sum(float(each.losses[j]) for each in reports)
            slope = sum(float(each.slopes[j]) for each in reports)
            curve = sum(float(each.uppers[j]) for each in reports) if squared else 0.0
            primal = 0.5 * quadratic + loss + off * (0.5 * size + slope + curve * off)
            gradient = product - sign + ridge * beta
            bound = np.full(beta.size, np.inf) if squared else upper
            may_rise = np.where(sign > 0, beta < bound, beta < 0.0)
            may_fall = np.where(sign > 0, beta > 0.0, beta > -bound)
            anchor = () if machines.fit_intercept else (0.0,)
            rise = min([gradient[may_rise].min(initial=np.inf), *(each.rise[j] for each in reports), *anchor])
            fall = max(
                [gradient[may_fall].max(initial=-np.inf), *(each.fall[j] for each in reports), *anchor]
            )
            support = int(np.count_nonzero(beta))
            bounded = int(np.count_nonzero((beta != 0.0) & (np.abs(beta) >= bound)))
            iterations, blocks = (int(count) for count in self._counts[j])
            certificates.append(
                MachineCertificate(
                    dual,
                    primal,
                    primal - dual,
                    max(0.0, float(fall - rise)),
                    iterations,
                    blocks,
                    support,
                    bounded,
                    self._stops[j],
                    rounding=off,
                )
            )
        return tuple(certificates)

    def _value_error(self, rows: RowSubset) -> float:
        """Returns the maximum rounding error of a kernel value and of its term in a sum."""
        if not hasattr(self, "_extent"):
            shared = [self._shared] * len(self._parts)
            found = self._cluster.gather(self._cluster.each(kernel_bound, self._parts, shared), "the rows")
            self._extent = max(float(each) for each in found)
        length: float = self._extent
        kernel, gamma, coef0, degree = self._machines.kernel
        unit = float(np.finfo(np.float64).eps)
        of_value, of_sum = unit * int(rows.X.shape[1] + 16), unit * int(rows.size + _MAX_OUTPUT_UPDATES)
        scaled = gamma * length
        if callable(kernel):
            return of_sum * length
        if kernel == "linear":
            return (of_value + of_sum) * length
        if kernel == "poly":
            largest = float((scaled + abs(coef0)) ** degree)
            return (2 * degree * of_value + of_sum) * largest
        if kernel == "sigmoid":
            return of_value * (scaled + abs(coef0) + 1.0) + of_sum
        if kernel in MATERN_KERNELS:
            # A distance has at most 5 times the error of a sum, in units of the lengths of both rows about a
            # center (src/kernels/rounding.rs); these are at most twice the largest, and sqrt(2 nu) is at most
            # sqrt(5).
            return of_value * (45.0 * gamma * math.sqrt(length) + 1.0) + of_sum
        # Exponentials of sums in which squared norms may cancel.
        return of_value * (8.0 * scaled + 1.0) + of_sum

    def _is_over(self, dual: float) -> bool:
        """Returns whether the fit ends although rows violate the conditions."""
        if self._remaining_seconds() == 0.0:
            self._late = True
        steps = self._max_iter is not None and int(self._counts[:, 0].max()) >= self._max_iter
        now = self.log[-1].dual
        stalled = "stalled" in self._stops and now - dual <= _MIN_RELATIVE_GAIN * abs(now)
        return self._late or steps or stalled

    def _reason(self, stop: str, violators: int) -> str:
        if stop == "converged" and violators:
            return self._early_stop if self._late else "max_iter" if self._max_iter is not None else "stalled"
        return stop

    def _report_round(self) -> None:
        if self._reporter.callback is not None:
            last = self.log[-1]
            # Callbacks may stop a fit after any round, which has a certificate.
            steps = int(self._counts[:, 0].sum())
            self.stopped |= bool(self._reporter.callback("rounds", len(self.log), None, last.gap, steps))
            self._late |= self.stopped


def _length(part: Any) -> int:
    return int(part.labels.size)


def _merged(a: RowSubset, b: RowSubset) -> tuple[RowSubset, NDArray[np.intp]]:
    """Merges two subsets by partition and row; returns the order too."""
    both = concatenate([a, b]) if b.size else a
    order = np.lexsort((both.local, both.part))
    return both.take(order), order
