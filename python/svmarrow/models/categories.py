"""Steps for missing values and categories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from svmarrow._support.parameters import missing_values
from svmarrow._support.schemas import savable
from svmarrow.models.preparation import Chain, Parts, Step, check_column_numbers, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Encode", "Impute", "Table", "text_of", "with_text"]


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
