"""What a fit vouches for: objectives, duality gap, violation of the optimality conditions, counts, cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from svmarrow._support.saving import savable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Certificate", "LeaveOneOut", "MachineCertificate"]


@savable
@dataclass(frozen=True)
class LeaveOneOut:
    """How many rows a binary machine could get wrong if each were left out of its training: upper bounds."""

    #: Rows of the positive class.
    positive: int
    #: Rows of the negative class.
    negative: int
    #: Rows that Jaakkola and Haussler's bound does not clear; None for machines with an intercept.
    bound: int | None
    #: Positive rows that Joachims' xi-alpha does not clear.
    missed: int
    #: Negative rows that Joachims' xi-alpha does not clear.
    false_alarms: int
    #: Whether a support vector lies below C, without which xi-alpha is no bound.
    stable: bool


@savable
@dataclass(frozen=True)
class MachineCertificate:
    """What one binary machine vouches for, computed from its gradients at the end of the fit.

    Objectives are those of the maximisation form, so that dual <= optimum <= primal. The dual objective of
    the coefficients is lowered, and the primal one raised, by what the rounding of kernel values and sums may
    have done to them. Kernel values are rounded to single precision, whose effect is measured on a sample of
    the outputs; where it may be an eighth of ``tol``, the fit continues in double precision, whose effect is
    bounded by its worst case.
    """

    #: sum alpha - 1/2 alpha'Q alpha, less what rounding may have added.
    dual: float
    #: 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i)), and what rounding may have taken away.
    primal: float
    #: primal - dual: the distance of both from the optimum is at most this.
    gap: float
    #: Largest violation of the optimality conditions, in units of f; at most ``tol`` after convergence.
    violation: float
    #: Pair steps.
    iterations: int
    #: Blocks of variables solved.
    rounds: int
    #: Support vectors of this machine.
    support: int
    #: Support vectors at their upper bound.
    bounded: int
    #: "converged", "max_iter", "max_time", "interrupted" or "stalled".
    stop: str
    #: Bounds for the leave-one-out errors; None but for `SVC`.
    leave_one_out: LeaveOneOut | None = None
    #: Length of the interval in which the intercept may lie at the optimum, in units of f; 0 where a support
    #: vector lies below its bound, and without intercept.
    intercept_range: float = 0.0
    #: How far rounding may have moved an output, in units of f. The objectives have room for it.
    rounding: float = 0.0


@savable
@dataclass(frozen=True)
class Certificate:
    """What a fit vouches for, summed over its machines (``violation`` is the largest), and what it cost."""

    #: One certificate a binary machine, in the order of the outputs.
    machines: tuple[MachineCertificate, ...]
    #: Kernel values computed.
    kernel_values: int
    #: Kernel rows found in the cache.
    cache_hits: int
    #: Kernel rows computed.
    cache_misses: int
    #: Wall-clock seconds.
    seconds: float

    @property
    def dual(self) -> float:
        """Sum of the dual objectives."""
        return sum(machine.dual for machine in self.machines)

    @property
    def primal(self) -> float:
        """Sum of the primal objectives."""
        return sum(machine.primal for machine in self.machines)

    @property
    def gap(self) -> float:
        """Sum of the duality gaps."""
        return sum(machine.gap for machine in self.machines)

    @property
    def violation(self) -> float:
        """Largest violation of the optimality conditions of any machine."""
        return max(machine.violation for machine in self.machines)

    @property
    def iterations(self) -> int:
        """Pair steps of all machines."""
        return sum(machine.iterations for machine in self.machines)

    @property
    def rounds(self) -> int:
        """Blocks solved by all machines."""
        return sum(machine.rounds for machine in self.machines)

    @property
    def stop(self) -> str:
        """Why the first machine that did not converge stopped, or "converged"."""
        return next((m.stop for m in self.machines if m.stop != "converged"), "converged")

    @property
    def cache_hit_rate(self) -> float:
        """Share of the kernel rows that were found in the cache; 0 where none was asked for."""
        asked = self.cache_hits + self.cache_misses
        return self.cache_hits / asked if asked else 0.0

    @classmethod
    def of(cls, fitted: Mapping[str, Any]) -> Certificate:
        """From what the extension module returns of a fit."""
        certificates = fitted["certificates"]
        estimates = fitted.get("leave_one_out") or [None] * len(certificates)
        machines = tuple(
            MachineCertificate(**machine, leave_one_out=None if rows is None else LeaveOneOut(**rows))
            for machine, rows in zip(certificates, estimates, strict=True)
        )
        return cls(machines=machines, **fitted["effort"])
