"""Dask arrays and frames as validated partitions, each a block of rows with its labels and weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.base import is_dask_collection
from sklearn.utils.multiclass import check_classification_targets

from dask import delayed
from svmarrow._support.parameters import refuse
from svmarrow._support.rows import as_rows, validated, well_aligned
from svmarrow._support.training import class_weights, default_gamma, gamma_power, moments, sample_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


__all__ = [
    "Block",
    "Part",
    "RealignOnUnpickle",
    "Summary",
    "balanced_weights",
    "block_of",
    "check_columns",
    "check_features",
    "check_span",
    "classes_of",
    "classification_part",
    "delayed_blocks",
    "gamma_of",
    "is_frame",
    "is_lazy",
    "moments_of",
    "offsets",
    "partition_indices",
    "regression_part",
    "rows_by_part",
    "rows_of_block",
    "rows_with_indices",
    "summary_of",
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


# --- training parts: the rows of a block with positive weight, class indices and combined weights ---


@dataclass(frozen=True, eq=False)
class Part(RealignOnUnpickle):
    """The rows of positive weight of a partition."""

    number: int
    X: Any
    #: Class indices, or targets (n_rows, n_outputs).
    labels: NDArray[Any]
    #: C of each row, or its weight.
    upper: NDArray[np.float64]
    #: Indices of the rows in the partition, None for all rows.
    kept: NDArray[np.intp] | None

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Weights, None for 1."""
        return None if (self.upper == 1.0).all() else self.upper


def classification_part(
    block: Block, classes: NDArray[Any], by_class: NDArray[np.float64], cost: float
) -> Part:
    """Returns a partition with class indices; weights are multiplied by class weights and ``cost``."""
    labels = np.searchsorted(classes, block.labels) if block.rows else np.empty(0, dtype=np.intp)
    upper = cost * by_class[labels]
    return _without_zero_weights(block, labels, upper if block.weights is None else upper * block.weights)


def regression_part(block: Block) -> Part:
    """Returns a partition with targets."""
    y = np.empty(0) if block.y is None else np.asarray(block.y, dtype=np.float64)
    weights = np.ones(block.rows) if block.weights is None else block.weights
    return _without_zero_weights(
        block, y.reshape(block.rows, -1) if block.rows else np.empty((0, 1)), weights
    )


def _without_zero_weights(block: Block, labels: NDArray[Any], upper: NDArray[np.float64]) -> Part:
    if (upper > 0.0).all():
        return Part(block.number, block.X, labels, upper, None)
    weighted_rows = np.flatnonzero(upper > 0.0)
    return Part(
        block.number,
        block.X[weighted_rows],
        labels[weighted_rows],
        np.ascontiguousarray(upper[weighted_rows]),
        weighted_rows,
    )


def partition_indices(part: Part, local: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the indices in the partition of rows of positive weight."""
    return local if part.kept is None else part.kept[local].astype(np.int64)


def rows_by_part(counts: Sequence[int], drawn: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Returns the indices within each part, by its number, of increasing indices among the rows of all parts.

    Parts without any of the rows are left out.
    """
    ends = np.concatenate([[0], np.cumsum(counts)])
    cuts = np.searchsorted(drawn, ends)
    return {
        number: drawn[cuts[number] : cuts[number + 1]] - ends[number]
        for number in range(len(counts))
        if cuts[number] < cuts[number + 1]
    }


def rows_with_indices(part: Part, local: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
    """Returns some of the rows of positive weight, and their indices in the partition."""
    return part.X[local], partition_indices(part, local)


def moments_of(part: Part, with_variance: bool) -> tuple[int, tuple[float, float, float]]:
    """Returns the number of rows, and their total weight, mean and variance (0 unless requested)."""
    n, own = int(part.X.shape[0]), part.weights
    total = float(n) if own is None else float(own.sum())
    variance, mean = moments(part.X, own) if with_variance and n else (0.0, 0.0)
    return n, (total, mean, variance)


# --- summaries of partitions: counts, classes, and the variance for ``gamma="scale"`` ---


@dataclass(frozen=True, eq=False)
class Summary:
    """Summary of a partition."""

    rows: int
    columns: int
    #: Sorted labels, None for targets, with the total weight and the number of rows of each.
    labels: NDArray[Any] | None
    totals: NDArray[np.float64]
    counts: NDArray[np.int64]
    #: Number of columns of the targets, 0 for a vector.
    targets: int
    #: Minimum and maximum of X.
    span: tuple[float, float]
    #: Number of rows, mean and variance of X (0 unless requested).
    moments: tuple[float, float, float]


def summary_of(block: Block, with_labels: bool, with_variance: bool) -> Summary:
    """Summarizes a partition, with its labels and its variance if requested."""
    n, weights = block.rows, block.weights
    labels, totals, counts = None, np.empty(0), np.empty(0, dtype=np.int64)
    if with_labels and n:
        try:
            check_classification_targets(block.labels)
        except ValueError as error:
            raise ValueError(f"partition {block.number}: {error}") from None
        labels, numbers, counts = np.unique(block.labels, return_inverse=True, return_counts=True)
        totals = np.bincount(numbers.reshape(-1), weights, minlength=labels.size).astype(np.float64)
    X = block.X
    values = X.data if hasattr(X, "indptr") else X
    span = (float(values.min()), float(values.max())) if values.size else (math.inf, -math.inf)
    if hasattr(X, "indptr") and values.size < X.shape[0] * X.shape[1]:
        span = (min(span[0], 0.0), max(span[1], 0.0))
    variance, mean = moments(X, None) if with_variance and n else (0.0, 0.0)
    shape = () if block.y is None else block.y.shape[1:]
    columns, targets = int(X.shape[1]), int(shape[0]) if shape else 0
    return Summary(n, columns, labels, totals, counts, targets, span, (float(n), mean, variance))


def classes_of(summaries: Sequence[Summary]) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64]]:
    """Returns the sorted classes, with the total weight and the number of rows of each."""
    labelled = [each for each in summaries if each.labels is not None]
    classes = (
        np.unique(np.concatenate([np.asarray(each.labels) for each in labelled])) if labelled else np.empty(0)
    )
    if classes.size < 2:
        raise ValueError(f"y has {classes.size} class: it must have at least 2 classes")
    totals, counts = np.zeros(classes.size), np.zeros(classes.size, dtype=np.int64)
    for each in labelled:
        place = np.searchsorted(classes, np.asarray(each.labels))
        totals[place] += each.totals
        counts[place] += each.counts
    return classes, totals, counts


def check_span(estimator: Any, summaries: Sequence[Summary]) -> None:
    """Raises ``ValueError`` if the kernel is not defined for the values of X."""
    if estimator.kernel == "chi2" and min(each.span[0] for each in summaries) < 0.0:
        raise ValueError(f"Negative values in data passed to {type(estimator).__name__} with kernel='chi2'")


def offsets(summaries: Sequence[Summary]) -> NDArray[np.int64]:
    """Returns the index of the first row of each partition, and the number of all rows."""
    return np.concatenate([[0], np.cumsum([each.rows for each in summaries])]).astype(np.int64)


def balanced_weights(
    class_weight: Any, totals: NDArray[np.float64], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Returns the weight of each class, given the total weights of their rows."""
    return class_weights(class_weight, totals, classes, np.arange(classes.size))[0]


def gamma_of(
    gamma: str | float,
    summaries: Sequence[Summary],
    kernel: Any,
    parts: Sequence[tuple[float, float, float]] | None = None,
) -> float:
    """Returns gamma as `svmarrow._support.training.default_gamma` does, from moments of the summaries or
    ``parts``.
    """
    columns = max(each.columns for each in summaries)
    if not isinstance(gamma, str) or gamma == "auto" or kernel == "precomputed" or callable(kernel):
        return default_gamma(gamma, np.zeros((1, columns)), kernel=kernel)
    low = min(each.span[0] for each in summaries)
    high = max(each.span[1] for each in summaries)
    total, mean, square = 0.0, 0.0, 0.0
    for weight, own, variance in [each.moments for each in summaries] if parts is None else parts:
        if weight > 0.0:
            # Moments of two parts are combined as in Chan, Golub and LeVeque 1983.
            total, share = total + weight, weight / (total + weight)
            square += weight * (variance + (own - mean) ** 2 * (1.0 - share))
            mean += (own - mean) * share
    if low >= high or total == 0.0:
        return 1.0
    value = (1.0 / (columns * square / total)) ** gamma_power(kernel) if square > 0.0 else math.inf
    if np.finfo(np.float64).tiny < value < math.inf:
        return value
    if kernel == "linear":
        return 1.0
    raise ValueError(
        f"gamma={gamma!r} is not allowed for these rows: 1 / (n_features * X.var()) leaves double precision; "
        "scale X, or give gamma as a number"
    )
