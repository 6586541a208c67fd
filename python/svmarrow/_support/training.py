"""The checks and computations of a fit on its data, before it trains.

Memory: an estimate, and a refusal before the computation begins. Weights: a number for each sample, times
that of its class. Classes: the labels as indices 0, 1, ..., the targets of least squares, the pairs of
classes that machines separate. The default width of a kernel, from the variance of the samples. Precomputed
kernel matrices: whether they are symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from svmarrow import _core
from svmarrow._support.parameters import MATERN_KERNELS, check_array_types, refuse
from svmarrow._support.rows import as_samples, one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

__all__ = [
    "MemoryEstimate",
    "any_weighted",
    "asymmetry",
    "bytes_of_rows",
    "check_every_class",
    "check_kernel_matrix",
    "class_targets",
    "class_weights",
    "default_gamma",
    "encode_classes",
    "estimate_memory",
    "estimate_of",
    "known_labels",
    "label_indices",
    "moments",
    "new_threads",
    "pairs",
    "refuse_beyond_memory",
    "refuse_zero_weights",
    "sample_weights",
    "tolerance",
    "weights_differ",
]


# --- memory ---

#: Minimum number of bytes for which the free memory is looked up.
MIN_CHECKED_BYTES = 64 << 20


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a computation needs in addition to its data.

    Parameters
    ----------
    total : int
        Maximum, with caches as large as the parameters allow.
    minimum : int
        Minimum, with the smallest caches. A MemoryError is raised before the computation begins if this
        process cannot allocate it.
    parts : dict of str to int
        The components of the total if known: for a support vector machine the training samples in
        the solver's layout (``"packed"``), kernel rows (``"cache"``), kernel matrices of the largest blocks
        (``"blocks"``) and coefficients, gradients and bounds of all machines (``"variables"``).

    Examples
    --------
    >>> from svmarrow.models import MemoryEstimate
    >>> MemoryEstimate(2_500_000, minimum=1_000_000)
    MemoryEstimate(total=2500000, minimum=1000000, parts={})
    """

    total: int
    minimum: int
    parts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, needed: int) -> Self:
        """Creates the estimate of a computation without caches."""
        return cls(int(needed), int(needed))


def estimate_memory(self: Any, X: Any, y: Any = None) -> MemoryEstimate:
    """Estimate the memory that `fit` needs.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training samples; they are not counted.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Labels or targets, which determine the number and size of the machines. None assumes one machine
        of all samples.

    Returns
    -------
    MemoryEstimate
        Approximate numbers of bytes. Online learners without a budget count every sample as a vector,
        cascades and reduced sets every sample as a vector of the full model. A nested estimator is
        included if it has an `estimate_memory`.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC, RLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> RLSClassifier().estimate_memory(X, y).total > 4 * 1797**2
    True
    >>> estimate = SVC().estimate_memory(X, y)
    >>> estimate.minimum < estimate.total == sum(estimate.parts.values())
    True
    """
    self._check_parameters()
    estimate: MemoryEstimate = self._memory(as_samples(X, getattr(self, "kernel", None)), y)
    return estimate


def refuse_beyond_memory(what: str, needed: int, remedy: str) -> None:
    """Raise a MemoryError if `what` needs more bytes than this process can allocate."""
    if needed < MIN_CHECKED_BYTES:
        return
    free = _core.available_memory()
    if needed > free:
        raise MemoryError(
            f"{what} needs about {needed / 1e9:.2f} GB in addition to the data, and "
            f"{free / 1e9:.2f} GB are free: {remedy}"
        )


def bytes_of_rows(X: Any) -> int:
    """Returns the number of bytes of one copy of the rows."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes)


def estimate_of(estimator: Any, X: Any, y: Any) -> MemoryEstimate:
    """Returns the estimate of an estimator; 0 if it has none."""
    if not hasattr(estimator, "_memory"):
        return MemoryEstimate.of(0)
    return estimate_memory(estimator, X, y)


@contextmanager
def new_threads() -> Iterator[None]:
    """Raises MemoryError instead of RuntimeError if a Python thread cannot be started."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "can't start new thread":
            raise
        raise MemoryError("no thread could be started, since memory is short: lower n_jobs") from error


# --- the default gamma ---

#: Number of elements per block in passes over a dense matrix in double precision: 1 MB.
_BLOCK_ELEMENTS = 2**17
#: Smallest normal number: the minimum variance and gamma.
_MIN_NORMAL = float(np.finfo(np.float64).tiny)
#: If the variance is below this share of the mean square, the difference of two sums has lost its digits;
#: below its fourth power, the mean has.
_CANCELLATION = 1e-6


def gamma_power(kernel: Any) -> float:
    """Returns the power of 1 / (squared distance) that gamma of the kernel is in units of."""
    return 0.5 if kernel in MATERN_KERNELS else 1.0


def default_gamma(
    gamma: str | float, X: Any, *, kernel: Any, weights: NDArray[np.float64] | None = None
) -> float:
    """Returns scikit-learn's gamma: "scale" is 1 / (n_features X.var()), "auto" is 1 / n_features. Matérn
    kernels, whose gamma is in units of 1 / distance, get the square root.

    The variance is summed in double precision block by block, without a dense copy; with weights a row counts
    as often as its weight. If the variance leaves the range of double precision, X is scaled by a power of 2
    near its largest value; if gamma itself does, a ``ValueError`` is raised. Kernels without gamma get 1.
    """
    if kernel == "precomputed" or callable(kernel):
        return 1.0
    if not isinstance(gamma, str):
        return float(gamma)
    power = gamma_power(kernel)
    if gamma == "auto":
        return float((1.0 / float(X.shape[1])) ** power)
    # Unweighted moments of dense rows do not use BLAS, whose number of threads is expensive to set.
    context = nullcontext() if weights is None and not sp.issparse(X) else one_blas_thread()
    with np.errstate(over="ignore", invalid="ignore"), context:
        variance, mean = moments(X, weights)
    scale = 1.0
    if not max(_MIN_NORMAL, _CANCELLATION**4 * mean * mean) < variance < math.inf:
        largest = _largest(X)
        if not math.isfinite(largest) or largest == 0.0 or _is_constant(X):
            return 1.0
        exponent = min(-math.frexp(largest)[1], 1000)
        with one_blas_thread():
            variance, scale = moments(_times_power(X, exponent), weights)[0], 2.0**exponent
    if not variance > 0.0:
        return 1.0
    # Two products, since the square of the power may leave the range although the result does not.
    value = float((1.0 / (float(X.shape[1]) * variance)) ** power) * scale
    value *= 1.0 if kernel in MATERN_KERNELS else scale
    if _MIN_NORMAL < value < math.inf:
        return value
    if kernel == "linear":
        return 1.0
    raise ValueError(
        f"gamma={gamma!r} is not allowed for these rows: 1 / (n_features * X.var()) leaves double precision, "
        f"since the largest value of X is {_largest(X):g}; scale X, or give gamma as a number"
    )


def _largest(X: Any) -> float:
    """Returns the largest absolute value."""
    values = X.data if sp.issparse(X) else X
    return max(abs(float(values.max())), abs(float(values.min()))) if values.size else 0.0


def _is_constant(X: Any) -> bool:
    """Returns whether all elements are equal, which a rounded variance does not show."""
    if sp.issparse(X) and X.nnz < X.shape[0] * X.shape[1]:
        return not X.data.any()
    values = X.data if sp.issparse(X) else X
    return bool(values.min() == values.max())


def _times_power(X: Any, exponent: int) -> Any:
    """Returns X times a power of 2 in double precision."""
    if sp.issparse(X):
        return sp.csr_array(
            (np.ldexp(X.data.astype(np.float64), exponent), X.indices, X.indptr), shape=X.shape
        )
    return np.ldexp(X.astype(np.float64), exponent)


def moments(X: Any, weights: NDArray[np.float64] | None) -> tuple[float, float]:
    """Returns the variance and the mean of all elements."""
    if weights is not None and not math.isfinite(float(weights.sum()) * float(X.shape[1])):
        weights = weights / float(weights.max())
    return _plain_moments(X) if weights is None else _weighted_moments(X, weights)


def _plain_moments(X: Any) -> tuple[float, float]:
    size = float(X.shape[0]) * float(X.shape[1])
    if sp.issparse(X):
        data = X.data.astype(np.float64, copy=False)
        mean = float(data.sum()) / size
        square = float(np.dot(data, data)) / size
        if square - mean * mean > _CANCELLATION * square:
            return square - mean * mean, mean
        return (float(np.square(data - mean).sum()) + (size - data.size) * mean * mean) / size, mean
    step = max(1, _BLOCK_ELEMENTS // max(1, X.shape[1]))
    blocks = [slice(start, start + step) for start in range(0, X.shape[0], step)]
    mean = float(sum(X[block].sum(dtype=np.float64) for block in blocks)) / size
    return float(sum(np.square(X[block] - np.float64(mean)).sum() for block in blocks)) / size, mean


def _weighted_moments(X: Any, weights: NDArray[np.float64]) -> tuple[float, float]:
    share = weights / (float(weights.sum()) * float(X.shape[1]))
    if sp.issparse(X):
        data = X.data.astype(np.float64, copy=False)
        counts = np.diff(X.indptr)
        repeated = np.repeat(share, counts)
        mean = float(np.dot(repeated, data))
        square = float(np.dot(repeated, data * data))
        if square - mean * mean > _CANCELLATION * square:
            return square - mean * mean, mean
        empty = float(np.dot(share, X.shape[1] - counts))
        return float(np.dot(repeated, np.square(data - mean))) + empty * mean * mean, mean
    step = max(1, _BLOCK_ELEMENTS // max(1, X.shape[1]))
    blocks = [slice(start, start + step) for start in range(0, X.shape[0], step)]
    mean = float(sum((share[block] @ X[block].astype(np.float64)).sum() for block in blocks))
    return float(sum((share[block] @ np.square(X[block] - np.float64(mean))).sum() for block in blocks)), mean


# --- weights of samples and of classes ---


def sample_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """Validates sample weights: one finite, non-negative weight per sample; ``None`` is returned as it is."""
    if sample_weight is None:
        return None
    check_array_types(sample_weight=sample_weight)
    try:
        weights: NDArray[np.float64] = np.asarray(sample_weight, dtype=np.float64)
    except MemoryError:
        raise
    except Exception as error:  # user-defined conversion  # noqa: BLE001 - the value's own methods may raise anything
        raise refuse(
            "sample_weight", sample_weight, f"one number, or ({n},) numbers, one a row: {error}"
        ) from None
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}: it must be ({n},), one weight a row")
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        raise ValueError("sample_weight must be finite and not negative: it counts rows, 0 leaves one out")
    return weights


def refuse_zero_weights(weights: NDArray[np.float64]) -> None:
    """Raises ``ValueError`` if no sample has a positive weight."""
    if not weights.any():
        raise ValueError("the sample weights are all zero: at least one sample needs a positive weight")


def weights_differ(weights: NDArray[np.float64] | None) -> bool:
    """Returns whether the positive weights differ; None stands for equal weights."""
    if weights is None:
        return False
    positive = weights[weights > 0.0]
    return bool(positive.size and positive.max() > positive.min() * (1.0 + 1e-12))


def any_weighted(known: Iterable[bool | None]) -> bool | None:
    """Returns whether any of several fits had different weights; None if that is unknown for one."""
    flags = list(known)
    return True if True in flags else None if None in flags else False


def class_weights(
    class_weight: Any,
    weights: NDArray[np.float64] | None,
    classes: NDArray[Any],
    labels: NDArray[np.intp],
    *,
    counted: bool = True,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Returns the weight of each class, and of each sample times that of its class; None means all 1.

    ``class_weight`` is None, "balanced" or a dict as in scikit-learn, ``labels`` are class indices.
    "balanced" is n / (n_classes * count of the class) over the present classes, where a sample counts as its
    weight if ``counted``, else as 1.
    """
    if class_weight is None:
        return np.ones(classes.size), weights
    if isinstance(class_weight, str) and counted:
        totals = np.bincount(labels, weights, minlength=classes.size).astype(np.float64)
        scaled = np.count_nonzero(totals) * totals
        by_class = np.divide(totals.sum(), scaled, out=np.zeros_like(totals), where=totals > 0.0)
    else:
        by_class = compute_class_weight(_numbers_of(class_weight), classes=classes, y=classes[labels])
    if not np.isfinite(by_class).all() or (by_class < 0.0).any():
        raise refuse("class_weight", class_weight, f"finite and not negative, not {by_class.tolist()}")
    rows: NDArray[np.float64] = by_class[labels]
    return by_class, rows if weights is None else rows * weights


def _numbers_of(class_weight: Any) -> Any:
    """Converts the values of a class weight to floats; raises ``ValueError`` if one is not a number."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    weights = {}
    for label, weight in class_weight.items():
        try:
            weights[label] = float(weight)
        except Exception:  # user-defined class  # noqa: BLE001 - the value's own methods may raise anything
            raise refuse("class_weight", class_weight, "a dict from class to a finite number") from None
    return weights


def check_every_class(
    classes: NDArray[Any], labels: NDArray[np.intp], weights: NDArray[np.float64] | None
) -> None:
    """Raises ``ValueError`` if a class has no sample of positive weight."""
    totals = np.bincount(labels, weights, minlength=classes.size)
    if not totals.all():
        raise ValueError(
            f"the weights of class {classes[int(np.argmin(totals))]} are all zero: every class needs a "
            "sample of positive weight (sample_weight times class_weight)"
        )


# --- classes ---


def encode_classes(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Returns the sorted classes of the training labels and the class index of each label."""
    is_plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iubU"
    if not is_plain:
        check_classification_targets(y)
    # The inverse of np.unique needs the order of all labels: ten times as long as a search among few classes.
    classes = np.unique(y)
    labels = np.searchsorted(classes, np.ravel(y))
    # For integers and strings the check only warns of more classes than half the samples.
    if is_plain and 2 * classes.size > y.size:
        check_classification_targets(y)
    if classes.size < 2:
        raise ValueError(f"y has {classes.size} class: it must have at least 2 classes")
    return classes, labels


def label_indices(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Returns the index in `classes` of each label, -1 for unknown labels."""
    unique, inverse = np.unique(y, return_inverse=True)
    position = {label: index for index, label in enumerate(classes.tolist())}
    known = np.array([position.get(label, -1) for label in unique.tolist()], dtype=np.int64)
    return known[inverse.reshape(-1)]


def known_labels(y: Any, classes: NDArray[Any], n_samples: int) -> NDArray[np.int64]:
    """Returns the index in `classes` of the label of each sample; unknown labels raise ``ValueError``."""
    labels = np.asarray(y)
    if labels.shape != (n_samples,):
        raise ValueError(f"X and y disagree: X has {n_samples} rows, y has shape {labels.shape}")
    indices = label_indices(labels, classes)
    if (indices < 0).any():
        unknown = np.unique(labels[indices < 0])[:3].tolist()
        raise ValueError(f"y holds labels that the model does not know, such as {unknown}")
    return indices


def class_targets(labels: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Returns targets 1 and -1 of class indices, (n, 1) for two classes, else (n, n_classes)."""
    if n_classes == 2:
        return np.where(labels == 1, 1.0, -1.0)[:, np.newaxis]
    return np.where(labels[:, np.newaxis] == np.arange(n_classes), 1.0, -1.0)


def pairs(n_classes: int) -> list[tuple[int, int]]:
    """Returns the pairs (a, b), a < b, in the order of the outputs."""
    return [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]


# --- checks of kernel matrices of training rows, which solvers assume to be symmetric ---
# A solver reads either triangle, so a model of another matrix would depend on its internals. Values may
# differ by `tolerance` of the largest absolute value: a matrix product in single precision and six digits
# of text are not exactly symmetric.


#: Maximum difference of two mirrored values relative to the largest value, in double and single precision.
_TOLERANCE, _SINGLE_TOLERANCE = _core.MAX_ASYMMETRY, 1e-3
#: Rows and columns of a tile, so that a tile and its mirror image stay in the cache.
_TILE = 128


def tolerance(dtype: np.dtype[Any]) -> float:
    """Returns the maximum relative difference of two mirrored values of a type."""
    return _SINGLE_TOLERANCE if dtype.kind == "f" and dtype.itemsize < 8 else _TOLERANCE


def asymmetry(matrix: NDArray[Any], relative: float) -> tuple[int, int] | None:
    """Returns the position of a value that differs from its mirror image, or None for a symmetric matrix.

    Takes one pass over the matrix, tile by tile.
    """
    n = matrix.shape[0]
    limit = relative * max(float(matrix.max()), -float(matrix.min()))
    for top in range(0, n, _TILE):
        rows = slice(top, top + _TILE)
        for left in range(0, top + 1, _TILE):
            columns = slice(left, left + _TILE)
            # Finite values of opposite sign may be too far apart for the type.
            with np.errstate(over="ignore"):
                differences = matrix[rows, columns] - matrix[columns, rows].T
            if max(float(differences.max()), -float(differences.min())) > limit:
                i, j = np.unravel_index(int(np.argmax(np.abs(differences))), differences.shape)
                return top + int(i), left + int(j)
    return None


def check_kernel_matrix(X: NDArray[Any], *, symmetric: bool = True) -> None:
    """Raises ``ValueError`` for a precomputed kernel matrix of training rows that no kernel gives."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"X has shape {X.shape}: a precomputed kernel matrix must be square")
    if not symmetric:
        return
    relative = tolerance(X.dtype)
    position = asymmetry(X, relative)
    if position is not None:
        i, j = position
        raise ValueError(
            f"X has X[{i}, {j}] = {X[i, j]:.6g} and X[{j}, {i}] = {X[j, i]:.6g}: a precomputed kernel matrix "
            f"must be symmetric up to {relative:g} of its largest value; (X + X.T) / 2 is"
        )
