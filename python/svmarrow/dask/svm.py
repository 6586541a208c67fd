"""Support vector classification over partitions: exact, and with a projected kernel.

Preparation and result of both fits come first: the code, the memory of the driver, the collected model.

Low-rank machines are linear machines on the features of a projected kernel. With K_mm = L L', every worker
computes the features K_lm L^-T of its rows once, and the rounds of `svmarrow.dask.rounds` train linear
machines on them. In a round the driver sends one vector of m numbers for each machine, whatever the number
of support vectors; it stores the features of the support vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmarrow import _core
from svmarrow._support.parameters import (
    InterruptedFit,
    atomic_fit,
    check,
    check_shape,
    integer,
    refuse,
    warn_caller,
)
from svmarrow._support.progress import fitting, progress
from svmarrow._support.rows import core_rows, threads, well_aligned
from svmarrow._support.training import refuse_beyond_memory, weights_differ
from svmarrow.dask.blocks import (
    Part,
    balanced_weights,
    check_features,
    check_span,
    classes_of,
    classification_part,
    delayed_blocks,
    gamma_of,
    moments_of,
    offsets,
    partition_indices,
    summary_of,
)
from svmarrow.dask.estimator import (
    PROBABILITIES,
    DaskEstimator,
    all_threads,
    choose_distributed_points,
)
from svmarrow.dask.partition import (
    ALTERNATIVE,
    Machines,
    bytes_of_driver,
    concatenate,
    estimate_fit,
    warm_start_rows,
)
from svmarrow.dask.rounds import Rounds
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.expansion.points import POINT_RULES
from svmarrow.models.machine import Certificate
from svmarrow.models.outputs import UnavailableMethod, pair_matrix
from svmarrow.svm._base import cost, decoding_of
from svmarrow.svm.classification import SVC
from svmarrow.svm.low_rank import LowRankSVC, projected_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.parameters import Decoding, Rule
    from svmarrow.dask.blocks import Summary
    from svmarrow.dask.estimator import Cluster
    from svmarrow.dask.partition import FitEstimate, RowSubset
    from svmarrow.dask.rounds import Round
    from svmarrow.expansion.kernel_expansion import KernelFunction

__all__ = [
    "CollectedModel",
    "DaskLowRankSVC",
    "DaskSVC",
    "PreparedFit",
    "code_of",
    "prepare_fit",
    "train_machines",
]


@dataclass(frozen=True, eq=False)
class CollectedModel:
    """A model as the local estimator stores it: support vectors by class, then by row."""

    vectors: Any
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    support: NDArray[np.int64]
    counts: NDArray[np.int64]
    certificate: Certificate


def code_of(decoding: Decoding, n_classes: int) -> NDArray[np.int8]:
    """Returns the code (n_classes, n_outputs) of the machines of a decoding."""
    if decoding == "binary":
        return np.array([[-1], [1]], dtype=np.int8)
    if decoding == "ovr":
        return (2 * np.eye(n_classes) - 1).astype(np.int8)
    return pair_matrix(n_classes)


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """Partitions, summaries and classes of a fit before its machines are trained."""

    #: The local estimator, which has the names and the number of the features and gets the model.
    local: Any
    #: Futures of the partitions.
    blocks: list[Any]
    summaries: list[Summary]
    classes: NDArray[Any]
    by_class: NDArray[np.float64]
    decoding: Decoding

    @property
    def matrix(self) -> NDArray[np.int8]:
        """The code of the machines."""
        return code_of(self.decoding, self.classes.size)

    @property
    def rows(self) -> int:
        """Number of rows of all partitions."""
        return sum(each.rows for each in self.summaries)

    def parts(self, cluster: Cluster, C: float) -> list[Any]:
        """Returns the futures of the training parts, and releases the partitions."""
        shared = [cluster.shared(value) for value in (self.classes, self.by_class)]
        parts = [cluster.submit(classification_part, block, *shared, C) for block in self.blocks]
        self.blocks.clear()
        return parts

    def fitted(self, expansion: KernelExpansion, certificate: Certificate, sample_weight: Any) -> Any:
        """Returns the local estimator with its model."""
        local = self.local
        local.classes_, local.class_weight_ = self.classes, self.by_class
        # Given weights, which lie on the workers, count as different.
        local._weighted = sample_weight is not None or weights_differ(self.by_class)
        local._coding, local.expansion_, local.certificate_ = self.decoding, expansion, certificate
        return local


def prepare_fit(estimator: Any, cluster: Cluster, X: Any, y: Any, sample_weight: Any) -> PreparedFit:
    """Loads the partitions on the workers and summarizes them."""
    local = estimator._local()
    check_features(local, X)
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    blocks = cluster.load(delayed_blocks(X, y, sample_weight))
    futures = [cluster.submit(summary_of, block, True, estimator.gamma == "scale") for block in blocks]
    summaries: list[Summary] = cluster.gather(futures, "the rows")
    if not sum(each.rows for each in summaries):
        raise ValueError("X has no rows: all of its partitions are empty")
    check_span(estimator, summaries)
    classes, totals, counts = classes_of(summaries)
    by_class = balanced_weights(estimator.class_weight, counts.astype(np.float64), classes)
    if not (totals * by_class).all():
        raise ValueError(
            f"the weights of class {classes[int(np.argmin(totals * by_class))]} are all zero: every class "
            "needs a sample of positive weight (sample_weight times class_weight)"
        )
    decoding = decoding_of(estimator, classes.size)
    check_shape(decoding, estimator.decision_function_shape, estimator.break_ties)
    return PreparedFit(local, blocks, summaries, classes, by_class, decoding)


def train_machines(
    estimator: Any,
    cluster: Cluster,
    parts: Sequence[Any],
    prepared: PreparedFit,
    machines: Machines,
    start: RowSubset | None = None,
) -> tuple[CollectedModel, list[Round], bool]:
    """Trains the machines; returns the model, the rounds, and whether Ctrl-C ended the fit."""
    jobs, interrupted = threads(estimator.n_jobs), False
    keeps = bool(getattr(estimator, "warm_start", False))
    with progress(estimator.verbose) as reporter:
        rounds = Rounds(
            cluster,
            parts,
            machines,
            jobs=jobs,
            max_iter=None if estimator.max_iter == -1 else int(estimator.max_iter),
            max_time=estimator.max_time,
            reporter=reporter,
        )
        try:
            check = _memory_check(type(estimator).__name__, machines, jobs)
            rounds.run(rounds.first(check) if start is None else start)
        except KeyboardInterrupt:
            if not keeps or rounds.solved is None:
                raise
            rounds.end("interrupted")
            interrupted = True
        model = _collect(cluster, parts, rounds, offsets(prepared.summaries), prepared.classes.size)
    if model.certificate.stop != "converged" and not rounds.stopped:
        warn_caller(_convergence_message(estimator, model.certificate), ConvergenceWarning)
    return model, rounds.log, interrupted


def _convergence_message(estimator: Any, certificate: Certificate) -> str:
    """Returns the warning of a fit that did not converge."""
    return (
        f"{type(estimator).__name__} ended before the tolerance was reached ({certificate.stop}): the "
        f"violation is {certificate.violation:.3g} for tol={estimator.tol:g}, the duality gap "
        f"{certificate.gap:.3g} of {certificate.primal:.6g}. The model is usable; raise max_iter or "
        "max_time, or scale the data"
    )


def _memory_check(name: str, machines: Machines, jobs: int) -> Callable[[int, int], None]:
    """Returns a function that raises MemoryError before support vectors are sent that the driver cannot
    store.
    """

    def check_memory(rows: int, held: int) -> None:
        refuse_beyond_memory(
            f"{name}.fit found {rows} support vectors in the partitions, which the driver must store; it",
            bytes_of_driver(machines, rows, held, jobs),
            ALTERNATIVE,
        )

    return check_memory


def _collect(
    cluster: Cluster, parts: Sequence[Any], rounds: Rounds, first: NDArray[np.int64], n_classes: int
) -> CollectedModel:
    """Collects the model of the last round."""
    assert rounds.solved is not None
    solved = rounds.solved
    rows = solved.rows.take(solved.rows.beta.any(axis=1))
    local = [rows.local[rows.part == number] for number in range(len(parts))]
    indices = cluster.gather(cluster.each(partition_indices, parts, local), "the rows")
    # The driver's rows are sorted by partition.
    support = np.concatenate([own + first[part] for part, own in enumerate(indices)])
    order = np.lexsort((support, rows.labels))
    return CollectedModel(
        rows.X[order],
        np.ascontiguousarray(rows.beta[order]),
        solved.intercepts,
        support[order],
        np.bincount(rows.labels, minlength=n_classes),
        Certificate(machines=solved.certificates, **rounds.effort),
    )


class DaskSVC(DaskEstimator):
    """Support vector classification over the partitions of a Dask collection, exact.

    The model of `svmarrow.SVC` on all samples, with its certificate: dual, primal over all samples, gap. The
    driver, the process that calls `fit`, trains the machines on samples that may be support vectors; the
    workers evaluate the machines on their partitions and send samples that violate the optimality conditions,
    until there are none. So the support vectors must fit into the memory of the driver: `estimate` predicts
    this before a fit, and `fit` raises MemoryError as early as possible. If they do not fit, as with noisy
    labels, use `DaskLowRankRLSClassifier`, whose messages do not grow with the samples, or `DaskLowRankSVC`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; multiplied for each sample by its class weight and its sample weight. Positive;
        inf allows no loss (it is replaced by 1e15); if the classes are not separable, such a fit only ends by
        `max_iter` or `max_time`.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32" or "matern52";
        `KernelExpansion` has the formulas. A function ``k(A, B)`` returns the kernel values of two blocks of
        samples, (n_samples_A, n_samples_B); it is sent to the workers. "precomputed" is not allowed, since no
        process has all samples.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of all kernels but "linear"; "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features, and for Matérn kernels their square roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    shrinking : bool, default=True
        Whether to remove samples at their bounds from the problem until the end. It changes the time, not the
        result, and has no effect if kernel rows are cached (kernels of many features on larger problems).
    tol : float, default=1e-3
        Maximum violation of the optimality conditions, in units of the decision function.
    cache_size : float or None, default=None
        Memory for kernel rows in MB, on the driver and of a task that trains on its partition; None is a
        share of the free memory.
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
        Whether to fit an intercept.
    warm_start : bool, default=False
        Whether `fit` reuses the previous solution as the starting point, after an early end or along a path
        of C. X must have the same samples in the same order, labels may differ. A fit with another shape or
        other classes starts from the support vectors of the partitions. Ctrl-C then keeps the solution of
        the last round before it raises `KeyboardInterrupt`.
    max_iter : int, default=-1
        Maximum number of SMO steps of a machine; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of the fit, which then evaluates all samples once more for its certificate.
        A fit that ends early is a usable model, and warns.
    n_jobs : int or None, default=None
        Number of threads of the driver; a task uses the threads of its worker. None means all cores that the
        driver's process may use, within the limits of joblib and ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether the driver shows the progress on stderr.

    Attributes
    ----------
    local_ : SVC
        The fitted local estimator. Its attributes are those of this estimator too, without the bounds of the
        leave-one-out error, which need the outputs of all samples in one process.
    rounds_ : list of Round
        Statistics of each round: samples on the driver, violators, gap, bytes, seconds.
    client : distributed.Client
        The client of the cluster; the current one if none was set. It is not a parameter.

    See Also
    --------
    svmarrow.SVC : The local estimator; `to_local` returns one with the present parameters.

    Notes
    -----
    The fit starts from the support vectors of the partitions (Graf et al. 2005); the rounds are a
    decomposition with the driver's samples as the working set, and end when no sample violates the optimality
    conditions. On one machine with memory for all samples `svmarrow.SVC` takes less time.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow.dask import DaskSVC
    >>> X, y = load_digits(n_class=4, return_X_y=True)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     rows, labels = da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)
    ...     svc = DaskSVC(C=10, gamma=1e-3).fit(rows, labels)
    ...     right = svc.score(rows, labels)
    >>> svc.certificate_.stop, right
    ('converged', 1.0)
    """

    _local_class = SVC
    _rules: ClassVar[Mapping[str, Rule]] = SVC._rules

    local_: SVC
    rounds_: list[Round]

    predict_proba: Any = UnavailableMethod(PROBABILITIES)
    predict_log_proba: Any = UnavailableMethod(PROBABILITIES)

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

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : dask array or dask frame of shape (n_samples, n_features)
            Training samples, each in one chunk. Chunks may be empty, sparse, or of unknown sizes.
        y : dask array, dask series or column of shape (n_samples,)
            Labels, in the same chunks.
        sample_weight : dask array or series of shape (n_samples,) or None, default=None
            Weight of each sample, as in `svmarrow.SVC`.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        TypeError
            If X is not a Dask collection.
        ValueError
            As `svmarrow.SVC`, if chunks do not match, or without a client.
        MemoryError
            If the driver's memory is too small for the support vectors.
        RuntimeError
            If too many workers died, or data was lost that cannot be recomputed.
        KeyboardInterrupt
            On Ctrl-C; the estimator is then unchanged, or has the model of the last round with
            ``warm_start=True``.

        Warns
        -----
        ConvergenceWarning
            If a machine ended before the tolerance was reached.
        """
        self._check_parameters()
        self._check_computed()
        with fitting(self, X, y, sample_weight), self._connected() as cluster:
            prepared, machines, parts = self._parts(cluster, X, y, sample_weight)
            start = self._warm_start(cluster, parts, prepared)
            model, self.rounds_, interrupted = train_machines(self, cluster, parts, prepared, machines, start)
            expansion = KernelExpansion(model.vectors, model.coefficients, model.intercepts, *machines.kernel)
            local = prepared.fitted(expansion, model.certificate, sample_weight)
            local.support_, local.n_support_ = model.support.astype(np.int32), model.counts.astype(np.int32)
            local.shape_fit_ = (prepared.rows, local.n_features_in_)
            self.local_ = local
            if interrupted:
                raise InterruptedFit(self)
        return self

    def _parts(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any
    ) -> tuple[PreparedFit, Machines, list[Any]]:
        """Returns the prepared fit, the machines, and the futures of the training parts."""
        prepared = prepare_fit(self, cluster, X, y, sample_weight)
        gamma = gamma_of(self.gamma, prepared.summaries, self.kernel)
        machines = Machines(
            prepared.matrix,
            (self.kernel, gamma, float(self.coef0), int(self.degree)),
            self.loss,
            bool(self.fit_intercept),
            float(self.tol),
            {"cache_size": self.cache_size, "shrinking": bool(self.shrinking)},
        )
        return prepared, machines, prepared.parts(cluster, cost(self.C))

    def estimate(self, X: Any, y: Any, sample_weight: Any = None, *, sample: int = 5000) -> FitEstimate:
        """Estimates the resources of `fit`.

        They follow from one pass over the partitions and fits to a sample on the driver.

        Parameters
        ----------
        X : dask array or dask frame of shape (n_samples, n_features)
            Training samples as for `fit`.
        y : dask array, dask series or column of shape (n_samples,)
            Labels, in the same chunks.
        sample_weight : dask array or series of shape (n_samples,) or None, default=None
            Weights with the same chunks.
        sample : int, default=5000
            Number of samples from which the number of support vectors is estimated, at least 2.

        Returns
        -------
        FitEstimate
            Support vectors, rounds, memory of driver and workers, bytes sent, kernel values; ``advice`` names
            an alternative if the driver cannot store the support vectors. The number of support vectors is
            extrapolated from a sample and may be wrong by a factor of two.

        Raises
        ------
        TypeError, ValueError, RuntimeError
            As `fit`; ValueError also for an invalid ``sample``.

        Examples
        --------
        >>> import dask.array as da
        >>> from distributed import Client
        >>> from sklearn.datasets import make_moons
        >>> from svmarrow.dask import DaskSVC
        >>> X, y = make_moons(20_000, noise=0.2, random_state=0)
        >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
        ...     rows, labels = da.from_array(X, chunks=(5000, -1)), da.from_array(y, chunks=5000)
        ...     svc = DaskSVC(gamma=2)
        ...     estimate, n_support = svc.estimate(rows, labels), svc.fit(rows, labels).support_.size
        >>> estimate.advice is None, 0.5 < estimate.support / n_support < 2
        (True, True)
        """
        self._check_parameters()
        check({"sample": sample}, {"sample": integer(least=2)})
        self._check_computed()
        with self._connected() as cluster:
            _, machines, parts = self._parts(cluster, X, y, sample_weight)
            return estimate_fit(type(self).__name__, cluster, parts, machines, int(sample), self.n_jobs)

    def _check_computed(self) -> None:
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise refuse(
                "kernel", self.kernel, "one that is computed from samples, since no process has them all"
            )

    def _warm_start(self, cluster: Cluster, parts: Sequence[Any], prepared: PreparedFit) -> RowSubset | None:
        """Returns the previous solution with ``warm_start``, if its shape and classes are the same."""
        if not self.warm_start or not self.__sklearn_is_fitted__():
            return None
        before, ends = self.local_, offsets(prepared.summaries)
        same = np.array_equal(before.classes_, prepared.classes)
        shape, outputs = (prepared.rows, prepared.local.n_features_in_), prepared.matrix.shape[1]
        if not same or before.shape_fit_ != shape or before.expansion_.n_outputs != outputs:
            return None
        order = np.argsort(before.support_, kind="stable")
        support, beta = before.support_[order].astype(np.int64), before.expansion_.coefficients[order]
        cuts = np.searchsorted(support, ends)
        found = [
            cluster.submit(
                warm_start_rows, part, support[cuts[i] : cuts[i + 1]] - ends[i], beta[cuts[i] : cuts[i + 1]]
            )
            for i, part in enumerate(parts)
        ]
        return concatenate(cluster.gather(found, "the rows"))


class DaskLowRankSVC(DaskEstimator):
    """Support vector classification with few vectors, over the partitions of a Dask collection.

    The model of `svmarrow.LowRankSVC` on all samples, with its certificate for the projected kernel. It has
    ``n_vectors`` vectors whatever the number of support vectors, for each of which the driver stores
    ``n_vectors`` numbers.

    Parameters
    ----------
    n_vectors : int, default=500
        Number of vectors; fewer if there are fewer samples.
    C : float, default=1.0
        Weight of the loss; multiplied for each sample by its class weight and its sample weight.
    selection : str or array of shape (m, d), default="random"
        How the vectors are chosen among the samples of positive weight, as in
        `svmarrow.least_squares.LowRankRLSClassifier`: "random" draws from all samples; "kmeans",
        "pivoted_cholesky", "leverage" and "greedy_trace" choose from a random subset of 20 samples for each
        vector (at least 10,000). Or the vectors themselves.
    kernel : str, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32" or "matern52";
        `KernelExpansion` has the formulas. It must be positive semidefinite.
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
        Maximum number of seconds of the rounds, after which the fit evaluates all samples once more for its
        certificate.
    random_state : int, RandomState instance or None, default=None
        Seed of the vectors; None draws different ones in each `fit`.
    n_jobs : int or None, default=None
        Number of threads of the driver; a task uses the threads of its worker. None means all cores that the
        driver's process may use, within the limits of joblib and ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether the driver shows the progress on stderr.

    Attributes
    ----------
    local_ : LowRankSVC
        The fitted local estimator. Its attributes are those of this estimator too.
    rounds_ : list of Round
        Statistics of each round.
    client : distributed.Client
        The client of the cluster; the current one if none was set. It is not a parameter.

    See Also
    --------
    svmarrow.LowRankSVC : The local estimator; `to_local` returns one with the present parameters.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow.dask import DaskLowRankSVC
    >>> X, y = load_digits(n_class=4, return_X_y=True)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     rows, labels = da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)
    ...     model = DaskLowRankSVC(50, C=10, random_state=0).fit(rows, labels)
    >>> model.expansion_.n_vectors, bool(model.to_local().score(X, y) > 0.95)
    (50, True)
    """

    _local_class = LowRankSVC
    _rules: ClassVar[Mapping[str, Rule]] = {**LowRankSVC._rules, **POINT_RULES}

    local_: LowRankSVC
    rounds_: list[Round]

    predict_proba: Any = UnavailableMethod(PROBABILITIES)
    predict_log_proba: Any = UnavailableMethod(PROBABILITIES)

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
        X : dask array or dask frame of shape (n_samples, n_features)
            Training samples, each in one chunk. Chunks may be empty, sparse, or of unknown sizes.
        y : dask array, dask series or column of shape (n_samples,)
            Labels, in the same chunks.
        sample_weight : dask array or series of shape (n_samples,) or None, default=None
            Weight of each sample, as in `svmarrow.LowRankSVC`.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError, MemoryError, RuntimeError
            As `DaskSVC`.

        Warns
        -----
        ConvergenceWarning
            If a machine ended before the tolerance was reached.
        """
        self._check_parameters()
        with fitting(self, X, y, sample_weight), self._connected() as cluster:
            prepared = prepare_fit(self, cluster, X, y, sample_weight)
            spec = (
                self.kernel,
                gamma_of(self.gamma, prepared.summaries, self.kernel),
                float(self.coef0),
                int(self.degree),
            )
            rows = prepared.parts(cluster, float(self.C))
            stats = cluster.gather([cluster.submit(moments_of, part, False) for part in rows], "the rows")
            points, numbers, _ = choose_distributed_points(
                cluster,
                rows,
                [count for count, _ in stats],
                offsets(prepared.summaries),
                prepared.local,
                spec,
                1.0 / (2.0 * float(self.C)),
            )
            jobs = threads(self.n_jobs)
            projected = projected_kernel(well_aligned(points), spec, None, jobs)
            held = cluster.shared((points, spec))
            parts = [cluster.submit(projected_part, part, held) for part in rows]
            del rows
            linear, solver = ("linear", 1.0, 0.0, 3), {"cache_size": None, "shrinking": True}
            machines = Machines(prepared.matrix, linear, "hinge", True, float(self.tol), solver)
            found, self.rounds_, _ = train_machines(self, cluster, parts, prepared, machines)
            weights = _core.linear_weights(core_rows(found.vectors), found.coefficients, jobs)
            coefficients = projected.coefficients(np.ascontiguousarray(weights.T), jobs)
            expansion = KernelExpansion(points, coefficients, found.intercepts, *spec)
            self.local_ = prepared.fitted(expansion, found.certificate, sample_weight)
            self.local_.indices_ = numbers
        return self


def projected_part(part: Part, shared: tuple[Any, tuple[str, float, float, int]]) -> Part:
    """Returns a partition with the projected features of its rows."""
    if not part.X.shape[0]:
        features = np.zeros((0, shared[0].shape[0]))
    else:
        with all_threads() as jobs:
            projected = projected_kernel(well_aligned(shared[0]), shared[1], None, jobs)
            features = projected.of(core_rows(part.X), None, jobs)
    return Part(part.number, features, part.labels, part.upper, part.kept)
