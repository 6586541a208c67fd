"""Least squares with few points over partitions: sums of each, added up in a tree, solved on the driver.

The rectangle form (thesis (3.86)) needs K_ml K_lm, K_ml y and a few numbers more, which are sums over rows
(`svmarrow.least_squares`). Every partition gives its own; neighbours are added up two at a time by their
numbers alone, so the bits are the same on any number of workers. A message is m^2 numbers: 8 MB for 1,000
points, 200 MB for 5,000. Rows are read once for counts and variance, once for points that are drawn, once
for the sums, and are never kept: where the collection is made of files, one machine does for more rows than
its memory holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from svmarrow import _core
from svmarrow._support.atomic import atomic_fit, atomic_update
from svmarrow._support.callbacks import fitting
from svmarrow._support.memory import refuse_beyond_memory
from svmarrow._support.parameters import check, refuse
from svmarrow._support.rows import core_rows, well_aligned
from svmarrow.dask.blocks import aligned, is_lazy, remember_columns
from svmarrow.dask.cluster import all_threads, tree
from svmarrow.dask.estimator import DaskClassifier, DaskEstimator
from svmarrow.dask.parts import counted, labelled, spread_of
from svmarrow.dask.points import points_of
from svmarrow.dask.summary import balance, check_span, classes_of, gamma_of, offsets, summary_of
from svmarrow.expansion.points import bytes_of_sums
from svmarrow.least_squares import LowRankRLSClassifier, LowRankRLSRegressor
from svmarrow.least_squares._base import signs
from svmarrow.least_squares._low_rank import takes_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.dask.cluster import Cluster
    from svmarrow.dask.parts import Part
    from svmarrow.dask.summary import Summary

__all__ = ["DaskLowRankRLSClassifier", "DaskLowRankRLSRegressor"]


class Additive(DaskEstimator):
    """What both do, in front of the plain estimator."""

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the points, add up the partitions, solve the system.

        Parameters
        ----------
        X : dask array or dask frame of shape (n, d)
            Rows, each in one chunk of columns. Chunks may be empty, sparse, or of unknown sizes.
        y : dask array, series or frame of shape (n,) or (n, n_outputs)
            Labels or targets, in the same chunks.
        sample_weight : dask array or series of shape (n,) or None, default=None
            Weights of the squares; None is 1 for each.

        Returns
        -------
        self : object
            Itself.

        Raises
        ------
        TypeError
            For what is no Dask collection.
        ValueError
            As the plain estimator, for chunks that do not fit together, for a ``method`` other than
            "rectangle" and for ``leave_one_out``.
        MemoryError
            If the sums do not fit the driver.
        RuntimeError
            If workers died so often that Dask gave up, or took along what nothing can make again.
        """
        plain: Any = self
        self._check_additive()
        with fitting(self, X, y, sample_weight), self._connected() as cluster:
            remember_columns(self, X)
            parts, summaries, outputs = self._parts(cluster, X, y, sample_weight, None)
            plain._weighted = self._weighs(sample_weight)
            told = cluster.gather(
                [cluster.task(spread_of, part, plain.gamma == "scale") for part in parts], "the rows"
            )
            counts = [rows for rows, _ in told]
            if not sum(counts):
                raise ValueError("sample_weight is zero everywhere: at least one row must count")
            check_span(self, summaries)
            gamma = gamma_of(plain.gamma, summaries, plain.kernel, [moments for _, moments in told])
            spec = (plain.kernel, gamma, float(plain.coef0), int(plain.degree))
            first = offsets(summaries)
            points, rows, remaining = points_of(cluster, parts, counts, first, self, spec, float(plain.alpha))
            size = (int(points.shape[1]), int(points.shape[0]))
            needed = bytes_of_sums(0, *size, outputs, with_hat=False)
            refuse_beyond_memory(f"{type(self).__name__}.fit", needed, "lower n_vectors")
            plain._spec, plain._vectors, plain.indices_ = spec, points, rows
            if remaining is not None:
                plain.remaining_trace_ = remaining
            plain._sums = self._added(cluster, parts)
            plain.n_seen_ = int(plain._sums["rows"])
            plain._finish()
        return self

    def _weighs(self, sample_weight: Any) -> bool:
        """Whether rows may count differently: weights lie on the workers, so some that were given do."""
        return sample_weight is not None or getattr(self, "class_weight", None) is not None

    def _check_additive(self) -> None:
        plain: Any = self
        check(plain.get_params(deep=False), plain._rules)
        if not takes_pieces(self):
            raise refuse("method", plain.method, "'rectangle', whose sums can be added up")
        if plain.leave_one_out:
            raise refuse("leave_one_out", True, "False, since the values of all rows are in no one place")

    def _added(self, cluster: Cluster, parts: Sequence[Any]) -> dict[str, Any]:
        """The sums of all partitions."""
        plain: Any = self
        shared = cluster.shared((plain._vectors, plain._spec))
        classes = plain.classes_.size if hasattr(self, "classes_") else 0
        futures = [cluster.task(sums_of, part, shared, classes) for part in parts]
        added = cluster.result(tree(cluster, _added, futures), "the sums")
        if added is None:
            raise ValueError("no row of X counts: every partition is empty or of weight 0")
        return _well_aligned(added)

    def _parts(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any, known: NDArray[Any] | None
    ) -> tuple[list[Any], list[Summary], int]:
        """The delayed parts, their summaries, and the number of outputs; remembers classes or shapes."""
        raise NotImplementedError

    def _more(self, X: Any, y: Any, sample_weight: Any, known: NDArray[Any] | None) -> Self:
        """Adds the rows of another collection to the sums."""
        plain: Any = self
        self._check_additive()
        with self._connected() as cluster:
            remember_columns(self, X, reset=False)
            before = plain._sums
            parts, _, outputs = self._parts(cluster, X, y, sample_weight, known)
            plain._weighted = self._weighs(sample_weight) or plain._weighted is not False
            if outputs != before["targets"].size:
                raise ValueError(f"y has {outputs} outputs: the rows so far have {before['targets'].size}")
            plain._sums = _added(before, self._added(cluster, parts))
            plain.n_seen_ = int(plain._sums["rows"])
            plain._finish()
        return self


class DaskLowRankRLSClassifier(DaskClassifier, Additive, LowRankRLSClassifier, stored=False):
    """Regularized least-squares classification with few points, over the partitions of a Dask collection.

    The same model as `svmarrow.least_squares.LowRankRLSClassifier` on all rows, up to the rounding of sums:
    the cost of a row and the size of the model do not depend on the number of rows. Parameters and attributes
    are the plain estimator's, and these differ: ``method`` is "rectangle", ``leave_one_out`` False; points
    are drawn among all rows, for a ``selection`` other than "random" chosen from a sample of 20 rows for each
    point (10,000 at least), or given; the tasks take the threads of their workers, ``n_jobs`` is the
    driver's.

    Attributes
    ----------
    client : distributed.Client
        The client that is used: its own, else the current one. No parameter; copies and pickles lack it.

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

    Other penalties cost no pass over the rows:

    >>> [other.alpha for other in model.to_local().path([0.01, 1.0])]
    [0.01, 1.0]
    """

    _plain = LowRankRLSClassifier

    def _parts(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any, known: NDArray[Any] | None
    ) -> tuple[list[Any], list[Summary], int]:
        blocks = aligned(X, y, sample_weight)
        summaries = cluster.gather(
            [cluster.task(summary_of, block, True, False) for block in blocks], "the rows"
        )
        if known is None:
            classes, totals, _ = classes_of(summaries)
            by_class = balance(self.class_weight, totals, classes)
            self.classes_ = classes
        else:
            found = [each.labels for each in summaries if each.labels is not None]
            unknown = np.setdiff1d(np.concatenate(found), known) if found else np.empty(0)
            if unknown.size:
                raise ValueError(f"y has the label {unknown.tolist()[0]!r}, which is not among the classes")
            classes, by_class = known, balance(self.class_weight, np.ones(known.size), known)
        parts = [cluster.later(labelled, block, classes, by_class, 1.0) for block in blocks]
        return parts, summaries, 1 if classes.size == 2 else int(classes.size)

    @available_if(takes_pieces)  # type: ignore[untyped-decorator]
    @atomic_update
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Add the rows of a Dask collection, or of an array, to the model.

        Parameters
        ----------
        X, y : dask collections in the same chunks, or arrays
            Rows and labels. The points are those of the first collection.
        classes : array-like of shape (n_classes,) or None, default=None
            All labels that may come, where the first rows are an array; a first collection has them all.
        sample_weight : dask collection, array or None, default=None
            Weights of the squares.

        Returns
        -------
        self : object
            The model of all rows so far.
        """
        if not is_lazy(X):
            super().partial_fit(X, y, classes, sample_weight)
            return self
        if getattr(self, "_sums", None) is None:
            return self.fit(X, y, sample_weight)
        if self.class_weight == "balanced":
            raise refuse("class_weight", self.class_weight, "a dict or None for partial_fit")
        return self._more(X, y, sample_weight, self.classes_)


class DaskLowRankRLSRegressor(Additive, LowRankRLSRegressor, stored=False):
    """Regularized least-squares regression with few points, over the partitions of a Dask collection.

    The same model as `svmarrow.least_squares.LowRankRLSRegressor` on all rows, up to the rounding of sums.
    Parameters and attributes are the plain estimator's, with the differences of `DaskLowRankRLSClassifier`.

    Attributes
    ----------
    client : distributed.Client
        The client that is used: its own, else the current one. No parameter; copies and pickles lack it.

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

    _plain = LowRankRLSRegressor

    def _parts(
        self,
        cluster: Cluster,
        X: Any,
        y: Any,
        sample_weight: Any,
        known: NDArray[Any] | None,  # noqa: ARG002 - what classifiers need
    ) -> tuple[list[Any], list[Summary], int]:
        blocks = aligned(X, y, sample_weight)
        summaries = cluster.gather(
            [cluster.task(summary_of, block, False, False) for block in blocks], "the rows"
        )
        targets = {each.targets for each in summaries if each.rows}
        if len(targets) > 1:
            raise ValueError(f"y has {sorted(targets)} columns in different partitions")
        columns = targets.pop() if targets else 0
        self._single = columns == 0
        return [cluster.later(counted, block) for block in blocks], summaries, max(1, columns)

    @available_if(takes_pieces)  # type: ignore[untyped-decorator]
    @atomic_update
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add the rows of a Dask collection, or of an array, to the model.

        Parameters
        ----------
        X, y : dask collections in the same chunks, or arrays
            Rows and targets. The points are those of the first collection.
        sample_weight : dask collection, array or None, default=None
            Weights of the squares.

        Returns
        -------
        self : object
            The model of all rows so far.
        """
        if not is_lazy(X):
            super().partial_fit(X, y, sample_weight)
            return self
        if getattr(self, "_sums", None) is None:
            return self.fit(X, y, sample_weight)
        return self._more(X, y, sample_weight, None)


def sums_of(part: Part, shared: tuple[Any, tuple[Any, float, float, int]], classes: int) -> Any:
    """The sums of a partition, None where no row counts."""
    if not part.X.shape[0]:
        return None
    points, spec = shared
    targets = signs(part.labels, classes) if classes else part.labels
    with all_threads() as jobs:
        return _core.low_rank_sums(
            core_rows(part.X),
            (np.ascontiguousarray(targets), part.weights),
            (core_rows(well_aligned(points)), spec),
            None,
            None,
            jobs,
        )


def _added(a: dict[str, Any] | None, b: dict[str, Any] | None) -> dict[str, Any] | None:
    """The sums of both."""
    if a is None or b is None:
        return b if a is None else a
    return {name: a[name] + b[name] for name in a}


def _well_aligned(sums: Any) -> dict[str, Any]:
    return {name: well_aligned(value) for name, value in sums.items()}
