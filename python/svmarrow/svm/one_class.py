"""One-class support vector machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from svmarrow import _core
from svmarrow._support.parameters import Rule, atomic_fit, real
from svmarrow._support.progress import fitting
from svmarrow.models.outputs import OutlierOutputMixin
from svmarrow.svm._base import SOLVER_RULES, SupportVectorMachine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from svmarrow.expansion.kernel_expansion import KernelFunction

__all__ = ["OneClassSVM"]


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
