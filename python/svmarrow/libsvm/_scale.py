"""Scaling of data files: the work of ``svm-scale``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from svmarrow._support.files import write_text
from svmarrow.exceptions import FormatError
from svmarrow.io.svmlight import load_svmlight
from svmarrow.libsvm._problem import dense_columns

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

__all__ = ["Ranges", "read_ranges", "scaled_lines", "training_ranges", "write_ranges"]


class Ranges(NamedTuple):
    """Limits of scaling and the ranges of the features and the target."""

    lower: float
    upper: float
    #: Smallest and largest value of each feature by its index; a feature outside has no range.
    low: dict[int, float]
    high: dict[int, float]
    #: Limits and range of the target: (lower, upper, smallest, largest); None without scaling of it.
    target: tuple[float, float, float, float] | None


def training_ranges(
    X: Any, y: NDArray[np.float64], lower: float, upper: float, target: tuple[float, float] | None
) -> Ranges:
    """The ranges of the features of some rows; a feature that a row does not have is 0 there."""
    # Features that occur, however large their indices are; the others are 0 in all rows.
    order = np.argsort(X.indices, kind="stable")
    present, starts, counts = np.unique(X.indices[order], return_index=True, return_counts=True)
    smallest = np.minimum.reduceat(X.data[order], starts) if present.size else np.empty(0)
    largest = np.maximum.reduceat(X.data[order], starts) if present.size else np.empty(0)
    is_absent = counts < X.shape[0]
    smallest, largest = (
        np.where(is_absent, bound(values, 0.0), values)
        for bound, values in ((np.minimum, smallest), (np.maximum, largest))
    )
    low = dict(zip(present.tolist(), smallest.tolist(), strict=True))
    high = dict(zip(present.tolist(), largest.tolist(), strict=True))
    of_target = None if target is None else (*target, float(y.min()), float(y.max()))
    return Ranges(lower, upper, low, high, of_target)


def write_ranges(path: str | PathLike[str], ranges: Ranges) -> None:
    """Writes the file of ``svm-scale -s``."""
    lines = []
    if ranges.target is not None:
        lower, upper, low, high = ranges.target
        lines += ["y", f"{lower:.17g} {upper:.17g}", f"{low:.17g} {high:.17g}"]
    lines += ["x", f"{ranges.lower:.17g} {ranges.upper:.17g}"]
    lines += [
        f"{index} {low:.17g} {ranges.high[index]:.17g}"
        for index, low in ranges.low.items()
        if low != ranges.high[index]
    ]
    write_text(path, "\n".join(lines) + "\n")


def read_ranges(path: str | PathLike[str]) -> Ranges:
    """Reads the file of ``svm-scale -s``."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise FormatError(f"{os.fspath(path)}: the file is no text") from None
    position = 0

    def numbers(count: int) -> list[float]:
        nonlocal position
        position += 1
        words = lines[position - 1].split() if position <= len(lines) else []
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        if len(values) != count or not np.isfinite(values).all():
            raise FormatError(f"{os.fspath(path)}, line {position}: expected {count} finite numbers")
        return values

    target = None
    if lines[0].strip() == "y":
        position = 1
        target = (*numbers(2), *numbers(2))
    if position >= len(lines) or lines[position].strip() != "x":
        raise FormatError(f"{os.fspath(path)}, line {position + 1}: expected the line 'x'")
    position += 1
    lower, upper = numbers(2)
    low: dict[int, float] = {}
    high: dict[int, float] = {}
    while position < len(lines) and lines[position].strip():
        index, smallest, largest = numbers(3)
        if index != int(index) or index < 0:
            raise FormatError(f"{os.fspath(path)}, line {position}: the index must be an integer")
        low[int(index)], high[int(index)] = smallest, largest
    return Ranges(lower, upper, low, high, target)  # type: ignore[arg-type]


def _interpolate(values: Any, low: Any, high: Any, lower: float, upper: float) -> Any:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        inside = lower + (upper - lower) * (values - low) / (high - low)
    return np.where(values == low, lower, np.where(values == high, upper, inside))


def scaled_lines(X: Any, y: NDArray[np.float64], ranges: Ranges) -> tuple[list[str], int]:
    """The lines of the scaled file, and the number of values in them.

    Features without a range, or whose range is a point, are left out. A feature that a row does not have is
    scaled as 0.
    """
    indices = np.array([i for i in sorted(ranges.low) if ranges.low[i] != ranges.high[i]], dtype=np.int64)
    low = np.array([ranges.low[i] for i in indices.tolist()])
    high = np.array([ranges.high[i] for i in indices.tolist()])
    if ranges.target is not None:
        lower, upper, smallest, largest = ranges.target
        y = _interpolate(y, smallest, largest, lower, upper)
    lines, count = [], 0
    names = [f"{index}:" for index in indices.tolist()]
    block = max(1, 2_000_000 // max(1, indices.size))
    for start in range(0, X.shape[0], block):
        dense = dense_columns(X[start : start + block], indices)
        scaled = _interpolate(dense, low, high, ranges.lower, ranges.upper)
        for target, row in zip(y[start : start + block].tolist(), scaled, strict=True):
            used = np.flatnonzero(row)
            count += used.size
            words = [f"{names[j]}{v:g} " for j, v in zip(used.tolist(), row[used].tolist(), strict=True)]
            lines.append(f"{target:.17g} {''.join(words)}")
    return lines, count


def read_rows(path: str | PathLike[str]) -> tuple[Any, NDArray[np.float64]]:
    """Rows of a data file, columns by their indices."""
    return load_svmlight(path, zero_based=True)
