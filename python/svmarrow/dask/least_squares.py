"""Low-rank least squares over partitions: sums of each, added in a tree, solved on the driver.

The subset-of-regressors system (Rifkin 2002, (3.86)) needs K_ml K_lm, K_ml y and a few more numbers, which
are sums over rows (`svmarrow.least_squares`). The sums of the partitions are added in pairs of neighbors in
a fixed order, so the bits do not depend on the number of workers. A message has m^2 numbers: 8 MB for 1,000
points, 200 MB for 5,000. Rows are read once for counts and variance, once for the points and once for the
sums, and are not stored: a collection of files may be larger than the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.parameters import atomic_fit, atomic_update, consistent, refuse
from svmarrow._support.progress import fitting
from svmarrow._support.rows import core_rows, well_aligned
from svmarrow._support.training import class_targets, refuse_beyond_memory, refuse_zero_weights
from svmarrow.dask.blocks import (
    balanced_weights,
    check_features,
    check_span,
    classes_of,
    classification_part,
    delayed_blocks,
    gamma_of,
    is_lazy,
    moments_of,
    offsets,
    regression_part,
    summary_of,
)
from svmarrow.dask.estimator import (
    PROBABILITIES,
    DaskEstimator,
    all_threads,
    choose_distributed_points,
    tree_sum,
)
from svmarrow.expansion.points import POINT_RULES, bytes_of_sums
from svmarrow.least_squares import LowRankRLSClassifier, LowRankRLSRegressor
from svmarrow.least_squares._exact import refuse_time
from svmarrow.least_squares._low_rank import takes_batches, takes_pieces
from svmarrow.models.outputs import UnavailableMethod

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from svmarrow._support.parameters import Rule
    from svmarrow.dask.blocks import Part, Summary
    from svmarrow.dask.estimator import Cluster

__all__ = ["DaskLowRankRLSClassifier", "DaskLowRankRLSRegressor"]


class DaskLowRankRLS(DaskEstimator):
    """Base class of both estimators."""

    local_: Any

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the points, add the sums of the partitions and solve the system.

        Parameters
        ----------
        X : dask array or dask frame of shape (n_samples, n_features)
            Training samples, each in one chunk. Chunks may be empty, sparse, or of unknown sizes.
        y : dask array, series or frame of shape (n_samples,) or (n_samples, n_outputs)
            Labels or targets, in the same chunks.
        sample_weight : dask array or series of shape (n_samples,) or None, default=None
            Weights of the squared errors; None means 1.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        TypeError
            If X is not a Dask collection.
        ValueError
            As the local estimator, if chunks do not match, if ``method`` is not "subset_of_regressors"
            or with ``leave_one_out``.
        MemoryError
            If the driver's memory is too small for the sums.
        RuntimeError
            If too many workers died, or data was lost that cannot be recomputed.
        """
        self._check_method()
        with fitting(self, X, y, sample_weight), self._connected() as cluster:
            local = self._local()
            check_features(local, X)
            parts, summaries, outputs = self._parts(cluster, X, y, sample_weight, local)
            local._weighted = self._may_be_weighted(sample_weight)
            stats = cluster.gather(
                [cluster.task(moments_of, part, self.gamma == "scale") for part in parts], "the rows"
            )
            counts = [rows for rows, _ in stats]
            refuse_zero_weights(np.array(counts))
            check_span(self, summaries)
            gamma = gamma_of(self.gamma, summaries, self.kernel, [moments for _, moments in stats])
            spec = (self.kernel, gamma, float(self.coef0), int(self.degree))
            points, rows, remaining = choose_distributed_points(
                cluster, parts, counts, offsets(summaries), local, spec, float(self.alpha)
            )
            size = (int(points.shape[1]), int(points.shape[0]))
            needed = bytes_of_sums(0, *size, outputs, with_hat=False)
            refuse_beyond_memory(f"{type(self).__name__}.fit", needed, "lower n_vectors")
            local._spec, local._vectors, local.indices_ = spec, points, rows
            if remaining is not None:
                local.remaining_trace_ = remaining
            local.solver_, local.n_iter_ = "cholesky", 1
            self._solve(local, _total_sums(cluster, parts, local))
        return self

    def _solve(self, local: Any, sums: dict[str, Any]) -> None:
        """Solves the system of the sums; the local estimator is then the model."""
        local._sums, local.n_seen_ = sums, int(sums["rows"])
        local._finish()
        self.local_ = local

    def _may_be_weighted(self, sample_weight: Any) -> bool:
        """Returns whether samples may have different weights; given weights, which lie on the workers, count
        as such.
        """
        return sample_weight is not None or getattr(self, "class_weight", None) is not None

    def _check_method(self) -> None:
        self._check_parameters()
        if not takes_pieces(self):
            raise refuse("method", self.method, "'subset_of_regressors', whose sums can be added")
        if self.solver == "cg":
            raise refuse("solver", "cg", "'auto' or 'cholesky', whose sums can be added")
        refuse_time(self.max_time, "cholesky")
        if self.leave_one_out:
            raise refuse("leave_one_out", True, "False, since no process has the values of all rows")
        if self.alphas is not None:
            raise refuse("alphas", self.alphas, "None, since no process has the values of all rows")

    def _parts(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any, local: Any
    ) -> tuple[list[Any], list[Summary], int]:
        """Returns delayed parts, summaries and the number of outputs.

        It gives the local estimator its classes, or the shape of its targets.
        """
        raise NotImplementedError

    def _add_rows(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Adds the samples of another collection to the sums."""
        self._check_method()
        with self._connected() as cluster:
            check_features(self, X, reset=False)
            local = self._local()
            before = local._sums
            parts, _, outputs = self._parts(cluster, X, y, sample_weight, local)
            local._weighted = self._may_be_weighted(sample_weight) or local._weighted is not False
            if outputs != before["targets"].size:
                raise ValueError(f"y has {outputs} outputs: the rows so far have {before['targets'].size}")
            self._solve(local, _add_sums(before, _total_sums(cluster, parts, local)))
        return self

    @consistent
    def path(self, alphas: ArrayLike) -> list[Any]:
        """Fit local estimators with other penalties from the sums, without a pass over the samples.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,)
            Weights of the penalty, not negative.

        Returns
        -------
        list of local estimators
            Fitted, one for each alpha in turn, with the same points; they do not need Dask.
        """
        models: list[Any] = self.to_local().path(alphas)
        return models

    @atomic_update
    def merge(self, other: Any) -> Self:
        """Add the samples that another estimator has seen.

        Parameters
        ----------
        other : object
            An estimator of this class or of the local one with the same points, kernel and outputs.

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
        self.local_ = self._local().merge(other.to_local() if isinstance(other, DaskEstimator) else other)
        return self


class DaskLowRankRLSClassifier(DaskLowRankRLS):
    """Regularized least-squares classification with few vectors, over the partitions of a Dask collection.

    The same model as `svmarrow.least_squares.LowRankRLSClassifier` on all samples, up to the rounding of
    sums: the cost of a sample and the size of the model do not depend on the number of samples.

    Parameters
    ----------
    n_vectors : int, default=500
        Number of vectors; fewer if there are fewer samples.
    alpha : float, default=1.0
        Weight of the penalty; lambda n in Rifkin (2002) for n samples.
    alphas : array-like of float or None, default=None
        It must be None, since no process has the leave-one-out errors of all samples; `path` fits models with
        other penalties from the sums.
    method : {"subset_of_regressors", "subset", "nystrom"}, default="subset_of_regressors"
        It must be "subset_of_regressors": only the vectors have coefficients, and the loss is that of all
        samples. The other methods of the local estimator are refused, since their models are no functions of
        sums.
    selection : str or array of shape (m, d), default="random"
        How the vectors are chosen. "random": uniformly from all samples. "kmeans", "pivoted_cholesky",
        "leverage" and "greedy_trace": as in the local estimator, from a random subset of 20 samples for each
        vector (at least 10,000). An array: these vectors, whatever ``n_vectors`` is.
    kernel : str, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32" or "matern52";
        `KernelExpansion` has the formulas. It must be positive semidefinite.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of all kernels but "linear"; "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features, and for Matérn kernels their square roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized.
    leave_one_out : bool, default=False
        It must be False, since no process has the values of all samples.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        "cholesky" sums over the samples and factors the system on the driver; "auto" takes it. "cg" is
        refused, since it keeps no sums.
    tol : float, default=1e-6
        Not used; the accuracy of "cg" in the local estimator.
    max_iter : int, default=-1
        Not used; the maximum number of iterations of "cg" in the local estimator.
    max_time : float or None, default=None
        It must be None, since a factorization has no usable model before its end.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply those of the samples; "balanced" is
        n / (n_classes * count of the class), samples counted by their weights.
    random_state : int, RandomState instance or None, default=None
        Seed of the points.
    n_jobs : int or None, default=None
        Number of threads of the driver; a task uses the threads of its worker. None means all cores that the
        driver's process may use, within the limits of joblib and ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether the driver shows the progress on stderr.

    Attributes
    ----------
    local_ : LowRankRLSClassifier
        The fitted local estimator. Its attributes are those of this estimator too.
    client : distributed.Client
        The client of the cluster; the current one if none was set. It is not a parameter.

    See Also
    --------
    svmarrow.least_squares.LowRankRLSClassifier : The local estimator; `to_local` returns one with the
        present parameters.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow.dask import DaskLowRankRLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     rows, labels = da.from_array(X, chunks=(300, -1)), da.from_array(y, chunks=300)
    ...     model = DaskLowRankRLSClassifier(200, alpha=0.1, random_state=0).fit(rows, labels)
    >>> bool(model.to_local().score(X, y) > 0.95)
    True

    Other penalties need no further pass over the samples:

    >>> [other.alpha for other in model.path([0.01, 1.0])]
    [0.01, 1.0]
    """

    _local_class = LowRankRLSClassifier
    _rules: ClassVar[Mapping[str, Rule]] = {**LowRankRLSClassifier._rules, **POINT_RULES}

    local_: LowRankRLSClassifier

    predict_proba: Any = UnavailableMethod(PROBABILITIES)
    predict_log_proba: Any = UnavailableMethod(PROBABILITIES)

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
        solver: Literal["auto", "cholesky", "cg"] = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        max_time: float | None = None,
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
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _parts(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any, local: Any
    ) -> tuple[list[Any], list[Summary], int]:
        blocks = delayed_blocks(X, y, sample_weight)
        summaries = cluster.gather(
            [cluster.task(summary_of, block, True, False) for block in blocks], "the rows"
        )
        if hasattr(local, "classes_"):
            classes = local.classes_
            by_class = balanced_weights(self.class_weight, np.ones(classes.size), classes)
            labels = [each.labels for each in summaries if each.labels is not None]
            unknown = np.setdiff1d(np.concatenate(labels), classes) if labels else np.empty(0)
            if unknown.size:
                raise ValueError(
                    f"y has the label {unknown.tolist()[0]!r}, which is not among the known classes"
                )
        else:
            classes, totals, _ = classes_of(summaries)
            by_class = balanced_weights(self.class_weight, totals, classes)
            local.classes_ = classes
        parts = [cluster.later(classification_part, block, classes, by_class, 1.0) for block in blocks]
        return parts, summaries, 1 if classes.size == 2 else int(classes.size)

    @available_if(takes_batches)  # type: ignore[untyped-decorator]
    @atomic_update
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Update the model with the samples of a Dask collection or of an array.

        Parameters
        ----------
        X, y : dask collections in the same chunks, or arrays
            Samples and labels. The vectors are those of the first collection.
        classes : array-like of shape (n_classes,) or None, default=None
            All class labels, if the first samples are an array; a first collection must contain them all.
        sample_weight : dask collection, array or None, default=None
            Weights of the squared errors.

        Returns
        -------
        object
            The model of all samples so far.
        """
        if not is_lazy(X):
            self.local_ = self._local().partial_fit(X, y, classes, sample_weight)
            return self
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)
        if self.class_weight == "balanced":
            raise refuse("class_weight", self.class_weight, "a dict or None for partial_fit")
        return self._add_rows(X, y, sample_weight)


class DaskLowRankRLSRegressor(DaskLowRankRLS):
    """Regularized least-squares regression with few vectors, over the partitions of a Dask collection.

    The same model as `svmarrow.least_squares.LowRankRLSRegressor` on all samples, up to the rounding of sums.

    Parameters
    ----------
    n_vectors : int, default=500
        Number of vectors; fewer if there are fewer samples.
    alpha : float, default=1.0
        Weight of the penalty; lambda n in Rifkin (2002) for n samples.
    alphas : array-like of float or None, default=None
        It must be None, since no process has the leave-one-out errors of all samples; `path` fits models with
        other penalties from the sums.
    method : {"subset_of_regressors", "subset", "nystrom"}, default="subset_of_regressors"
        It must be "subset_of_regressors": only the vectors have coefficients, and the loss is that of all
        samples. The other methods of the local estimator are refused, since their models are no functions of
        sums.
    selection : str or array of shape (m, d), default="random"
        How the vectors are chosen. "random": uniformly from all samples. "kmeans", "pivoted_cholesky",
        "leverage" and "greedy_trace": as in the local estimator, from a random subset of 20 samples for each
        vector (at least 10,000). An array: these vectors, whatever ``n_vectors`` is.
    kernel : str, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32" or "matern52";
        `KernelExpansion` has the formulas. It must be positive semidefinite.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of all kernels but "linear"; "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features, and for Matérn kernels their square roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized.
    leave_one_out : bool, default=False
        It must be False, since no process has the values of all samples.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        "cholesky" sums over the samples and factors the system on the driver; "auto" takes it. "cg" is
        refused, since it keeps no sums.
    tol : float, default=1e-6
        Not used; the accuracy of "cg" in the local estimator.
    max_iter : int, default=-1
        Not used; the maximum number of iterations of "cg" in the local estimator.
    max_time : float or None, default=None
        It must be None, since a factorization has no usable model before its end.
    random_state : int, RandomState instance or None, default=None
        Seed of the points.
    n_jobs : int or None, default=None
        Number of threads of the driver; a task uses the threads of its worker. None means all cores that the
        driver's process may use, within the limits of joblib and ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether the driver shows the progress on stderr.

    Attributes
    ----------
    local_ : LowRankRLSRegressor
        The fitted local estimator. Its attributes are those of this estimator too.
    client : distributed.Client
        The client of the cluster; the current one if none was set. It is not a parameter.

    See Also
    --------
    svmarrow.least_squares.LowRankRLSRegressor : The local estimator; `to_local` returns one with the
        present parameters.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from svmarrow.dask import DaskLowRankRLSRegressor
    >>> X = da.linspace(0, 6, 1000, chunks=250)[:, None]
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     model = DaskLowRankRLSRegressor(20, alpha=1e-3, random_state=0).fit(X, da.sin(X[:, 0]))
    ...     right = model.score(X, da.sin(X[:, 0]))
    >>> right > 0.999
    True
    """

    _local_class = LowRankRLSRegressor
    _rules: ClassVar[Mapping[str, Rule]] = {**LowRankRLSRegressor._rules, **POINT_RULES}

    local_: LowRankRLSRegressor

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
        solver: Literal["auto", "cholesky", "cg"] = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        max_time: float | None = None,
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
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _parts(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any, local: Any
    ) -> tuple[list[Any], list[Summary], int]:
        blocks = delayed_blocks(X, y, sample_weight)
        summaries = cluster.gather(
            [cluster.task(summary_of, block, False, False) for block in blocks], "the rows"
        )
        targets = {each.targets for each in summaries if each.rows}
        if len(targets) > 1:
            raise ValueError(f"y has {sorted(targets)} columns in different partitions")
        columns = targets.pop() if targets else 0
        local._single = columns == 0
        return [cluster.later(regression_part, block) for block in blocks], summaries, max(1, columns)

    @available_if(takes_batches)  # type: ignore[untyped-decorator]
    @atomic_update
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Update the model with the samples of a Dask collection or of an array.

        Parameters
        ----------
        X, y : dask collections in the same chunks, or arrays
            Samples and targets. The vectors are those of the first collection.
        sample_weight : dask collection, array or None, default=None
            Weights of the squared errors.

        Returns
        -------
        object
            The model of all samples so far.
        """
        if not is_lazy(X):
            self.local_ = self._local().partial_fit(X, y, sample_weight)
            return self
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)
        return self._add_rows(X, y, sample_weight)


def _total_sums(cluster: Cluster, parts: Sequence[Any], local: Any) -> dict[str, Any]:
    """Returns the sums over all partitions."""
    shared = cluster.shared((local._vectors, local._spec))
    classes = local.classes_.size if hasattr(local, "classes_") else 0
    futures = [cluster.task(sums_of, part, shared, classes) for part in parts]
    added = cluster.result(tree_sum(cluster, _add_sums, futures), "the sums")
    if added is None:
        raise ValueError("X has no sample of positive weight: every partition is empty or of weight 0")
    return _well_aligned(added)


def sums_of(part: Part, shared: tuple[Any, tuple[Any, float, float, int]], classes: int) -> Any:
    """Returns the sums of a partition; None if it has no row of positive weight."""
    if not part.X.shape[0]:
        return None
    points, spec = shared
    targets = class_targets(part.labels, classes) if classes else part.labels
    with all_threads() as jobs:
        return _core.low_rank_sums(
            core_rows(part.X),
            (np.ascontiguousarray(targets), part.weights),
            (core_rows(well_aligned(points)), spec),
            None,
            None,
            jobs,
        )


def _add_sums(a: Any, b: Any) -> Any:
    """Adds two sums; None is the sum of no row."""
    if a is None or b is None:
        return b if a is None else a
    return {name: a[name] + b[name] for name in a}


def _well_aligned(sums: Any) -> dict[str, Any]:
    return {name: well_aligned(value) for name, value in sums.items()}
