"""Starts of the scales other than equal ones: importances of the columns in extremely randomized trees.

Problem: average gradient outer products are those of a fit. If many irrelevant columns hide the few relevant
ones from a kernel with equal scales, this fit is nearly constant, and its gradients do not show which columns
are relevant.

Algorithm: trees split one column at a time and find such columns. Their importances are a crude measure, but
only the start is needed. Two starts are computed from them. Squared importances reduce the share of
irrelevant columns, whose importances are small but not 0. The selection gives equal scales to the columns
above the widest gap of the importances; it is the better start if a target oscillates along a column faster
than the splits of a small tree can follow.

Cost: 25 small trees; the guard fits as many for the training part of each fold.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

__all__ = ["START_NAMES", "start_sizes", "tree_importances"]

#: Number of trees, and the least share of the weight of the samples in a leaf.
N_TREES, MIN_LEAF_SHARE = 25, 0.005
#: Number of columns that a split chooses from; of more columns it is at least their square root.
MAX_SPLIT_COLUMNS = 64
#: Names of the starts, in the order of `start_sizes`.
START_NAMES = ("importances", "selection")
#: Sum of the squared scales of the columns that are not selected, as a share of the others; updates can still
#: enlarge them.
UNSELECTED_SHARE = 0.01
#: Importances are compared up to this share of the mean importance.
MIN_IMPORTANCE = 0.1


def tree_importances(
    rows: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None, seed: int
) -> NDArray[np.float64]:
    """Returns the importances (d,) of the columns, the mean over the trees; zeros if no tree splits.

    The trees of labels have the codes -1 and 1 as targets, for which the squared error is the Gini impurity.
    They are fitted one after the other without joblib, about a millisecond each: this works in every thread
    and backend, and sums in a fixed order.
    """
    from sklearn.tree import ExtraTreeRegressor  # noqa: PLC0415 - slow to import

    d = int(rows.shape[1])
    # The types of the trees, which `check_input` would convert for each of them.
    if sp.issparse(rows):
        values = sp.csc_matrix(rows, dtype=np.float32)
        values.sort_indices()
    else:
        values = np.ascontiguousarray(rows, dtype=np.float32)
    random = np.random.RandomState(seed)
    total = np.zeros(d)
    for _ in range(N_TREES):
        tree = ExtraTreeRegressor(
            min_weight_fraction_leaf=MIN_LEAF_SHARE,
            max_features=min(d, max(MAX_SPLIT_COLUMNS, math.isqrt(d))),
            random_state=random.randint(2**31 - 1),
        )
        total += tree.fit(values, targets, weights, check_input=False).feature_importances_
    return total / N_TREES


def start_sizes(
    importances: NDArray[np.float64], groups: NDArray[np.int64]
) -> tuple[NDArray[np.float64], ...]:
    """Returns the squared scales (d,) of the starts; columns of a group divide its size among them."""
    counts = np.bincount(groups)
    totals = np.asarray(np.bincount(groups, importances), dtype=np.float64)
    if not totals.any():
        # No tree has split.
        totals = np.ones(totals.size)
    order = np.argsort(-totals, kind="stable")
    floored = totals[order] + MIN_IMPORTANCE * totals.mean()
    # At most half of the columns are selected: below are ratios of noise.
    n_ratios = max(1, totals.size // 2)
    n_selected = 1 + int(np.argmax(floored[:n_ratios] / floored[1 : n_ratios + 1]))
    selected = np.full(totals.size, UNSELECTED_SHARE * n_selected / (totals.size - n_selected))
    selected[order[:n_selected]] = 1.0
    return tuple((sizes / counts)[groups] for sizes in (totals**2, selected))
