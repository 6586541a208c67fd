"""Rules of parameters and one error message for all of them, and the types of arrays that methods take.

A rule is a text and a test. An estimator has a table of the rules of its parameters; :func:`check` raises
``ValueError`` with the name, the value and the rule. ``__init__`` stores parameters, ``fit`` checks them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CLASS_WEIGHT",
    "ESTIMATOR",
    "KERNELS",
    "MATERN_KERNELS",
    "MAX_ITER",
    "MAX_TIME",
    "RANDOM_STATE",
    "ROW_KERNELS",
    "THREADS",
    "TIME_REMEDY",
    "UNIT_DIAGONAL_KERNELS",
    "VERBOSE",
    "Rule",
    "boolean",
    "check",
    "check_array_types",
    "column_text",
    "either",
    "function",
    "integer",
    "is_date",
    "is_missing",
    "kernel_rules",
    "mapping",
    "missing_values",
    "none",
    "one_of",
    "real",
    "refuse",
    "seed_of",
    "with_days",
]

#: Maximum integer of the extension module.
_MAX_INTEGER = 2**63 - 1
#: The Matérn kernels with nu = 1/2, 3/2 and 5/2.
MATERN_KERNELS = ("matern12", "matern32", "matern52")
#: The kernels of a distance, which have k(x, x) = 1.
UNIT_DIAGONAL_KERNELS = ("rbf", "laplacian", "chi2", *MATERN_KERNELS)
#: scikit-learn's names of the kernels, and those of the Matérn kernels.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", *MATERN_KERNELS, "precomputed")
#: The kernels that are computed from samples.
ROW_KERNELS = KERNELS[:-1]


class Rule(NamedTuple):
    """The rule of a parameter, as the end of the sentence "it must be ...", and its test."""

    text: str
    holds: Callable[[Any], bool]


#: Maximum number of characters of a value in an error message.
_MAX_SHOWN_CHARACTERS = 300


def refuse(name: str, value: object, rule: str) -> ValueError:
    """Returns the error for a parameter that violates its rule."""
    return ValueError(f"{name}={_shown(value)} is not allowed: it must be {rule}")


def _shown(value: object) -> str:
    """Returns the shortened text of a value for an error message; its type if it has no text."""
    if isinstance(value, Integral) and abs(int(value)) >= 2**1000:
        return f"{'-' * (value < 0)}2**{int(abs(int(value))).bit_length() - 1} and more"
    try:
        text = repr(value)
    except Exception:  # user-defined class  # noqa: BLE001 - the value's own methods may raise anything
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}..."


def check(values: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Raises ``ValueError`` for the first parameter that violates its rule."""
    for name, rule in rules.items():
        value = values[name]
        if not rule.holds(value):
            is_large = isinstance(value, Integral) and abs(int(value)) > _MAX_INTEGER
            raise refuse(name, value, rule.text + (" and below 2**63" if is_large else ""))


def _is_bool(value: object) -> bool:
    return isinstance(value, (bool, np.bool_))


def real(
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> Rule:
    """Returns the rule of a finite number within bounds."""
    bounds = [("above", above), ("at least", least), ("at most", most), ("below", below)]
    text = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)

    def holds(value: object) -> bool:
        if not isinstance(value, Real) or _is_bool(value):
            return False
        try:
            number = float(value)
        except (ArithmeticError, TypeError, ValueError):  # an integer or a fraction beyond double precision
            return False
        return (
            math.isfinite(number)
            and (above is None or number > above)
            and (least is None or number >= least)
            and (most is None or number <= most)
            and (below is None or number < below)
        )

    return Rule(f"a finite number {text}".rstrip(), holds)


def integer(*, least: int | None = None, most: int | None = None, text: str | None = None) -> Rule:
    """Returns the rule of an integer within bounds."""
    bounds = [("at least", least), ("at most", most)]
    words = " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)

    def holds(value: object) -> bool:
        return (
            isinstance(value, Integral)
            and not _is_bool(value)
            and abs(int(value)) <= _MAX_INTEGER
            and (least is None or int(value) >= least)
            and (most is None or int(value) <= most)
        )

    return Rule(text or f"an integer {words}".rstrip(), holds)


def one_of(*names: str) -> Rule:
    """Returns the rule of one of several strings."""
    return Rule(
        "one of " + ", ".join(repr(name) for name in names),
        lambda value: isinstance(value, str) and value in names,
    )


def either(*rules: Rule) -> Rule:
    """Returns the rule that holds if any of the rules does."""
    return Rule(
        " or ".join(rule.text for rule in rules), lambda value: any(rule.holds(value) for rule in rules)
    )


boolean = Rule("True or False", _is_bool)
function = Rule(
    "a function of two blocks of rows", lambda value: callable(value) and not isinstance(value, type)
)
none = Rule("None", lambda value: value is None)
mapping = Rule("a dict from class to weight", lambda value: isinstance(value, Mapping))


#: ``estimator`` of meta-estimators.
ESTIMATOR = Rule(
    "an estimator, which has fit", lambda value: hasattr(value, "fit") and not isinstance(value, type)
)
#: ``n_jobs``.
THREADS = either(none, Rule("an integer other than 0", lambda value: integer().holds(value) and value != 0))
#: ``max_iter`` of algorithms that may run until convergence.
MAX_ITER = either(integer(least=1), integer(least=-1, most=-1, text="-1 for no limit"))
#: ``max_time`` in seconds.
MAX_TIME = either(none, real(least=0.0))
#: ``class_weight``.
CLASS_WEIGHT = either(none, one_of("balanced"), mapping)
#: ``verbose``.
VERBOSE = either(boolean, integer(least=0))


def _is_random_state(value: object) -> bool:
    try:
        check_random_state(value)
    except Exception:  # its message formats the value, whose class may be user-defined  # noqa: BLE001 - the value's own methods may raise anything
        return False
    return True


#: ``random_state`` as in scikit-learn.
RANDOM_STATE = Rule("None, an integer from 0 to 2**32 - 1 or a numpy.random.RandomState", _is_random_state)


def seed_of(random_state: Any) -> int:
    """Returns a seed for the extension module; None gives a different one in each call."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def kernel_rules(*kernels: str) -> dict[str, Rule]:
    """Returns the rules that estimators with a kernel share; without arguments, all kernels are allowed."""
    return {
        "kernel": one_of(*(kernels or KERNELS)),
        "degree": integer(least=0, most=2**31 - 1),
        "gamma": either(one_of("scale", "auto"), real(least=0.0)),
        "coef0": real(),
    }


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


def is_date(dtype: Any) -> bool:
    """Returns whether a type of NumPy, pandas or polars holds dates, with or without a time of the day."""
    return getattr(dtype, "kind", "") == "M" or type(dtype).__name__ in ("Date", "Datetime")


def with_days(X: Any, are_dates: NDArray[np.bool_] | None = None) -> Any:
    """Returns a frame of polars with days since 1970-01-01 instead of dates, other samples as they are.

    NumPy takes the dates of polars as numbers in their own units. A TypeError for dates in a column that
    `are_dates` (n_features,) does not name.
    """
    if type(X).__module__.partition(".")[0] != "polars" or not hasattr(X, "with_columns"):
        return X
    for place, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        if is_date(dtype):
            if are_dates is not None and not are_dates[place : place + 1].any():
                raise TypeError(
                    f"X holds dates ({dtype}) in column {name!r}, which the model takes as numbers"
                )
            # Polars multiplies by a reciprocal, which rounds once more than the division of Python's dates.
            days = X[name].dt.epoch("us").to_numpy() / 86_400e6
            X = X.with_columns(type(X[name])(name, days))
    return X


def _is_time(dtype: Any) -> bool:
    """Returns whether a type of NumPy, pandas or polars holds dates, times or time differences."""
    temporal = getattr(dtype, "is_temporal", None)
    return getattr(dtype, "kind", "") in ("m", "M") or (callable(temporal) and bool(temporal()))
