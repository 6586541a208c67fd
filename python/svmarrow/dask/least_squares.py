"""Low-rank least squares over partitions: sums of each, added in a tree, solved on the driver.

The subset-of-regressors system (Rifkin 2002, (3.86)) needs K_ml K_lm, K_ml y and a few more numbers, which
are sums over rows (`svmarrow.least_squares`). The sums of the partitions are added in pairs of neighbors in
a fixed order, so the bits do not depend on the number of workers. A message has m^2 numbers: 8 MB for 1,000
points, 200 MB for 5,000. Rows are read once for counts and variance, once for the points and once for the
sums, and are not stored: a collection of files may be larger than the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from svmarrow import _core
from svmarrow._support.parameters import atomic_fit, atomic_update, check, refuse
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
    DaskClassifier,
    DaskEstimator,
    all_threads,
    choose_distributed_points,
    tree_sum,
)
from svmarrow.expansion.points import POINT_RULES, bytes_of_sums
from svmarrow.least_squares import LowRankRLSClassifier, LowRankRLSRegressor
from svmarrow.least_squares._exact import refuse_time
from svmarrow.least_squares._low_rank import takes_batches, takes_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.dask.blocks import Part, Summary
    from svmarrow.dask.estimator import Cluster

__all__ = ["DaskLowRankRLSClassifier", "DaskLowRankRLSRegressor"]


class DaskLowRankRLS(DaskEstimator):
    """Base class of both estimators."""

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
        plain: Any = self
        self._check_method()
        with fitting(self, X, y, sample_weight), self._connected() as cluster:
            check_features(self, X)
            parts, summaries, outputs = self._parts(cluster, X, y, sample_weight, None)
            plain._weighted = self._may_be_weighted(sample_weight)
            stats = cluster.gather(
                [cluster.task(moments_of, part, plain.gamma == "scale") for part in parts], "the rows"
            )
            counts = [rows for rows, _ in stats]
            refuse_zero_weights(np.array(counts))
            check_span(self, summaries)
            gamma = gamma_of(plain.gamma, summaries, plain.kernel, [moments for _, moments in stats])
            spec = (plain.kernel, gamma, float(plain.coef0), int(plain.degree))
            first = offsets(summaries)
            points, rows, remaining = choose_distributed_points(
                cluster, parts, counts, first, self, spec, float(plain.alpha)
            )
            size = (int(points.shape[1]), int(points.shape[0]))
            needed = bytes_of_sums(0, *size, outputs, with_hat=False)
            refuse_beyond_memory(f"{type(self).__name__}.fit", needed, "lower n_vectors")
            plain._spec, plain._vectors, plain.indices_ = spec, points, rows
            if remaining is not None:
                plain.remaining_trace_ = remaining
            plain._sums = self._total_sums(cluster, parts)
            plain.n_seen_ = int(plain._sums["rows"])
            plain.solver_, plain.n_iter_ = "cholesky", 1
            plain._finish()
        return self

    def _may_be_weighted(self, sample_weight: Any) -> bool:
        """Returns whether samples may have different weights; given weights, which lie on the workers, count
        as such.
        """
        return sample_weight is not None or getattr(self, "class_weight", None) is not None

    def _check_method(self) -> None:
        plain: Any = self
        check(plain.get_params(deep=False), {**plain._rules, **POINT_RULES})
        if not takes_pieces(self):
            raise refuse("method", plain.method, "'subset_of_regressors', whose sums can be added")
        if plain.solver == "cg":
            raise refuse("solver", "cg", "'auto' or 'cholesky', whose sums can be added")
        refuse_time(plain.max_time, "cholesky")
        if plain.leave_one_out:
            raise refuse("leave_one_out", True, "False, since no process has the values of all rows")
        if plain.alphas is not None:
            raise refuse("alphas", plain.alphas, "None, since no process has the values of all rows")

    def _total_sums(self, cluster: Cluster, parts: Sequence[Any]) -> dict[str, Any]:
        """Returns the sums over all partitions."""
        plain: Any = self
        shared = cluster.shared((plain._vectors, plain._spec))
        classes = plain.classes_.size if hasattr(self, "classes_") else 0
        futures = [cluster.task(sums_of, part, shared, classes) for part in parts]
        added = cluster.result(tree_sum(cluster, _add_sums, futures), "the sums")
        if added is None:
            raise ValueError("X has no sample of positive weight: every partition is empty or of weight 0")
        return _well_aligned(added)

    def _parts(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any, known: NDArray[Any] | None
    ) -> tuple[list[Any], list[Summary], int]:
        """Returns delayed parts, summaries and the number of outputs; sets classes or target shape."""
        raise NotImplementedError

    def _add_rows(self, X: Any, y: Any, sample_weight: Any, known: NDArray[Any] | None) -> Self:
        """Adds the samples of another collection to the sums."""
        plain: Any = self
        self._check_method()
        with self._connected() as cluster:
            check_features(self, X, reset=False)
            before = plain._sums
            parts, _, outputs = self._parts(cluster, X, y, sample_weight, known)
            plain._weighted = self._may_be_weighted(sample_weight) or plain._weighted is not False
            if outputs != before["targets"].size:
                raise ValueError(f"y has {outputs} outputs: the rows so far have {before['targets'].size}")
            plain._sums = _add_sums(before, self._total_sums(cluster, parts))
            plain.n_seen_ = int(plain._sums["rows"])
            plain._finish()
        return self


class DaskLowRankRLSClassifier(DaskClassifier, DaskLowRankRLS, LowRankRLSClassifier):
    """Regularized least-squares classification with few vectors, over the partitions of a Dask collection.

    The same model as `svmarrow.least_squares.LowRankRLSClassifier` on all samples, up to the rounding of
    sums: the cost of a sample and the size of the model do not depend on the number of samples. Parameters
    and attributes are those of the local estimator with these differences: ``method`` is
    "subset_of_regressors", ``leave_one_out`` False and ``solver`` not "cg" ("auto" is "cholesky"); vectors
    are drawn from all samples, or chosen from a random subset of 20 samples for each vector (at least 10,000)
    if ``selection`` is not "random"; tasks use the threads of their workers, ``n_jobs`` is the number of
    threads of the driver.

    Attributes
    ----------
    client : distributed.Client
        The client of the cluster; the current one if none was set. It is not a parameter.

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

    >>> [other.alpha for other in model.to_local().path([0.01, 1.0])]
    [0.01, 1.0]
    """

    _local_class = LowRankRLSClassifier

    def _parts(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any, known: NDArray[Any] | None
    ) -> tuple[list[Any], list[Summary], int]:
        blocks = delayed_blocks(X, y, sample_weight)
        summaries = cluster.gather(
            [cluster.task(summary_of, block, True, False) for block in blocks], "the rows"
        )
        if known is None:
            classes, totals, _ = classes_of(summaries)
            by_class = balanced_weights(self.class_weight, totals, classes)
            self.classes_ = classes
        else:
            found = [each.labels for each in summaries if each.labels is not None]
            unknown = np.setdiff1d(np.concatenate(found), known) if found else np.empty(0)
            if unknown.size:
                raise ValueError(
                    f"y has the label {unknown.tolist()[0]!r}, which is not among the known classes"
                )
            classes, by_class = known, balanced_weights(self.class_weight, np.ones(known.size), known)
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
            super().partial_fit(X, y, classes, sample_weight)
            return self
        if getattr(self, "_sums", None) is None:
            return self.fit(X, y, sample_weight)
        if self.class_weight == "balanced":
            raise refuse("class_weight", self.class_weight, "a dict or None for partial_fit")
        return self._add_rows(X, y, sample_weight, self.classes_)


class DaskLowRankRLSRegressor(DaskLowRankRLS, LowRankRLSRegressor):
    """Regularized least-squares regression with few vectors, over the partitions of a Dask collection.

    The same model as `svmarrow.least_squares.LowRankRLSRegressor` on all samples, up to the rounding of sums.
    Parameters and attributes are those of the local estimator, with the differences of
    `DaskLowRankRLSClassifier`.

    Attributes
    ----------
    client : distributed.Client
        The client of the cluster; the current one if none was set. It is not a parameter.

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

    def _parts(
        self,
        cluster: Cluster,
        X: Any,
        y: Any,
        sample_weight: Any,
        known: NDArray[Any] | None,  # noqa: ARG002 - used by the classifier
    ) -> tuple[list[Any], list[Summary], int]:
        blocks = delayed_blocks(X, y, sample_weight)
        summaries = cluster.gather(
            [cluster.task(summary_of, block, False, False) for block in blocks], "the rows"
        )
        targets = {each.targets for each in summaries if each.rows}
        if len(targets) > 1:
            raise ValueError(f"y has {sorted(targets)} columns in different partitions")
        columns = targets.pop() if targets else 0
        self._single = columns == 0
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
            super().partial_fit(X, y, sample_weight)
            return self
        if getattr(self, "_sums", None) is None:
            return self.fit(X, y, sample_weight)
        return self._add_rows(X, y, sample_weight, None)


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


def _add_sums(a: dict[str, Any] | None, b: dict[str, Any] | None) -> dict[str, Any] | None:
    """Adds two sums."""
    if a is None or b is None:
        return b if a is None else a
    return {name: a[name] + b[name] for name in a}


def _well_aligned(sums: Any) -> dict[str, Any]:
    return {name: well_aligned(value) for name, value in sums.items()}
