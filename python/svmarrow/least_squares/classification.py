"""Regularized least-squares classification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from svmarrow._support.rows import sample_weights
from svmarrow.least_squares._base import SquareLossClassifier
from svmarrow.least_squares._exact import EXACT_RULES, ExactLeastSquares

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.kernel_function import KernelFunction
    from svmarrow.models.columns import Columns

__all__ = ["RLSClassifier"]


class RLSClassifier(SquareLossClassifier, ExactLeastSquares):
    """Regularized least-squares classification (Rifkin 2002, chapter 3).

    Minimises sum_i w_i (y_i - f(x_i))^2 + alpha ||f||^2 for targets -1 and +1, one output for two classes,
    else one against the rest: (K + alpha W^-1) c = y, one factorisation for all classes.

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
        Whether each output gets a constant that is not penalised.
    leave_one_out : bool, default=True
        Whether exact leave-one-out values are computed, which costs as much as the factorisation; must be
        False with "cg".
    solver : {"cholesky", "cg"}, default="cholesky"
        "cholesky" takes n^2 numbers of memory. "cg", conjugate gradients with a low-rank preconditioner,
        never stores the kernel matrix: for built-in kernels, and an alpha above 0.
    tol : float, default=1e-6
        For "cg": residual relative to the targets.
    max_iter : int, default=-1
        For "cg": most products with the kernel matrix; -1 is no limit.
    max_time : float or None, default=None
        For "cg": seconds after which no further product is begun.
    n_jobs : int or None, default=None
        Threads, in `fit` and in prediction. None is all cores that this process may use, within the limits of
        joblib and ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    expansion_ : KernelExpansion
        The model: all training rows, coefficients (n, n_outputs), intercepts.
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
        With "cg": products with the kernel matrix; else 1.
    loo_decision_ : ndarray of shape (n,) or (n, n_classes)
        What `decision_function` would say of each training row had it been left out; with ``leave_one_out``.
    loo_error_ : float
        Share of the rows that would then be misclassified.
    loo_bound_ : ndarray of shape (n_outputs,)
        Upper bounds of the leave-one-out error of each output that need no inverse (equation 3.59); without
        ``fit_intercept``.
    gcv_ : ndarray of shape (n_outputs,)
        Generalised cross-validation scores; with ``leave_one_out``.
    n_features_in_ : int
        Columns of the training data.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, where X had names that are all strings.

    See Also
    --------
    svmarrow.SVC : The hinge loss, which leaves most rows out of the model.
    svmarrow.compress : A shorter expansion with nearly the same outputs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import RLSClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RLSClassifier(alpha=0.1).fit(X, y)
    >>> bool(model.score(X, y) > 0.95 and model.loo_error_ < 0.1)
    True
    """

    loo_decision_: NDArray[np.float64]
    loo_error_: float
    loo_bound_: NDArray[np.float64]

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
        leave_one_out: bool = True,
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

    def _norm_weight(self, n: int) -> float:
        """lambda: alpha is the weight against the sum of the losses."""
        return float(self.alpha) / n

    def _row_coefficients(
        self,
        fitted: Columns,  # noqa: ARG002 - what support vector machines need
        signs: NDArray[np.int8],
        outputs: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], float]:
        """(K + alpha I) c = y where the machine saw the row, see `svmarrow.models.columns.BoundedMachine`."""
        return np.where(signs != 0, (signs - outputs) / self.alpha, 0.0), 0.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the system.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows; the (n, n) kernel matrix for the precomputed kernel.
        y : array-like of shape (n,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights w of the squares, and of the rows in leave-one-out errors; None is 1 for each. Rows of
            weight 0 take no part. Not for "cg".

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, a single class, and a system that is not
            positive definite: raise alpha.
        MemoryError
            If the kernel matrix does not fit in the free memory.
        KeyboardInterrupt
            On Ctrl-C; the estimator is then as it was before the call.
        """
        X, y = self._checked_rows(EXACT_RULES, X, y)
        targets = self._targets(y)
        weights = sample_weights(sample_weight, X.shape[0])
        fit = self._solve(X, targets, weights, by_rate=True)
        if fit.loo is not None:
            self.loo_decision_ = self._decision_shape(fit.loo)
            self.loo_error_ = self._error_rate(fit.loo, targets, weights)
        if not self.fit_intercept:
            w = np.ones(len(targets)) if weights is None else weights
            counts = w > 0.0
            alphas = (self.alpha_ / w[counts])[:, np.newaxis]
            own = fit.diagonal[counts, np.newaxis]
            margins = 1.0 - alphas * targets[counts] * fit.coef[counts]
            self.loo_bound_ = np.average(margins <= own / (own + alphas), axis=0, weights=w[counts])
        return self
