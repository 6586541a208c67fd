"""Dask arrays and frames as validated partitions, each a block of rows with its labels and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.base import is_dask_collection

from dask import delayed
from svmarrow._support.parameters import refuse
from svmarrow._support.rows import as_rows, sample_weights, validated, well_aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Block",
    "RealignOnUnpickle",
    "block_of",
    "check_columns",
    "check_features",
    "delayed_blocks",
    "is_frame",
    "is_lazy",
    "rows_of_block",
]


class RealignOnUnpickle:
    """Base of records whose arrays are aligned again when they are unpickled in another process."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: well_aligned(value) for name, value in state.items()})


@dataclass(frozen=True, eq=False)
class Block(RealignOnUnpickle):
    """The samples of a partition."""

    #: Number of the partition.
    number: int
    #: Rows, as the extension module takes them.
    X: Any
    #: Labels or targets, None if there are none.
    y: NDArray[Any] | None
    #: Weights, None for 1.
    weights: NDArray[np.float64] | None

    @property
    def labels(self) -> NDArray[Any]:
        """Labels (rows,), for classes."""
        y = np.empty(0) if self.y is None else self.y
        if y.ndim > 1 and y.shape[1] != 1:
            raise ValueError(f"y has {y.shape[1]} columns: it must have one label per sample")
        return y.reshape(-1)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])


def is_lazy(X: Any) -> bool:
    """Returns whether X is a Dask collection."""
    return bool(is_dask_collection(X))


def is_frame(X: Any) -> bool:
    """Returns whether a collection is a frame or a series."""
    return hasattr(X, "npartitions") and hasattr(X, "map_partitions")


def check_columns(X: Any, name: str = "X") -> None:
    """Raises an error unless X is a Dask collection of rows, each in one chunk."""
    if not is_lazy(X) or not (is_frame(X) or isinstance(X, da.Array)):
        raise TypeError(
            f"{name} is a {type(X).__name__}: it must be a Dask array or frame, as "
            f"dask.array.from_array({name}, chunks=(10_000, -1)) makes one; the class of the same name in "
            "svmarrow itself takes data in memory"
        )
    if X.ndim != 2:
        raise ValueError(f"{name} has {X.ndim} dimensions: it must have 2")
    if not is_frame(X) and X.numblocks[1] != 1:
        raise ValueError(
            f"{name} has {X.numblocks[1]} chunks of columns: a row must lie in one chunk, pass "
            f"{name}.rechunk({{1: -1}})"
        )


def check_features(estimator: Any, X: Any, *, reset: bool = True) -> None:
    """Sets ``n_features_in_`` and the feature names of a frame, or compares them."""
    check_columns(X)
    row = np.zeros((1, len(X.columns) if is_frame(X) else int(X.shape[1])))
    if not row.size:
        raise ValueError("X has no columns")
    validated(estimator, type(X._meta)(row, columns=X.columns) if is_frame(X) else row, reset=reset)


def delayed_blocks(X: Any, y: Any = None, sample_weight: Any = None) -> list[Any]:
    """Returns the delayed `Block` of each partition.

    Raises
    ------
    TypeError
        If an argument is not a Dask collection.
    ValueError
        If samples are split into chunks of columns, or y or weights have other chunks than X.
    """
    check_columns(X)
    parts = _parts(X)
    labels, weights = (
        [None] * len(parts) if values is None else _matching_parts(name, values, X, len(parts))
        for name, values in (("y", y), ("sample_weight", sample_weight))
    )
    load = delayed(block_of, pure=False)
    return [load(number, *part) for number, part in enumerate(zip(parts, labels, weights, strict=True))]


def _parts(X: Any) -> list[Any]:
    """Returns the delayed chunks of a collection in the order of the rows."""
    return list(X.to_delayed() if is_frame(X) else X.to_delayed().reshape(-1))


def _matching_parts(name: str, values: Any, X: Any, count: int) -> list[Any]:
    """Returns the delayed chunks of labels or weights, which must match those of X."""
    if not is_lazy(values):
        raise TypeError(
            f"{name} is a {type(values).__name__} and X a Dask collection: it must be a Dask "
            f"collection with the same chunks, dask.array.from_array({name}, chunks=(X.chunks[0],)) makes one"
        )
    if not is_frame(values) and values.ndim > 1 and values.numblocks[1] != 1:
        raise ValueError(f"{name} has chunks of columns: pass {name}.rechunk({{1: -1}})")
    parts = _parts(values)
    of_X, of_values = _lengths(X), _lengths(values)
    known = of_X is not None and of_values is not None
    if len(parts) != count or (known and of_X != of_values):
        remedy = (
            f"{name}.rechunk({{0: X.chunks[0]}})"
            if known and not is_frame(values)
            else "both from one frame, or of partitions of the same rows (repartition, compute_chunk_sizes)"
        )
        raise ValueError(
            f"{name} has {len(parts)} chunks of {_format(of_values)} rows, X has {count} of {_format(of_X)}: "
            f"they must be the same rows, pass {remedy}"
        )
    return parts


def _lengths(X: Any) -> tuple[int, ...] | None:
    """Returns the number of rows of each chunk if it is known."""
    if is_frame(X) or any(np.isnan(size) for size in X.chunks[0]):
        return None
    return tuple(int(size) for size in X.chunks[0])


def _format(lengths: tuple[int, ...] | None) -> str:
    if lengths is None:
        return "unknown numbers of"
    return ", ".join(map(str, lengths[:4])) + (", ..." if len(lengths) > 4 else "")


def block_of(number: int, X: Any, y: Any = None, sample_weight: Any = None) -> Block:
    """Validates a partition on a worker; errors name the partition."""
    try:
        rows = rows_of_block(X)
        n = int(rows.shape[0])
        labels = None if y is None else _column(y)
        if labels is not None and len(labels) != n:
            raise ValueError(f"y has {len(labels)} rows, X has {n}")
        if labels is not None and labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("y contains NaN or infinity")
        weights = None if sample_weight is None else sample_weights(_column(sample_weight), n)
    except (ValueError, TypeError) as error:
        raise type(error)(f"partition {number}: {error}") from None
    return Block(number, rows, labels, weights)


def rows_of_block(X: Any) -> Any:
    """Converts a chunk of rows to the form of the extension module; a chunk may be empty."""
    if hasattr(X, "iloc"):
        X = X.to_numpy()
    elif not sp.issparse(X) and hasattr(X, "to_scipy_sparse"):
        X = X.to_scipy_sparse()
    elif not sp.issparse(X) and hasattr(X, "tocsr"):
        X = X.tocsr()
    if X.ndim != 2:
        raise refuse("X", X.shape, "blocks of rows and columns")
    if X.shape[0]:
        return well_aligned(as_rows(X))
    return sp.csr_array(X.shape) if sp.issparse(X) else np.zeros(X.shape)


def _column(values: Any) -> Any:
    """Converts labels, targets or weights to an array; a frame of one column becomes a vector."""
    array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    single = array.ndim == 2 and array.shape[1] == 1 and hasattr(values, "columns")
    return well_aligned(np.ascontiguousarray(array[:, 0] if single else array))
