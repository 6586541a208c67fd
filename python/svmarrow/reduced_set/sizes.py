"""Base class of the paths of compressed models: scores of every size, and the choice of a size.

Outputs (sizes, samples, q) are computed for a chunk of samples at a time, so that memory is bounded.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.parameters import boolean, check, real
from svmarrow._support.path import SizePath, scoring_chunks
from svmarrow.reduced_set.holdout import HoldoutEvaluator, SizeSearch, sizes_to_search
from svmarrow.reduced_set.score import (
    CONFIDENCE,
    GOAL_RULES,
    MAX_LOSS,
    Score,
    predictions_of,
    predicts_classes,
    refuse_large_loss,
    refuse_scoring,
    refuse_several_goals,
    rows_for,
    warn_if_constant,
    with_bound,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import ExpansionModel

__all__ = ["ReducedPath"]

MAX_SAMPLE_SCORES = 1 << 24
"""Maximum number of sample scores that a choice among all sizes holds at once."""

MAX_TIMED_SAMPLES = 2000
"""Maximum number of samples that are timed together."""

MIN_SECONDS = 0.004
"""Minimum duration of one measurement."""


class ReducedPath(SizePath):
    """Small models of several sizes beside the one that was compressed."""

    model: ExpansionModel | KernelExpansion
    n_jobs: int | None
    orthogonal: bool = False

    if TYPE_CHECKING:

        def __getitem__(self, size: int) -> ExpansionModel | KernelExpansion: ...

    @abstractmethod
    def _outputs(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Outputs (sizes, n, q) of increasing sizes."""

    @property
    def expansion(self) -> KernelExpansion:
        """The expansion that was compressed."""
        return self.model.expansion_

    def scores(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sizes: Sequence[int] | None = None,
        *,
        scoring: str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Score of the compressed models on samples with known answers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, q)
            Labels; 1 and -1 for an outlier detector; numbers for a regressor or a bare expansion.
        sizes : sequence of int, default=None
            Which sizes, in any order; None means all.
        scoring : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"}, default=None
            The measure: share of right labels, the mean of these shares over the classes, coefficient of
            determination, or minus the mean squared error, the last two averaged over the outputs. None is
            "accuracy" where there are labels, else "r2".
        sample_weight : array-like of shape (n_samples,), default=None
            What each sample counts in the score; None is 1 for each.

        Returns
        -------
        ndarray of shape (len(sizes),)
            The scores.

        Raises
        ------
        ValueError
            If X and y do not fit each other or the model, or the measure does not fit the model.
        IndexError
            If there is no such size.
        """
        asked = self.sizes if sizes is None else [self._checked_size(size) for size in sizes]
        increasing = sorted(set(asked))
        if not increasing:
            return np.empty(0)
        rows = rows_for(self.model, X)
        score = Score(self.model, rows, y, len(increasing), scoring, sample_weight)
        for chunk in scoring_chunks(
            rows.shape[0], len(increasing) * self.expansion.n_outputs + increasing[-1]
        ):
            score.add(chunk, self._outputs(rows[chunk], increasing))
        by_size = dict(zip(increasing, score.result(), strict=True))
        return np.array([by_size[size] for size in asked])

    def full_score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        scoring: str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score of the model that was compressed, in the measure of `scores`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, q)
            Labels or numbers, see `scores`.
        scoring : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"}, default=None
            See `scores`.
        sample_weight : array-like of shape (n_samples,), default=None
            See `scores`.

        Returns
        -------
        float
            The score.
        """
        rows = rows_for(self.model, X)
        score = Score(self.model, rows, y, 1, scoring, sample_weight)
        outputs = self.expansion._evaluate(rows, self.n_jobs)
        score.add(slice(0, rows.shape[0]), outputs[None])
        return float(score.result()[0])

    def agreement(self, X: ArrayLike, sizes: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Agreement of the compressed models with the full one; no labels are needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        sizes : sequence of int, default=None
            Which sizes, in any order; None means all.

        Returns
        -------
        ndarray of shape (len(sizes),)
            Share of samples with the full model's label; where there are no labels, R^2 against its outputs,
            averaged over them.
        """
        outputs = self.expansion._evaluate(rows_for(self.model, X), self.n_jobs)
        return self.scores(X, predictions_of(self.model, outputs), sizes)

    def nbytes(self, size: int) -> int:
        """Bytes of the arrays of a size.

        Parameters
        ----------
        size : int
            One of `sizes`.

        Returns
        -------
        int
            As ``path[size].expansion_.nbytes``.
        """
        return self[size].expansion_.nbytes

    def microseconds(self, X: ArrayLike, size: int) -> float:
        """Measure the time of a prediction for one sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples that are predicted together, at most 2000 of them; one sample gives the latency.
        size : int
            One of `sizes`.

        Returns
        -------
        float
            Median of three measurements on this machine, with ``n_jobs`` threads.
        """
        rows = rows_for(self.model, X)
        if rows.shape[0] == 0:
            raise ValueError("X has no rows: a measurement needs at least one")
        expansion = self[size].expansion_
        return microseconds_per_row(lambda some: expansion._evaluate(some, self.n_jobs), rows)

    def select(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        max_loss: float | None = None,
        *,
        min_agreement: float | None = None,
        max_bytes: int | None = None,
        scoring: str | None = None,
        sample_weight: ArrayLike | None = None,
        confidence: float = CONFIDENCE,
        strict: bool = False,
    ) -> ExpansionModel | KernelExpansion:
        """Choose a size by one goal.

        With `max_loss` or `min_agreement` the smallest size that is good enough: from the largest on, sizes a
        tenth smaller each are compared with the full model on the samples, until one loses too much beyond
        doubt. What counts is the loss with one standard error on the safe side, see
        `svmarrow.compress`; a size that loses more than smaller ones is averaged with them (isotonic
        regression). With `max_bytes` the largest size within it, or if `y` is given the one that scores best.
        Without a goal ``max_loss=0.003``. A size that predicts one class for all samples although the full
        model does not is never good enough.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Samples that neither training nor compression has seen. Not needed for `max_bytes`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Their labels or targets, see `scores`. Needed for `max_loss`.
        max_loss : float, default=None
            Largest difference of the scores, not negative; for accuracies 0.003 is 0.3 percentage points.
        min_agreement : float, default=None
            Smallest fraction of samples with the full model's label, between 0 and 1; for regression,
            smallest R^2 against the full model's outputs, averaged over them.
        max_bytes : int, default=None
            Largest number of bytes of the model's arrays.
        scoring : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"}, default=None
            Measure of the loss, see `scores`. None is "accuracy" for a model that is known to be trained
            without weights or where `sample_weight` is given, "balanced_accuracy" for other models with
            labels, else "r2".
        sample_weight : array-like of shape (n_samples,), default=None
            Weights in the loss and in the agreement; None is 1 for each.
        confidence : float, default=0.95
            Confidence of the bound of the loss.
        strict : bool, default=False
            Whether the bound itself must keep to the goal. The sizes are then tested in sequence from the
            largest on (Maurer, Hothorn and Lehmacher, 1995). For max_loss=0.003 that takes at least 900
            samples.

        Returns
        -------
        ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
            The model, as ``path[size]`` gives it; all but the last with a ``loss_bound_``, see
            `svmarrow.models.LossBound`.

        Raises
        ------
        ValueError
            If there are several goals, no size on the path is good enough or small enough, or the input does
            not fit.

        Warns
        -----
        svmarrow.exceptions.SizeWarning
            If every size within `max_bytes` predicts one class for all samples although the full model does
            not.
        """
        goals = {"max_loss": max_loss, "min_agreement": min_agreement, "max_bytes": max_bytes}
        check(
            {**goals, "confidence": confidence, "strict": strict},
            GOAL_RULES | {"confidence": real(least=0.5, most=0.9999), "strict": boolean},
        )
        refuse_several_goals(goals)
        refuse_large_loss(max_loss, scoring)
        if max_bytes is not None:
            return self._best_within(max_bytes, X, y, scoring, sample_weight, confidence)
        name = "max_loss" if min_agreement is None else "min_agreement"
        if X is None or (y is None and name == "max_loss"):
            raise ValueError(f"{name} needs {'X and y' if name == 'max_loss' else 'X'}")
        if min_agreement is not None:
            refuse_scoring(scoring)
            y, allowed = None, 1.0 - min_agreement
        else:
            allowed = MAX_LOSS if max_loss is None else max_loss
        evaluator = HoldoutEvaluator(self.model, X, y, scoring, self.n_jobs, sample_weight)
        sizes = sizes_to_search(self.sizes)
        if strict:
            size, scores = None, {}
            for size_, one in evaluator.levels(self._outputs, sizes):
                if evaluator.bound(one, 1.0 - confidence) > allowed + 1e-12:
                    break
                size, scores = size_, {size_: one}
        else:
            search = SizeSearch(allowed)
            scores = search.search(evaluator.levels(self._outputs, sizes), evaluator)
            size = search.smallest
        if size is None:
            asked = f"{name}={MAX_LOSS if goals[name] is None else goals[name]:g}"
            raise self._not_reached(asked, evaluator)
        tests = 1 if strict else len(sizes)
        return with_bound(self[size], evaluator.loss_bound(scores[size], confidence, allowed, tests))

    def _best_within(
        self, max_bytes: int, X: Any, y: Any, scoring: str | None, sample_weight: Any, confidence: float
    ) -> ExpansionModel | KernelExpansion:
        limit = self._size_within(max_bytes)
        if X is None or y is None:
            return self[limit]
        sizes = [size for size in self.sizes if size <= limit]
        evaluator = HoldoutEvaluator(self.model, X, y, scoring, self.n_jobs, sample_weight)
        levels = evaluator.levels(self._outputs, sizes[::-1], MAX_SAMPLE_SCORES // evaluator.full.size)
        best = self[min((evaluator.loss(one), size) for size, one in levels)[1]]
        warn_if_constant(
            self.model, best, evaluator.rows, f"max_bytes={max_bytes}", self.n_jobs, stacklevel=4
        )
        scores = evaluator.scores_of(best, allow_constant=True)
        return with_bound(best, evaluator.loss_bound(scores, confidence, n_tests=len(sizes)))

    def _size_within(self, max_bytes: int) -> int:
        """The largest size whose arrays have at most `max_bytes` bytes."""
        sizes = [size for size in self.sizes if self.nbytes(size) <= max_bytes]
        if not sizes:
            least = self.sizes[0]
            raise ValueError(f"max_bytes={max_bytes} is less than {least} vectors need: {self.nbytes(least)}")
        return sizes[-1]

    def _not_reached(self, goal: str, evaluator: HoldoutEvaluator) -> ValueError:
        largest = self.sizes[-1]
        ((_, scores),) = evaluator.levels(self._outputs, [largest])
        tried = f"{goal} is not reached: {largest} vectors, the largest size,"
        if np.isinf(scores).any():
            why = f"give all {evaluator.n} samples one class, which the full model does not"
        else:
            why = (
                f"lose {evaluator.loss(scores):.4f} of {evaluator.measure} on {evaluator.n} samples, "
                f"{evaluator.safe_loss(scores):.4f} with one standard error on the safe side"
            )
        remedy = "compress with a larger n_vectors, give more samples or ask for less"
        return ValueError(f"{tried} {why}; {remedy}")

    def _plot_arguments(self, X: ArrayLike, y: ArrayLike) -> dict[str, Any]:
        return {
            "full_size": self.expansion.n_vectors,
            "full_score": self.full_score(X, y),
            "score_name": "accuracy" if predicts_classes(self.model) else "R^2",
        }


def microseconds_per_row(predict: Callable[[Any], Any], rows: Any, repeat: int = 3) -> float:
    """Median time of a prediction of all these rows at once, divided by their number."""
    rows = rows[:MAX_TIMED_SAMPLES]
    predict(rows)
    start = time.perf_counter()
    predict(rows)
    once = time.perf_counter() - start
    loops = max(1, int(MIN_SECONDS / max(once, 1e-7)))

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(loops):
            predict(rows)
        return (time.perf_counter() - start) / loops

    return 1e6 * median(measure() for _ in range(repeat)) / float(rows.shape[0])
