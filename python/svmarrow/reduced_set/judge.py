"""What a small model loses against the full one, with confidence: measured on rows, both models on each row.

Classes: b rows are right by the full model alone, c by the small one alone, of n. The loss is (b - c) / n,
its upper bound the largest D that the score test of paired proportions does not reject (Tango, 1998,
equation 4): with q the likeliest share of rows that the small model alone gets right where the loss is D,

    (b - c - n D) / sqrt(n (2 q + D (1 - D))) = -z.

Unlike intervals from an estimated variance it holds where b and c are few; for b = c = 0 it is z^2 / (n +
z^2). Numbers: the loss is a ratio R of sums over rows, whose rows stand out by u = lost - R share, and a
few of them often carry half of it. Its bound is

    R + mean(u) / mean(share) + z deviation(u) / (mean(share) sqrt(n))

where u has one more row, as bad as the worst of them: what n rows have not shown may still come once in n.
Without that row bounds of models whose few bad rows carry the loss (kin8nm, kurtosis 1,200) fail in 5 to 11
of 100 draws of rows instead of at most 5, with it in 1 to 3; only on 600 rows and fewer of abalone, where
single rows carry a tenth of the variance, in 5 to 9. Percentiles of bootstrap samples, plain and
studentised, and Hall's correction for skewness (1992) fail as often as no correction at all; the last has
upper bounds of ten times the deviation besides.

Weighted classes (balanced accuracy, sample weights): rows of equal weight are a stratum with share p_s of
the weight, a loss D_s and a bound U_s of paired proportions. The loss is sum p_s D_s, and its bound

    sum p_s D_s + sqrt(sum p_s^2 (U_s - D_s)^2),

the method of variance estimates recovery (Zou and Donner, 2008). Of more than 32 weights those within a
factor of two are one stratum, whose rows count as shares of the heaviest. It is not below the bound of a
ratio, which knows that the shares of the strata are themselves a sample. Of 300, 1,000 and 4,000 rows with 7
of 100 in one class, five kinds of losses and 1,000 draws each, bounds at 5 % failed in 0 to 5.1 of 100 draws,
at 1 % in 0 to .9.

The strict way goes down from the largest size until the first whose bound is too large, and takes the last
that has passed. To be wrong, the first size that loses too much must pass its test, so the error is that of
one test however many sizes are looked at (fixed-sequence testing; Maurer, Hothorn and Lehmacher, 1995). It
takes some thousand rows for a small loss. The other way takes the smallest size whose loss as measured is
small enough, where fewer vectors are known to lose more: losses that are out of order are averaged
(isotonic regression; Ayer et al., 1955). So one unlucky size does not end the search, and a lucky one
counts no more than its neighbours allow. Its bound, the promise, is corrected for each size that might have
been looked at (Bonferroni). That number is known beforehand: one that the data have chosen would correct
too little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from svmarrow._support.path import scoring_chunks
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.models.loss_bound import LossBound
from svmarrow.reduced_set.score import Score, decides, default_scoring, rows_for, without_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Demand", "Descent", "Judge", "paired_bound", "sizes_to_look_at"]

MOST_STRATA = 32
"""Different weights that are strata of their own; of more, those within a factor of two are one."""

HOPELESS = 0.1
"""A size that loses too much with this error of a test is the last that is looked at."""


def paired_bound(b: float, c: float, n: float, error: float) -> float:
    """Upper bound of the loss where b rows are right by the full model alone and c by the small one."""
    z = -float(ndtri(error))

    def statistic(loss: float) -> float:
        linear = -b - c + (2 * n - b + c) * loss
        share = (np.sqrt(max(0.0, linear**2 + 8 * n * c * loss * (1 - loss))) - linear) / (4 * n)
        return float(b - c - n * loss + z * np.sqrt(max(0.0, n * (2 * share + loss * (1 - loss)))))

    low = (b - c) / n + 1e-9
    return 1.0 if b >= n else float(brentq(statistic, low, 1.0, xtol=1e-9)) if statistic(low) > 0 else low


def ratio_bound(lost: NDArray[np.float64], shares: NDArray[np.float64], error: float) -> float:
    """Upper bound of sum(lost) / sum(shares) on other rows of the same kind."""
    ratio = float(lost.sum() / shares.sum())
    apart = (lost - ratio * shares) / shares.mean()
    apart = np.append(apart, max(0.0, float(apart.max())))
    return ratio + float(apart.mean() - ndtri(error) * apart.std() / np.sqrt(apart.size))


def weighted_bound(lost: NDArray[np.float64], weights: NDArray[np.float64], error: float) -> float:
    """Upper bound of the weighted mean of losses -1, 0 and 1 on other rows of the same kind."""
    lost, weights = lost[weights > 0.0], weights[weights > 0.0]
    total = float(weights.sum())
    values, which = np.unique(weights, return_inverse=True)
    if values.size > MOST_STRATA:
        _, which = np.unique(np.floor(np.log2(weights)), return_inverse=True)
    square = 0.0
    for stratum in range(int(which.max()) + 1):
        there = which == stratum
        of, heaviest = lost[there], float(weights[there].max())
        rows = weights[there] / heaviest
        n, b, c = float(rows.sum()), float(rows[of > 0].sum()), float(rows[of < 0].sum())
        square += (n * heaviest / total * (paired_bound(b, c, n, error) - (b - c) / n)) ** 2
    upper = float(weights @ lost) / total + np.sqrt(square)
    return min(1.0, max(float(upper), ratio_bound(weights * lost, weights, error)))


class Judge:
    """Rows that tell small models from the full one.

    Parameters
    ----------
    model : ExpansionModel or KernelExpansion
        The full model.
    X : {array-like, sparse matrix} of shape (n, n_features)
        Rows.
    y : array-like of shape (n,) or (n, q), or None
        Their labels or numbers; None for the full model's own answers.
    scoring : str, default=None
        The measure, see `CompressionPath.select`.
    n_jobs : int, default=None
        Threads.
    sample_weight : array-like of shape (n,), default=None
        What each row counts; None is 1 for each.
    """

    def __init__(
        self,
        model: Any,
        X: ArrayLike,
        y: Any,
        scoring: str | None = None,
        n_jobs: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.model, self.rows, self.n_jobs = model, rows_for(model, X), n_jobs
        self.n = int(self.rows.shape[0])
        if self.n == 0:
            raise ValueError("X has no rows: nothing can be judged")
        outputs = without_kind(model)._evaluate(self.rows, n_jobs)
        if scoring is None and y is not None and sample_weight is None:
            scoring = default_scoring(model)
        answers = self._answers(outputs) if y is None else y
        known = Score(model, self.rows, answers, 1, scoring, sample_weight)
        self.targets, self.measure = known.targets, "agreement" if y is None else known.scoring
        self.counts, self.weights = decides(model), known.weights
        self._varies = self.counts and np.ptp(self._decided(outputs[None])) > 0
        self.full = self.merits(outputs[None], slice(0, self.n))[0]
        self._shares = np.full(self.n, 1.0 / self.n)
        if not self.counts:
            spread: NDArray[np.float64] = np.full(self.n, float(self.targets.shape[1]))
            if known.scoring == "r2":
                spread = known.spread()
            elif self.weights is not None:
                spread *= self.weights
            self._shares = spread if spread.any() else np.ones(self.n)

    def _answers(self, outputs: NDArray[np.float64]) -> Any:
        if isinstance(self.model, ExpansionClassifier):
            return self.model.classes_[self.model.decode(outputs)]
        return self.model.inside(outputs) if isinstance(self.model, ExpansionDetector) else outputs

    def merits(self, outputs: NDArray[np.float64], chunk: slice) -> NDArray[np.float64]:
        """How good the outputs (models, rows of the chunk, q) are on each row: 1 or 0, or minus squares."""
        if not self.counts:
            squares: NDArray[np.float64] = ((outputs - self.targets[chunk]) ** 2).sum(axis=2)
            return -squares if self.weights is None else -squares * self.weights[chunk]
        right: NDArray[np.float64] = (self._decided(outputs) == self.targets[chunk]).astype(np.float64)
        return right

    def _decided(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        """The classes (models, n) of outputs (models, n, q)."""
        models, n, q = outputs.shape
        decide = self.model.decode if isinstance(self.model, ExpansionClassifier) else self.model.inside
        decided: NDArray[np.intp] = decide(outputs.reshape(models * n, q)).reshape(models, n)
        return decided

    def of_sizes(
        self,
        outputs: Callable[[Any, Sequence[int]], NDArray[np.float64]],
        sizes: Sequence[int],
        width: int,
        *,
        constant: bool = False,
    ) -> NDArray[np.float64]:
        """Merits (sizes, n) by what gives the outputs of increasing sizes for some rows.

        They are minus infinity for a model that gives all rows one class where the full model does not: it
        has lost everything, however frequent the class is. With `constant` it is measured as any other.
        """
        found = np.empty((len(sizes), self.n))
        lowest, highest = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
        for chunk in scoring_chunks(self.n, len(sizes) * width + sizes[-1]):
            values = outputs(self.rows[chunk], sizes)
            if not self.counts:
                found[:, chunk] = self.merits(values, chunk)
                continue
            decided = self._decided(values)
            found[:, chunk] = decided == self.targets[chunk]
            lowest = np.minimum(lowest, decided.min(axis=1))
            highest = np.maximum(highest, decided.max(axis=1))
        if self._varies and not constant:
            found[lowest == highest] = -np.inf
        return found

    def of_model(self, model: Any, *, constant: bool = False) -> NDArray[np.float64]:
        """Merits (n,) of a compressed model."""
        expansion = without_kind(model)

        def outputs(rows: Any, _: Any) -> NDArray[np.float64]:
            return expansion._evaluate(rows, self.n_jobs)[None]

        return np.asarray(self.of_sizes(outputs, [1], 1, constant=constant)[0])

    def loss(self, merits: NDArray[np.float64]) -> float:
        """How much lower the score is than the full model's."""
        lost = self.full - merits
        if self.counts and self.weights is not None and np.isfinite(lost).all():
            return float(self.weights @ lost) / self.n
        return float(lost.sum() / self._shares.sum()) / (self.n if self.counts else 1)

    def bound(self, merits: NDArray[np.float64], error: float) -> float:
        """What the loss is at most, but for this probability."""
        lost = self.full - merits
        if self.counts:
            return self._paired(lost, error)
        return ratio_bound(lost, self._shares, error)

    def least(self, merits: NDArray[np.float64], error: float) -> float:
        """What the loss is at least, but for this probability."""
        lost = self.full - merits
        if self.counts:
            return -self._paired(-lost, error)
        return -ratio_bound(-lost, self._shares, error)

    def _paired(self, lost: NDArray[np.float64], error: float) -> float:
        if self.weights is None or not np.isfinite(lost).all():
            return paired_bound(int((lost > 0).sum()), int((lost < 0).sum()), self.n, error)
        return weighted_bound(lost, self.weights, error)

    def promise(
        self, merits: NDArray[np.float64], confidence: float, asked: float | None = None, tests: float = 1
    ) -> LossBound:
        """What is known of a model that was found by so many tests side by side."""
        upper = self.bound(merits, (1.0 - confidence) / tests)
        return LossBound(self.loss(merits), upper, confidence, self.n, self.measure, asked)

    def promise_of(self, model: Any, confidence: float, tests: float = 1) -> LossBound:
        """What is known of a model whose size was fixed, even where it gives all rows one class."""
        return self.promise(self.of_model(model, constant=True), confidence, tests=tests)


def sizes_to_look_at(sizes: Sequence[int]) -> list[int]:
    """Of increasing sizes some, decreasing: the largest, then those a tenth smaller each."""
    found: list[int] = []
    for size in reversed(sizes):
        if not found or size <= 0.9 * found[-1] + 1e-9 or found[-1] <= 10:
            found.append(size)
    return found


class Demand(NamedTuple):
    """The most that may be lost on the rows of a judge."""

    judge: Judge
    most: float


def in_order(losses: Sequence[float]) -> list[float]:
    """The nearest numbers that do not decrease (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for loss in losses:
        value, count = loss, 1
        while blocks and blocks[-1][0] >= value:
            before, of = blocks.pop()
            value, count = (before * of + value * count) / (of + count), of + count
        blocks.append((value, count))
    return [value for value, count in blocks for _ in range(count)]


class Descent:
    """Sizes from the largest down, until one is too small, and then some between the last two.

    Parameters
    ----------
    demands : sequence of Demand
        All must be met.
    error : float
        Probability that what has passed loses too much.
    """

    def __init__(self, demands: Sequence[Demand], error: float) -> None:
        self.demands, self.error = demands, error
        #: The smallest size so far that is promised, and measured, to lose little enough; with its merits.
        self.promised: tuple[int, list[NDArray[np.float64]]] | None = None
        self.measured: tuple[int, list[NDArray[np.float64]]] | None = None
        #: Sizes that were looked at, the largest first, and their losses for each demand.
        self._sizes: list[int] = []
        self._losses: list[list[float]] = [[] for _ in demands]
        self._promising = self._hoping = True

    @property
    def goes_on(self) -> bool:
        """Whether a smaller size may still pass."""
        return self._promising or self._hoping

    @property
    def failed(self) -> int | None:
        """The largest size that was looked at below the smallest that is measured to be good enough."""
        if self.measured is None:
            return None
        return next((size for size in self._sizes if size < self.measured[0]), None)

    def meets(self, merits: list[NDArray[np.float64]]) -> bool:
        """Whether merits alone, without those of other sizes, are good enough."""
        return all(
            demand.judge.loss(one) <= demand.most + 1e-12
            for demand, one in zip(self.demands, merits, strict=True)
        )

    def between(self, size: int, merits: list[NDArray[np.float64]]) -> None:
        """Measure a size between two that were looked at: no promise is tested on it."""
        at = next((at for at, seen in enumerate(self._sizes) if seen < size), len(self._sizes))
        self._sizes.insert(at, size)
        for losses, demand, one in zip(self._losses, self.demands, merits, strict=True):
            losses.insert(at, demand.judge.loss(one))
        # One part in 10^12 keeps a loss of exactly what is allowed from falling to rounding. What has passed
        # stays so: smaller sizes only lower the averages that they are part of.
        good = all(
            in_order(losses[: at + 1])[-1] <= demand.most + 1e-12
            for losses, demand in zip(self._losses, self.demands, strict=True)
        )
        if good and (self.measured is None or size < self.measured[0]):
            self.measured = size, merits

    def look(self, size: int, merits: list[NDArray[np.float64]]) -> None:
        """Test the next size, smaller than all before."""
        pairs = list(zip(self.demands, merits, strict=True))
        self.between(size, merits)
        self._promising = self._promising and all(
            demand.judge.bound(one, self.error) <= demand.most + 1e-12 for demand, one in pairs
        )
        if self._promising:
            self.promised = size, merits
        self._hoping = not any(demand.judge.least(one, HOPELESS) > demand.most for demand, one in pairs)

    def through(self, levels: Iterable[tuple[int, list[NDArray[np.float64]]]]) -> None:
        """Look at sizes with their merits until one is too small."""
        for size, merits in levels:
            self.look(size, merits)
            if not self.goes_on:
                return
