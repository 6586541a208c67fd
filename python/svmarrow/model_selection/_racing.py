"""Racing: points of the grid that are worse with confidence after some folds are not tried on the others.

After each fold every point is compared with the one that is best so far, on all rows that were held out so
far: by a paired t test of the losses of the rows where the score is a mean over rows (errors, squares), else
of the scores of the folds, from three folds on. It is dropped where it is worse at the level alpha / (points
x rounds). So the probability that the point which is best in truth is ever dropped stays below alpha
(Bonferroni over points and rounds; that the opponent is chosen by its scores does no harm, since all pairs
are counted).

Maron and Moore 1994 (Hoeffding races); Birattari and others 2002 (F-race, by Friedman's test over folds);
Krueger, Panknin and Braun 2015 (sequential testing of growing parts). Tests on rows tell after the first fold
what tests on folds tell after several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["survivors"]

#: Scores of folds from which on they are compared.
_FEWEST_FOLDS = 3


def survivors(
    racing: NDArray[np.bool_],
    losses: NDArray[np.float32] | None,
    scores: NDArray[np.float64],
    level: float,
) -> NDArray[np.bool_]:
    """Which of the points (gammas, costs) that are racing stay.

    ``losses`` (gammas, costs, rows seen) are those of the rows where the score is a mean over rows;
    ``scores`` (gammas, costs, folds seen). A point is dropped where it is worse at the given level.
    """
    values = scores if losses is None else -losses
    if losses is None and scores.shape[2] < _FEWEST_FOLDS:
        return racing
    means = np.where(racing, values.mean(axis=2, dtype=np.float64), -np.inf)
    # What could not be scored is no opponent and does not win.
    means = np.where(np.isnan(means), -np.inf, means)
    best = np.unravel_index(int(np.argmax(means)), means.shape)
    kept = racing.copy()
    for point in zip(*np.nonzero(racing), strict=True):
        behind = values[best].astype(np.float64) - values[point]
        mean, spread = float(behind.mean()), float(behind.std(ddof=1)) if behind.size > 1 else np.nan
        if not mean > 0.0:
            continue
        if spread == 0.0:
            kept[point] = losses is not None and behind.size < _FEWEST_FOLDS
            continue
        t = mean / (spread / np.sqrt(behind.size))
        kept[point] = not stats.t.sf(t, behind.size - 1) < level
    return kept
