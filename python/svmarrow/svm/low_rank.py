"""Support vector machines with a kernel projected on a few points (Rifkin 2002, (3.104)-(3.121)).

With K_mm = L L', the rows of F = K_lm L^-T have the projected kernel K_lm K_mm^-1 K_ml as their inner
products: the dual (3.118) is that of a linear machine on F, and
c_m = K_mm^-1 K_ml Y alpha = L^-T F' Y alpha = L^-T w.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from svmarrow import _core
from svmarrow._support.parameters import MAX_ITER, MAX_TIME, Rule, atomic_fit, check, real
from svmarrow._support.progress import Steps, fitting, progress
from svmarrow._support.rows import core_rows, select_rows, threads, validated
from svmarrow._support.training import MemoryEstimate, default_gamma, refuse_beyond_memory, weights_differ
from svmarrow._support.training import estimate_memory as memory_method
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.expansion.points import (
    POINT_RULES,
    VALUE_RULES,
    bytes_of_points,
    choose_points,
    factor_points,
    has_only_values,
    number_of_points,
)
from svmarrow.models.machine import KernelMachine
from svmarrow.models.outputs import ClassifierOutputMixin
from svmarrow.svm._base import (
    DECODING_RULES,
    SupportVectorMachine,
    check_certificate,
    iterations_of_machines,
    labelled,
)
from svmarrow.svm.classification import SVC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.parameters import Decoding
    from svmarrow._support.progress import ProgressCallback
    from svmarrow.models.machine import Certificate


__all__ = ["LowRankSVC", "projected_kernel"]


class LowRankSVC(ClassifierOutputMixin, KernelMachine, schema="low-rank-svc/1"):
    """Support vector classification with a fixed number of vectors (Rifkin 2002, section 3.7.2).

    The model of `svmarrow.SVC` for a kernel that is projected on m points: the loss is over all samples, the
    model has ``n_vectors`` vectors whatever the number of support vectors. It needs memory for n m numbers.

    Parameters
    ----------
    n_vectors : int, default=500
        Number of vectors; fewer if there are fewer samples.
    C : float, default=1.0
        Weight of the loss; multiplied for each sample by its class weight and its sample weight.
    selection : str or array of shape (m, d), default="random"
        How the vectors are chosen among the samples of positive weight, as in
        `svmarrow.least_squares.LowRankRLSClassifier`: uniformly at random; as cluster centers; by the pivoted
        incomplete Cholesky factorization ("pivoted_cholesky": next is the sample with the largest residual
        kernel value); by leverage scores ("leverage"); each the best of 59 random samples for the trace of
        the residual matrix ("greedy_trace"). Or the vectors themselves.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed"; `KernelExpansion` has the formulas. With "precomputed", `fit` takes the symmetric (n,
        n) kernel matrix, and prediction an (n_test, n) one or the columns of the vectors alone. A function
        ``k(A, B)`` returns the kernel values of two blocks of samples, which may be objects such as strings.
        Both must be positive semidefinite, and go with ``selection="random"``; a function also with points.
        Vectors that depend on others are left out.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient; "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features, and for Matérn
        kernels their square roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    tol : float, default=1e-3
        Maximum violation of the optimality conditions, in units of the decision function.
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
    max_iter : int, default=10,000,000
        Maximum number of SMO steps of a machine; -1 means no limit. Overlapping classes with a C or sample
        weights of 1e12 would need many more; the certificate then bounds the distance from the optimum.
    max_time : float or None, default=None
        Maximum number of seconds of the fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the vectors; None draws different ones in each `fit`.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weight of each class.
    expansion_ : KernelExpansion
        The model: vectors, coefficients (m, n_outputs), intercepts.
    certificate_ : Certificate
        Objectives, duality gap, violation, counts and cost of the fit, in total and for each machine, for
        the projected kernel.
    dual_coef_ : ndarray of shape (n_outputs, m)
        Coefficients of the vectors.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the machines.
    coef_ : ndarray of shape (n_outputs, d)
        Weights of the features, only for the linear kernel.
    n_iter_ : ndarray of shape (n_outputs,)
        Number of SMO steps of each machine.
    fit_status_ : int
        0 if every machine reached the tolerance, else 1.
    indices_ : ndarray of shape (m,) or None
        Indices of the vectors in the training data; None if they are not training samples.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    svmarrow.least_squares.LowRankRLSClassifier : The same functions with the square loss, many times faster.
    svmarrow.compress : Reduces the number of vectors of a trained `SVC`.

    Notes
    -----
    Use `SVC` if it can be trained; Rifkin (2002) recommends the same for solvers that need few kernel
    rows. The projected features are dense, one for each vector, so that sparse or low-dimensional data
    becomes slow: on 8,000 samples of a9a, magic and cod_rna it took 2 to 48 times as long as `SVC`, and
    ``compress(svc, n_vectors=m)`` with the same number of vectors had a smaller error on most of them from
    256 vectors on. `LowRankRLSClassifier` takes a third to a twentieth of its time with a slightly larger
    error. Use it if there are too many samples for `SVC`, or many features and few vectors, and the hinge
    loss matters.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import LowRankSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LowRankSVC(150, C=10, random_state=0).fit(X[:800], y[:800])
    >>> bool(model.score(X[800:], y[800:]) > 0.9)
    True
    """

    kernel: str
    indices_: NDArray[np.int64] | None

    _rules: ClassVar[Mapping[str, Rule]] = {
        **POINT_RULES,
        **VALUE_RULES,
        "C": real(above=0.0),
        "tol": real(above=0.0),
        **DECODING_RULES,
        "max_iter": MAX_ITER,
        "max_time": MAX_TIME,
    }
    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    multi_class: Literal["ovo", "ovr"]
    decision_function_shape: Literal["ovo", "ovr"]
    expansion_: KernelExpansion
    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    certificate_: Certificate
    _coding: Decoding
    _stored_as: ClassVar[dict[str, str]] = {"_coding": "decoding_"}

    coef_: ClassVar[Any] = SupportVectorMachine.coef_
    n_iter_: ClassVar[property] = property(iterations_of_machines)
    fit_status_: ClassVar[Any] = SupportVectorMachine.fit_status_
    _margin_loss: ClassVar[str] = "hinge"
    _weighs_gamma: ClassVar[bool] = False
    _after_load: ClassVar[Callable[..., None]] = check_certificate

    def __init__(
        self,
        n_vectors: int = 500,
        *,
        C: float = 1.0,
        selection: str | ArrayLike = "random",
        kernel: str = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovo", "ovr"] = "ovr",
        break_ties: bool = False,
        max_iter: int = 10_000_000,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_vectors = n_vectors
        self.C = C
        self.selection = selection
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the vectors, train on the projected features, and convert the weights to coefficients.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each sample, which multiplies C, not negative. Samples of weight 0 are ignored, also as
            vectors.

        Returns
        -------
        object
            The fitted classifier.

        Raises
        ------
        ValueError
            If a parameter is outside its range, the data contain NaN or infinity, lengths differ, there is a
            single class, a class has no sample of positive weight, the kernel matrix of the vectors is not
            positive definite, or `max_time` was over before the vectors were chosen.
        MemoryError
            If the free memory is too small for features, factor and machines, see `estimate_memory`.
        KeyboardInterrupt
            On Ctrl-C; the estimator is then unchanged.

        Warns
        -----
        ConvergenceWarning
            If a machine ended before the tolerance was reached.
        """
        check(self.get_params(deep=False), self._rules)
        with fitting(self, X, y, sample_weight):
            self._fit(X, y, sample_weight)
        return self

    estimate_memory: ClassVar[Callable[..., MemoryEstimate]] = memory_method

    def _memory(self, rows: Any, y: Any) -> MemoryEstimate:
        n, m = int(rows.shape[0]), number_of_points(rows, self.n_vectors, self.selection)
        # A few rows stand for the features, which are not computed yet.
        features = np.ones((min(n, 512), m))
        machine = SVC(kernel="linear", multi_class=self.multi_class, n_jobs=self.n_jobs)
        # The features and the support vectors; the factor and its copy in panels.
        fit_bytes = 8 * (2 * n * m + 2 * m * m + m * (2 * int(rows.shape[1]) + 1024))
        fit_bytes += bytes_of_points(rows, self.n_vectors, self.selection, self.kernel)
        machines = machine._memory_of(features, n, machine._machine_sizes(y, n))
        parts = {**machines.parts, "features": fit_bytes}
        return MemoryEstimate(fit_bytes + machines.total, fit_bytes + machines.minimum, parts)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, y = validated(self, X, y, reset=True, precomputed=self._is_precomputed(), with_y=True)
        self._check_training_rows(X)
        spec = (
            self.kernel,
            default_gamma(self.gamma, X, kernel=self.kernel),
            float(self.coef0),
            int(self.degree),
        )
        class_weight, weights = labelled(self, y, sample_weight)[2:]
        self._weighted = weights_differ(weights)
        used = np.flatnonzero(weights)
        if used.size < weights.size:
            X = select_rows(X, used, precomputed=self._is_precomputed())
            y, weights = y[used], weights[used]
        needed = self._memory(X, y).minimum
        refuse_beyond_memory(f"{type(self).__name__}.fit", needed, "lower n_vectors")
        jobs, steps = threads(self.n_jobs), Steps(None, self.max_time)

        def featured() -> tuple[Any, Any, Any, Any]:
            points, rows, _ = choose_points(
                X,
                self.n_vectors,
                spec,
                selection=self.selection,
                alpha=1.0 / (2.0 * float(self.C)),
                random_state=self.random_state,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            if has_only_values(self.kernel):
                factored = factor_points(self.kernel, points, X)
                rows = None if rows is None else rows[factored.places]
                return factored.features.points, rows, factored.features, factored.features.of(X)
            with progress(self.verbose) as reporter:
                projected = projected_kernel(points, spec, reporter.callback, jobs)
                return points, rows, projected, projected.of(core_rows(X), reporter.callback, jobs)

        chosen = steps.attempt(featured)
        if chosen is None:
            raise ValueError(
                f"max_time={self.max_time:g} was over before the vectors were chosen: raise it, or lower "
                "n_vectors"
            )
        points, rows, projected, features = chosen
        del chosen
        shared = ("C", "tol", "multi_class", "decision_function_shape", "break_ties", "max_iter")
        options = {name: getattr(self, name) for name in (*shared, "n_jobs", "verbose")}
        machine = SVC(kernel="linear", max_time=steps.remaining, **options)
        machine.fit(features, y, sample_weight=weights)
        del features
        weights_of_features = np.ascontiguousarray(machine.coef_.T)
        if has_only_values(self.kernel):
            coefficients = projected.coefficients(weights_of_features)
        else:
            coefficients = projected.coefficients(weights_of_features, jobs)
        if self._is_precomputed():
            points = used[rows][:, np.newaxis].astype(np.float64)
        self.expansion_ = KernelExpansion(points, coefficients, machine.intercept_, *spec)
        self.indices_ = None if rows is None else used[rows]
        self.classes_, self.class_weight_ = machine.classes_, class_weight
        self.certificate_, self._coding = machine.certificate_, machine._coding


def projected_kernel(
    points: Any, spec: tuple[str, float, float, int], progress: ProgressCallback | None, n_threads: int
) -> _core.Features:
    """Returns the features of a kernel projected on the points; the kernel must be positive definite."""
    try:
        return _core.Features((core_rows(points), spec), progress, n_threads)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(
            f"the kernel matrix of the points is not positive definite: kernel={spec[0]!r} must be, and "
            "rows must be scaled and centered so that rounding does not cancel them"
        ) from None
