"""Several expansions of one kernel as one over a common pool: vectors that occur in many are kept once."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["merge"]


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
    known: dict[Any, int] = {}
    places = []
    for expansion in expansions:
        keys = _keys(expansion.vectors)
        places.append(np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.intp))
    outputs = sum(expansion.n_outputs for expansion in expansions)
    coefficients = np.zeros((len(known), outputs))
    from_output = 0
    for expansion, place in zip(expansions, places, strict=True):
        columns = slice(from_output, from_output + expansion.n_outputs)
        np.add.at(coefficients[:, columns], place, expansion.coefficients)
        from_output = columns.stop
    pools = [expansion.vectors for expansion in with_vectors] or [first.vectors]
    stacked = sp.csr_array(sp.vstack(pools)) if sp.issparse(pools[0]) else np.vstack(pools)
    order = np.concatenate([place for place in places if place.size] or [np.empty(0, dtype=np.intp)])
    _, where = np.unique(order, return_index=True)
    return first.replaced(
        vectors=stacked[where],
        coefficients=coefficients,
        intercepts=np.concatenate([expansion.intercepts for expansion in expansions]),
    )


def _keys(vectors: Any) -> list[bytes]:
    """Rows as bytes: equal where the rows are."""
    if sp.issparse(vectors):
        ends = vectors.indptr
        return [
            vectors.indices[a:b].astype(np.int64).tobytes() + vectors.data[a:b].tobytes()
            for a, b in pairwise(ends)
        ]
    return [row.tobytes() for row in np.ascontiguousarray(vectors)]
