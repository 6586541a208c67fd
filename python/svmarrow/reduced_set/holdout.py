"""The loss of small models on samples held out: its measurement, its bound, the smallest size that keeps it.

The measured loss is the difference of both scores. On a few hundred samples its standard error is several
tenths of a point, so the smallest of many sizes that scores well has often been lucky. A size is therefore
chosen by the *safe loss*, which varies less. For classes it is

    sum_i w_i h_i [the answers on sample i differ in being right] / n  +  one standard error,

where h is what a changed answer costs: 2 p - 1, where p is the probability that the full model is right at
its margin on the sample, by a logistic regression on the margins of all samples held out. A changed answer
near the decision boundary costs little, one far from it a whole sample, and no change counts as a gain, so
that a lucky label does not compensate an unlucky one. The standard error has one more changed answer near the
boundary, since none among n samples does not mean that there are none. The safe loss is at least the measured
loss. Without labels every changed answer costs 1. For numbers it is the bound of the loss at one standard
error.

Sizes are searched from the largest down. Losses out of order are averaged (isotonic regression; Ayer et al.,
1955), so that one unlucky size does not end the search and a lucky one counts no more than its neighbors
allow. The search ends where a size loses too much beyond doubt.

Upper bounds of the loss compare both models on each sample, with confidence.

**Classes.** Of n samples the full model alone is right on b, the small one alone on c. The loss is
(b - c) / n. Its upper bound is the largest D that the score test of paired proportions does not reject
(Tango, 1998, equation 4): with q the likeliest share of samples that the small model alone gets right if the
loss is D,

    (b - c - n D) / sqrt(n (2 q + D (1 - D))) = -z.

Unlike intervals from an estimated variance it holds where b and c are small; for b = c = 0 it is
z^2 / (n + z^2).

**Numbers.** The loss of an output is a ratio R of sums over samples, with deviations
u = (lost - R share) / mean(share). The loss is the mean of R over the outputs, as R^2 of scikit-learn's
``score`` is, so that each output counts on its own scale. With u and R averaged over the outputs its bound is

    R + mean(u) + z deviation(u) / sqrt(n)

where u has one more sample, as bad as the worst of them: what n samples have not shown may still come once
in n. Without it, bounds fail too often where few samples carry the loss (kin8nm, kurtosis 1,200).

**Weights.** Samples of equal weight are a stratum with share p_s of the weight, a loss D_s and a bound U_s of
paired proportions. The loss is sum p_s D_s, and its bound is the larger of

    sum p_s D_s + sqrt(sum p_s^2 (U_s - D_s)^2)

and of the bound of numbers. Within a stratum whose weights differ by up to a factor of two, each sample
counts as its share of the largest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, ndtr, ndtri
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from svmarrow._support.estimator import scoring_chunks
from svmarrow._support.parameters import seed_of
from svmarrow._support.training import sample_weights
from svmarrow.interop.convert import as_expansion
from svmarrow.models.base import LossBound
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.reduced_set.score import Score, default_scoring, predictions_of, predicts_classes, rows_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion


__all__ = [
    "HoldoutEvaluator",
    "Samples",
    "SizeSearch",
    "sizes_to_search",
    "split_samples",
    "subsample_baseline",
]


# --- the samples that a compression learns from, and those that it holds out ---


HOLDOUT_FRACTION, MAX_HOLDOUT_SAMPLES = 0.5, 20_000
"""Fraction of the samples that are held out where no others are given, and the maximum of them."""


class Samples(NamedTuple):
    """Samples with what is known of them."""

    X: Any
    y: Any = None
    weights: Any = None

    def part(self, chosen: Any) -> Samples:
        """Some of the samples."""
        return Samples(
            _safe_indexing(self.X, chosen),
            None if self.y is None else _safe_indexing(np.asarray(self.y), chosen),
            None if self.weights is None else self.weights[chosen],
        )


def split_samples(
    samples: Samples,
    validation: tuple[Any, ...] | None,
    *,
    hold_out: bool,
    labels: Callable[[], Any] | None,
    random_state: int | np.random.RandomState | None,
) -> tuple[Samples, Samples | None]:
    """Samples to learn from, and samples to measure the loss on where there are any.

    The latter are `validation`, else half of the samples if `hold_out`: half of each class if a function
    returns `labels` of all samples, which is called only then. A ValueError if X and y disagree.
    """
    X, y, weights = samples
    if X is None and y is not None:
        raise ValueError("y is given without X: give X too, or validation=(X, y)")
    if weights is not None:
        if X is None:
            raise ValueError("sample_weight is given without X: give X, or no weights")
        if validation is not None and len(validation) == 2:
            raise ValueError(
                "sample_weight is given without weights of the samples held out: give "
                "validation=(X, y, sample_weight)"
            )
        samples = Samples(X, y, sample_weights(weights, _num_samples(X)))
    if validation is not None:
        return samples, Samples(*validation)
    if X is None or not hold_out:
        return samples, None
    n = _num_samples(X)
    if n < 2:
        raise ValueError(f"X has {n} samples: at least 2 are needed, to learn from and to hold out")
    if y is not None and _num_samples(y) != n:
        raise ValueError(f"X and y disagree: X has {n} samples, y has {_num_samples(y)}")
    n_held = min(int(HOLDOUT_FRACTION * n), MAX_HOLDOUT_SAMPLES)
    is_held = _drawn(n, n_held, None if labels is None else labels(), random_state)
    return samples.part(np.flatnonzero(~is_held)), samples.part(np.flatnonzero(is_held))


def _drawn(
    n: int, n_held: int, y: Any, random_state: int | np.random.RandomState | None
) -> NDArray[np.bool_]:
    """The mask of `n_held` of n samples, drawn from each class of y by its share."""
    order = np.random.default_rng(0 if random_state is None else seed_of(random_state)).permutation(n)
    if y is not None and np.ndim(y) == 1:
        order = order[np.argsort(_class_numbers(y)[order], kind="stable")]
    steps = np.arange(n + 1) * n_held // n
    is_held = np.zeros(n, dtype=bool)
    is_held[order[np.diff(steps) > 0]] = True
    return is_held


def _class_numbers(y: Any) -> NDArray[np.intp]:
    """A number for each label, of any types."""
    numbers: dict[Any, int] = {}
    labels = np.asarray(y).tolist()
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.intp)


# --- baseline of a compression path ---


def subsample_baseline(
    estimator: Any,
    X_train: ArrayLike,
    y_train: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sizes: ArrayLike,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Score models that are trained on random subsets of the samples instead of being compressed.

    This is the score that is reached without compression for as many vectors; ``path.plot(X, y,
    baseline=...)`` draws it together with the path.

    Parameters
    ----------
    estimator : estimator
        A fitted model: clones of it are fitted.
    X_train : {array-like, sparse matrix} of shape (n_train, n_features)
        Training samples.
    y_train : array-like of shape (n_train,)
        Their labels or targets.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples to score on.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    sizes : array-like of shape (n_sizes,)
        Approximate numbers of vectors, ``np.geomspace(5, len(path), 8)`` for example: the number of samples
        is in the proportion that the full model has.
    sample_weight : array-like of shape (n_train,), default=None
        Weights of the training samples, if the model was fitted with some.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of the samples.

    Returns
    -------
    sizes : ndarray of int
        Numbers of vectors of the models; subsets with one class only are left out.
    scores : ndarray of float
        ``estimator.score`` of each.
    """
    rng = check_random_state(random_state)
    vectors = as_expansion(estimator).expansion_.n_vectors
    n = _num_samples(X_train)
    order, labels = rng.permutation(n), np.asarray(y_train)
    weights = sample_weights(sample_weight, n)
    found: list[tuple[int, float]] = []
    for size in np.asarray(sizes, dtype=np.float64):
        rows = np.sort(order[: int(np.clip(round(n * size / max(1, vectors)), 2, n))])
        if is_classifier(estimator) and len(np.unique(labels[rows])) < len(np.unique(labels)):
            continue
        fit_params = {} if weights is None else {"sample_weight": weights[rows]}
        machine = clone(estimator).fit(_safe_indexing(X_train, rows), labels[rows], **fit_params)
        found.append((as_expansion(machine).expansion_.n_vectors, float(machine.score(X, y))))
    found.sort()
    return np.array([size for size, _ in found], dtype=np.int64), np.array([score for _, score in found])


ONE_STANDARD_ERROR = float(ndtr(-1.0))
"""Probability that a normal variable is one standard deviation or more below its mean."""

SIZES_PER_GROUP = 8
"""Minimum number of sizes that are scored together."""

BOUNDARY_FRACTION = 0.05
"""Fraction of the samples, those of the smallest margins, that are near the decision boundary."""


MAX_STRATA = 32
"""Maximum number of different weights that are strata of their own."""

HOPELESS_ERROR = 0.1
"""A size that loses too much with this error of a test is the last that is looked at."""

ROUNDING = 1e-12
"""Keeps a loss of exactly what is allowed from failing by rounding."""


class HoldoutEvaluator:
    """Compare small models with the full one on samples held out.

    Parameters
    ----------
    model : ExpansionModel or KernelExpansion
        The full model.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), or None
        Their labels or targets; None takes the full model's answers.
    scoring : str, default=None
        The measure, see `CompressionPath.select`.
    n_jobs : int, default=None
        Threads.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights in the loss; None is 1 for each.
    outputs : ndarray of float64 of shape (n_samples, n_outputs), default=None
        Outputs of the full model; None takes those of its expansion.
    answers : ndarray of int of shape (n_samples,), default=None
        What the full model answers, as its ``decode`` returns it; None decodes the outputs.
    """

    model: Any
    rows: Any
    n_jobs: int | None
    n: int
    targets: NDArray[Any]
    measure: str
    counts: bool
    weights: NDArray[np.float64] | None
    full: NDArray[Any]

    def __init__(
        self,
        model: Any,
        X: ArrayLike,
        y: Any,
        scoring: str | None = None,
        n_jobs: int | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        outputs: NDArray[np.float64] | None = None,
        answers: NDArray[np.intp] | None = None,
    ) -> None:
        self.model, self.rows, self.n_jobs = model, rows_for(model, X), n_jobs
        self.n = int(self.rows.shape[0])
        if self.n == 0:
            raise ValueError("X has 0 samples: at least one is needed to measure a loss")
        if outputs is None:
            outputs = model.expansion_._evaluate(self.rows, n_jobs)
        if scoring is None and y is not None and sample_weight is None:
            scoring = default_scoring(model)
        y_true: Any = y
        if y is None and answers is None:
            y_true = predictions_of(model, outputs)
        elif y is None:
            y_true = model.classes_[answers] if isinstance(model, ExpansionClassifier) else answers
        score = Score(model, self.rows, y_true, 1, scoring, sample_weight)
        self.targets, self.measure = score.targets, "agreement" if y is None else score.scoring
        self.counts, self.weights = predicts_classes(model), score.weights
        if self.counts:
            given = self._predicted(outputs[None])[0] if answers is None else answers
            self.full = np.asarray(given == self.targets, dtype=np.float64)
            self._varies = np.ptp(given) > 0
            self._cost = np.ones(self.n)
            margins = self._margins(outputs)
            if y is not None:
                self._cost = cost_of_change(margins, self.full, self.weights)
            near = np.argsort(margins, kind="stable")[: max(1, int(BOUNDARY_FRACTION * self.n))]
            self._boundary_cost = float(np.sqrt(np.mean(self._weighted(self._cost)[near] ** 2)))
        else:
            self._squares = score.weighted
            shares = score.spread()
            if score.scoring != "r2":
                shares = self._squares(np.ones(shares.shape), slice(None))
            self._constant = ~shares.any(axis=0)
            self._shares = np.where(self._constant, 1.0, shares)
            self.full = self._right_or_wrong(self.sample_scores(outputs[None], slice(None)))[0]

    def _margins(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distances of the full model's outputs from a change of its answer."""
        if isinstance(self.model, ExpansionClassifier):
            return self.model.margins_of(outputs, self.model.decode(outputs))
        return np.abs(outputs[:, 0])

    def _weighted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values if self.weights is None else values * self.weights

    def sample_scores(self, outputs: NDArray[np.float64], chunk: slice) -> NDArray[np.float64]:
        """Scores of outputs (models, samples of the chunk, q) on each sample.

        1 or 0 (models, samples), or minus the squared error of each output (models, samples, q).
        """
        if not self.counts:
            return -self._squares((outputs - self.targets[chunk]) ** 2, chunk)
        return np.asarray(self._predicted(outputs) == self.targets[chunk], dtype=np.float64)

    def _right_or_wrong(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores (models, n, q) in which a constant target, whose R^2 is 1 or 0, counts as right or wrong."""
        wrong = scores[..., self._constant].any(axis=1, keepdims=True)
        scores[..., self._constant] = np.where(wrong, -1.0, 0.0)
        return scores

    def _predicted(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        """Predicted classes (models, n) of outputs (models, n, q)."""
        models, n, q = outputs.shape
        predicted: NDArray[np.intp] = self.model.decode(outputs.reshape(models * n, q)).reshape(models, n)
        return predicted

    def scores_of_sizes(
        self,
        outputs: Callable[[Any, Sequence[int]], NDArray[np.float64]],
        sizes: Sequence[int],
        width: int,
        *,
        allow_constant: bool = False,
    ) -> NDArray[np.float64]:
        """Sample scores of increasing sizes, whose outputs a function computes for some samples.

        They have the shape (sizes, n), or (sizes, n, q) for numbers, and are minus infinity for a model that
        predicts one class for all samples although the full model does not, unless `allow_constant`.
        """
        scores = np.empty((len(sizes), *self.full.shape))
        lowest, highest = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
        for chunk in scoring_chunks(self.n, len(sizes) * width + sizes[-1]):
            values = outputs(self.rows[chunk], sizes)
            if not self.counts:
                scores[:, chunk] = self.sample_scores(values, chunk)
                continue
            predicted = self._predicted(values)
            scores[:, chunk] = predicted == self.targets[chunk]
            lowest = np.minimum(lowest, predicted.min(axis=1))
            highest = np.maximum(highest, predicted.max(axis=1))
        if not self.counts:
            return self._right_or_wrong(scores)
        if self._varies and not allow_constant:
            scores[lowest == highest] = -np.inf
        return scores

    def levels(
        self,
        outputs: Callable[[Any, Sequence[int]], NDArray[np.float64]],
        sizes: Sequence[int],
        n_together: int = 0,
    ) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Decreasing sizes with their sample scores, evaluated in groups; see `scores_of_sizes`."""
        step, width = max(n_together, SIZES_PER_GROUP), self.model.expansion_.n_outputs
        for start in range(0, len(sizes), step):
            group = sizes[start : start + step][::-1]
            scores = self.scores_of_sizes(outputs, group, width)
            yield from zip(group[::-1], scores[::-1], strict=True)

    def scores_of(self, model: Any, *, allow_constant: bool = False) -> NDArray[np.float64]:
        """Sample scores of a small model."""
        expansion: KernelExpansion = model.expansion_
        # The rows have the preparation of the full model; a student has its own, and its teacher none.
        step = getattr(model, "preparation", None)
        prepares = step is not None and step is not getattr(self.model, "preparation", None)

        def outputs(rows: Any, _: Any) -> NDArray[np.float64]:
            rows = step.rows(rows) if step is not None and prepares else rows
            return expansion._evaluate(rows, self.n_jobs)[None]

        return np.asarray(self.scores_of_sizes(outputs, [1], 1, allow_constant=allow_constant)[0])

    def loss(self, scores: NDArray[np.float64]) -> float:
        """The score of the full model minus that of a small one."""
        lost = self.full - scores
        if not self.counts:
            return float((lost.sum(axis=0) / self._shares.sum(axis=0)).mean())
        return float((self._weighted(lost) if np.isfinite(lost).all() else lost).sum()) / self.n

    def safe_loss(self, scores: NDArray[np.float64]) -> float:
        """The loss by which sizes are chosen, see the module."""
        lost = self.full - scores
        if not np.isfinite(lost).all():
            return float("inf")
        if not self.counts:
            return ratio_bound(lost, self._shares, ONE_STANDARD_ERROR)
        costs = self._weighted(np.abs(lost) * self._cost)
        error = float(np.sqrt((costs**2).sum() + self._boundary_cost**2))
        return max((float(costs.sum()) + error) / self.n, self.loss(scores))

    def bound(self, scores: NDArray[np.float64], error: float) -> float:
        """Upper bound of the loss on other samples, wrong with this probability."""
        return self._upper_bound(self.full - scores, error)

    def lower_bound(self, scores: NDArray[np.float64], error: float) -> float:
        """Lower bound of the loss on other samples, wrong with this probability."""
        return -self._upper_bound(scores - self.full, error)

    def _upper_bound(self, lost: NDArray[np.float64], error: float) -> float:
        if not self.counts:
            return ratio_bound(lost, self._shares, error)
        if self.weights is None or not np.isfinite(lost).all():
            return paired_bound(int((lost > 0).sum()), int((lost < 0).sum()), self.n, error)
        return weighted_bound(lost, self.weights, error)

    def loss_bound(
        self, scores: NDArray[np.float64], confidence: float, max_loss: float | None = None, n_tests: int = 1
    ) -> LossBound:
        """The bound of a model that was chosen among `n_tests`, by Bonferroni's correction."""
        upper = self.bound(scores, (1.0 - confidence) / n_tests)
        return LossBound(self.loss(scores), upper, confidence, self.n, self.measure, max_loss)


def cost_of_change(
    margins: NDArray[np.float64], right: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Expected loss (n,), from 0 to 1, where the full model's answer changes.

    2 p - 1, with p = 1 / (1 + exp(-a - b margin)) and a, b >= 0, fitted to whether the model is right (1 or
    0 on each sample) by weighted maximum likelihood with Platt's targets.
    """
    scale = float(np.median(margins))
    relative = margins / (scale if scale > 0.0 else 1.0)
    w = np.ones(right.size) if weights is None else weights
    n_right, n_wrong = float((w * right).sum()), float((w * (1.0 - right)).sum())
    targets = np.where(right > 0.0, (n_right + 1.0) / (n_right + 2.0), 1.0 / (n_wrong + 2.0))

    def objective(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        z = parameters[0] + parameters[1] * relative
        slope = w * (expit(z) - targets)
        value = float((w * (np.logaddexp(0.0, z) - targets * z)).sum())
        return value, np.array([slope.sum(), (slope * relative).sum()])

    found = minimize(objective, [0.0, 1.0], jac=True, bounds=[(0.0, None)] * 2, method="L-BFGS-B").x
    return np.asarray(2.0 * expit(found[0] + found[1] * relative) - 1.0)


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
    """Upper bound of sum(lost) / sum(shares), the mean over their columns, on other rows of the same kind."""
    ratios = lost.sum(axis=0) / shares.sum(axis=0)
    apart = ((lost - ratios * shares) / shares.mean(axis=0)).mean(axis=1)
    apart = np.append(apart, max(0.0, float(apart.max())))
    return float(ratios.mean() + apart.mean() - ndtri(error) * apart.std() / np.sqrt(apart.size))


def weighted_bound(lost: NDArray[np.float64], weights: NDArray[np.float64], error: float) -> float:
    """Upper bound of the weighted mean of losses -1, 0 and 1 on other rows of the same kind."""
    lost, weights = lost[weights > 0.0], weights[weights > 0.0]
    total = float(weights.sum())
    values, which = np.unique(weights, return_inverse=True)
    if values.size > MAX_STRATA:
        _, which = np.unique(np.floor(np.log2(weights)), return_inverse=True)
    square = 0.0
    for stratum in range(int(which.max()) + 1):
        in_stratum = which == stratum
        of, heaviest = lost[in_stratum], float(weights[in_stratum].max())
        rows = weights[in_stratum] / heaviest
        n, b, c = float(rows.sum()), float(rows[of > 0].sum()), float(rows[of < 0].sum())
        square += (n * heaviest / total * (paired_bound(b, c, n, error) - (b - c) / n)) ** 2
    upper = float(weights @ lost) / total + np.sqrt(square)
    return min(1.0, max(float(upper), ratio_bound((weights * lost)[:, None], weights[:, None], error)))


def sizes_to_search(sizes: Sequence[int]) -> list[int]:
    """Some of increasing sizes, decreasing: the largest, then each at least a tenth smaller."""
    found: list[int] = []
    for size in reversed(sizes):
        if not found or size <= 0.9 * found[-1] + 1e-9 or found[-1] <= 10:
            found.append(size)
    return found


def isotonic(losses: Sequence[float]) -> list[float]:
    """The nearest numbers that do not decrease (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for loss in losses:
        value, count = loss, 1
        while blocks and blocks[-1][0] >= value:
            before, n = blocks.pop()
            value, count = (before * n + value * count) / (n + count), n + count
        blocks.append((value, count))
    return [value for value, count in blocks for _ in range(count)]


class SizeSearch:
    """The smallest size whose loss, averaged with those out of order above it, is at most `max_loss`."""

    def __init__(self, max_loss: float) -> None:
        self.max_loss = max_loss
        self.smallest: int | None = None
        self._sizes: list[int] = []
        self._losses: list[float] = []

    def add(self, size: int, loss: float) -> None:
        """Take the loss of a size; a size that is good enough stays so."""
        at = next((at for at, seen in enumerate(self._sizes) if seen < size), len(self._sizes))
        self._sizes.insert(at, size)
        self._losses.insert(at, loss)
        good = isotonic(self._losses[: at + 1])[-1] <= self.max_loss + ROUNDING
        if good and (self.smallest is None or size < self.smallest):
            self.smallest = size

    def search(
        self, levels: Iterable[tuple[int, NDArray[np.float64]]], evaluator: HoldoutEvaluator
    ) -> dict[int, NDArray[np.float64]]:
        """Search decreasing sizes until one is too small beyond doubt; the sample scores that were seen."""
        seen = {}
        for size, scores in levels:
            seen[size] = scores
            self.add(size, evaluator.safe_loss(scores))
            if evaluator.lower_bound(scores, HOPELESS_ERROR) > self.max_loss:
                break
        return seen

    @property
    def next_between(self) -> int | None:
        """The geometric mean of the smallest size and the next below it, None where there is none."""
        if self.smallest is None:
            return None
        below = max((size for size in self._sizes if size < self.smallest), default=0)
        if below == 0 or self.smallest - below < 2:
            return None
        return min(self.smallest - 1, int((self.smallest * below) ** 0.5 + 0.5))
