"""What was measured of an engine on a workload, and how it compares with the best peer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The note of a pair that the command line leaves out: not a failure.
LEFT_OUT = "left out"


@dataclass
class Cell:
    """One engine on one workload, all repeats.

    `objective` is relative to the reference's, positive where larger (better: the dual is maximised); None
    where it was not checked. `trusted` is whether the times may be shown and compared. `bound_seconds` are
    times of the kernel values of all support vectors and training rows, computed once: a lower bound of a
    fit. `added_bytes` is what the fit added to the resident size, `data_bytes` the training rows and labels.
    """

    workload: str
    engine: str
    version: str = ""
    fit_seconds: list[float] = field(default_factory=list)
    predict_seconds: list[float] = field(default_factory=list)
    bound_seconds: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    added_bytes: list[int] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)
    data_bytes: int = 0
    cache_bytes: int = 0
    vectors: int = 0
    agreement: float | None = None
    error: float = 0.0
    objective: float | None = None
    infeasibility: float | None = None
    trusted: bool = True
    checked: bool = False
    reference: bool = False
    note: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def ours(self) -> bool:
        """Whether it is svmarrow, not a peer."""
        return self.engine.startswith("svmarrow")

    @property
    def peer(self) -> bool:
        """Whether it is another library: not svmarrow, and not another build of it."""
        return not self.engine.startswith(("svmarrow", "earlier"))

    def seconds(self, what: str) -> float | None:
        """Median of `what` ("fit_seconds", ...), None where there is none that may be shown."""
        times = getattr(self, what)
        return median(times) if times and self.trusted else None

    @property
    def over_bound(self) -> float | None:
        """Fit time as a multiple of the lower bound."""
        fit, bound = self.seconds("fit_seconds"), self.seconds("bound_seconds")
        return None if fit is None or bound is None else fit / bound

    @property
    def memory_share(self) -> float | None:
        """Training data and what the fit added, as a share of data, cache budget and 10 %."""
        if not self.added_bytes:
            return None
        return (self.data_bytes + median(self.added_bytes)) / (1.1 * (self.data_bytes + self.cache_bytes))


def best_peer(cells: Iterable[Cell], workload: str, what: str) -> float | None:
    """The shortest time of all peers that solved the workload."""
    times = [cell.seconds(what) for cell in cells if cell.workload == workload and cell.peer]
    return min((time for time in times if time is not None), default=None)


def times_as_fast(cells: Iterable[Cell], cell: Cell, what: str) -> float | None:
    """The best peer's time over the cell's; the best peer itself has 1."""
    best, own = best_peer(cells, cell.workload, what), cell.seconds(what)
    return None if best is None or own is None else best / own


def geometric_mean(values: Sequence[float]) -> float:
    """The exp of the mean logarithm."""
    return math.exp(sum(map(math.log, values)) / len(values))
