"""Samples of a file: `Data`, the options with which they are read, and the formats with columns.

Tables whose columns may have names are CSV text and parquet files. NumPy archives hold X, or the four parts
of CSR rows, and y.
"""

from __future__ import annotations

import csv
import errno
import io
import math
from array import array
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from svmarrow.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = [
    "Data",
    "DataOptions",
    "csv_pieces",
    "joined",
    "labels_of",
    "npz_archive",
    "npz_array",
    "npz_header",
    "npz_names",
    "npz_rows",
    "parquet_pieces",
    "read_npz",
    "whole",
    "with_columns",
]


@dataclass(frozen=True)
class DataOptions:
    """Options for reading a data file.

    Attributes
    ----------
    format : {"auto", "svmlight", "csv", "npz", "parquet"}
        "auto" goes by the file's name, and takes what it does not know for svmlight.
    target : str or None
        CSV and parquet: name or index of the label column; negative indices count from the end, "none" means
        there is none. Without it, the last column, unless the file has exactly `n_features` columns.
    header : bool or None
        CSV: whether the first line holds names; None looks.
    test : bool
        npz: take the arrays whose names say test.
    n_features : int or None
        Columns that are expected; None takes what the file has.
    single_precision : bool
        Keep the numbers in float32.
    names : tuple of str or None
        CSV with a header, parquet: the columns to take, in this order; the label is the one that is none of
        them.
    text_labels : bool
        Labels of text files stay text, whatever they look like.
    zero_based : bool or None
        svmlight: whether columns count from 0; None looks for an index 0.
    """

    format: Literal["auto", "svmlight", "csv", "npz", "parquet"] = "auto"
    target: str | None = None
    header: bool | None = None
    test: bool = False
    n_features: int | None = None
    single_precision: bool = False
    names: tuple[str, ...] | None = None
    text_labels: bool = False
    zero_based: bool | None = None

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """Type of the numbers."""
        return np.float32 if self.single_precision else np.float64


@dataclass(frozen=True, eq=False)
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


def joined(pieces: list[Data]) -> Data:
    """Concatenates batches of dense rows."""
    if not pieces:
        return Data(np.empty((0, 0)), None)
    first = pieces[0]
    if len(pieces) == 1:
        return first
    y = None if first.y is None else np.concatenate([piece.labels for piece in pieces])
    return Data(np.concatenate([piece.X for piece in pieces]), y, first.names)


def whole(values: NDArray[Any]) -> NDArray[Any]:
    """Converts floating-point numbers to integers if all are whole."""
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        return values
    exact = np.abs(values).max(initial=0) < 2**53 and (values == np.trunc(values)).all()
    return values.astype(np.int64) if exact else values


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


# --- NumPy archives ---

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


# --- CSV text and parquet files ---


def csv_pieces(path: Path, file: Any, options: DataOptions, most: int | None = None) -> Iterator[Data]:
    """Yields rows of CSV bytes, at most `most` at a time; the first batch may be empty."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        start = text.read(1 << 16)
        text.seek(0)
        reader = csv.reader(text, delimiter=_delimiter(path, start))
        yield from _parse_csv(path, _csv_lines(path, reader), options, most)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    finally:
        text.detach()  # the file is the caller's to close


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


def _parse_csv(
    path: Path, lines: Iterator[tuple[int, list[str]]], options: DataOptions, most: int | None
) -> Iterator[Data]:
    head = [line for _, line in zip(range(2), lines, strict=False)]
    if not head:
        raise ValueError(f"{path}: there are no rows")
    width = len(head[0][1])
    header = _looks_like_header(head) if options.header is None else options.header
    names = [cell.strip() for cell in head[0][1]] if header else None
    target = _target_column(path, names, width, options)
    known: dict[str, str] = {}  # of equal labels one is kept
    columns = width - (target is not None)
    feature_names = None if names is None else [name for column, name in enumerate(names) if column != target]
    places = (
        None
        if feature_names is None or options.names is None
        else _places(path, feature_names, options.names)
    )
    rows, first = chain(head[1 if header else 0 :], lines), 0
    while True:
        values, labels, count = array("d"), [], 0
        for number, cells in islice(rows, most):
            if len(cells) != width:
                raise ValueError(f"{path}:{number}: {len(cells)} cells, the first line has {width}")
            count += 1
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
        if count == 0 and first > 0:
            return
        X = np.frombuffer(values, dtype=np.float64) if values else np.empty(0)
        X = X.reshape(count, columns)
        X = (X if places is None else X[:, places]).astype(options.dtype, copy=False)
        y = None if target is None else labels_of(path, labels, first, options.text_labels)
        yield Data(X, y, feature_names if places is None else list(options.names or ()))
        first += count
        if most is None or count < most:
            return


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def parquet_pieces(path: Path, options: DataOptions, most: int) -> Iterator[Data]:
    """Yields rows of a parquet file in batches of about `most` rows."""
    try:
        from pyarrow import ArrowException  # noqa: PLC0415 - an extra
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415
    except ImportError:
        raise ImportError(f"{path}: parquet files need pyarrow: pip install 'svmarrow[cli]'") from None
    try:
        with ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            target = _target_column(path, names, len(names), options)
            feature_names = [name for column, name in enumerate(names) if column != target]
            selected_names = feature_names if options.names is None else list(options.names)
            places = _places(path, feature_names, tuple(selected_names))
            for batch in file.iter_batches(most):
                columns = [column for place, column in enumerate(batch.columns) if place != target]
                X = np.empty((batch.num_rows, len(places)), dtype=options.dtype)
                for to, place in enumerate(places):
                    values = columns[place].to_numpy(zero_copy_only=False)
                    if values.dtype.kind not in "biuf" or columns[place].null_count:
                        raise ValueError(f"{path}: column {selected_names[to]!r} holds what is not a number")
                    X[:, to] = values
                y = None if target is None else _column_labels(path, batch.column(target))
                yield Data(X, y, selected_names)
    except ArrowException as error:
        raise FormatError(f"{path}: not a readable parquet file: {error}") from None


def _column_labels(path: Path, column: Any) -> NDArray[Any]:
    if column.null_count:
        raise ValueError(f"{path}: some rows have no label")
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "biu":
        return values.astype(np.int64)
    return whole(values) if values.dtype.kind == "f" else values.astype(str)


def _places(path: Path, columns: list[str], names: tuple[str, ...]) -> list[int]:
    """Returns the indices of a model's columns in a file."""
    missing = [name for name in names if columns.count(name) != 1]
    if missing:
        shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise ValueError(f"{path}: columns of the model are missing or there more than once: {shown}")
    return [columns.index(name) for name in names]


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


def labels_of(path: Path, cells: list[str], first: int = 0, as_text: bool = False) -> NDArray[Any]:
    """Labels of cells: whole numbers if all are, numbers if all are and stay different, else text."""
    if "" in cells:
        raise ValueError(f"{path}: row {first + cells.index('') + 1} has no label")
    if as_text:
        return np.array(cells)
    try:
        integers = [int(cell) for cell in cells]
    except ValueError:
        integers = []
    if integers:
        least, largest = min(integers), max(integers)
        if least >= -(2**63) and largest < 2**63:
            return np.array(integers, dtype=np.int64)
        if least >= 0 and largest < 2**64:
            return np.array(integers, dtype=np.uint64)
    numbers = [_number(cell) for cell in cells]
    if any(number is None for number in numbers) or len(set(integers)) > len(set(numbers)):
        return np.array(cells)  # text keeps apart what double precision does not
    return whole(np.array(numbers, dtype=np.float64))
