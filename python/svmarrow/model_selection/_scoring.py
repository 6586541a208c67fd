"""Scores of the fits of a search, computed as the outputs for the held-out samples arrive, and racing.

In a race, points of the grid that will not win are not fitted on the remaining folds.

After each fold every point is compared with the best point so far: by the losses of all rows held out so far
if the score is a mean over rows (errors, squares), else by the scores of the folds, from three folds on. The
test predicts the comparison after all n held-out rows, of which m have been scored: the final mean difference
of the losses is

    D +- s sqrt((1 - m/n) / m)

for the mean difference D and the standard deviation s so far (sampling without replacement: the remaining
rows cannot change the known losses). A point is dropped if it can no longer beat the best by more than a
standard error of the best point's own score, a difference that cross-validation cannot resolve (the rule of
one standard error of Breiman and others 1984; an indifference zone, Bechhofer 1954). The threshold is a
quantile of the largest of all these statistics, which are correlated: neighbors on the grid err on the same
rows. It is drawn from the multivariate t distribution with their correlations (Dunnett 1955), at the level
`significance` / (number of comparisons). So the probability that the full search would find a point that is
better by more than a standard error is at most `significance`.

Before the first fold all points are fitted to a subset of the rows on every fold. This costs at most a tenth
and identifies the worst points as reliably. Points that are worse there by more than a standard error are
dropped at the same level; the guarantee then refers to models of that size.

Related: Maron and Moore 1994 (Hoeffding races); Birattari and others 2002 (F-race, by Friedman's test over
folds); Krueger, Panknin and Braun 2015 (sequential tests on growing subsets). Rejected: tests of the expected
score on new rows, which after all folds still keep 58 of 100 points on data sets of some hundred rows.
"""

from __future__ import annotations

import threading
import time
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy import stats
from scipy.stats import rankdata

from svmarrow._support.bases import BaseEstimator
from svmarrow._support.parameters import Decoding, refuse
from svmarrow._support.rows import one_blas_thread
from svmarrow._support.training import pairs
from svmarrow.models.outputs import ClassifierOutputMixin, RegressorOutputMixin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "BestScore",
    "FitPoints",
    "Fold",
    "GridScorer",
    "GridScores",
    "HeldOutClassifier",
    "HeldOutEstimator",
    "HeldOutRegressor",
    "choose",
    "cv_results",
    "first_stage",
    "mean_scores",
    "outputs_of_present_classes",
    "race",
    "survivors",
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


# --- racing ---

#: The first stage trains on one row in this many.
SUBSAMPLE_STEP = 4
#: Minimum number of rows for a first stage.
MIN_FIRST_STAGE_ROWS = 2000

#: Minimum number of fold scores that are compared.
MIN_FOLDS = 3
#: Number of draws of the largest statistic.
_N_DRAWS = 1000
#: Added to the diagonal of the correlations, which are singular if two points err alike.
_RIDGE = 1e-6


class FitPoints(Protocol):
    """Fits the given points on some folds in a share of the remaining time; returns why it ended early."""

    def __call__(
        self, scorer: GridScorer, points: NDArray[np.bool_], folds: Sequence[int], share: float = 1.0
    ) -> str | None: ...


def survivors(
    racing: NDArray[np.bool_],
    values: NDArray[np.floating],
    level: float,
    total: int | None,
) -> NDArray[np.bool_]:
    """Returns the mask (gammas, Cs) of the racing points that stay in the race.

    ``values`` (gammas, Cs, n_seen) are scores of samples or folds, larger being better, and ``total`` is
    their final number: a point stays that may still become better by a standard error. With ``total=None`` a
    point stays that may be worse by at most a standard error.
    """
    seen = values[racing].astype(np.float64)
    count = seen.shape[1]
    means = seen.mean(axis=1)
    # Points without a score are neither compared nor dropped.
    scored = ~np.isnan(means)
    if count < 2 or scored.sum() < 2:
        return racing
    seen, means = seen[scored], means[scored]
    best = int(np.argmax(means))
    behind = seen[best] - seen
    gap = behind.mean(axis=1)
    # The remaining rows may contain differences although no row so far does: one is assumed to have been
    # seen.
    differences = np.abs(behind[behind != 0.0])
    if not differences.size:
        return racing
    min_deviation = float(np.median(differences)) / np.sqrt(count)
    deviation = np.maximum(behind.std(axis=1, ddof=1), min_deviation)
    error = max(float(seen[best].std(ddof=1)), min_deviation)
    if total is None:
        remaining, margin = 1.0, -error / np.sqrt(count)
    else:
        remaining, margin = 1.0 - count / total, error / np.sqrt(total)
    statistic = (gap + margin) / (deviation * np.sqrt(remaining / count))
    others = np.arange(means.size) != best
    dropped = np.zeros(means.size, dtype=bool)
    dropped[others] = statistic[others] > _threshold(behind[others] - gap[others, None], level)
    surviving = racing.copy()
    points = np.nonzero(racing)
    surviving[points[0][scored], points[1][scored]] = ~dropped
    return surviving


def _threshold(centred: NDArray[np.float64], level: float) -> float:
    """Returns the quantile of the largest statistic of the centered differences (n_points, n_seen)."""
    points, seen = centred.shape
    norms = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    unit = centred[norms > 0.0] / norms[norms > 0.0, None]
    if len(unit) < 2:
        return float(stats.t.isf(level / points, seen - 1))
    random = np.random.default_rng(0)
    with one_blas_thread():
        factor = np.linalg.cholesky(unit @ unit.T + _RIDGE * np.eye(len(unit)))
        draws = random.standard_normal((_N_DRAWS, len(unit))) @ factor.T
    scale = np.sqrt(random.chisquare(seen - 1, _N_DRAWS) / (seen - 1))
    return float(np.quantile(draws.max(axis=1) / scale, 1.0 - level))


def first_stage(target: NDArray[Any], folds: list[Fold]) -> list[Fold] | None:
    """Returns the folds with a subset of their training rows; None if the full race is as fast."""
    if target.size < MIN_FIRST_STAGE_ROWS:
        return None
    chosen = _subsample(target)
    stage = []
    for fold in folds:
        mask = chosen[fold.train]
        if not mask.any():
            return None
        stage.append(Fold(fold.train[mask], fold.weights[mask], fold.test))
    return stage


def _subsample(target: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns the mask of a sample of the rows, stratified by class or by the size of the target."""
    order = np.argsort(target, kind="stable")
    chosen = np.zeros(target.size, dtype=bool)
    is_regression = target.dtype.kind == "f"
    classes = [order] if is_regression else np.split(order, np.flatnonzero(np.diff(target[order])) + 1)
    for rows in classes:
        chosen[rows[min(SUBSAMPLE_STEP // 2, rows.size - 1) :: SUBSAMPLE_STEP]] = True
    return chosen


def race(
    fit_points: FitPoints, first: GridScorer | None, scorer: GridScorer, significance: float
) -> str | None:
    """Fits the points fold after fold while they stay in the race; returns why it ended early, or None.

    ``first`` scores the first stage, fits to a subset of the samples.
    """
    results, folds = scorer.results, range(len(scorer.folds))
    racing = np.ones(results.scores.shape[:2], dtype=bool)
    level = significance / max(1, len(folds) - 1 + (first is not None))
    if first is not None:
        # If it takes more than half of the time, the race continues without it.
        stop = fit_points(first, racing, folds, 0.5)
        if stop is None:
            racing = _remaining(racing, first.results, len(folds), level, None)
        elif stop != "max_time":
            return stop
    total = sum(fold.test.size for fold in scorer.folds) if results.losses is not None else len(folds)
    for fold in folds:
        if racing.sum() == 1:
            # The scores of the last point are still computed on all folds.
            return fit_points(scorer, racing, folds[fold:])
        stop = fit_points(scorer, racing, [fold])
        if stop is not None or fold + 1 == len(folds):
            return stop
        racing = _remaining(racing, results, fold + 1, level, total)
    return None


def _remaining(
    racing: NDArray[np.bool_], results: GridScores, n_folds: int, level: float, total: int | None
) -> NDArray[np.bool_]:
    """Returns the points that stay in the race after the first ``n_folds`` folds."""
    if results.losses is not None:
        return survivors(racing, -np.concatenate(results.losses[:n_folds], axis=2), level, total)
    return survivors(racing, results.scores[:, :, :n_folds], level, total) if n_folds >= MIN_FOLDS else racing
