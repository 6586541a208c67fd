"""Low-rank least squares, for any number of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.parameters import (
    CLASS_WEIGHT,
    Rule,
    atomic_update,
    boolean,
    check,
    consistent,
    one_of,
    real,
    refuse,
    snapshot,
)
from svmarrow._support.progress import progress
from svmarrow._support.rows import core_rows, same_vectors, threads, validated
from svmarrow._support.training import any_weighted, sample_weights, weights_differ
from svmarrow.expansion.kernel_expansion import KernelExpansion, KernelFunction
from svmarrow.expansion.points import (
    POINT_RULES,
    VALUE_RULES,
    Points,
    bytes_of_points,
    bytes_of_sums,
    choose_points,
    factor_points,
    has_only_values,
    number_of_points,
)
from svmarrow.least_squares._base import (
    PENALTIES,
    SquareLossClassifier,
    SquareLossRegressor,
    kernel_of,
    with_chosen_penalty,
)
from svmarrow.least_squares.targets import check_leaves_samples, check_sums, left_out, solve
from svmarrow.models.machine import KernelMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray


__all__ = [
    "LOW_RANK_RULES",
    "LowRankLeastSquares",
    "LowRankRLSClassifier",
    "LowRankRLSRegressor",
    "takes_pieces",
]


# --- base class of the low-rank estimators: points, sums over rows, the system, batches, merging ---


LOW_RANK_RULES = {
    **POINT_RULES,
    **VALUE_RULES,
    "alpha": real(least=0.0),
    "alphas": PENALTIES,
    "method": one_of("subset_of_regressors", "subset", "nystrom"),
    "fit_intercept": boolean,
    "leave_one_out": boolean,
}


def takes_pieces(model: Any) -> bool:
    """Returns whether the model is a function of sums over rows."""
    return bool(model.method == "subset_of_regressors")


class LowRankLeastSquares(KernelMachine):
    """Base class of the low-rank estimators."""

    _rules: ClassVar[Mapping[str, Rule]] = LOW_RANK_RULES
    kernel: str | KernelFunction
    gamma: str | float
    degree: int
    coef0: float
    verbose: bool | int

    _kernel: ClassVar[Callable[..., tuple[Any, float, float, int]]] = kernel_of
    n_vectors: int
    alpha: float
    alphas: ArrayLike | None
    method: Literal["subset_of_regressors", "subset", "nystrom"]
    selection: str | ArrayLike
    fit_intercept: bool
    leave_one_out: bool
    random_state: Any

    alpha_: float
    loo_errors_: NDArray[np.float64]
    indices_: NDArray[np.int64] | None
    remaining_trace_: NDArray[np.float64]
    jitter_: float
    n_seen_: int
    _sums: Any
    _spec: tuple[str, float, float, int]
    _vectors: Any
    #: Features of the points, where the kernel is known by its values only.
    _triangle: NDArray[np.float64] | None = None
    _stored_as: ClassVar[dict[str, str]] = {
        "_spec": "kernel_spec_",
        "_sums": "sums_",
        "_triangle": "triangle_",
        "_vectors": "points_",
    }
    expansion_: KernelExpansion

    def _after_load(self) -> None:
        super()._after_load()
        if self._sums is not None:
            check_sums(self, self._vectors, self._spec, self._sums, is_model=takes_pieces(self))

    def _bytes(self, X: Any, outputs: int) -> int:
        n, d = int(X.shape[0]), int(X.shape[1])
        m = number_of_points(X, self.n_vectors, self.selection)
        points = bytes_of_points(X, self.n_vectors, self.selection, self.kernel)
        if self.method == "subset":
            system = _core.least_squares_bytes(m, X.dtype != np.float64, bool(self.leave_one_out))
            return points + int(system) + 8 * (m * (2 * d + 8 * outputs) + 2 * n * outputs)
        return points + bytes_of_sums(n, d, m, outputs, with_hat=self._needs_left_out())

    def _needs_left_out(self) -> bool:
        return bool(self.leave_one_out) or self.alphas is not None

    def _remedy(self) -> str:
        return "lower n_vectors"

    def _call(self, reporter: Any) -> tuple[Any, int]:
        return (reporter.callback, threads(self.n_jobs))

    def _begin(self, X: Any, weights: NDArray[np.float64] | None) -> None:
        """Chooses the points from the first batch."""
        self._spec = self._kernel(X, weights)
        vectors, rows, remaining = choose_points(
            X,
            self.n_vectors,
            self._spec,
            selection=self.selection,
            alpha=float(self.alpha),
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self._triangle = None
        # The loss of "subset" is that of the points: dependent ones count too.
        if has_only_values(self._spec[0]) and self.method != "subset":
            factored = factor_points(self._spec[0], vectors, X)
            vectors, self._triangle = factored.features.points, factored.features.triangle
            rows = None if rows is None else rows[factored.places]
        self._vectors, self.indices_, self._sums = vectors, rows, None
        self.n_seen_ = 0
        if remaining is not None:
            self.remaining_trace_ = remaining

    @property
    def _points(self) -> Points:
        return Points(self._vectors, self._spec, self._triangle)

    def _add(self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None) -> None:
        with progress(self.verbose) as reporter:
            self._sums = _core.low_rank_sums(
                core_rows(X),
                (np.ascontiguousarray(targets), weights),
                self._points.core(),
                self._sums,
                *self._call(reporter),
            )
        self.n_seen_ = int(self._sums["rows"])

    def _finish(self, X: Any = None, alpha: float | None = None) -> NDArray[np.float64] | None:
        """Solves the system of the sums; returns the hat diagonal of X if given."""
        self.alpha_ = float(self.alpha) if alpha is None else alpha
        with progress(self.verbose) as reporter:
            solved = _core.low_rank_solve(
                {
                    "points": self._points.core(),
                    "sums": self._sums,
                    "alpha": self.alpha_,
                    "fit_intercept": bool(self.fit_intercept),
                },
                None if X is None else core_rows(X),
                *self._call(reporter),
            )
        self.jitter_ = float(solved["jitter"])
        self.expansion_ = KernelExpansion(
            self._vectors, solved["coefficients"], solved["intercepts"], *self._spec
        )
        return solved["hat"]

    def _fit(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        if self.method == "nystrom" and self.leave_one_out:
            raise refuse("leave_one_out", True, "False for method='nystrom'")
        if self.method == "nystrom" and self.fit_intercept:
            raise refuse("fit_intercept", True, "False for method='nystrom'")
        if self.method == "nystrom" and self.alpha == 0.0:
            raise refuse("alpha", self.alpha, "above 0 for method='nystrom'")
        if self.alphas is not None and not takes_pieces(self):
            raise refuse("alphas", self.alphas, f"None for method={self.method!r}")
        self._begin(X, weights)
        if self.method == "subset":
            return self._fit_subset(X, targets, weights)
        needs_samples = self._needs_left_out() and takes_pieces(self)
        if needs_samples:
            check_leaves_samples(X, fit_intercept=bool(self.fit_intercept))
        samples = self._points.samples(X)
        self._add(samples, targets, weights)

        def without_each(alpha: float | None = None) -> NDArray[np.float64]:
            hat = self._finish(samples, alpha)
            assert hat is not None
            outputs = self._points.outputs(self.expansion_, samples, self.n_jobs)
            return left_out(targets, outputs, hat, weights)

        if self.alphas is not None:
            return with_chosen_penalty(self, without_each, targets, weights)
        if needs_samples:
            return without_each()
        self._finish()
        if self.method == "nystrom":
            residuals = targets - self._points.outputs(self.expansion_, samples, self.n_jobs)
            if weights is not None:
                residuals *= weights[:, np.newaxis]
            vectors = np.arange(float(len(X)))[:, np.newaxis] if self._is_precomputed() else X.copy()
            self.expansion_ = KernelExpansion(
                vectors, residuals / float(self.alpha), np.zeros(targets.shape[1]), *self._spec
            )
        return None

    def _spread(self, X: Any, kept: NDArray[np.intp]) -> None:  # noqa: ARG002
        if self.indices_ is not None:
            self.indices_ = kept[self.indices_].astype(np.int64)
        if self._is_precomputed():
            self._vectors = kept[self._vectors.astype(np.intp)].astype(np.float64)
            vectors = kept[self.expansion_.vectors.astype(np.intp)].astype(np.float64)
            self.expansion_ = self.expansion_.replaced(vectors=vectors)

    def _fit_subset(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        rows = self.indices_
        if rows is None:
            raise refuse("selection", self.selection, "one that chooses rows, for method='subset'")
        fit = solve(
            X[np.ix_(rows, rows)] if self._is_precomputed() else self._vectors,
            targets[rows],
            float(self.alpha),
            self._spec,
            fit_intercept=bool(self.fit_intercept),
            leave_one_out=bool(self.leave_one_out),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            weights=None if weights is None else np.ascontiguousarray(weights[rows]),
        )
        solved = fit.expansion
        self.expansion_ = KernelExpansion(self._vectors, solved.coefficients, solved.intercepts, *self._spec)
        self.alpha_, self.jitter_, self.n_seen_ = float(self.alpha), 0.0, int(X.shape[0])
        if fit.loo is None:
            return None
        # Rows that are not points are out of the model as it is.
        left = self.expansion_._evaluate(X, self.n_jobs)
        left[rows] = fit.loo
        return left

    def _piece(
        self, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None, *, first: bool
    ) -> None:
        """Adds rows of positive weight and solves the system again."""
        if self.leave_one_out:
            raise refuse("leave_one_out", True, "False for partial_fit: earlier rows are gone")
        if self.alphas is not None:
            raise refuse("alphas", self.alphas, "None for partial_fit: earlier rows are gone")
        if self._is_precomputed():
            raise refuse("kernel", self.kernel, "another for partial_fit: later samples have no columns")
        # Earlier rows may have had other weights: all are compared with 1.
        differ = weights is not None and weights_differ(np.append(weights, 1.0))
        self._weighted = differ or (not first and self._weighted is not False)
        weighted_rows = None if weights is None or weights.all() else np.flatnonzero(weights)
        if weighted_rows is not None and weights is not None:
            if first and weighted_rows.size == 0:
                raise ValueError(
                    "the sample weights are all zero: the first batch needs a sample of positive weight"
                )
            X, targets = X[weighted_rows], targets[weighted_rows]
            weights = np.ascontiguousarray(weights[weighted_rows])
        if first:
            self._begin(X, weights)
            if weighted_rows is not None:
                self._spread(X, weighted_rows)
        if X.shape[0]:
            self._add(self._points.samples(X), targets, weights)
        self._finish()

    @consistent
    def path(self, alphas: ArrayLike) -> list[Self]:
        """Fit models with other penalties from the sums, without a pass over the samples.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,)
            Weights of the penalty, not negative.

        Returns
        -------
        list of estimators
            Fitted, one for each alpha in turn, with the same points.

        Raises
        ------
        ValueError
            For a ``method`` other than "subset_of_regressors", whose model is no function of sums.
        """
        check_is_fitted(self)
        if getattr(self, "_sums", None) is None or not takes_pieces(self):
            raise refuse("method", self.method, "'subset_of_regressors' for a path of penalties")
        models = []
        for alpha in np.ravel(np.asarray(alphas, dtype=np.float64)).tolist():
            check({"alpha": alpha}, {"alpha": self._rules["alpha"]})
            model = clone(self).set_params(alpha=alpha, alphas=None)
            others = ("loo_decision_", "loo_prediction_", "loo_error_", "loo_errors_", "alpha", "alphas")
            fitted = {name: value for name, value in vars(self).items() if name not in others}
            model.__dict__ |= fitted
            model._finish()
            models.append(model)
        return models

    @atomic_update
    def merge(self, other: Self) -> Self:
        """Add the samples that another estimator has seen.

        Parameters
        ----------
        other : object
            An estimator of the same class with the same points, kernel and outputs, fitted by `fit` or
            `partial_fit` with ``method="subset_of_regressors"``; pass the points as ``selection`` to both.

        Returns
        -------
        object
            The model of all samples of both.

        Raises
        ------
        ValueError
            If the two do not agree.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        other = snapshot(other)
        mine, theirs = getattr(self, "_sums", None), getattr(other, "_sums", None)
        if mine is None or theirs is None:
            raise ValueError("merge needs two models of method='subset_of_regressors'")
        same = self.expansion_.vectors, other.expansion_.vectors
        # The same numbers may be stored in two types.
        equal = same_vectors(*(z if z.dtype == object else z.astype(np.float64) for z in same))
        classes = getattr(self, "classes_", ()), getattr(other, "classes_", ())
        if not equal or self._spec != other._spec or not np.array_equal(classes[0], classes[1]):
            raise ValueError("merge needs two models of the same points, kernel and classes")
        if mine["products"].shape != theirs["products"].shape:
            raise ValueError("merge needs two models of as many outputs")
        self._sums = {name: mine[name] + theirs[name] for name in mine}
        self.n_seen_ = int(self._sums["rows"])
        self._weighted = any_weighted([self._weighted, other._weighted])
        self._finish()
        return self


class LowRankRLSClassifier(SquareLossClassifier, LowRankLeastSquares, schema="low-rank-rls-classifier/1"):
    """Regularized least-squares classification with a fixed number of vectors (Rifkin 2002, section 3.7).

    Cost n m d + n m^2 / 2, memory m^2, whatever the number of samples.

    Parameters
    ----------
    n_vectors : int, default=500
        Number of vectors; fewer if there are fewer samples.
    alpha : float, default=1.0
        Weight of the penalty; lambda n in Rifkin (2002) for n samples.
    alphas : array-like of float or None, default=None
        Several penalties: the one with the least leave-one-out error is taken, `alpha` is not used. Each
        costs a factorization and a pass over the samples; only for "subset_of_regressors".
    method : {"subset_of_regressors", "subset", "nystrom"}, default="subset_of_regressors"
        The approximation. "subset_of_regressors" (Rifkin's rectangle method): only the vectors have
        coefficients, and the loss is that of all samples (3.86). "subset": the vectors are the only training
        samples. "nystrom": the kernel matrix is replaced by its projection on the vectors, and all samples
        have coefficients (3.81); for comparisons.
    selection : str or array of shape (m, d), default="random"
        How the vectors are chosen. "random": uniformly from the samples. "kmeans": cluster centers of
        scikit-learn's ``MiniBatchKMeans``, for dense samples. "pivoted_cholesky" (incomplete Cholesky
        factorization): next is the sample with the largest residual kernel value. "leverage": drawn by
        leverage scores. "greedy_trace": at each step, of 59 random samples the one that minimizes the trace
        of the residual kernel matrix; the best of 59 is among the best 5 % of all samples with a probability
        of 95 %. An array: these vectors, whatever ``n_vectors`` is.
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
        Kernel coefficient of all kernels but "linear" and "precomputed"; "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features, and for Matérn kernels their square roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized; not with "nystrom".
    leave_one_out : bool, default=False
        Whether exact leave-one-out values are computed, the vectors held fixed: a second pass over the
        samples; not with "nystrom".
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply those of the samples; "balanced" is
        n / (n_classes * count of the class), samples counted by their weights.
    random_state : int, RandomState instance or None, default=None
        Seed of the points.
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
    alpha_ : float
        The alpha of the model.
    loo_errors_ : ndarray of shape (n_alphas,)
        With ``alphas``: the leave-one-out error of each.
    dual_coef_ : ndarray of shape (n_outputs, m)
        Coefficients of the points.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs; zeros without ``fit_intercept``.
    expansion_ : KernelExpansion
        The model: points, coefficients (m, n_outputs), intercepts.
    indices_ : ndarray of shape (m,) or None
        Indices of the vectors among the training samples; None if they are not training samples.
    remaining_trace_ : ndarray of shape (m + 1,)
        Trace of K minus its approximation after each vector; for "pivoted_cholesky" and "greedy_trace".
    jitter_ : float
        What had to be added to the diagonal of the system because rounding had made it indefinite; mostly 0.
    n_seen_ : int
        Samples the model stands for.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow.least_squares import LowRankRLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LowRankRLSClassifier(200, alpha=0.1, random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.9)
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {**LOW_RANK_RULES, "class_weight": CLASS_WEIGHT}
    method: Literal["subset_of_regressors", "subset", "nystrom"]
    kernel: str | KernelFunction
    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    classes_: NDArray[Any]

    def __init__(
        self,
        n_vectors: int = 500,
        *,
        alpha: float = 1.0,
        alphas: ArrayLike | None = None,
        method: Literal["subset_of_regressors", "subset", "nystrom"] = "subset_of_regressors",
        selection: str | ArrayLike = "random",
        kernel: str = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = False,
        leave_one_out: bool = False,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_vectors = n_vectors
        self.alpha = alpha
        self.alphas = alphas
        self.method = method
        self.selection = selection
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.leave_one_out = leave_one_out
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @available_if(takes_pieces)  # type: ignore[untyped-decorator]
    @atomic_update
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Update the model with a batch: the result is that of a fit to all samples so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Samples. The vectors are chosen among those of the first piece.
        y : array-like of shape (n,)
            Labels.
        classes : array-like of shape (n_classes,) or None, default=None
            All labels that may come; needed in the first call.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squares; None is 1 for each. Samples of weight 0 are not there.

        Returns
        -------
        object
            The model of all samples so far.

        Raises
        ------
        ValueError
            As `fit`, for labels that are not among the classes, for a ``method`` other than
            "subset_of_regressors", and for ``class_weight="balanced"``, since the classes to come are not
            counted yet.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.
        """
        check(self.get_params(deep=False), self._rules)
        if self.class_weight == "balanced":
            raise refuse("class_weight", self.class_weight, "a dict or None for partial_fit")
        first = not hasattr(self, "_sums") or self._sums is None
        X, y = validated(self, X, y, reset=first, with_y=True)
        targets = self._targets_of_piece(y, classes, first=first)
        weights = self._row_weights(targets, sample_weights(sample_weight, X.shape[0]))
        self._piece(X, targets, weights, first=first)
        return self


class LowRankRLSRegressor(SquareLossRegressor, LowRankLeastSquares, schema="low-rank-rls-regressor/1"):
    """Regularized least-squares regression with a fixed number of vectors (Rifkin 2002, section 3.7).

    Cost n m d + n m^2 / 2, memory m^2, whatever the number of samples.

    Parameters
    ----------
    n_vectors : int, default=500
        Number of vectors; fewer if there are fewer samples.
    alpha : float, default=1.0
        Weight of the penalty; lambda n in Rifkin (2002) for n samples.
    alphas : array-like of float or None, default=None
        Several penalties: the one with the least leave-one-out error is taken, `alpha` is not used. Each
        costs a factorization and a pass over the samples; only for "subset_of_regressors".
    method : {"subset_of_regressors", "subset", "nystrom"}, default="subset_of_regressors"
        The approximation. "subset_of_regressors" (Rifkin's rectangle method): only the vectors have
        coefficients, and the loss is that of all samples (3.86). "subset": the vectors are the only training
        samples. "nystrom": the kernel matrix is replaced by its projection on the vectors, and all samples
        have coefficients (3.81); for comparisons.
    selection : str or array of shape (m, d), default="random"
        How the vectors are chosen. "random": uniformly from the samples. "kmeans": cluster centers of
        scikit-learn's ``MiniBatchKMeans``, for dense samples. "pivoted_cholesky" (incomplete Cholesky
        factorization): next is the sample with the largest residual kernel value. "leverage": drawn by
        leverage scores. "greedy_trace": at each step, of 59 random samples the one that minimizes the trace
        of the residual kernel matrix; the best of 59 is among the best 5 % of all samples with a probability
        of 95 %. An array: these vectors, whatever ``n_vectors`` is.
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
        Kernel coefficient of all kernels but "linear" and "precomputed"; "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features, and for Matérn kernels their square roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized; not with "nystrom".
    leave_one_out : bool, default=False
        Whether exact leave-one-out values are computed, the vectors held fixed: a second pass over the
        samples; not with "nystrom".
    random_state : int, RandomState instance or None, default=None
        Seed of the points.
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
    alpha_ : float
        The alpha of the model.
    loo_errors_ : ndarray of shape (n_alphas,)
        With ``alphas``: the leave-one-out error of each.
    dual_coef_ : ndarray of shape (n_outputs, m)
        Coefficients of the points.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs; zeros without ``fit_intercept``.
    expansion_ : KernelExpansion
        The model: points, coefficients (m, n_outputs), intercepts.
    indices_ : ndarray of shape (m,) or None
        Indices of the vectors among the training samples; None if they are not training samples.
    remaining_trace_ : ndarray of shape (m + 1,)
        Trace of K minus its approximation after each vector; for "pivoted_cholesky" and "greedy_trace".
    jitter_ : float
        What had to be added to the diagonal of the system because rounding had made it indefinite; mostly 0.
    n_seen_ : int
        Samples the model stands for.
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
    >>> from svmarrow.least_squares import LowRankRLSRegressor
    >>> X = np.linspace(0, 6, 500)[:, None]
    >>> model = LowRankRLSRegressor(20, alpha=1e-3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.999)
    True
    """

    method: Literal["subset_of_regressors", "subset", "nystrom"]
    kernel: str | KernelFunction

    def __init__(
        self,
        n_vectors: int = 500,
        *,
        alpha: float = 1.0,
        alphas: ArrayLike | None = None,
        method: Literal["subset_of_regressors", "subset", "nystrom"] = "subset_of_regressors",
        selection: str | ArrayLike = "random",
        kernel: str = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = False,
        leave_one_out: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_vectors = n_vectors
        self.alpha = alpha
        self.alphas = alphas
        self.method = method
        self.selection = selection
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.leave_one_out = leave_one_out
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @available_if(takes_pieces)  # type: ignore[untyped-decorator]
    @atomic_update
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Update the model with a batch: the result is that of a fit to all samples so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Samples. The vectors are chosen among those of the first piece.
        y : array-like of shape (n,) or (n, n_outputs)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squares; None is 1 for each. Samples of weight 0 are not there.

        Returns
        -------
        object
            The model of all samples so far.

        Raises
        ------
        ValueError
            As `fit`, for another number of outputs, and for a ``method`` other than "subset_of_regressors".
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.
        """
        check(self.get_params(deep=False), self._rules)
        first = not hasattr(self, "_sums") or self._sums is None
        X, y = self._validated_pair(X, y, precomputed=False, reset=first)
        targets = self._targets(y)
        if not first and targets.shape[1] != self._sums["targets"].size:
            raise ValueError(
                f"y has {targets.shape[1]} outputs: the rows so far have {self._sums['targets'].size}"
            )
        self._piece(X, targets, sample_weights(sample_weight, X.shape[0]), first=first)
        return self
