"""Kernels of samples that are no rows of numbers: series of vectors, and strings.

| name | samples |
|---|---|
| `GlobalAlignment` | series of vectors, of any lengths |
| `Subsequence` | strings of characters, bytes or integers, of any lengths |
| `PreparedObjects` | samples in the form in which a kernel computes |

A kernel is a function of two blocks of samples, ``kernel(A, B)``, of shape (n_samples_A, n_samples_B). It
converts samples to one array of numbers and one of lengths, which the extension module packs. The values of
the samples with themselves, by which a kernel is normalized, are computed when samples are prepared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from svmarrow import _core
from svmarrow._support.parameters import THREADS, check, either, integer, none, real
from svmarrow._support.rows import threads
from svmarrow._support.schemas import savable

__all__ = ["GlobalAlignment", "PreparedObjects", "Subsequence"]


# --- prepared samples, and the base class of the kernels ---

_Block: TypeAlias = _core.SeriesBlock | _core.StringBlock
#: The numbers of all samples one after the other, the length of each sample, and the kind of samples.
Packed: TypeAlias = tuple[NDArray[Any], NDArray[np.int64], str]


class PreparedObjects:
    """Samples in the form in which a kernel computes, with their values with themselves.

    ``prepare`` of a kernel returns it, and the kernel accepts it in place of the samples. Indexing returns
    the block of some of the samples and copies none of them. Blocks are immutable and can be pickled.

    Attributes
    ----------
    kernel : GlobalAlignment or Subsequence
        The kernel that prepared the samples.
    shape : tuple of int
        ``(n_samples, 1)``.

    Examples
    --------
    >>> from svmarrow.kernels import Subsequence
    >>> kernel = Subsequence(length=2)
    >>> block = kernel.prepare(["cat", "car", "bar"])
    >>> block
    PreparedObjects(n_samples=3, kernel=Subsequence(length=2, decay=0.5, n_jobs=None))
    >>> kernel(block[1:], block).round(3)
    array([[0.444, 1.   , 0.444],
           [0.   , 0.444, 1.   ]])
    """

    __slots__ = ("_block", "_kind", "_owner")

    _block: Any
    _kind: str
    _owner: SequenceKernel

    def __init__(self, kernel: SequenceKernel, block: _Block, kind: str) -> None:
        self._owner = kernel
        self._block = block
        self._kind = kind

    @property
    def kernel(self) -> SequenceKernel:
        """The kernel that prepared the samples."""
        return self._owner

    @property
    def shape(self) -> tuple[int, int]:
        """The number of samples, and 1."""
        return len(self), 1

    def __len__(self) -> int:
        return len(self._block)

    def __getitem__(self, key: Any) -> PreparedObjects:
        places = np.atleast_1d(np.arange(len(self), dtype=np.int64)[key])
        if places.ndim != 1:
            raise IndexError("samples have one index: an integer, a slice, a mask or an array of integers")
        return PreparedObjects(self._owner, self._block.select(np.ascontiguousarray(places)), self._kind)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_samples={len(self)}, kernel={self._owner!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._owner, (*self._block.arrays(), self._kind))


def _restored(kernel: SequenceKernel, packed: Packed) -> PreparedObjects:
    return kernel._block_of(packed)


class SequenceKernel(ABC):
    """A kernel of samples of any length, normalized: the base class of the kernels of this module."""

    n_jobs: int | None

    @abstractmethod
    def _pack(self, A: Any, name: str) -> Packed:
        """Checks samples and converts them to arrays."""

    @abstractmethod
    def _core_block(self, packed: Packed, n_threads: int) -> _Block:
        """Packs the arrays in the extension module."""

    def prepare(self, A: Any) -> PreparedObjects:
        """Convert samples once, for several calls.

        Parameters
        ----------
        A : sequence of samples or PreparedObjects
            The samples.

        Returns
        -------
        PreparedObjects
            The samples in the form in which the kernel computes, with their values with themselves.
        """
        return self._prepared(A, "A")

    def __call__(self, A: Any, B: Any) -> NDArray[np.float64]:
        """Compute the kernel values of all pairs.

        Parameters
        ----------
        A : sequence of n_samples_A samples or PreparedObjects
            The samples of the rows.
        B : sequence of n_samples_B samples or PreparedObjects
            The samples of the columns. If it is the same object as ``A``, each pair is computed once.

        Returns
        -------
        ndarray of shape (n_samples_A, n_samples_B), float64
            Kernel values from 0 to 1.

        Raises
        ------
        TypeError
            If a sample has the wrong type; the message has its index.
        ValueError
            If a sample is empty or not finite where that is not allowed, or if a block was prepared by
            another kernel.
        """
        rows = self._prepared(A, "A")
        n_threads = threads(self.n_jobs)
        if B is A:
            return self._matrix(rows, None, n_threads)
        columns = self._prepared(B, "B")
        if rows._kind != columns._kind and len(rows) and len(columns):
            raise TypeError(
                f"A has {rows._kind} and B has {columns._kind}: they must have the same kind of samples"
            )
        return self._matrix(rows, columns, n_threads)

    def diagonal(self, A: Any) -> NDArray[np.float64]:
        """Compute the kernel values of samples with themselves.

        Parameters
        ----------
        A : sequence of samples or PreparedObjects
            The samples.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            1, or 0 for a sample whose value with all samples is 0.
        """
        values: NDArray[np.float64] = self._prepared(A, "A")._block.diagonal()
        return values

    @staticmethod
    def _matrix(
        rows: PreparedObjects, columns: PreparedObjects | None, n_threads: int
    ) -> NDArray[np.float64]:
        other = None if columns is None else columns._block
        values: NDArray[np.float64] = rows._block.gram(other, n_threads)
        return values

    def _prepared(self, A: Any, name: str) -> PreparedObjects:
        if isinstance(A, PreparedObjects):
            if A.kernel != self:
                raise ValueError(f"{name}={A!r} is not allowed: it must be prepared by {self!r}")
            return A
        return self._block_of(self._pack(A, name))

    def _block_of(self, packed: Packed) -> PreparedObjects:
        return PreparedObjects(self, self._core_block(packed, threads(self.n_jobs)), packed[2])


def objects(A: Any, name: str, kind: str) -> list[Any]:
    """Returns samples as a list.

    They are a sequence, an array of shape (n_samples,) or (n_samples, 1), or a data frame of one column.
    """
    if isinstance(A, (str, bytes)) or not hasattr(A, "__len__"):
        raise TypeError(f"{name} is of type {type(A).__name__}: it must be a list of {kind}")
    if hasattr(A, "to_numpy"):
        A = A.to_numpy()
    if isinstance(A, np.ndarray):
        if not (A.ndim == 1 or (A.ndim == 2 and A.shape[1] == 1)):
            raise ValueError(
                f"{name} has shape {A.shape}: an array of {kind} must have shape (n_samples,) or "
                "(n_samples, 1)"
            )
        return list(A.ravel())
    try:
        return list(A)
    except TypeError as error:
        raise TypeError(f"{name} is of type {type(A).__name__}: it must be a list of {kind}") from error


# --- global alignment of series ---

#: Rules of the parameters of `GlobalAlignment`; the square of sigma has to be a normal number.
_ALIGNMENT_RULES = {
    "sigma": real(least=1e-150, most=1e150),
    "band": either(none, real(above=0.0)),
    "n_jobs": THREADS,
}
#: The name of the kind of samples of `GlobalAlignment`.
_SERIES = "series"


@savable("alignment-kernel/1")
@dataclass(frozen=True)
class GlobalAlignment(SequenceKernel):
    """Global alignment kernel of series of vectors.

    The sum over all alignments of two series, each of which is a product over the aligned pairs of steps. A
    pair of steps x and y has the factor ``g / (2 - g)`` with ``g = exp(-|x - y|**2 / (2 * sigma**2))``. The
    sum is divided by the square root of the product of the sums of each series with itself, so that equal
    series have the value 1. The kernel is positive definite, for series of any lengths.

    Parameters
    ----------
    sigma : float, default=1.0
        Bandwidth of the factors, from 1e-150 to 1e150. Cuturi proposes a multiple of the median distance of
        two steps times the square root of the median number of steps.
    band : float or None, default=None
        If it is a number, g is multiplied by ``max(0, 1 - |i - j| / band)`` for the steps i and j. The cost
        of a value is then proportional to ``band``, and two series whose numbers of steps differ by
        ``band`` or more have the value 0.
    n_jobs : int or None, default=None
        Number of threads. Values have the same bits for any number of threads. Kernels that differ only by
        it are equal.

    Notes
    -----
    A value costs about (number of steps of the first series) * (number of steps of the second) operations for
    each feature. The dynamic program works beyond the range of double precision, so that values of series
    of any length have a relative error of a few roundings for each step.

    Samples are a list of arrays of shape (n_steps, n_features) or (n_steps,), an array of such arrays, or
    numbers of shape (n_samples, n_steps, n_features) or (n_samples, n_steps). NaN and infinity are not
    allowed.

    References
    ----------
    M. Cuturi, "Fast global alignment kernels", ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow.kernels import GlobalAlignment
    >>> rising, slower, falling = [0.0, 1.0, 2.0], [0.0, 0.5, 1.0, 1.5, 2.0], [2.0, 1.0, 0.0]
    >>> kernel = GlobalAlignment(sigma=0.5)
    >>> kernel([rising], [rising, slower, falling]).round(3)
    array([[1.   , 0.271, 0.   ]])

    Series of vectors, with a band:

    >>> series = [np.ones((4, 2)), np.zeros((5, 2))]
    >>> GlobalAlignment(sigma=2.0, band=3).diagonal(series)
    array([1., 1.])
    """

    sigma: float = 1.0
    band: float | None = None
    n_jobs: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check({"sigma": self.sigma, "band": self.band, "n_jobs": self.n_jobs}, _ALIGNMENT_RULES)
        object.__setattr__(self, "sigma", float(self.sigma))
        if self.band is not None:
            object.__setattr__(self, "band", float(self.band))

    def _pack(self, A: Any, name: str) -> Packed:
        values, lengths = _series(A, name)
        is_bad = ~np.isfinite(values).all(axis=1)
        if is_bad.any():
            index = int(np.searchsorted(np.cumsum(lengths), is_bad.argmax(), side="right"))
            raise ValueError(f"{name}[{index}] has NaN or infinity: series must be finite")
        return values, lengths, _SERIES

    def _core_block(self, packed: Packed, n_threads: int) -> _core.SeriesBlock:
        values, lengths, _ = packed
        return _core.SeriesBlock(values, lengths, self.sigma, self.band, n_threads)


def _series(A: Any, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Returns the steps of all series, (total of n_steps, n_features), and the number of steps of each."""
    if not isinstance(A, np.ndarray) and hasattr(A, "to_numpy"):
        A = A.to_numpy()
    if isinstance(A, np.ndarray) and A.ndim in (2, 3) and A.dtype.kind in "fiub":
        n_steps, n_features = A.shape[1], (A.shape[2] if A.ndim == 3 else 1)
        if A.shape[0] and not n_steps * n_features:
            raise ValueError(f"{name} has shape {A.shape}: series must not be empty")
        values = np.ascontiguousarray(A.reshape(-1, max(1, n_features)), dtype=np.float64)
        return values, np.full(A.shape[0], n_steps, dtype=np.int64)
    series = [_steps(sample, f"{name}[{index}]") for index, sample in enumerate(objects(A, name, _SERIES))]
    n_features = series[0].shape[1] if series else 1
    for index, steps in enumerate(series):
        if steps.shape[1] != n_features:
            raise ValueError(
                f"{name}[{index}] has {steps.shape[1]} features and {name}[0] has {n_features}: "
                "series must have the same number of features"
            )
    values = np.concatenate(series) if series else np.empty((0, 1))
    lengths = np.array([steps.shape[0] for steps in series], dtype=np.int64)
    return np.ascontiguousarray(values, dtype=np.float64), lengths


def _steps(series: Any, name: str) -> NDArray[Any]:
    """Returns a series as an array of shape (n_steps, n_features)."""
    try:
        steps = np.asarray(series)
    except ValueError as error:
        raise TypeError(f"{name} is no array: it must be numbers of shape (n_steps, n_features)") from error
    if steps.size == 0 and steps.ndim in (1, 2):
        raise ValueError(f"{name} has shape {steps.shape}: series must not be empty")
    if steps.dtype.kind not in "fiub" or steps.ndim == 0:
        raise TypeError(
            f"{name} is of type {type(series).__name__} with items of type {steps.dtype}: "
            "it must be numbers of shape (n_steps, n_features) or (n_steps,)"
        )
    if steps.ndim > 2:
        raise ValueError(f"{name} has shape {steps.shape}: it must be (n_steps, n_features) or (n_steps,)")
    return steps[:, np.newaxis] if steps.ndim == 1 else steps


# --- subsequences of strings ---

_SUBSEQUENCE_RULES = {
    "length": integer(least=1, most=_core.MAX_SUBSEQUENCE_LENGTH),
    "decay": real(above=0.0, most=1.0),
    "n_jobs": THREADS,
}
#: The names of the kinds of samples of `Subsequence`.
_TEXTS, _BYTES, _INTEGERS = "str", "bytes", "sequences of integers"


@savable("subsequence-kernel/1")
@dataclass(frozen=True)
class Subsequence(SequenceKernel):
    """Subsequence kernel of strings.

    The sum over all subsequences of ``length`` symbols that two strings have in common. Each pair of
    occurrences has the weight ``decay**(g + h)``, where g and h are the numbers of symbols in the gaps of
    the occurrences. The sum is divided by the square root of the product of the sums of each string with
    itself, so that equal strings have the value 1.

    Parameters
    ----------
    length : int, default=3
        Number of symbols of a subsequence, from 1 to 65536.
    decay : float, default=0.5
        Discount of each symbol in a gap, above 0 and at most 1. With 1, gaps cost nothing.
    n_jobs : int or None, default=None
        Number of threads. Values have the same bits for any number of threads. Kernels that differ only by
        it are equal.

    Notes
    -----
    A value costs about length * (number of symbols of the first string) * (number of symbols of the second)
    operations.

    A string of fewer than ``length`` symbols has no subsequence. Its value is 0 with every string, also with
    itself: the kernel stays positive semidefinite.

    Weights relative to a string without gaps are below 1, and those below the range of double precision are
    0. Sums of long strings may exceed the range if ``decay`` is near 1 and ``length`` is large, which
    raises ``ValueError``. Strings of 10,000 symbols are within the range for ``length`` up to 45 with any
    ``decay``, and for ``length`` up to 400 with ``decay=0.5``.

    Samples are a list of str, of bytes or of sequences of integers. The symbols of a str are its code points.

    References
    ----------
    H. Lodhi, C. Saunders, J. Shawe-Taylor, N. Cristianini and C. Watkins, "Text classification using string
    kernels", Journal of Machine Learning Research 2, 2002.

    Examples
    --------
    >>> from svmarrow.kernels import Subsequence
    >>> kernel = Subsequence(length=2, decay=0.5)
    >>> kernel(["cat"], ["cat", "cart", "bat", "dog"]).round(3)
    array([[1.   , 0.574, 0.444, 0.   ]])
    >>> Subsequence(length=2)([(1, 2, 3)], [(1, 2), (2, 3, 1)]).round(3)
    array([[0.667, 0.444]])
    """

    length: int = 3
    decay: float = 0.5
    n_jobs: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check({"length": self.length, "decay": self.decay, "n_jobs": self.n_jobs}, _SUBSEQUENCE_RULES)
        object.__setattr__(self, "length", int(self.length))
        object.__setattr__(self, "decay", float(self.decay))

    def _pack(self, A: Any, name: str) -> Packed:
        if isinstance(A, np.ndarray) and A.ndim == 2 and A.dtype.kind in "iu":
            strings = list(A)
        else:
            strings = objects(A, name, "strings")
        kind = _kind(strings[0], f"{name}[0]") if strings else _TEXTS
        for index, string in enumerate(strings):
            if _kind(string, f"{name}[{index}]") != kind:
                raise TypeError(
                    f"{name}[{index}] is of type {type(string).__name__} and {name}[0] of type "
                    f"{type(strings[0]).__name__}: strings must have the same type"
                )
        if kind == _INTEGERS:
            strings = [_integers(string, f"{name}[{index}]") for index, string in enumerate(strings)]
        lengths = np.array([len(string) for string in strings], dtype=np.int64)
        return _symbols(strings, kind), lengths, kind

    def _core_block(self, packed: Packed, n_threads: int) -> _core.StringBlock:
        symbols, lengths, _ = packed
        return _core.StringBlock(symbols, lengths, self.length, self.decay, n_threads)


def _kind(string: Any, name: str) -> str:
    """Returns the kind of a string."""
    if isinstance(string, str):
        return _TEXTS
    if isinstance(string, (bytes, bytearray)):
        return _BYTES
    if isinstance(string, (np.ndarray, tuple, list)):
        return _INTEGERS
    raise TypeError(
        f"{name} is of type {type(string).__name__}: it must be str, bytes or a sequence of integers"
    )


def _integers(string: Any, name: str) -> NDArray[np.int64]:
    """Returns a sequence of integers as an array."""
    try:
        symbols = np.asarray(string)
    except ValueError as error:
        raise TypeError(f"{name} is no array: it must be integers of shape (n_symbols,)") from error
    if symbols.ndim == 1 and symbols.size == 0:
        return np.empty(0, dtype=np.int64)
    if symbols.ndim != 1 or symbols.dtype.kind not in "iu":
        raise TypeError(
            f"{name} has shape {symbols.shape} and items of type {symbols.dtype}: it must be integers of "
            "shape (n_symbols,)"
        )
    if symbols.dtype == np.uint64 and symbols.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} has {symbols.max()}: symbols must be below 2**63")
    return symbols.astype(np.int64)


def _symbols(strings: list[Any], kind: str) -> NDArray[np.int64]:
    """Returns the symbols of all strings, one after the other."""
    if kind == _TEXTS:
        # A str may have lone surrogates, which are code points as well.
        data = "".join(strings).encode("utf-32-le", "surrogatepass")
        return np.frombuffer(data, dtype="<u4").astype(np.int64)
    if kind == _BYTES:
        return np.frombuffer(b"".join(strings), dtype=np.uint8).astype(np.int64)
    return np.concatenate(strings) if strings else np.empty(0, dtype=np.int64)
