"""Support vector quantile regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.metrics import d2_pinball_score

from svmarrow import _core
from svmarrow._support.parameters import Rule
from svmarrow.svm._base import COST, SOLVER_RULES
from svmarrow.svm.regression import KernelRegressor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.kernel_function import KernelFunction

__all__ = ["QUANTILE", "QuantileSVR", "pinball_score"]


def _are_quantiles(value: Any) -> bool:
    if isinstance(value, (bool, str)):
        return False
    try:
        quantiles = np.asarray(value, dtype=np.float64)
    except Exception:  # the value's own methods may raise anything  # noqa: BLE001
        return False
    return quantiles.ndim <= 1 and quantiles.size > 0 and bool(((quantiles > 0.0) & (quantiles < 1.0)).all())


QUANTILE = Rule("a number, or a list of numbers, above 0 and below 1", _are_quantiles)


def pinball_score(y: Any, predicted: Any, quantiles: NDArray[np.float64], sample_weight: Any = None) -> float:
    """Returns the mean over quantiles of the share of the pinball loss that predictions explain."""
    columns = np.reshape(predicted, (-1, quantiles.size)).T
    scores = [
        d2_pinball_score(y, column, sample_weight=sample_weight, alpha=float(q))
        for q, column in zip(quantiles, columns, strict=True)
    ]
    return float(np.mean(scores))


class QuantileSVR(KernelRegressor):
    """Support vector quantile regression: functions below which given shares of the targets lie.

    For a quantile q, minimizes ``1/2 ||w||^2 + sum_i C_i L_q(y_i - w'phi(x_i) - b)`` with the pinball loss
    ``L_q(r) = max(q r, (q - 1) r)`` (Koenker and Bassett 1978; Takeuchi, Le, Sears and Smola 2006). At most a
    share q of the training targets lies below the function and at most 1 - q above it. Several quantiles are
    fitted together with shared kernel rows, each by its own machine, so that functions of two quantiles
    may cross where samples are few.

    Parameters
    ----------
    quantile : float or array-like of float, default=0.5
        The quantiles to predict, each above 0 and below 1. With a list, `predict` returns a column for each.
    C : float, default=1.0
        Weight of the loss; multiplied for each sample by its sample weight. inf allows no loss (it is
        replaced by 1e15); if no function passes through all targets, such a fit only ends by `max_iter` or
        `max_time`.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed"; `KernelExpansion` has the formulas. With "precomputed", `fit` takes the symmetric
        (n, n) kernel matrix and prediction an (n_test, n) one. A function ``k(X_block, Y_block)`` returns the
        kernel values of two blocks of samples, (samples of the first, samples of the second).
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of all kernels but "linear" and "precomputed"; "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features, and for Matérn kernels their square roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    shrinking : bool, default=True
        Whether to remove samples at their bounds from the problem until the end. It changes the time, not the
        result, and has no effect if kernel rows are cached (kernels of many features on larger problems).
    tol : float, default=1e-3
        Maximum violation of the optimality conditions, in units of the targets.
    cache_size : float or None, default=None
        Memory for kernel rows in MB; None is a share of the free memory.
    warm_start : bool, default=False
        Whether `fit` reuses the previous solution as the starting point, after an early end or along a path
        of C. X must have the same samples in the same order, targets may differ. Coefficients outside new
        bounds are clipped. A fit with another shape or number of quantiles starts from zero. Ctrl-C then
        keeps the solution so far before it raises `KeyboardInterrupt`.
    max_iter : int, default=-1
        Maximum number of SMO steps of a machine; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of the fit. A fit that ends early is a usable model, and warns.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles,)
        The quantiles of the outputs.
    expansion_ : KernelExpansion
        The model: support vectors, coefficients (n_SV, n_quantiles), intercepts.
    certificate_ : Certificate
        Objectives, duality gap, violation, counts and cost of the fit, a machine for each quantile.
    support_ : ndarray of shape (n_SV,), int32
        Indices of the support vectors of any quantile in the training data.
    n_support_ : ndarray of shape (1,), int32
        Number of support vectors.
    support_vectors_ : ndarray or sparse matrix of shape (n_SV, d)
        Support vectors, as in the training data; empty for the precomputed kernel.
    dual_coef_ : ndarray or sparse matrix of shape (n_quantiles, n_SV)
        Signed coefficients.
    intercept_ : ndarray of shape (n_quantiles,)
        Intercepts of the machines.
    coef_ : ndarray or sparse matrix of shape (n_quantiles, d)
        Weights of the features, only for the linear kernel.
    n_iter_ : int
        Number of SMO steps.
    fit_status_ : int
        0 if every machine reached the tolerance, else 1.
    shape_fit_ : tuple of int
        Shape of the training data.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    svmarrow.model_selection.QuantileSVRCV : C and gamma chosen by cross-validation.
    svmarrow.SVR : Regression with a tube within which deviations cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow.svm import QuantileSVR
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(0, 6, (400, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * random.standard_normal(400)
    >>> model = QuantileSVR([0.1, 0.9], C=10).fit(X, y)
    >>> low, high = model.predict(X).T
    >>> bool(0.75 < np.mean((low <= y) & (y <= high)) < 0.85)
    True
    """

    quantiles_: NDArray[np.float64]

    _rules: ClassVar[Mapping[str, Rule]] = {"quantile": QUANTILE, "C": COST, **SOLVER_RULES}

    def __init__(
        self,
        quantile: float | ArrayLike = 0.5,
        *,
        C: float = 1.0,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float | None = None,
        warm_start: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.quantile = quantile
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the pinball loss that the model explains, D^2, averaged over quantiles.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Test samples; their kernel values with the training samples for the precomputed kernel.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the samples.

        Returns
        -------
        float
            1 for predictions without loss, 0 for the quantiles of y as constants, negative below that; see
            `sklearn.metrics.d2_pinball_score`.
        """
        return pinball_score(y, self.predict(X), self.quantiles_, sample_weight)

    def _machine_sizes(self, y: Any, n: int) -> list[int]:  # noqa: ARG002 - used by classifiers
        return [n] * np.size(self.quantile)

    def _solver(
        self, targets: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> Callable[[Any, Any, Any], Any]:
        self.quantiles_ = np.array(self.quantile, dtype=np.float64, ndmin=1)
        self._single = np.ndim(self.quantile) == 0
        quantiles = self.quantiles_.tolist()
        return lambda rows, kernel, solver: _core.fit_quantile_svr(
            rows, kernel, targets, upper, quantiles, solver
        )
