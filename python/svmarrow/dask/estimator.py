"""Base class of the Dask estimators: the client and its tasks, lazy prediction, scores, local estimators.

All tasks are pure functions of other tasks' results and of their arguments, so that Dask can recompute the
results of a lost worker from the user's collections. A fit never scatters data, since scattered data cannot
be recomputed. Results are gathered and added in the order of the partitions or in a fixed tree, so the bits
do not depend on the number of workers.

A low-rank model chooses its points from rows of all partitions, as the last function does.
"""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import check_is_fitted

from dask import delayed
from svmarrow._support.estimator import Estimator
from svmarrow._support.parameters import consistent, fitted_attribute_names
from svmarrow._support.progress import ATTRIBUTES as CALLBACK_ATTRIBUTES
from svmarrow._support.rows import as_rows, threads
from svmarrow._support.training import estimate_memory as memory_method
from svmarrow.dask.blocks import (
    check_columns,
    check_features,
    delayed_blocks,
    is_frame,
    is_lazy,
    rows_by_part,
    rows_of_block,
    rows_with_indices,
)
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.expansion.points import choose_points
from svmarrow.interop.convert import as_expansion
from svmarrow.models.base import ExpansionModel
from svmarrow.models.base import compiled as compiled_method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from svmarrow._support.training import MemoryEstimate
    from svmarrow.dask.blocks import Block
    from svmarrow.models.base import CompiledModel

__all__ = [
    "PROBABILITIES",
    "Cluster",
    "DaskEstimator",
    "all_threads",
    "choose_distributed_points",
    "decision_function",
    "predict",
    "predict_proba",
    "prediction_model",
    "score",
    "tree_sum",
]

try:
    from distributed import Client, default_client, get_client, get_worker, worker_client
    from distributed.scheduler import KilledWorker

    from dask import delayed
except ImportError as _error:
    raise ImportError(
        "svmarrow.dask needs dask and distributed: pip install 'svmarrow[dask]'", name=_error.name
    ) from _error

#: Locks so that a worker runs one computation at a time with all of its threads.
_LOCKS: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()


def _worker() -> Any:
    """Returns the worker that runs this task, or None."""
    try:
        return get_worker()
    except ValueError:
        return None


@contextmanager
def all_threads() -> Iterator[int]:
    """Yields the number of the worker's threads while no other task of the worker computes.

    Without a worker, on one of Dask's local schedulers, which run tasks in parallel, it is 1.
    """
    worker = _worker()
    if worker is None:
        yield 1
        return
    with _LOCKS_LOCK:
        lock = _LOCKS.setdefault(worker, threading.Lock())
    with lock:
        yield threads(int(worker.state.nthreads))


def current_client() -> Any:
    """Returns the current client of this process; raises ValueError if there is none."""
    try:
        return get_client() if _worker() is not None else default_client()
    except ValueError:
        raise ValueError(
            "no Dask client is active: create one, client = distributed.Client(...), or set the estimator's "
            "client attribute"
        ) from None


def some_client(own: Any = None) -> Any:
    """Returns the given or the current client, or None."""
    if own is not None:
        return own
    try:
        return current_client()
    except ValueError:
        return None


@contextmanager
def cluster_of(own: Any = None) -> Iterator[Cluster]:
    """Yields the cluster of a client. A fit inside a task releases its thread meanwhile."""
    if own is None and _worker() is not None:
        with worker_client() as client:
            yield Cluster(client)
    else:
        yield Cluster(current_client() if own is None else own)


class Cluster:
    """The operations of a client that fits use."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def load(self, delayed: Sequence[Any]) -> list[Any]:
        """Returns the futures of delayed values."""
        with _ignore_large_graph_warning():
            futures: list[Any] = self.client.compute(list(delayed))
        return futures

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns the future of a function; futures among the arguments are replaced by their results."""
        with _ignore_large_graph_warning():
            # With pure=True Dask would hash every argument.
            return self.client.submit(function, *arguments, pure=False)

    def later(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns the delayed value of a function."""
        return delayed(function, pure=False, traverse=False)(*arguments)

    def task(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns the future of a function of delayed values, which are released afterwards."""
        return self.load([self.later(function, *arguments)])[0]

    def each(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Returns a future for each tuple of arguments."""
        return [self.submit(function, *arguments) for arguments in zip(*columns, strict=True)]

    def shared(self, value: Any) -> Any:
        """Returns the future of a value that many tasks need, which is sent once in a task of its own."""
        return self.submit(_itself, value)

    def gather(self, futures: Sequence[Any], what: str) -> list[Any]:
        """Returns the results in order; errors name the lost partitions."""
        try:
            return list(self.client.gather(list(futures)))
        except KilledWorker as error:
            lost = [number for number, future in enumerate(futures) if future.status == "error"]
            raise RuntimeError(
                f"{what} of partition {_some(lost)} could not be computed: the workers that tried it died, "
                f"the last at {error.last_worker.address}. See the workers' logs; the usual cause is a lack "
                "of memory: use smaller partitions or more memory per worker"
            ) from error
        except CancelledError as error:
            raise RuntimeError(
                f"{what} cannot be computed again: scattered data, or futures of another client, were lost "
                "with their worker. Collections of files or of functions can be recomputed"
            ) from error

    def result(self, future: Any, what: str) -> Any:
        """Returns the result of one future."""
        return self.gather([future], what)[0]


def tree_sum(cluster: Cluster, merge: Callable[[Any, Any], Any], futures: Sequence[Any]) -> Any:
    """Returns the future of a sum of results, added in pairs of neighbors in a fixed order."""
    level = list(futures)
    while len(level) > 1:
        pairs = [cluster.submit(merge, a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def _itself(value: Any) -> Any:
    return value


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) or "?"


@contextmanager
def _ignore_large_graph_warning() -> Iterator[None]:
    """Ignores the warning of large arguments of a task, from which a lost worker's results are recomputed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        yield


# --- lazy prediction of Dask collections, block by block, by an expansion, a tree or a cascade ---
# Only the part of a model that predicts is sent, once: the expansion and its decoding, not the estimator
# with its sums or training rows. With a client it is a task of its own, whose result the workers share;
# scattered data would be lost with its workers. Without a client it is a single node of the graph for any
# of Dask's schedulers.


def predict(model: Any, X: Any, *, client: Any = None) -> Any:
    """Predict a Dask collection lazily with any fitted model.

    Parameters
    ----------
    model : object
        A fitted model: an estimator of svmarrow or any other model that `svmarrow.as_expansion` takes, a tree
        or a cascade.
    X : dask array or dask frame of shape (n_samples, n_features)
        Samples, each in one chunk. Chunks may be empty, sparse, or of unknown sizes.
    client : distributed.Client or None, default=None
        Client to which the model is sent; None means the current client if there is one.

    Returns
    -------
    dask array, series or frame
        An array for an array; for a frame a series, or a frame if there are several outputs, with its index.

    Raises
    ------
    TypeError
        If X is not a Dask collection, or the model cannot predict.
    ValueError
        If X has another number of features, or samples are split across chunks.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVC
    >>> from svmarrow.dask import predict
    >>> X, y = load_iris(return_X_y=True)
    >>> labels = predict(SVC().fit(X, y), da.from_array(X, chunks=(50, 4)))
    >>> labels
    dask.array<_block_values, shape=(150,), dtype=int64, chunksize=(50,), chunktype=numpy.ndarray>
    >>> float((labels.compute() == y).mean()) > 0.95
    True
    """
    return predict_lazily(model, X, "predict", some_client(client))


def decision_function(model: Any, X: Any, *, client: Any = None) -> Any:
    """Compute decision values of a Dask collection lazily with any fitted model that has them.

    Parameters
    ----------
    model : object
        A fitted model as for `predict`, or a `KernelExpansion`, whose outputs are returned.
    X : dask array or dask frame of shape (n_samples, n_features)
        Samples.
    client : distributed.Client or None, default=None
        As for `predict`.

    Returns
    -------
    dask array, series or frame
        As `predict`.

    Examples
    --------
    >>> import dask.array as da
    >>> from svmarrow import KernelExpansion
    >>> from svmarrow.dask import decision_function
    >>> f = KernelExpansion([[0.0], [1.0]], [1.0, -1.0], 0.5, kernel="linear")
    >>> decision_function(f, da.ones((3, 1), chunks=(2, 1))).compute()
    array([[-0.5],
           [-0.5],
           [-0.5]])
    """
    return predict_lazily(model, X, "decision_function", some_client(client))


def predict_proba(model: Any, X: Any, *, client: Any = None) -> Any:
    """Compute class probabilities of a Dask collection lazily with any fitted model that has them.

    Parameters
    ----------
    model : object
        A fitted model as for `predict`, such as a ``CalibratedClassifierCV(..., ensemble=False)`` or a
        `TabularClassifier`.
    X : dask array or dask frame of shape (n_samples, n_features)
        Samples.
    client : distributed.Client or None, default=None
        As for `predict`.

    Returns
    -------
    dask array or frame of shape (n_samples, n_classes)
        An array for an array; for a frame a frame with its index.

    Raises
    ------
    TypeError
        If X is not a Dask collection, or the model has no probabilities.
    ValueError
        As for `predict`.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.calibration import CalibratedClassifierCV
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVC
    >>> from svmarrow.dask import predict_proba
    >>> X, y = load_iris(return_X_y=True)
    >>> calibrated = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y)
    >>> predict_proba(calibrated, da.from_array(X, chunks=(50, 4))).shape
    (150, 3)
    """
    return predict_lazily(model, X, "predict_proba", some_client(client))


def prediction_model(model: Any) -> Any:
    """Returns the part of a model that predicts, without training rows, sums and parameters of the fit."""
    if isinstance(model, KernelExpansion):
        return model
    check_is_fitted(model)
    plain = model.to_local() if hasattr(model, "to_local") else model
    try:
        return as_expansion(plain)
    except (TypeError, AttributeError, ValueError):
        # Trees, cascades and voted machines are not one expansion and predict themselves.
        return plain


def predict_lazily(model: Any, X: Any, method: str, client: Any = None) -> Any:
    """Applies ``method`` to each block."""
    check_columns(X)
    parts = prediction_model(model)
    if not hasattr(parts, method):
        remedy = ": call as_expansion(model).calibrated(X, y)" if method == "predict_proba" else ""
        raise TypeError(f"a {type(model).__name__} has no {method}{remedy}")
    columns = len(X.columns) if is_frame(X) else int(X.shape[1])
    example = _values(parts, method, _example(X, columns))
    if client is not None:
        held: Any = Cluster(client).shared(parts)
    else:
        held = delayed(parts, pure=False, traverse=False)
    if is_frame(X):
        meta = _framed(example[:0], X._meta)
        return X.map_partitions(_frame_values, held, method, meta=meta)
    if example.ndim == 1:
        return X.map_blocks(_block_values, held, method, drop_axis=1, dtype=example.dtype, meta=example[:0])
    chunks = (X.chunks[0], (example.shape[1],))
    return X.map_blocks(_block_values, held, method, chunks=chunks, dtype=example.dtype, meta=example[:0])


def _example(X: Any, columns: int) -> Any:
    """Returns an example row of the type of the collection."""
    row = np.ones((1, columns))
    return type(X._meta)(row, columns=X.columns) if is_frame(X) else row


def _values(model: Any, method: str, X: Any) -> NDArray[Any]:
    """Calls the method with the worker's threads."""
    with all_threads() as jobs:
        if isinstance(model, KernelExpansion):
            return model.decision_function(X, n_jobs=jobs)
        if "n_jobs" in getattr(model, "get_params", dict)():
            # A copy: other tasks of this process may use the same object.
            model = _with_threads(model, jobs)
        values: NDArray[Any] = getattr(model, method)(X)
        return values


def _with_threads(model: Any, jobs: int) -> Any:
    copy = object.__new__(type(model))
    copy.__dict__ = {**vars(model), "n_jobs": jobs}
    return copy


def _block_values(X: Any, model: Any, method: str) -> NDArray[Any]:
    rows = rows_of_block(X)
    if rows.shape[0]:
        return _values(model, method, rows)
    return _values(model, method, np.ones((1, rows.shape[1])))[:0]


def _frame_values(frame: Any, model: Any, method: str) -> Any:
    """Returns a series or a frame with the index of the rows."""
    if len(frame):
        return _framed(_values(model, method, frame), frame)
    row = type(frame)(np.ones((1, len(frame.columns))), columns=frame.columns)
    return _framed(_values(model, method, row)[:0], frame)


def _framed(values: NDArray[Any], frame: Any) -> Any:
    if values.ndim == 1:
        return frame._constructor_sliced(values, index=frame.index[: len(values)])
    return frame._constructor(values, index=frame.index[: len(values)])


# --- accuracy and R^2 of distributed predictions: sums of the partitions, added in their order ---


def score(cluster: Cluster, model: Any, X: Any, y: Any, sample_weight: Any, *, accuracy: bool) -> float:
    """Returns the accuracy, or R^2 averaged over the targets."""
    check_features(model, X, reset=False)
    parts = cluster.load(delayed_blocks(X, y, sample_weight))
    predictor = prediction_model(model)
    if isinstance(predictor, ExpansionModel):
        # Blocks have no feature names, which were compared above.
        predictor = predictor.without_names()
    shared = cluster.shared(predictor)
    task = _right if accuracy else _squares
    sums = cluster.gather([cluster.submit(task, part, shared) for part in parts], "the predictions")
    sums = [each for each in sums if each is not None]
    if not sums:
        raise ValueError("X has no rows")
    if accuracy:
        right, total = (float(sum(each[place] for each in sums)) for place in (0, 1))
        return right / total
    weight, mean, missed, spread = 0.0, np.zeros(1), np.zeros(1), np.zeros(1)
    for own, at, residual, around in sums:
        # Chan, Golub and LeVeque 1983.
        share = own / (weight + own)
        spread = spread + around + own * (1.0 - share) * (at - mean) ** 2
        mean, weight, missed = mean + (at - mean) * share, weight + own, missed + residual
    # As in scikit-learn, a constant target scores 1 if predicted exactly, else 0.
    constant = spread == 0.0
    value = 1.0 - missed / np.where(constant, 1.0, spread)
    return float(np.where(constant, np.where(missed == 0.0, 1.0, 0.0), value).mean())


def _right(block: Block, model: Any) -> tuple[float, float] | None:
    if block.rows == 0:
        return None
    weights = np.ones(block.rows) if block.weights is None else block.weights
    return float(weights @ (_values(model, "predict", block.X) == block.labels)), float(weights.sum())


def _squares(
    block: Block, model: Any
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
    """Returns total weight, mean target, squared errors and squared deviations of each target."""
    weights = np.ones(block.rows) if block.weights is None else block.weights
    if block.rows == 0 or not weights.any():
        return None
    assert block.y is not None
    y = block.y.reshape(block.rows, -1).astype(np.float64)
    off = _values(model, "predict", block.X).reshape(block.rows, -1) - y
    mean = weights @ y / weights.sum()
    return float(weights.sum()), mean, weights @ (off * off), weights @ ((y - mean) ** 2)


# --- the base class of the estimators ---


class DaskEstimator(Estimator):
    """Base class: an estimator that trains a local estimator with the same parameters on a cluster.

    A fit sets `local_`, the fitted local estimator. It answers for samples in memory and has the fitted
    attributes, which can be read from this object too.
    """

    #: Class of the local estimator.
    _local_class: ClassVar[type[Any]]

    local_: Any

    compiled: ClassVar[Callable[..., CompiledModel]] = compiled_method
    estimate_memory: ClassVar[Callable[..., MemoryEstimate]] = memory_method

    @property
    def client(self) -> Any:
        """The client of the cluster; the current one of the process or task if none was set.

        It is not a parameter: clones and pickles do not have it.
        """
        return some_client(vars(self).get("_client"))

    @client.setter
    def client(self, client: Any) -> None:
        vars(self)["_client"] = client

    def _connected(self) -> AbstractContextManager[Cluster]:
        return cluster_of(vars(self).get("_client"))

    def _local(self) -> Any:
        """Returns a local estimator with the present parameters and, after a fit, its attributes."""
        excluded = {*fitted_attribute_names(type(self)), *CALLBACK_ATTRIBUTES, "_client"}
        own = {name: value for name, value in vars(self).items() if name not in excluded}
        local = object.__new__(self._local_class)
        local.__dict__ = {**vars(self.local_), **own} if self.__sklearn_is_fitted__() else own
        return local

    @consistent
    def to_local(self) -> Any:
        """Get the fitted model as the local estimator, which does not need Dask.

        Returns
        -------
        object
            The local estimator with the attributes of `local_` and the present parameters of this estimator,
            which may have changed since the fit.
        """
        check_is_fitted(self)
        return self._local()

    @consistent
    def as_expansion(self) -> Any:
        """The fitted model without the training: a classifier or regressor made of an expansion."""
        return self.to_local().as_expansion()

    @consistent
    def predict(self, X: Any) -> Any:
        """Predict a Dask collection lazily, or other samples immediately as the local estimator does.

        Parameters
        ----------
        X : dask array, dask frame or {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array, dask series or frame, or ndarray
            An array for an array; for a frame a series, or a frame if there are several targets, with its
            index.
        """
        return self._answer(X, "predict")

    @available_if(is_classifier)  # type: ignore[untyped-decorator]
    @consistent
    def decision_function(self, X: Any) -> Any:
        """Compute decision values of a Dask collection lazily, or of other samples immediately.

        Parameters
        ----------
        X : dask array, dask frame or {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array, dask series or frame, or ndarray
            Decision values in the shape of the local estimator's. Only classifiers have them.
        """
        return self._answer(X, "decision_function")

    def _answer(self, X: Any, method: str) -> Any:
        """Applies a method of the fitted model to samples."""
        check_is_fitted(self)
        if is_lazy(X):
            return predict_lazily(self, X, method, self.client)
        return getattr(self.to_local(), method)(X)

    @consistent
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier or R^2 of a regressor, as in scikit-learn.

        Parameters
        ----------
        X, y : dask collections in the same chunks, or arrays
            Samples, and their labels or targets.
        sample_weight : dask collection, array or None, default=None
            Weights of the samples.

        Returns
        -------
        float
            The score, computed immediately.
        """
        check_is_fitted(self)
        if not is_lazy(X):
            return float(self.to_local().score(X, y, sample_weight))
        with self._connected() as cluster:
            return score(cluster, self, X, y, sample_weight, accuracy=is_classifier(self))

    @consistent
    def __getattr__(self, name: str) -> Any:
        """Return a fitted attribute of the local estimator, for a name that this class does not have."""
        if _is_fitted_attribute(name):
            fitted = vars(self.local_) if self.__sklearn_is_fitted__() else {}
            if name in fitted or hasattr(self._local_class, name):
                check_is_fitted(self)
                return getattr(self.local_, name)
        # Raises the error of this class, with the reason if a method is not available.
        return object.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        fitted = dir(self.local_) if self.__sklearn_is_fitted__() else []
        return [*super().__dir__(), *filter(_is_fitted_attribute, fitted)]

    def __sklearn_is_fitted__(self) -> bool:
        return "local_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        return self._local().__sklearn_tags__()

    def _memory(self, rows: Any, y: Any) -> Any:
        return self._local()._memory(rows, y)

    def _to_save(self) -> Any:
        return self.to_local()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_client"}


def _is_fitted_attribute(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


#: What replaces ``predict_proba`` of the classifiers.
PROBABILITIES = (
    "call as_expansion(model).calibrated(X, y) with samples in memory that training has not seen, and "
    "svmarrow.dask.predict_proba of that model and a collection"
)


# --- choice of the points of a low-rank model from distributed rows: drawn, or chosen from a sample ---


#: Size of the sample from which points are chosen: rows per point, and the minimum number of rows.
_SAMPLE_ROWS_PER_POINT, _MIN_SAMPLE_ROWS = 20, 10_000


def choose_distributed_points(
    cluster: Cluster,
    parts: Sequence[Any],
    counts: Sequence[int],
    first: NDArray[np.int64],
    model: Any,
    spec: tuple[str, float, float, int],
    alpha: float,
) -> tuple[Any, NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """Returns the points, the indices of their samples and the remaining trace, as `choose_points` does.

    ``parts`` are delayed or futures with ``counts`` samples; ``first`` is the index of the first sample of
    each.
    """
    if not isinstance(model.selection, str):
        points = as_rows(model.selection, "selection")
        if points.shape[1] != model.n_features_in_:
            raise ValueError(f"selection has {points.shape[1]} columns: X has {model.n_features_in_}")
        return points, None, None
    random = check_random_state(model.random_state)
    total, m = int(sum(counts)), int(model.n_vectors)
    size = m if model.selection == "random" else max(_SAMPLE_ROWS_PER_POINT * m, _MIN_SAMPLE_ROWS)
    drawn = np.sort(sample_without_replacement(total, min(total, size), random_state=random)).astype(np.int64)
    asked = rows_by_part(counts, drawn)
    futures = [cluster.task(rows_with_indices, parts[number], local) for number, local in asked.items()]
    samples = cluster.gather(futures, "the points")
    X = [rows for rows, _ in samples]
    sample = as_rows(sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.concatenate(X))
    numbers = np.concatenate([own + first[number] for number, (_, own) in zip(asked, samples, strict=True)])
    points, rows, remaining = choose_points(
        sample,
        m,
        spec,
        selection=model.selection,
        alpha=alpha,
        random_state=random,
        n_jobs=model.n_jobs,
        verbose=model.verbose,
    )
    return points, None if rows is None else numbers[rows], remaining
