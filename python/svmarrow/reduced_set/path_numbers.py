"""Numbers from which the coefficients and outputs of all sizes of a path follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.rows import core_rows
from svmarrow._support.saving import savable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["PathNumbers"]


@savable
@dataclass(frozen=True, eq=False)
class PathNumbers:
    """A triangle and projections, or the changes of basic steps with the vectors and sizes they belong to."""

    triangle: NDArray[np.float64] | None
    projections: NDArray[np.float64]
    steps: tuple[NDArray[np.int64], NDArray[np.int64]] | None

    def coefficients(self, size: int) -> NDArray[np.float64]:
        """The coefficients (size, q) of a size."""
        return _core.path_coefficients((self.triangle, self.projections, self.steps), size)

    def outputs(
        self, expansion: KernelExpansion, kept: Any, rows: Any, sizes: Sequence[int], jobs: int
    ) -> NDArray[np.float64]:
        """Outputs (sizes, n, q) of increasing sizes; `kept` are the vectors of the last."""
        largest = sizes[-1]
        steps, used, triangle = None, largest, self.triangle
        if self.steps is not None:
            used = int(self.steps[1][largest - 1])
            steps = self.steps[0][:used], self.steps[1][:largest]
        return _core.path_decisions(
            (
                None if triangle is None else np.ascontiguousarray(triangle[:largest, :largest]),
                np.ascontiguousarray(self.projections[:used]),
                steps,
            ),
            (core_rows(kept), expansion.intercepts, expansion.kernel_spec),
            core_rows(rows),
            np.array(sizes, dtype=np.int64),
            jobs,
        )
