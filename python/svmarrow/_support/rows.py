"""Samples: converts data to what the extension module takes, without a copy if possible.

Rows of numbers: a dense matrix is not copied if the elements of each row are contiguous and its type is
float64, float32 or uint8. A CSR matrix is not copied if its column indices are sorted and unique. All other
data are converted once.

Objects: samples that are not rows of numbers (strings, series of different lengths, graphs, whatever a kernel
function takes) are stored as a column, an array of shape (n, 1) and type object. Code that selects, splits,
counts or stacks rows then works on objects too. A kernel function gets the one-dimensional array of the
objects, and the extension module, which sees their kernel values only, gets a placeholder of the same number
of rows.

Threads: the number that a computation uses. NumPy's and SciPy's linear algebra runs on one, because a BLAS
library splits sums according to its number of threads, a setting of the whole process. A lock lets one thread
at a time change it, work and restore it; other threads and forks wait. It does not protect against another
library that changes the setting at the same time.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils.validation import check_array, check_consistent_length, validate_data
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from svmarrow import _core
from svmarrow._support.parameters import THREADS, check_array_types, is_missing, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "CoreRows",
    "are_points",
    "as_objects",
    "as_points",
    "as_rows",
    "as_samples",
    "cache_bytes",
    "canonical",
    "column_of",
    "contents",
    "core_rows",
    "dense",
    "in_layout_of",
    "is_objects",
    "n_joblib_workers",
    "needs_objects",
    "one_blas_thread",
    "packed_objects",
    "product",
    "read_only",
    "rows_of",
    "same_vectors",
    "select_rows",
    "threads",
    "unpacked_objects",
    "validated",
    "well_aligned",
    "with_sparse_interface",
]

# --- objects as samples ---

_NUMBERS = (bool, int, float, np.generic)


def is_objects(X: Any) -> bool:
    """Returns whether samples are a column of objects."""
    return isinstance(X, np.ndarray) and X.dtype == object


def contents(X: Any) -> Any:
    """Returns the one-dimensional array of a column of objects; rows of numbers as they are."""
    return X[:, 0] if is_objects(X) else X


def needs_objects(kernel: Any) -> bool:
    """Returns whether a kernel takes objects only: the classes of `svmarrow.kernels` do."""
    return callable(getattr(kernel, "prepare", None))


def function_of(estimator: Any, *, reset: bool) -> tuple[Any, bool]:
    """Returns the kernel function for which X may be objects, or None, and whether X must be objects.

    Other kernels, alone or in a list, read numbers; so does a machine that was fitted to rows of numbers.
    """
    owner = getattr(estimator, "expansion", None) or getattr(estimator, "estimator", estimator)
    kernel = getattr(owner, "kernel", None)
    kernels = kernel if isinstance(kernel, (list, tuple)) else [kernel]
    if not kernels or not all(callable(part) for part in kernels):
        return None, False
    expansion = None if reset else getattr(estimator, "expansion_", None)
    if expansion is None:
        return kernels[0], any(needs_objects(part) for part in kernels)
    return (kernels[0], True) if is_objects(expansion.vectors) else (None, False)


def as_objects(X: Any, name: str = "X", *, always: bool = False) -> NDArray[Any] | None:
    """Returns samples as a column of objects, or None for rows of numbers.

    Rows of numbers are sparse matrices, two-dimensional arrays and frames of numbers, and lists of lists of
    numbers of one length. Other sequences are objects, one a sample: strings, arrays of different lengths or
    of two dimensions (as are those of a three-dimensional array), and objects of any class.

    Parameters
    ----------
    X : sequence
        Samples.
    name : str
        Name of the parameter for errors.
    always : bool
        Whether each item is an object even if they could be rows of numbers.

    Raises
    ------
    TypeError
        For sparse matrices if ``always``.
    ValueError
        For missing objects, and for an empty sequence of them.
    """
    if sp.issparse(X):
        if always:
            raise TypeError(f"{name} is a sparse matrix: this kernel takes a sequence of objects")
        return None
    check_array_types(**{name: X})
    items = _items(X)
    if items is None or not (always or _are_objects(items)):
        return None
    if not len(items):
        raise ValueError(f"{name} has 0 samples: at least one is needed")
    for i, item in enumerate(items):
        if is_missing(item):
            raise ValueError(f"{name}[{i}] is {item!r}: every sample must be an object that the kernel takes")
    return column_of(items)


def column_of(items: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Returns a column of objects."""
    column = np.empty((len(items), 1), dtype=object)
    for row, item in zip(column, items, strict=True):
        row[0] = item
    return column


def _items(X: Any) -> NDArray[Any] | list[Any] | tuple[Any, ...] | None:
    """Returns the samples one by one; None for what is not a sequence of them."""
    if isinstance(X, (str, bytes, dict)) or len(getattr(X, "columns", (0,))) != 1:
        # Only a frame of one column can hold objects.
        return None
    if not isinstance(X, (list, tuple)):
        if not hasattr(X, "__array__"):
            return list(X) if hasattr(X, "__len__") else None
        X = np.asarray(X)
    if isinstance(X, np.ndarray):
        if X.ndim == 0:
            return None
        if X.ndim == 2 and X.shape[1] == 1 and X.dtype.kind in "OUS":
            X = X[:, 0]
        if X.dtype.kind in "US":
            return list(X.tolist())
    items: NDArray[Any] | list[Any] | tuple[Any, ...] = X
    return items


def _are_objects(items: NDArray[Any] | list[Any] | tuple[Any, ...]) -> bool:
    """Returns whether some of the samples are neither numbers nor rows of numbers of one length."""
    if isinstance(items, np.ndarray) and (items.dtype != object or items.ndim > 1):
        return items.dtype != object and items.ndim > 2
    shapes: set[tuple[int, ...]] = set()
    for item in items:
        if isinstance(item, _NUMBERS) or is_missing(item):
            shapes.add(())
        elif isinstance(item, np.ndarray) and item.dtype != object:
            shapes.add(item.shape)
        elif isinstance(item, (list, tuple)) and all(isinstance(number, _NUMBERS) for number in item):
            shapes.add((len(item),))
        else:
            return True
    return len(shapes) > 1 or any(len(shape) > 1 for shape in shapes)


# --- objects of a file: strings, bytes, and arrays whose items are of one type and shape ---


def packed_objects(column: NDArray[Any], name: str) -> tuple[str, dict[str, NDArray[Any]]]:
    """Returns the kind of the objects of a column, their lengths, and all their items one after the other.

    Raises
    ------
    TypeError
        For objects of other kinds.
    """
    objects = column[:, 0]
    if all(type(item) is str for item in objects):
        return "strings", {}
    if all(type(item) is bytes for item in objects):
        kind, pieces = "bytes", [np.frombuffer(item, dtype=np.uint8) for item in objects]
    else:
        kind, pieces = "arrays", [np.asarray(item) for item in objects]
    forms = {(piece.dtype, piece.shape[1:]) if piece.ndim else None for piece in pieces}
    if len(forms) != 1 or None in forms or pieces[0].dtype.kind not in "fiub":
        raise TypeError(
            f"{name} has objects of type {type(objects[0]).__name__}, which cannot be stored in a model "
            "file: they must be strings, bytes or arrays of numbers of one type; pickle can store others"
        )
    lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
    return kind, {"lengths": lengths, "items": np.concatenate(pieces)}


def unpacked_objects(kind: str, lengths: NDArray[Any], items: NDArray[Any]) -> NDArray[Any]:
    """Returns the column of `packed_objects`; raises ``ValueError`` for lengths that do not fit."""
    if lengths.dtype != np.int64 or lengths.ndim != 1 or lengths.min(initial=0) < 0:
        raise ValueError("the lengths of objects are not counts")
    # Sums of huge counts may overflow.
    if lengths.size and (lengths.max() > len(items) or lengths.sum() != len(items)):
        raise ValueError(f"the lengths of objects do not add up to {len(items)}")
    pieces = np.split(items, np.cumsum(lengths)[:-1])
    return column_of([piece.tobytes() for piece in pieces] if kind == "bytes" else pieces)


# --- linear algebra of NumPy and SciPy on one thread ---

_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


@cache
def _libraries() -> ThreadpoolController:
    """Returns the loaded libraries, whose search takes a hundred times as long as setting their threads."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limits BLAS and LAPACK to one thread within the context."""
    with _LOCK, _libraries().limit(limits=1, user_api="blas"):
        yield


def product(a: Any, b: Any) -> NDArray[np.float64]:
    """Returns ``a @ b``, the same bits for any number of threads."""
    with one_blas_thread():
        result: NDArray[np.float64] = np.asarray(a @ b)
    return result


# --- rows of numbers, threads ---

#: Rows as the extension module takes them: an array, or ``(data, indices, indptr, shape)``.
CoreRows = NDArray[Any] | tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[int, int]]
_DENSE: tuple[np.dtype[Any], ...] = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.uint8))
_SPARSE = _DENSE[:2]
#: Maximum number of elements of a dense matrix for the fast path of the validation.
_MAX_FAST_PATH_ELEMENTS = 4096
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


def dense(X: Any, dtype: Any = None) -> NDArray[Any]:
    """Converts rows, dense or sparse, to an array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=dtype)


def in_layout_of(vectors: Any, X: Any) -> Any:
    """Rows in the layout of vectors, dense or CSR."""
    if sp.issparse(vectors):
        return X if sp.issparse(X) else sp.csr_array(X)
    return dense(X)


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


def read_only(value: Any) -> Any:
    """Returns a view of an array, or of the arrays of a CSR matrix, that cannot be written to."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    matrix = copy(value)
    for name in ("data", "indices", "indptr"):
        setattr(matrix, name, read_only(getattr(value, name)))
    return matrix


def select_rows(X: Any, rows: NDArray[np.intp], *, precomputed: bool = False) -> Any:
    """Copies some rows, and the same columns for a precomputed kernel."""
    return X[np.ix_(rows, rows)] if precomputed else X[rows]


def same_vectors(a: Any, b: Any) -> bool:
    """Returns whether vectors are equal in value, type and layout; objects by ``==``, arrays by value."""
    if is_objects(a) and is_objects(b):
        return a.shape == b.shape and all(_are_equal(*pair) for pair in zip(a[:, 0], b[:, 0], strict=True))
    if a.shape != b.shape or a.dtype != b.dtype or sp.issparse(a) != sp.issparse(b):
        return False
    if not sp.issparse(a):
        return np.array_equal(a, b)
    return (
        np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.data, b.data)
    )


def _are_equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return a is b or bool(a == b)
