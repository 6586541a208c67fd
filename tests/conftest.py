"""Fixtures of all tests: data sets of scikit-learn and the seed; the choice of the quick cases."""

from __future__ import annotations

import math
import os
import signal
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_moons
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import shuffle

# Tests of threads ask for them; the others must not take more than their share of a small machine.
os.environ.setdefault("OMP_NUM_THREADS", "2")

# A shell that starts the tests in the background has Ctrl-C ignored, which Python then takes over.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Crosses of so many cases are quick as a whole.
MAX_WHOLE_CROSS = 4

settings.register_profile("fast", max_examples=30, deadline=None, derandomize=True)
settings.register_profile("slow", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks the cases of a test that a quick run leaves out as exhaustive.

    Of a cross of parameters the diagonal is quick: each value of each parameter, short lists again from their
    beginning. With ``quick_every(n)`` it is every nth case of that.
    """
    tests = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        lengths = [len(marker.args[1]) for marker in cases[0].iter_markers("parametrize")]
        quick = range(len(cases))
        if MAX_WHOLE_CROSS < len(cases) == math.prod(lengths):
            diagonal = [[k % length for k in range(max(lengths))] for length in lengths]
            quick = np.ravel_multi_index(diagonal, lengths)
        every = cases[0].get_closest_marker("quick_every")
        quick = set(quick[:: every.args[0] if every else 1])
        for place, item in enumerate(cases):
            if place not in quick:
                item.add_marker(pytest.mark.exhaustive)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def _cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def _digits():
    X, y = load_digits(return_X_y=True)
    return X[:900] / 16.0, y[:900]


def _moons():
    X, y = make_moons(600, noise=0.25, random_state=1)
    return X, np.array(["left", "right"])[y]


def _iris():
    X, y = load_iris(return_X_y=True)
    return MinMaxScaler().fit_transform(X), y


@pytest.fixture(scope="session")
def datasets():
    """Name to (X, y): two and more classes, integers and strings, few and many columns."""
    return {"cancer": _cancer(), "digits": _digits(), "moons": _moons(), "iris": _iris()}


@pytest.fixture(scope="session")
def digits():
    """Handwritten digits in [0, 1]: 500 rows and their labels, 600 others and theirs."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    return X[:500], y[:500], X[500:1100], y[500:1100]


@pytest.fixture(scope="session")
def all_digits():
    """All handwritten digits in [0, 1], in another order, and their labels."""
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    return X / 16.0, y


@pytest.fixture(scope="session")
def pixels():
    """Handwritten digits, 0 to 16: 900 rows and their labels, the others and theirs."""
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900], X[900:], y[900:]


@pytest.fixture(scope="session")
def cancer():
    """Two classes, columns standardised: 350 rows and their labels, the others and theirs."""
    X, y = _cancer()
    return X[:350], y[:350], X[350:], y[350:]


@pytest.fixture(scope="session")
def iris():
    """Three classes with names, in another order, columns standardised."""
    X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    return StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="session")
def diabetes():
    """Numbers to be predicted, of some 0 and 1 in size; columns standardised."""
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - 150) / 80
