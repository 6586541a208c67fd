"""Rejects inputs that NumPy would silently convert to an array with other numbers.

NumPy gathers distributed or on-disk collections as a whole, drops masks, converts dates to counts of days or
nanoseconds, and drops imaginary parts. The errors say what to do instead. Packages are recognized by the name
of a type's module and never imported.
"""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TIME_REMEDY", "check_array_types", "column_text", "is_missing", "missing_values"]

#: Packages with collections that are not in memory, and the method that loads one.
_LOAD_METHODS = {"dask": "compute", "dask_expr": "compute", "pyspark": "toPandas", "polars": "collect"}
#: Alternatives that take such collections.
_ALTERNATIVES = dict.fromkeys(
    ("dask", "dask_expr"), "; svmarrow.dask trains on Dask collections and predicts them"
)

#: How dates become numbers.
TIME_REMEDY = (
    "turn them into numbers, for example days since a date, ((date - start).dt.days of pandas), the month "
    "(date.dt.month) and the day of the week (date.dt.dayofweek)"
)


def check_array_types(**values: Any) -> None:
    """Raises an error for values that are not arrays of real numbers; the keys are the argument names.

    Raises
    ------
    TypeError
        For collections that are not in memory, dates and times.
    ValueError
        For arrays with masked entries and complex numbers.
    """
    for name, value in values.items():
        if type(value) is np.ndarray and value.dtype.kind in "fiubOUS":
            continue
        package, kind = type(value).__module__.partition(".")[0], type(value).__name__
        load = _LOAD_METHODS.get(package)
        if load is not None and hasattr(value, load):
            raise TypeError(
                f"{name} is {package}'s {kind}, which is not in memory as a whole: pass {name}.{load}(), or "
                f"a part of the rows that fits into memory{_ALTERNATIVES.get(package, '')}"
            )
        if np.ma.isMaskedArray(value) and np.ma.is_masked(value):
            raise ValueError(
                f"{name} has masked entries: fill them ({name}.filled(...)) or leave out their rows, and "
                "pass a plain array"
            )
        own = getattr(value, "dtype", None)
        dtypes = list(getattr(value, "dtypes", ())) if own is None else [own]
        for column, dtype in enumerate(dtypes):
            if _is_time(dtype):
                place = f" in {column_text(value, column)}" if own is None else ""
                raise TypeError(f"{name} holds dates or times ({dtype}){place}: {TIME_REMEDY}")
            if getattr(dtype, "kind", "") == "c":
                raise ValueError(f"{name} is {dtype}. Complex data not supported: pass real numbers")


def column_text(X: Any, column: int) -> str:
    """Returns the words that name a column in an error: its name if X is a data frame, else its number."""
    names = getattr(X, "columns", None)
    return f"column {column if names is None else list(names)[column]!r}"


def is_missing(value: Any) -> bool:
    """Returns whether a value is None, NaN, or NA or NaT of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    # Decimal is not a Real.
    return isinstance(value, (Real, Decimal, np.generic)) and bool(value != value)


def missing_values(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns the mask of the missing values of an array."""
    if array.dtype.kind == "f":
        mask: NDArray[np.bool_] = np.isnan(array)
        return mask
    return np.array([is_missing(value) for value in array.ravel()], dtype=bool).reshape(array.shape)


def _is_time(dtype: Any) -> bool:
    """Returns whether a type of NumPy, pandas or polars holds dates, times or time differences."""
    temporal = getattr(dtype, "is_temporal", None)
    return getattr(dtype, "kind", "") in ("m", "M") or (callable(temporal) and bool(temporal()))
