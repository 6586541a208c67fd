"""Scores of the fits of a search, as their outputs come."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Found", "Judge", "Part"]

#: Outputs that wait for their scores at most: 32 MB.
_WAITING = 1 << 22


class Part(NamedTuple):
    """A fold: rows of the fit with their weights, and rows that are held out."""

    train: NDArray[np.int64]
    weights: NDArray[np.float64]
    test: NDArray[np.int64]


class Found:
    """What is known of the grid, (gammas, costs, folds); NaN where nothing is."""

    def __init__(self, shape: tuple[int, int], parts: list[Part], keeps_losses: bool) -> None:
        self.scores, self.fit_times, self.score_times = (np.full((*shape, len(parts)), np.nan) for _ in "abc")
        #: Losses of the held-out rows of each fold where the score is a mean over rows.
        self.losses: list[NDArray[np.float32]] | None = None
        if keeps_losses:
            self.losses = [np.zeros((*shape, part.test.size), np.float32) for part in parts]
        #: Why fits ended before the tolerance was reached.
        self.unfinished: set[str] = set()

    def promising(self) -> list[int]:
        """The gammas, those with the best scores so far first, else from the middle outwards: where a search
        that ends early has looked is then where the best mostly is.
        """
        count = self.scores.shape[0]
        scores = np.where(np.isnan(self.scores), -np.inf, self.scores).max(axis=(1, 2))
        return sorted(range(count), key=lambda g: (-scores[g], abs(g - (count - 1) / 2)))


class _Fit(NamedTuple):
    gamma: int
    cost: int
    outputs: NDArray[np.float64]


class Judge:
    """Scores by a scorer each fit by itself, and by the score that there is without one many at a time."""

    def __init__(
        self, search: Any, rows: tuple[Any, Any, Any], parts: list[Part], judged: dict[str, Any], told: Any
    ) -> None:
        self._search, (self._X, self._y, self._target) = search, rows
        self.parts, self._told = parts, told
        self._scorer = None if search._is_plain(judged) else search._scorer()
        self._metadata = [{k: np.asarray(v)[part.test] for k, v in judged.items()} for part in parts]
        shape = (1 if search.gammas_ is None else search.gammas_.size, search.Cs_.size)
        self.found = Found(shape, parts, self._scorer is None)
        self._waiting: dict[int, list[_Fit]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def __call__(
        self, fold: int, gamma: int, cost: int, outputs: NDArray[np.float64], seconds: float, stop: str
    ) -> None:
        """A fit and what its machines say of the held-out rows; from any thread."""
        if stop != "converged":
            self.found.unfinished.add(stop)
        if self._scorer is not None:
            start = time.perf_counter()
            answers = self._search._answers(self._target, self.parts[fold], outputs)
            if answers is not None:
                held = self.parts[fold].test
                score = self._scorer(answers, self._X[held], self._y[held], **self._metadata[fold])
                self.found.scores[gamma, cost, fold] = float(score)
            self.found.score_times[gamma, cost, fold] = time.perf_counter() - start
            self.found.fit_times[gamma, cost, fold] = seconds
            self._told(self.found.scores[gamma, cost])
            return
        self.found.fit_times[gamma, cost, fold] = seconds
        with self._lock:
            self._waiting.setdefault(fold, []).append(_Fit(gamma, cost, outputs))
            self._size += outputs.size
            if self._size > _WAITING or self._told.is_shown:
                self._score_all()

    def finish(self) -> None:
        """Scores what waits."""
        with self._lock:
            self._score_all()

    def _score_all(self) -> None:
        waiting, self._waiting, self._size = self._waiting, {}, 0
        for fold, fits in waiting.items():
            start = time.perf_counter()
            places = [fit.gamma for fit in fits], [fit.cost for fit in fits]
            outputs = np.stack([fit.outputs for fit in fits])
            part = self.parts[fold]
            weights = self._metadata[fold].get("sample_weight")
            said = self._search._losses(self._target, part, self._y[part.test], outputs, weights)
            if said is not None:
                assert self.found.losses is not None
                self.found.losses[fold][places], self.found.scores[(*places, fold)] = said
            self.found.score_times[(*places, fold)] = (time.perf_counter() - start) / len(fits)
            for gamma, cost in zip(*places, strict=True):
                self._told(self.found.scores[gamma, cost])
