"""An exact support vector machine over partitions that no machine holds together.

Problem: the dual of `svmarrow.SVC` over all rows, of which the driver holds those that matter. It begins
with the support vectors of the partitions, each fitted by itself (Graf et al. 2005). A round: the driver
solves the machines on the rows it holds from the coefficients of the round before; every worker evaluates
what has changed in them on its partitions, adds up the loss, and names the rows that are not on the driver
and violate the optimality conditions the most; these join. Outputs of the driver's rows come along, so the
next solution begins without a kernel value. Rows without a coefficient for two rounds leave.
This is decomposition (Osuna, Freund, Girosi 1997; thesis 2.4) one tier up: the working set is the driver's,
a worker's answer is the outer tier's scan.

Every round raises the dual, or no row is left that violates: then the conditions hold for all rows, and

    dual   = sum |b_i| - (b'Kb + sum r_i b_i^2) / 2        from the outputs of the rows on the driver,
    primal = b'Kb / 2 + sum of the losses of all rows      from the workers,

are the certificate of a fit on one machine. Changes are added to the outputs of the rounds before in double
precision, where sixteen sums lose no digit that counts; then outputs are computed anew from the whole
expansion, which keeps short what must be done again when a worker dies. Both objectives have room for the
worst case of what rounding does to these outputs.

Cost of a round: (all rows) x (vectors whose coefficients changed) kernel values on the workers, on the driver
what the solver's steps need and in the first round its (rows) x (support vectors); memory of the driver: its
rows, and what `SVC` takes for as many.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.certificate import MachineCertificate
from svmarrow._support.rows import core_rows
from svmarrow.dask.partition import Change, Found, advance, begin, begun_size, extent, report
from svmarrow.expansion.kernel_expansion import KernelExpansion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow._support.progress import Progress
    from svmarrow.dask.cluster import Cluster
    from svmarrow.dask.partition import Machines, Report

__all__ = ["Round", "Rounds", "Solved", "joined"]

#: Rounds without a coefficient after which a row leaves the driver.
_PATIENCE = 2
#: Least number of rows that may join in a round; else as many as the driver holds.
_JOIN = 1024
#: Changes added to the outputs before they are computed anew, so that lost ones are soon there again.
_CHAIN = 16
#: Share of the dual by which rounds must rise where a machine cannot be solved to the tolerance.
_RISE = 1e-9


@dataclass(frozen=True)
class Round:
    """What a round of a fit over partitions was, and cost."""

    #: Rows on the driver.
    rows: int
    #: Support vectors among them.
    support: int
    #: Rows elsewhere that violate the conditions of the optimum.
    violators: int
    #: Dual objective of the driver's machines.
    dual: float
    #: Their gap over all rows.
    gap: float
    #: Vectors whose coefficients changed: what the workers evaluate.
    changed: int
    #: Bytes of vectors that went to each worker.
    sent: int
    #: Bytes of rows that came from all of them.
    received: int
    #: Processor seconds of the driver's solver.
    driver: float
    #: Processor seconds of the workers' evaluation, all together.
    workers: float
    #: Processor seconds of the machines that the partitions begin with, in the first round.
    begin: float
    #: Seconds of the round on the clock, since the end of the one before.
    seconds: float


@dataclass(frozen=True, eq=False)
class Solved:
    """Machines, with what vouches for them."""

    rows: Found
    intercepts: NDArray[np.float64]
    certificates: tuple[MachineCertificate, ...]


class Rounds:
    """A fit over partitions."""

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
        told: Progress,
    ) -> None:
        self._cluster, self._parts, self._machines = cluster, parts, machines
        self._shared = cluster.shared(machines)
        self._jobs, self._told = jobs, told
        self._max_iter = max_iter
        self._max_time = max_time
        self._begin, self._beginning = time.monotonic(), 0.0
        self._q = int(machines.matrix.shape[1])
        self._counts = np.zeros((self._q, 2), dtype=np.int64)
        self._effort = np.zeros(3, dtype=np.int64)
        self._stops = ["stalled"] * self._q
        self._late = False
        told.stops_in = ("rounds", 1)
        #: Whether a callback has asked for an end.
        self.stopped = False
        #: What each round was.
        self.log: list[Round] = []
        #: The last machines that are certified.
        self.solved: Solved | None = None

    @property
    def effort(self) -> dict[str, Any]:
        """What the fit has cost so far, as the extension module tells it."""
        values, hits, misses = (int(count) for count in self._effort)
        seconds = time.monotonic() - self._begin
        return {"kernel_values": values, "cache_hits": hits, "cache_misses": misses, "seconds": seconds}

    def first(self, check: Any) -> Found:
        """The support vectors of the partitions; ``check(rows, bytes)`` is asked before they come."""
        left = self._left()
        found = [self._cluster.submit(begin, part, self._shared, left) for part in self._parts]
        sizes = self._cluster.gather(self._cluster.each(begun_size, found), "the machine")
        check(sum(rows for rows, *_ in sizes), sum(held for _, held, _ in sizes))
        self._beginning = sum(seconds for *_, seconds in sizes)
        return joined([rows for rows, _ in self._cluster.gather(found, "the machine")])

    def run(self, rows: Found) -> Solved:
        """Rounds until no row violates, or the fit is stopped."""
        idle = np.zeros(rows.size, dtype=np.int64)
        sent = np.zeros_like(rows.beta)
        outputs: list[Any] = [None] * len(self._parts)
        known: NDArray[np.float64] | None = None
        added = np.zeros(self._q)
        chain, dual = 0, -np.inf
        while True:
            started = time.process_time()
            rows, intercepts = self._solve(rows, known)
            solving = time.process_time() - started
            fresh = chain == 0
            by = rows.beta if fresh else rows.beta - sent
            added = np.abs(by).sum(axis=0) + (0.0 if fresh else added)
            change, changed, size = self._change(rows, by)
            before = [None] * len(self._parts) if fresh else outputs
            outputs = self._cluster.each(
                advance, self._parts, before, [change] * len(self._parts), [self._q] * len(self._parts)
            )
            sent, chain = rows.beta, chain + 1
            reports = self._ask(rows, outputs, intercepts)
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
            self._tell()
            ended = violators == 0 or self._over(dual)
            dual = self.log[-1].dual
            if ended:
                machines = tuple(replace(each, stop=self._reason(each.stop, violators)) for each in machines)
                self.solved = Solved(rows, intercepts, machines)
                return self.solved
            self.solved = Solved(rows, intercepts, machines)
            chain %= _CHAIN
            idle = np.where(rows.beta.any(axis=1), 0, idle + 1)
            kept = idle < _PATIENCE
            joining = joined([each.worst for each in reports])
            rows, order = _merged(rows.take(kept), joining)
            idle = np.concatenate([idle[kept], np.zeros(joining.size, dtype=np.int64)])[order]
            sent = np.concatenate([sent[kept], joining.beta])[order]
            known = np.concatenate([own[kept], *(each.worst_outputs for each in reports)])[order]

    def end(self, reason: str) -> None:
        """The machines of the last round are those of the fit."""
        assert self.solved is not None
        certificates = tuple(replace(each, stop=reason) for each in self.solved.certificates)
        self.solved = replace(self.solved, certificates=certificates)

    def _left(self) -> float | None:
        """Seconds that are left."""
        if self._max_time is None:
            return None
        return max(0.0, self._max_time - (time.monotonic() - self._begin))

    @property
    def _word(self) -> str:
        """Why a fit that was told to stop has stopped."""
        return "interrupted" if self.stopped else "max_time"

    def _watch(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool:
        if self._told.callback is not None:
            self._told.callback(phase, done, total, gap, steps)
        self._late |= self._left() == 0.0
        return self._late

    def _solve(self, rows: Found, known: NDArray[np.float64] | None) -> tuple[Found, NDArray[np.float64]]:
        """The machines on the driver's rows, whose outputs may be known; without time as far as they are."""
        used = np.flatnonzero(rows.beta.any(axis=1)).astype(np.int64)
        start = (used, np.ascontiguousarray(rows.beta[used]), known) if used.size else None
        left = None if self._max_iter is None else max(1, self._max_iter - int(self._counts[:, 0].max()))
        try:
            fitted = self._machines.fit(rows, self._jobs, start, max_iter=left, progress=self._watch)
        except KeyboardInterrupt:
            if not self._late:
                raise
            # There was no time for a first gradient: the machines of the round before.
            previous = self.solved
            intercepts = np.zeros(self._q) if previous is None else previous.intercepts
            self._stops = [self._word] * self._q
            return rows, intercepts
        beta = np.zeros_like(rows.beta)
        beta[fitted["support"]] = fitted["coefficients"]
        own = fitted["certificates"]
        self._counts += np.array([(each["iterations"], each["rounds"]) for each in own])
        self._stops = [self._word if each["stop"] == "interrupted" else each["stop"] for each in own]
        effort = fitted["effort"]
        self._effort += [effort[name] for name in ("kernel_values", "cache_hits", "cache_misses")]
        return replace(rows, beta=beta), fitted["intercepts"]

    def _change(self, rows: Found, by: NDArray[np.float64]) -> tuple[Any, int, int]:
        """The future of a change of the coefficients, how many vectors it has, and its bytes."""
        changed = np.flatnonzero(by.any(axis=1))
        if changed.size == 0:
            return None, 0, 0
        vectors, coefficients = rows.X[changed], by[changed]
        kernel = self._machines.kernel
        if kernel[0] == "linear" and not sp.issparse(vectors) and self._q < changed.size:
            # One vector for each machine says it all.
            weights = _core.linear_weights(core_rows(vectors), coefficients, self._jobs)
            vectors, coefficients = weights, np.eye(self._q)
        expansion = KernelExpansion(vectors, coefficients, np.zeros(self._q), *kernel)
        # Every row of every partition against every vector.
        self._effort[0] += int(changed.size) * sum(self._sizes())
        return self._cluster.shared(Change(expansion)), int(changed.size), expansion.nbytes

    def _sizes(self) -> list[int]:
        if not hasattr(self, "_rows_of_parts"):
            self._rows_of_parts = self._cluster.gather(self._cluster.each(_length, self._parts), "the rows")
        return self._rows_of_parts

    def _ask(self, rows: Found, outputs: Sequence[Any], intercepts: NDArray[np.float64]) -> list[Report]:
        """The reports of all partitions."""
        most = -(-max(_JOIN, rows.size) // len(self._parts))
        members = [rows.local[rows.part == number] for number in range(len(self._parts))]
        here = [(own, intercepts, most) for own in members]
        shared = [self._shared] * len(self._parts)
        return self._cluster.gather(
            self._cluster.each(report, self._parts, outputs, shared, here), "the outputs"
        )

    def _certified(
        self,
        rows: Found,
        outputs: NDArray[np.float64],
        reports: Sequence[Report],
        added: NDArray[np.float64],
    ) -> tuple[MachineCertificate, ...]:
        """Certificates over all rows; ``added`` is the sum of all changes that outputs consist of."""
        machines = self._machines
        rounding = added * self._value_error(rows)
        signs = machines.matrix[rows.labels]
        made = []
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
            made.append(
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
        return tuple(made)

    def _value_error(self, rows: Found) -> float:
        """Return the largest error of a kernel value and of its part in a sum, in double precision."""
        if not hasattr(self, "_extent"):
            shared = [self._shared] * len(self._parts)
            found = self._cluster.gather(self._cluster.each(extent, self._parts, shared), "the rows")
            self._extent = max(float(each) for each in found)
        length: float = self._extent
        kernel, gamma, coef0, degree = self._machines.kernel
        unit = float(np.finfo(np.float64).eps)
        of_value, of_sum = unit * int(rows.X.shape[1] + 16), unit * int(rows.size + _CHAIN)
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
        # Exponentials of sums that squared lengths may have cancelled in.
        return of_value * (8.0 * scaled + 1.0) + of_sum

    def _over(self, dual: float) -> bool:
        """Whether the fit ends though rows violate."""
        if self._left() == 0.0:
            self._late = True
        steps = self._max_iter is not None and int(self._counts[:, 0].max()) >= self._max_iter
        now = self.log[-1].dual
        stalled = "stalled" in self._stops and now - dual <= _RISE * abs(now)
        return self._late or steps or stalled

    def _reason(self, stop: str, violators: int) -> str:
        if stop == "converged" and violators:
            return self._word if self._late else "max_iter" if self._max_iter is not None else "stalled"
        return stop

    def _tell(self) -> None:
        if self._told.callback is not None:
            last = self.log[-1]
            # Callbacks may end a fit after any round: it is certified.
            steps = int(self._counts[:, 0].sum())
            self.stopped |= bool(self._told.callback("rounds", len(self.log), None, last.gap, steps))
            self._late |= self.stopped


def _length(part: Any) -> int:
    return int(part.labels.size)


def joined(found: Sequence[Found]) -> Found:
    """Rows of several partitions, in their order."""
    there = [each for each in found if each.size] or list(found[:1])
    X = [each.X for each in there]
    return Found(
        np.concatenate([each.part for each in there]),
        np.concatenate([each.local for each in there]),
        sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.concatenate(X),
        np.concatenate([each.labels for each in there]),
        np.concatenate([each.upper for each in there]),
        np.concatenate([each.beta for each in there]),
    )


def _merged(a: Found, b: Found) -> tuple[Found, NDArray[np.intp]]:
    """Both by partition and row, and the order that they were put in."""
    both = joined([a, b]) if b.size else a
    order = np.lexsort((both.local, both.part))
    return both.take(order), order
