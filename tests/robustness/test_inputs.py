"""Hostile values of parameters are taken for what they say or refused with the name of the parameter."""

from __future__ import annotations

import re
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from helpers.comparison import answers as answers_of
from helpers.data import STANDARD_IRIS as X
from helpers.estimators import QUICK, name_of, target
from svmarrow import SVC
from svmarrow.online import KernelPerceptron


class Hostile:
    """A number that cannot be converted and an object that cannot be shown."""

    def _fail(self, *_, **__):
        raise RuntimeError("no number")

    __float__ = __int__ = __index__ = __array__ = __repr__ = _fail


VALUES = {
    "an integer beyond double precision": 10**400,
    "a negative one": -(10**400),
    "an integer with more digits than Python prints": 10**5000,
    "a fraction beyond double precision": Fraction(10**400, 3),
    "an integer of 64 bits without a sign": 2**63,
    "one of NumPy": np.uint64(2**63),
    "half precision": np.float16(1),
    "an integer of a byte": np.int8(3),
    "a matrix without sizes": np.array(1.0),
    "a truth value of NumPy": np.True_,
    "text": "x",
    "bytes": b"rbf",
    "nothing": None,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "a negative number": -1,
    "a complex number": 1j,
    "a decimal number": Decimal("1.5"),
    "a decimal that is no number": Decimal("NaN"),
    "a list": [1, 2],
    "lists of different lengths": [[1, [2]]],
    "an empty list": [],
    "a dict": {"a": 1},
    "a set": {1},
    "a type": int,
    "an object": object(),
    "an object that fails": Hostile(),
    "weights of classes that are too large": {0: 10**400, 1: 1, 2: 1},
    "weights of classes that fail": {0: Hostile(), 1: 1, 2: 1},
}
#: What is called with rows.
CALLED = {"kernel", "functions", "scoring"}


def faults(estimator, every):
    """What is neither taken nor refused by name; each parameter has every nth value, each its own."""
    some = slice(None, None, 5)
    rows, targets = X[some], target(estimator)[some]
    found = []
    for first, name in enumerate(estimator.get_params(deep=False)):
        for words, value in [*VALUES.items()][first % every :: every]:
            if name == "verbose" or (name in CALLED and value is int):
                continue
            try:
                clone(estimator).set_params(**{name: value}).fit(rows, targets)
            except (ValueError, TypeError) as error:
                if not re.search(rf"\b{name}\b", str(error)):
                    found.append((name, words, str(error)[:200]))
            except Exception as error:  # noqa: BLE001 - the value's own methods may raise anything
                found.append((name, words, repr(error)[:200]))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", QUICK, ids=name_of)
def test_a_parameter_takes_a_value_or_refuses_it_by_name(estimator):
    assert faults(estimator, 6) == []


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", QUICK, ids=name_of)
def test_every_parameter_takes_every_value_or_refuses_it_by_name(estimator):
    assert faults(estimator, 1) == []


WEIGHTS = {
    "a number": 2.0,
    "an integer": 2,
    "a number of NumPy": np.float32(2.0),
    "a matrix without sizes": np.array(2.0),
    "a list": [2.0] * 30,
    "half precision": np.full(30, 2.0, dtype=np.float16),
}
WRONG_WEIGHTS = {
    "text": "x",
    "a negative number": -1.0,
    "not a number": float("nan"),
    "an integer beyond double precision": 10**400,
    "a complex number": 1j,
    "a column": np.ones((30, 1)),
    "too few": np.ones(29),
    "none": [],
    "a dict": {"a": 1},
    "an object that fails": Hostile(),
    "objects that fail": [Hostile()] * 30,
}


WEIGHTED = [estimator for estimator in QUICK if has_fit_parameter(estimator, "sample_weight")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", WEIGHTED, ids=name_of)
def test_weights_of_rows_are_numbers_of_any_form_or_refused_by_name(estimator):
    rows, targets = X[::5], target(estimator)[::5]

    def answers(weights):
        seed = {"random_state": 0} if "random_state" in estimator.get_params() else {}
        fitted = clone(estimator).set_params(**seed).fit(rows, targets, sample_weight=weights)
        return answers_of(fitted, rows).tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = answers(np.full(30, 2.0))
        assert {words: answers(weights) for words, weights in WEIGHTS.items()} == dict.fromkeys(
            WEIGHTS, expected
        )
    found = []
    for words, weights in WRONG_WEIGHTS.items():
        with pytest.raises((ValueError, TypeError)) as raised:
            answers(weights)
        if "sample_weight" not in str(raised.value):
            found.append((words, str(raised.value)[:200]))
    assert found == []


def test_a_large_value_is_shown_in_short():
    for value, shown in ((10**400, "C=2**1328 and more"), (-(10**5000), "C=-2**16609 and more")):
        with pytest.raises(ValueError, match=re.escape(shown)):
            SVC(C=value).fit(X[::5], target(SVC())[::5])
    with pytest.raises(ValueError, match=r"n_epochs=9223372036854775808 .* and below 2\*\*63"):
        KernelPerceptron(n_epochs=2**63).fit(X[::5], target(SVC())[::5])
