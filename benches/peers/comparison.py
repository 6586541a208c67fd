"""All engines on one workload: run in turn, every solution judged before its times are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import data
import numpy as np
from cells import LEFT_OUT, Cell
from objective import Dual, dual_objective
from process import NoResultError, Settings, run_worker, say

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

# A solution whose dual objective differs by more, relative to the reference's, solved another problem: no
# time is shown.
OBJECTIVE_TOLERANCE = 1e-4
# Single-precision sums of alpha leave about 1e-5; more than this is a solution outside the feasible set.
FEASIBILITY_TOLERANCE = 1e-3


class Comparison:
    """One workload, some engines.

    The first peer that solves it is the reference: with the engines in the order of `engines.ENGINES` that
    is LIBSVM, where it runs.

    Parameters
    ----------
    workload : dict
        An entry of ``workloads.toml``.
    engines : sequence of str
        In the order of running.
    settings : Settings
        Repeats, time-out, rows.
    left_out : collection of str
        Engines that are named in the table and not run.
    """

    def __init__(
        self,
        workload: dict[str, Any],
        engines: Sequence[str],
        settings: Settings,
        left_out: Collection[str] = (),
    ) -> None:
        self.workload = workload
        self.settings = settings
        self.problem = data.load(workload, settings.limit)
        cache = int(workload["cache_megabytes"] * 2**20)
        self.cells = {name: Cell(workload["name"], name, cache_bytes=cache) for name in engines}
        for name in left_out:
            if name in self.cells:
                self.cells[name].note = LEFT_OUT
        self.judged: dict[bytes, Dual] = {}
        self.reference: Dual | None = None
        self.predicted: np.ndarray | None = None

    def run(self) -> list[Cell]:
        """Every engine once, then every engine again, so that a slow minute of the machine hits them all."""
        for _ in range(self.settings.repeat):
            for name, cell in self.cells.items():
                if not cell.note:
                    self._once(name, cell)
        return list(self.cells.values())

    def _once(self, name: str, cell: Cell) -> None:
        try:
            result = run_worker(name, self.workload, self.settings)
        except NoResultError as error:
            # Where an earlier repeat ran, its times stand; there are no more.
            cell.note = str(error)
            say(f"  {name}: {cell.note}")
            return
        measured = result["measured"]
        cell.version, cell.vectors = measured["version"], len(result["support"])
        cell.warnings = sorted({*cell.warnings, *measured["warnings"]})
        cell.error = float(np.mean(result["predicted"] != self.problem.y_test))
        if self.predicted is None and not cell.ours:
            cell.reference, self.predicted = True, result["predicted"]
            self.reference = self._dual(result) if self.settings.check else None
        if self.predicted is not None:
            cell.agreement = float(np.mean(result["predicted"] == self.predicted))
        verdict = self._compare(cell, self._dual(result)) if self.settings.check else ""
        cell.fit_seconds.append(measured["fit_seconds"])
        cell.predict_seconds.append(measured["predict_seconds"])
        cell.peak_bytes.append(measured["peak_bytes"])
        cell.added_bytes.append(measured["added_bytes"])
        cell.cores.append(measured["fit_cpu_seconds"] / measured["fit_seconds"])
        cell.data_bytes = measured["data_bytes"]
        if measured["bound_seconds"] is not None:
            cell.bound_seconds.append(measured["bound_seconds"])
        times = (
            f"fit {cell.fit_seconds[-1]:.3f} s on {cell.cores[-1]:.1f} cores, "
            f"predict {cell.predict_seconds[-1]:.4f} s"
            if cell.trusted
            else "no time is shown"
        )
        agreement = "" if cell.agreement is None else f", agreement {cell.agreement:.2%}"
        say(f"  {name}: {cell.vectors} vectors{agreement}{verdict}; {times}")

    def _dual(self, result: dict[str, Any]) -> Dual:
        # Equal solutions of two repeats are judged once.
        key = result["support"].tobytes() + result["dual_coef"].tobytes()
        if key not in self.judged:
            self.judged[key] = solution_dual(self.problem, self.workload, result)
        return self.judged[key]

    def _compare(self, cell: Cell, dual: Dual) -> str:
        """Set the cell's verdict; the worst repeat counts."""
        cell.infeasibility = max(dual.infeasibility, cell.infeasibility or 0.0)
        if self.reference is None:
            return ", objective not checked: no peer has run"
        difference = relative_difference(dual, self.reference)
        if not cell.checked or abs(difference) > abs(cell.objective or 0.0):
            cell.objective = difference
        cell.checked = True
        same = abs(cell.objective or 0.0) <= OBJECTIVE_TOLERANCE
        cell.trusted = same and cell.infeasibility <= FEASIBILITY_TOLERANCE
        return f", objective {difference:+.1e}, infeasibility {dual.infeasibility:.0e}"


def solution_dual(problem: data.Problem, workload: dict[str, Any], result: dict[str, Any]) -> Dual:
    """The common objective of a worker's result."""
    return dual_objective(
        problem.X,
        problem.y,
        result["support"],
        result["dual_coef"],
        C=workload["C"],
        gamma=workload["gamma"],
    )


def relative_difference(dual: Dual, reference: Dual) -> float:
    """How much larger the objective is, as a share of the reference's."""
    return (dual.value - reference.value) / abs(reference.value)
