"""Rows of NumPy archives: X, or the four parts of CSR rows, and y."""

from __future__ import annotations

import errno
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from svmarrow.cli.rows import Data, whole
from svmarrow.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from svmarrow.cli.rows import DataOptions

__all__ = ["npz_archive", "npz_array", "npz_header", "npz_names", "npz_rows", "read_npz"]

MAX_DECOMPRESSED_BYTES = 1 << 30
"""Number of bytes that a compressed array may have regardless of the file size."""

MAX_COLUMNS = 2**31 - 1
"""Maximum number of columns of sparse rows, as for svmlight."""


@contextmanager
def npz_archive(path: Path) -> Iterator[Any]:
    """Opens an archive; errors name the file."""
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                yield archive
        except Exception as error:  # numpy and zipfile raise many kinds for a broken archive
            # A place before the file's start, which a broken archive may name, is an invalid argument.
            system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
            if system or isinstance(error, (MemoryError, FormatError)):
                raise
            raise FormatError(f"{path}: not a readable npz archive of plain arrays: {error}") from None


def read_npz(path: Path, options: DataOptions) -> Data:
    """Reads an archive."""
    size = path.stat().st_size
    with npz_archive(path) as archive:
        names = npz_names(path, set(archive.files), options.test)
        arrays = {name: npz_array(path, archive, name, size) for name in names}
    by_role = {name.removeprefix("test_").removesuffix("_test"): value for name, value in arrays.items()}
    return npz_rows(path, by_role, options)


def npz_rows(path: Path, by_role: dict[str, NDArray[Any]], options: DataOptions) -> Data:
    """Converts the arrays of an archive to rows: X or the four parts of CSR rows, and y."""
    if "X" in by_role:
        X = by_role["X"]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise FormatError(f"{path}: X is {X.dtype} of shape {X.shape}, expected a matrix of numbers")
        if X.dtype not in (np.uint8, np.float32, np.float64) or options.single_precision:
            X = X.astype(options.dtype)
    else:
        try:
            if int(by_role["shape"][1]) > MAX_COLUMNS:
                raise ValueError(f"more than {MAX_COLUMNS} columns")
            parts = (by_role["data"].astype(options.dtype), by_role["indices"], by_role["indptr"])
            X = sparse.csr_array(parts, shape=tuple(int(size) for size in by_role["shape"]))
            X.check_format(full_check=True)
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise FormatError(f"{path}: data, indices, indptr and shape are no CSR matrix: {error}") from None
        X.sort_indices()
    y = by_role.get("y")
    if y is not None and (y.ndim != 1 or len(y) != X.shape[0]):
        raise FormatError(f"{path}: y has shape {y.shape}, there are {X.shape[0]} rows")
    if y is not None and y.dtype.kind in "iu" and int(y.max(initial=0)) < 2**63:
        y = y.astype(np.int64)
    return Data(X, None if y is None else whole(y))


def npz_header(path: Path, archive: Any, name: str, member: Any) -> tuple[tuple[int, ...], bool, Any]:
    """Shape, whether it is stored column by column, and type of an array; `member` is then at its numbers."""
    major, _ = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(member)
    size = archive.zip.getinfo(f"{name}.npy").file_size
    if math.prod(shape) * dtype.itemsize > size:
        raise FormatError(f"{path}: {name} of shape {shape} is cut off: it has {size} bytes")
    return shape, by_columns, dtype


def npz_array(path: Path, archive: Any, name: str, size: int) -> NDArray[Any]:
    """Reads an array of an archive after a check of its size, since NumPy allocates it first."""
    with archive.zip.open(f"{name}.npy") as member:
        shape, _, dtype = npz_header(path, archive, name, member)
    held = math.prod(shape) * dtype.itemsize
    if held > max(16 * size, MAX_DECOMPRESSED_BYTES):
        raise FormatError(
            f"{path}: {name} takes {held} bytes, more than 16 times the file and {MAX_DECOMPRESSED_BYTES}: "
            "store it without compression"
        )
    array: NDArray[Any] = archive[name]
    return array


def npz_names(path: Path, found: set[str], test: bool) -> list[str]:
    """Returns the names of the arrays to read: dense X or the four CSR parts, and y if present."""
    dense, label = ("X_test", "y_test") if test else ("X", "y")
    parts = [f"test_{part}" if test else part for part in ("data", "indices", "indptr", "shape")]
    if dense in found:
        chosen = [dense]
    elif found.issuperset(parts):
        chosen = parts
    else:
        names = ", ".join(sorted(found)) or "nothing"
        raise FormatError(f"{path}: neither {dense} nor {', '.join(parts)} in this archive, it holds {names}")
    return [*chosen, label] if label in found else chosen
