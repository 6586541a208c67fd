"""Steps for missing values, categories and dates."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from svmarrow._support.parameters import is_missing, missing_values
from svmarrow._support.schemas import savable
from svmarrow.models.preparation import Chain, Parts, Step, check_column_numbers, check_length, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Dates", "Encode", "Impute", "Table", "days_of", "text_of", "with_text"]


@savable("imputation/1")
@dataclass(frozen=True, eq=False, repr=False)
class Impute(Step):
    """Fill gaps, each column with its own value.

    Parameters
    ----------
    values : tuple of float or str
        The value that fills the gaps of each column.
    missing : float or str, default=None
        The marker of a gap; None is NaN, None or pandas' NA.
    flags : ndarray of int, default=None
        Columns for which one more column is 1 where a gap was.
    """

    values: tuple[float | str, ...]
    missing: float | str | None = None
    flags: NDArray[np.int64] | None = None
    gaps = True

    def __post_init__(self) -> None:
        if not all(isinstance(v, (Real, str)) for v in self.values):
            raise ValueError("values to fill gaps with must be numbers or strings")
        if any(isinstance(v, float) and not np.isfinite(v) for v in self.values):
            raise ValueError("values to fill gaps with must be finite")
        check_column_numbers("flags", self.flags, len(self.values))

    @property
    def mixed(self) -> bool:  # type: ignore[override]
        """True if some columns hold strings."""
        return isinstance(self.missing, str) or any(isinstance(value, str) for value in self.values)

    @property
    def n_in(self) -> int:  # type: ignore[override]
        """Columns before."""
        return len(self.values)

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """Columns after."""
        return self.n_in + (0 if self.flags is None else int(self.flags.size))

    def _names_out(self, names: Sequence[Any]) -> Sequence[Any]:
        return [*names, *([] if self.flags is None else (names[j] for j in self.flags))]

    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        X = X.toarray() if sparse.issparse(X) else X
        if not self.mixed:
            X = numbers(X, names)
        gap = missing_values(X) if self.missing is None else self.missing == X
        filled = np.where(gap, np.array(self.values, dtype=X.dtype), X)
        return filled if self.flags is None else np.hstack([filled, gap[:, self.flags].astype(X.dtype)])


@savable("category-table/1")
@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Rows of numbers for the categories of one column.

    Parameters
    ----------
    categories : ndarray of shape (k,)
        Strings, or numbers.
    numbers : ndarray of float64 of shape (k, n_out) or (k + 1, n_out)
        A row for each category, and one more for gaps where gaps are a category. NaN is a missing value.
    unknown : ndarray of float64 of shape (n_out,), default=None
        Numbers for all other values; None refuses them.
    as_text : bool, default=False
        Whether the values of the column are converted to text before they are looked up.
    as_number : bool, default=False
        Whether they are converted to numbers first; other text is refused.
    """

    categories: NDArray[Any]
    numbers: NDArray[np.float64]
    unknown: NDArray[np.float64] | None = None
    as_text: bool = False
    as_number: bool = False
    _transient = ("_places",)

    def __post_init__(self) -> None:
        if self.categories.ndim != 1 or self.categories.dtype.kind not in "biufUO":
            raise ValueError("categories must be strings or numbers in one row")
        rows = self.categories.size
        if self.numbers.ndim != 2 or self.numbers.shape[0] not in (rows, rows + 1):
            raise ValueError(f"numbers has shape {self.numbers.shape} for {rows} categories")
        # NaN is a missing value for the next step.
        if np.isinf(self.numbers).any():
            raise ValueError("numbers must not be infinite")
        if self.unknown is not None and self.unknown.shape != self.numbers.shape[1:]:
            raise ValueError(f"unknown has shape {self.unknown.shape}: it must be {self.numbers.shape[1:]}")
        if self.unknown is not None and np.isinf(self.unknown).any():
            raise ValueError("unknown must not be infinite")
        places: dict[Any, int] = {value: place for place, value in enumerate(self.categories.tolist())}
        object.__setattr__(self, "_places", places)

    def places(self, column: NDArray[Any], name: Any) -> NDArray[np.int64]:
        """The row of `numbers` for each entry; the one after the last for unknown values.

        Errors name the column by `name`.
        """
        known: dict[Any, int] = self._places  # type: ignore[attr-defined]
        rows = self.numbers.shape[0]
        gap = min(self.categories.size, rows)
        if self.as_number:
            column = numbers(column[:, np.newaxis], [name])[:, 0]
        values = map(text_of, column.tolist()) if self.as_text else column.tolist()
        found = np.array([known.get(value, rows) for value in values], dtype=np.int64)
        found[missing_values(column)] = gap
        if self.unknown is None and (found == rows).any():
            value = column[int(np.argmax(found == rows))]
            raise ValueError(f"X holds {value!r} in column {name!r}, which is not one of its categories")
        return found

    @property
    def rows(self) -> NDArray[np.float64]:
        """`numbers`, with a row for unknown values."""
        last = np.zeros(self.numbers.shape[1]) if self.unknown is None else self.unknown
        return np.vstack([self.numbers, last])


@savable("encoding/1")
@dataclass(frozen=True, eq=False, repr=False)
class Encode(Step):
    """Numbers for categories, each column by its own table, side by side.

    Parameters
    ----------
    tables : tuple of Table
        One a column.
    compact : bool, default=False
        Give a CSR matrix.
    """

    tables: tuple[Table, ...]
    compact: bool = False
    gaps = True

    def __post_init__(self) -> None:
        if not self.tables or not all(isinstance(table, Table) for table in self.tables):
            raise ValueError("tables must be at least one Table")

    @property
    def mixed(self) -> bool:  # type: ignore[override]
        """True if some columns hold strings."""
        return any(table.categories.dtype.kind in "UO" for table in self.tables)

    @property
    def n_in(self) -> int:  # type: ignore[override]
        """Columns before."""
        return len(self.tables)

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """Columns after."""
        return sum(int(table.numbers.shape[1]) for table in self.tables)

    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        X = X.toarray() if sparse.issparse(X) else X
        places = [table.places(X[:, number], names[number]) for number, table in enumerate(self.tables)]
        if self.compact:
            blocks = [
                sparse.csr_array(table.rows)[place] for table, place in zip(self.tables, places, strict=True)
            ]
            return sparse.csr_array(sparse.hstack(blocks, format="csr"))
        return np.hstack([table.rows[place] for table, place in zip(self.tables, places, strict=True)])


#: Where the count of days begins.
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY = dt.timedelta(days=1)


@savable("dates/1")
@dataclass(frozen=True, eq=False, repr=False)
class Dates(Step):
    """Numbers for dates: days since 1970-01-01, gaps, and positions in cycles such as the week or the year.

    Columns after: the days (n_in), for each of `flags` 1 where a gap was, and for each cycle the sine and
    the cosine of 2 pi days / period.

    Parameters
    ----------
    values : ndarray of float64 of shape (n_in,)
        The days that fill the gaps of each column.
    flags : ndarray of int64
        Columns that have one more column for their gaps.
    columns : ndarray of int64 of shape (n_cycles,)
        The column of each cycle.
    periods : ndarray of float64 of shape (n_cycles,)
        Its length in days, such as 7.
    """

    values: NDArray[np.float64]
    flags: NDArray[np.int64]
    columns: NDArray[np.int64]
    periods: NDArray[np.float64]
    gaps = True
    dates = True

    def __post_init__(self) -> None:
        check_length("values", self.values, self.values.size)
        check_column_numbers("flags", self.flags, self.values.size)
        check_column_numbers("columns", self.columns, self.values.size)
        check_length("periods", self.periods, self.columns.size)
        if not (self.periods > 0.0).all():
            raise ValueError("periods must be above 0")

    @property
    def n_in(self) -> int:  # type: ignore[override]
        """Columns before."""
        return int(self.values.size)

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """Columns after."""
        return self.n_in + int(self.flags.size) + 2 * int(self.columns.size)

    @property
    def sources(self) -> NDArray[np.int64]:
        """The column before of each column after."""
        cycles = np.repeat(self.columns, 2)
        return np.concatenate([np.arange(self.n_in), self.flags, cycles]).astype(np.int64)

    def _names_out(self, names: Sequence[Any]) -> Sequence[Any]:
        return [names[j] for j in self.sources]

    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        X = X.toarray() if sparse.issparse(X) else X
        if X.dtype.kind in "OUS":
            X = np.stack([days_of(X[:, j], names[j]) for j in range(self.n_in)], axis=1)
        gap = np.isnan(X)
        days = np.where(gap, self.values.astype(X.dtype), X)
        turns = days[:, self.columns] / self.periods.astype(X.dtype)
        angles = 2.0 * np.pi * (turns - np.floor(turns))
        cycles = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(X), -1)
        return np.hstack([days, gap[:, self.flags], cycles]).astype(X.dtype, copy=False)


def days_of(column: NDArray[Any], name: Any) -> NDArray[np.float64]:
    """Returns the days since 1970-01-01 of dates, ISO texts of dates, or days; NaN for gaps.

    A date with a time zone counts by its time in UTC. Errors name the column by `name`.
    """
    days = np.empty(len(column))
    for place, value in enumerate(column.tolist()):
        try:
            days[place] = _days(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"X holds {value!r} in column {name!r}, which the model takes as dates: pass a date, its "
                "text as in '2026-01-31' or '2026-01-31 18:00', or the number of days since 1970-01-01"
            ) from None
    if np.isinf(days).any():
        raise ValueError(f"X contains infinity in column {name!r}")
    return days


def _days(value: Any) -> float:
    if is_missing(value):
        return np.nan
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if isinstance(value, dt.datetime):
        instant = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        days: float = (instant - _EPOCH) / _DAY
        return days
    if isinstance(value, dt.date):
        return float((value - _EPOCH.date()).days)
    if isinstance(value, (bool, np.bool_)):
        raise TypeError("a truth value is no date")
    return float(value)


def text_of(value: Any) -> str:
    """Returns the text of a value; whole numbers have no point, for a missing value makes integers floats."""
    if isinstance(value, (float, np.floating)) and value.is_integer():
        value = int(value)
    return str(value)


def with_text(step: Step | None) -> Step | None:
    """Returns the step with all columns of strings converted to text first, and others to numbers."""
    if isinstance(step, Encode):
        is_text = [table.categories.dtype.kind in "UO" for table in step.tables]
        tables = zip(step.tables, is_text, strict=True)
        return replace(
            step, tables=tuple(replace(table, as_text=text, as_number=not text) for table, text in tables)
        )
    if isinstance(step, Chain):
        return replace(step, steps=tuple(with_text(part) or part for part in step.steps))
    if isinstance(step, Parts):
        return replace(step, steps=tuple(map(with_text, step.steps)))
    return step
