"""Linear least squares: primal, dual, or conjugate gradients, by shape and density."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.parameters import (
    CLASS_WEIGHT,
    THREADS,
    VERBOSE,
    boolean,
    consistent,
    one_of,
    real,
    refuse,
)
from svmarrow._support.progress import progress
from svmarrow._support.rows import core_rows, product, threads
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.expansion.points import bytes_of_sums
from svmarrow.least_squares._base import (
    PENALTIES,
    SquareLossClassifier,
    SquareLossRegressor,
    with_chosen_penalty,
)
from svmarrow.least_squares._exact import ITERATION_RULES, refuse_time, stopping, warn_unconverged
from svmarrow.least_squares.targets import (
    bytes_of_system,
    centre_of,
    left_out,
    problem,
    solve,
    translated,
)
from svmarrow.models.machine import KernelMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.parameters import Rule
    from svmarrow.expansion.kernel_expansion import KernelFunction

    #: Slopes, intercepts, and outputs of the models without each sample where they are needed.
    _Solution: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]

__all__ = ["LinearRLSClassifier", "LinearRLSRegressor"]

LINEAR_RULES = {
    "alpha": real(least=0.0),
    "alphas": PENALTIES,
    "solver": one_of("auto", "primal", "dual", "cg"),
    "fit_intercept": boolean,
    "leave_one_out": boolean,
    **ITERATION_RULES,
    "n_jobs": THREADS,
    "verbose": VERBOSE,
}
#: Sides of the largest systems that are factored where conjugate gradients would do: dense rows, sparse rows.
_DIRECT, _DIRECT_SPARSE = 3000, 300
_LINEAR = ("linear", 1.0, 0.0, 3)


class LinearLeastSquares(KernelMachine):
    """Base class of both estimators."""

    _rules: ClassVar[Mapping[str, Rule]] = LINEAR_RULES
    kernel: str | KernelFunction = "linear"
    verbose: bool | int
    alpha: float
    alphas: ArrayLike | None
    solver: Literal["auto", "primal", "dual", "cg"]
    fit_intercept: bool
    leave_one_out: bool
    tol: float
    max_iter: int
    max_time: float | None

    alpha_: float
    loo_errors_: NDArray[np.float64]
    solver_: str
    coef_: NDArray[np.float64]
    residual_: float
    n_iter_: int
    expansion_: KernelExpansion

    def _choice(self, X: Any) -> str:
        """Returns the solver for these rows."""
        if self.solver != "auto":
            return self.solver
        n, d = X.shape
        side = min(n, d)
        # Some hundred products of two multiply-adds an entry, or a factorization.
        small = side <= (_DIRECT_SPARSE if sp.issparse(X) else _DIRECT)
        timed = self.max_time is not None
        if self._needs_left_out() or (small and not timed) or self.alpha == 0.0:
            return "primal" if d <= n else "dual"
        return "cg"

    def _needs_left_out(self) -> bool:
        return bool(self.leave_one_out) or self.alphas is not None

    def _bytes(self, X: Any, outputs: int) -> int:
        n, d = int(X.shape[0]), int(X.shape[1])
        solver, left_out = self._choice(X), self._needs_left_out()
        entries = int(X.nnz) if sp.issparse(X) else n * d
        centred = (16 if sp.issparse(X) else 8) * entries if self.fit_intercept else 0
        if solver == "dual":
            system = bytes_of_system(X, outputs, leave_one_out=left_out)
            return centred + system + 24 * d * outputs
        if solver == "cg":
            return centred + 12 * entries + 8 * (d * (4 * outputs + 2) + n * (12 * outputs + 4))
        # The unit vectors are points, and packed.
        return centred + bytes_of_sums(n, d, d, outputs, with_hat=left_out)

    def _spread(self, X: Any, counted: NDArray[np.intp]) -> None:
        """Nothing depends on the number of the rows."""

    def _remedy(self) -> str:
        return "use solver='cg' with leave_one_out=False, or fewer columns"

    def _fit(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        self.n_iter_ = 1
        self.solver_ = self._choice(X)
        refuse_time(self.max_time, self.solver_)
        if self.solver_ == "cg" and self.leave_one_out:
            raise refuse("leave_one_out", True, "False for solver='cg'")
        if self.solver_ == "cg" and self.alphas is not None:
            raise refuse("alphas", self.alphas, "None for solver='cg'")
        kind = np.float64 if X.dtype == np.float64 else np.float32
        centre = np.zeros(X.shape[1])
        if self.fit_intercept:
            centre = centre_of(X)
            X = translated(X, centre)
        solve_for = self._solver(X, targets, weights)

        def fit(alpha: float) -> NDArray[np.float64] | None:
            self.alpha_ = alpha
            slopes, intercepts, left = solve_for(alpha)
            self._take(slopes, intercepts, kind, centre)
            return left

        if self.alphas is None:
            return fit(float(self.alpha))
        return with_chosen_penalty(self, cast("Any", fit), targets, weights)

    def _take(
        self,
        slopes: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        kind: Any,
        centre: NDArray[np.float64],
    ) -> None:
        """Sets the model of slopes (d, q) for samples less their center."""
        rows = np.ascontiguousarray(np.asarray(slopes).T)
        # One vector an output: a prediction costs d q, however many rows there were.
        vectors = rows.astype(kind)
        intercepts = intercepts - product(vectors.astype(np.float64), centre)
        self.expansion_ = KernelExpansion(vectors, np.eye(intercepts.size), intercepts, *_LINEAR)
        self.coef_ = rows

    def _solver(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> Callable[[float], _Solution]:
        """Returns the function from a penalty to slopes (d, q), intercepts and outputs left out (n, q)."""
        if self.solver_ == "primal":
            return self._primal(X, targets, weights)
        if self.solver_ == "cg":
            return lambda alpha: (*self._by_conjugate_gradients(X, targets, weights, alpha), None)

        def dual(alpha: float) -> _Solution:
            fit = solve(
                X,
                targets,
                alpha,
                _LINEAR,
                fit_intercept=bool(self.fit_intercept),
                leave_one_out=self._needs_left_out(),
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                weights=weights,
            )
            return product(X.T, fit.coef), fit.expansion.intercepts, fit.loo

        return dual

    def _primal(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> Callable[[float], _Solution]:
        """(X'WX + alpha I) w = X'Wy: coefficients at the unit vectors, whose kernel matrix is I."""
        units = np.eye(X.shape[1])
        with progress(self.verbose) as reporter:
            sums = _core.low_rank_sums(
                core_rows(X),
                (np.ascontiguousarray(targets), weights),
                (units, _LINEAR),
                None,
                reporter.callback,
                threads(self.n_jobs),
            )

        def primal(alpha: float) -> _Solution:
            with progress(self.verbose) as reporter:
                solved = _core.low_rank_solve(
                    {
                        "points": (units, _LINEAR),
                        "sums": sums,
                        "alpha": alpha,
                        "fit_intercept": bool(self.fit_intercept),
                    },
                    core_rows(X) if self._needs_left_out() else None,
                    reporter.callback,
                    threads(self.n_jobs),
                )
            slopes, intercepts, hat = solved["coefficients"], solved["intercepts"], solved["hat"]
            if hat is None:
                return slopes, intercepts, None
            return slopes, intercepts, left_out(targets, product(X, slopes) + intercepts, hat, weights)

        return primal

    def _by_conjugate_gradients(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None, alpha: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        with progress(self.verbose) as reporter:
            solution = _core.linear_least_squares_cg(
                problem(core_rows(X), targets, _LINEAR, weights, fit_intercept=bool(self.fit_intercept)),
                alpha,
                stopping(self),
                reporter.callback,
                threads(self.n_jobs),
            )
        self.residual_, self.n_iter_ = solution["residual"], solution["products"]
        warn_unconverged(self, solution["stop"], solution["residual"], float(self.tol))
        return solution["weights"], solution["intercepts"]

    @property
    @consistent
    def dual_coef_(self) -> NDArray[np.float64]:
        """Not available: `coef_` (n_outputs, d) are the weights of the features."""
        check_is_fitted(self)
        raise AttributeError("dual_coef_ is not kept by linear least squares: see coef_")


class LinearRLSClassifier(SquareLossClassifier, LinearLeastSquares, schema="linear-rls-classifier/1"):
    """Regularized least-squares classification with the linear kernel (Rifkin 2002, section 3.6).

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty; lambda n in Rifkin (2002).
    alphas : array-like of float or None, default=None
        Several penalties: the one with the least leave-one-out error is taken, `alpha` is not used; not with
        "cg". Each costs a factorization and a pass over the samples.
    solver : {"auto", "primal", "dual", "cg"}, default="auto"
        "primal" factors X'X + alpha I (d, d), "dual" X X' + alpha I (n, n), "cg" takes conjugate gradients on
        X (X' p), which is for wide sparse samples and an alpha above 0. "auto" compares their costs.
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized.
    leave_one_out : bool, default=False
        Whether exact leave-one-out values are computed; not with "cg".
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply those of the samples; "balanced" is
        n / (n_classes * count of the class), samples counted by their weights.
    tol : float, default=1e-6
        For "cg": residual relative to the targets.
    max_iter : int, default=-1
        Maximum number of iterations of "cg"; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of "cg", which begins no further iteration then; "auto" takes "cg" if it is
        given.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    loo_decision_ : ndarray of shape (n,) or (n, n_classes)
        What `decision_function` would say of each training sample had it been left out; with
        ``leave_one_out``.
    loo_error_ : float
        Share of the samples that would then be misclassified.
    coef_ : ndarray of shape (n_outputs, d)
        Weights of the features.
    alpha_ : float
        The alpha of the model.
    loo_errors_ : ndarray of shape (n_alphas,)
        With ``alphas``: the leave-one-out error of each.
    solver_ : str
        The solver that was used.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs; zeros without ``fit_intercept``.
    expansion_ : KernelExpansion
        The model: one vector an output, its weights.
    residual_ : float
        With "cg": the largest relative residual of an output, computed from the solution.
    n_iter_ : int
        Number of iterations of "cg"; otherwise 1.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from svmarrow.least_squares import LinearRLSClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearRLSClassifier(fit_intercept=True, leave_one_out=True).fit(X, y)
    >>> model.solver_, bool(model.loo_error_ < 0.06)
    ('primal', True)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {**LINEAR_RULES, "class_weight": CLASS_WEIGHT}
    solver: Literal["auto", "primal", "dual", "cg"]
    class_weight: Mapping[Any, float] | Literal["balanced"] | None

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        alphas: ArrayLike | None = None,
        solver: Literal["auto", "primal", "dual", "cg"] = "auto",
        fit_intercept: bool = False,
        leave_one_out: bool = False,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        tol: float = 1e-6,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.alpha = alpha
        self.alphas = alphas
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.leave_one_out = leave_one_out
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose


class LinearRLSRegressor(SquareLossRegressor, LinearLeastSquares, schema="linear-rls-regressor/1"):
    """Regularized least-squares regression with the linear kernel (Rifkin 2002, section 3.6).

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty; lambda n in Rifkin (2002).
    alphas : array-like of float or None, default=None
        Several penalties: the one with the least leave-one-out error is taken, `alpha` is not used; not with
        "cg". Each costs a factorization and a pass over the samples.
    solver : {"auto", "primal", "dual", "cg"}, default="auto"
        "primal" factors X'X + alpha I (d, d), "dual" X X' + alpha I (n, n), "cg" takes conjugate gradients on
        X (X' p), which is for wide sparse samples and an alpha above 0. "auto" compares their costs.
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized.
    leave_one_out : bool, default=False
        Whether exact leave-one-out values are computed; not with "cg".
    tol : float, default=1e-6
        For "cg": residual relative to the targets.
    max_iter : int, default=-1
        Maximum number of iterations of "cg"; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of "cg", which begins no further iteration then; "auto" takes "cg" if it is
        given.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    loo_prediction_ : ndarray of shape (n,) or (n, n_outputs)
        What each training sample would be given had it been left out; with ``leave_one_out``.
    loo_error_ : float
        The mean squared error of those values.
    coef_ : ndarray of shape (n_outputs, d)
        Weights of the features.
    alpha_ : float
        The alpha of the model.
    loo_errors_ : ndarray of shape (n_alphas,)
        With ``alphas``: the leave-one-out error of each.
    solver_ : str
        The solver that was used.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs; zeros without ``fit_intercept``.
    expansion_ : KernelExpansion
        The model: one vector an output, its weights.
    residual_ : float
        With "cg": the largest relative residual of an output, computed from the solution.
    n_iter_ : int
        Number of iterations of "cg"; otherwise 1.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> from svmarrow.least_squares import LinearRLSRegressor
    >>> model = LinearRLSRegressor(1e-9, fit_intercept=True).fit([[0.0], [1.0], [2.0]], [1, 3, 5])
    >>> model.predict([[3.0]]).round(6)
    array([7.])
    """

    solver: Literal["auto", "primal", "dual", "cg"]

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        alphas: ArrayLike | None = None,
        solver: Literal["auto", "primal", "dual", "cg"] = "auto",
        fit_intercept: bool = False,
        leave_one_out: bool = False,
        tol: float = 1e-6,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.alpha = alpha
        self.alphas = alphas
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.leave_one_out = leave_one_out
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
