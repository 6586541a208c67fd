"""Choice of the points of a low-rank model from distributed rows: drawn, or chosen from a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from svmarrow._support.rows import as_rows
from svmarrow.dask.parts import rows_by_part, rows_with_indices
from svmarrow.expansion.points import choose_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow.dask.cluster import Cluster

__all__ = ["choose_distributed_points"]

#: Size of the sample from which points are chosen: rows per point, and the minimum number of rows.
_SAMPLE_ROWS_PER_POINT, _MIN_SAMPLE_ROWS = 20, 10_000


def choose_distributed_points(
    cluster: Cluster,
    parts: Sequence[Any],
    counts: Sequence[int],
    first: NDArray[np.int64],
    model: Any,
    spec: tuple[str, float, float, int],
    alpha: float,
) -> tuple[Any, NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """Returns the points, the indices of their samples and the remaining trace, as `choose_points` does.

    ``parts`` are delayed or futures with ``counts`` samples; ``first`` is the index of the first sample of
    each.
    """
    if not isinstance(model.selection, str):
        points = as_rows(model.selection, "selection")
        if points.shape[1] != model.n_features_in_:
            raise ValueError(f"selection has {points.shape[1]} columns: X has {model.n_features_in_}")
        return points, None, None
    random = check_random_state(model.random_state)
    total, m = int(sum(counts)), int(model.n_vectors)
    size = m if model.selection == "random" else max(_SAMPLE_ROWS_PER_POINT * m, _MIN_SAMPLE_ROWS)
    drawn = np.sort(sample_without_replacement(total, min(total, size), random_state=random)).astype(np.int64)
    asked = rows_by_part(counts, drawn)
    futures = [cluster.task(rows_with_indices, parts[number], local) for number, local in asked.items()]
    samples = cluster.gather(futures, "the points")
    X = [rows for rows, _ in samples]
    sample = as_rows(sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.concatenate(X))
    numbers = np.concatenate([own + first[number] for number, (_, own) in zip(asked, samples, strict=True)])
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
