"""Support vector machines without classes: regression and novelty detection.

Regression is epsilon-SVR, nu-SVR and quantile regression; novelty detection is the one-class machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.metrics import d2_pinball_score

from svmarrow import _core
from svmarrow._support.parameters import Rule, atomic_fit, real
from svmarrow._support.progress import fitting
from svmarrow.models.outputs import OutlierOutputMixin, RegressorOutputMixin
from svmarrow.svm._base import COST, SOLVER_RULES, SupportVectorMachine, cost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelFunction
    from svmarrow.svm._base import Training

__all__ = ["QUANTILE", "SVR", "NuSVR", "OneClassSVM", "QuantileSVR", "pinball_score"]


class KernelRegressor(RegressorOutputMixin, SupportVectorMachine):
    """Base class of the support vector regressors."""

    C: float

    def _solver(
        self, targets: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> Callable[[Any, Any, Any], Any]:
        """Returns ``fit(rows, kernel, solver)``, which solves for these targets with the C of each sample."""
        epsilon, nu = self._tube()
        task: Any = {"targets": targets, "upper": upper, "epsilon": epsilon, "nu": nu, "quantile": None}
        return lambda rows, kernel, solver: _core.fit_svr(rows, kernel, task, solver)

    def _tube(self) -> tuple[float, float | None]:
        """Returns half the width of the tube, and nu if the width is optimized."""
        raise NotImplementedError

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training samples; kernel values between them for the precomputed kernel.
        y : array-like of shape (n_samples,)
            Targets, finite numbers.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each sample, which multiplies C. Samples of weight 0 are ignored; negative weights,
            which scikit-learn treats as 0, raise an error, since they are nearly always a mistake.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter is outside its range, the data contain NaN or infinity, or lengths differ.
        MemoryError
            If the free memory is too small for the fit with the smallest cache.
        KeyboardInterrupt
            On Ctrl-C, within a second; the estimator is then unchanged, or has the solution so far with
            ``warm_start=True``.

        Warns
        -----
        ConvergenceWarning
            If a machine ended before the tolerance was reached.
        """
        with fitting(self, X, y, sample_weight):
            X, y = self._validated(X, y, with_y=True)
            try:
                y = y.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(f"y must contain numbers: {error}") from None
            training = self._training(X, self._weights(sample_weight, X.shape[0]))
            targets = training.of_used(y)
            fit = self._solver(targets, training.weights * cost(self.C))
            return self._fit_machines(training, self._machine_sizes(targets, targets.size), fit)


class SVR(KernelRegressor, schema="svr/1"):
    """Support vector regression: deviations up to epsilon cost nothing, larger ones their excess.

    Minimizes ``1/2 ||w||^2 + sum_i C_i max(0, |y_i - w'phi(x_i) - b| - epsilon)``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; multiplied for each sample by its sample weight. inf allows no loss (it is
        replaced by 1e15); if no function stays within the tube, such a fit only ends by `max_iter` or
        `max_time`.
    epsilon : float, default=0.1
        Half the width of the tube within which a deviation costs nothing.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed"; `KernelExpansion` has the formulas. With "precomputed", `fit` takes the symmetric (n,
        n) kernel matrix, and prediction an (n_test, n) one or the columns of the vectors alone. A function
        ``k(A, B)`` returns the kernel values of two blocks of samples, (n_samples_A, n_samples_B). Then
        samples may be objects: strings, series of different lengths (`svmarrow.kernels` has kernels of both),
        or of any class.
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
        of C or epsilon. X must have the same samples in the same order, targets may differ. Coefficients
        outside new bounds are clipped. A fit with another shape starts from zero; other samples of the same
        number start from a poor solution. Ctrl-C then keeps the solution so far before it raises
        `KeyboardInterrupt`.
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
    expansion_ : KernelExpansion
        The model: support vectors, coefficients (n_SV, n_outputs), intercepts.
    certificate_ : Certificate
        Objectives, duality gap, violation, counts and cost of the fit.
    support_ : ndarray of shape (n_SV,), int32
        Indices of the support vectors in the training data.
    n_support_ : ndarray of shape (1,), int32
        Number of support vectors.
    support_vectors_ : ndarray or sparse matrix of shape (n_SV, d)
        Support vectors, as in the training data; empty for the precomputed kernel.
    dual_coef_ : ndarray or sparse matrix of shape (1, n_SV)
        Signed coefficients.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the machines.
    coef_ : ndarray or sparse matrix of shape (n_outputs, d)
        Weights of the features, only for the linear kernel.
    n_iter_ : int
        Number of SMO steps.
    fit_status_ : int
        0 if the machine reached the tolerance, else 1.
    shape_fit_ : tuple of int
        Shape of the training data.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow import SVR
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> SVR(C=10).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.97
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "C": COST,
        "epsilon": real(least=0.0),
        **SOLVER_RULES,
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
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
        self.C = C
        self.epsilon = epsilon
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

    def _tube(self) -> tuple[float, float | None]:
        return float(self.epsilon), None


class NuSVR(KernelRegressor, schema="nu-svr/1"):
    """Support vector regression whose parameter bounds the share of samples outside the tube.

    nu is an upper bound of the share of samples outside the tube and a lower bound of the share of support
    vectors; `epsilon_` is the resulting half width.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1].
    C : float, default=1.0
        Weight of the loss; multiplied for each sample by its sample weight.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed"; `KernelExpansion` has the formulas. With "precomputed", `fit` takes the symmetric (n,
        n) kernel matrix, and prediction an (n_test, n) one or the columns of the vectors alone. A function
        ``k(A, B)`` returns the kernel values of two blocks of samples, (n_samples_A, n_samples_B). Then
        samples may be objects: strings, series of different lengths (`svmarrow.kernels` has kernels of both),
        or of any class.
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
        of nu or C. X must have the same samples in the same order, targets may differ. Coefficients outside
        new bounds are clipped. A fit with another shape starts from zero; other samples of the same number
        start from a poor solution. Ctrl-C then keeps the solution so far before it raises
        `KeyboardInterrupt`.
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
    epsilon_ : float
        Half the width of the tube.
    expansion_ : KernelExpansion
        The model: support vectors, coefficients (n_SV, n_outputs), intercepts.
    certificate_ : Certificate
        Objectives, duality gap, violation, counts and cost of the fit.
    support_ : ndarray of shape (n_SV,), int32
        Indices of the support vectors in the training data.
    n_support_ : ndarray of shape (1,), int32
        Number of support vectors.
    support_vectors_ : ndarray or sparse matrix of shape (n_SV, d)
        Support vectors, as in the training data; empty for the precomputed kernel.
    dual_coef_ : ndarray or sparse matrix of shape (1, n_SV)
        Signed coefficients.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the machines.
    coef_ : ndarray or sparse matrix of shape (n_outputs, d)
        Weights of the features, only for the linear kernel.
    n_iter_ : int
        Number of SMO steps.
    fit_status_ : int
        0 if the machine reached the tolerance, else 1.
    shape_fit_ : tuple of int
        Shape of the training data.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow import NuSVR
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = NuSVR(C=10, nu=0.2).fit(X, np.sin(X[:, 0]))
    >>> outside = np.abs(model.predict(X) - np.sin(X[:, 0])) > model.epsilon_ + model.tol
    >>> bool(outside.mean() <= 0.2)
    True
    """

    epsilon_: float

    _rules: ClassVar[Mapping[str, Rule]] = {
        "nu": real(above=0.0, most=1.0),
        "C": real(above=0.0),
        **SOLVER_RULES,
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
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
        self.nu = nu
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

    def _tube(self) -> tuple[float, float | None]:
        return 0.0, float(self.nu)

    def _machine_sizes(self, y: Any, n: int) -> list[int]:  # noqa: ARG002 - used by classifiers
        return [2 * n]

    def _store(self, training: Training, fitted: Mapping[str, Any], counts: NDArray[Any]) -> None:
        self.epsilon_ = -float(fitted["rho"])
        super()._store(training, fitted, counts)


# --- support vector quantile regression ---


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


class QuantileSVR(KernelRegressor, schema="quantile-svr/1"):
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
        "precomputed"; `KernelExpansion` has the formulas. With "precomputed", `fit` takes the symmetric (n,
        n) kernel matrix, and prediction an (n_test, n) one or the columns of the vectors alone. A function
        ``k(A, B)`` returns the kernel values of two blocks of samples, (n_samples_A, n_samples_B). Then
        samples may be objects: strings, series of different lengths (`svmarrow.kernels` has kernels of both),
        or of any class.
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
    _stored_as: ClassVar[dict[str, str]] = {"_single": "flat_"}

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


# --- novelty detection ---


class OneClassSVM(OutlierOutputMixin, SupportVectorMachine, schema="one-class-svm/1"):
    """Novelty detection: estimates the region that contains most samples.

    `predict` is -1 outside the region, where `decision_function` is negative, and 1 elsewhere. At most
    a share nu of the training samples, by weight, lies outside, and at least this share are support vectors.
    Coefficients add up to nu times the sum of the weights, as LIBSVM's do.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]. If nu times the sum of the weights is below the smallest weight, no training sample lies
        outside.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed"; `KernelExpansion` has the formulas. With "precomputed", `fit` takes the (n, n) kernel
        matrix and prediction an (n_test, n) one. A function ``k(X_block, Y_block)`` returns the kernel values
        of two blocks of samples, (samples of the first, samples of the second).
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
        Maximum violation of the optimality conditions, in units of the decision function, and relative to the
        sum of the coefficients if that is below 1. If the duality gap exceeds a tenth of the objective, the
        fit continues with a smaller tolerance.
    cache_size : float or None, default=None
        Memory for kernel rows in MB; None is a share of the free memory.
    warm_start : bool, default=False
        Whether `fit` reuses the previous solution as the starting point, after an early end or along a path
        of nu. X must have the same samples in the same order. Coefficients outside new bounds are clipped. A
        fit with another shape starts from zero; other samples of the same number start from a poor solution.
        Ctrl-C then keeps the solution so far before it raises `KeyboardInterrupt`.
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
    offset_ : ndarray of shape (1,)
        `decision_function` is `score_samples` minus this offset. It is at most the score of every training
        sample whose coefficient is below its weight, so samples on the margin lie inside; it is below these
        scores by the rounding of predictions, in single precision too.
    expansion_ : KernelExpansion
        The model: support vectors, coefficients (n_SV, n_outputs), intercepts.
    certificate_ : Certificate
        Objectives, duality gap, violation, counts and cost of the fit.
    support_ : ndarray of shape (n_SV,), int32
        Indices of the support vectors in the training data.
    n_support_ : ndarray of shape (1,), int32
        Number of support vectors.
    support_vectors_ : ndarray or sparse matrix of shape (n_SV, d)
        Support vectors, as in the training data; empty for the precomputed kernel.
    dual_coef_ : ndarray or sparse matrix of shape (1, n_SV)
        Signed coefficients.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the machines.
    coef_ : ndarray or sparse matrix of shape (n_outputs, d)
        Weights of the features, only for the linear kernel.
    n_iter_ : int
        Number of SMO steps.
    fit_status_ : int
        0 if the machine reached the tolerance, else 1.
    shape_fit_ : tuple of int
        Shape of the training data.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Notes
    -----
    The share outside is at most nu even if the fit ended early, unless its outputs were not known by then.
    With kernels that are equal for all pairs (x, x), as "rbf", the support vector data description (SVDD) of
    Tax and Duin is the same machine.

    References
    ----------
    Schoelkopf, Platt, Shawe-Taylor, Smola, Williamson. Estimating the support of a high-dimensional
    distribution. Neural Computation 13 (2001).
    Tax, Duin. Support vector data description. Machine Learning 54 (2004).

    Examples
    --------
    >>> from svmarrow import OneClassSVM
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> OneClassSVM(gamma="auto").fit(X).predict(X).tolist()
    [-1, 1, 1, 1, -1]
    """

    _rules: ClassVar[Mapping[str, Rule]] = {"nu": real(above=0.0, most=1.0), **SOLVER_RULES}

    def __init__(
        self,
        *,
        nu: float = 0.5,
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
        self.nu = nu
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

    @atomic_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training samples; kernel values between them for the precomputed kernel.
        y : ignored
            For scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each sample. Samples of weight 0 are ignored; negative weights, which scikit-learn
            treats as 0, raise an error, since they are nearly always a mistake.

        Returns
        -------
        OneClassSVM
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter is outside its range, the data contain NaN or infinity, or lengths differ.
        MemoryError
            If the free memory is too small for the fit with the smallest cache.
        KeyboardInterrupt
            On Ctrl-C, within a second; the estimator is then unchanged, or has the solution so far with
            ``warm_start=True``.

        Warns
        -----
        ConvergenceWarning
            If a machine ended before the tolerance was reached.
        """
        with fitting(self, X, y, sample_weight):
            X = self._validated(X, with_y=False)
            training = self._training(X, self._weights(sample_weight, X.shape[0]))

            def fit(rows: Any, kernel: Any, solver: Any) -> Any:
                return _core.fit_one_class_svm(rows, kernel, training.weights, float(self.nu), solver)

            return self._fit_machines(training, [training.weights.size], fit)
