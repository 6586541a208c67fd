"""Points of a low-rank model, among rows that no process has together: all drawn, or chosen from a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from svmarrow._support.rows import as_rows
from svmarrow.dask.parts import picked
from svmarrow.expansion.points import choose_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow.dask.cluster import Cluster

__all__ = ["points_of"]

#: Rows that points are chosen from, where they are not merely drawn: so many a point, and so many at least.
_A_POINT, _AT_LEAST = 20, 10_000


def points_of(
    cluster: Cluster,
    parts: Sequence[Any],
    counts: Sequence[int],
    first: NDArray[np.int64],
    model: Any,
    spec: tuple[str, float, float, int],
    alpha: float,
) -> tuple[Any, NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """Points, the numbers of their rows, and what is left of the trace, as `choose_points` has them.

    ``parts`` are delayed or futures, with ``counts`` rows; ``first`` the number of each one's first row.
    """
    if not isinstance(model.selection, str):
        points = as_rows(model.selection, "selection")
        if points.shape[1] != model.n_features_in_:
            raise ValueError(f"selection has {points.shape[1]} columns: X has {model.n_features_in_}")
        return points, None, None
    random = check_random_state(model.random_state)
    total, m = int(sum(counts)), int(model.n_vectors)
    most = m if model.selection == "random" else max(_A_POINT * m, _AT_LEAST)
    drawn = np.sort(sample_without_replacement(total, min(total, most), random_state=random)).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(counts)])
    cuts = np.searchsorted(drawn, ends)
    asked = [number for number in range(len(parts)) if cuts[number] < cuts[number + 1]]
    futures = [
        cluster.task(picked, parts[number], drawn[cuts[number] : cuts[number + 1]] - ends[number])
        for number in asked
    ]
    told = cluster.gather(futures, "the points")
    X = [rows for rows, _ in told]
    sample = as_rows(sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.concatenate(X))
    numbers = np.concatenate([own + first[number] for number, (_, own) in zip(asked, told, strict=True)])
    points, rows, remaining = choose_points(
        sample,
        m,
        spec,
        selection=model.selection,
        alpha=alpha,
        random_state=random,
        n_jobs=model.n_jobs,
        verbose=model.verbose,
    )
    return points, None if rows is None else numbers[rows], remaining
