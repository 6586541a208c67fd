"""Importances of fitted machines, and the selectors of scikit-learn that use them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.feature_selection import RFE, SelectFromModel

from svmarrow import SVC, SVR, KernelExpansion, RLSClassifier, RLSRegressor
from svmarrow.expansion.gradients import gradients, importances

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))
Y = np.sin(2.0 * X[:, 1]) + X[:, 3] ** 2
SIDE = np.median(Y) < Y


@pytest.mark.parametrize(
    "machine",
    [
        SVC(C=10.0),
        SVR(C=10.0),
        RLSClassifier(0.1),
        RLSRegressor(0.1),
        SVC(C=10.0, kernel="matern32"),
        RLSRegressor(0.1, kernel="matern52"),
    ],
)
def test_relevant_columns_have_the_largest_shares(machine):
    machine.fit(X, SIDE if is_classifier(machine) else Y)
    shares = machine.feature_importances_
    assert set(np.argsort(shares)[-2:]) == {1, 3}
    assert shares.sum() == pytest.approx(1.0)


def test_shares_are_mean_squared_gradients_in_units_of_the_columns():
    model = RLSRegressor(0.1).fit(X, np.column_stack([Y, X[:, 0]]))
    squares = (gradients(model.expansion_, X) ** 2).sum(axis=1).mean(axis=0) * X.var(axis=0)
    assert model.feature_importances_ == pytest.approx(squares / squares.sum())
    sparse = RLSRegressor(0.1, gamma=0.2).fit(sp.csr_array(X), Y)
    dense = RLSRegressor(0.1, gamma=0.2).fit(X, Y)
    assert sparse.feature_importances_ == pytest.approx(dense.feature_importances_, rel=1e-6)


def test_selectors_take_machines():
    chosen = SelectFromModel(SVC(C=10.0), threshold=-np.inf, max_features=2).fit(X, SIDE)
    assert chosen.get_support().tolist() == [False, True, False, True, False]
    ranked = RFE(SVR(C=10.0), n_features_to_select=2).fit(X, Y)
    assert ranked.support_.tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("kernel", ["laplacian", "matern12"])
def test_other_kernels_have_none(kernel):
    model = SVC(kernel=kernel).fit(X, SIDE)
    assert not hasattr(model, "feature_importances_")
    with pytest.raises(AttributeError, match="exists for the kernels rbf, matern32, matern52, linear"):
        _ = model.feature_importances_


def test_a_constant_has_zeros():
    assert importances(KernelExpansion(np.empty((0, 3)), np.empty((0, 1)), 1.0)).tolist() == [0.0] * 3
    assert importances(KernelExpansion(np.ones((4, 3)), np.ones((4, 1)), 1.0)).tolist() == [0.0] * 3
