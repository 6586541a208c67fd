"""Piecewise linear functions of columns as a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from svmarrow._support.saving import savable
from svmarrow.models.preparation import Step, check_length, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["PiecewiseLinear"]


@savable
@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseLinear(Step):
    """Each column by a function that is linear between its knots and constant outside of them.

    Parameters
    ----------
    knots, values : ndarray of float64 of shape (n_in, n_knots)
        Knots, which do not decrease, and the values there; at least two a column. A column with fewer knots
        repeats its last.
    """

    knots: NDArray[np.float64]
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.knots.ndim != 2 or self.knots.shape[0] < 1 or self.knots.shape[1] < 2:
            raise ValueError(f"knots have shape {self.knots.shape}: each column needs at least two")
        if self.values.shape != self.knots.shape:
            raise ValueError(f"values have shape {self.values.shape}, knots {self.knots.shape}")
        check_length("knots", self.knots.ravel(), self.knots.size)
        check_length("values", self.values.ravel(), self.values.size)
        if (np.diff(self.knots) < 0.0).any():
            raise ValueError("knots must not decrease")

    @property
    def n_in(self) -> int:  # type: ignore[override]  # read-only here
        """Columns before."""
        return int(self.knots.shape[0])

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """Columns after."""
        return self.n_in

    @property
    def slopes(self) -> NDArray[np.float64]:
        """Slopes between the knots, (n_in, n_knots - 1); 0 between equal knots."""
        widths = np.diff(self.knots)
        steps = np.diff(self.values)
        return np.divide(steps, widths, out=np.zeros_like(steps), where=widths > 0.0)

    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        X = numbers(X, names)
        if sparse.issparse(X):
            raise ValueError("sparse rows have no piecewise linear functions: pass a dense X")
        pairs = zip(self.knots, self.values, strict=True)
        columns = [np.interp(X[:, j], knots, values) for j, (knots, values) in enumerate(pairs)]
        return np.stack(columns, axis=1).astype(X.dtype, copy=False)
