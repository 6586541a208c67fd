"""The model that every part of svmarrow exchanges: f_j(x) = sum_i B[i, j] k(x, z_i) + b_j."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.kernel_function import (
    KernelFunction,
    evaluate,
    function_values,
    kernel_values,
    prepared,
)
from svmarrow._support.objects import as_objects, contents, is_objects, needs_objects
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
from svmarrow._support.rows import as_rows, as_samples, core_rows, rows_of, threads, well_aligned
from svmarrow._support.saving import save_method
from svmarrow._support.schemas import savable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray


__all__ = ["PARAMETERS_OF", "KernelExpansion", "same_vectors", "scale_outputs"]

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
        As given, arrays in the shapes above, parameters that the kernel does not have at their defaults. Not
        to be written to: predictions do not follow.

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
        values = (rows, B, b, kernel, gamma, coef0, degree)
        for name, value in zip(_FIELDS, values, strict=True):
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
            object.__setattr__(self, name, well_aligned(state[name]))
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


_FIELDS = ("vectors", "coefficients", "intercepts", "kernel", "gamma", "coef0", "degree")


def _vectors(vectors: Any, kernel: Any) -> Any:
    """Checks vectors: rows of numbers, or a column of objects for a kernel that is a function."""
    if callable(kernel) and is_objects(vectors) and vectors.shape[1:] == (1,):
        return vectors
    return vectors if _is_empty(vectors) else as_samples(vectors, kernel, "vectors")


def _is_empty(vectors: Any) -> bool:
    """True for an expansion without vectors, a constant, which scikit-learn's checks would refuse."""
    shape = getattr(vectors, "shape", None)
    return shape is not None and len(shape) == 2 and shape[0] == 0


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


def scale_outputs(expansion: KernelExpansion, factors: NDArray[np.float64]) -> KernelExpansion:
    """Returns the expansion with its outputs multiplied by factors (q,)."""
    return expansion.replaced(
        coefficients=expansion.coefficients * factors, intercepts=expansion.intercepts * factors
    )
