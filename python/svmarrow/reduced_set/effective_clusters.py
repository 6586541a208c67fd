"""A warning where few vectors cannot be enough: each of the model's vectors matters in its own cluster.

The kernel matrix K of the m vectors, K(x, x) = 1, has trace m and a rank of at least (tr K)^2 / |K|^2, that
is m^2 / sum_ij K(x_i, x_j)^2, its effective rank: the number of clusters that the kernel distinguishes.
A function that changes from each to the next, as on two spirals or a checkerboard, needs about one vector for
each. Samples of many features, all about as far from each other, have a high rank too, yet none are near: the
mean of K^2 weighted by K^2, 2^(-d / 2) where samples fill d dimensions, is small. Few vectors may be enough
there, so there is no warning; nor for other kernels than the RBF kernel.

Cost: MAX_VECTORS^2 kernel values.
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

__all__ = ["effective_clusters", "warn_too_few_vectors"]

MAX_VECTORS = 1000
"""Maximum number of vectors that are compared."""

MIN_CLUSTERS = 40.0
"""Minimum number of clusters for a warning: the sets that this was measured on have at most 27."""

MIN_NEARNESS = 0.25
"""Minimum weighted mean of K^2: samples that fill four dimensions."""

VECTORS_PER_CLUSTER = 0.5
"""Vectors for each cluster below which there is a warning."""


def effective_clusters(expansion: KernelExpansion) -> tuple[float, float]:
    """The effective number of clusters of the vectors, and how near the near ones are.

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
    size = min(m, MAX_VECTORS)
    chosen = np.sort(np.random.default_rng(0).permutation(m)[:size])
    sample = core_rows(expansion.vectors[chosen])
    squares = _core.gram(sample, None, expansion.kernel_spec, threads(1)) ** 2
    np.fill_diagonal(squares, 0.0)
    total = float(squares.sum())
    pairs = size * (size - 1)
    rank = m * m / (m + m * (m - 1) * total / pairs)
    return rank, float((squares**2).sum()) / total if total > 0.0 else 0.0


def warn_too_few_vectors(expansion: KernelExpansion, n_vectors: int, stacklevel: int) -> None:
    """Warn where the vectors are fewer than half of the effective clusters."""
    m = expansion.n_vectors
    if expansion.kernel != "rbf" or n_vectors >= VECTORS_PER_CLUSTER * m or m <= MIN_CLUSTERS:
        return
    rank, near = effective_clusters(expansion)
    if rank >= MIN_CLUSTERS and near >= MIN_NEARNESS and n_vectors < VECTORS_PER_CLUSTER * rank:
        warnings.warn(
            f"n_vectors={n_vectors} may be too few: the model's {m} vectors lie in about {rank:.0f} clusters "
            f"that its kernel distinguishes (gamma={expansion.gamma:g}). Allow about as many vectors, or "
            "train with a smaller gamma",
            SizeWarning,
            stacklevel=stacklevel + 1,
        )
