"""Rows and labels from files: svmlight, CSV, npz.

The format follows from the file's name and can be forced. Errors are `ValueError`s that name the file and,
where there are lines, the line.
"""

from __future__ import annotations

import bz2
import csv
import errno
import gzip
import math
import os
import shutil
import zlib
from array import array
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from svmarrow.exceptions import FormatError
from svmarrow.io import load_svmlight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from svmarrow._support.progress import ProgressCallback

__all__ = ["Data", "DataOptions", "check_writable", "read_data"]

PACKED: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
"""How compressed files are opened, by the last part of their names; the part before tells the format."""

EXTENSIONS = {".csv": "csv", ".tsv": "csv", ".npz": "npz"}
"""Names of the formats that are not svmlight."""

LARGEST_UNPACKED = 1 << 30
"""Bytes of a compressed array that are taken whatever the size of its file."""

MOST_COLUMNS = 2**31 - 1
"""Columns that sparse rows in a file may have, as for svmlight."""


@dataclass(frozen=True)
class DataOptions:
    """How to read a data file.

    Attributes
    ----------
    format : {"auto", "svmlight", "csv", "npz"}
        "auto" goes by the file's name, and takes what it does not know for svmlight.
    target : str or None
        CSV: name or index of the label column; negative indices count from the end, "none" means there is
        none. Without it, the last column, unless the file has exactly `n_features` columns.
    header : bool or None
        CSV: whether the first line holds names; None looks.
    test : bool
        npz: take the arrays whose names say test.
    n_features : int or None
        Columns that are expected; None takes what the file has.
    single_precision : bool
        Keep the numbers in float32.
    names : tuple of str or None
        CSV with a header: the columns to take, in this order; the label is the one that is none of them.
    """

    format: Literal["auto", "svmlight", "csv", "npz"] = "auto"
    target: str | None = None
    header: bool | None = None
    test: bool = False
    n_features: int | None = None
    single_precision: bool = False
    names: tuple[str, ...] | None = None

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """Type of the numbers."""
        return np.float32 if self.single_precision else np.float64


@dataclass(frozen=True)
class Data:
    """Rows, and their labels where the file has them.

    Attributes
    ----------
    X : ndarray or sparse array of shape (n, n_features)
        Rows.
    y : ndarray of shape (n,) or None
        Labels: integers where all are whole numbers, strings where any is not a number.
    names : list of str or None
        Column names.
    """

    X: Any
    y: NDArray[Any] | None
    names: list[str] | None = None

    @property
    def labels(self) -> NDArray[Any]:
        """The labels; a ValueError where there are none."""
        if self.y is None:
            raise ValueError("the data have no labels")
        return self.y


def read_data(path: Path, options: DataOptions, progress: ProgressCallback | None = None) -> Data:
    """Read a file.

    Parameters
    ----------
    path : Path
        The file.
    options : DataOptions
        How to read it.
    progress : callable, default=None
        ``progress(phase, done, total, gap, steps)`` for svmlight files.

    Returns
    -------
    Data
        At least one row.

    Raises
    ------
    OSError
        If the system cannot read the file.
    ValueError
        If it does not follow its format, or options ask for what its format does not have.
    """
    if path.suffix.lower() in PACKED:
        return _read_packed(path, options, progress)
    kind = EXTENSIONS.get(path.suffix.lower(), "svmlight") if options.format == "auto" else options.format
    if kind != "csv" and (options.target is not None or options.header is not None):
        raise ValueError(f"{path}: --target and --header are for CSV files, this one is read as {kind}")
    if kind != "npz" and options.test:
        raise ValueError(f"{path}: --test is for npz files, this one is read as {kind}")
    if kind == "svmlight":
        X, targets = load_svmlight(path, options.n_features, dtype=options.dtype, progress=progress)
        data = Data(X, whole(targets))
    elif kind == "csv":
        data = _read_csv(path, options)
    else:
        data = _read_npz(path, options)
    if data.X.shape[0] == 0:
        raise ValueError(f"{path}: there are no rows")
    if options.n_features is not None and data.X.shape[1] != options.n_features:
        raise ValueError(f"{path}: {data.X.shape[1]} columns, the model has {options.n_features}")
    return data


def _read_packed(path: Path, options: DataOptions, progress: ProgressCallback | None) -> Data:
    """Read a compressed file by way of a temporary one, whose name errors do not tell."""
    opened = PACKED[path.suffix.lower()](path)
    with TemporaryDirectory(prefix="svmarrow-") as folder, opened as packed:
        plain = Path(folder) / path.stem
        try:
            with plain.open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)
        except (EOFError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise FormatError(f"{path}: not a readable {path.suffix} file: {error}") from None
        try:
            return read_data(plain, options, progress)
        except ValueError as error:
            raise FormatError(str(error).replace(str(plain), str(path))) from None


def whole(values: NDArray[Any]) -> NDArray[Any]:
    """Integers instead of floating-point numbers that all are whole."""
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        return values
    exact = np.abs(values).max(initial=0) < 2**53 and (values == np.trunc(values)).all()
    return values.astype(np.int64) if exact else values


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _read_csv(path: Path, options: DataOptions) -> Data:
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            start = file.read(1 << 16)
            file.seek(0)
            reader = csv.reader(file, delimiter=_delimiter(path, start))
            return _parse_csv(path, _csv_lines(path, reader), options)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None


def _csv_lines(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Numbered lines that are not blank."""
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise ValueError(f"{path}:{reader.line_num}: {error}") from None


def _delimiter(path: Path, start: str) -> str:
    if path.suffix.lower() == ".tsv":
        return "\t"
    first = start.splitlines()[0] if start.strip() else ""
    return max(",;\t", key=first.count)


def _parse_csv(path: Path, lines: Iterator[tuple[int, list[str]]], options: DataOptions) -> Data:
    head = [line for _, line in zip(range(2), lines, strict=False)]
    if not head:
        raise ValueError(f"{path}: there are no rows")
    width = len(head[0][1])
    header = _looks_like_header(head) if options.header is None else options.header
    names = [cell.strip() for cell in head[0][1]] if header else None
    target = _target_column(path, names, width, options)
    values, labels = array("d"), []
    known: dict[str, str] = {}  # of equal labels one is kept
    for rows in (head[1 if header else 0 :], lines):
        for number, cells in rows:
            if len(cells) != width:
                raise ValueError(f"{path}:{number}: {len(cells)} cells, the first line has {width}")
            for column, cell in enumerate(cells):
                if column == target:
                    label = cell.strip()
                    labels.append(known.setdefault(label, label))
                    continue
                value = _number(cell)
                if value is None:
                    where = f"column {names[column]!r}" if names else f"column {column + 1}"
                    raise ValueError(f"{path}:{number}: {where} holds {cell!r}, expected a number")
                values.append(value)
    columns = width - (target is not None)
    X = np.frombuffer(values, dtype=np.float64).reshape(-1, columns) if values else np.empty((0, columns))
    kept = None if names is None else [name for column, name in enumerate(names) if column != target]
    if kept is not None and options.names is not None:
        X, kept = X[:, _places(path, kept, options.names)], list(options.names)
    return Data(X.astype(options.dtype, copy=False), None if target is None else _labels(path, labels), kept)


def _places(path: Path, there: list[str], wanted: tuple[str, ...]) -> list[int]:
    """Where the columns of a model are in a file."""
    missing = [name for name in wanted if there.count(name) != 1]
    if missing:
        shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise ValueError(f"{path}: the model has columns that are not there, or not once: {shown}")
    return [there.index(name) for name in wanted]


def _looks_like_header(head: list[tuple[int, list[str]]]) -> bool:
    """The first line is names if it has no number at all, or text where the second line has a number."""
    first = [_number(cell) for cell in head[0][1]]
    if all(value is None for value in first):
        return True
    second = [_number(cell) for cell in head[-1][1]]
    return any(a is None and b is not None for a, b in zip(first, second, strict=False))


def _target_column(path: Path, names: list[str] | None, width: int, options: DataOptions) -> int | None:
    target = options.target
    if target is None and names is not None and options.names is not None:
        others = [column for column, name in enumerate(names) if name not in options.names]
        # Of several columns that the model does not know, the last is the label if it is one of them.
        return others[-1] if len(others) == 1 or width - 1 in others else None
    if target is None:
        return None if width == options.n_features else width - 1
    if target.lower() == "none":
        return None
    if names is not None and target in names:
        return names.index(target)
    try:
        index = int(target)
    except ValueError:
        known = (
            f"its columns are {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
            if names
            else "it has no header"
        )
        raise ValueError(f"{path}: there is no column {target!r}: {known}") from None
    if not -width <= index < width:
        raise ValueError(f"{path}: there is no column {index}: it has the columns 0 to {width - 1}")
    return index % width


def _labels(path: Path, cells: list[str]) -> NDArray[Any]:
    if "" in cells:
        raise ValueError(f"{path}: row {cells.index('') + 1} has no label")
    try:
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    except (ValueError, OverflowError):
        numbers = [_number(cell) for cell in cells]
        if any(number is None for number in numbers):
            return np.array(cells)
        return whole(np.array(numbers, dtype=np.float64))


def _read_npz(path: Path, options: DataOptions) -> Data:
    size = path.stat().st_size
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                names = _npz_names(path, set(archive.files), options.test)
                arrays = {name: _npz_array(path, archive, name, size) for name in names}
        except Exception as error:  # numpy and zipfile raise many kinds for a broken archive
            # A place before the file's start, which a broken archive may name, is an invalid argument.
            system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
            if system or isinstance(error, (MemoryError, FormatError)):
                raise
            raise FormatError(f"{path}: not a readable npz archive of plain arrays: {error}") from None
    by_role = {name.removeprefix("test_").removesuffix("_test"): value for name, value in arrays.items()}
    if "X" in by_role:
        X = by_role["X"]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(f"{path}: X is {X.dtype} of shape {X.shape}, expected a matrix of numbers")
        if X.dtype not in (np.uint8, np.float32, np.float64) or options.single_precision:
            X = X.astype(options.dtype)
    else:
        try:
            if int(by_role["shape"][1]) > MOST_COLUMNS:
                raise ValueError(f"more than {MOST_COLUMNS} columns")
            parts = (by_role["data"].astype(options.dtype), by_role["indices"], by_role["indptr"])
            X = sparse.csr_array(parts, shape=tuple(int(size) for size in by_role["shape"]))
            X.check_format(full_check=True)
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise ValueError(f"{path}: data, indices, indptr and shape are no CSR matrix: {error}") from None
        X.sort_indices()
    y = by_role.get("y")
    if y is not None and (y.ndim != 1 or len(y) != X.shape[0]):
        raise ValueError(f"{path}: y has shape {y.shape}, there are {X.shape[0]} rows")
    if y is not None and y.dtype.kind in "iu":
        y = y.astype(np.int64)
    return Data(X, None if y is None else whole(y))


def _npz_array(path: Path, archive: Any, name: str, size: int) -> NDArray[Any]:
    """An array of an archive, after a look at its size: NumPy makes it before it reads its bytes."""
    entry = archive.zip.getinfo(f"{name}.npy")
    with archive.zip.open(entry) as member:
        major, _ = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(member)
    held = math.prod(shape) * dtype.itemsize
    if held > entry.file_size:
        raise FormatError(f"{path}: {name} of shape {shape} is cut off: it has {entry.file_size} bytes")
    if held > max(16 * size, LARGEST_UNPACKED):
        raise FormatError(
            f"{path}: {name} takes {held} bytes, more than 16 times the file and {LARGEST_UNPACKED}: "
            "store it without compression"
        )
    array: NDArray[Any] = archive[name]
    return array


def _npz_names(path: Path, found: set[str], test: bool) -> list[str]:
    """Names of the arrays to take: dense X or the four CSR parts, and y if it is there."""
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


def with_columns(data: Data, n_features: int) -> Data:
    """The same rows with empty columns behind the last, up to `n_features`."""
    missing = n_features - data.X.shape[1]
    if missing <= 0:
        return data
    if sparse.issparse(data.X):
        X = data.X.copy()
        X.resize((X.shape[0], n_features))
        return replace(data, X=X)
    return replace(data, X=np.hstack([data.X, np.zeros((data.X.shape[0], missing), dtype=data.X.dtype)]))


def check_writable(path: Path) -> None:
    """Refuse an output that cannot be written before hours of work, not after."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist", str(path))
