"""Sums of Gaussians in few columns without a look at every pair: another way to the same solution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from svmarrow import SVC, SVR, NuSVC, NuSVR, OneClassSVM, RLSClassifier, RLSRegressor

ROWS = 4000


def _problem(columns):
    rng = np.random.default_rng(columns)
    X = rng.uniform(-1.5, 1.5, size=(ROWS, columns))
    X[0] = 1.5
    X /= 6 if columns == 3 else 1
    wave = np.sin(3 * X).sum(axis=1) + 0.5 * rng.normal(size=ROWS)
    return X, wave


def _labels(wave, name):
    if name == "many classes":
        return np.digitize(wave, np.quantile(wave, [0.2, 0.4, 0.6, 0.8])).astype(str)
    return np.where(wave > 0.2, "yes", "no")


def _fitted(model, X, y, fast, **given):
    model._tuning = {"block": 2048, "fast_sums": fast}
    model.fit(X, y, **given)
    return model, model.certificate_.kernel_values


WEIGHTS = {"sample_weight": np.random.default_rng(0).uniform(0.1, 3, ROWS)}
CASES = {
    "two classes": (SVC(C=2.0, gamma=0.5, tol=1e-4), {}),
    "C times 500": (SVC(C=1000.0, gamma=0.1), {}),
    "without intercept": (SVC(C=2.0, gamma=0.5, tol=1e-4, fit_intercept=False), {}),
    "weights": (SVC(C=2.0, gamma=0.5, tol=1e-4), WEIGHTS),
    "many classes": (SVC(C=2.0, gamma=0.5, tol=1e-4, multi_class="ovr"), {}),
    "nu": (NuSVC(nu=0.8, gamma=0.5, tol=1e-5), {}),
    "regression": (SVR(C=2.0, gamma=0.5, epsilon=0.1, tol=1e-4), WEIGHTS),
    "nu regression": (NuSVR(C=2.0, nu=0.5, gamma=0.5, tol=1e-4), WEIGHTS),
    "one class": (OneClassSVM(nu=0.3, gamma=0.5, tol=1e-4), {}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("columns", "kind"), [(1, "float64"), (2, "float32"), (2, "sparse"), (3, "float64")])
def test_the_solution_is_that_of_all_pairs(name, columns, kind):
    model, given = CASES[name]
    X, wave = _problem(columns)
    numbers = name in ("regression", "nu regression")
    y = wave if numbers else None if name == "one class" else _labels(wave, name)
    X = sparse.csr_array(X) if kind == "sparse" else X.astype(kind)
    outputs = model.predict if numbers else model.decision_function
    pairs = _fitted(model, X, y, False, **given)[1]
    dual, expected = model.certificate_.dual, outputs(X)
    computed = _fitted(model, X, y, True, **given)[1]
    # Steep machines move few vectors at a time, for which boxes in three columns do not pay.
    assert computed < 0.95 * pairs or (name, columns) == ("C times 500", 3)
    assert model.certificate_.stop == "converged"
    if name != "nu":  # whose objective is next to nothing
        # Kernel values in single precision are nearer to the exact ones in sums than in their places.
        assert model.certificate_.dual == pytest.approx(dual, rel=2e-5)
    assert np.abs(outputs(X) - expected).max() < 1e-2 * np.abs(expected).max()


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_no_bit_depends_on_the_threads(n_jobs):
    X, wave = _problem(2)
    y = _labels(wave, "two classes")
    one, more = (_fitted(SVC(C=2.0, gamma=0.5, n_jobs=jobs), X, y, True)[0] for jobs in (1, n_jobs))
    assert one.certificate_.machines == more.certificate_.machines
    np.testing.assert_array_equal(one.dual_coef_, more.dual_coef_)


@pytest.mark.parametrize(
    ("model", "columns", "rows"), [(RLSRegressor, 1, 2000), (RLSClassifier, 1, 2000), (RLSRegressor, 2, 3500)]
)
def test_least_squares_with_a_chosen_penalty(model, columns, rows):
    """Every training row is a vector, so outputs are sums, and y - f(x_i) = alpha c_i holds at each."""
    X, wave = (values[:rows] for values in _problem(columns))
    X = X.astype(np.float32)
    y = np.where(wave > 0.2, 1.0, -1.0) if model is RLSClassifier else wave
    gamma = 0.05
    fitted = model(alphas=[0.01, 1.0], gamma=gamma).fit(X, y)
    outputs = fitted.predict(X) if model is RLSRegressor else fitted.decision_function(X)
    coefficients = fitted.expansion_.coefficients[:, 0]
    # All pairs in single precision, as rows of this kind would be computed, are 1e-9 off and more.
    squared = sum((column[:500, None] - column) ** 2 for column in X.astype(float).T)
    exact = np.exp(-gamma * squared) @ coefficients + fitted.expansion_.intercepts[0]
    assert np.abs(outputs[:500] - exact).max() < 1e-12 * np.abs(coefficients).sum()
    np.testing.assert_allclose(y - outputs, fitted.alpha_ * coefficients, atol=1e-6 * np.abs(y).max())
