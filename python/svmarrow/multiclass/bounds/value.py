"""A bound as a value: the number, its equation, its assumptions, its terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["TIKHONOV", "Bound", "LeaveOneOutBound"]

TIKHONOV = (
    "each machine minimises a sum of convex losses plus a multiple of the squared norm, without intercept"
)


@dataclass(frozen=True)
class Bound:
    """A bound and what it rests on."""

    #: The number.
    value: float
    #: Its number in Rifkin 2002, "Everything Old Is New Again".
    equation: str
    #: What must hold for it.
    assumptions: tuple[str, ...]
    #: The quantities that went in, by name.
    terms: Mapping[str, float] = field(default_factory=dict)

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, eq=False)
class LeaveOneOutBound(Bound):
    """A bound for the leave-one-out error, row by row."""

    #: Rows that could be errors when they are left out, (n,).
    suspects: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    #: Smallest difference of the total losses that leaving the row out can give, (n,); below 0 another
    #: class could win.
    margins: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
