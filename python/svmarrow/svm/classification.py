"""Support vector classification: C-SVC and nu-SVC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.parameters import Decoding, atomic_fit, boolean, check_shape, consistent, one_of, real
from svmarrow._support.progress import fitting
from svmarrow._support.training import pairs
from svmarrow.models.machine import Columns
from svmarrow.models.outputs import ClassifierOutputMixin, UnavailableMethod
from svmarrow.svm._base import (
    COST,
    DECODING_RULES,
    SOLVER_RULES,
    SupportVectorMachine,
    cost,
    decoding_of,
    iterations_of_machines,
    labelled,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from svmarrow._support.parameters import Rule
    from svmarrow._support.training import MemoryEstimate
    from svmarrow.expansion.kernel_expansion import KernelFunction
    from svmarrow.models.machine import LeaveOneOut


__all__ = ["CLASSIFIER_RULES", "SVC", "KernelClassifier", "NuSVC"]


# --- base class of `SVC` and `NuSVC` ---


#: Rules of the parameters that `SVC` and `NuSVC` share.
CLASSIFIER_RULES = {**SOLVER_RULES, **DECODING_RULES}


_PROBABILITIES = (
    "use CalibratedClassifierCV({kind}(...), ensemble=False) of sklearn.calibration; for "
    "SVC(probability=True) of scikit-learn call svmarrow.patch_sklearn()"
)


class KernelClassifier(ClassifierOutputMixin, SupportVectorMachine):
    """Base class of `SVC` and `NuSVC`."""

    predict_proba: Any = UnavailableMethod(_PROBABILITIES)
    predict_log_proba: Any = UnavailableMethod(_PROBABILITIES)
    n_iter_: ClassVar[property] = property(iterations_of_machines)

    #: The loss, a name of `svmarrow._support.decoding.LOSSES`, if it is not a parameter.
    _margin_loss: ClassVar[str] = "hinge"

    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    multi_class: Literal["ovo", "ovr"]

    class_weight_: NDArray[np.float64]
    _coding: Decoding
    _stored_as: ClassVar[dict[str, str]] = {"_coding": "decoding_"}

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training samples; kernel values between them for the precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each sample, which multiplies C. Samples of weight 0 are ignored, and a class of such
            samples alone is not in `classes_`; negative weights, which scikit-learn treats as 0, raise an
            error, since they are nearly always a mistake.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter is outside its range, the data contain NaN or infinity, lengths differ, there is a
            single class of positive weight, `class_weight` is 0 for a class, or nu is infeasible.
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
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, code: NDArray[np.int8] | None = None) -> Self:
        """Fits the model; ``code`` (k, q) replaces ``multi_class``."""
        X, y = self._validated(X, y, with_y=True)
        classes, labels, class_weight, weights = labelled(self, y, sample_weight)
        decoding: Decoding = decoding_of(self, classes.size) if code is None else "code"
        check_shape(decoding, self.decision_function_shape, self.break_ties)
        training = self._training(X, weights)
        used = training.of_used(labels).astype(np.int64)
        counts = np.bincount(used, minlength=classes.size)
        sizes = _sizes(counts, decoding) if code is None else (counts @ (code != 0)).tolist()
        same = hasattr(self, "classes_") and np.array_equal(self.classes_, classes)
        start = self._start(training, len(sizes)) if same else None

        def fit(rows: Any, kernel: Any, solver: Any) -> Any:
            task: Any = {
                "labels": used,
                "n_classes": int(classes.size),
                "upper": training.weights * self._cost(),
                "coding": self.multi_class if code is None else code,
                **self._options(),
            }
            return _core.fit_svc(rows, kernel, task, solver)

        fitted = self._solve(training, sizes, fit, start=start)
        self.classes_ = classes
        self.class_weight_ = class_weight
        self._coding = decoding
        self._store(training, fitted, fitted["class_counts"])
        return self

    def _fit_columns(
        self, X: Any, y: NDArray[Any], matrix: NDArray[np.int8], sample_weight: NDArray[np.float64] | None
    ) -> Columns:
        """Fits all columns with shared kernel rows, see `svmarrow.models.machine.ColumnTrainer`."""
        self._fit(X, y, sample_weight, matrix)
        return Columns(self.expansion_, self.support_.astype(np.int64), self.certificate_)

    def _column_memory(
        self, X: Any, matrix: NDArray[np.int8], counts: NDArray[np.int64]
    ) -> MemoryEstimate | None:
        self._check_parameters()
        return self._memory_of(X, int(X.shape[0]), (counts @ (matrix != 0)).tolist())

    def _options(self) -> Mapping[str, Any]:
        """Returns loss, nu and intercept for the solver."""
        raise NotImplementedError

    def _cost(self) -> float:
        """Returns the multiplier of all weights."""
        return 1.0

    def _machine_sizes(self, y: Any, n: int) -> list[int]:
        if y is None:
            return [n]
        counts = np.unique(np.asarray(y), return_counts=True)[1]
        return _sizes(counts, decoding_of(self, counts.size))

    @property
    @consistent
    def dual_coef_(self) -> Any:
        """Signed coefficients in scikit-learn's layout, sparse after a sparse fit.

        (1, n_SV) for two classes; (n_classes - 1, n_SV) one against one, where entry r of a support vector
        belongs to its machine against the r-th of the other classes; (n_classes, n_SV) one against the rest.
        """
        self._check_fitted()
        coefficients = self.expansion_.coefficients
        if self._decoding != "ovo":
            return self._in_kind(coefficients.T)
        k = self.classes_.size
        vector_classes = np.repeat(np.arange(k), self.n_support_)
        packed = np.zeros((k - 1, vector_classes.size))
        for output, (a, b) in enumerate(pairs(k)):
            packed[b - 1, vector_classes == a] = coefficients[vector_classes == a, output]
            packed[a, vector_classes == b] = coefficients[vector_classes == b, output]
        return self._in_kind(packed)


def _sizes(counts: NDArray[Any], decoding: Decoding) -> list[int]:
    """Returns the number of variables of each machine."""
    if decoding == "ovo":
        return [int(counts[a] + counts[b]) for a, b in pairs(counts.size)]
    return [int(counts.sum())] * (1 if decoding == "binary" else counts.size)


class SVC(KernelClassifier, schema="svc/1"):
    """Support vector classification, solved to the tolerance on all cores.

    Each binary machine minimizes 1/2 ||w||^2 + sum_i C_i loss(y_i (w'phi(x_i) + b)). All machines of a
    multiclass problem share kernel rows while they are trained and one pool of support vectors afterwards.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; multiplied for each sample by its class weight and its sample weight. Positive;
        inf allows no loss (it is replaced by 1e15); if the classes are not separable, such a fit only ends by
        `max_iter` or `max_time`.
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
        Maximum violation of the optimality conditions, in units of the decision function.
    cache_size : float or None, default=None
        Memory for kernel rows in MB; None is a share of the free memory.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    multi_class : {"ovo", "ovr"}, default="ovo"
        A machine for each pair of classes, or one for each class against all others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        For ``multi_class="ovo"``: whether `decision_function` returns a value for each class or for each
        pair.
    break_ties : bool, default=False
        Whether `predict` breaks ties between votes by `decision_function`; needs
        ``decision_function_shape="ovr"``.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        max(0, 1 - m) or its square, for the margin m. Both without a factor 1/2.
    fit_intercept : bool, default=True
        Whether to fit an intercept. If False, `loo_error_bound_` is available.
    warm_start : bool, default=False
        Whether `fit` reuses the previous solution as the starting point, after an early end or along a path
        of C. X must have the same samples in the same order, labels may differ. Coefficients outside new
        bounds are clipped. A fit with another shape or other classes starts from zero; other samples of the
        same number start from a poor solution. Ctrl-C then keeps the solution so far before it raises
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
        Objectives, duality gap, violation, counts and cost of the fit, in total and for each machine.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weight of each class.
    support_ : ndarray of shape (n_SV,), int32
        Indices of the support vectors in the training data, class by class.
    n_support_ : ndarray of shape (n_classes,), int32
        Number of support vectors of each class.
    support_vectors_ : ndarray or sparse matrix of shape (n_SV, d)
        Support vectors, as in the training data; empty for the precomputed kernel.
    dual_coef_ : ndarray or sparse matrix of shape (n_classes - 1, n_SV) or (n_classes, n_SV)
        Signed coefficients in scikit-learn's layout, one against one or one against the rest.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the machines.
    coef_ : ndarray or sparse matrix of shape (n_outputs, d)
        Weights of the features, only for the linear kernel.
    n_iter_ : ndarray of shape (n_outputs,)
        Number of SMO steps of each machine.
    fit_status_ : int
        0 if every machine reached the tolerance, else 1.
    loo_error_bound_ : ndarray of shape (n_outputs,)
        Upper bound of the leave-one-out error of each machine, only with ``fit_intercept=False``.
    xi_alpha_error_ : ndarray of shape (n_outputs,)
        Upper bound of the leave-one-out error of each machine, from the fit alone (Joachims 2000).
    xi_alpha_recall_ : ndarray of shape (n_outputs,)
        Lower bound of the recall of each positive class, by the same.
    xi_alpha_precision_ : ndarray of shape (n_outputs,)
        Lower bound of the precision of each positive class, by the same.
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
    svmarrow.compress : Reduces the number of vectors of a model.
    svmarrow.SVCCV : C and gamma by cross-validation.

    Notes
    -----
    The dual is solved by two-tier decomposition: blocks of violators, SMO steps inside a block with
    second-order selection, float32 kernel rows and double-precision sums. float32, float64 and (dense)
    uint8 data is used without a copy if rows are contiguous; other data is converted once.

    Scale the features to unit variance if nothing is known about them, since features with larger values
    dominate the kernel. The training set shows whether gamma of "rbf", 1 / (2 sigma^2), is far off: if it is
    much too large, nearly every sample is a support vector; if it is much too small, the training error is
    large. Choose between by cross-validation (`SVCCV`), starting from C = 1 and increasing it tenfold. If C
    is far too large, training takes 10 to 100 times as long. If it is far too small, no support vector lies
    below it, and every intercept in an interval is optimal, whose middle is chosen: ``intercept_range`` of
    ``certificate_.machines`` is its length. Near 2, the whole margin, the predicted classes depend on this
    choice (Rifkin 2002, section 2.6).

    A ``probability`` parameter is not supported: use `sklearn.calibration.CalibratedClassifierCV`, see the
    examples. `svmarrow.patch_sklearn` supports it in programs that pass it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = SVC(C=10, gamma=0.1).fit(X, y)
    >>> svc.predict(X[:3])
    array([0, 0, 0])
    >>> svc.certificate_.stop
    'converged'

    Probabilities:

    >>> from sklearn.calibration import CalibratedClassifierCV
    >>> calibrated = CalibratedClassifierCV(SVC(C=10, gamma=0.1), ensemble=False).fit(X, y)
    >>> calibrated.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])

    A path of C, each step starting from the previous solution:

    >>> svc = SVC(C=1, warm_start=True)
    >>> supports = [svc.set_params(C=C).fit(X, y).support_.size for C in (1, 10, 100)]
    >>> supports[0] > supports[-1]
    True

    A user-defined kernel:

    >>> def cosine(A, B):
    ...     return (A @ B.T) / np.linalg.norm(A, axis=1)[:, None] / np.linalg.norm(B, axis=1)
    >>> import numpy as np
    >>> SVC(kernel=cosine, C=1000).fit(X, y).score(X, y) > 0.9
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "C": COST,
        **CLASSIFIER_RULES,
        "loss": one_of("hinge", "squared_hinge"),
        "fit_intercept": boolean,
    }
    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    multi_class: Literal["ovo", "ovr"]
    decision_function_shape: Literal["ovo", "ovr"]

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovo", "ovr"] = "ovr",
        break_ties: bool = False,
        loss: Literal["hinge", "squared_hinge"] = "hinge",
        fit_intercept: bool = True,
        warm_start: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _options(self) -> Mapping[str, Any]:
        return {"loss": self.loss, "nu": None, "fit_intercept": bool(self.fit_intercept)}

    def _cost(self) -> float:
        return cost(self.C)

    @property
    def loo_error_bound_(self) -> NDArray[np.float64]:
        """Upper bound for the leave-one-out error of each machine (n_outputs,), without training again.

        The share of samples whose margin is not positive without their own term, y_i f(x_i) - a_i k(x_i, x_i)
        with a_i the absolute value of the coefficient (Jaakkola and Haussler 1999); only for
        ``fit_intercept=False``. Never below the true error for positive semidefinite kernels. Samples count
        equally, whatever their weights.
        """
        return self._estimates(_bound, "fit_intercept=False")

    @property
    def xi_alpha_error_(self) -> NDArray[np.float64]:
        """Joachims' xi-alpha estimate of the leave-one-out error, (n_outputs,): an upper bound.

        The share of samples for which 2 a_i R^2 + xi_i is at least 1: a_i is the absolute value of the
        coefficient, xi_i the loss, R^2 a bound of k(x, x) - k(x, x') (Joachims 2000). It needs no training.
        With an intercept, which the support vectors below C determine, a sample also counts if it is a
        support vector and a class has no other one below C, and all samples count if no support vector is
        below C. The bound is proven for positive semidefinite kernels if every machine without one of the
        samples has a support vector below C. Samples count equally, whatever their weights.
        """
        return self._estimates(lambda e: (e.missed + e.false_alarms) / (e.positive + e.negative))

    @property
    def xi_alpha_recall_(self) -> NDArray[np.float64]:
        """The xi-alpha estimate of the recall of each positive class (n_outputs,): a lower bound."""
        return self._estimates(lambda e: 1.0 - e.missed / e.positive)

    @property
    def xi_alpha_precision_(self) -> NDArray[np.float64]:
        """The xi-alpha estimate of the precision of each positive class (n_outputs,): a lower bound."""
        return self._estimates(_precision)

    def _estimates(self, of: Callable[[LeaveOneOut], float | None], needs: str = "") -> NDArray[np.float64]:
        check_is_fitted(self)
        machines = self.certificate_.machines
        estimates = [each.leave_one_out for each in machines if each.leave_one_out is not None]
        if len(estimates) < len(machines):
            raise AttributeError(
                "a fit over partitions has no bounds of the leave-one-out error, which need the outputs of "
                "all samples in one process"
            )
        values = [of(estimate) for estimate in estimates]
        if None in values:
            raise AttributeError(f"this SVC was not fitted with {needs}")
        return np.array(values, dtype=np.float64)


def _bound(estimate: LeaveOneOut) -> float | None:
    rows = estimate.positive + estimate.negative
    return None if estimate.bound is None else estimate.bound / rows


def _precision(estimate: LeaveOneOut) -> float:
    right = estimate.positive - estimate.missed
    return right / (right + estimate.false_alarms) if right else 0.0


class NuSVC(KernelClassifier, schema="nu-svc/1"):
    """Support vector classification whose parameter bounds the share of margin errors.

    nu is an upper bound of the share of margin errors and a lower bound of the share of support vectors.
    Outputs are scaled so that the margin is 1.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1], and for each machine at most twice the share of its smaller class.
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
        Maximum violation of the optimality conditions, in units of the decision function before it is scaled.
    cache_size : float or None, default=None
        Memory for kernel rows in MB; None is a share of the free memory.
    class_weight : dict, "balanced" or None, default=None
        Multipliers of the sample weights by class. They make more values of nu infeasible.
    multi_class : {"ovo", "ovr"}, default="ovo"
        A machine for each pair of classes, or one for each class against all others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        For ``multi_class="ovo"``: whether `decision_function` returns a value for each class or for each
        pair.
    break_ties : bool, default=False
        Whether `predict` breaks ties between votes by `decision_function`; needs
        ``decision_function_shape="ovr"``.
    warm_start : bool, default=False
        Whether `fit` reuses the previous solution as the starting point, after an early end or along a path
        of nu. X must have the same samples in the same order, labels may differ. Coefficients outside new
        bounds are clipped. A fit with another shape or other classes starts from zero; other samples of the
        same number start from a poor solution. Ctrl-C then keeps the solution so far before it raises
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
        Objectives, duality gap, violation, counts and cost of the fit, in total and for each machine.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weight of each class.
    support_ : ndarray of shape (n_SV,), int32
        Indices of the support vectors in the training data, class by class.
    n_support_ : ndarray of shape (n_classes,), int32
        Number of support vectors of each class.
    support_vectors_ : ndarray or sparse matrix of shape (n_SV, d)
        Support vectors, as in the training data; empty for the precomputed kernel.
    dual_coef_ : ndarray or sparse matrix of shape (n_classes - 1, n_SV) or (n_classes, n_SV)
        Signed coefficients in scikit-learn's layout, one against one or one against the rest.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the machines.
    coef_ : ndarray or sparse matrix of shape (n_outputs, d)
        Weights of the features, only for the linear kernel.
    n_iter_ : ndarray of shape (n_outputs,)
        Number of SMO steps of each machine.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> NuSVC(nu=0.1).fit(X, y).score(X, y) > 0.95
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {"nu": real(above=0.0, most=1.0), **CLASSIFIER_RULES}
    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    multi_class: Literal["ovo", "ovr"]
    decision_function_shape: Literal["ovo", "ovr"]

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
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovo", "ovr"] = "ovr",
        break_ties: bool = False,
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
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _options(self) -> Mapping[str, Any]:
        return {"loss": "nu", "nu": float(self.nu), "fit_intercept": True}
