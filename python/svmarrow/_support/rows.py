"""Input validation: converts data to what the extension module takes, without a copy if possible.

A dense matrix is not copied if the elements of each row are contiguous and its type is float64, float32 or
uint8. A CSR matrix is not copied if its column indices are sorted and unique. All other data are converted
once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from svmarrow import _core
from svmarrow._support.blas import one_blas_thread
from svmarrow._support.objects import as_objects, function_of, is_objects, needs_objects
from svmarrow._support.parameters import MATERN_KERNELS, THREADS, check_array_types, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "CoreRows",
    "any_weighted",
    "are_points",
    "as_points",
    "as_rows",
    "as_samples",
    "cache_bytes",
    "canonical",
    "check_every_class",
    "class_weights",
    "core_rows",
    "default_gamma",
    "in_layout_of",
    "moments",
    "n_joblib_workers",
    "refuse_zero_weights",
    "rows_of",
    "sample_weights",
    "select_rows",
    "threads",
    "validated",
    "weights_differ",
    "well_aligned",
    "with_sparse_interface",
]

#: Rows as the extension module takes them: an array, or ``(data, indices, indptr, shape)``.
CoreRows = NDArray[Any] | tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[int, int]]

_DENSE: tuple[np.dtype[Any], ...] = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.uint8))
_SPARSE = _DENSE[:2]
#: Maximum number of elements of a dense matrix for the fast path of the validation.
_MAX_FAST_PATH_ELEMENTS = 4096
#: Number of elements per block in passes over a dense matrix in double precision: 1 MB.
_BLOCK_ELEMENTS = 2**17
#: Smallest normal number: the minimum variance and gamma.
_MIN_NORMAL = float(np.finfo(np.float64).tiny)
#: If the variance is below this share of the mean square, the difference of two sums has lost its digits;
#: below its fourth power, the mean has.
_CANCELLATION = 1e-6
#: Share of the free memory for kernel rows.
_CACHE_SHARE = 0.4
#: Number of threads that may be started on any machine.
_MIN_THREAD_LIMIT = 16


def _omp_threads() -> int | None:
    """Returns ``OMP_NUM_THREADS``; the first number if it is a list for nested levels."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else None


#: Read once at import, as OpenMP libraries do: a cluster that sets the variable in a running process means it
#: for its workers.
_OMP_THREADS = _omp_threads()


def threads(n_jobs: int | None) -> int:
    """Returns the number of threads for ``n_jobs``.

    ``None`` means all cores this process may use, at most ``OMP_NUM_THREADS``; within a joblib worker it is
    what joblib assigned to the worker (its ``OMP_NUM_THREADS``), else 1. Negative numbers count back from all
    cores, as in joblib. The maximum is twice the number of cores.
    """
    cores = int(joblib.cpu_count())
    if n_jobs is not None:
        if not THREADS.holds(n_jobs):
            raise refuse("n_jobs", n_jobs, THREADS.text)
        max_threads = max(_MIN_THREAD_LIMIT, 2 * cores)
        return min(int(n_jobs), max_threads) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))
    limit = _OMP_THREADS
    backend, configured = joblib.parallel.get_active_backend()
    if limit is None and getattr(backend, "nesting_level", None):
        limit = 1
    if limit is None and configured is not None and configured > 1:
        limit = int(configured)
    return cores if limit is None else min(cores, limit)


def n_joblib_workers(n_jobs: int | None) -> int | None:
    """Returns the number of workers if ``joblib.parallel_config`` names a backend of other processes or
    machines; None if the work stays in the threads of this process.
    """
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    shared = getattr(backend, "supports_sharedmem", False)
    return None if shared else max(1, int(joblib.effective_n_jobs(n_jobs)))


def cache_bytes(megabytes: float | None) -> int:
    """Returns the number of bytes for kernel rows; ``None`` means a share of the free memory."""
    share = int(_core.available_memory() * _CACHE_SHARE)
    return share if megabytes is None else int(min(float(megabytes) * 2.0**20, 2.0 * share))


def validated(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    reset: bool,
    precomputed: bool = False,
    with_y: bool = False,
    multi_output: bool = False,
    y_numeric: bool = False,
) -> Any:
    """Validates the data of an estimator as scikit-learn does; returns X as :func:`as_rows`, and y if
    requested.

    With ``reset`` the features are stored (``n_features_in_``), otherwise they are compared. Where the kernel
    is a function, X may be objects, of which :func:`as_objects` makes one column.
    """
    kernel, always = function_of(estimator, reset=reset)
    if kernel is not None:
        objects = as_objects(X, always=always)
        if objects is not None:
            targets = {"multi_output": multi_output, "y_numeric": y_numeric}
            return _validated_objects(estimator, objects, y, targets if with_y else None, reset=reset)
    if type(X) is not np.ndarray or with_y:
        check_array_types(X=X, y=y)
    if precomputed and sp.issparse(X):
        raise TypeError("sparse X is not allowed with the precomputed kernel: it must be dense")
    if precomputed and not reset:
        X = _with_all_columns(estimator, X)
    kinds: tuple[np.dtype[Any], ...] = _SPARSE if sp.issparse(X) or precomputed else _DENSE
    options: dict[str, Any] = {
        "accept_sparse": False if precomputed else "csr",
        "accept_large_sparse": True,
        "dtype": [kind.type for kind in kinds],
        "reset": reset,
    }
    # The sum with which scikit-learn searches for NaN may overflow although no value does.
    with np.errstate(over="ignore", invalid="ignore"):
        if not with_y:
            return _layout(validate_data(estimator, X, **options))
        X, y = validate_data(estimator, X, y, multi_output=multi_output, y_numeric=y_numeric, **options)
    return _layout(X), y


def _with_all_columns(estimator: Any, X: Any) -> Any:
    """Returns kernel values against all training samples, if X has those against the vectors alone.

    The values of other samples are not read, and are zeros.
    """
    expansion, n_train = getattr(estimator, "expansion_", None), getattr(estimator, "n_features_in_", None)
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else None
    width = len(first) if isinstance(first, (list, tuple)) else (*getattr(X, "shape", ()), 0, 0)[1]
    if expansion is None or n_train is None or width == n_train or width != expansion.n_vectors:
        return X
    values = as_rows(X)
    full = np.zeros((values.shape[0], n_train), dtype=values.dtype)
    full[:, expansion.vectors[:, 0].astype(np.intp)] = values
    return full


def _validated_objects(
    estimator: Any, X: NDArray[Any], y: Any, targets: Mapping[str, bool] | None, *, reset: bool
) -> Any:
    """Validates objects of an estimator, and y with the options ``targets`` if there are any."""
    if reset:
        estimator.n_features_in_ = 1
        vars(estimator).pop("feature_names_in_", None)
    if targets is None:
        return X
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    check_array_types(y=y)
    y = validate_data(estimator, y=y, reset=False, **targets)
    check_consistent_length(X, y)
    return X, y


def as_rows(X: Any, name: str = "X") -> Any:
    """Validates rows: returns a finite float64, float32 or uint8 array or a finite canonical CSR matrix."""
    # Fast path for a few rows, for which every further check would double the time.
    if type(X) is np.ndarray and X.ndim == 2 and 0 < X.size <= _MAX_FAST_PATH_ELEMENTS and X.dtype in _DENSE:
        flags = X.flags
        if flags.c_contiguous and flags.aligned and np.isfinite(X).all():
            return X
    check_array_types(**{name: X})
    if sp.issparse(X):
        kinds = [kind.type for kind in _SPARSE]
        with np.errstate(over="ignore", invalid="ignore"):
            return canonical(
                check_array(X, accept_sparse="csr", accept_large_sparse=True, dtype=kinds, input_name=name)
            )
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype in _DENSE and X.shape[0]:
        if X.dtype != np.uint8 and not _is_finite(X):
            raise ValueError(f"{name} contains NaN or infinity")
        return _layout(X)
    kinds = [kind.type for kind in _DENSE]
    with np.errstate(over="ignore", invalid="ignore"):
        return _layout(check_array(X, dtype=kinds, input_name=name, ensure_min_features=0))


def as_samples(X: Any, kernel: Any, name: str = "X") -> Any:
    """Validates samples of a kernel: a column of objects if it is a function of objects, else `as_rows`."""
    objects = as_objects(X, name, always=needs_objects(kernel)) if callable(kernel) else None
    return as_rows(X, name) if objects is None else objects


def are_points(value: Any) -> bool:
    """Returns whether a parameter is two-dimensional, whatever its elements, or a sequence of objects."""
    if isinstance(value, str | None) or callable(value):
        return False
    if is_objects(value):
        return True
    try:
        shape = value.shape if hasattr(value, "shape") else np.shape(value)
    except Exception:  # lists of different lengths or user-defined types  # noqa: BLE001 - the value's own methods may raise anything
        return isinstance(value, list)
    is_list = isinstance(value, list) and len(value) > 0
    return len(shape) == 2 or (is_list and not isinstance(value[0], (bool, int, float)))


def as_points(value: Any, name: str, X: Any) -> Any:
    """Validates points of the kind of the samples X that are a parameter, as `as_rows` does; errors name the
    parameter.
    """
    if is_objects(X):
        return as_objects(value, name, always=True)
    columns = int(X.shape[1])
    try:
        points = as_rows(value, name)
    except (ValueError, TypeError) as error:
        if name in str(error):
            raise
        raise refuse(name, value, f"an array of numbers of shape (m, {columns}): {error}") from error
    if points.shape[1] != columns:
        raise ValueError(f"{name} has {points.shape[1]} columns: X has {columns}")
    return points


def _is_finite(X: NDArray[Any]) -> bool:
    # The sum decides it in one pass without memory, unless the sum of finite numbers overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()
    return bool(np.isfinite(total)) or bool(np.isfinite(X).all())


def core_rows(X: Any) -> CoreRows:
    """Converts rows to the form of the extension module without a copy; objects to a placeholder."""
    if not isinstance(X, np.ndarray):
        return (X.data, X.indices, X.indptr, (int(X.shape[0]), int(X.shape[1])))
    # The extension module knows objects by their kernel values.
    rows: NDArray[Any] = np.zeros(X.shape, dtype=np.uint8) if X.dtype == object else X
    return rows


def rows_of(rows: CoreRows) -> Any:
    """Converts rows of the extension module to an array or a CSR matrix without a copy."""
    if not isinstance(rows, tuple):
        return rows
    data, indices, indptr, shape = rows
    return sp.csr_array((data, indices, indptr), shape=tuple(shape))


def in_layout_of(vectors: Any, X: Any) -> Any:
    """Rows in the layout of vectors, dense or CSR."""
    if sp.issparse(vectors):
        return X if sp.issparse(X) else sp.csr_array(X)
    return X.toarray() if sp.issparse(X) else X


def with_sparse_interface(matrix: Any) -> Any:
    """Converts a sparse matrix to a sparse array or matrix, according to scikit-learn's ``sparse_interface``.

    The elements are not copied. Versions before 1.9 do not have the setting; the matrix is then unchanged.
    """
    interface = get_config().get("sparse_interface")
    if interface is None or not sp.issparse(matrix):
        return matrix
    return (sp.csr_array if interface == "sparray" else sp.csr_matrix)(matrix)


def canonical(X: Any) -> Any:
    """Returns a CSR matrix with sorted, unique column indices: itself, or a sorted copy."""
    X.check_format(full_check=True)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _layout(X: Any) -> Any:
    if sp.issparse(X):
        return canonical(X)
    if type(X) is not np.ndarray and not isinstance(X, np.memmap):
        X = np.asarray(X)
    return X if _rows_are_contiguous(X) else np.array(X, order="C")


def _rows_are_contiguous(X: NDArray[Any]) -> bool:
    if not X.flags.aligned:
        return False
    if X.flags.c_contiguous:
        return True
    between, within = X.strides
    base = X.base
    return (
        (within == X.itemsize or X.shape[1] == 1)
        and between >= X.shape[1] * X.itemsize
        and between % X.itemsize == 0
        and isinstance(base, np.ndarray)
        and base.dtype == X.dtype
        and base.flags.aligned
        and (base.flags.c_contiguous or base.flags.f_contiguous)
        and (X.ctypes.data - base.ctypes.data) % X.itemsize == 0
    )


def well_aligned(value: Any) -> Any:
    """Returns an array or a CSR matrix with aligned elements: itself, or a copy.

    Arrays in a message of another process may be unaligned.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if sp.issparse(value) and value.format == "csr":
        for name in ("data", "indices", "indptr"):
            part = getattr(value, name)
            if not part.flags.aligned:
                setattr(value, name, part.copy())
    return value


def select_rows(X: Any, rows: NDArray[np.intp], *, precomputed: bool = False) -> Any:
    """Copies some rows, and the same columns for a precomputed kernel."""
    return X[np.ix_(rows, rows)] if precomputed else X[rows]


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
