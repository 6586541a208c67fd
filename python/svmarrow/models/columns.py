"""Protocols of the families whose binary machines are trained together for several classes.

A code is a matrix with a row for each class and a column for each binary machine: +1 for the classes on the
machine's positive side, -1 for those on its negative side, 0 for those that it never sees. Machines of one
family have work in common (kernel rows, a factorization), so that all columns cost far less than one by one.
`svmarrow.multiclass` uses a family by these protocols alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from svmarrow._support.blas import product

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow._support.certificate import Certificate
    from svmarrow._support.memory import MemoryEstimate
    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["ColumnMixer", "ColumnTrainer", "Columns"]


class Columns(NamedTuple):
    """The machines of all columns of a code."""

    #: Their outputs, one for each column.
    expansion: KernelExpansion
    #: Training rows that are vectors of the expansion; None where that is not known.
    support: NDArray[np.int64] | None = None
    #: Certificate of the solution; None if the solver has none.
    certificate: Certificate | None = None
    #: Outputs at each training row of machines trained without it, (n, columns); None where not known.
    left_out: NDArray[np.float64] | None = None

    def mixed(self, weights: NDArray[np.float64]) -> Self:
        """Machines whose outputs are these times a matrix (columns, new columns)."""
        of, left = self.expansion, self.left_out
        outputs = of.replaced(
            coefficients=product(of.coefficients, weights), intercepts=product(of.intercepts, weights)
        )
        kept = None if left is None else product(left, weights)
        return type(self)(outputs, self.support, self.certificate, kept)

    def spread(self, which: NDArray[np.intp], signs: NDArray[np.float64]) -> Self:
        """Machines that are these, or their opposites: column j is number ``which[j]`` times ``signs[j]``."""
        of, left = self.expansion, self.left_out
        if np.array_equal(which, np.arange(of.n_outputs)) and (signs > 0).all():
            return self
        outputs = of.replaced(
            coefficients=of.coefficients[:, which] * signs, intercepts=of.intercepts[which] * signs
        )
        left = None if left is None else left[:, which] * signs
        return type(self)(outputs, self.support, self.certificate, left)


@runtime_checkable
class ColumnTrainer(Protocol):
    """A classifier that trains the machines of many columns together."""

    def _fit_columns(
        self, X: Any, y: NDArray[Any], matrix: NDArray[np.int8], sample_weight: NDArray[np.float64] | None
    ) -> Columns | None:
        """The machines of a code (n_classes, columns), rows in the order of the sorted labels; None, and
        nothing done, for a code whose columns have nothing in common.
        """

    def _column_memory(
        self, X: Any, matrix: NDArray[np.int8], counts: NDArray[np.int64]
    ) -> MemoryEstimate | None:
        """Memory of `_fit_columns` for classes of `counts` samples."""


@runtime_checkable
class ColumnMixer(Protocol):
    """A classifier with solutions linear in the targets: one-vs-rest gives every column without zeros."""

    def _columns(self, matrix: NDArray[np.int8]) -> Columns:
        """The machines of a code without zeros, without training."""
