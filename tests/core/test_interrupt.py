"""Ctrl-C ends long work of every learner at once; each line of the table would run for minutes."""

from __future__ import annotations

import pytest

from helpers.interruption import posix, stops_at_once

LEARNERS = {
    "pre-fitting": "KMPRegressor(5000, gamma=0.1)",
    "any loss": "KMPRegressor(2000, gamma=0.1, loss='huber')",
    "drawn candidates": "KMPRegressor(5000, gamma=0.1, sample_size=2000)",
}


@pytest.mark.quick_every(3)
@posix
@pytest.mark.parametrize("learner", LEARNERS)
def test_ctrl_c(learner):
    fitted = stops_at_once(f"""
        from svmarrow import KMPRegressor
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12000, 8))
        y = np.sin(X[:, 0]) + rng.normal(size=12000)
        model = {LEARNERS[learner]}
        work = lambda: model.fit(X, y)
        after = lambda: hasattr(model, "path_")
        """)
    assert not fitted
