"""Kernel matching pursuit for classification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.metrics import r2_score

from svmarrow._support.parameters import (
    CLASS_WEIGHT,
    Rule,
    atomic_fit,
    check,
    either,
    mapping,
    none,
    one_of,
    real,
    refuse,
)
from svmarrow._support.progress import fitting
from svmarrow._support.training import (
    class_targets,
    class_weights,
    default_gamma,
    encode_classes,
    sample_weights,
)
from svmarrow.matching_pursuit._base import MatchingPursuit
from svmarrow.matching_pursuit._dictionary import FOR_CLASSES, FOR_NUMBERS, RULES, KernelPart, loss_rule
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.models.outputs import ClassifierOutputMixin, RegressorOutputMixin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.matching_pursuit._base import Data
    from svmarrow.matching_pursuit._dictionary import Part


__all__ = [
    "KMPClassifier",
    "KMPRegressor",
]

_CLASSIFIER_RULES = {
    **RULES,
    "loss": loss_rule(FOR_CLASSES),
    "scoring": one_of("loss", "accuracy"),
    "class_weight": CLASS_WEIGHT,
    "class_kernels": either(none, Rule("a dict from class to the parameters of its kernel", mapping.holds)),
}
_OF_KERNEL = ("kernel", "gamma", "coef0", "degree")


class KMPClassifier(ClassifierOutputMixin, MatchingPursuit, schema="kmp-classifier/1"):
    """Kernel matching pursuit: classification by few kernel functions, chosen one after the other.

    f(x) = b + sum_i a_i k(x, z_i), fitted to targets 1 for the class and -1 for the others. From a dictionary
    of functions (kernels around `candidates`, user-defined `functions`, the constant), each step adds the one
    that reduces the training loss most, and refits all coefficients. More than two classes have an output
    each and share their functions. The number of functions is the capacity; every size up to `n_vectors` is
    kept (`path_`).

    Parameters
    ----------
    n_vectors : int, default=100
        Maximum number of functions; fewer if no further function reduces the loss.
    variant : {"auto", "prefit", "backfit", "basic"}, default="auto"
        "prefit" (pre-fitting) chooses the function that minimizes the error after all coefficients are
        refitted (orthogonal least squares), only for squared error; "backfit" (back-fitting) chooses by the
        angle with the residual, or for other losses with the direction of steepest descent, and refits all
        coefficients after the choice, for other losses every `backfit_every` steps; "basic" fits only the
        new coefficient, and may choose a function again. "auto" is "prefit" for squared error, else
        "backfit".
    loss : str or object, default="squared_error"
        For targets y of -1 and 1, outputs f and m = y f: "squared_error", 1/2 (f - y)^2; "squared_tanh",
        (tanh f - 0.65 y)^2; "logistic", log2(1 + exp(-2 m)); "exponential", exp(-m); "one_minus_tanh",
        1 - tanh m; "squared_hinge", max(0, 1 - m)^2; "soft_margin", max(0, 1 - m), what an SVM minimizes,
        its corner a parabola from m = .9 on; scikit-learn's names "log_loss" and "hinge" stand for "logistic"
        and "soft_margin"; or an object with the methods ``value(y, f)``,
        ``gradient(y, f)`` and ``hessian(y, f)`` of whole vectors. Several classes: each against the rest.
    max_iter : int, default=-1
        Maximum number of steps; -1 means no limit: "prefit" and "backfit" take at most `n_vectors` by
        themselves. "basic" may return to its functions for ever, so there -1 stands for as many steps as
        `n_vectors`.
    backfit_every : int, default=5
        Steps between two settings of all coefficients; not used for squared error, which does it at each.
    kernel : str or callable, or list of such, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed" (`KernelExpansion` has the formulas), or a function ``k(A, B)`` that returns the
        values of two blocks of samples, which may be objects, as strings; it need be neither symmetric nor
        positive definite. With a list,
        each step chooses among all kernels. "precomputed" takes the (n, n) matrix of k(x_i, x_j) in `fit`,
        and (n_test, n) at prediction.
    gamma : {"scale", "auto"} or float, or list of such, default="scale"
        Kernel coefficient; "scale" is 1 / (n_features * X.var()), samples counted by their weights, "auto" is
        1 / n_features, and for Matérn kernels their square roots. With a list, each step chooses among the
        widths.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    fit_intercept : bool or "candidate", default=True
        Whether to fit an intercept. True: from the start, beside the `n_vectors` functions; "candidate": it
        is one of the functions to choose from.
    candidates : None, int, float or {array-like, sparse matrix} of shape (m, n_features), default=None
        Centers of the kernels: all training samples, a random subset of this number or share of them, or
        the given vectors.
    functions : callable or None, default=None
        Further functions to choose from: ``functions(X)`` returns (n, m) values for samples X.
    tol : float, default=0.0
        Stop when the norm of the residual is at most this share of the targets' norm.
    early_stopping : bool or "gcv", default=False
        Whether to choose the size with the smallest loss on validation samples. They are given to `fit`,
        the folds of a cross-validation (`cv`), or a share of the training samples (`validation_fraction`).
        "gcv" needs no validation samples: it takes the size of the least generalized cross-validation error,
        the training loss / (1 - (2 m + 1) / n)^2 for m functions and an intercept. For the squared error,
        samples of equal weight, and at most half as many functions as samples.
    validation_fraction : float, default=0.1
        Share of the training samples that is used for validation.
    cv : int, splitter, iterable of pairs of rows or None, default=None
        Folds of the cross-validation that chooses the size; the model is then fitted to all samples.
    n_iter_no_change : int or None, default=None
        Stop when the validation loss has not decreased for this number of steps. None continues up to
        `n_vectors`.
    scoring : {"loss", "accuracy"}, default="loss"
        What early stopping uses: the mean loss of the validation samples, or the share of them that is
        classified correctly.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply sample weights; "balanced" is
        n / (n_classes * count of the class), samples counted by their weights.
    class_kernels : dict or None, default=None
        A kernel for each class: dicts with any of "kernel", "gamma", "coef0" and "degree" by label, in place
        of the parameters of these names. A sample's function then has the kernel of its class.
    precision : {"single", "double"}, default="single"
        Precision in which candidates are stored and compared. Single takes half the memory and less time; of
        two candidates that agree to six digits it may choose the other one. Chosen functions are computed and
        fitted in double precision.
    cache_size : float or None, default=None
        Memory for the dictionary in MB; None is 2000, or a share of the free memory if that is less. If it
        does not fit, each step evaluates a random sample of 59 functions, which is faster and usually as
        accurate.
    sample_size : int or None, default=None
        Number of functions that are drawn at each step; their values are not cached. None uses all
        functions.
    max_time : float or None, default=None
        Maximum number of seconds of a pursuit. One that ends early is a usable model, and warns.
    random_state : int, RandomState instance or None, default=None
        Seed of draws and splits.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    expansion_ : KernelExpansion
        The model, vectors in the order in which they were chosen. With several kernels an
        `svmarrow.models.ExpansionSum`, one kernel after the other. An AttributeError where the model has
        functions of the caller, or one of several kernels is a Python function.
    expansions_ : tuple of KernelExpansion
        One for each kernel, the intercept in the first; the model is their sum, and that of the functions.
    support_ : ndarray of int of shape (n_kernel_functions,)
        Training samples (or places in `candidates`) of the chosen kernel functions, in their order.
    support_kernels_ : ndarray of int of shape (n_kernel_functions,)
        Which kernel each has.
    function_coef_ : ndarray of shape (n_functions, n_outputs)
        Coefficients of the caller's functions, 0 for those not chosen.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs.
    dual_coef_ : ndarray of shape (n_outputs, n_vectors)
        Coefficients of `expansion_`.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    path_ : MatchingPath
        Every size: losses, and ``path_[size]``, the model of that size.
    n_vectors_ : int
        Functions of the model.
    n_iter_ : int
        Number of steps up to the model.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    References
    ----------
    P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 2002; several outputs as in J.
    Weston and G. Bakir, "Fast Binary and Multi-Output Reduced Set Selection", 2004, equation 13.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import KMPClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KMPClassifier(n_vectors=100, gamma=0.001).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True
    >>> model.expansion_.n_vectors
    100
    """

    _rules = _CLASSIFIER_RULES

    def __init__(
        self,
        n_vectors: int = 100,
        *,
        variant: str = "auto",
        loss: Any = "squared_error",
        max_iter: int = -1,
        backfit_every: int = 5,
        kernel: Any = "rbf",
        gamma: str | float | Sequence[Any] = "scale",
        coef0: float = 0.0,
        degree: int = 3,
        fit_intercept: bool | str = True,
        candidates: Any = None,
        functions: Callable[[Any], Any] | None = None,
        tol: float = 0.0,
        early_stopping: bool | Literal["gcv"] = False,
        validation_fraction: float = 0.1,
        cv: Any = None,
        n_iter_no_change: int | None = None,
        scoring: str = "loss",
        class_weight: Mapping[Any, float] | str | None = None,
        class_kernels: Mapping[Any, Mapping[str, Any]] | None = None,
        precision: str = "single",
        cache_size: float | None = None,
        sample_size: int | None = None,
        max_time: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_vectors = n_vectors
        self.variant = variant
        self.loss = loss
        self.max_iter = max_iter
        self.backfit_every = backfit_every
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.fit_intercept = fit_intercept
        self.candidates = candidates
        self.functions = functions
        self.tol = tol
        self.early_stopping: bool | Literal["gcv"] = early_stopping
        self.validation_fraction = validation_fraction
        self.cv = cv
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.class_weight = class_weight
        self.class_kernels = class_kernels
        self.precision = precision
        self.cache_size = cache_size
        self.sample_size = sample_size
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic_fit
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Training samples; float64, float32 and CSR are taken without a copy. (n, n) for the precomputed
            kernel.
        y : array-like of shape (n,)
            Labels, at least two.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the samples in the loss: a sample of weight 2 counts as two samples. Samples of weight
            zero take no part, and are no candidates. Samples that are held out of these for validation weigh
            the same there; those of `X_val` count as their classes weigh.
        X_val : {array-like, sparse matrix} of shape (n_val, d), default=None
            Validation samples.
        y_val : array-like of shape (n_val,), default=None
            Their labels.

        Returns
        -------
        KMPClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, lengths that disagree, a single class.
        KeyboardInterrupt
            On Ctrl-C, within a second; the estimator is then as it was.

        Warns
        -----
        ConvergenceWarning
            If `max_time` was over, or `max_iter` steps came before the size and the tolerance.
        """
        with fitting(self, X, y, sample_weight):
            X, y = self._validated(X, y)
            classes, labels = encode_classes(y)
            weights = sample_weights(sample_weight, X.shape[0])
            by_class, weights = class_weights(self.class_weight, weights, classes, labels)
            rows = self._watched(X_val, y_val)
            watched = None
            if rows is not None:
                found = np.searchsorted(classes, y_val).clip(max=classes.size - 1)
                if (classes[found] != np.asarray(y_val)).any():
                    raise ValueError("y_val has labels that y has not")
                own = by_class[found] if self.class_weight is not None else None
                watched = (rows, class_targets(found, classes.size), own)
            self.classes_ = classes
            labels = labels.astype(np.int64)
            self._fit(self._data(X, class_targets(labels, classes.size), labels, weights), watched)
        return self

    def _kernel_parts(self, data: Data, random: np.random.RandomState) -> list[Part]:
        if self.class_kernels is None:
            return super()._kernel_parts(data, random)
        assert data.labels is not None
        if self._is_precomputed() or not (self.candidates is None or np.isscalar(self.candidates)):
            raise refuse("class_kernels", self.class_kernels, "None for points that have no class")
        points, rows = self._points(data, random)
        place = np.searchsorted(data.rows, rows)
        unknown = set(self.class_kernels) - set(self.classes_.tolist())
        if unknown:
            raise refuse("class_kernels", self.class_kernels, f"a dict of classes, not {sorted(unknown)!r}")
        parts: list[Part] = []
        for number, label in enumerate(self.classes_.tolist()):
            class_settings: Any = self.class_kernels.get(label, {})
            if not isinstance(class_settings, Mapping):
                rule = "a dict from class to a dict of its kernel's parameters"
                raise refuse("class_kernels", self.class_kernels, rule)
            class_settings = dict(class_settings)
            values = {name: class_settings.pop(name, getattr(self, name)) for name in _OF_KERNEL}
            if class_settings:
                raise refuse("class_kernels", self.class_kernels, f"about {', '.join(_OF_KERNEL)} alone")
            check(values, {name: RULES[name] for name in _OF_KERNEL})
            if values["kernel"] == "precomputed" or isinstance(values["kernel"], (list, tuple)):
                raise refuse("class_kernels", self.class_kernels, "one computed kernel a class")
            gamma = default_gamma(values["gamma"], data.X, kernel=values["kernel"], weights=data.weights)
            spec = (values["kernel"], gamma, float(values["coef0"]), int(values["degree"]))
            mine = np.flatnonzero(data.labels[place] == number)
            parts.append(KernelPart(spec, points[mine], rows[mine], number))
        return parts

    def _outputs_of(self, y: Any) -> int:
        classes = np.unique(np.asarray(y)).size
        return 1 if classes <= 2 else classes

    def _decoded(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        flat = self.classes_[self._winners_of(outputs.reshape(-1, outputs.shape[-1]))]
        return flat.reshape(outputs.shape[:-1])

    def _scores(self, predictions: NDArray[Any], y: Any) -> NDArray[np.float64]:
        shares: NDArray[np.float64] = (predictions == np.asarray(y)).mean(axis=-1)
        return shares

    def _after_load(self) -> None:
        super()._after_load()
        ExpansionClassifier(self.expansions_[0], self.classes_, self._decoding)


# --- kernel matching pursuit for regression ---


def _numbers(y: Any, name: str) -> NDArray[np.float64]:
    """Returns the target matrix (n, q)."""
    try:
        targets = np.asarray(y).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from None
    if not np.isfinite(targets).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return np.ascontiguousarray(targets[:, np.newaxis] if targets.ndim == 1 else targets)


_REGRESSOR_RULES = {**RULES, "loss": loss_rule(FOR_NUMBERS), "delta": real(above=0.0)}


class KMPRegressor(RegressorOutputMixin, MatchingPursuit, schema="kmp-regressor/1"):
    """Kernel matching pursuit: regression by few kernel functions, chosen one after the other.

    f(x) = b + sum_i a_i k(x, z_i). From a dictionary of functions (kernels around
    `candidates`, user-defined `functions`, the constant), each step adds the one that reduces
    the training loss most, and refits all coefficients. Several targets share their functions.
    The number of functions is the capacity; every size up to `n_vectors` is kept (`path_`).

    Parameters
    ----------
    n_vectors : int, default=100
        Maximum number of functions; fewer if no further function reduces the loss.
    variant : {"auto", "prefit", "backfit", "basic"}, default="auto"
        "prefit" (pre-fitting) chooses the function that minimizes the error after all coefficients are
        refitted (orthogonal least squares), only for squared error; "backfit" (back-fitting) chooses by the
        angle with the residual, or for other losses with the direction of steepest descent, and refits all
        coefficients after the choice, for other losses every `backfit_every` steps; "basic" fits only the
        new coefficient, and may choose a function again. "auto" is "prefit" for squared error, else
        "backfit".
    loss : {"squared_error", "huber"} or object, default="squared_error"
        1/2 (f - y)^2; or that up to a difference of `delta` and linear beyond; or an object with the methods
        ``value(y, f)``, ``gradient(y, f)`` and ``hessian(y, f)`` of whole vectors.
    delta : float, default=1.0
        Where "huber" becomes linear.
    max_iter : int, default=-1
        Maximum number of steps; -1 means no limit: "prefit" and "backfit" take at most `n_vectors` by
        themselves. "basic" may return to its functions for ever, so there -1 stands for as many steps as
        `n_vectors`.
    backfit_every : int, default=5
        Steps between two settings of all coefficients; not used for squared error, which does it at each.
    kernel : str or callable, or list of such, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed" (`KernelExpansion` has the formulas), or a function ``k(A, B)`` that returns the
        values of two blocks of samples, which may be objects, as strings; it need be neither symmetric nor
        positive definite. With a list,
        each step chooses among all kernels. "precomputed" takes the (n, n) matrix of k(x_i, x_j) in `fit`,
        and (n_test, n) at prediction.
    gamma : {"scale", "auto"} or float, or list of such, default="scale"
        Kernel coefficient; "scale" is 1 / (n_features * X.var()), samples counted by their weights, "auto" is
        1 / n_features, and for Matérn kernels their square roots. With a list, each step chooses among the
        widths.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    fit_intercept : bool or "candidate", default=True
        Whether to fit an intercept. True: from the start, beside the `n_vectors` functions; "candidate": it
        is one of the functions to choose from.
    candidates : None, int, float or {array-like, sparse matrix} of shape (m, n_features), default=None
        Centers of the kernels: all training samples, a random subset of this number or share of them, or
        the given vectors.
    functions : callable or None, default=None
        Further functions to choose from: ``functions(X)`` returns (n, m) values for samples X.
    tol : float, default=0.0
        Stop when the norm of the residual is at most this share of the targets' norm.
    early_stopping : bool or "gcv", default=False
        Whether to choose the size with the smallest loss on validation samples. They are given to `fit`,
        the folds of a cross-validation (`cv`), or a share of the training samples (`validation_fraction`).
        "gcv" needs no validation samples: it takes the size of the least generalized cross-validation error,
        the training loss / (1 - (2 m + 1) / n)^2 for m functions and an intercept. For the squared error,
        samples of equal weight, and at most half as many functions as samples.
    validation_fraction : float, default=0.1
        Share of the training samples that is used for validation.
    cv : int, splitter, iterable of pairs of rows or None, default=None
        Folds of the cross-validation that chooses the size; the model is then fitted to all samples.
    n_iter_no_change : int or None, default=None
        Stop when the validation loss has not decreased for this number of steps. None continues up to
        `n_vectors`.
    precision : {"single", "double"}, default="single"
        Precision in which candidates are stored and compared. Single takes half the memory and less time; of
        two candidates that agree to six digits it may choose the other one. Chosen functions are computed and
        fitted in double precision.
    cache_size : float or None, default=None
        Memory for the dictionary in MB; None is 2000, or a share of the free memory if that is less. If it
        does not fit, each step evaluates a random sample of 59 functions, which is faster and usually as
        accurate.
    sample_size : int or None, default=None
        Number of functions that are drawn at each step; their values are not cached. None uses all
        functions.
    max_time : float or None, default=None
        Maximum number of seconds of a pursuit. One that ends early is a usable model, and warns.
    random_state : int, RandomState instance or None, default=None
        Seed of draws and splits.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The model, vectors in the order in which they were chosen. With several kernels an
        `svmarrow.models.ExpansionSum`, one kernel after the other. An AttributeError where the model has
        functions of the caller, or one of several kernels is a Python function.
    expansions_ : tuple of KernelExpansion
        One for each kernel, the intercept in the first; the model is their sum, and that of the functions.
    support_ : ndarray of int of shape (n_kernel_functions,)
        Training samples (or places in `candidates`) of the chosen kernel functions, in their order.
    support_kernels_ : ndarray of int of shape (n_kernel_functions,)
        Which kernel each has.
    function_coef_ : ndarray of shape (n_functions, n_outputs)
        Coefficients of the caller's functions, 0 for those not chosen.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs.
    dual_coef_ : ndarray of shape (n_outputs, n_vectors)
        Coefficients of `expansion_`.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    path_ : MatchingPath
        Every size: losses, and ``path_[size]``, the model of that size.
    n_vectors_ : int
        Functions of the model.
    n_iter_ : int
        Number of steps up to the model.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    References
    ----------
    P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 2002; several outputs as in J.
    Weston and G. Bakir, "Fast Binary and Multi-Output Reduced Set Selection", 2004, equation 13.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow import KMPRegressor
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = KMPRegressor(n_vectors=8).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.999
    True
    >>> model.path_[3].n_vectors_
    3
    """

    _rules = _REGRESSOR_RULES
    _stored_as: ClassVar[dict[str, str]] = {"_single": "flat_"}

    def __init__(
        self,
        n_vectors: int = 100,
        *,
        variant: str = "auto",
        loss: Any = "squared_error",
        delta: float = 1.0,
        max_iter: int = -1,
        backfit_every: int = 5,
        kernel: Any = "rbf",
        gamma: str | float | Sequence[Any] = "scale",
        coef0: float = 0.0,
        degree: int = 3,
        fit_intercept: bool | str = True,
        candidates: Any = None,
        functions: Callable[[Any], Any] | None = None,
        tol: float = 0.0,
        early_stopping: bool | Literal["gcv"] = False,
        validation_fraction: float = 0.1,
        cv: Any = None,
        n_iter_no_change: int | None = None,
        precision: str = "single",
        cache_size: float | None = None,
        sample_size: int | None = None,
        max_time: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_vectors = n_vectors
        self.variant = variant
        self.loss = loss
        self.delta = delta
        self.max_iter = max_iter
        self.backfit_every = backfit_every
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.fit_intercept = fit_intercept
        self.candidates = candidates
        self.functions = functions
        self.tol = tol
        self.early_stopping: bool | Literal["gcv"] = early_stopping
        self.validation_fraction = validation_fraction
        self.cv = cv
        self.n_iter_no_change = n_iter_no_change
        self.precision = precision
        self.cache_size = cache_size
        self.sample_size = sample_size
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic_fit
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Training samples; float64, float32 and CSR are taken without a copy. (n, n) for the precomputed
            kernel.
        y : array-like of shape (n,) or (n, q)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the samples in the loss: a sample of weight 2 counts as two samples. Samples of weight
            zero take no part, and are no candidates. Samples that are held out of these for validation weigh
            the same there; those of `X_val` count once each.
        X_val : {array-like, sparse matrix} of shape (n_val, d), default=None
            Validation samples.
        y_val : array-like of shape (n_val,) or (n_val, q), default=None
            Their targets.

        Returns
        -------
        KMPRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, lengths that disagree.
        KeyboardInterrupt
            On Ctrl-C, within a second; the estimator is then as it was.

        Warns
        -----
        ConvergenceWarning
            If `max_time` was over, or `max_iter` steps came before the size and the tolerance.
        """
        with fitting(self, X, y, sample_weight):
            X, y = self._validated(X, y, multi_output=True)
            targets = _numbers(y, "y")
            weights = sample_weights(sample_weight, X.shape[0])
            rows = self._watched(X_val, y_val)
            watched = None if rows is None else (rows, _numbers(y_val, "y_val"), None)
            if watched is not None and watched[1].shape[1] != targets.shape[1]:
                raise ValueError(f"y_val has {watched[1].shape[1]} columns, y has {targets.shape[1]}")
            self._single = np.ndim(y) == 1
            self._fit(self._data(X, targets, None, weights), watched)
        return self

    def _decoded(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._shaped(outputs)

    def _scores(self, predictions: NDArray[Any], y: Any) -> NDArray[np.float64]:
        return np.array([r2_score(y, one) for one in predictions])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
