"""Features far from zero: what does not depend on the origin keeps its precision, what does is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict

import svmarrow as sv
from svmarrow.least_squares import LinearRLSClassifier, LinearRLSRegressor, LowRankRLSRegressor, fit_targets

#: A time stamp in seconds.
OFFSET = 1.7e9


@pytest.fixture(scope="module")
def data():
    """Samples near zero, whose first column is within half a minute, and targets."""
    random = np.random.default_rng(0)
    # Multiples of a power of two: adding the offset is exact.
    seconds = np.round(random.uniform(0, 30, 120) * 1024) / 1024
    X = np.column_stack([seconds, random.normal(size=(120, 2))])
    return X, np.column_stack([X[:, 0] / 10 + X[:, 1], X[:, 2]]), random.uniform(0.1, 1.0, 120)


def far(X):
    return X + np.array([OFFSET, 0.0, 0.0])


LINEAR = [
    *({"solver": s, "leave_one_out": True} for s in ("primal", "dual")),
    {"solver": "cg", "tol": 1e-11},
]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("parameters", LINEAR, ids=lambda p: p["solver"])
def test_linear_least_squares_equal_ridge_at_any_offset(data, parameters, weighted, layout):
    X, Y, w = data
    w = w if weighted else None
    expected = Ridge(1.0).fit(X, Y, sample_weight=w).predict(X)
    model = LinearRLSRegressor(1.0, fit_intercept=True, **parameters).fit(layout(far(X)), Y, sample_weight=w)
    assert np.abs(model.predict(layout(far(X))) - expected).max() < 1e-6
    if w is None and "leave_one_out" in parameters:
        left = cross_val_predict(Ridge(1.0), X, Y, cv=LeaveOneOut())
        assert np.abs(model.loo_prediction_ - left).max() < 1e-10
    labels = LinearRLSClassifier(1.0, fit_intercept=True, **parameters).fit(far(X), Y[:, 0] > 1.5)
    near = LinearRLSClassifier(1.0, fit_intercept=True, **parameters).fit(X, Y[:, 0] > 1.5)
    assert np.abs(labels.decision_function(far(X)) - near.decision_function(X)).max() < 1e-6


EXACT = [{"leave_one_out": True}, {"alphas": [1e9, 1.0]}, {"solver": "cg", "tol": 1e-11}]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("parameters", EXACT, ids=["cholesky", "path", "cg"])
def test_the_linear_kernel_with_an_intercept_is_computed_about_a_centre(data, parameters, layout):
    X, Y, w = data
    expected = Ridge(1.0).fit(X, Y, sample_weight=w).predict(X)
    model = sv.RLSRegressor(1.0, kernel="linear", fit_intercept=True, **parameters)
    model.fit(layout(far(X)), Y, sample_weight=w)
    # Coefficients of samples 1.7e9 long are rounded.
    assert np.abs(model.predict(layout(far(X))) - expected).max() < 2e-2
    assert model.score(layout(far(X)), Y) > 1.0 - 1e-3


def test_one_factorisation_for_all_targets_takes_offsets(data):
    X, Y, _ = data
    fit = fit_targets(far(X), Y, kernel="linear", fit_intercept=True, leave_one_out=True)
    assert np.abs(fit.loo - cross_val_predict(Ridge(1.0), X, Y, cv=LeaveOneOut())).max() < 1e-10


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_standard_deviations_and_intervals_do_not_depend_on_the_origin(data, layout):
    X, Y, _ = data
    y = Y[:, 0]
    model = sv.RLSRegressor(1.0, kernel="linear", fit_intercept=True, leave_one_out=True)
    near = model.fit(X, y).predict(X[:9], return_std=True)[1], model.predict_interval(X[:9])
    offset = np.array([65536.0, 0.0, 0.0])
    model.fit(layout(X + offset), y)
    rows = layout(X + offset)[:9]
    np.testing.assert_allclose(model.predict(rows, return_std=True)[1], near[0], rtol=1e-3)
    np.testing.assert_allclose(model.predict_interval(rows), near[1], rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        sv.RLSRegressor(kernel="linear"),
        sv.RLSRegressor(kernel="linear", alphas=[0.1, 1.0]),
        sv.RLSRegressor(kernel="poly", fit_intercept=True),
        sv.RLSRegressor(kernel="linear", solver="cg"),
        LinearRLSRegressor(),
        LinearRLSRegressor(solver="cg"),
        LowRankRLSRegressor(20, kernel="linear", fit_intercept=True),
        LowRankRLSRegressor(20, kernel="poly"),
        LowRankRLSRegressor(20, kernel="linear", method="subset"),
        sv.LowRankSVC(20, kernel="linear"),
        sv.LowRankSVC(20, kernel="poly"),
        sv.KMPRegressor(20, kernel="linear"),
        sv.KMPClassifier(20, kernel="poly", variant="backfit"),
    ],
    ids=repr,
)
def test_kernels_that_depend_on_the_origin_are_refused_where_rounding_decides(data, model):
    X, Y, _ = data
    y = Y[:, 0] > 1.5 if is_classifier(model) else Y[:, 0]
    with pytest.raises(ValueError, match=r"X=rows far from the origin.*StandardScaler"):
        model.fit(far(X), y)


def test_a_year_is_not_far_from_the_origin():
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(1990, 2021, 300), random.normal(size=(300, 2))])
    y = 0.1 * (X[:, 0] - 2005) + X[:, 1] - X[:, 2]
    for model in (
        LowRankRLSRegressor(20, kernel="linear", fit_intercept=True, random_state=0),
        LinearRLSRegressor(1.0),
        sv.RLSRegressor(1.0, kernel="poly", degree=2, gamma=1.0, coef0=1.0),
        sv.RLSRegressor(1.0, kernel="linear", fit_intercept=True),
    ):
        linear = type(model) is LinearRLSRegressor
        expected = Ridge(1.0, fit_intercept=not linear).fit(X, y).score(X, y)
        assert abs(model.fit(X, y).score(X, y) - expected) < 1e-2, model
    labels = y > 0
    assert sv.LowRankSVC(20, kernel="linear", random_state=0).fit(X, labels).score(X, labels) > 0.98


@pytest.mark.parametrize("offset", [0, 200])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
def test_whole_numbers_of_any_type_are_translated_as_numbers(dtype, offset):
    random = np.random.default_rng(0)
    X = offset + random.integers(0, 250 if offset == 0 else 6, (60, 5))
    y = X @ np.arange(1.0, 6.0) + random.normal(size=60)
    rows = X.astype(dtype)
    expected = Ridge(1.0).fit(X, y).predict(X)
    for solver in ("primal", "dual", "cg"):
        model = LinearRLSRegressor(1.0, fit_intercept=True, solver=solver, tol=1e-9).fit(rows, y)
        np.testing.assert_allclose(model.predict(rows), expected, atol=1e-3)
    for parameters in ({"alpha": 1.0}, {"alphas": [1.0, 1e12]}, {"alphas": [1.0, *np.logspace(9, 12, 30)]}):
        model = sv.RLSRegressor(kernel="linear", fit_intercept=True, **parameters).fit(rows, y)
        np.testing.assert_allclose(model.predict(rows), expected, atol=1e-3)
        near = sv.RLSRegressor(1.0, kernel="linear", fit_intercept=True).fit(X.astype(float), y)
        deviations = near.predict(X.astype(float), return_std=True)[1]
        np.testing.assert_allclose(model.predict(rows, return_std=True)[1], deviations, rtol=1e-3)


@pytest.mark.parametrize("value", [1e8, 1e9])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_an_outlier_moves_no_other_sample(value, layout):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    y = X @ [1.0, 2.0, 3.0, 4.0] + 0.1 * random.normal(size=60)
    X[0, 3] = value
    expected = Ridge(1.0, solver="svd").fit(X, y).predict(X)
    for parameters in ({"solver": "primal"}, {"solver": "dual"}):
        model = LinearRLSRegressor(1.0, fit_intercept=True, **parameters).fit(layout(X), y)
        np.testing.assert_allclose(model.predict(layout(X)), expected, atol=1e-4)
    model = sv.RLSRegressor(1.0, kernel="linear", fit_intercept=True).fit(layout(X), y)
    np.testing.assert_allclose(model.predict(layout(X)), expected, atol=1e-4)
