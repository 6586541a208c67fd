"""The attributes of an estimator: rules of its parameters, and fits that publish all they find together.

A rule is a text and a test. An estimator has a table of the rules of its parameters; `check` raises
``ValueError`` with the name, the value and the rule. ``__init__`` stores parameters, ``fit`` checks them. The
types of arrays that methods take have rules of the same form.

A fit works on a draft: another object of the estimator's class with its parameters and without the attributes
of an earlier fit. After the last computation, one assignment to ``__dict__`` gives the estimator the
attributes of the draft. So a fit that fails changes nothing, a refit keeps nothing of the earlier fit, and
another thread reads either the earlier model or the new one.

A method that reads several attributes first takes a snapshot: an object that shares the current ``__dict__``.
A later fit replaces the estimator's ``__dict__`` and leaves the shared one unchanged.

Fitted attributes are those that the classes of svmarrow annotate and whose names begin or end with an
underscore. A refit keeps all others (parameters, attributes of user-defined subclasses).
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

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
    "Decoding",
    "InterruptedFit",
    "Rule",
    "atomic_fit",
    "atomic_update",
    "boolean",
    "check",
    "check_array_types",
    "check_shape",
    "column_text",
    "consistent",
    "either",
    "fitted_attribute_names",
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
    "snapshot",
    "warn_caller",
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


#: How the outputs of the machines become classes.
Decoding = Literal["binary", "ovo", "ovr", "code"]


def check_shape(decoding: Decoding, decision_function_shape: str, break_ties: bool) -> None:
    """Raises ``ValueError`` for combinations that are not supported."""
    if decision_function_shape == "ovo" and decoding == "ovr":
        rule = "'ovr' when the machines were trained one against the rest"
        raise refuse("decision_function_shape", decision_function_shape, rule)
    if break_ties and decision_function_shape == "ovo":
        raise refuse("break_ties", break_ties, "False when decision_function_shape='ovo'")


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


# --- fitted attributes: drafts, snapshots, publication ---

Model = TypeVar("Model")
Method = TypeVar("Method", bound="Callable[..., Any]")

#: Fitted attributes by class.
_FITTED_ATTRIBUTES: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


class InterruptedFit(BaseException):
    """Raised on Ctrl-C after an estimator has stored its model so far: ``InterruptedFit(estimator)``."""


def fitted_attribute_names(kind: type) -> frozenset[str]:
    """Returns the names of the fitted attributes of a class."""
    names = _FITTED_ATTRIBUTES.get(kind)
    if names is None:
        declared = {
            name
            for base in kind.__mro__
            if base.__module__.partition(".")[0] == "svmarrow"
            for name, text in inspect.get_annotations(base).items()
            if (name[0] == "_" or name[-1] == "_") and not str(text).startswith("ClassVar")
        }
        names = frozenset(declared | {"n_features_in_", "feature_names_in_"})
        _FITTED_ATTRIBUTES[kind] = names
    return names


def starts_from_last_fit(estimator: Any) -> bool:
    """Returns whether a fit starts from the previous one."""
    continues = getattr(estimator, "_starts_from_last_fit", None)
    return bool(getattr(estimator, "warm_start", False) if continues is None else continues())


def snapshot(estimator: Model) -> Model:
    """Returns an object that keeps the current model; parameters and caches are shared."""
    view = object.__new__(type(estimator))
    view.__dict__ = estimator.__dict__
    return view


def consistent(method: Method) -> Method:
    """Decorates a method that reads several fitted attributes, so that all are of one fit."""

    @functools.wraps(method)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(snapshot(self), *args, **kwargs)

    return cast("Method", read)


def atomic_fit(method: Method) -> Method:
    """Decorates `fit` so that it runs on a draft without fitted attributes and returns the estimator.

    An estimator with ``warm_start=True``, or whose ``_starts_from_last_fit()`` is true, starts from the
    previous fit.
    """

    @functools.wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        dropped = frozenset[str]() if starts_from_last_fit(self) else fitted_attribute_names(type(self))
        return _on_draft(self, dropped, method, args, kwargs)

    return cast("Method", fit)


def atomic_update(method: Method) -> Method:
    """Decorates `partial_fit` and other updates so that they run on a draft with the previous fit."""

    @functools.wraps(method)
    def update(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _on_draft(self, frozenset(), method, args, kwargs)

    return cast("Method", update)


def _on_draft(
    estimator: Any, dropped: frozenset[str], method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    before = dict(vars(estimator))
    draft = object.__new__(type(estimator))
    draft.__dict__ = {name: value for name, value in before.items() if name not in dropped}
    try:
        method(draft, *args, **kwargs)
    except InterruptedFit as interruption:
        if interruption.args[0] is draft:
            _publish(estimator, draft, before)
        raise KeyboardInterrupt from None
    _publish(estimator, draft, before)
    return estimator


def _publish(estimator: Any, draft: Any, before: dict[str, Any]) -> None:
    """Gives the estimator the fitted attributes of the draft, and other attributes that the draft changed.

    So parameters that another thread sets during the fit stay set.
    """
    names, new, absent = fitted_attribute_names(type(estimator)), vars(draft), object()
    now = dict(vars(estimator)).items()
    state = {name: value for name, value in now if name not in names and (name in new or name not in before)}
    state |= {
        name: value for name, value in new.items() if name in names or before.get(name, absent) is not value
    }
    # One assignment, so that neither another thread nor Ctrl-C can see a part of it.
    estimator.__dict__ = state


# --- warnings that point to the line of the user's code ---


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warns with the line of the first caller outside svmarrow and scikit-learn's wrapper of `fit`."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_between(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_between(module: str) -> bool:
    return module.partition(".")[0] == "svmarrow" or module == "sklearn.base"
