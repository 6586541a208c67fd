"""The loss of a small model against the full one on samples held out.

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
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr

from svmarrow._support.path import scoring_chunks
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.models.loss_bound import LossBound
from svmarrow.reduced_set.loss_bounds import paired_bound, ratio_bound, weighted_bound
from svmarrow.reduced_set.score import Score, default_scoring, predicts_classes, rows_for, unwrap_expansion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["HoldoutEvaluator"]

ONE_STANDARD_ERROR = float(ndtr(-1.0))
"""Probability that a normal variable is one standard deviation or more below its mean."""

BOUNDARY_FRACTION = 0.05
"""Fraction of the samples, those of the smallest margins, that are near the decision boundary."""


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
            raise ValueError("X has 0 samples: at least one is needed to measure a loss")
        outputs = unwrap_expansion(model)._evaluate(self.rows, n_jobs)
        if scoring is None and y is not None and sample_weight is None:
            scoring = default_scoring(model)
        score = Score(model, self.rows, self._answers(outputs) if y is None else y, 1, scoring, sample_weight)
        self.targets, self.measure = score.targets, "agreement" if y is None else score.scoring
        self.counts, self.weights = predicts_classes(model), score.weights
        self.full = self.sample_scores(outputs[None], slice(0, self.n))[0]
        self._shares = np.full(self.n, 1.0 / self.n)
        if self.counts:
            self._varies = np.ptp(self._predicted(outputs[None])) > 0
            self._cost = np.ones(self.n)
            margins = self._margins(outputs)
            if y is not None:
                self._cost = cost_of_change(margins, self.full, self.weights)
            near = np.argsort(margins, kind="stable")[: max(1, int(BOUNDARY_FRACTION * self.n))]
            self._boundary_cost = float(np.sqrt(np.mean(self._weighted(self._cost)[near] ** 2)))
        else:
            spread: NDArray[np.float64] = np.full(self.n, float(self.targets.shape[1]))
            if score.scoring == "r2":
                spread = score.spread()
            elif self.weights is not None:
                spread *= self.weights
            self._shares = spread if spread.any() else np.ones(self.n)

    def _answers(self, outputs: NDArray[np.float64]) -> Any:
        if isinstance(self.model, ExpansionClassifier):
            return self.model.classes_[self.model.decode(outputs)]
        return self.model.inside(outputs) if isinstance(self.model, ExpansionDetector) else outputs

    def _margins(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distances of the full model's outputs from a change of its answer."""
        if isinstance(self.model, ExpansionClassifier):
            return self.model.margins_of(outputs, self.model.decode(outputs))
        return np.abs(outputs[:, 0])

    def _weighted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values if self.weights is None else values * self.weights

    def sample_scores(self, outputs: NDArray[np.float64], chunk: slice) -> NDArray[np.float64]:
        """Scores of outputs (models, samples of the chunk, q) on each sample: 1 or 0, or minus squares."""
        if not self.counts:
            squares: NDArray[np.float64] = ((outputs - self.targets[chunk]) ** 2).sum(axis=2)
            return -squares if self.weights is None else -squares * self.weights[chunk]
        return np.asarray(self._predicted(outputs) == self.targets[chunk], dtype=np.float64)

    def _predicted(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        """Predicted classes (models, n) of outputs (models, n, q)."""
        models, n, q = outputs.shape
        decode = self.model.decode if isinstance(self.model, ExpansionClassifier) else self.model.inside
        predicted: NDArray[np.intp] = decode(outputs.reshape(models * n, q)).reshape(models, n)
        return predicted

    def scores_of_sizes(
        self,
        outputs: Callable[[Any, Sequence[int]], NDArray[np.float64]],
        sizes: Sequence[int],
        width: int,
        *,
        allow_constant: bool = False,
    ) -> NDArray[np.float64]:
        """Sample scores (sizes, n) of increasing sizes, whose outputs a function computes for some samples.

        They are minus infinity for a model that predicts one class for all samples although the full model
        does not, unless `allow_constant`.
        """
        scores = np.empty((len(sizes), self.n))
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
        if self.counts and self._varies and not allow_constant:
            scores[lowest == highest] = -np.inf
        return scores

    def scores_of(self, model: Any, *, allow_constant: bool = False) -> NDArray[np.float64]:
        """Sample scores (n,) of a small model."""
        expansion = unwrap_expansion(model)

        def outputs(rows: Any, _: Any) -> NDArray[np.float64]:
            return expansion._evaluate(rows, self.n_jobs)[None]

        return np.asarray(self.scores_of_sizes(outputs, [1], 1, allow_constant=allow_constant)[0])

    def loss(self, scores: NDArray[np.float64]) -> float:
        """The score of the full model minus that of a small one."""
        lost = self.full - scores
        if not self.counts:
            return float(lost.sum() / self._shares.sum())
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
        lost = self.full - scores
        return self._paired(lost, error) if self.counts else ratio_bound(lost, self._shares, error)

    def lower_bound(self, scores: NDArray[np.float64], error: float) -> float:
        """Lower bound of the loss on other samples, wrong with this probability."""
        lost = scores - self.full
        return -(self._paired(lost, error) if self.counts else ratio_bound(lost, self._shares, error))

    def _paired(self, lost: NDArray[np.float64], error: float) -> float:
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
