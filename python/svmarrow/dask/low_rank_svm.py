"""Low-rank support vector machines over partitions: linear machines on the features of a projected kernel.

With K_mm = L L', every worker computes the features K_lm L^-T of its rows once, and the rounds of
`svmarrow.dask.rounds` train linear machines on them. In a round the driver sends one vector of m numbers for
each machine, whatever the number of support vectors; it stores the features of the support vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from svmarrow import _core
from svmarrow._support.parameters import atomic_fit, check
from svmarrow._support.progress import fitting
from svmarrow._support.rows import core_rows, threads, well_aligned
from svmarrow._support.training import weights_differ
from svmarrow.dask.blocks import Part, classification_part, gamma_of, moments_of, offsets
from svmarrow.dask.estimator import DaskClassifier, all_threads, choose_distributed_points
from svmarrow.dask.partition import Machines
from svmarrow.dask.svm import prepare_fit, train_machines
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.expansion.points import POINT_RULES
from svmarrow.svm.low_rank import LowRankSVC, projected_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.dask.estimator import Cluster
    from svmarrow.dask.rounds import Round
    from svmarrow.models.machine import Certificate

__all__ = ["DaskLowRankSVC"]


class DaskLowRankSVC(DaskClassifier, LowRankSVC):
    """Support vector classification with few vectors, over the partitions of a Dask collection.

    The model of `svmarrow.LowRankSVC` on all samples, with its certificate for the projected kernel. It has
    ``n_vectors`` vectors whatever the number of support vectors, for each of which the driver stores
    ``n_vectors`` numbers. Parameters and attributes are those of the local estimator with these differences:
    vectors are drawn from all samples, or chosen from a random subset of 20 samples for each vector (at least
    10,000) if ``selection`` is not "random"; ``n_jobs`` and ``verbose`` apply to the driver, a task uses
    the threads of its worker.

    Attributes
    ----------
    rounds_ : list of Round
        Statistics of each round.
    client : distributed.Client
        The client of the cluster; the current one if none was set. It is not a parameter.

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
    _dask_attributes: ClassVar[tuple[str, ...]] = ("rounds_",)

    rounds_: list[Round]
    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    expansion_: KernelExpansion
    certificate_: Certificate
    indices_: NDArray[np.int64] | None

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
        check(self.get_params(deep=False), {**self._rules, **POINT_RULES})
        with fitting(self, X, y, sample_weight), self._connected() as cluster:
            return self._fit_partitions(cluster, X, y, sample_weight)

    def _fit_partitions(self, cluster: Cluster, X: Any, y: Any, sample_weight: Any) -> Self:
        prepared = prepare_fit(self, cluster, X, y, sample_weight)
        gamma = gamma_of(self.gamma, prepared.summaries, self.kernel)
        spec = (self.kernel, gamma, float(self.coef0), int(self.degree))
        shared = [cluster.shared(value) for value in (prepared.classes, prepared.by_class)]
        rows = [
            cluster.submit(classification_part, block, *shared, float(self.C)) for block in prepared.blocks
        ]
        prepared.blocks.clear()
        stats = cluster.gather([cluster.submit(moments_of, part, False) for part in rows], "the rows")
        points, numbers, _ = choose_distributed_points(
            cluster,
            rows,
            [count for count, _ in stats],
            offsets(prepared.summaries),
            self,
            spec,
            1.0 / (2.0 * float(self.C)),
        )
        jobs = threads(self.n_jobs)
        projected = projected_kernel(well_aligned(points), spec, None, jobs)
        held = cluster.shared((points, spec))
        parts = [cluster.submit(projected_part, part, held) for part in rows]
        del rows
        solver = {"cache_size": None, "shrinking": True}
        machines = Machines(prepared.matrix, ("linear", 1.0, 0.0, 3), "hinge", True, float(self.tol), solver)
        found, log, _ = train_machines(self, cluster, parts, prepared, machines)
        weights = _core.linear_weights(core_rows(found.vectors), found.coefficients, jobs)
        coefficients = projected.coefficients(np.ascontiguousarray(weights.T), jobs)
        self.classes_, self.class_weight_ = prepared.classes, prepared.by_class
        # Given weights, which lie on the workers, count as different.
        self._weighted = sample_weight is not None or weights_differ(prepared.by_class)
        self._coding = prepared.decoding
        self.expansion_ = KernelExpansion(points, coefficients, found.intercepts, *spec)
        self.certificate_, self.rounds_, self.indices_ = found.certificate, log, numbers
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
