"""Rows so far from each other that their products lose small distances: the RBF kernel keeps them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import svmarrow as sv
from svmarrow.least_squares import LowRankRLSRegressor


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("columns", [3, 40])
def test_predictions_are_those_of_the_kernel_matrix(layout, columns):
    random = np.random.default_rng(0)
    X = np.zeros((120, columns))
    # Groups of samples 1e9 apart, in which samples are a unit apart.
    X[:, 0] = 2.0**30 * (np.arange(120) // 6)
    X[:, 1:3] = np.round(random.normal(size=(120, 2)) * 64.0) / 64.0
    y = X[:, 1] + np.sin(X[:, 0])
    K = np.exp(-0.5 * ((X[:, np.newaxis] - X) ** 2).sum(axis=2))
    rows = layout(X)
    expected = K @ np.linalg.solve(K + 0.1 * np.eye(120), y)
    for model in (
        sv.RLSRegressor(0.1, gamma=0.5),
        sv.RLSRegressor(0.1, gamma=0.5, solver="cg", tol=1e-13),
        LowRankRLSRegressor(120, alpha=0.1, gamma=0.5, random_state=0),
    ):
        np.testing.assert_allclose(model.fit(rows, y).predict(rows), expected, atol=1e-8)
    ones = sv.KernelExpansion(rows, np.eye(120), np.zeros(120), gamma=0.5)
    np.testing.assert_allclose(ones.decision_function(rows), K, atol=1e-14)
    pursuit = sv.KMPRegressor(120, gamma=0.5, precision="double").fit(rows, y)
    assert pursuit.score(rows, y) > 1.0 - 1e-9
    machine = sv.SVR(C=10.0, gamma=0.5, epsilon=0.01, tol=1e-4).fit(rows, y)
    coefficients = sp.csr_matrix(machine.dual_coef_).toarray()[0]
    outputs = K[:, machine.support_] @ coefficients + machine.intercept_
    np.testing.assert_allclose(machine.predict(rows), outputs, atol=1e-10)
