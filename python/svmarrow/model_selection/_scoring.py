"""Scores of the fits of a search, computed as the outputs for the held-out samples arrive."""

from __future__ import annotations

import threading
import time
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BestScore", "Fold", "GridScorer", "GridScores", "takes_weights"]

#: Maximum number of outputs that are kept before they are scored: 32 MB.
_MAX_PENDING_OUTPUTS = 1 << 22


class Fold(NamedTuple):
    """Training rows with their weights, and held-out rows."""

    train: NDArray[np.int64]
    weights: NDArray[np.float64]
    test: NDArray[np.int64]


class GridScores:
    """Scores and times of the grid, (gammas, Cs, folds); NaN where no fit was run."""

    def __init__(self, shape: tuple[int, int], folds: list[Fold], keeps_losses: bool) -> None:
        self.scores, self.fit_times, self.score_times = (np.full((*shape, len(folds)), np.nan) for _ in "abc")
        #: Losses of the held-out rows of each fold if the score is a mean over rows.
        self.losses: list[NDArray[np.float32]] | None = None
        if keeps_losses:
            self.losses = [np.zeros((*shape, fold.test.size), np.float32) for fold in folds]
        #: Stopping reasons of the fits that did not reach the tolerance.
        self.stop_reasons: set[str] = set()

    def gamma_order(self) -> list[int]:
        """Indices of the gammas by their best score so far, then from the middle outwards.

        A search that ends early has then tried the region where the best point usually lies.
        """
        count = self.scores.shape[0]
        scores = np.where(np.isnan(self.scores), -np.inf, self.scores).max(axis=(1, 2))
        return sorted(range(count), key=lambda g: (-scores[g], abs(g - (count - 1) / 2)))


class BestScore:
    """Shows the best mean score so far next to the progress."""

    def __init__(self, reporter: Any, is_shown: bool) -> None:
        self._reporter, self._best = reporter, -np.inf
        self.is_shown = is_shown

    def update(self, scores: NDArray[np.float64]) -> None:
        """Takes the scores of a point on all folds, one of them new."""
        if self.is_shown and not np.isnan(scores).any() and scores.mean() > self._best:
            self._best = float(scores.mean())
            self._reporter.note = f"best {self._best:.4f}"


class _Fit(NamedTuple):
    gamma: int
    cost: int
    outputs: NDArray[np.float64]


class GridScorer:
    """Scores fits: one at a time with a scorer, many at a time with the default score."""

    def __init__(
        self,
        search: Any,
        data: tuple[Any, Any, Any],
        folds: list[Fold],
        metadata: dict[str, Any],
        best: BestScore,
    ) -> None:
        self._search, (self._X, self._y, self._target) = search, data
        self.folds, self._best = folds, best
        self._scorer = None if search._is_default_score(metadata) else search._scorer()
        self._metadata = [{k: np.asarray(v)[fold.test] for k, v in metadata.items()} for fold in folds]
        shape = (1 if search.gammas_ is None else search.gammas_.size, search.Cs_.size)
        self.results = GridScores(shape, folds, self._scorer is None)
        self._pending: dict[int, list[_Fit]] = {}
        self._n_pending = 0
        self._lock = threading.Lock()

    def add(
        self, fold: int, gamma: int, cost: int, outputs: NDArray[np.float64], seconds: float, stop: str
    ) -> None:
        """Takes a fit's outputs for the held-out rows; may be called from any thread."""
        if stop != "converged":
            self.results.stop_reasons.add(stop)
        self.results.fit_times[gamma, cost, fold] = seconds
        if self._scorer is None:
            with self._lock:
                self._pending.setdefault(fold, []).append(_Fit(gamma, cost, outputs))
                self._n_pending += outputs.size
                if self._n_pending > _MAX_PENDING_OUTPUTS or self._best.is_shown:
                    self._score_pending()
            return
        start = time.perf_counter()
        estimator = self._search._held_out_estimator(self._target, self.folds[fold], outputs)
        if estimator is not None:
            held = self.folds[fold].test
            score = self._scorer(estimator, self._X[held], self._y[held], **self._metadata[fold])
            self.results.scores[gamma, cost, fold] = float(score)
        self.results.score_times[gamma, cost, fold] = time.perf_counter() - start
        self._best.update(self.results.scores[gamma, cost])

    def finish(self) -> None:
        """Scores the pending fits."""
        with self._lock:
            self._score_pending()

    def _score_pending(self) -> None:
        pending, self._pending, self._n_pending = self._pending, {}, 0
        for index, fits in pending.items():
            start = time.perf_counter()
            points = [fit.gamma for fit in fits], [fit.cost for fit in fits]
            outputs = np.stack([fit.outputs for fit in fits])
            fold = self.folds[index]
            weights = self._metadata[index].get("sample_weight")
            scored = self._search._losses(self._target, fold, self._y[fold.test], outputs, weights)
            if scored is not None:
                assert self.results.losses is not None
                self.results.losses[index][points], self.results.scores[(*points, index)] = scored
            self.results.score_times[(*points, index)] = (time.perf_counter() - start) / len(fits)
            for gamma, cost in zip(*points, strict=True):
                self._best.update(self.results.scores[gamma, cost])


def takes_weights(scorer: Any) -> bool:
    """Returns whether the metric of a scorer accepts sample weights."""
    return "sample_weight" in signature(getattr(scorer, "_score_func", scorer)).parameters
