"""Regularized least-squares regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from svmarrow.least_squares._base import SquareLossRegressor
from svmarrow.least_squares._exact import ExactLeastSquares

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from svmarrow._support.kernel_function import KernelFunction

__all__ = ["RLSRegressor"]


class RLSRegressor(SquareLossRegressor, ExactLeastSquares):
    """Regularized least-squares regression, also known as kernel ridge regression (Rifkin 2002, chapter 3).

    Minimises sum_i w_i (y_i - f(x_i))^2 + alpha ||f||^2: (K + alpha W^-1) c = y, one factorisation for all
    outputs.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty, as in ``KernelRidge``; lambda n in the thesis.
    alphas : array-like of float or None, default=None
        Several penalties: the one with the least leave-one-out error is taken, `alpha` is not used. Each
        costs a factorisation and its inverse, the kernel matrix is computed once. One eigendecomposition
        serves all where there are at most 1,500 rows, at most 100 for each alpha, and a built-in kernel.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "precomputed"} or callable
        The default is "rbf". With "precomputed", `fit` takes the (n, n) kernel matrix and prediction an
        (n_test, n) one. A function ``k(X_block, Y_block)`` returns the kernel values of two blocks of rows.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of "poly", "rbf", "sigmoid", "laplacian" and "chi2"; "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalised.
    leave_one_out : bool or "auto", default="auto"
        Whether exact leave-one-out values are computed, what each row would be given had it not been there,
        which costs as much as the factorisation. "auto": where they are to choose among ``alphas``, else not.
        True is not for "cg", which has no factor to read them from.
    solver : {"cholesky", "cg"}, default="cholesky"
        "cholesky" takes n^2 numbers of memory. "cg", conjugate gradients with a low-rank preconditioner,
        never stores the kernel matrix: for built-in kernels, and an alpha above 0.
    tol : float, default=1e-6
        For "cg": residual relative to the targets.
    max_iter : int, default=-1
        Maximum number of iterations of "cg"; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of "cg", which begins no further iteration then.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The model: all training rows, coefficients (n, n_outputs), intercepts.
    dual_coef_ : ndarray of shape (n_outputs, n)
        The coefficients, for one output too: as ``SVC`` and ``SVR`` have them.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs; zeros without ``fit_intercept``.
    alpha_ : float
        The alpha of the model.
    solver_ : str
        ``solver``, or "eigh" where one eigendecomposition served all of ``alphas``.
    loo_errors_ : ndarray of shape (n_alphas,)
        With ``alphas``: the leave-one-out error of each.
    gcv_path_ : ndarray of shape (n_alphas,)
        With ``alphas``: the mean of the outputs' generalised cross-validation scores.
    residual_ : float
        With "cg": the largest relative residual of an output, computed from the solution.
    n_iter_ : int
        Number of iterations of "cg"; otherwise 1.
    loo_prediction_ : ndarray of shape (n,) or (n, n_outputs)
        What each training row would be given had it been left out; with ``leave_one_out``.
    loo_error_ : float
        The mean squared error of those values.
    gcv_ : ndarray of shape (n_outputs,)
        Generalised cross-validation scores; with ``leave_one_out``.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow import RLSRegressor
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = RLSRegressor(alpha=0.01, leave_one_out=True).fit(X, np.sin(X[:, 0]))
    >>> bool(model.loo_error_ < 1e-4)
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        alphas: ArrayLike | None = None,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = False,
        leave_one_out: bool | Literal["auto"] = "auto",
        solver: Literal["cholesky", "cg"] = "cholesky",
        tol: float = 1e-6,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.alpha = alpha
        self.alphas = alphas
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.leave_one_out = leave_one_out
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
