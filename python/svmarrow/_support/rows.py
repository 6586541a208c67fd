"""Data in: what the estimators accept, made into what the extension module takes, if possible without a copy.

A dense matrix keeps its memory if the elements of its rows lie side by side, whatever the distance of the
rows, and its precision if that is float64, float32 or uint8. A CSR matrix keeps its memory if its columns are
sorted and occur once. Everything else is converted once, here.
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
from sklearn.utils.validation import check_array, validate_data

from svmarrow import _core
from svmarrow._support.blas import one_blas_thread
from svmarrow._support.kinds import check_kinds
from svmarrow._support.parameters import THREADS, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "CoreRows",
    "any_weighted",
    "as_points",
    "as_rows",
    "cache_bytes",
    "canonical",
    "check_every_class",
    "class_weights",
    "core_rows",
    "default_gamma",
    "is_matrix",
    "moments",
    "parts_at_once",
    "rows_of",
    "sample_weights",
    "select_rows",
    "shown",
    "threads",
    "validated",
    "weights_differ",
    "well_aligned",
]

#: What the extension module takes as rows: an array, or ``(data, indices, indptr, shape)``.
CoreRows = NDArray[Any] | tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[int, int]]

_DENSE: tuple[np.dtype[Any], ...] = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.uint8))
_SPARSE = _DENSE[:2]
#: Elements of a dense matrix up to which the checks themselves, not the elements, are what validation costs.
_FEW = 4096
#: Elements of a dense matrix that are taken together in passes in double precision: 1 MB.
_BLOCK = 2**17
#: The least variance that keeps all its digits, and the least gamma.
_LEAST = float(np.finfo(np.float64).tiny)
#: A variance below this share of the mean square has lost its digits in the difference of two sums; below the
#: fourth power of it, in the mean itself.
_CANCELLED = 1e-6
#: Share of the free memory that a fit may take for kernel rows.
_CACHE_SHARE = 0.4

#: Threads that may be started on any machine.
_MANY = 16


def _omp_threads() -> int | None:
    """``OMP_NUM_THREADS``; where it is a list, its numbers are for levels of nesting."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else None


#: Read once, as OpenMP's own libraries do: a cluster that sets the variable in a running process means its
#: workers, not what else runs there.
_OMP_THREADS = _omp_threads()


def threads(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` stands for.

    ``None`` is all cores this process may use, at most ``OMP_NUM_THREADS``; within a joblib worker it is what
    joblib left for the worker (its ``OMP_NUM_THREADS``), else 1. Negative numbers count back from all cores,
    as in joblib. Threads beyond twice the cores would only wait, and are not started.
    """
    cores = int(joblib.cpu_count())
    if n_jobs is not None:
        if not THREADS.holds(n_jobs):
            raise refuse("n_jobs", n_jobs, THREADS.text)
        most = max(_MANY, 2 * cores)
        return min(int(n_jobs), most) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))
    limit = _OMP_THREADS
    backend, configured = joblib.parallel.get_active_backend()
    if limit is None and getattr(backend, "nesting_level", None):
        limit = 1
    if limit is None and configured is not None and configured > 1:
        limit = int(configured)
    return cores if limit is None else min(cores, limit)


def parts_at_once(n_jobs: int | None) -> int | None:
    """How many independent parts of some work run at once where ``joblib.parallel_config`` names a backend of
    other processes or machines; None where it names none, and work stays in the threads of this process.
    """
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    shared = getattr(backend, "supports_sharedmem", False)
    return None if shared else max(1, int(joblib.effective_n_jobs(n_jobs)))


def cache_bytes(megabytes: float | None) -> int:
    """The byte budget for kernel rows, at most what can be had; ``None`` is a share of the free memory."""
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
    """scikit-learn's checks of an estimator's data; X is returned as :func:`as_rows` has it, with y if asked.

    With ``reset`` the columns are remembered (``n_features_in_``), without it they are compared.
    """
    if type(X) is not np.ndarray or with_y:
        check_kinds(X=X, y=y)
    if precomputed and sp.issparse(X):
        raise TypeError("sparse X is not allowed with the precomputed kernel: it must be dense")
    kinds: tuple[np.dtype[Any], ...] = _SPARSE if sp.issparse(X) or precomputed else _DENSE
    options: dict[str, Any] = {
        "accept_sparse": False if precomputed else "csr",
        "accept_large_sparse": True,
        "dtype": [kind.type for kind in kinds],
        "reset": reset,
    }
    # The sum by which scikit-learn looks for NaN may overflow where no value does.
    with np.errstate(over="ignore", invalid="ignore"):
        if not with_y:
            return _layout(validate_data(estimator, X, **options))
        X, y = validate_data(estimator, X, y, multi_output=multi_output, y_numeric=y_numeric, **options)
    return _layout(X), y


def as_rows(X: Any, name: str = "X") -> Any:
    """Rows outside an estimator: a float64, float32 or uint8 array or a canonical CSR matrix, all finite."""
    # A few rows in the form that the core takes cost a microsecond or two; every further look doubles it.
    if type(X) is np.ndarray and X.ndim == 2 and 0 < X.size <= _FEW and X.dtype in _DENSE:
        flags = X.flags
        if flags.c_contiguous and flags.aligned and np.isfinite(X).all():
            return X
    check_kinds(**{name: X})
    if sp.issparse(X):
        kinds = [kind.type for kind in _SPARSE]
        with np.errstate(over="ignore", invalid="ignore"):
            return canonical(
                check_array(X, accept_sparse="csr", accept_large_sparse=True, dtype=kinds, input_name=name)
            )
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype in _DENSE and X.shape[0]:
        if X.dtype != np.uint8 and not _is_finite(X):
            raise ValueError(f"{name} holds NaN or infinity")
        return _layout(X)
    kinds = [kind.type for kind in _DENSE]
    with np.errstate(over="ignore", invalid="ignore"):
        return _layout(check_array(X, dtype=kinds, input_name=name, ensure_min_features=0))


def is_matrix(value: Any) -> bool:
    """Whether a parameter looks like rows of its own: two sizes, whatever it holds."""
    if isinstance(value, str | None) or callable(value):
        return False
    try:
        return len(value.shape if hasattr(value, "shape") else np.shape(value)) == 2
    except Exception:  # lists of different lengths; what makes an array is the caller's own  # noqa: BLE001 - the value's own methods may raise anything
        return False


def as_points(value: Any, name: str, columns: int) -> Any:
    """Rows that are a parameter, as `as_rows` has them; errors name the parameter."""
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
    # One pass without memory settles it, unless the sum of finite numbers overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()
    return bool(np.isfinite(total)) or bool(np.isfinite(X).all())


def core_rows(X: Any) -> CoreRows:
    """Rows in the form that the extension module takes; no copy."""
    if not isinstance(X, np.ndarray):
        return (X.data, X.indices, X.indptr, (int(X.shape[0]), int(X.shape[1])))
    rows: NDArray[Any] = X
    return rows


def rows_of(rows: CoreRows) -> Any:
    """Rows as the extension module gives them, as an array or a CSR matrix; no copy."""
    if not isinstance(rows, tuple):
        return rows
    data, indices, indptr, shape = rows
    return sp.csr_array((data, indices, indptr), shape=tuple(shape))


def shown(matrix: Any) -> Any:
    """A sparse matrix as an attribute: a sparse array or matrix, as scikit-learn's ``sparse_interface`` says.

    The numbers are not copied. Versions before 1.9 know no such setting; there it stays what it is.
    """
    interface = get_config().get("sparse_interface")
    if interface is None or not sp.issparse(matrix):
        return matrix
    return (sp.csr_array if interface == "sparray" else sp.csr_matrix)(matrix)


def canonical(X: Any) -> Any:
    """A CSR matrix with sorted columns that occur once: itself, or a copy that is put in order."""
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
    """An array or a CSR matrix whose numbers lie at places that the processor likes: itself, or a copy.

    What comes out of a message of another process may lie anywhere.
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
    """A copy of some rows, for a precomputed kernel of the same columns too."""
    return X[np.ix_(rows, rows)] if precomputed else X[rows]


def default_gamma(
    gamma: str | float, X: Any, *, kernel: Any, weights: NDArray[np.float64] | None = None
) -> float:
    """scikit-learn's gamma: "scale" is 1 / (n_features X.var()), "auto" is 1 / n_features.

    The variance is summed in double precision, block by block, without a dense copy; with weights a row
    counts as often as its weight says. Rows whose variance leaves double precision are measured in units of a
    power of 2 near their largest value; a ``ValueError`` where gamma itself leaves it. It is 1 for kernels
    without a gamma, where it cannot be told.
    """
    if kernel == "precomputed" or callable(kernel):
        return 1.0
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / float(X.shape[1])
    # The moments of dense rows that count alike are no work for BLAS, whose threads are not cheap to set.
    sums = nullcontext() if weights is None and not sp.issparse(X) else one_blas_thread()
    with np.errstate(over="ignore", invalid="ignore"), sums:
        variance, mean = moments(X, weights)
    half = 1.0
    if not max(_LEAST, _CANCELLED**4 * mean * mean) < variance < math.inf:
        largest = _largest(X)
        if not math.isfinite(largest) or largest == 0.0 or _is_constant(X):
            return 1.0
        exponent = min(-math.frexp(largest)[1], 1000)
        with one_blas_thread():
            variance, half = moments(_times_power(X, exponent), weights)[0], 2.0**exponent
    if not variance > 0.0:
        return 1.0
    # In two steps: the square of the power may leave the range where the product does not.
    value = 1.0 / (float(X.shape[1]) * variance) * half * half
    if _LEAST < value < math.inf:
        return value
    if kernel == "linear":
        return 1.0
    raise ValueError(
        f"gamma={gamma!r} is not allowed for these rows: 1 / (n_features * X.var()) leaves double precision, "
        f"since the largest value of X is {_largest(X):g}; scale X, or give gamma as a number"
    )


def _largest(X: Any) -> float:
    """The largest absolute value."""
    values = X.data if sp.issparse(X) else X
    return max(abs(float(values.max())), abs(float(values.min()))) if values.size else 0.0


def _is_constant(X: Any) -> bool:
    """Whether all entries are equal, which rounding hides from a variance."""
    if sp.issparse(X) and X.nnz < X.shape[0] * X.shape[1]:
        return not X.data.any()
    values = X.data if sp.issparse(X) else X
    return bool(values.min() == values.max())


def _times_power(X: Any, exponent: int) -> Any:
    """X times a power of 2, in double precision."""
    if sp.issparse(X):
        return sp.csr_array(
            (np.ldexp(X.data.astype(np.float64), exponent), X.indices, X.indptr), shape=X.shape
        )
    return np.ldexp(X.astype(np.float64), exponent)


def moments(X: Any, weights: NDArray[np.float64] | None) -> tuple[float, float]:
    """Variance and mean of all entries."""
    if weights is not None and not math.isfinite(float(weights.sum()) * float(X.shape[1])):
        weights = weights / float(weights.max())
    return _plain_moments(X) if weights is None else _weighted_moments(X, weights)


def _plain_moments(X: Any) -> tuple[float, float]:
    size = float(X.shape[0]) * float(X.shape[1])
    if sp.issparse(X):
        data = X.data.astype(np.float64, copy=False)
        mean = float(data.sum()) / size
        square = float(np.dot(data, data)) / size
        if square - mean * mean > _CANCELLED * square:
            return square - mean * mean, mean
        return (float(np.square(data - mean).sum()) + (size - data.size) * mean * mean) / size, mean
    step = max(1, _BLOCK // max(1, X.shape[1]))
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
        if square - mean * mean > _CANCELLED * square:
            return square - mean * mean, mean
        empty = float(np.dot(share, X.shape[1] - counts))
        return float(np.dot(repeated, np.square(data - mean))) + empty * mean * mean, mean
    step = max(1, _BLOCK // max(1, X.shape[1]))
    blocks = [slice(start, start + step) for start in range(0, X.shape[0], step)]
    mean = float(sum((share[block] @ X[block].astype(np.float64)).sum() for block in blocks))
    return float(sum((share[block] @ np.square(X[block] - np.float64(mean))).sum() for block in blocks)), mean


def sample_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """One finite weight a row, none negative; ``None`` stays ``None``."""
    if sample_weight is None:
        return None
    check_kinds(sample_weight=sample_weight)
    try:
        weights: NDArray[np.float64] = np.asarray(sample_weight, dtype=np.float64)
    except MemoryError:
        raise
    except Exception as error:  # what converts a number is the caller's own  # noqa: BLE001 - the value's own methods may raise anything
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


def weights_differ(weights: NDArray[np.float64] | None) -> bool:
    """Whether weights differ among those that are positive; None stands for equal ones."""
    if weights is None:
        return False
    positive = weights[weights > 0.0]
    return bool(positive.size and positive.max() > positive.min() * (1.0 + 1e-12))


def any_weighted(known: Iterable[bool | None]) -> bool | None:
    """Whether any of several fits had weights that differ; None where that is not known of one."""
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
    """The weight of each class, and of each row with its own weight times that of its class, None for 1.

    ``class_weight`` is None, "balanced" or a dict as scikit-learn has it, ``labels`` the numbers of the rows'
    classes; "balanced" is n / (n_classes * count of the class) of the classes that are there, where a row
    counts as its weight says unless ``counted`` is false.
    """
    if class_weight is None:
        return np.ones(classes.size), weights
    if isinstance(class_weight, str) and counted:
        totals = np.bincount(labels, weights, minlength=classes.size).astype(np.float64)
        there = np.count_nonzero(totals) * totals
        by_class = np.divide(totals.sum(), there, out=np.zeros_like(totals), where=totals > 0.0)
    else:
        by_class = compute_class_weight(_numbers_of(class_weight), classes=classes, y=classes[labels])
    if not np.isfinite(by_class).all() or (by_class < 0.0).any():
        raise refuse("class_weight", class_weight, f"finite and not negative, not {by_class.tolist()}")
    rows: NDArray[np.float64] = by_class[labels]
    return by_class, rows if weights is None else rows * weights


def _numbers_of(class_weight: Any) -> Any:
    """A class weight whose values are floats; a ``ValueError`` where one is no number."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    weights = {}
    for label, weight in class_weight.items():
        try:
            weights[label] = float(weight)
        except Exception:  # the class of a weight is the caller's own  # noqa: BLE001 - the value's own methods may raise anything
            raise refuse("class_weight", class_weight, "a dict from class to a finite number") from None
    return weights


def check_every_class(
    classes: NDArray[Any], labels: NDArray[np.intp], weights: NDArray[np.float64] | None
) -> None:
    """Refuses weights that leave a class without a row of positive weight."""
    totals = np.bincount(labels, weights, minlength=classes.size)
    if not totals.all():
        raise ValueError(
            f"the weights of class {classes[int(np.argmin(totals))]} are all zero: every class needs a row "
            "of positive weight (sample_weight times class_weight)"
        )
