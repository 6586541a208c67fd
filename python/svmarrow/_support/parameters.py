"""Rules for parameters: one table an estimator, one message for all.

A rule is a sentence and a test. A table maps the name of a parameter to its rule; :func:`check` reads the
table and raises ``ValueError`` with the name, the value and the sentence. ``__init__`` stores, ``fit``
checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

__all__ = [
    "CLASS_WEIGHT",
    "ESTIMATOR",
    "KERNELS",
    "MAX_ITER",
    "MAX_TIME",
    "RANDOM_STATE",
    "ROW_KERNELS",
    "THREADS",
    "VERBOSE",
    "Rule",
    "boolean",
    "check",
    "either",
    "function",
    "integer",
    "kernel_rules",
    "mapping",
    "none",
    "one_of",
    "real",
    "refuse",
    "seed_of",
]

#: The largest integer that the extension module takes.
_LARGEST = 2**63 - 1
#: scikit-learn's names of the kernels.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "precomputed")
#: Those that are computed from rows.
ROW_KERNELS = KERNELS[:-1]


class Rule(NamedTuple):
    """What a parameter must be, as the end of the sentence "it must be ...", and the test of it."""

    text: str
    holds: Callable[[Any], bool]


#: Characters of a value that an error repeats.
_LONGEST = 300


def refuse(name: str, value: object, rule: str) -> ValueError:
    """The error for a parameter outside its rule."""
    return ValueError(f"{name}={_shown(value)} is not allowed: it must be {rule}")


def _shown(value: object) -> str:
    """A value as an error shows it, shortened; its type where it cannot be shown."""
    if isinstance(value, Integral) and abs(int(value)) >= 2**1000:
        return f"{'-' * (value < 0)}2**{int(abs(int(value))).bit_length() - 1} and more"
    try:
        text = repr(value)
    except Exception:  # the class is the caller's own  # noqa: BLE001 - the value's own methods may raise anything
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def check(values: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Raises ``ValueError`` for the first parameter outside its rule."""
    for name, rule in rules.items():
        value = values[name]
        if not rule.holds(value):
            is_large = isinstance(value, Integral) and abs(int(value)) > _LARGEST
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
    """A finite number within bounds."""
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
    """An integer within bounds."""
    bounds = [("at least", least), ("at most", most)]
    words = " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)

    def holds(value: object) -> bool:
        return (
            isinstance(value, Integral)
            and not _is_bool(value)
            and abs(int(value)) <= _LARGEST
            and (least is None or int(value) >= least)
            and (most is None or int(value) <= most)
        )

    return Rule(text or f"an integer {words}".rstrip(), holds)


def one_of(*names: str) -> Rule:
    """One of some strings."""
    return Rule(
        "one of " + ", ".join(repr(name) for name in names),
        lambda value: isinstance(value, str) and value in names,
    )


def either(*rules: Rule) -> Rule:
    """What any of the rules allows."""
    return Rule(
        " or ".join(rule.text for rule in rules), lambda value: any(rule.holds(value) for rule in rules)
    )


boolean = Rule("True or False", _is_bool)
function = Rule(
    "a function of two blocks of rows", lambda value: callable(value) and not isinstance(value, type)
)
none = Rule("None", lambda value: value is None)
mapping = Rule("a dict from class to weight", lambda value: isinstance(value, Mapping))


#: ``estimator`` of what wraps one.
ESTIMATOR = Rule(
    "an estimator, which has fit", lambda value: hasattr(value, "fit") and not isinstance(value, type)
)
#: ``n_jobs`` everywhere.
THREADS = either(none, Rule("an integer other than 0", lambda value: integer().holds(value) and value != 0))
#: ``max_iter`` of what can go on until it converges.
MAX_ITER = either(integer(least=1), integer(least=-1, most=-1, text="-1 for no limit"))
#: ``max_time``, seconds.
MAX_TIME = either(none, real(least=0.0))
#: ``class_weight`` everywhere.
CLASS_WEIGHT = either(none, one_of("balanced"), mapping)
#: ``verbose`` everywhere.
VERBOSE = either(boolean, integer(least=0))


def _is_random_state(value: object) -> bool:
    try:
        check_random_state(value)
    except Exception:  # its message shows the value, whose class is the caller's own  # noqa: BLE001 - the value's own methods may raise anything
        return False
    return True


#: ``random_state`` everywhere, as scikit-learn has it.
RANDOM_STATE = Rule("None, an integer from 0 to 2**32 - 1 or a numpy.random.RandomState", _is_random_state)


def seed_of(random_state: Any) -> int:
    """A seed for the extension module: None another one each time, the same integer always the same."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def kernel_rules(*kernels: str) -> dict[str, Rule]:
    """The rules that every estimator with a kernel shares; all kernels if none is named."""
    return {
        "kernel": one_of(*(kernels or KERNELS)),
        "degree": integer(least=0, most=2**31 - 1),
        "gamma": either(one_of("scale", "auto"), real(least=0.0)),
        "coef0": real(),
    }
