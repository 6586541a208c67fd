"""Paths of pursuits do not follow what a caller writes to the training samples after a fit."""

from __future__ import annotations

import numpy as np
import pytest

from svmarrow import KMPRegressor


@pytest.mark.parametrize("with_candidates", [False, True])
def test_paths_own_their_points(with_candidates):
    X = np.random.default_rng(0).normal(size=(60, 4))
    y, samples, points = X[:, 0] * X[:, 1], X[:9].copy(), X[:30].copy()
    model = KMPRegressor(10, gamma=0.3, candidates=points if with_candidates else None).fit(X, y)
    expected = [model.path_[size].predict(samples) for size in (3, 10)]
    X[:] = points[:] = 7.0
    np.testing.assert_array_equal([model.path_[size].predict(samples) for size in (3, 10)], expected)
