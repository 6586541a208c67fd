"""Memory of online learners, and the number of rows of a stream that fit into the free memory.

A budget bounds the number of vectors. Without one every row may become a vector, though few do, and rejecting
the worst case would reject streams that need far less. So a batch is split into parts that fit into the
memory whatever their mistakes are. Learning in parts gives the same model bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.training import MIN_CHECKED_BYTES, refuse_beyond_memory

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Rows", "TreeSizes", "bytes_of_pool", "rows_that_fit"]

#: Number of bytes of a panel line: two of the largest registers.
LINE = 128
#: Maximum number of columns for which a sparse panel lists them all.
MAX_LISTED_COLUMNS = 1 << 15
#: Minimum number of rows of a part of a stream.
MIN_PART_ROWS = 1024


class Rows:
    """Sizes of samples of a stream.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n, d)
        Samples.
    precise : bool, default=False
        Whether kernel values are computed in double precision whatever the type of the samples.
    """

    def __init__(self, X: Any, *, precise: bool = False) -> None:
        self.count, self.features = (int(size) for size in X.shape)
        #: Number of bytes of a stored number and of a number in computations.
        self.kept = 8 if X.dtype == np.float64 else 4
        self.single = 8 if precise else self.kept
        self.precise = precise
        self.stored: Any = None
        if sp.issparse(X):
            # Longest rows first: any vectors have at most as many entries.
            self.stored = np.cumsum(np.sort(np.diff(X.indptr).astype(np.int64))[::-1])

    def entries(self, vectors: int) -> int:
        """Returns the maximum number of entries of ``vectors`` rows."""
        if self.stored is None:
            return vectors * self.features
        if self.count == 0:
            return 0
        times, rest = divmod(vectors, self.count)
        return int(times * self.stored[-1] + (self.stored[rest - 1] if rest else 0))

    def plain(self, vectors: int, number: int) -> int:
        """Returns the bytes of stored rows with ``number`` bytes per number."""
        if self.stored is None:
            return self.entries(vectors) * number
        return self.entries(vectors) * (number + 8) + 8 * vectors

    def packed(self, vectors: int, *, pools: int = 1, replaced: bool = False) -> int:
        """Returns the bytes of pools with ``vectors`` vectors; `replaced` if vectors replace others."""
        columns = LINE // self.single
        panels = vectors // columns + pools
        if self.stored is None:
            return panels * LINE * (self.features + 2)
        entries = (3 if replaced else 1) * self.entries(vectors) + panels * columns
        lines = min(entries, panels * (self.features + 1))
        found = 4 * self.features * panels if self.features <= MAX_LISTED_COLUMNS else 32 * lines
        return (LINE + 4) * lines + 2 * LINE * panels + found


def bytes_of_pool(rows: Rows, known: int, vectors: int, outputs: int, policy: str) -> int:
    """Returns the bytes of a batch that extends a pool from `known` to ``vectors`` vectors."""
    scored = outputs if policy in ("margin", "tightest") else 0
    # The Gram matrix is stored in full, a factor as one triangle.
    pairs = {"tightest": 8, "projectron": 4, "projectron++": 4}.get(policy, 0)

    def state(m: int) -> int:
        return rows.plain(m, rows.kept) + 8 * m * (2 + outputs + scored) + (8 * m * m if pairs else 0)

    replaced = policy not in ("unlimited", "stop", "projectron", "projectron++")
    grown = rows.packed(vectors, replaced=replaced) + pairs * vectors * vectors
    grown += 16 * vectors * (6 + outputs + scored)
    # The previous state exists twice, in Python and as the start of the computation.
    return grown + state(vectors) + 2 * state(known)


class TreeSizes(NamedTuple):
    """Sizes that determine the memory of a tree, with its stored rows and leaves."""

    rows: Rows
    outputs: int
    budget: int
    #: Maximum number of initial vectors of a side of a split.
    children: int
    sample: int
    max_leaves: int | None
    split: str

    def whole(self, n: int, passes: int) -> int:
        """Returns the bytes of ``passes`` passes over n rows."""
        before, after = (self._grown((0, 1), n * passed, n) for passed in (passes - 1, passes))
        return self._bytes(before, after)

    def piece(self, known: tuple[int, int], mistakes: int, most: int) -> int:
        """Returns the bytes of a batch with ``mistakes`` mistakes, after which at most ``most`` samples are
        stored.
        """
        return self._bytes(known, self._grown(known, mistakes, most))

    def _grown(self, known: tuple[int, int], mistakes: int, most: int) -> tuple[int, int]:
        # After a split both sides need further mistakes before they overflow again.
        leaves = known[1] + mistakes // max(1, self.budget + 1 - self.children)
        leaves = max(known[1], leaves if self.max_leaves is None else min(leaves, self.max_leaves))
        return min(most, known[0] + mistakes), leaves

    def _bytes(self, known: tuple[int, int], grown: tuple[int, int]) -> int:
        rows, m = self.rows, self.budget + 1
        # Kernel values of a sample, all and by sides; both quadratic programs and their solver; its rows
        # twice.
        of_split = 8 * (3 * self.sample * m + 8 * m * m) + 2 * self.sample * (rows.plain(1, rows.single) + 64)
        # The previous state exists twice, in Python and as the start of the computation.
        return self._built(*grown) + self._state(*grown) + 2 * self._state(*known) + of_split

    @property
    def _is_linear(self) -> bool:
        return self.split.startswith(("wpq", "pls", "rndw"))

    def _vectors(self, leaves: int) -> int:
        """Returns the number of vectors of leaves and rules."""
        of_rule = self.sample if self.split == "zpq" else 0 if self._is_linear else 1
        return leaves * self.budget + (leaves - 1) * of_rule

    def _state(self, stored: int, leaves: int) -> int:
        rules = (leaves - 1) * (8 * self.rows.features if self._is_linear else 0)
        members = 8 * self._vectors(leaves) * (1 + 2 * self.outputs)
        of_samples = 16 * min(leaves * self.sample, stored + leaves)
        return self.rows.plain(stored, self.rows.kept) + members + of_samples + rules + 72 * leaves

    def _built(self, stored: int, leaves: int) -> int:
        rows = self.rows
        rules = (leaves - 1) * (rows.single * rows.features if self._is_linear else 0)
        pools = leaves + (0 if self._is_linear else leaves - 1)
        packed = rows.packed(self._vectors(leaves), pools=pools)
        # Coefficients and their averages.
        packed += 16 * leaves * self.budget * self.outputs
        return rows.plain(stored, rows.single) + 120 * stored + packed + rules + 16 * leaves * self.sample


def rows_that_fit(name: str, rest: int, needed: Callable[[int], int]) -> int:
    """Returns how many of the remaining samples fit into the memory; `needed(n)` is the bytes of n samples.

    Raises
    ------
    MemoryError
        If the next 1,024 samples do not fit.
    """
    if needed(rest) < MIN_CHECKED_BYTES:
        return rest
    free = max(MIN_CHECKED_BYTES, _core.available_memory())
    if needed(rest) <= free:
        return rest
    fits, too_many = 0, rest
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if needed(middle) <= free else (fits, middle)
    if fits < MIN_PART_ROWS:
        refuse_beyond_memory(
            f"{name}.fit",
            needed(min(rest, MIN_PART_ROWS)),
            "set or lower a budget, or give rows in single precision",
        )
    return max(fits, 1)
