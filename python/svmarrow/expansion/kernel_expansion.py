"""The model that every part of svmarrow exchanges: f_j(x) = sum_i B[i, j] k(x, z_i) + b_j.

Kernels with a name are evaluated by the extension module. A kernel that is a Python function is called on
blocks of samples by the functions that come first: for a model, for a matrix, and for a solver that asks
for values of training rows while it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from svmarrow import _core
from svmarrow._support.parameters import (
    KERNELS,
    UNIT_DIAGONAL_KERNELS,
    check,
    either,
    function,
    integer,
    one_of,
    real,
)
from svmarrow._support.rows import (
    as_objects,
    as_rows,
    as_samples,
    contents,
    core_rows,
    is_objects,
    needs_objects,
    product,
    read_only,
    rows_of,
    same_vectors,
    threads,
    well_aligned,
)
from svmarrow._support.saving import save_method
from svmarrow._support.schemas import savable
from svmarrow._support.training import asymmetry, tolerance

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "PARAMETERS_OF",
    "KernelExpansion",
    "KernelFunction",
    "TrainingKernel",
    "bytes_of_pairs",
    "evaluate",
    "function_matrix",
    "function_values",
    "kernel_values",
    "prepared",
    "scale_outputs",
]


# --- user-defined kernels: Python functions of two blocks of rows ---
# ``function(X_block, Y_block)`` gets rows as the estimator stores them (arrays, CSR matrices for sparse data,
# one-dimensional arrays of objects) and returns their kernel values, (rows of X_block, rows of Y_block). A
# call returns at most `MAX_BLOCK_VALUES` values unless a single row has more; the full kernel matrix is never
# stored. A kernel with a method `prepare` gets parts of what that returned for all training rows, or for the
# vectors of a model: work for each sample is then done once.


KernelFunction = Callable[[Any, Any], ArrayLike]

#: Maximum number of kernel values of one call at prediction.
MAX_BLOCK_VALUES = 2**22
#: Share of the free memory for the values of all pairs of objects.
_PAIRS_SHARE = 0.25
#: Maximum kernel value of the solver, which may store kernel values in single precision.
_MAX_VALUE = float(np.finfo(np.float32).max)
#: Rows of a block of a kernel matrix: a compromise between calls and pairs that are computed twice.
_MATRIX_ROWS = 64
#: Maximum number of rows of a call whose values are compared with each other.
_MAX_CHECKED_ROWS = 64


def prepared(function: KernelFunction, X: Any) -> Any:
    """Returns samples in the form whose parts the kernel gets."""
    return function.prepare(contents(X)) if needs_objects(function) else X  # type: ignore[attr-defined]


def kernel_values(function: KernelFunction, X: Any, Z: Any) -> NDArray[Any]:
    """Returns K(X, Z) of one call; raises ``ValueError`` unless it is a finite matrix of that shape.

    Either may be `prepared`.
    """
    values: Any = function(contents(X), contents(Z))
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    expected = (int(X.shape[0]), int(Z.shape[0]))
    if values.shape != expected:
        raise ValueError(
            f"the kernel function returned shape {values.shape} for blocks of {expected[0]} and "
            f"{expected[1]} rows: it must return {expected}"
        )
    if values.dtype.kind not in "fiub":
        raise ValueError(f"the kernel function returned values of type {values.dtype}: they must be numbers")
    if not np.isfinite(values).all():
        raise ValueError("the kernel function returned NaN or infinity: kernel values must be finite")
    matrix: NDArray[Any] = values
    return matrix


def function_values(function: KernelFunction, X: Any, points: Any) -> NDArray[np.float64]:
    """Computes K(X, points) block by block; the points may be `prepared`."""
    n, m = int(X.shape[0]), int(points.shape[0])
    out = np.empty((n, m))
    step = max(1, MAX_BLOCK_VALUES // max(1, m))
    for start in range(0, n if m else 0, step):
        block = slice(start, start + step)
        out[block] = kernel_values(function, X[block], points)
    return out


def function_matrix(function: KernelFunction, X: Any) -> NDArray[np.float64]:
    """Computes K(X, X); pairs in different blocks of rows are computed once."""
    samples, n = prepared(function, X), int(X.shape[0])
    out = np.empty((n, n))
    for start in range(0, n, _MATRIX_ROWS):
        rows = slice(start, min(n, start + _MATRIX_ROWS))
        out[rows, : rows.stop] = kernel_values(function, samples[rows], samples[: rows.stop])
        out[:start, rows] = out[rows, :start].T
    return out


class TrainingKernel:
    """Callback of the extension module: kernel values of training rows, in the range of single precision."""

    def __init__(self, function: KernelFunction, X: Any, *, asks_again: bool = False) -> None:
        self.function = function
        self.X = prepared(function, X)
        #: Number of kernel values computed.
        self.computed: int = 0
        self._diagonal_rows = 1 if is_objects(X) else _MATRIX_ROWS
        # For a solver that asks for a pair more than once.
        self._pairs = _Pairs.of(X) if asks_again else None

    def __call__(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the kernel values (rows, columns)."""
        if self._pairs is None:
            return self._values(rows, columns)
        return self._pairs.read(rows, columns, self._values)

    def diagonal(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns k(x, x) of training rows, by the kernel's own ``diagonal`` if it has one."""
        diagonal = getattr(self.function, "diagonal", None)
        if callable(diagonal):
            values = np.asarray(diagonal(contents(self.X[_span(rows)])), dtype=np.float64)
            if values.shape != rows.shape or not np.isfinite(values).all():
                raise ValueError(
                    f"the diagonal of the kernel function has shape {values.shape}: it must be {rows.shape}, "
                    "and its values finite"
                )
            return np.ascontiguousarray(values)
        out = np.empty(rows.size)
        for start in range(0, rows.size, self._diagonal_rows):
            block = rows[start : start + self._diagonal_rows]
            # Not kept with the pairs: rows that lack the same columns are computed together.
            out[start : start + block.size] = np.diagonal(self._values(block, block))
        return out

    def _values(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        self.computed += rows.size * columns.size
        values = kernel_values(self.function, self.X[_span(rows)], self.X[_span(columns)])
        double = np.ascontiguousarray(values, dtype=np.float64)
        if double.size and max(double.max(), -double.min()) > _MAX_VALUE:
            raise ValueError("the kernel function returned values beyond the range of single precision")
        self._check_symmetry(values, rows, columns)
        return double

    @staticmethod
    def _check_symmetry(values: NDArray[Any], rows: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
        """Checks the values that a call returns for both orders of two rows."""
        rows, order = rows[:_MAX_CHECKED_ROWS], np.argsort(columns)
        ranks = np.searchsorted(columns, rows, sorter=order)
        places = order[np.minimum(ranks, columns.size - 1)]
        is_column = columns[places] == rows
        if not is_column.any():
            return
        rows, places = rows[is_column], places[is_column]
        square = np.asarray(values[: is_column.size][np.ix_(is_column, places)], dtype=np.float64)
        relative = tolerance(values.dtype)
        position = asymmetry(square, relative)
        if position is not None:
            i, j = position
            raise ValueError(
                f"the kernel function returned {square[i, j]:.6g} for the rows {rows[i]} and {rows[j]}, and "
                f"{square[j, i]:.6g} for {rows[j]} and {rows[i]}: it must be symmetric up to {relative:g} of "
                "its largest value"
            )


def bytes_of_pairs(X: Any) -> int:
    """Returns the bytes of the store of pairs: 0 for rows of numbers, and for a large share of the memory."""
    if not is_objects(X):
        return 0
    needed = 9 * len(X) ** 2
    return needed if needed <= _PAIRS_SHARE * _core.available_memory() else 0


class _Pairs:
    """Values of a symmetric kernel of objects, which may take a millisecond: each pair is computed once."""

    def __init__(self, n: int) -> None:
        # The system provides memory as it is touched.
        self._values = np.zeros((n, n))
        self._is_known = np.zeros((n, n), dtype=bool)

    @classmethod
    def of(cls, X: Any) -> Self | None:
        """Returns a store for the pairs of objects; None for rows of numbers and for lack of memory."""
        try:
            return cls(len(X)) if bytes_of_pairs(X) else None
        except MemoryError:
            return None

    def read(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], compute: Callable[..., NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Returns values of rows and columns; computes a block for the rows that lack the same columns.

        Rows are taken a few at a time, since the values of each group are those of later rows, mirrored.
        """
        for start in range(0, rows.size, _MATRIX_ROWS):
            group = rows[start : start + _MATRIX_ROWS]
            is_missing = ~self._is_known[np.ix_(group, columns)]
            while is_missing.any():
                lacking = is_missing[is_missing.any(axis=1).argmax()]
                are_alike = (is_missing == lacking).all(axis=1)
                block = np.ix_(group[are_alike], columns[lacking])
                self._values[block] = compute(group[are_alike], columns[lacking])
                self._values.T[block] = self._values[block]
                self._is_known[block] = self._is_known.T[block] = True
                is_missing[are_alike] = False
        return np.ascontiguousarray(self._values[np.ix_(rows, columns)])


def _span(indices: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Converts consecutive indices to a slice, which does not copy rows."""
    first, last = int(indices[0]), int(indices[-1])
    if last - first + 1 == indices.size and bool((np.diff(indices) == 1).all()):
        return slice(first, last + 1)
    return indices


def evaluate(
    function: KernelFunction,
    X: Any,
    vectors: Any,
    coefficients: NDArray[np.float64],
    intercepts: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Computes K(X, vectors) B + b block by block; the vectors may be `prepared`."""
    n, m = int(X.shape[0]), int(vectors.shape[0])
    samples = prepared(function, X)
    out = np.tile(intercepts, (n, 1))
    step = max(1, MAX_BLOCK_VALUES // max(1, m))
    for start in range(0, n if m else 0, step):
        block = slice(start, start + step)
        out[block] += product(kernel_values(function, samples[block], vectors), coefficients)
    return out


_RULES = {
    "kernel": either(one_of(*KERNELS), function),
    "gamma": real(least=0.0),
    "coef0": real(),
    "degree": integer(least=0, most=2**31 - 1),
}
#: Which of gamma, coef0 and degree a kernel has.
PARAMETERS_OF = {
    "linear": (),
    "precomputed": (),
    **dict.fromkeys(UNIT_DIAGONAL_KERNELS, ("gamma",)),
    "sigmoid": ("gamma", "coef0"),
    "poly": ("gamma", "coef0", "degree"),
}
#: Multiplications below which finding the number of cores takes longer than one core.
_SHORT_COST = 1e6
#: Multiplications between two interrupt checks: about a second of one core.
_BLOCK_COST = 1e10


@savable("expansion/1")
class KernelExpansion:
    """q outputs that share m vectors and one kernel.

    Every model of svmarrow is one of these: what a learner makes, what a reducer shortens, what a file holds.

    Parameters
    ----------
    vectors : {ndarray, CSR matrix} of shape (m, d)
        float64, float32 or uint8; kept without a copy where the memory allows, and then not to be written to.
        For the precomputed kernel (m, 1): the indices of the training samples. For a function also m objects,
        which are stored as a column of type object.
    coefficients : array-like of shape (m, q) or (m,)
        B.
    intercepts : array-like of shape (q,) or float
        b.
    kernel : str or callable, default="rbf"
        One of "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "precomputed", as in scikit-learn, or
        of "matern12", "matern32", "matern52", see Notes; or a function of two blocks of samples. Of these
        only the kernels of `svmarrow.kernels` can be saved; all can be pickled and compressed.
    gamma : float, default=1.0
        Kernel coefficient; not used by "linear" and "precomputed".
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.

    Attributes
    ----------
    vectors, coefficients, intercepts, kernel, gamma, coef0, degree
        As given, arrays in the shapes above, parameters that the kernel does not have at their defaults. The
        arrays are read-only: predictions would not follow a change.

    Raises
    ------
    ValueError
        For shapes that do not agree, numbers that are not finite, and kernel parameters out of range.

    Notes
    -----
    ============= ==================================================
    kernel        k(x, z), with r = ||x - z||
    ============= ==================================================
    "linear"      x'z
    "poly"        (gamma x'z + coef0)^degree
    "rbf"         exp(-gamma r^2)
    "sigmoid"     tanh(gamma x'z + coef0)
    "laplacian"   exp(-gamma ||x - z||_1)
    "chi2"        exp(-gamma sum_k (x_k - z_k)^2 / (x_k + z_k))
    "matern12"    exp(-a), a = gamma r
    "matern32"    (1 + a) exp(-a), a = sqrt(3) gamma r
    "matern52"    (1 + a + a^2 / 3) exp(-a), a = sqrt(5) gamma r
    "precomputed" a number of the sample itself
    ============= ==================================================

    The Matérn kernels [1]_ are those of scikit-learn's ``Matern(length_scale=1 / gamma, nu=nu)`` for nu =
    1/2, 3/2 and 5/2: the smaller nu, the rougher the functions. "matern12" is the exponential of the
    Euclidean distance, where "laplacian" has the sum of absolute differences.

    References
    ----------
    .. [1] C. E. Rasmussen and C. K. I. Williams, *Gaussian Processes for Machine Learning*, MIT Press, 2006,
       section 4.2.1.

    Examples
    --------
    >>> from svmarrow import KernelExpansion
    >>> f = KernelExpansion([[0.0], [1.0]], [1.0, -1.0], 0.5, kernel="linear")
    >>> f.decision_function([[2.0]])
    array([[-1.5]])
    """

    __slots__ = (
        "_handle",
        "coef0",
        "coefficients",
        "degree",
        "gamma",
        "intercepts",
        "kernel",
        "vectors",
    )

    save: ClassVar[Callable[..., None]] = save_method

    vectors: Any
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    kernel: str | KernelFunction
    gamma: float
    coef0: float
    degree: int
    _handle: dict[str, Any]

    def __init__(
        self,
        vectors: Any,
        coefficients: ArrayLike,
        intercepts: ArrayLike,
        kernel: str | KernelFunction = "rbf",
        gamma: float = 1.0,
        coef0: float = 0.0,
        degree: int = 3,
    ) -> None:
        check({"kernel": kernel, "gamma": gamma, "coef0": coef0, "degree": degree}, _RULES)
        rows = _vectors(vectors, kernel)
        b = np.ascontiguousarray(np.atleast_1d(np.asarray(intercepts, dtype=np.float64)))
        B = np.asarray(coefficients, dtype=np.float64)
        B = np.ascontiguousarray(B[:, np.newaxis] if B.ndim == 1 else B)
        if b.ndim != 1 or b.size == 0:
            raise ValueError(f"intercepts have shape {b.shape}: they must be one number for each output")
        if B.shape != (rows.shape[0], b.size):
            expected = (rows.shape[0], b.size)
            raise ValueError(
                f"coefficients have shape {B.shape}: for these vectors and intercepts it must be {expected}"
            )
        if not (np.isfinite(B).all() and np.isfinite(b).all()):
            raise ValueError("coefficients and intercepts must be finite")
        if isinstance(kernel, str) and kernel == "precomputed" and rows.shape[1] != 1:
            raise ValueError(
                "vectors of the precomputed kernel have one column, the index of the training row"
            )
        # What the kernel does not have is at its default: equal expansions are equal in all parts.
        has = PARAMETERS_OF[kernel] if isinstance(kernel, str) else ("gamma", "coef0", "degree")
        gamma = float(gamma) if "gamma" in has else 1.0
        coef0 = float(coef0) if "coef0" in has else 0.0
        degree = int(degree) if "degree" in has else 3
        arrays = (read_only(rows), read_only(B), read_only(b))
        for name, value in zip(_FIELDS, (*arrays, kernel, gamma, coef0, degree), strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_handle", {})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a KernelExpansion does not change: make a new one to set {name}")

    @property
    def expansion_(self) -> Self:
        """The expansion itself, under the name that it has in every model around one."""
        return self

    @property
    def parts(self) -> tuple[KernelExpansion, ...]:
        """The expansions of one kernel whose sum it is: itself, except for an `ExpansionSum`."""
        return (self,)

    @property
    def n_vectors(self) -> int:
        """Number of vectors m."""
        return int(self.vectors.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of outputs q."""
        return int(self.intercepts.size)

    @property
    def core_parts(
        self,
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.float64], tuple[str, float, float, int]]:
        """Vectors, coefficients, intercepts and kernel as the extension module takes them."""
        return core_rows(self.vectors), self.coefficients, self.intercepts, self.kernel_spec

    @property
    def kernel_spec(self) -> tuple[str, float, float, int]:
        """(name, gamma, coef0, degree)."""
        if callable(self.kernel):
            raise TypeError(f"kernel={self.kernel!r} is a Python function: it must be a built-in kernel here")
        return self.kernel, self.gamma, self.coef0, self.degree

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, and of objects as they count themselves."""
        if is_objects(self.vectors):
            of_vectors = sum(int(getattr(item, "nbytes", sys.getsizeof(item))) for item in self.vectors[:, 0])
            return of_vectors + int(self.coefficients.nbytes + self.intercepts.nbytes)
        arrays = [self.coefficients, self.intercepts]
        if sp.issparse(self.vectors):
            arrays += [self.vectors.data, self.vectors.indices, self.vectors.indptr]
        else:
            arrays.append(self.vectors)
        return sum(int(array.nbytes) for array in arrays)

    def decision_function(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """The outputs for some samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; float32 and uint8 are computed in single precision, float64 in double. For the
            precomputed kernel (n, n_train): kernel values against the training samples.
        n_jobs : int or None, default=None
            Threads; None is all cores within the limits of joblib and ``OMP_NUM_THREADS``.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs), float64
            The outputs.

        Raises
        ------
        ValueError
            For a wrong number of features and values that are not finite or outside the kernel's domain.
        """
        if is_objects(self.vectors):
            return self._evaluate(as_objects(X, always=True), n_jobs)
        return self._evaluate(as_rows(X), n_jobs)

    @property
    def core_expansion(self) -> _core.Expansion:
        """The expansion in the extension module, made at the first use and shared by all predictions."""
        handle: _core.Expansion | None = self._handle.get("")
        if handle is None:
            # Threads that come first at the same time share one: `setdefault` is atomic.
            handle = self._handle.setdefault("", _core.Expansion(*self.core_parts))
        return handle

    def needs_double(self) -> bool:
        """Return whether samples in single precision are evaluated in double precision.

        Large coefficients cancel to small outputs, and the rounding errors of single precision remain.

        Returns
        -------
        bool
            True if errors in single precision may exceed a thousandth of the spread of an output at the
            vectors, the largest and the smallest left out (so three vectors have none), or if the kernel is a
            Python function.

        Examples
        --------
        >>> import numpy as np
        >>> from svmarrow import KernelExpansion
        >>> coefficients = np.array([[1.0], [2.0], [-1.0], [-2.0]])
        >>> KernelExpansion(np.eye(4), coefficients, [0.0], kernel="rbf", gamma=1.0).needs_double()
        False
        >>> KernelExpansion(np.eye(4), 1e6 + coefficients, [0.0], kernel="rbf", gamma=1.0).needs_double()
        True
        """
        return True if callable(self.kernel) else self.core_expansion.needs_double()

    def _evaluate(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        """`decision_function` of validated samples."""
        if callable(self.kernel):
            return evaluate(self.kernel, X, self._prepared(), self.coefficients, self.intercepts)
        handle = self.core_expansion
        n, cost = X.shape[0], max(1, self.n_vectors * X.shape[1])
        if n * cost < _SHORT_COST and n_jobs is None:
            return handle.decision(core_rows(X), 1)
        n_threads = threads(n_jobs)
        block = max(1024, int(_BLOCK_COST * n_threads / cost))
        if n <= block:
            return handle.decision(core_rows(X), n_threads)
        out = np.empty((n, self.n_outputs))
        for start in range(0, n, block):
            rows = X[start : start + block]
            out[start : start + block] = handle.decision(core_rows(rows), n_threads)
        return out

    def _prepared(self) -> Any:
        """The vectors in the form that the kernel function takes, made at the first use."""
        if isinstance(self.kernel, str) or not needs_objects(self.kernel):
            return self.vectors
        vectors = self._handle.get("vectors")
        if vectors is None:
            vectors = self._handle.setdefault("vectors", prepared(self.kernel, self.vectors))
        return vectors

    def _kernel_diagonal(self, X: Any) -> NDArray[np.float64]:
        """k(x, x) of each sample (n,)."""
        if self.kernel in UNIT_DIAGONAL_KERNELS:
            return np.ones(X.shape[0])
        samples = [X[i : i + 1] for i in range(X.shape[0])]
        if callable(self.kernel):
            diagonal = getattr(self.kernel, "diagonal", None)
            if callable(diagonal):
                return np.asarray(diagonal(contents(X)), dtype=np.float64)
            values: list[Any] = [kernel_values(self.kernel, sample, sample) for sample in samples]
        else:
            values = [_core.gram(core_rows(one), None, self.kernel_spec, 1) for one in samples]
        return np.array([float(np.asarray(value).reshape(-1)[0]) for value in values])

    def replaced(self, **fields: Any) -> KernelExpansion:
        """The expansion with other ``vectors``, ``coefficients``, ``intercepts`` or kernel parameters."""
        return KernelExpansion(**{**self.__getstate__(), **fields})

    def _selected(self, places: NDArray[np.intp], coefficients: NDArray[np.float64]) -> KernelExpansion:
        """The expansion of some vectors, by their places, with other coefficients (s, q)."""
        return self.replaced(vectors=self.vectors[places], coefficients=coefficients)

    def _kernel_values(
        self, X: Any, places: NDArray[np.intp], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Kernel values (n, s) of validated samples and some vectors, by their places."""
        vectors = self.vectors[places]
        if callable(self.kernel):
            return function_values(self.kernel, prepared(self.kernel, X), prepared(self.kernel, vectors))
        return _core.gram(core_rows(X), core_rows(vectors), self.kernel_spec, threads(n_jobs))

    @classmethod
    def _of_parts(cls, parts: Mapping[str, Any]) -> Self:
        """From what the extension module has read."""
        return cls(rows_of(parts["vectors"]), parts["coefficients"], parts["intercepts"], *parts["kernel"])

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name in _FIELDS:
            value = state[name]
            object.__setattr__(self, name, read_only(well_aligned(value)) if name in _ARRAYS else value)
        object.__setattr__(self, "_handle", {})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KernelExpansion):
            return NotImplemented
        return (
            self._kernel_identity == other._kernel_identity
            and np.array_equal(self.coefficients, other.coefficients)
            and np.array_equal(self.intercepts, other.intercepts)
            and same_vectors(self.vectors, other.vectors)
        )

    @property
    def _kernel_identity(self) -> object:
        return self.kernel if callable(self.kernel) else self.kernel_spec

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parameters = () if callable(self.kernel) else PARAMETERS_OF[self.kernel]
        has = "".join(f", {name}={getattr(self, name):g}" for name in parameters)
        size = f"{self.n_vectors} vectors, {self.vectors.shape[1]} columns, {self.n_outputs} outputs"
        return f"<KernelExpansion: {size}, kernel={self.kernel!r}{has}>"


_ARRAYS = ("vectors", "coefficients", "intercepts")
_FIELDS = (*_ARRAYS, "kernel", "gamma", "coef0", "degree")


def _vectors(vectors: Any, kernel: Any) -> Any:
    """Checks vectors: rows of numbers, or a column of objects for a kernel that is a function."""
    if callable(kernel) and is_objects(vectors) and vectors.shape[1:] == (1,):
        return vectors
    return vectors if _is_empty(vectors) else as_samples(vectors, kernel, "vectors")


def _is_empty(vectors: Any) -> bool:
    """True for an expansion without vectors, a constant, which scikit-learn's checks would refuse."""
    shape = getattr(vectors, "shape", None)
    return shape is not None and len(shape) == 2 and shape[0] == 0


def scale_outputs(expansion: KernelExpansion, factors: NDArray[np.float64]) -> KernelExpansion:
    """Returns the expansion with its outputs multiplied by factors (q,)."""
    return expansion.replaced(
        coefficients=expansion.coefficients * factors, intercepts=expansion.intercepts * factors
    )
