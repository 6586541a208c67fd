"""Lazy prediction of Dask collections, block by block, by an expansion, a tree or a cascade.

Only the part of a model that predicts is sent, once: the expansion and its decoding, not the estimator with
its sums or training rows. With a client it is a task of its own, whose result the workers share; scattered
data would be lost with its workers. Without a client it is a single node of the graph for any of Dask's
schedulers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dask import delayed
from svmarrow.dask.blocks import check_columns, is_frame, rows_of_block
from svmarrow.dask.cluster import Cluster, all_threads, some_client
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["decision_function", "predict", "predict_lazily", "prediction_model"]


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
        raise TypeError(f"a {type(model).__name__} has no {method}")
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
