"""Exact support vector classification over partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from sklearn.base import clone

from svmarrow._support.atomic import Kept, atomic_fit
from svmarrow._support.callbacks import fitting
from svmarrow._support.parameters import check, integer, refuse
from svmarrow._support.rows import weights_differ
from svmarrow.dask.estimator import DaskClassifier
from svmarrow.dask.exact import prepare, solve
from svmarrow.dask.forecast import forecast
from svmarrow.dask.partition import Machines, again
from svmarrow.dask.parts import labelled
from svmarrow.dask.rounds import joined
from svmarrow.dask.summary import gamma_of, offsets
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.svm.classification import SVC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow._support.certificate import Certificate
    from svmarrow.dask.cluster import Cluster
    from svmarrow.dask.exact import Prepared
    from svmarrow.dask.forecast import FitEstimate
    from svmarrow.dask.partition import Found
    from svmarrow.dask.rounds import Round

__all__ = ["DaskSVC"]


class DaskSVC(DaskClassifier, SVC, stored=False):
    """Support vector classification over the partitions of a Dask collection, exact.

    The machine of `svmarrow.SVC` on all rows, with its certificate: dual, primal over all rows, gap. The
    driver, the process that calls `fit`, holds the rows that can be support vectors and solves the machines
    on them; the workers evaluate the machines on their partitions and send the rows that violate the
    optimality conditions, until there are none. So the support vectors must fit the driver: `estimate` says
    before a fit whether they will, and a fit ends as soon as it knows that they do not. Where they do not, as
    with noisy labels, take `DaskLowRankRLSClassifier`, whose messages do not grow with the rows, or
    `DaskLowRankSVC`.

    Parameters are those of `svmarrow.SVC`, with the same meaning, and these differences: ``kernel`` is not
    "precomputed"; ``cache_size``, ``n_jobs`` and ``verbose`` are the driver's, each task takes the threads of
    its worker; a fit that ``max_time`` ends takes one more look at all rows, for its certificate.

    Attributes
    ----------
    rounds_ : list of Round
        What each round was and cost: rows on the driver, violators, gap, bytes, seconds.
    client : distributed.Client
        The client that is used: its own, else the current one. No parameter; copies and pickles lack it.

    See Also
    --------
    svmarrow.SVC : The other attributes, which are the same; `to_local` gives one.

    Notes
    -----
    Beginning from each partition's support vectors is Graf et al. 2005; the rounds are decomposition with the
    driver's rows as the working set, and end when no row of any partition violates. On one machine with
    memory for all rows `svmarrow.SVC` takes less time.

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

    _plain = SVC
    _beside: ClassVar[tuple[str, ...]] = ("rounds_",)

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
        """Train.

        Parameters
        ----------
        X : dask array or dask frame of shape (n, d)
            Rows, each in one chunk of columns. Chunks may be empty, sparse, or of unknown sizes.
        y : dask array, dask series or column of shape (n,)
            Labels, in the same chunks.
        sample_weight : dask array or series of shape (n,) or None, default=None
            Weight of each row, as in `svmarrow.SVC`.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        TypeError
            For what is no Dask collection.
        ValueError
            As `svmarrow.SVC`, and for chunks that do not fit together, with the line that mends them; without
            a client.
        MemoryError
            If the support vectors do not fit the driver.
        RuntimeError
            If workers died so often that Dask gave up, or took along what nothing can make again.
        KeyboardInterrupt
            On Ctrl-C; the estimator is then as it was, or with ``warm_start=True`` as far as the last round.

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
        start = self._again(cluster, parts, prepared)
        found, log, interrupted = solve(self, cluster, parts, prepared, machines, start)
        self.classes_, self.class_weight_ = prepared.classes, prepared.by_class
        # Weights lie on the workers: some that were given count as different.
        self._weighted = sample_weight is not None or weights_differ(prepared.by_class)
        self._coding = prepared.decoding
        self.expansion_ = KernelExpansion(
            found.vectors, found.coefficients, found.intercepts, *machines.kernel
        )
        self.certificate_, self.rounds_ = found.certificate, log
        self.support_, self.n_support_ = found.support.astype(np.int32), found.counts.astype(np.int32)
        self.shape_fit_ = (prepared.rows, self.n_features_in_)
        if interrupted:
            raise Kept(self)
        return self

    def _parts(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Prepared, Machines, list[Any]]:
        """What is known of the rows, what is trained, and the futures of the rows that count."""
        prepared = prepare(self, cluster, X, y, sample_weight)
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
        parts = [cluster.submit(labelled, block, *shared, self._cost()) for block in prepared.blocks]
        prepared.blocks.clear()
        return prepared, machines, parts

    def estimate(self, X: Any, y: Any, sample_weight: Any = None, *, sample: int = 5000) -> FitEstimate:
        """What `fit` would need, from one pass over the partitions and fits to a sample on the driver.

        Parameters
        ----------
        X : dask array or dask frame of shape (n, d)
            Rows, as `fit` takes them.
        y : dask array, dask series or column of shape (n,)
            Labels, in the same chunks.
        sample_weight : dask array or series of shape (n,) or None, default=None
            Weights, in the same chunks.
        sample : int, default=5000
            Rows that the number of support vectors is estimated from, 2 at least. All rows of fewer.

        Returns
        -------
        FitEstimate
            Support vectors, rounds, memory of driver and workers, bytes that move, kernel values; ``advice``
            says what to train where the driver cannot hold the support vectors. Vectors of many rows are
            extrapolated from few, so a factor of two is within what may happen.

        Raises
        ------
        TypeError, ValueError, RuntimeError
            As `fit`; ValueError for a ``sample`` outside its rule too.

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
        ...     told, found = svc.estimate(rows, labels), svc.fit(rows, labels).support_.size
        >>> told.advice is None, 0.5 < told.support / found < 2
        (True, True)
        """
        check(self.get_params(deep=False), self._rules)
        check({"sample": sample}, {"sample": integer(least=2)})
        self._check_computed()
        with self._connected() as cluster:
            _, machines, parts = clone(self)._parts(cluster, X, y, sample_weight)
            return forecast(type(self).__name__, cluster, parts, machines, int(sample), self.n_jobs)

    def _check_computed(self) -> None:
        if self._is_precomputed():
            raise refuse(
                "kernel", self.kernel, "one that is computed from rows, since no process has them all"
            )

    def _again(self, cluster: Cluster, parts: Sequence[Any], prepared: Prepared) -> Found | None:
        """The last solution, where warm_start asks for it and it fits these rows."""
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
            cluster.submit(again, part, support[cuts[i] : cuts[i + 1]] - ends[i], beta[cuts[i] : cuts[i + 1]])
            for i, part in enumerate(parts)
        ]
        return joined(cluster.gather(found, "the rows"))

    def _estimates(self, *_: Any) -> NoReturn:
        raise AttributeError(
            "DaskSVC has no bounds of the leave-one-out error: they need the outputs of all rows in one place"
        )
