"""Base class of `SVCCV`, `SVRCV` and `QuantileSVRCV`: folds, fits of the grid, scores, the refit."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.displays import GridScoresDisplay
from svmarrow._support.estimator import is_routing
from svmarrow._support.parameters import InterruptedFit, atomic_fit, check, consistent, refuse, warn_caller
from svmarrow._support.progress import Steps, fitting, progress
from svmarrow._support.rows import as_rows, core_rows, n_joblib_workers, validated
from svmarrow._support.training import refuse_zero_weights, sample_weights
from svmarrow.expansion.kernel_expansion import TrainingKernel
from svmarrow.model_selection._grid import cost_values, gamma_values, run_distributed, run_search
from svmarrow.model_selection._scoring import (
    BestScore,
    FitPoints,
    Fold,
    GridScorer,
    GridScores,
    choose,
    cv_results,
    first_stage,
    mean_scores,
    race,
    takes_weights,
)
from svmarrow.models.machine import KernelMachine
from svmarrow.svm._base import SupportVectorMachine, check_certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.model_selection._scoring import HeldOutEstimator
    from svmarrow.models.machine import Certificate

__all__ = ["Search"]

#: Maximum tolerance of a fit to the training samples of a fold, in units of the margin or of the deviation of
#: the targets, if that of the final fit is not larger. At 2, zero coefficients would solve a machine.
MAX_FOLD_TOLERANCE = 0.1
#: Share of `max_time` for the search if the best point is fitted afterwards.
SEARCH_SHARE = 2.0 / 3.0
#: Minimum number of seconds of that fit.
MIN_REFIT_SECONDS = 0.5
#: Minimum tolerance: the smallest normal number.
_MIN_TOLERANCE = float(np.finfo(np.float64).tiny)


class Search(KernelMachine):
    """Base class of the searches."""

    Cs: Any
    gammas: Any
    cv: Any
    scoring: Any
    search: Literal["full", "racing"]
    significance: float
    refit: bool
    degree: int
    coef0: float
    tol: float
    cache_size: float | None
    max_iter: int
    max_time: float | None
    verbose: bool | int

    certificate_: Certificate
    gammas_: NDArray[np.float64] | None
    Cs_: NDArray[np.float64]
    n_splits_: int
    fold_tol_: float
    best_estimator_: Any
    best_params_: dict[str, float]
    best_score_: float
    best_index_: int
    expansion_: KernelExpansion
    stop_: str
    _scores: NDArray[np.float64]
    _fit_times: NDArray[np.float64]
    _score_times: NDArray[np.float64]
    _stored_as: ClassVar[dict[str, str]] = {
        "_fit_times": "fit_times_",
        "_score_times": "score_times_",
        "_scores": "scores_",
    }
    #: A transformer of the samples, set on an instance. It is fitted to the training samples of each fold,
    #: and itself to all samples for the grid and the model.
    _scaler: ClassVar[Any] = None

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit every point of the grid on every fold, and the best one to all samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training samples; kernel values between them for the precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each sample in every fit, and in the score if the scorer accepts weights; with
            scikit-learn's metadata routing, if the scorer requests them.
        groups : array-like of shape (n_samples,) or None, default=None
            Groups of the samples, for splitters that use them.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter is outside its range, the data contain NaN or infinity, lengths differ, `cv` does
            not fit the data, or `max_time` ends before any point has a score.
        MemoryError
            If the free memory is too small for a fit with the smallest cache.
        KeyboardInterrupt
            On Ctrl-C, within a second: the scores and the best point so far are kept, without a refit.

        Warns
        -----
        ConvergenceWarning
            If `max_time` ended the search, after which the best point so far is fitted, or if fits ended
            before the tolerance was reached.
        FitFailedWarning
            If the training samples of a fold have a single class: its scores are NaN.
        """
        with fitting(self, X, y, sample_weight):
            return self._fit(X, y, sample_weight, groups)

    @property
    def scorer_(self) -> Any:
        """The scorer of `scoring`, or of the default score: ``scorer_(estimator, X, y)``."""
        check_is_fitted(self, "best_params_")
        return self._scorer()

    @consistent
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the model by `scoring`, the one that chose it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Test samples; their kernel values with the training samples for the precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the samples, for scorers that accept weights.

        Returns
        -------
        float
            The larger, the better.
        """
        self._check_fitted()
        params = {} if sample_weight is None else {"sample_weight": sample_weight}
        # A scorer may call the `score` of its estimator, which then is the default one.
        model = copy(self)
        model.scoring = None
        return float(self._scorer()(model, X, y, **params))

    @property
    @consistent
    def cv_results_(self) -> dict[str, Any]:
        """Scores and times of all points, with the keys and in the order of scikit-learn's `GridSearchCV`.

        Fits that were not run are NaN; means are over the `n_test_scores` folds that the point was fitted on.
        Points with fewer folds rank behind the others.
        """
        check_is_fitted(self, "best_params_")
        return cv_results(self)

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
        display = GridScoresDisplay(mean_scores(self)[0], self.Cs_, self.gammas_, chosen)
        return display.plot(ax, **options)

    coef_: ClassVar[Any] = SupportVectorMachine.coef_
    fit_status_: ClassVar[Any] = SupportVectorMachine.fit_status_
    n_iter_: ClassVar[Any] = SupportVectorMachine.n_iter_
    _after_load: ClassVar[Callable[..., None]] = check_certificate
    #: gamma="scale" ignores sample weights, as in scikit-learn.
    _weighs_gamma: ClassVar[bool] = False
    #: Tolerance of a fit to the training samples of a fold, relative to that of the final fit. Squared errors
    #: may be so small that more would change which point has the least.
    _fold_tolerance_ratio: ClassVar[float] = 10.0

    # --- implemented by subclasses ---

    def _task(self, target: Any) -> dict[str, Any]:
        """Returns the task for the extension module, with all upper bounds 1."""
        raise NotImplementedError

    def _target(self, y: Any, weights: NDArray[np.float64]) -> NDArray[Any]:
        """Returns the checked target."""
        raise NotImplementedError

    def _target_unit(self, target: Any) -> float:  # noqa: ARG002 - used by regression
        """Returns the unit of the target: the factor of a range of C, and of the tolerance of the folds."""
        return 1.0

    def _fold_weights(
        self,
        target: Any,  # noqa: ARG002 - used by classification
        train: NDArray[np.int64],  # noqa: ARG002
        weights: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Returns the weights of the training rows of a fold, given their sample weights."""
        return weights

    def _held_out_estimator(
        self, target: Any, fold: Fold, outputs: NDArray[np.float64]
    ) -> HeldOutEstimator | None:
        """Returns an estimator that predicts the held-out rows; None if the fold cannot be fitted."""
        raise NotImplementedError

    def _losses(
        self, target: Any, fold: Fold, y: Any, outputs: NDArray[np.float64], weights: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]] | None:
        """Returns the weighted loss of each held-out row and the default scores of the fits.

        ``outputs`` has shape (n_fits, n_rows, n_machines). None if the fold cannot be fitted.
        """
        raise NotImplementedError

    def _estimator_at(self, C: float, gamma: float | None) -> Any:
        """Returns the unfitted estimator of a point of the grid."""
        raise NotImplementedError

    def _shared_params(self, kind: type[Any]) -> dict[str, Any]:
        """Returns the parameters that the search passes on to an estimator of the class."""
        names = set(self.get_params(deep=False)) - {"max_time"}
        return {name: getattr(self, name) for name in kind().get_params() if name in names}

    def _default_scoring(self) -> Any:
        """Returns the scorer that is equivalent to `score`."""
        raise NotImplementedError

    # --- the search ---

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        check(self.get_params(deep=False), self._rules)
        steps = Steps(None, self.max_time)
        X, y = validated(self, X, y, reset=True, precomputed=self._is_precomputed(), with_y=True)
        unscaled = X
        if self._scaler is not None:
            X = as_rows(self._scaler.fit(X, y).transform(X))
        self._check_training_rows(X)
        n = int(X.shape[0])
        weights = sample_weights(1.0 if sample_weight is None else sample_weight, n)
        assert weights is not None
        refuse_zero_weights(weights)
        target = self._target(y, weights)
        sample_weight = None if sample_weight is None else weights
        split_params, score_params = self._routed(sample_weight, groups)
        folds = self._folds(X, y, target, weights, split_params)
        self.gammas_ = gamma_values(self.gammas, X, self.kernel)
        middle = 1.0 if self.gammas_ is None else float(np.median(self.gammas_))
        grid = cost_values(self.Cs, X, self.kernel, middle, float(self.coef0), int(self.degree))
        self.Cs_ = grid * self._target_unit(target) if isinstance(self.Cs, (int, np.integer)) else grid
        self.n_splits_ = len(folds)
        tol = float(self.tol)
        fold_tol = max(tol, min(self._fold_tolerance_ratio * tol, MAX_FOLD_TOLERANCE))
        self.fold_tol_ = max(fold_tol * self._target_unit(target), _MIN_TOLERANCE)
        results, self.stop_ = self._fit_grid(unscaled, y, target, folds, score_params, steps)
        self._scores, self._fit_times = results.scores, results.fit_times
        self._score_times = results.score_times
        choose(self)
        return self._refit(X, y, sample_weight, folds, steps)

    def _routed(self, sample_weight: Any, groups: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the metadata for the splitter and for the scorer."""
        if is_routing() and (groups is not None or sample_weight is not None):
            given = {"groups": groups, "sample_weight": sample_weight}
            routed = process_routing(self, "fit", **{k: v for k, v in given.items() if v is not None})
            score_params = dict(routed["scorer"]["score"]) if self.scoring is not None else {}
            return dict(routed["splitter"]["split"]), score_params
        # GridSearchCV does the same from scikit-learn 1.9 on.
        is_weighted = sample_weight is not None and takes_weights(self._scorer())
        return {"groups": groups}, {"sample_weight": sample_weight} if is_weighted else {}

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing: groups go to the splitter, weights to a scorer that requests them.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
            The routing, see scikit-learn's user guide on metadata routing.
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        to_split = MethodMapping().add(caller="fit", callee="split")
        to_score = MethodMapping().add(caller="fit", callee="score")
        router = router.add(splitter=check_cv(self.cv), method_mapping=to_split)
        # The default score requests no metadata.
        return router if self.scoring is None else router.add(scorer=self._scorer(), method_mapping=to_score)

    def _scorer(self) -> Any:
        try:
            return check_scoring(self._estimator_at(1.0, None), self.scoring or self._default_scoring())
        except (TypeError, ValueError) as error:
            raise refuse("scoring", self.scoring, f"the name of a score or a scorer: {error}") from error

    def _folds(
        self, X: Any, y: Any, target: Any, sample_weight: NDArray[np.float64], split_params: dict[str, Any]
    ) -> list[Fold]:
        folds = []
        for train, test in self._splits(X, y, sample_weight.size, split_params):
            # Balanced class weights count all rows, as a fit to the training rows does.
            weights = self._fold_weights(target, train, sample_weight[train])
            # The weights of a repeated row are added.
            rows, inverse = np.unique(train[weights > 0.0], return_inverse=True)
            weights = np.bincount(inverse.reshape(-1), weights[weights > 0.0], rows.size).astype(np.float64)
            if not rows.size or not test.size:
                raise refuse("cv", self.cv, "such that every fold has training samples and held-out samples")
            folds.append(Fold(rows.astype(np.int64), weights, test.astype(np.int64)))
        if not folds:
            raise refuse("cv", self.cv, "such that there is at least one fold")
        return folds

    def _splits(self, X: Any, y: Any, n: int, split_params: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
        """Yields the training rows and the held-out rows of each fold."""
        rows = np.arange(n)
        try:
            is_classifier = self.__sklearn_tags__().estimator_type == "classifier"
            for train, test in check_cv(self.cv, y, classifier=is_classifier).split(X, y, **split_params):
                if np.ndim(train) != 1 or np.ndim(test) != 1:
                    raise ValueError("the rows of a fold are a vector of indices")
                yield rows[train], rows[test]
        except MemoryError:
            raise
        except Exception as error:  # the splitter may be user-defined
            rule = "a number of folds, a splitter or pairs of row indices that fit the data"
            raise refuse("cv", self.cv, f"{rule}: {error}") from error

    def _fit_grid(
        self, X: Any, y: Any, target: Any, folds: list[Fold], score_params: dict[str, Any], steps: Steps
    ) -> tuple[GridScores, str]:
        """Fits and scores the grid; returns the results and why the search ended."""
        # The fit of the best point needs time too.
        search = steps.first_part(SEARCH_SHARE if self.refit else 1.0)
        with progress(self.verbose) as reporter:
            reporter.stops_in, reporter.tolerance = ("search", 1), self.fold_tol_
            data, best = (X, y, target), BestScore(reporter, bool(self.verbose))
            scorer = GridScorer(self, data, folds, score_params, best)
            fit_points = self._fit_points(X, y, target, reporter.callback, search)
            if self.search == "racing":
                subsets = first_stage(target, folds)
                first = None if subsets is None else GridScorer(self, data, subsets, score_params, best)
                stop = race(fit_points, first, scorer, float(self.significance))
            else:
                everything = np.ones(scorer.results.scores.shape[:2], dtype=bool)
                stop = fit_points(scorer, everything, range(len(folds)))
        results = scorer.results
        failed = int((np.isnan(results.scores) & ~np.isnan(results.fit_times)).any(axis=(0, 1)).sum())
        if failed:
            warn_caller(
                f"the training samples of {failed} of {len(folds)} folds have a single class: "
                "the scores of these folds are NaN",
                FitFailedWarning,
            )
        if results.stop_reasons:
            warn_caller(
                "fits of the search ended before the tolerance was reached "
                f"({', '.join(sorted(results.stop_reasons))}): raise max_iter, or scale the data",
                ConvergenceWarning,
            )
        return results, stop or "finished"

    def _is_default_score(self, score_params: dict[str, Any]) -> bool:
        """Returns whether fits are scored as `score` does, which needs no scorer."""
        is_default = self.scoring is None or self.scoring == self._default_scoring()
        return is_default and set(score_params) <= {"sample_weight"}

    def _fit_points(self, X: Any, y: Any, target: Any, callback: Any, steps: Steps) -> FitPoints:
        """Returns the function that fits points of the grid on folds."""
        if self._scaler is None:
            return self._fit_scaled(X, target, callback, steps)

        def fit_points(
            scorer: GridScorer, points: NDArray[np.bool_], folds: Sequence[int], share: float = 1.0
        ) -> str | None:
            for fold in folds:
                train = scorer.folds[fold].train
                scaler = clone(self._scaler).fit(X[train], y[train])
                fit_fold = self._fit_scaled(as_rows(scaler.transform(X)), target, callback, steps)
                stop = fit_fold(scorer, points, [fold], share)
                if stop is not None:
                    return stop
            return None

        return fit_points

    def _fit_scaled(self, X: Any, target: Any, callback: Any, steps: Steps) -> FitPoints:
        """Returns the function that fits points of the grid on folds of these rows."""
        rows, task = core_rows(X), self._task(target)
        kernels: list[Any]
        if self.gammas_ is None:
            function = TrainingKernel(self.kernel, X, asks_again=True) if callable(self.kernel) else None
            kernels = [function or self._kernel(1.0)]
        else:
            kernels = [self._kernel(float(gamma)) for gamma in self.gammas_]
        solver: Any = {
            "tol": self.fold_tol_,
            "max_iter": None if self.max_iter == -1 else int(self.max_iter),
            "progress": callback,
        }

        def fit_points(
            scorer: GridScorer, points: NDArray[np.bool_], folds: Sequence[int], share: float = 1.0
        ) -> str | None:
            seconds = None if steps.remaining is None else steps.remaining * share
            tried = [g for g in scorer.results.gamma_order() if points[g].any()]
            grid: Any = {
                "kernels": [kernels[g] for g in tried],
                "costs": self.Cs_,
                "points": np.ascontiguousarray(points[tried]),
                "folds": [tuple(scorer.folds[fold]) for fold in folds],
            }
            limits = {"n_jobs": self.n_jobs, "cache_size": self.cache_size}
            job = {"task": task, "grid": grid, "solver": solver, **limits}

            def on_fit(g: int, c: int, f: int, outputs: Any, fit_time: float, *counts: Any) -> None:
                scorer.add(folds[f], tried[g], c, outputs, fit_time, counts[-1])

            n_workers = n_joblib_workers(None)
            if n_workers is None or len(tried) < 2:
                stop = run_search(rows, job, seconds, on_fit)
            else:
                stop = run_distributed(min(n_workers, len(tried)), rows, job, seconds, on_fit)
            scorer.finish()
            return stop

        return fit_points

    def _kernel(self, gamma: float) -> tuple[Any, float, float, int]:
        return (self.kernel, gamma, float(self.coef0), int(self.degree))

    def _refit(self, X: Any, y: Any, sample_weight: Any, folds: list[Fold], steps: Steps) -> Self:
        if self.stop_ == "interrupted":
            raise InterruptedFit(self)
        if self.stop_ == "max_time":
            n_fits, n_planned = int((~np.isnan(self._fit_times)).sum()), self._fit_times.size
            warn_caller(
                f"max_time={self.max_time:g} ended the search after {n_fits} of {n_planned} fits: "
                "the best point so far is chosen",
                ConvergenceWarning,
            )
        if self.refit:
            try:
                self._fit_best(X, y, sample_weight, folds, steps)
            except KeyboardInterrupt:
                raise InterruptedFit(self) from None
        return self

    def _fit_best(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        folds: list[Fold],  # noqa: ARG002
        steps: Steps,
    ) -> None:
        """Fits the best point to all samples; some searches need the folds again."""
        remaining = steps.remaining
        max_time = None if remaining is None else max(remaining, MIN_REFIT_SECONDS)
        self.best_estimator_ = self._fit_estimator(max_time, X, y, sample_weight)
        self.expansion_ = self.best_estimator_.expansion_
        self.certificate_ = self.best_estimator_.certificate_
        self._weighted = self.best_estimator_._weighted

    def _fit_estimator(self, max_time: float | None, X: Any, y: Any, sample_weight: Any) -> Any:
        """Returns the estimator of the chosen point, fitted within a number of seconds."""
        estimator = self._estimator_at(self.best_params_["C"], self.best_params_.get("gamma"))
        return estimator.set_params(max_time=max_time).fit(X, y, sample_weight).set_params(max_time=None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expansion_")
