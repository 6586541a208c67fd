"""Types: of the arrays and columns that users give, and of the attributes that a model file sets."""

from __future__ import annotations

import collections.abc
import inspect
import math
import sys
import typing
from decimal import Decimal
from numbers import Real
from types import NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


__all__ = [
    "TIME_REMEDY",
    "check_array_types",
    "check_state",
    "check_types",
    "column_text",
    "is_date",
    "is_missing",
    "missing_values",
    "with_days",
]


# --- rejects inputs that NumPy would silently convert to an array with other numbers ---
# NumPy gathers distributed or on-disk collections as a whole, drops masks, converts dates to counts of days
# or nanoseconds, and drops imaginary parts. The errors say what to do instead. Packages are recognized by
# the name of a type's module and never imported.


#: Packages with collections that are not in memory, and the method that loads one.
_LOAD_METHODS = {"dask": "compute", "dask_expr": "compute", "pyspark": "toPandas", "polars": "collect"}
#: Alternatives that take such collections.
_ALTERNATIVES = dict.fromkeys(
    ("dask", "dask_expr"), "; svmarrow.dask trains on Dask collections and predicts them"
)

#: How dates become numbers.
TIME_REMEDY = (
    "turn them into numbers, for example days since a date, ((date - start).dt.days of pandas), the month "
    "(date.dt.month) and the day of the week (date.dt.day_of_week)"
)


def check_array_types(*, takes_dates: bool = False, **values: Any) -> None:
    """Raises an error for values that are not arrays of real numbers; the keys are the argument names.

    Dates are allowed if `takes_dates`.

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
            if _is_time(dtype) and not (takes_dates and is_date(dtype)):
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


def is_date(dtype: Any) -> bool:
    """Returns whether a type of NumPy, pandas or polars holds dates, with or without a time of the day."""
    return getattr(dtype, "kind", "") == "M" or type(dtype).__name__ in ("Date", "Datetime")


def with_days(X: Any) -> Any:
    """Returns a frame of polars with days since 1970-01-01 instead of dates, other samples as they are.

    NumPy takes the dates of polars as numbers in their own units.
    """
    if type(X).__module__.partition(".")[0] != "polars" or not hasattr(X, "with_columns"):
        return X
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if is_date(dtype):
            # Polars multiplies by a reciprocal, which rounds once more than the division of Python's dates.
            days = X[name].dt.epoch("us").to_numpy() / 86_400e6
            X = X.with_columns(type(X[name])(name, days))
    return X


# --- checks of the attributes that a model file sets against the types that classes declare ---


#: Names that modules import only for type checkers.
TYPE_NAMES: dict[str, Any] = {
    "Any": Any,
    "Callable": collections.abc.Callable,
    "Decoding": Literal["binary", "ovr", "ovo", "code"],
    "Literal": Literal,
    "Mapping": collections.abc.Mapping,
    "NDArray": NDArray,
    "Sequence": collections.abc.Sequence,
    "np": np,
}


def check_state(state: dict[str, Any], empty: dict[str, Any]) -> None:
    """Rejects the state of a stream whose keys and types differ from those of an empty stream."""
    if state.keys() != empty.keys():
        raise ValueError(f"the state has the parts {', '.join(state)}: expected {', '.join(empty)}")
    for key, like in empty.items():
        value = state[key]
        counts = value if isinstance(value, tuple) else (value,)
        if key == "rows":
            continue
        if isinstance(like, np.ndarray):
            fits = isinstance(value, np.ndarray) and (value.dtype, value.ndim) == (like.dtype, like.ndim)
            fits = fits and bool((np.isfinite(value) if like.dtype.kind == "f" else value >= 0).all())
        elif isinstance(like, float):
            fits = type(value) is float and math.isfinite(value)
        else:
            fits = type(value) is type(like) and len(counts) == (len(like) if isinstance(like, tuple) else 1)
            fits = fits and all(type(count) is int and 0 <= count < 2**64 for count in counts)
        if not fits:
            raise ValueError(f"{key} of the state is {value!r}, expected a value like {like!r}")


def check_types(target: Any, names: Iterable[str], kinds: Mapping[str, type]) -> None:
    """Raise a ValueError if an attribute is not of the type that its class declares.

    Parameters
    ----------
    target : object
        The object.
    names : iterable of str
        Attributes to check; those without a declaration may have any type.
    kinds : mapping of str to type
        Classes that declarations may refer to, with their bases.

    Raises
    ------
    TypeError
        If a declaration is a type that cannot be checked.
    """
    for name in names:
        base = next((base for base in type(target).__mro__ if name in inspect.get_annotations(base)), None)
        if base is None:
            continue
        value, text = getattr(target, name), inspect.get_annotations(base)[name]
        if str(text).startswith("ClassVar"):
            raise ValueError(f"{name} belongs to the class {base.__name__}: a file must not set it")
        if not _is_of(value, _hint(base, name, text, kinds)):
            raise ValueError(f"{name} is {value!r}, expected {text}")


def _hint(base: type, name: str, text: Any, kinds: Mapping[str, type]) -> Any:
    known = {each.__name__: each for kind in kinds.values() for each in kind.__mro__} | TYPE_NAMES
    declaration: Any = SimpleNamespace(__annotations__={name: text})
    try:
        return get_type_hints(declaration, vars(sys.modules[base.__module__]), known)[name]
    except NameError as error:
        raise TypeError(f"{base.__name__}.{name} is declared as {text}, which cannot be checked") from error


def _is_of(value: Any, hint: Any) -> bool:
    """Returns whether a value is of a type."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (UnionType, typing.Union):
        return any(_is_of(value, each) for each in inner)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in inner)
    if origin is np.ndarray or origin is NDArray:
        # From NumPy 2.5 on NDArray[T] keeps its name; before, it is ndarray[Any, dtype[T]].
        (dtype,) = inner if origin is NDArray else get_args(inner[1])
        return isinstance(value, np.ndarray) and (dtype is Any or np.issubdtype(value.dtype, dtype))
    if origin is collections.abc.Callable:
        return callable(value)
    if isinstance(origin or hint, type):
        return _is_instance(value, origin or hint)
    raise TypeError(f"{hint} is a type that cannot be checked")


def _is_instance(value: Any, kind: type) -> bool:
    if kind is bool or kind is NoneType:
        return isinstance(value, kind)
    if kind is float:
        return isinstance(value, (float, int)) and not isinstance(value, bool)
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))
