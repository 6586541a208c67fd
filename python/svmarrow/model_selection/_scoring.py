"""Scores of the fits of a search, computed as the outputs for the held-out samples arrive."""

from __future__ import annotations

import threading
import time
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from svmarrow._support.bases import BaseEstimator
from svmarrow._support.parameters import Decoding, refuse
from svmarrow._support.training import pairs
from svmarrow.models.outputs import ClassifierOutputMixin, RegressorOutputMixin

if TYPE_CHECKING:
    from numpy.typing import NDArray


__all__ = [
    "BestScore",
    "Fold",
    "GridScorer",
    "GridScores",
    "HeldOutClassifier",
    "HeldOutEstimator",
    "HeldOutRegressor",
    "choose",
    "cv_results",
    "mean_scores",
    "outputs_of_present_classes",
    "takes_weights",
]


# --- estimators that return the known outputs of a fold's fit for its held-out samples, for scorers ---


class HeldOutEstimator(BaseEstimator):
    """Stands for the estimator fitted to the training samples of a fold, whose outputs are known."""

    _held_outputs: NDArray[np.float64]

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        if X.shape[0] != self._held_outputs.shape[0]:
            raise ValueError(
                f"the scorer passed {X.shape[0]} samples: it can only predict the "
                f"{self._held_outputs.shape[0]} held-out samples of the fold"
            )
        return self._held_outputs

    def fit(self, X: Any, y: Any) -> Any:  # noqa: ARG002 - scorers require the method
        """Does nothing, since the outputs are known."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class HeldOutClassifier(ClassifierOutputMixin, HeldOutEstimator):
    """A classifier with known outputs."""

    def __init__(self, outputs: Any, classes: Any, coding: Any, shape: Any, break_ties: bool) -> None:
        self._held_outputs, self.classes_, self._coding = outputs, classes, coding
        self.decision_function_shape, self.break_ties = shape, break_ties


class HeldOutRegressor(RegressorOutputMixin, HeldOutEstimator):
    """A regressor with known outputs."""

    def __init__(self, outputs: Any) -> None:
        self._held_outputs = outputs


def outputs_of_present_classes(
    outputs: NDArray[np.float64], decoding: Decoding, present: NDArray[np.intp], k: int
) -> tuple[NDArray[np.float64], Decoding]:
    """Returns outputs and decoding of the machines of the present classes, as a fit to these classes has
    them.
    """
    if present.size == k:
        return outputs, decoding
    if decoding == "ovr":
        chosen = outputs[:, present]
        return (chosen[:, 1:], "binary") if present.size == 2 else (chosen, decoding)
    columns = [column for column, pair in enumerate(pairs(k)) if set(pair) <= set(present.tolist())]
    chosen = np.ascontiguousarray(outputs[:, columns])
    # Outputs are positive for the first class of a pair, and for the second class of a binary problem.
    return (-chosen, "binary") if present.size == 2 else (chosen, decoding)


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


# --- results of a search: the chosen point, and `cv_results_` as in `GridSearchCV` ---
# A search keeps scores and seconds of its grid, (gammas, Cs, folds); they are NaN where no fit was run.


def choose(search: Any) -> None:
    """Sets `best_params_`, `best_score_` and `best_index_`."""
    means, _ = mean_scores(search)
    if np.isnan(means).all():
        if search.stop_ == "max_time":
            raise refuse("max_time", search.max_time, "long enough for one point of the grid on one fold")
        if search.stop_ != "finished":
            raise KeyboardInterrupt
        raise ValueError("no point of the grid could be scored")
    search.best_index_ = int(np.argmin(_ranks(search)))
    c, g = divmod(search.best_index_, means.shape[0])
    search.best_score_ = float(means[g, c])
    search.best_params_ = {"C": float(search.Cs_[c])}
    if search.gammas_ is not None:
        search.best_params_["gamma"] = float(search.gammas_[g])


def mean_scores(search: Any) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Returns the mean score of each point (gammas, Cs) over its fitted folds, and their number."""
    fitted = ~np.isnan(search._fit_times)
    counts = fitted.sum(axis=2)
    sums = np.where(fitted, search._scores, 0.0).sum(axis=2)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), counts


def _ranks(search: Any) -> NDArray[np.int32]:
    """Returns the ranks in the order of `cv_results_`: by the number of folds, then by the mean score."""
    means, counts = mean_scores(search)
    means = np.where(np.isnan(means), -np.inf, means)
    keys = np.stack([-counts.T.ravel().astype(np.float64), -means.T.ravel()], axis=1)
    _, order = np.unique(keys, axis=0, return_inverse=True)
    ranks: NDArray[np.int32] = rankdata(order.reshape(-1), method="min").astype(np.int32)
    return ranks


def cv_results(search: Any) -> dict[str, Any]:
    """Returns scores and times of all points, with the keys and in the order of `GridSearchCV`."""
    fit_times, score_times, scores = (
        np.swapaxes(a, 0, 1).reshape(-1, a.shape[2])
        for a in (search._fit_times, search._score_times, search._scores)
    )
    fitted = ~np.isnan(fit_times)
    means, counts = mean_scores(search)
    results: dict[str, Any] = {}
    for name, times in (("fit", fit_times), ("score", score_times)):
        mean, std = _moments(times, fitted)
        results |= {f"mean_{name}_time": mean, f"std_{name}_time": std}
    C = np.repeat(search.Cs_, means.shape[0])
    results["param_C"] = np.ma.MaskedArray(C, mask=False)
    params: list[dict[str, float]] = [{"C": float(value)} for value in C]
    if search.gammas_ is not None:
        gamma = np.tile(search.gammas_, search.Cs_.size)
        results["param_gamma"] = np.ma.MaskedArray(gamma, mask=False)
        for point, value in zip(params, gamma, strict=True):
            point["gamma"] = float(value)
    results["params"] = params
    results |= {f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])}
    results["mean_test_score"] = means.T.ravel()
    results["std_test_score"] = _moments(scores, fitted)[1]
    results["rank_test_score"] = _ranks(search)
    results["n_test_scores"] = counts.T.ravel()
    return results


def _moments(values: NDArray[np.float64], fitted: NDArray[np.bool_]) -> tuple[NDArray[np.float64], ...]:
    """Returns mean and standard deviation of each row over the fitted folds; NaN where there are none."""
    count = fitted.sum(axis=1)
    safe = np.maximum(count, 1)
    mean = np.where(fitted, values, 0.0).sum(axis=1) / safe
    square = np.where(fitted, (values - mean[:, np.newaxis]) ** 2, 0.0).sum(axis=1) / safe
    missing = np.where(count > 0, 0.0, np.nan)
    return mean + missing, np.sqrt(square) + missing
