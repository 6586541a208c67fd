"""Certificates of fits: objectives, duality gap, violation of the optimality conditions, counts, cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from svmarrow._support.schemas import savable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Certificate", "LeaveOneOut", "MachineCertificate"]


@savable("leave-one-out/1")
@dataclass(frozen=True)
class LeaveOneOut:
    """Upper bounds for the leave-one-out errors of a binary machine."""

    #: Number of samples of the positive class.
    positive: int
    #: Number of samples of the negative class.
    negative: int
    #: Jaakkola and Haussler's bound for the errors; None for machines with an intercept.
    bound: int | None
    #: Joachims' xi-alpha bound for the errors on positive samples.
    missed: int
    #: Joachims' xi-alpha bound for the errors on negative samples.
    false_alarms: int
    #: Whether a support vector lies below C; otherwise xi-alpha counts all samples if there is an intercept.
    stable: bool


@savable("machine-certificate/1")
@dataclass(frozen=True)
class MachineCertificate:
    """Certificate of one binary machine, computed from its gradients at the end of the fit.

    Objectives are those of the maximization form, so that dual <= optimum <= primal. The dual objective is
    lowered, and the primal one raised, by the possible rounding error of kernel values and sums. The effect
    of kernel values in single precision is measured on a sample of the outputs; if it may reach an eighth of
    ``tol``, the fit continues in double precision, whose effect is bounded by its worst case.
    """

    #: sum alpha - 1/2 alpha'Q alpha, minus the possible rounding error.
    dual: float
    #: 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i)), plus the possible rounding error. If the gap
    #: is a large share because C is huge, it is a smaller upper bound of the optimum: the objective of the
    #: multiple of f without violations, or with a smaller C of the same solution.
    primal: float
    #: primal - dual: the distance of both from the optimum is at most this.
    gap: float
    #: Largest violation of the optimality conditions, in units of f; at most ``tol`` after convergence, for
    #: `OneClassSVM` times the sum of the coefficients if that is below 1.
    violation: float
    #: Number of SMO steps.
    iterations: int
    #: Number of blocks of variables that were solved.
    rounds: int
    #: Number of support vectors of this machine.
    support: int
    #: Number of support vectors at their upper bound.
    bounded: int
    #: "converged", "max_iter", "max_time", "interrupted" or "stalled". A machine has converged if the
    #: violation is within the tolerance and the gap at most a tenth of the primal objective, unless it is 0.
    stop: str
    #: Bounds for the leave-one-out errors of `SVC`; else None.
    leave_one_out: LeaveOneOut | None = None
    #: Length of the interval in which the intercept may lie at the optimum, in units of f; 0 where a support
    #: vector lies below its bound, and without intercept.
    intercept_range: float = 0.0
    #: Possible rounding error of an output, in units of f; the objectives account for it.
    rounding: float = 0.0


@savable("certificate/1")
@dataclass(frozen=True)
class Certificate:
    """Certificate of a fit, summed over its machines (``violation`` is the largest), and its cost.

    As a string it is five lines.
    """

    #: Certificate of each binary machine, in the order of the outputs.
    machines: tuple[MachineCertificate, ...]
    #: Number of kernel values computed.
    kernel_values: int
    #: Number of kernel rows found in the cache.
    cache_hits: int
    #: Number of kernel rows computed.
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
        """Number of SMO steps of all machines."""
        return sum(machine.iterations for machine in self.machines)

    @property
    def rounds(self) -> int:
        """Number of blocks solved by all machines."""
        return sum(machine.rounds for machine in self.machines)

    @property
    def stop(self) -> str:
        """Why the first machine that did not converge stopped, or "converged"."""
        return next((m.stop for m in self.machines if m.stop != "converged"), "converged")

    @property
    def cache_hit_rate(self) -> float:
        """Share of the kernel rows that were found in the cache; 0 if none was needed."""
        asked = self.cache_hits + self.cache_misses
        return self.cache_hits / asked if asked else 0.0

    def __str__(self) -> str:
        n_machines, share = len(self.machines), abs(self.gap / self.primal) if self.primal else 0.0
        ended = "converged" if self.stop == "converged" else f"ended early ({self.stop})"
        machines = "" if n_machines == 1 else f", {n_machines} binary machines"
        return "\n".join(
            [
                f"{ended} after {self.iterations:,} steps in {self.seconds:.3g} s{machines}",
                f"dual objective     {self.dual:.10g}",
                f"primal objective   {self.primal:.10g}",
                f"duality gap        {self.gap:.3g} ({100.0 * share:.2g} % of the primal objective)",
                f"largest violation  {self.violation:.3g}",
            ]
        )

    @classmethod
    def of(cls, fitted: Mapping[str, Any]) -> Certificate:
        """Creates the certificate from the result of the extension module."""
        certificates = fitted["certificates"]
        estimates = fitted.get("leave_one_out") or [None] * len(certificates)
        machines = tuple(
            MachineCertificate(**machine, leave_one_out=None if rows is None else LeaveOneOut(**rows))
            for machine, rows in zip(certificates, estimates, strict=True)
        )
        return cls(machines=machines, **fitted["effort"])
