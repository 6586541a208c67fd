"""Shapley values equal those of shap's and shapiq's explainers, which these tests need."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_diabetes, load_iris

from svmarrow import SVC, SVR
from svmarrow.inspection import shapley_values

shap = pytest.importorskip("shap")


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:200] / X.std(axis=0), y[:200]


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_exact_explainer(diabetes, kernel):
    X, y = diabetes
    model = SVR(C=100.0, kernel=kernel, gamma=0.05).fit(X, y)
    explained = shap.ExactExplainer(model.predict, shap.maskers.Independent(X[:20], 20))(X[50:53])
    found = shapley_values(model, X[50:53], X[:20])
    np.testing.assert_allclose(found.values, explained.values, atol=1e-9 * np.abs(explained.values).max())


def test_exact_explainer_of_several_outputs():
    X, y = load_iris(return_X_y=True)
    model = SVC(gamma=0.3, decision_function_shape="ovo").fit(X, y)
    explained = shap.ExactExplainer(model.decision_function, shap.maskers.Independent(X[::10], 15))(X[::50])
    found = shapley_values(model, X[::50], X[::10])
    np.testing.assert_allclose(found.values, explained.values, atol=1e-10)


def test_explanations_have_the_form_of_shap(diabetes):
    X, y = diabetes
    found = shapley_values(SVR(C=100.0).fit(X, y), X[:4], X[:20]).to_shap()
    assert isinstance(found, shap.Explanation)
    assert found.values.shape == found.data.shape == (4, 10)
    assert found.base_values.shape == (4,)
    shap.plots.bar(found, show=False)


def test_product_kernel_game_of_shapiq(diabetes):
    explainers = pytest.importorskip("shapiq.explainer.product_kernel")
    X, y = diabetes
    model = sklearn.svm.SVR(C=100.0, gamma=0.05).fit(X, y)
    explainer = explainers.ProductKernelExplainer(model=model)
    expected = [explainer.explain(x).get_n_order_values(1) for x in X[:3]]
    found = shapley_values(model, X[:3], X[:20], game="kernel")
    np.testing.assert_allclose(found.values, expected, atol=1e-10 * np.abs(expected).max())
