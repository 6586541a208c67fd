"""What `SVCCV` and `SVRCV` share: folds, the run over the grid, scores, the choice, the refit."""

from __future__ import annotations

import time
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from svmarrow._support.atomic import Kept, atomic_fit
from svmarrow._support.callbacks import fitting
from svmarrow._support.kernel_function import TrainingKernel
from svmarrow._support.parameters import (
    MAX_ITER,
    MAX_TIME,
    THREADS,
    VERBOSE,
    Rule,
    boolean,
    check,
    either,
    function,
    kernel_rules,
    none,
    one_of,
    real,
    refuse,
)
from svmarrow._support.progress import progress
from svmarrow._support.routing import is_routing
from svmarrow._support.rows import core_rows, parts_at_once, sample_weights, validated
from svmarrow._support.warn import warn_caller
from svmarrow.model_selection._grid import COSTS, GAMMAS, costs, gammas
from svmarrow.model_selection._judging import Found, Judge, Part
from svmarrow.model_selection._racing import Run, first_stage, race
from svmarrow.model_selection._results import Scored
from svmarrow.model_selection._spread import searched, spread
from svmarrow.models.fitted import FittedExpansion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from svmarrow._support.certificate import Certificate

__all__ = ["SEARCH_RULES", "Search"]

#: Rules of the parameters that both have.
SEARCH_RULES = {
    "Cs": COSTS,
    "gammas": GAMMAS,
    "search": one_of("full", "racing"),
    "alpha": Rule("a number between 0 and 1", lambda value: real(above=0.0).holds(value) and value < 1.0),
    "refit": boolean,
    "scoring": either(
        none, Rule("the name of a score or a scorer", lambda value: isinstance(value, str) or callable(value))
    ),
    **{name: rule for name, rule in kernel_rules().items() if name != "gamma"},
    "kernel": either(kernel_rules()["kernel"], function),
    "tol": real(above=0.0),
    "cache_size": either(none, real(above=0.0)),
    "max_iter": MAX_ITER,
    "max_time": MAX_TIME,
    "n_jobs": THREADS,
    "verbose": VERBOSE,
}


class Search(Scored, FittedExpansion):
    """Base of the searches."""

    Cs: Any
    gammas: Any
    cv: Any
    scoring: Any
    search: Literal["full", "racing"]
    alpha: float
    refit: bool
    degree: int
    coef0: float
    tol: float
    cache_size: float | None
    max_iter: int
    verbose: bool | int

    certificate_: Certificate

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Try every point of the grid on every fold, and fit the best to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d), or (n, n) for the precomputed kernel
            Rows.
        y : array-like of shape (n,)
            Labels, or targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weight of each row in every fit, and in the score where the scorer knows weights; with
            scikit-learn's metadata routing where it asks for them.
        groups : array-like of shape (n,) or None, default=None
            Groups of the rows, for splitters that want them.

        Returns
        -------
        self : object
            Itself.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, lengths that disagree, folds that cannot be
            made, or where `max_time` is over before any point has its scores.
        MemoryError
            If the memory that is free cannot hold even what a fit needs with the smallest cache.
        KeyboardInterrupt
            On Ctrl-C, within a second: scores and choice so far are kept, without a fit of the best.

        Warns
        -----
        ConvergenceWarning
            If `max_time` ended the search: the best so far is fitted; or if fits ended before the tolerance.
        FitFailedWarning
            If the rows of a fold have a single class: its scores are NaN.
        """
        with fitting(self, X, y, sample_weight):
            return self._fit(X, y, sample_weight, groups)

    # --- what the two say ---

    def _task(self, target: Any) -> Any:
        """The task of the core, its upper bounds all 1."""
        raise NotImplementedError

    def _target(self, y: Any, weights: NDArray[np.float64]) -> Any:
        """The checked target."""
        raise NotImplementedError

    def _cost_unit(self, target: Any) -> float:
        """What a number of C is spread in units of, beside the kernel's."""
        raise NotImplementedError

    def _weights_of(
        self, target: Any, train: NDArray[np.int64], own: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Weights of the rows of a fit, of which the own ones are given."""
        raise NotImplementedError

    def _answers(self, target: Any, part: Part, outputs: NDArray[np.float64]) -> Any:
        """An estimator that answers for the held-out rows; None where there is none."""
        raise NotImplementedError

    def _losses(
        self, target: Any, part: Part, y: Any, outputs: NDArray[np.float64], weights: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]] | None:
        """What each held-out row costs, times its weight, and the scores that `score` gives.

        Outputs are (fits, rows, machines). None where there are none.
        """
        raise NotImplementedError

    def _machine(self, C: float, gamma: float | None) -> Any:
        """An estimator of a point."""
        raise NotImplementedError

    def _default_scoring(self) -> Any:
        """The name of the score that `score` gives."""
        raise NotImplementedError

    # --- the search ---

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        check(self.get_params(deep=False), self._rules)
        X, y = validated(self, X, y, reset=True, precomputed=self._is_precomputed(), with_y=True)
        self._check_training_rows(X)
        n = int(X.shape[0])
        own = sample_weights(1.0 if sample_weight is None else sample_weight, n)
        assert own is not None
        if not own.any():
            raise ValueError("the sample weights are all zero: at least one row needs a positive weight")
        target = self._target(y, own)
        sample_weight = None if sample_weight is None else own
        split, judged = self._routed(sample_weight, groups)
        parts = self._parts(X, y, target, own, split)
        self.gammas_ = gammas(self.gammas, X, self.kernel)
        middle = 1.0 if self.gammas_ is None else float(np.median(self.gammas_))
        grid = costs(self.Cs, X, self.kernel, middle, float(self.coef0), int(self.degree))
        self.Cs_ = grid * self._cost_unit(target) if isinstance(self.Cs, (int, np.integer)) else grid
        self.n_splits_ = len(parts)
        found, stop = self._run(X, y, target, parts, judged)
        self._scores, self._fit_times, self._score_times = found.scores, found.fit_times, found.score_times
        self.stop_ = stop
        self._choose()
        return self._refit(X, y, sample_weight, parts)

    def _routed(self, sample_weight: Any, groups: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes to the splitter, and to the scorer."""
        if is_routing() and (groups is not None or sample_weight is not None):
            given = {"groups": groups, "sample_weight": sample_weight}
            routed = process_routing(self, "fit", **{k: v for k, v in given.items() if v is not None})
            judged = dict(routed["scorer"]["score"]) if self.scoring is not None else {}
            return dict(routed["splitter"]["split"]), judged
        # As GridSearchCV has it from scikit-learn 1.9 on.
        weighs = sample_weight is not None and _takes_weights(self._scorer())
        return {"groups": groups}, {"sample_weight": sample_weight} if weighs else {}

    def get_metadata_routing(self) -> MetadataRouter:
        """What `fit` hands on: groups to the splitter, weights to a scorer that asks for them.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
            The routes, see scikit-learn's user guide on metadata routing.
        """
        own = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        to_split = MethodMapping().add(caller="fit", callee="split")
        to_score = MethodMapping().add(caller="fit", callee="score")
        router = own.add(splitter=check_cv(self.cv), method_mapping=to_split)
        # The score that there is without a scorer asks for nothing.
        return router if self.scoring is None else router.add(scorer=self._scorer(), method_mapping=to_score)

    def _scorer(self) -> Any:
        try:
            return check_scoring(self._machine(1.0, None), self.scoring or self._default_scoring())
        except (TypeError, ValueError) as error:
            raise refuse("scoring", self.scoring, f"the name of a score or a scorer: {error}") from error

    def _parts(
        self, X: Any, y: Any, target: Any, own: NDArray[np.float64], split: dict[str, Any]
    ) -> list[Part]:
        parts = []
        for rows, held in self._folds(X, y, own.size, split):
            # Balanced classes count all rows, as in a fit to them.
            weights = self._weights_of(target, rows, own[rows])
            # A row that is named twice has twice the weight.
            used, place = np.unique(rows[weights > 0.0], return_inverse=True)
            weights = np.bincount(place.reshape(-1), weights[weights > 0.0], used.size).astype(np.float64)
            if not used.size or not held.size:
                raise refuse(
                    "cv", self.cv, "such that every fold has rows to learn from and rows to judge by"
                )
            parts.append(Part(used.astype(np.int64), weights, held.astype(np.int64)))
        if not parts:
            raise refuse("cv", self.cv, "such that there is a fold")
        return parts

    def _folds(self, X: Any, y: Any, n: int, split: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
        """Rows to learn from and rows to judge by, fold after fold."""
        rows = np.arange(n)
        try:
            is_classifier = self.__sklearn_tags__().estimator_type == "classifier"
            for train, test in check_cv(self.cv, y, classifier=is_classifier).split(X, y, **split):
                if np.ndim(train) != 1 or np.ndim(test) != 1:
                    raise ValueError("the rows of a fold are a vector of indices")
                yield rows[train], rows[test]
        except MemoryError:
            raise
        except Exception as error:  # a splitter may be the caller's own
            rule = "a number of folds, a splitter or pairs of rows that fit the data"
            raise refuse("cv", self.cv, f"{rule}: {error}") from error

    def _run(
        self, X: Any, y: Any, target: Any, parts: list[Part], judged: dict[str, Any]
    ) -> tuple[Found, str]:
        """Scores, and why there are no more of them."""
        with progress(self.verbose) as told:
            told.stops_in = ("search", 1)
            rows, tell = (X, y, target), _Told(told, bool(self.verbose))
            judge = Judge(self, rows, parts, judged, tell)
            run = self._runner(X, target, told.callback)
            if self.search == "racing":
                first = first_stage(target, parts)
                of_first = None if first is None else Judge(self, rows, first, judged, tell)
                stop = race(run, of_first, judge, float(self.alpha))
            else:
                stop = run(judge, np.ones(judge.found.scores.shape[:2], dtype=bool), range(len(parts)))
        found = judge.found
        failed = int((np.isnan(found.scores) & ~np.isnan(found.fit_times)).any(axis=(0, 1)).sum())
        if failed:
            warn_caller(
                f"{failed} of {len(parts)} folds have a single class to learn from: their scores are NaN",
                FitFailedWarning,
            )
        if found.unfinished:
            warn_caller(
                "fits of the search ended before the tolerance was reached "
                f"({', '.join(sorted(found.unfinished))}): "
                "raise max_iter, or scale the data",
                ConvergenceWarning,
            )
        return found, stop or "finished"

    def _is_plain(self, judged: dict[str, Any]) -> bool:
        """Whether the score is the one that there is without a scorer."""
        return set(judged) <= {"sample_weight"} and (
            self.scoring is None or self.scoring == self._default_scoring()
        )

    def _runner(self, X: Any, target: Any, callback: Any) -> Run:
        """What tries some points on some folds; it says why it ended early, or None."""
        rows, task = core_rows(X), self._task(target)
        kernels: list[Any]
        if self.gammas_ is None:
            function = TrainingKernel(self.kernel, X) if callable(self.kernel) else None
            kernels = [function or self._kernel(1.0)]
        else:
            kernels = [self._kernel(float(gamma)) for gamma in self.gammas_]
        deadline = None if self.max_time is None else time.monotonic() + float(self.max_time)
        solver: Any = {
            "tol": float(self.tol),
            "max_iter": None if self.max_iter == -1 else int(self.max_iter),
            "progress": callback,
        }

        def run(
            judge: Judge, wanted: NDArray[np.bool_], folds: Sequence[int], share: float = 1.0
        ) -> str | None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic()) * share
            parts = [judge.parts[fold] for fold in folds]
            tried = [g for g in judge.found.promising() if wanted[g].any()]
            grid: Any = {
                "kernels": [kernels[g] for g in tried],
                "costs": self.Cs_,
                "wanted": np.ascontiguousarray(wanted[tried]),
                "folds": [(part.train, part.weights, part.test) for part in parts],
            }
            have = {"n_jobs": self.n_jobs, "cache_size": self.cache_size}

            def told(g: int, c: int, f: int, outputs: Any, seconds: float, *counts: Any) -> None:
                judge(folds[f], tried[g], c, outputs, seconds, counts[-1])

            elsewhere = parts_at_once(None)
            if elsewhere is None or len(tried) < 2:
                stop = searched(rows, task, grid, solver, have, left, told)
            else:
                stop = spread(min(elsewhere, len(tried)), rows, task, grid, solver, have, left, told)
            judge.finish()
            return stop

        return run

    def _kernel(self, gamma: float) -> tuple[Any, float, float, int]:
        return (self.kernel, gamma, float(self.coef0), int(self.degree))

    def _refit(self, X: Any, y: Any, sample_weight: Any, parts: list[Part]) -> Self:
        if self.stop_ == "interrupted":
            raise Kept(self)
        if self.stop_ == "max_time":
            tried, asked = int((~np.isnan(self._fit_times)).sum()), self._fit_times.size
            warn_caller(
                f"max_time={self.max_time:g} ended the search after {tried} of {asked} fits: "
                "the best so far is chosen",
                ConvergenceWarning,
            )
        if self.refit:
            try:
                self._fit_best(X, y, sample_weight, parts)
            except KeyboardInterrupt:
                raise Kept(self) from None
        return self

    def _fit_best(self, X: Any, y: Any, sample_weight: Any, parts: list[Part]) -> None:  # noqa: ARG002
        """Fits the best point to all samples; the folds are for searches that need them again."""
        self.best_estimator_ = self._best_machine().fit(X, y, sample_weight)
        self.expansion_ = self.best_estimator_.expansion_
        self.certificate_ = self.best_estimator_.certificate_
        self._weighted = self.best_estimator_._weighted

    def _best_machine(self) -> Any:
        """An estimator of the chosen point."""
        return self._machine(self.best_params_["C"], self.best_params_.get("gamma"))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expansion_")


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer's metric knows weights of rows."""
    return "sample_weight" in signature(getattr(scorer, "_score_func", scorer)).parameters


class _Told:
    """Keeps the best so far beside the progress."""

    def __init__(self, told: Any, is_shown: bool) -> None:
        self._told, self._best = told, -np.inf
        self.is_shown = is_shown

    def __call__(self, scores: NDArray[np.float64]) -> None:
        """The scores of a point on all folds, one of them new."""
        if self.is_shown and not np.isnan(scores).any() and scores.mean() > self._best:
            self._best = float(scores.mean())
            self._told.note = f"best {self._best:.4f}"
