"""Choosing C and gamma of support vector quantile regression: `QuantileSVRCV`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.metrics import d2_pinball_score, make_scorer

from svmarrow._support.parameters import boolean, real
from svmarrow.model_selection._search import SEARCH_RULES
from svmarrow.model_selection.regression import RegressorSearch
from svmarrow.svm.quantile import PinballScore, QuantileSVR, pinball_score

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.kernel_function import KernelFunction
    from svmarrow._support.parameters import Rule
    from svmarrow.model_selection._judging import Part

__all__ = ["QuantileSVRCV"]


class QuantileSVRCV(PinballScore, RegressorSearch):
    """`svmarrow.svm.QuantileSVR` of one quantile with C and gamma chosen by cross-validation, as one job.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile to predict, above 0 and below 1.
    Cs : int or array-like, default=10
        Values of C, or how many: then from .1 to 1,000 at equal ratios, times the standard deviation of y,
        divided by the mean of k(x, x).
    gammas : int or array-like, default=10
        Values of gamma, or how many: then from 10^-1.5 to 10^1.5 times 1 / (n_features X.var()), at equal
        ratios. Ignored by kernels without a gamma ("linear", "precomputed" and functions).
    cv : int, splitter or iterable, default=5
        Folds as in `GridSearchCV`: a number of folds without shuffling, a splitter, or pairs of training and
        held-out rows.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn, the larger the better; None is the share of the pinball loss that is
        explained, `sklearn.metrics.d2_pinball_score`. It gets an estimator that answers for the held-out rows
        with `predict`.
    search : {"full", "racing"}, default="full"
        "full" tries every point on every fold. "racing" tries them on one fold after the other, and drops
        those that will not win, see `alpha`. From 2,000 rows on it first tries all points with machines of a
        quarter of the rows, and drops those that are far behind the best there.
    alpha : float, default=0.05
        For ``search="racing"``: most probability that a point is dropped which would have had a better score
        over all folds than the one that is chosen, by more than a standard error; all comparisons together.
        Without a `scoring`, pinball losses on rows are compared in pairs, else scores of folds, from three
        folds on. A point that is dropped before the first fold was worse by a standard error, with the same
        confidence, with machines of a quarter of the rows.
    refit : bool, default=True
        Whether the best is fitted to all rows. Without there is no prediction.
    adjust_intercept : bool, default=True
        Whether to add the quantile of the residuals of held-out samples to the intercept, once the model is
        fitted to all samples. A flexible model is closer to its training targets than to others; without the
        adjustment, the shares of unseen samples below the outer quantiles are too close to one half. It takes
        one more fit for each fold.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "precomputed"} or callable
        The default is "rbf"; as in `svmarrow.SVR`.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    tol : float, default=1e-3
        Maximum violation of the optimality conditions, in units of y, of all fits.
    cache_size : float or None, default=None
        Memory for kernel values in MB; None is a share of the free memory. Where the 4 n^2 bytes of a kernel
        matrix do not fit, every fold keeps kernel rows of its own or computes them again.
    max_iter : int, default=-1
        Maximum number of SMO steps of a machine; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of the search. What is best by then is chosen and fitted, which takes its
        own time. Values of gamma are tried from the middle outwards.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. Fits run beside each other, and those of large problems share them. Where
        ``joblib.parallel_config`` names a backend of other processes or machines, such as "dask", the values
        of gamma are shared out to them, and these are the threads of each.
    verbose : bool or int, default=False
        Whether to show the progress on stderr: fits done, best score so far.

    Attributes
    ----------
    best_params_ : dict
        The chosen point: ``"C"``, and ``"gamma"`` for kernels that have one.
    best_score_ : float
        The mean score of the chosen point.
    best_index_ : int
        Its place in `cv_results_`.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C, rising.
    gammas_ : ndarray of shape (n_gammas,) or None
        Values of gamma, rising.
    cv_results_ : dict of ndarrays
        Scores and times of all points with the keys of `GridSearchCV`. Fits that were not made are NaN: a
        race drops points, some of them before the first fold. ``"n_test_scores"`` is the number of folds that
        a point was tried on.
    n_splits_ : int
        Number of folds.
    stop_ : {"finished", "max_time", "callback", "interrupted"}
        Why the search ended.
    best_estimator_ : QuantileSVR
        The machine with the best parameters, fitted to all samples; not available with ``refit=False``.
    intercept_adjustment_ : float
        What was added to its intercept; 0 without `adjust_intercept`. Not available with ``refit=False``.
    expansion_ : KernelExpansion
        The model: support vectors, coefficients (n_SV, n_outputs), intercepts.
    certificate_ : Certificate
        The certificate of its fit, before the intercept was adjusted.
    dual_coef_ : ndarray of shape (1, n_vectors)
        Coefficients of the model.
    intercept_ : ndarray of shape (1,)
        Intercepts of the machines.
    coef_ : ndarray or sparse matrix of shape (1, d)
        Weights of the features, for the linear kernel alone.
    n_iter_ : int
        Number of SMO steps.
    fit_status_ : int
        0 if that fit reached the tolerance, else 1.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    svmarrow.SVRCV : The same for the mean, with a tube within which deviations cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow.model_selection import QuantileSVRCV
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(0, 6, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * random.standard_normal(300)
    >>> search = QuantileSVRCV(0.9, Cs=4, gammas=3, cv=3).fit(X, y)
    >>> bool(0.8 < np.mean(y <= search.predict(X)) < 0.95)
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        **SEARCH_RULES,
        "quantile": real(above=0.0, below=1.0),
        "adjust_intercept": boolean,
    }

    best_estimator_: QuantileSVR
    intercept_adjustment_: float

    def __init__(
        self,
        quantile: float = 0.5,
        *,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 10,
        cv: Any = 5,
        scoring: Any = None,
        search: Literal["full", "racing"] = "full",
        alpha: float = 0.05,
        refit: bool = True,
        adjust_intercept: bool = True,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float | None = None,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.quantile = quantile
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.search = search
        self.alpha = alpha
        self.refit = refit
        self.adjust_intercept = adjust_intercept
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss(self) -> dict[str, float | None]:
        return {"epsilon": 0.0, "nu": None, "quantile": float(self.quantile)}

    def _losses(
        self,
        target: Any,  # noqa: ARG002 - what classification needs
        part: Part,  # noqa: ARG002
        y: Any,
        outputs: NDArray[np.float64],
        weights: Any,
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        predicted, q = outputs[:, :, 0], float(self.quantile)
        residuals = y - predicted
        losses = np.maximum(q * residuals, (q - 1.0) * residuals)
        if weights is not None:
            losses = losses * weights
        quantiles = np.array([q])
        scores = [pinball_score(y, one, quantiles, sample_weight=weights) for one in predicted]
        return losses.astype(np.float32), np.array(scores)

    def _default_scoring(self) -> Any:
        return make_scorer(d2_pinball_score, alpha=float(self.quantile))

    def _machine(self, C: float, gamma: float | None) -> QuantileSVR:
        machine: QuantileSVR = self._machine_of(QuantileSVR, C, gamma)
        return machine

    def _fit_best(self, X: Any, y: Any, sample_weight: Any, parts: list[Part]) -> None:
        super()._fit_best(X, y, sample_weight, parts)
        self.intercept_adjustment_ = 0.0
        if self.adjust_intercept:
            self.intercept_adjustment_ = self._adjustment(X, y, sample_weight, parts)
            best = self.best_estimator_
            best.expansion_ = best.expansion_.replaced(
                intercepts=best.expansion_.intercepts + self.intercept_adjustment_
            )
            self.expansion_ = best.expansion_

    def _adjustment(self, X: Any, y: Any, sample_weight: Any, parts: list[Part]) -> float:
        """The constant that, added to the predictions of held-out samples, has the least pinball loss."""
        residuals, weights = [], []
        for part in parts:
            columns = part.train if self._is_precomputed() else slice(None)
            machine = self._best_machine().fit(X[part.train][:, columns], y[part.train], part.weights)
            residuals.append(y[part.test] - machine.predict(X[part.test][:, columns]))
            weights.append(np.ones(part.test.size) if sample_weight is None else sample_weight[part.test])
        weight = np.concatenate(weights)
        if not weight.any():
            return 0.0
        quantile = float(self.quantile)
        return float(np.quantile(np.concatenate(residuals), quantile, weights=weight, method="inverted_cdf"))

    def _fitted_quantiles(self) -> NDArray[np.float64]:
        return self.best_estimator_.quantiles_
