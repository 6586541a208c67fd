"""Averages of machines that are trained where the partitions lie, merged into one expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from svmarrow._support.atomic import atomic_fit
from svmarrow._support.callbacks import fitting
from svmarrow._support.parameters import check
from svmarrow._support.routing import check_takes_weights
from svmarrow.dask.blocks import aligned, remember_columns
from svmarrow.dask.cluster import all_threads
from svmarrow.dask.estimator import DaskClassifier, DaskEstimator
from svmarrow.dask.parts import Part, counted, labelled, spread_of
from svmarrow.dask.summary import balance, classes_of, gamma_of, offsets, summary_of
from svmarrow.least_squares import BaggedKernelClassifier, BaggedKernelRegressor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow.dask.cluster import Cluster
    from svmarrow.dask.summary import Summary

__all__ = ["DaskBaggedKernelClassifier", "DaskBaggedKernelRegressor"]


class Bagging(DaskEstimator):
    """What both do, in front of the plain estimator."""

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **metadata: Any) -> Self:
        """Train the machines where the rows are, and merge them.

        Parameters
        ----------
        X : dask array or dask frame of shape (n, d)
            Rows, each in one chunk of columns. Chunks may be empty, sparse, or of unknown sizes.
        y : dask array, series or column of shape (n,)
            Labels or targets, in the same chunks.
        sample_weight : dask array or series of shape (n,) or None, default=None
            Weights of the rows, which the machines must take. Rows of weight 0 are not there.
        **metadata : Any
            None: other metadata is not cut along with the partitions.

        Returns
        -------
        self : object
            Itself.

        Raises
        ------
        TypeError
            For what is no Dask collection.
        ValueError
            As the plain estimator; for fewer partitions than machines that share them; for a machine whose
            partitions have no row of some class, which are named.
        RuntimeError
            If workers died so often that Dask gave up, or took along what nothing can make again.
        """
        plain: Any = self
        check(plain.get_params(deep=False), plain._rules)
        if metadata:
            raise TypeError(
                f"{type(self).__name__}.fit takes no {next(iter(metadata))}: only sample_weight beside y"
            )
        with fitting(self, X, y, sample_weight), self._connected() as cluster:
            remember_columns(self, X)
            model = clone(plain._routed_to())
            if sample_weight is not None or getattr(self, "class_weight", None) is not None:
                check_takes_weights(model)
            parts, summaries = self._partitions(cluster, X, y, sample_weight)
            told = cluster.gather(
                [cluster.task(spread_of, part, _is_scaled(model)) for part in parts], "the rows"
            )
            counts = [count for count, _ in told]
            if not sum(counts):
                raise ValueError("no row of X counts: every partition is empty or of weight 0")
            if _is_scaled(model):
                # One width for all, or their kernels could not be added up.
                moments = [own for _, own in told]
                model.set_params(gamma=gamma_of(model.gamma, summaries, model.kernel, moments))
            if plain.parts == "disjoint":
                machines = self._disjoint(summaries, counts)
            else:
                machines = self._subsets(counts)
            classes = getattr(self, "classes_", None)
            futures = [
                cluster.task(fitted, model, classes, rows, *(parts[number] for number, _ in rows_of))
                for rows_of in machines
                for rows in [[own for _, own in rows_of]]
            ]
            told = cluster.gather(futures, "the machine")
            numbers = [number for _, number in told]
            # Weights lie on the workers: some that were given count as different. Those of classes each
            # machine knows.
            weighted = sample_weight is not None
            self._merge([machine for machine, _ in told], numbers, machines, summaries, weighted=weighted)
        return self

    def _disjoint(self, summaries: Sequence[Summary], counts: Sequence[int]) -> list[list[tuple[int, Any]]]:
        """The partitions of each machine, all of their rows."""
        plain: Any = self
        count = int(plain.n_estimators)
        there = [number for number, rows in enumerate(counts) if rows]
        if count > len(there):
            raise ValueError(
                f"n_estimators={count} is not allowed: X has {len(there)} partitions with rows, and each "
                f"goes to one "
                f"machine; lower it, or pass X.rechunk({{0: rows}}) (repartition for a frame), and y alike"
            )
        dealt = [there[machine::count] for machine in range(count)]
        if hasattr(self, "classes_"):
            for numbers in dealt:
                found = [summaries[number].labels for number in numbers]
                missing = np.setdiff1d(plain.classes_, np.concatenate([np.asarray(each) for each in found]))
                if missing.size:
                    raise ValueError(
                        f"partition {', '.join(map(str, numbers))} has no row of class {missing[0]}: every "
                        f"machine "
                        "needs all classes, so shuffle the rows over the partitions, or take fewer machines"
                    )
        return [[(number, None) for number in numbers] for numbers in dealt]

    def _subsets(self, counts: Sequence[int]) -> list[list[tuple[int, Any]]]:
        """The rows that each machine has drawn, by partition."""
        plain: Any = self
        total, random = int(sum(counts)), check_random_state(plain.random_state)
        size, ends = plain._size(total), np.concatenate([[0], np.cumsum(counts)])
        if size > total:
            raise ValueError(f"max_samples={plain.max_samples!r} is not allowed: there are {total} rows")
        machines = []
        for _ in range(int(plain.n_estimators)):
            drawn = np.sort(sample_without_replacement(total, size, random_state=random))
            cuts = np.searchsorted(drawn, ends)
            own = [
                (number, drawn[cuts[number] : cuts[number + 1]] - ends[number])
                for number in range(len(counts))
                if cuts[number] < cuts[number + 1]
            ]
            machines.append(own)
        return machines

    def _partitions(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any
    ) -> tuple[list[Any], list[Summary]]:
        """The delayed parts and their summaries; remembers the classes."""
        raise NotImplementedError

    def _merge(
        self,
        models: list[Any],
        numbers: list[list[NDArray[np.int64]]],
        machines: Sequence[Sequence[tuple[int, Any]]],
        summaries: Sequence[Summary],
        *,
        weighted: bool,
    ) -> None:
        plain: Any = self
        first = offsets(summaries)
        plain.estimators_ = models
        plain.estimators_samples_ = [
            np.concatenate([rows + first[number] for rows, (number, _) in zip(own, of, strict=True)])
            for own, of in zip(numbers, machines, strict=True)
        ]
        plain._merged(models, weighted=weighted)


class DaskBaggedKernelClassifier(DaskClassifier, Bagging, BaggedKernelClassifier, stored=False):
    """Average of kernel classifiers on the partitions of a Dask collection, as one kernel expansion.

    Machines are trained where their rows lie. Parameters and attributes are those of
    `svmarrow.least_squares.BaggedKernelClassifier`, and these differ: "disjoint" parts are partitions, dealt
    to the machines in turn, so that rows should be shuffled over them and ``n_estimators`` at most their
    number; the machines take the threads of their workers, and ``n_jobs`` is not used in `fit`.

    Attributes
    ----------
    client : distributed.Client
        The client that is used: its own, else the current one. No parameter; copies and pickles lack it.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import RLSClassifier
    >>> from svmarrow.dask import DaskBaggedKernelClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     rows, labels = da.from_array(X, chunks=(450, -1)), da.from_array(y, chunks=450)
    ...     bagged = DaskBaggedKernelClassifier(RLSClassifier(0.1), 4).fit(rows, labels)
    >>> bool(bagged.to_local().score(X, y) > 0.95)
    True
    """

    _plain: ClassVar[type[Any]] = BaggedKernelClassifier

    def _partitions(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any
    ) -> tuple[list[Any], list[Summary]]:
        blocks = aligned(X, y, sample_weight)
        summaries = cluster.gather(
            [cluster.task(summary_of, block, True, False) for block in blocks], "the rows"
        )
        self.classes_, totals, _ = classes_of(summaries)
        by_class = balance(self.class_weight, totals, self.classes_)
        return [cluster.later(labelled, block, self.classes_, by_class, 1.0) for block in blocks], summaries


class DaskBaggedKernelRegressor(Bagging, BaggedKernelRegressor, stored=False):
    """Average of kernel regressors on the partitions of a Dask collection, as one kernel expansion.

    Parameters and attributes are those of `svmarrow.least_squares.BaggedKernelRegressor`, with the
    differences of `DaskBaggedKernelClassifier`.

    Attributes
    ----------
    client : distributed.Client
        The client that is used: its own, else the current one. No parameter; copies and pickles lack it.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from svmarrow import RLSRegressor
    >>> from svmarrow.dask import DaskBaggedKernelRegressor
    >>> X = da.random.default_rng(0).uniform(0, 6, (800, 1), chunks=(200, 1))
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"):
    ...     bagged = DaskBaggedKernelRegressor(RLSRegressor(0.01), 4).fit(X, da.sin(X[:, 0]))
    ...     right = bagged.score(X, da.sin(X[:, 0]))
    >>> right > 0.999
    True
    """

    _plain: ClassVar[type[Any]] = BaggedKernelRegressor

    def _partitions(
        self, cluster: Cluster, X: Any, y: Any, sample_weight: Any
    ) -> tuple[list[Any], list[Summary]]:
        blocks = aligned(X, y, sample_weight)
        summaries = cluster.gather(
            [cluster.task(summary_of, block, False, False) for block in blocks], "the rows"
        )
        return [cluster.later(counted, block) for block in blocks], summaries


def _is_scaled(model: Any) -> bool:
    params = model.get_params()
    return isinstance(params.get("gamma"), str) and isinstance(params.get("kernel"), str)


def fitted(
    model: Any, classes: NDArray[Any] | None, chosen: list[Any], *parts: Part
) -> tuple[Any, list[NDArray[np.int64]]]:
    """A machine on rows of some partitions, all of them where None are chosen, and the rows' numbers."""
    some = [
        np.arange(part.X.shape[0]) if own is None else own for part, own in zip(parts, chosen, strict=True)
    ]
    X = [part.X[own] for part, own in zip(parts, some, strict=True)]
    rows = sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.concatenate(X)
    y = np.concatenate([part.labels[own] for part, own in zip(parts, some, strict=True)])
    upper = np.concatenate([part.upper[own] for part, own in zip(parts, some, strict=True)])
    if classes is not None:
        y = classes[y]
        missing = np.setdiff1d(classes, y)
        if missing.size:
            raise ValueError(
                f"the rows drawn from partition {', '.join(str(part.number) for part in parts)} have none "
                f"of class "
                f"{missing[0]}: every machine needs all classes, raise max_samples"
            )
    weights = {} if (upper == 1.0).all() else {"sample_weight": upper}
    machine, threads = clone(model), "n_jobs" in model.get_params()
    with all_threads() as jobs:
        if threads:
            machine.set_params(n_jobs=jobs)
        machine.fit(rows, y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y, **weights)
    if threads:
        machine.set_params(n_jobs=model.n_jobs)
    numbers = [own if part.kept is None else part.kept[own] for part, own in zip(parts, some, strict=True)]
    return machine, [own.astype(np.int64) for own in numbers]
