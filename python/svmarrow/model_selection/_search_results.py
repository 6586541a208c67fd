"""Results of a search: the chosen point, and `cv_results_` as in `GridSearchCV`.

A search keeps scores and seconds of its grid, (gammas, Cs, folds); they are NaN where no fit was run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from svmarrow._support.parameters import refuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["choose", "cv_results", "mean_scores"]


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
