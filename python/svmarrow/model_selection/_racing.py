"""Racing: points of the grid that will not win are not tried on the folds that are left.

After each fold every point is compared with the one that is best so far, by the losses of all rows that were
held out so far where the score is a mean over rows (errors, squares), else by the scores of the folds, from
three folds on. What is asked is how the comparison will stand when all n rows have been seen, of which m are:
the mean difference D of the losses so far, with the standard deviation s, comes to

    D +- s sqrt((1 - m/n) / m)

(sampling without replacement: rows that are left cannot turn what is known). A point is dropped where that
leaves it no room to beat the best by more than a standard error of the best's own score, which is what
cross-validation cannot tell apart anyway (the rule of one standard error of Breiman and others 1984; an
indifference zone, Bechhofer 1954). The limit is the quantile of the largest of all these statistics, which
are far from independent: neighbours on the grid err on the same rows. It is drawn from the multivariate t
distribution with their correlations (Dunnett 1955), at the level alpha / (number of comparisons). So the
probability that the whole search would find a point better by more than a standard error stays below alpha.

Before the first fold all points are tried with machines of a part of the rows, on every fold: that costs a
tenth or less and tells as much about the worst of the points. Those that are worse there with
confidence, by more than a standard error, are dropped, at the same level; this claim is about machines of
that size.

Maron and Moore 1994 (Hoeffding races); Birattari and others 2002 (F-race, by Friedman's test over folds);
Krueger, Panknin and Braun 2015 (sequential testing of growing parts). Tried and dropped: tests of which point
is better in truth, on all rows there may ever be: with all folds seen they still leave 58 of 100 points on
sets of some hundred rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import stats

from svmarrow._support.blas import one_blas_thread
from svmarrow.model_selection._judging import Found, Judge, Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Run", "first_stage", "race", "survivors"]

#: One row in so many is learned from before the race.
SHARE = 4
#: Rows from which on that pays.
FEWEST_ROWS = 2000

#: Scores of folds from which on they are compared.
FEWEST_FOLDS = 3
#: Draws of the largest statistic.
_DRAWS = 1000
#: What is added to the correlations, of points that err alike, so that they have a factor.
_RIDGE = 1e-6


class Run(Protocol):
    """Tries some points on some folds, in a share of the time that is left; why it ended early, or None."""

    def __call__(
        self, judge: Judge, wanted: NDArray[np.bool_], folds: Sequence[int], share: float = 1.0
    ) -> str | None: ...


def survivors(
    racing: NDArray[np.bool_],
    values: NDArray[np.floating],
    level: float,
    total: int | None,
) -> NDArray[np.bool_]:
    """Which of the points (gammas, costs) that are racing stay.

    ``values`` (gammas, costs, seen) of rows or folds are the larger the better, and ``total`` is how many
    there will be: a point stays that may yet be better by a standard error. None is a comparison for good:
    a point stays that may be worse by a standard error.
    """
    seen = values[racing].astype(np.float64)
    count = seen.shape[1]
    means = seen.mean(axis=1)
    # What could not be scored is no opponent and is not dropped.
    scored = ~np.isnan(means)
    if count < 2 or scored.sum() < 2:
        return racing
    seen, means = seen[scored], means[scored]
    best = int(np.argmax(means))
    behind = seen[best] - seen
    gap = behind.mean(axis=1)
    # Rows on which two points differ may be left even where none was seen: one counts as seen.
    apart = np.abs(behind[behind != 0.0])
    if not apart.size:
        return racing
    least = float(np.median(apart)) / np.sqrt(count)
    spread = np.maximum(behind.std(axis=1, ddof=1), least)
    error = max(float(seen[best].std(ddof=1)), least)
    if total is None:
        left, room = 1.0, -error / np.sqrt(count)
    else:
        left, room = 1.0 - count / total, error / np.sqrt(total)
    statistic = (gap + room) / (spread * np.sqrt(left / count))
    others = np.arange(means.size) != best
    dropped = np.zeros(means.size, dtype=bool)
    dropped[others] = statistic[others] > _limit(behind[others] - gap[others, None], level)
    kept = racing.copy()
    places = np.nonzero(racing)
    kept[places[0][scored], places[1][scored]] = ~dropped
    return kept


def _limit(centred: NDArray[np.float64], level: float) -> float:
    """What the largest of the statistics of some differences (points, seen) exceeds with a probability."""
    points, seen = centred.shape
    norms = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    unit = centred[norms > 0.0] / norms[norms > 0.0, None]
    if len(unit) < 2:
        return float(stats.t.isf(level / points, seen - 1))
    random = np.random.default_rng(0)
    with one_blas_thread():
        factor = np.linalg.cholesky(unit @ unit.T + _RIDGE * np.eye(len(unit)))
        draws = random.standard_normal((_DRAWS, len(unit))) @ factor.T
    scale = np.sqrt(random.chisquare(seen - 1, _DRAWS) / (seen - 1))
    return float(np.quantile(draws.max(axis=1) / scale, 1.0 - level))


def first_stage(target: NDArray[Any], parts: list[Part]) -> list[Part] | None:
    """The folds with a part of the rows to learn from; None where the whole race is as soon run."""
    if target.size < FEWEST_ROWS:
        return None
    chosen = _some_of(target)
    stage = []
    for part in parts:
        some = chosen[part.train]
        if not some.any():
            return None
        stage.append(Part(part.train[some], part.weights[some], part.test))
    return stage


def _some_of(target: NDArray[Any]) -> NDArray[np.bool_]:
    """One row in so many, of every class and of the whole range of numbers alike."""
    order = np.argsort(target, kind="stable")
    chosen = np.zeros(target.size, dtype=bool)
    numbers = target.dtype.kind == "f"
    classes = [order] if numbers else np.split(order, np.flatnonzero(np.diff(target[order])) + 1)
    for rows in classes:
        chosen[rows[min(SHARE // 2, rows.size - 1) :: SHARE]] = True
    return chosen


def race(run: Run, first: Judge | None, judge: Judge, alpha: float) -> str | None:
    """Tries the points on one fold after the other, as long as they stay; why it ended early, or None.

    ``first`` judges machines of a part of the rows.
    """
    found, folds = judge.found, range(len(judge.parts))
    racing = np.ones(found.scores.shape[:2], dtype=bool)
    level = alpha / max(1, len(folds) - 1 + (first is not None))
    if first is not None:
        # Where it takes too long the race goes on without it.
        stop = run(first, racing, folds, 0.5)
        if stop is None:
            racing = _stay(racing, first.found, len(folds), level, None)
        elif stop != "max_time":
            return stop
    total = sum(part.test.size for part in judge.parts) if found.losses is not None else len(folds)
    for fold in folds:
        if racing.sum() == 1:
            # One is left: its other scores are still wanted.
            return run(judge, racing, folds[fold:])
        stop = run(judge, racing, [fold])
        if stop is not None or fold + 1 == len(folds):
            return stop
        racing = _stay(racing, found, fold + 1, level, total)
    return None


def _stay(
    racing: NDArray[np.bool_], found: Found, folds: int, level: float, total: int | None
) -> NDArray[np.bool_]:
    """Who stays by what is known of the first folds."""
    if found.losses is not None:
        return survivors(racing, -np.concatenate(found.losses[:folds], axis=2), level, total)
    return survivors(racing, found.scores[:, :, :folds], level, total) if folds >= FEWEST_FOLDS else racing
