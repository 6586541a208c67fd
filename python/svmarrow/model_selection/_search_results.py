"""Results of a search: the chosen point, `cv_results_` as in `GridSearchCV`, and a plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.atomic import consistent
from svmarrow._support.grid_scores import GridScoresDisplay
from svmarrow._support.parameters import refuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SearchResults"]


class SearchResults:
    """Scores of a grid, (gammas, Cs, folds); NaN where no fit was run."""

    max_time: float | None

    Cs_: NDArray[np.float64]
    gammas_: NDArray[np.float64] | None
    best_params_: dict[str, float]
    best_score_: float
    best_index_: int
    n_splits_: int
    _scores: NDArray[np.float64]
    _fit_times: NDArray[np.float64]
    _score_times: NDArray[np.float64]
    stop_: str

    def _choose(self) -> None:
        """Sets `best_params_`, `best_score_` and `best_index_`."""
        means, _ = self._means()
        if np.isnan(means).all():
            if self.stop_ == "max_time":
                raise refuse("max_time", self.max_time, "long enough for one point of the grid on one fold")
            if self.stop_ != "finished":
                raise KeyboardInterrupt
            raise ValueError("no point of the grid could be scored")
        self.best_index_ = int(np.argmin(self._ranks()))
        c, g = divmod(self.best_index_, means.shape[0])
        self.best_score_ = float(means[g, c])
        self.best_params_ = {"C": float(self.Cs_[c])}
        if self.gammas_ is not None:
            self.best_params_["gamma"] = float(self.gammas_[g])

    def _means(self) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Returns the mean score of each point (gammas, Cs) over its fitted folds, and their number."""
        fitted = ~np.isnan(self._fit_times)
        counts = fitted.sum(axis=2)
        sums = np.where(fitted, self._scores, 0.0).sum(axis=2)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), counts

    def _ranks(self) -> NDArray[np.int32]:
        """Returns the ranks in the order of `cv_results_`: by the number of folds, then by the mean score."""
        means, counts = self._means()
        means = np.where(np.isnan(means), -np.inf, means)
        keys = np.stack([-counts.T.ravel().astype(np.float64), -means.T.ravel()], axis=1)
        _, order = np.unique(keys, axis=0, return_inverse=True)
        ranks: NDArray[np.int32] = rankdata(order.reshape(-1), method="min").astype(np.int32)
        return ranks

    @property
    @consistent
    def cv_results_(self) -> dict[str, Any]:
        """Scores and times of all points, with the keys and in the order of scikit-learn's `GridSearchCV`.

        Fits that were not run are NaN; means are over the `n_test_scores` folds that the point was fitted on.
        Points with fewer folds rank behind the others.
        """
        check_is_fitted(self, "best_params_")
        fit_times, score_times, scores = (
            np.swapaxes(a, 0, 1).reshape(-1, a.shape[2])
            for a in (self._fit_times, self._score_times, self._scores)
        )
        fitted = ~np.isnan(fit_times)
        means, counts = self._means()
        results: dict[str, Any] = {}
        for name, times in (("fit", fit_times), ("score", score_times)):
            mean, std = _moments(times, fitted)
            results |= {f"mean_{name}_time": mean, f"std_{name}_time": std}
        C = np.repeat(self.Cs_, means.shape[0])
        results["param_C"] = np.ma.MaskedArray(C, mask=False)
        params: list[dict[str, float]] = [{"C": float(value)} for value in C]
        if self.gammas_ is not None:
            gamma = np.tile(self.gammas_, self.Cs_.size)
            results["param_gamma"] = np.ma.MaskedArray(gamma, mask=False)
            for point, value in zip(params, gamma, strict=True):
                point["gamma"] = float(value)
        results["params"] = params
        results |= {f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])}
        results["mean_test_score"] = means.T.ravel()
        results["std_test_score"] = _moments(scores, fitted)[1]
        results["rank_test_score"] = self._ranks()
        results["n_test_scores"] = counts.T.ravel()
        return results

    @consistent
    def plot(self, ax: Any = None, **options: Any) -> GridScoresDisplay:
        """Draw the scores over the grid, see `svmarrow.model_selection.GridScoresDisplay`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        **options : Any
            Passed to ``ax.pcolormesh``, or to ``ax.semilogx`` for a kernel without a gamma.

        Returns
        -------
        GridScoresDisplay
            The display.
        """
        check_is_fitted(self, "best_params_")
        chosen = self.best_params_["C"], self.best_params_.get("gamma")
        display = GridScoresDisplay(self._means()[0], self.Cs_, self.gammas_, chosen)
        return display.plot(ax, **options)


def _moments(values: NDArray[np.float64], fitted: NDArray[np.bool_]) -> tuple[NDArray[np.float64], ...]:
    """Returns mean and standard deviation of each row over the fitted folds; NaN where there are none."""
    count = fitted.sum(axis=1)
    safe = np.maximum(count, 1)
    mean = np.where(fitted, values, 0.0).sum(axis=1) / safe
    square = np.where(fitted, (values - mean[:, np.newaxis]) ** 2, 0.0).sum(axis=1) / safe
    missing = np.where(count > 0, 0.0, np.nan)
    return mean + missing, np.sqrt(square) + missing
