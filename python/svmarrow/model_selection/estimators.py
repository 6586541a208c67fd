"""Choice of C and gamma of support vector machines: `SVCCV`, `SVRCV` and `QuantileSVRCV`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_pinball_score, make_scorer, r2_score

from svmarrow._support.parameters import Decoding, boolean, check_shape, one_of, real, warn_caller
from svmarrow._support.training import check_every_class, class_weights, encode_classes
from svmarrow.model_selection._grid import SEARCH_RULES
from svmarrow.model_selection._scoring import HeldOutClassifier, HeldOutRegressor, outputs_of_present_classes
from svmarrow.model_selection._search import Search
from svmarrow.models.outputs import ClassifierOutputMixin, RegressorOutputMixin
from svmarrow.svm._base import DECODING_RULES, decoding_of, iterations_of_machines, labelled
from svmarrow.svm.classification import SVC
from svmarrow.svm.regression import SVR, QuantileSVR, pinball_score

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.parameters import Rule
    from svmarrow._support.progress import Steps
    from svmarrow.expansion.kernel_expansion import KernelExpansion, KernelFunction
    from svmarrow.model_selection._scoring import Fold

__all__ = ["SVCCV", "SVRCV", "QuantileSVRCV", "RegressorSearch"]


# --- classification ---


class SVCCV(ClassifierOutputMixin, Search, schema="svc-cv/1"):
    """`svmarrow.SVC` with C and gamma chosen by cross-validation.

    Finds what `sklearn.model_selection.GridSearchCV` finds with `svmarrow.SVC` in a fraction of the time:
    kernel values are computed once for all folds and all C, every fit starts from the solution for the
    previous C, and the outputs for held-out samples follow from the gradients, without a prediction.

    Parameters
    ----------
    Cs : int or array-like, default=10
        Values of C, or their number: then from .1 to 1,000 at equal ratios, divided by the mean of k(x, x).
    gammas : int or array-like, default=10
        Values of gamma, or their number: then from 10^-1.5 to 10^1.5 times 1 / (n_features X.var()), at equal
        ratios, and the square roots of these for Matérn kernels. Ignored by kernels without a gamma
        ("linear", "precomputed" and functions).
    cv : int, splitter or iterable, default=5
        Folds as in `GridSearchCV`: a number of stratified folds without shuffling, a splitter, or pairs of
        training and held-out samples.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn, the larger the better; None is accuracy weighted by `class_weight`, so that
        "balanced" is balanced accuracy. A scorer gets an estimator that has `predict` and
        `decision_function` for the held-out samples.
    search : {"full", "racing"}, default="full"
        "full" fits every point on every fold. "racing" fits fold after fold and drops points that will not
        win, see `significance`. From 2,000 samples on it first fits all points to a quarter of the samples,
        and drops those that are far behind the best there.
    significance : float, default=0.05
        Significance level of ``search="racing"``: maximum probability, over all comparisons, of dropping a
        point whose score over all folds would exceed that of the chosen point by more than a standard error.
        If the score is accuracy, errors on samples are compared in pairs, else scores of folds, from three
        folds on. A point that is dropped before the first fold was worse by a standard error, with the same
        confidence, if fitted to a quarter of the samples.
    refit : bool, default=True
        Whether to fit the best point to all samples. If False, the search cannot predict.
    kernel : str or callable, default="rbf"
        As in `svmarrow.SVC`.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    tol : float, default=1e-3
        Maximum violation of the optimality conditions, in units of the decision function, of the fit to all
        samples. Fits to the training samples of a fold end at thirty times as much, but at
        most at 0.1 if `tol` is smaller, see ``fold_tol_``.
    cache_size : float or None, default=None
        Memory for kernel values in MB; None is a share of the free memory. If the 4 n^2 bytes of a kernel
        matrix do not fit, every fold keeps its own kernel rows or recomputes them.
    class_weight : dict, "balanced" or None, default=None
        Multipliers of C, by class; "balanced" by the samples of each fit. Without `scoring` they weight the
        score too.
    multi_class : {"ovo", "ovr"}, default="ovo"
        A machine for each pair of classes, or one for each class against all others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        For ``multi_class="ovo"``: whether `decision_function` returns a value for each class or for each
        pair.
    break_ties : bool, default=False
        Whether `predict` breaks ties between votes by `decision_function`.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        max(0, 1 - m) or its square, for the margin m.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    max_iter : int, default=-1
        Maximum number of SMO steps of a machine; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of the fit. Two thirds of it are for the search, after which the best point
        so far is fitted in the remaining time, at least half a second. Values of gamma are tried from the
        middle outwards.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. Fits run in parallel, and a large fit uses several threads. If
        ``joblib.parallel_config`` names a backend of other processes or machines, such as "dask", the values
        of gamma are distributed to them, and this is the number of threads of each.
    verbose : bool or int, default=False
        Whether to show the progress on stderr: fits done and the best score so far.

    Attributes
    ----------
    best_params_ : dict
        The chosen point: ``"C"``, and ``"gamma"`` for kernels that have one.
    best_score_ : float
        The mean score of the chosen point.
    best_index_ : int
        Its index in `cv_results_`.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C in increasing order.
    gammas_ : ndarray of shape (n_gammas,) or None
        Values of gamma in increasing order.
    cv_results_ : dict of ndarrays
        Scores and times of all points with the keys of `GridSearchCV`. Fits that were not run are NaN: a
        race drops points, some of them before the first fold. ``"n_test_scores"`` is the number of folds on
        which a point was fitted.
    n_splits_ : int
        Number of folds.
    scorer_ : callable
        The scorer of `scoring`, ``scorer_(estimator, X, y)``; `score` calls it.
    fold_tol_ : float
        Maximum violation of the optimality conditions of the fits to folds. Their held-out outputs are about
        as accurate: to three hundredths of the margin by default.
    stop_ : {"finished", "max_time", "callback", "interrupted"}
        Why the search ended.
    best_estimator_ : SVC
        The estimator with the best parameters, fitted to all samples; not available with ``refit=False``.
    expansion_ : KernelExpansion
        The model: support vectors, coefficients (n_SV, n_outputs), intercepts.
    certificate_ : Certificate
        Certificate of the fit to all samples.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weight of each class in the fit to all samples.
    dual_coef_ : ndarray of shape (n_outputs, n_vectors)
        Coefficients of the model.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the machines.
    coef_ : ndarray or sparse matrix of shape (n_outputs, d)
        Weights of the features, for the linear kernel alone.
    n_iter_ : ndarray of shape (n_outputs,)
        Number of SMO steps of each machine.
    fit_status_ : int
        0 if every machine of the fit to all samples reached the tolerance, else 1.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    SVRCV : The same for regression.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCCV(Cs=4, gammas=[0.01, 0.1, 1.0]).fit(X, y)
    >>> search.best_score_ > 0.97, len(search.cv_results_["params"])
    (True, 12)
    >>> search.predict(X[:2])
    array([0, 0])
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        **SEARCH_RULES,
        **DECODING_RULES,
        "loss": one_of("hinge", "squared_hinge"),
        "fit_intercept": boolean,
    }

    best_estimator_: SVC
    search: Literal["full", "racing"]
    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    multi_class: Literal["ovo", "ovr"]
    decision_function_shape: Literal["ovo", "ovr"]
    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    _coding: Decoding
    _stored_as: ClassVar[dict[str, str]] = {"_coding": "decoding_"}

    n_iter_: ClassVar[property] = property(iterations_of_machines)
    score: ClassVar[Callable[..., float]] = Search.score
    _margin_loss: ClassVar[str] = "hinge"
    #: Scores of labels change by a tenth of their standard errors, see the decision record on search paths.
    _fold_tolerance_ratio: ClassVar[float] = 30.0

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 10,
        cv: Any = 5,
        scoring: Any = None,
        search: Literal["full", "racing"] = "full",
        significance: float = 0.05,
        refit: bool = True,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovo", "ovr"] = "ovr",
        break_ties: bool = False,
        loss: Literal["hinge", "squared_hinge"] = "hinge",
        fit_intercept: bool = True,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.search = search
        self.significance = significance
        self.refit = refit
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _target(self, y: Any, weights: NDArray[np.float64]) -> NDArray[Any]:
        check_every_class(*encode_classes(y), weights)
        classes, labels, by_class, _ = labelled(self, y, weights)
        self._coding = decoding_of(self, classes.size)
        check_shape(self._coding, self.decision_function_shape, self.break_ties)
        self.classes_, self.class_weight_ = classes, by_class
        return labels

    def _fold_weights(
        self, target: Any, train: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        labels = target[train]
        present = np.unique(labels)
        indices = np.searchsorted(present, labels)
        by_row = class_weights(self.class_weight, weights, self.classes_[present], indices, counted=False)[1]
        assert by_row is not None
        return by_row

    def _task(self, target: Any) -> dict[str, Any]:
        return {
            "labels": np.ascontiguousarray(target, dtype=np.int64),
            "n_classes": int(self.classes_.size),
            "upper": np.ones(target.size),
            "coding": self.multi_class,
            "loss": self.loss,
            "nu": None,
            "fit_intercept": bool(self.fit_intercept),
        }

    def _held_out_estimator(
        self, target: Any, fold: Fold, outputs: NDArray[np.float64]
    ) -> HeldOutClassifier | None:
        present = np.unique(target[fold.train])
        if present.size < 2:
            return None
        decoding: Decoding = self._coding
        outputs, decoding = outputs_of_present_classes(outputs, decoding, present, int(self.classes_.size))
        return HeldOutClassifier(
            outputs, self.classes_[present], decoding, self.decision_function_shape, self.break_ties
        )

    def _losses(
        self, target: Any, fold: Fold, y: Any, outputs: NDArray[np.float64], weights: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]] | None:
        flat = outputs.reshape(-1, outputs.shape[2])
        estimator = self._held_out_estimator(target, fold, flat)
        if estimator is None:
            return None
        right = estimator.predict(estimator._held_outputs).reshape(outputs.shape[:2]) == y
        wrong = (~right).astype(np.float32)
        if self.scoring is None and self.class_weight is not None:
            by_class = self.class_weight_[target[fold.test]]
            weights = by_class if weights is None else by_class * weights
        if weights is None:
            return wrong, right.mean(axis=1)
        total = float(np.sum(weights))
        scores = [float(np.average(one, weights=weights)) if total > 0.0 else np.nan for one in right]
        return wrong * np.asarray(weights, dtype=np.float32), np.array(scores)

    def _default_scoring(self) -> str:
        return "accuracy"

    def _estimator_at(self, C: float, gamma: float | None) -> SVC:
        return SVC(**self._shared_params(SVC), C=C, gamma="scale" if gamma is None else gamma)


# --- regression ---


class RegressorSearch(RegressorOutputMixin, Search):
    """Base class of the searches for C and gamma of a support vector regressor."""

    score: ClassVar[Callable[..., float]] = Search.score

    def _target(
        self,
        y: Any,
        weights: NDArray[np.float64],  # noqa: ARG002 - used by classification
    ) -> NDArray[np.float64]:
        return np.ascontiguousarray(y, dtype=np.float64)

    def _target_unit(self, target: NDArray[np.float64]) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = float(target.std())
        return deviation if np.isfinite(deviation) and deviation > 0.0 else 1.0

    def _task(self, target: Any) -> dict[str, Any]:
        return {"targets": target, "upper": np.ones(target.size), **self._loss()}

    def _loss(self) -> dict[str, float | None]:
        """Returns the parameters of the loss."""
        raise NotImplementedError

    def _sample_losses(self, y: Any, predicted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the loss of each held-out row in each fit, (n_fits, n_rows)."""
        raise NotImplementedError

    def _default_score(self, y: Any, predicted: NDArray[np.float64], weights: Any) -> float:
        """Returns the default score of the predictions of one fit."""
        raise NotImplementedError

    def _held_out_estimator(
        self,
        target: Any,  # noqa: ARG002 - used by classification
        fold: Fold,  # noqa: ARG002
        outputs: NDArray[np.float64],
    ) -> HeldOutRegressor:
        return HeldOutRegressor(outputs)

    def _losses(
        self,
        target: Any,  # noqa: ARG002 - used by classification
        fold: Fold,  # noqa: ARG002
        y: Any,
        outputs: NDArray[np.float64],
        weights: Any,
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        predicted = outputs[:, :, 0]
        losses = self._sample_losses(y, predicted)
        if weights is not None:
            losses = losses * weights
        scores = [self._default_score(y, one, weights) for one in predicted]
        return losses.astype(np.float32), np.array(scores)


class SVRCV(RegressorSearch, schema="svr-cv/1"):
    """`svmarrow.SVR` with C and gamma chosen by cross-validation; see `SVCCV`.

    Parameters
    ----------
    Cs : int or array-like, default=10
        Values of C, or their number: then from .1 to 1,000 at equal ratios, times the standard deviation of
        y, divided by the mean of k(x, x).
    gammas : int or array-like, default=10
        Values of gamma, or their number: then from 10^-1.5 to 10^1.5 times 1 / (n_features X.var()), at equal
        ratios, and the square roots of these for Matérn kernels. Ignored by kernels without a gamma
        ("linear", "precomputed" and functions).
    cv : int, splitter or iterable, default=5
        Folds as in `GridSearchCV`: a number of folds without shuffling, a splitter, or pairs of training and
        held-out samples.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn, the larger the better; None is R^2. It gets an estimator that has `predict`
        for the held-out samples.
    search : {"full", "racing"}, default="full"
        "full" fits every point on every fold. "racing" fits fold after fold and drops points that will not
        win, see `significance`. From 2,000 samples on it first fits all points to a quarter of the samples,
        and drops those that are far behind the best there.
    significance : float, default=0.05
        Significance level of ``search="racing"``: maximum probability, over all comparisons, of dropping a
        point whose score over all folds would exceed that of the chosen point by more than a standard error.
        If the score is R^2, squared errors on samples are compared in pairs, else scores of folds, from three
        folds on. A point that is dropped before the first fold was worse by a standard error, with the same
        confidence, if fitted to a quarter of the samples.
    refit : bool, default=True
        Whether to fit the best point to all samples. If False, the search cannot predict.
    epsilon : float, default=0.1
        Half the width of the tube within which a deviation costs nothing.
    kernel : str or callable, default="rbf"
        As in `svmarrow.SVR`.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    tol : float, default=1e-3
        Maximum violation of the optimality conditions: in units of y, as in `svmarrow.SVR`, for the fit to
        all samples. Fits to the training samples of a fold end at ``10 * tol`` standard deviations of y (at
        most 0.1, or `tol`), see ``fold_tol_``, so that their time does not depend on the unit of y.
    cache_size : float or None, default=None
        Memory for kernel values in MB; None is a share of the free memory. If the 4 n^2 bytes of a kernel
        matrix do not fit, every fold keeps its own kernel rows or recomputes them.
    max_iter : int, default=-1
        Maximum number of SMO steps of a machine; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of the fit. Two thirds of it are for the search, after which the best point
        so far is fitted in the remaining time, at least half a second. Values of gamma are tried from the
        middle outwards.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. Fits run in parallel, and a large fit uses several threads. If
        ``joblib.parallel_config`` names a backend of other processes or machines, such as "dask", the values
        of gamma are distributed to them, and this is the number of threads of each.
    verbose : bool or int, default=False
        Whether to show the progress on stderr: fits done and the best score so far.

    Attributes
    ----------
    best_params_ : dict
        The chosen point: ``"C"``, and ``"gamma"`` for kernels that have one.
    best_score_ : float
        The mean score of the chosen point.
    best_index_ : int
        Its index in `cv_results_`.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C in increasing order.
    gammas_ : ndarray of shape (n_gammas,) or None
        Values of gamma in increasing order.
    cv_results_ : dict of ndarrays
        Scores and times of all points with the keys of `GridSearchCV`. Fits that were not run are NaN: a
        race drops points, some of them before the first fold. ``"n_test_scores"`` is the number of folds on
        which a point was fitted.
    n_splits_ : int
        Number of folds.
    scorer_ : callable
        The scorer of `scoring`, ``scorer_(estimator, X, y)``; `score` calls it.
    fold_tol_ : float
        Maximum violation of the optimality conditions of the fits to folds, in units of y. Their held-out
        outputs are about as accurate: to a hundredth of the standard deviation of y by default.
    stop_ : {"finished", "max_time", "callback", "interrupted"}
        Why the search ended.
    best_estimator_ : SVR
        The estimator with the best parameters, fitted to all samples; not available with ``refit=False``.
    expansion_ : KernelExpansion
        The model: support vectors, coefficients (n_SV, n_outputs), intercepts.
    certificate_ : Certificate
        Certificate of the fit to all samples.
    dual_coef_ : ndarray of shape (1, n_vectors)
        Coefficients of the model.
    intercept_ : ndarray of shape (1,)
        Intercepts of the machines.
    coef_ : ndarray or sparse matrix of shape (1, d)
        Weights of the features, for the linear kernel alone.
    n_iter_ : int
        Number of SMO steps.
    fit_status_ : int
        0 if the fit to all samples reached the tolerance, else 1.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    SVCCV : The same for classification.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow import SVRCV
    >>> X = np.linspace(0.0, 6.0, 90)[:, np.newaxis]
    >>> search = SVRCV(Cs=4, gammas=3, epsilon=0.01, cv=[(range(0, 90, 2), range(1, 90, 2))])
    >>> search.fit(X, np.sin(X[:, 0])).best_score_ > 0.99
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {**SEARCH_RULES, "epsilon": real(least=0.0)}

    best_estimator_: SVR
    search: Literal["full", "racing"]

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 10,
        cv: Any = 5,
        scoring: Any = None,
        search: Literal["full", "racing"] = "full",
        significance: float = 0.05,
        refit: bool = True,
        epsilon: float = 0.1,
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
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.search = search
        self.significance = significance
        self.refit = refit
        self.epsilon = epsilon
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
        return {"epsilon": float(self.epsilon), "nu": None, "quantile": None}

    def _sample_losses(self, y: Any, predicted: NDArray[np.float64]) -> NDArray[np.float64]:
        squares: NDArray[np.float64] = (y - predicted) ** 2
        return squares

    def _default_score(self, y: Any, predicted: NDArray[np.float64], weights: Any) -> float:
        return float(r2_score(y, predicted, sample_weight=weights))

    def _default_scoring(self) -> str:
        return "r2"

    def _estimator_at(self, C: float, gamma: float | None) -> SVR:
        return SVR(**self._shared_params(SVR), C=C, gamma="scale" if gamma is None else gamma)


# --- choice of C and gamma of support vector quantile regression: `QuantileSVRCV` ---


class QuantileSVRCV(RegressorSearch, schema="quantile-svr-cv/1"):
    """`svmarrow.svm.QuantileSVR` of one quantile with C and gamma chosen by cross-validation.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile to predict, above 0 and below 1.
    Cs : int or array-like, default=10
        Values of C, or their number: then from .1 to 1,000 at equal ratios, times the standard deviation of
        y, divided by the mean of k(x, x).
    gammas : int or array-like, default=10
        Values of gamma, or their number: then from 10^-1.5 to 10^1.5 times 1 / (n_features X.var()), at equal
        ratios, and the square roots of these for Matérn kernels. Ignored by kernels without a gamma
        ("linear", "precomputed" and functions).
    cv : int, splitter or iterable, default=5
        Folds as in `GridSearchCV`: a number of folds without shuffling, a splitter, or pairs of training and
        held-out samples.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn, the larger the better; None is the share of the pinball loss that is
        explained, `sklearn.metrics.d2_pinball_score`. It gets an estimator that has `predict` for the
        held-out samples.
    search : {"full", "racing"}, default="full"
        "full" fits every point on every fold. "racing" fits fold after fold and drops points that will not
        win, see `significance`. From 2,000 samples on it first fits all points to a quarter of the samples,
        and drops those that are far behind the best there.
    significance : float, default=0.05
        Significance level of ``search="racing"``: maximum probability, over all comparisons, of dropping a
        point whose score over all folds would exceed that of the chosen point by more than a standard error.
        Without a `scoring`, pinball losses on samples are compared in pairs, else scores of folds, from three
        folds on. A point that is dropped before the first fold was worse by a standard error, with the same
        confidence, if fitted to a quarter of the samples.
    refit : bool, default=True
        Whether to fit the best point to all samples. If False, the search cannot predict.
    adjust_intercept : bool, default=True
        Whether to add the quantile of the residuals of held-out samples to the intercept, once the model is
        fitted to all samples. A flexible model is closer to its training targets than to others; without the
        adjustment, the shares of unseen samples below the outer quantiles are too close to one half. It takes
        one more fit for each fold.
    kernel : str or callable, default="rbf"
        As in `svmarrow.SVR`.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    tol : float, default=1e-3
        Maximum violation of the optimality conditions: in units of y, as in `svmarrow.svm.QuantileSVR`, for
        the fit to all samples. Fits to the training samples of a fold end at ``10 * tol`` standard deviations
        of y (at most 0.1, or `tol`), see ``fold_tol_``, so that their time does not depend on the unit of y.
    cache_size : float or None, default=None
        Memory for kernel values in MB; None is a share of the free memory. If the 4 n^2 bytes of a kernel
        matrix do not fit, every fold keeps its own kernel rows or recomputes them.
    max_iter : int, default=-1
        Maximum number of SMO steps of a machine; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of the fit. Two thirds of it are for the search, after which the best point
        so far is fitted in the remaining time, at least half a second. Values of gamma are tried from the
        middle outwards.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. Fits run in parallel, and a large fit uses several threads. If
        ``joblib.parallel_config`` names a backend of other processes or machines, such as "dask", the values
        of gamma are distributed to them, and this is the number of threads of each.
    verbose : bool or int, default=False
        Whether to show the progress on stderr: fits done and the best score so far.

    Attributes
    ----------
    best_params_ : dict
        The chosen point: ``"C"``, and ``"gamma"`` for kernels that have one.
    best_score_ : float
        The mean score of the chosen point.
    best_index_ : int
        Its index in `cv_results_`.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C in increasing order.
    gammas_ : ndarray of shape (n_gammas,) or None
        Values of gamma in increasing order.
    cv_results_ : dict of ndarrays
        Scores and times of all points with the keys of `GridSearchCV`. Fits that were not run are NaN: a
        race drops points, some of them before the first fold. ``"n_test_scores"`` is the number of folds on
        which a point was fitted.
    n_splits_ : int
        Number of folds.
    scorer_ : callable
        The scorer of `scoring`, ``scorer_(estimator, X, y)``; `score` calls it.
    fold_tol_ : float
        Maximum violation of the optimality conditions of the fits to folds, in units of y. Their held-out
        outputs are about as accurate: to a hundredth of the standard deviation of y by default.
    stop_ : {"finished", "max_time", "callback", "interrupted"}
        Why the search ended.
    best_estimator_ : QuantileSVR
        The estimator with the best parameters, fitted to all samples; not available with ``refit=False``.
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
        0 if the fit to all samples reached the tolerance, else 1.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
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
    search: Literal["full", "racing"]
    intercept_adjustment_: float
    expansion_: KernelExpansion

    def __init__(
        self,
        quantile: float = 0.5,
        *,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 10,
        cv: Any = 5,
        scoring: Any = None,
        search: Literal["full", "racing"] = "full",
        significance: float = 0.05,
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
        self.significance = significance
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

    def _sample_losses(self, y: Any, predicted: NDArray[np.float64]) -> NDArray[np.float64]:
        q, residuals = float(self.quantile), y - predicted
        losses: NDArray[np.float64] = np.maximum(q * residuals, (q - 1.0) * residuals)
        return losses

    def _default_score(self, y: Any, predicted: NDArray[np.float64], weights: Any) -> float:
        return float(pinball_score(y, predicted, np.array([self.quantile]), sample_weight=weights))

    def _default_scoring(self) -> Any:
        return make_scorer(d2_pinball_score, alpha=float(self.quantile))

    def _estimator_at(self, C: float, gamma: float | None) -> QuantileSVR:
        return QuantileSVR(**self._shared_params(QuantileSVR), C=C, gamma="scale" if gamma is None else gamma)

    def _fit_best(self, X: Any, y: Any, sample_weight: Any, folds: list[Fold], steps: Steps) -> None:
        # The fit comes first: the adjustment corrects a solved machine, and may be left out.
        super()._fit_best(X, y, sample_weight, folds, steps)
        self.intercept_adjustment_ = 0.0
        if self.adjust_intercept:
            self.intercept_adjustment_ = self._adjustment(X, y, sample_weight, folds, steps)
            best = self.best_estimator_
            best.expansion_ = best.expansion_.replaced(
                intercepts=best.expansion_.intercepts + self.intercept_adjustment_
            )
            self.expansion_ = best.expansion_

    def _adjustment(self, X: Any, y: Any, sample_weight: Any, folds: list[Fold], steps: Steps) -> float:
        """Returns the constant that minimizes the pinball loss of held-out samples if added to the
        predictions.
        """
        residuals, weights = [], []
        for number, fold in enumerate(folds):
            if steps.remaining == 0.0:
                warn_caller(
                    f"max_time={self.max_time:g} was over before the intercept was adjusted on all folds",
                    ConvergenceWarning,
                )
                break
            columns = fold.train if self._is_precomputed() else slice(None)
            max_time = steps.first_part(1.0 / (len(folds) - number)).remaining
            rows = X[fold.train][:, columns]
            estimator = self._fit_estimator(max_time, rows, y[fold.train], fold.weights)
            residuals.append(y[fold.test] - estimator.predict(X[fold.test][:, columns]))
            weights.append(np.ones(fold.test.size) if sample_weight is None else sample_weight[fold.test])
        weight = np.concatenate([np.empty(0), *weights])
        if not weight.any():
            return 0.0
        quantile = float(self.quantile)
        return float(np.quantile(np.concatenate(residuals), quantile, weights=weight, method="inverted_cdf"))
