"""Exact support vector classification over partitions.

Preparation and result of any exact fit come first, low-rank machines use them too: the code, the memory of
the driver, the collected model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

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
from svmarrow._support.rows import threads
from svmarrow._support.training import refuse_beyond_memory, weights_differ
from svmarrow.dask.blocks import (
    balanced_weights,
    check_features,
    check_span,
    classes_of,
    classification_part,
    delayed_blocks,
    gamma_of,
    offsets,
    partition_indices,
    summary_of,
)
from svmarrow.dask.estimator import DaskClassifier
from svmarrow.dask.forecast import ALTERNATIVE, bytes_of_driver, estimate_fit
from svmarrow.dask.partition import Machines, warm_start_rows
from svmarrow.dask.rounds import Rounds, concatenate
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.machine import Certificate
from svmarrow.models.outputs import pair_matrix
from svmarrow.svm._base import decoding_of
from svmarrow.svm.classification import SVC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from svmarrow._support.parameters import Decoding
    from svmarrow.dask.blocks import Summary
    from svmarrow.dask.estimator import Cluster
    from svmarrow.dask.forecast import FitEstimate
    from svmarrow.dask.partition import RowSubset
    from svmarrow.dask.rounds import Round

__all__ = ["CollectedModel", "DaskSVC", "PreparedFit", "code_of", "prepare_fit", "train_machines"]


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


def prepare_fit(estimator: Any, cluster: Cluster, X: Any, y: Any, sample_weight: Any) -> PreparedFit:
    """Loads the partitions on the workers and summarizes them."""
    check_features(estimator, X)
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
    return PreparedFit(blocks, summaries, classes, by_class, decoding)


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


class DaskSVC(DaskClassifier, SVC):
    """Support vector classification over the partitions of a Dask collection, exact.

    The model of `svmarrow.SVC` on all samples, with its certificate: dual, primal over all samples, gap. The
    driver, the process that calls `fit`, trains the machines on samples that may be support vectors; the
    workers evaluate the machines on their partitions and send samples that violate the optimality conditions,
    until there are none. So the support vectors must fit into the memory of the driver: `estimate` predicts
    this before a fit, and `fit` raises MemoryError as early as possible. If they do not fit, as with noisy
    labels, use `DaskLowRankRLSClassifier`, whose messages do not grow with the samples, or `DaskLowRankSVC`.

    Parameters are those of `svmarrow.SVC` with these differences: ``kernel`` is not "precomputed";
    ``cache_size``, ``n_jobs`` and ``verbose`` apply to the driver, a task uses the threads of its worker; a
    fit that ``max_time`` ends evaluates all samples once more for its certificate.

    Attributes
    ----------
    rounds_ : list of Round
        Statistics of each round: samples on the driver, violators, gap, bytes, seconds.
    client : distributed.Client
        The client of the cluster; the current one if none was set. It is not a parameter.

    See Also
    --------
    svmarrow.SVC : The local estimator with the other attributes; `to_local` returns one.

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
    _dask_attributes: ClassVar[tuple[str, ...]] = ("rounds_",)

    rounds_: list[Round]
    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    expansion_: KernelExpansion
    certificate_: Certificate
    support_: NDArray[np.int32]
    n_support_: NDArray[np.int32]
    shape_fit_: tuple[int, int]

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
        check(self.get_params(deep=False), self._rules)
        self._check_computed()
        with fitting(self, X, y, sample_weight), self._connected() as cluster:
            return self._fit_partitions(cluster, X, y, sample_weight)

    def _fit_partitions(self, cluster: Cluster, X: Any, y: Any, sample_weight: Any) -> Self:
        prepared, machines, parts = self._parts(cluster, X, y, sample_weight)
        start = self._warm_start(cluster, parts, prepared)
        model, log, interrupted = train_machines(self, cluster, parts, prepared, machines, start)
        self.classes_, self.class_weight_ = prepared.classes, prepared.by_class
        # Given weights, which lie on the workers, count as different.
        self._weighted = sample_weight is not None or weights_differ(prepared.by_class)
        self._coding = prepared.decoding
        self.expansion_ = KernelExpansion(
            model.vectors, model.coefficients, model.intercepts, *machines.kernel
        )
        self.certificate_, self.rounds_ = model.certificate, log
        self.support_, self.n_support_ = model.support.astype(np.int32), model.counts.astype(np.int32)
        self.shape_fit_ = (prepared.rows, self.n_features_in_)
        if interrupted:
            raise InterruptedFit(self)
        return self

    def _parts(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any
    ) -> tuple[PreparedFit, Machines, list[Any]]:
        """Returns the prepared fit, the machines, and the futures of the training parts."""
        prepared = prepare_fit(self, cluster, X, y, sample_weight)
        gamma = gamma_of(self.gamma, prepared.summaries, self.kernel)
        options = self._options()
        machines = Machines(
            prepared.matrix,
            (self.kernel, gamma, float(self.coef0), int(self.degree)),
            options["loss"],
            options["fit_intercept"],
            float(self.tol),
            {"cache_size": self.cache_size, "shrinking": bool(self.shrinking)},
        )
        shared = [cluster.shared(value) for value in (prepared.classes, prepared.by_class)]
        parts = [
            cluster.submit(classification_part, block, *shared, self._cost()) for block in prepared.blocks
        ]
        prepared.blocks.clear()
        return prepared, machines, parts

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
        check(self.get_params(deep=False), self._rules)
        check({"sample": sample}, {"sample": integer(least=2)})
        self._check_computed()
        with self._connected() as cluster:
            _, machines, parts = clone(self)._parts(cluster, X, y, sample_weight)
            return estimate_fit(type(self).__name__, cluster, parts, machines, int(sample), self.n_jobs)

    def _check_computed(self) -> None:
        if self._is_precomputed():
            raise refuse(
                "kernel", self.kernel, "one that is computed from samples, since no process has them all"
            )

    def _warm_start(self, cluster: Cluster, parts: Sequence[Any], prepared: PreparedFit) -> RowSubset | None:
        """Returns the previous solution with ``warm_start``, if its shape and classes are the same."""
        if not self.warm_start or not hasattr(self, "expansion_"):
            return None
        expansion, ends = self.expansion_, offsets(prepared.summaries)
        same = np.array_equal(self.classes_, prepared.classes)
        shape = (prepared.rows, self.n_features_in_)
        if not same or self.shape_fit_ != shape or expansion.n_outputs != prepared.matrix.shape[1]:
            return None
        order = np.argsort(self.support_, kind="stable")
        support, beta = self.support_[order].astype(np.int64), expansion.coefficients[order]
        cuts = np.searchsorted(support, ends)
        found = [
            cluster.submit(
                warm_start_rows, part, support[cuts[i] : cuts[i + 1]] - ends[i], beta[cuts[i] : cuts[i + 1]]
            )
            for i, part in enumerate(parts)
        ]
        return concatenate(cluster.gather(found, "the rows"))

    def _estimates(self, *_: Any) -> NoReturn:
        raise AttributeError(
            "DaskSVC has no bounds of the leave-one-out error, which need the outputs of all samples in "
            "one process"
        )
