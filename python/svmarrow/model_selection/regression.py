"""Choosing C and gamma of support vector regression: `SVRCV`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.metrics import r2_score

from svmarrow._support.parameters import real
from svmarrow.model_selection._held_out import NumberAnswers
from svmarrow.model_selection._search import SEARCH_RULES, Search
from svmarrow.models.output_mixins import RegressorOutputMixin
from svmarrow.svm._fitted import CertifiedMachine
from svmarrow.svm.regression import SVR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.kernel_function import KernelFunction
    from svmarrow._support.parameters import Rule
    from svmarrow.model_selection._judging import Part

__all__ = ["SVRCV", "RegressorSearch"]


class RegressorSearch(RegressorOutputMixin, CertifiedMachine, Search):
    """Base of the searches for C and gamma of a support vector regressor."""

    def _target(
        self,
        y: Any,
        weights: NDArray[np.float64],  # noqa: ARG002 - what classification needs
    ) -> NDArray[np.float64]:
        return np.ascontiguousarray(y, dtype=np.float64)

    def _cost_unit(self, target: NDArray[np.float64]) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            spread = float(target.std())
        return spread if np.isfinite(spread) and spread > 0.0 else 1.0

    def _weights_of(
        self,
        target: Any,  # noqa: ARG002 - what classification needs
        train: NDArray[np.int64],  # noqa: ARG002
        own: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        return own

    def _task(self, target: Any) -> Any:
        return {"targets": target, "upper": np.ones(target.size), **self._loss()}

    def _loss(self) -> dict[str, float | None]:
        """Returns the parameters of the loss."""
        raise NotImplementedError

    def _answers(
        self,
        target: Any,  # noqa: ARG002 - what classification needs
        part: Part,  # noqa: ARG002
        outputs: NDArray[np.float64],
    ) -> NumberAnswers:
        return NumberAnswers(outputs)

    def _machine_of(self, kind: type[Any], C: float, gamma: float | None) -> Any:
        own = set(self.get_params(deep=False))
        shared = {name: getattr(self, name) for name in kind().get_params() if name in own}
        shared.pop("max_time", None)
        return kind(**shared, C=C, gamma="scale" if gamma is None else gamma)


class SVRCV(RegressorSearch):
    """`svmarrow.SVR` with C and gamma chosen by cross-validation, as one job; see `SVCCV`.

    Parameters
    ----------
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
        A scorer of scikit-learn, the larger the better; None is R^2. It gets an estimator that answers for
        the held-out rows with `predict`.
    search : {"full", "racing"}, default="full"
        "full" tries every point on every fold. "racing" tries them on one fold after the other, and drops
        those that will not win, see `alpha`. From 2,000 rows on it first tries all points with machines of a
        quarter of the rows, and drops those that are far behind the best there.
    alpha : float, default=0.05
        For ``search="racing"``: most probability that a point is dropped which would have had a better score
        over all folds than the one that is chosen, by more than a standard error; all comparisons together.
        Where the score is R^2 squared errors on rows are compared in pairs, else scores of folds, from three
        folds on. A point that is dropped before the first fold was worse by a standard error, with the same
        confidence, with machines of a quarter of the rows.
    refit : bool, default=True
        Whether the best is fitted to all rows. Without there is no prediction.
    epsilon : float, default=0.1
        Half the width of the tube within which a deviation costs nothing.
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
    best_estimator_ : SVR
        The machine with the best parameters, fitted to all samples; not available with ``refit=False``.
    expansion_ : KernelExpansion
        The model: support vectors, coefficients (n_SV, n_outputs), intercepts.
    certificate_ : Certificate
        Its certificate.
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

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 10,
        cv: Any = 5,
        scoring: Any = None,
        search: Literal["full", "racing"] = "full",
        alpha: float = 0.05,
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
        self.alpha = alpha
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

    def _losses(
        self,
        target: Any,  # noqa: ARG002 - what classification needs
        part: Part,  # noqa: ARG002
        y: Any,
        outputs: NDArray[np.float64],
        weights: Any,
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        predicted = outputs[:, :, 0]
        squares = (y - predicted) ** 2
        if weights is not None:
            squares = squares * weights
        scores = [float(r2_score(y, one, sample_weight=weights)) for one in predicted]
        return squares.astype(np.float32), np.array(scores)

    def _default_scoring(self) -> str:
        return "r2"

    def _machine(self, C: float, gamma: float | None) -> SVR:
        machine: SVR = self._machine_of(SVR, C, gamma)
        return machine
