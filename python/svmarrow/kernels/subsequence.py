"""The subsequence kernel of strings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.parameters import THREADS, check, integer, real
from svmarrow._support.schemas import savable
from svmarrow.kernels._sequences import Packed, SequenceKernel, objects

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Subsequence"]

_RULES = {
    "length": integer(least=1, most=_core.MAX_SUBSEQUENCE_LENGTH),
    "decay": real(above=0.0, most=1.0),
    "n_jobs": THREADS,
}
#: The names of the kinds of samples.
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
        check({"length": self.length, "decay": self.decay, "n_jobs": self.n_jobs}, _RULES)
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
