"""Steps of a computation end when their time is over."""

from __future__ import annotations

import time

import numpy as np
import pytest

from svmarrow import RLSRegressor
from svmarrow._support.progress import UNTIMED, Steps, TimeOver, within

X = np.random.default_rng(0).normal(size=(6000, 3))


def fit():
    return RLSRegressor(1e-6, gamma=0.3, leave_one_out=False, n_jobs=1).fit(X, X[:, 0])


def test_a_fit_in_the_core_ends_with_its_step():
    steps = Steps(None, 0.02)
    assert steps.attempt(fit) is None
    assert steps.was_stopped
    assert steps.remaining == 0.0
    assert steps.attempt(lambda: 3) is None


def test_steps_without_a_limit():
    assert UNTIMED.attempt(lambda: 3) == 3
    assert UNTIMED.first_part(0.5).remaining is None
    assert Steps(None, 1e6).attempt(lambda: 3) == 3


def test_an_inner_limit_does_not_extend_an_outer_one():
    with pytest.raises(TimeOver), within(time.monotonic()), within(time.monotonic() + 1e6):
        fit()
