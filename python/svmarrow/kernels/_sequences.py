"""Base class of the kernels of sequences, and the samples that they have prepared.

A kernel converts samples to one array of numbers and one of lengths, which the extension module packs. The
values of the samples with themselves, by which a kernel is normalized, are computed when samples are
prepared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from svmarrow import _core
from svmarrow._support.rows import threads

__all__ = ["Packed", "PreparedObjects", "SequenceKernel", "objects"]

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
    """A kernel of samples of any length, normalized: the base class of the kernels of this package."""

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
