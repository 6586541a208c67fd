"""Rows from tables whose columns may have names: CSV text and parquet files."""

from __future__ import annotations

import csv
import io
from array import array
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.cli.rows import Data, whole
from svmarrow.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from svmarrow.cli.rows import DataOptions

__all__ = ["csv_pieces", "labels_of", "parquet_pieces"]


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
