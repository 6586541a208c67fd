"""Several expansions of one kernel as one, with common vectors kept once; expansions with scaled outputs."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["average", "merge", "scale_outputs"]


def merge(expansions: Sequence[KernelExpansion]) -> KernelExpansion:
    """All outputs side by side.

    Parameters
    ----------
    expansions : sequence of KernelExpansion
        Those without vectors are constants and fit to any kernel.

    Returns
    -------
    KernelExpansion
        Output j belongs to the j-th output of the sequence; vectors in the order of their first occurrence.

    Raises
    ------
    ValueError
        If they differ in kernel or number of columns.
    """
    first, vectors, places = _pool(expansions)
    coefficients = np.zeros((vectors.shape[0], sum(expansion.n_outputs for expansion in expansions)))
    from_output = 0
    for expansion, place in zip(expansions, places, strict=True):
        columns = slice(from_output, from_output + expansion.n_outputs)
        np.add.at(coefficients[:, columns], place, expansion.coefficients)
        from_output = columns.stop
    intercepts = np.concatenate([expansion.intercepts for expansion in expansions])
    return first.replaced(vectors=vectors, coefficients=coefficients, intercepts=intercepts)


def average(expansions: Sequence[KernelExpansion], weights: ArrayLike | None = None) -> KernelExpansion:
    """The weighted mean of the outputs.

    Parameters
    ----------
    expansions : sequence of KernelExpansion
        As for `merge`, all with the same number of outputs.
    weights : array-like of shape (len(expansions),), default=None
        None counts all alike.

    Returns
    -------
    KernelExpansion
        Output j is the mean of the outputs j; vectors in the order of their first occurrence.

    Raises
    ------
    ValueError
        If they differ in kernel, number of columns or number of outputs.
    """
    outputs = expansions[0].n_outputs
    for other in expansions:
        if other.n_outputs != outputs:
            raise ValueError(
                f"the machines have {outputs} and {other.n_outputs} outputs: an average needs the same number"
            )
    shares = np.ones(len(expansions)) if weights is None else np.asarray(weights, dtype=np.float64)
    shares = shares / shares.sum()
    first, vectors, places = _pool(expansions)
    coefficients, intercepts = np.zeros((vectors.shape[0], outputs)), np.zeros(outputs)
    for expansion, place, share in zip(expansions, places, shares, strict=True):
        np.add.at(coefficients, place, share * expansion.coefficients)
        intercepts += share * expansion.intercepts
    return first.replaced(vectors=vectors, coefficients=coefficients, intercepts=intercepts)


def scale_outputs(expansion: KernelExpansion, factors: NDArray[np.float64]) -> KernelExpansion:
    """Returns the expansion with its outputs multiplied by factors (q,)."""
    return expansion.replaced(
        coefficients=expansion.coefficients * factors, intercepts=expansion.intercepts * factors
    )


def _pool(expansions: Sequence[KernelExpansion]) -> tuple[KernelExpansion, Any, list[NDArray[np.intp]]]:
    """An expansion with the common kernel, the distinct vectors, and the place of each vector among them."""
    with_vectors = [expansion for expansion in expansions if expansion.n_vectors]
    first = with_vectors[0] if with_vectors else expansions[0]
    for other in with_vectors:
        if other.kernel_spec != first.kernel_spec:
            raise ValueError(
                f"the machines have different kernels, such as {first.kernel_spec} and "
                f"{other.kernel_spec}: one expansion has one kernel; gamma='scale' is another number for "
                "other rows, so give gamma itself"
            )
        if other.vectors.shape[1] != first.vectors.shape[1]:
            raise ValueError("the machines have different numbers of columns")
    known: dict[bytes, int] = {}
    places = [
        np.array([known.setdefault(key, len(known)) for key in _keys(expansion.vectors)], dtype=np.intp)
        for expansion in expansions
    ]
    pools = [expansion.vectors for expansion in with_vectors] or [first.vectors]
    stacked = sp.csr_array(sp.vstack(pools)) if sp.issparse(pools[0]) else np.vstack(pools)
    _, where = np.unique(np.concatenate(places), return_index=True)
    return first, stacked[where], places


def _keys(vectors: Any) -> list[bytes]:
    """Rows as bytes: equal where the rows are."""
    if sp.issparse(vectors):
        ends = vectors.indptr
        return [
            vectors.indices[a:b].astype(np.int64).tobytes() + vectors.data[a:b].tobytes()
            for a, b in pairwise(ends)
        ]
    return [row.tobytes() for row in np.ascontiguousarray(vectors)]
