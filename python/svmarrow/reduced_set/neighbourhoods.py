"""An early word where few vectors will not do: each of the model's vectors answers for its own neighbourhood.

The matrix K of the m vectors, K(x, x) = 1, has trace m and a rank of at least (tr K)^2 / |K|^2, that is
m^2 / sum_ij K(x_i, x_j)^2, its effective rank: how many neighbourhoods the kernel tells apart. A function
that changes from each to the next, as on two spirals or a checkerboard, takes about one vector for each of
them. Rows of many columns, all about as far from each other, have a high rank too, yet nothing is near: the
mean of K^2 that is weighted by K^2, 2^(-d / 2) where rows fill d dimensions, is small. Few vectors may do
there, so nothing is said; nor of other kernels than the RBF kernel, whose vectors answer for more.

Cost: sample^2 kernel values.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from svmarrow import _core
from svmarrow._support.rows import core_rows, threads
from svmarrow.exceptions import SizeWarning

if TYPE_CHECKING:
    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["neighbourhoods", "tell_of_few"]

SAMPLE = 1000
"""Vectors that are compared, at most."""

MANY = 40.0
"""Neighbourhoods below which nothing is said: the sets that this was measured on have at most 27."""

NEAR = 0.25
"""Least weighted mean of K^2: rows that fill four dimensions."""

SHARE = 0.5
"""Vectors for each neighbourhood below which something is said."""


def neighbourhoods(expansion: KernelExpansion) -> tuple[float, float]:
    """How many neighbourhoods the vectors have, and how near those are that are near.

    Parameters
    ----------
    expansion : KernelExpansion
        With the RBF kernel and two vectors at least.

    Returns
    -------
    rank : float
        The effective rank of the kernel matrix of all vectors, estimated from pairs of a sample.
    near : float
        The mean of K^2 over pairs, weighted by K^2; 0 where no two vectors have anything in common.
    """
    m = expansion.n_vectors
    size = min(m, SAMPLE)
    chosen = np.sort(np.random.default_rng(0).permutation(m)[:size])
    sample = core_rows(expansion.vectors[chosen])
    squares = _core.gram(sample, None, expansion.kernel_spec, threads(1)) ** 2
    np.fill_diagonal(squares, 0.0)
    total = float(squares.sum())
    pairs = size * (size - 1)
    rank = m * m / (m + m * (m - 1) * total / pairs)
    return rank, float((squares**2).sum()) / total if total > 0.0 else 0.0


def tell_of_few(expansion: KernelExpansion, n_vectors: int, stacklevel: int) -> None:
    """Warn where so few vectors cannot answer for all neighbourhoods."""
    m = expansion.n_vectors
    if expansion.kernel != "rbf" or n_vectors >= SHARE * m or m <= MANY:
        return
    rank, near = neighbourhoods(expansion)
    if rank >= MANY and near >= NEAR and n_vectors < SHARE * rank:
        warnings.warn(
            f"n_vectors={n_vectors} may be too few: the model's {m} vectors lie in some {rank:.0f} "
            f"neighbourhoods that its kernel tells apart (gamma={expansion.gamma:g}). Allow about as many "
            "vectors as that, or train with a smaller gamma",
            SizeWarning,
            stacklevel=stacklevel + 1,
        )
