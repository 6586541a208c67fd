"""Regularized least squares: the exact system and its leave-one-out values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge

from helpers.reference import kernel as kernel_matrix
from helpers.reference import least_squares, refits
from svmarrow import RLSClassifier, RLSRegressor, load
from svmarrow.least_squares import fit_targets

KERNELS = [
    ("linear", 1.0, 0.0, 3),
    ("poly", 0.3, 0.5, 2),
    ("rbf", 0.4, 0.0, 3),
    ("laplacian", 0.3, 0.0, 3),
    ("chi2", 0.5, 0.0, 3),
    ("matern12", 0.4, 0.0, 3),
    ("matern32", 0.4, 0.0, 3),
]


def _problem(rng, n=60, d=4, q=3):
    return np.abs(rng.normal(size=(n, d))), rng.normal(size=(n, q))


@pytest.mark.parametrize("spec", KERNELS, ids=lambda spec: spec[0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", ["dense", "csr", "precomputed", "function"])
def test_coefficients_and_leave_one_out_equal_the_oracle(rng, spec, intercept, layout):
    X, Y = _problem(rng)
    name, gamma, coef0, degree = spec
    K = kernel_matrix(spec, X, X)
    rows, how, tolerance = X, {"kernel": name, "gamma": gamma, "coef0": coef0, "degree": degree}, 1e-9
    if layout == "csr":
        rows = sp.csr_array(X)
    elif layout == "precomputed":
        rows, how = K, {"kernel": "precomputed"}
    elif layout == "function":
        # Values of a function pass in single precision.
        how, tolerance = {"kernel": lambda A, B: kernel_matrix(spec, A, B)}, 1e-4
    fit = fit_targets(rows, Y, 0.7, fit_intercept=intercept, leave_one_out=True, **how)
    c, b = least_squares(K, Y, 0.7, intercept=intercept)
    np.testing.assert_allclose(fit.coef, c, atol=tolerance)
    np.testing.assert_allclose(fit.expansion.intercepts, b, atol=tolerance)
    np.testing.assert_allclose(fit.loo, refits(K, Y, 0.7, intercept=intercept), atol=max(1e-8, tolerance))


def test_gcv_is_its_definition(rng):
    X, Y = _problem(rng)
    K = kernel_matrix(("rbf", 0.4, 0.0, 3), X, X)
    H = K @ np.linalg.inv(K + 0.3 * np.eye(len(X)))
    expected = ((Y - H @ Y) ** 2).mean(axis=0) / (1 - np.trace(H) / len(X)) ** 2
    np.testing.assert_allclose(fit_targets(X, Y, 0.3, gamma=0.4, leave_one_out=True).gcv, expected, rtol=1e-9)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_the_bound_is_never_below_the_truth(datasets, name, alpha):
    X, y = datasets[name]
    model = RLSClassifier(alpha=alpha, leave_one_out=True).fit(X, y)
    wrong = np.atleast_2d(model.loo_decision_.T).T
    targets = np.where(np.atleast_2d(y == model.classes_[-1]).T, 1, -1)
    if len(model.classes_) > 2:
        targets = np.where(y[:, None] == model.classes_, 1, -1)
    assert (model.loo_error_bound_ >= (wrong * targets <= 0).mean(axis=0)).all()


def test_parity_with_kernel_ridge(datasets):
    X, y = datasets["digits"]
    peer = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.05).fit(X, y)
    ours = RLSRegressor(alpha=0.5, gamma=0.05).fit(X, y)
    np.testing.assert_allclose(ours.predict(X[:50]), peer.predict(X[:50]), rtol=1e-7)
    np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_[None], atol=1e-8)


def test_classifier_on_real_rows(datasets, tmp_path):
    X, y = datasets["digits"]
    model = RLSClassifier(alpha=0.1, gamma=0.05, leave_one_out=True).fit(X[:700], y[:700])
    assert model.score(X[700:], y[700:]) > 0.93
    assert model.loo_decision_.shape == (700, 10)
    assert model.loo_error_ < 0.03
    model.save(tmp_path / "digits.safetensors")
    assert (load(tmp_path / "digits.safetensors").predict(X) == model.predict(X)).all()


def test_single_precision_stays_single(datasets):
    X, y = datasets["digits"]
    rows = X.astype(np.float32)
    model = RLSClassifier(alpha=0.1).fit(rows, y)
    assert model.expansion_.vectors.dtype == np.float32
    # A copy in the same precision: the caller may write to the samples later.
    np.testing.assert_array_equal(model.expansion_.vectors, rows)
    assert not np.shares_memory(model.expansion_.vectors, rows)


def test_degenerate_systems_are_refused_or_solved():
    X, y = np.ones((4, 2)), np.arange(4.0)
    with pytest.raises(ValueError, match="pivot"):
        RLSRegressor(alpha=0.0, gamma=1.0).fit(X, y)
    # Duplicate rows share what they stand for.
    model = RLSRegressor(alpha=1.0, gamma=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), np.full(4, y.sum() / 5))
    one = RLSRegressor(alpha=1.0, gamma=1.0, leave_one_out=True).fit(X[:1], y[1:2])
    assert one.predict(X[:1])[0] == pytest.approx(0.5)
    assert one.loo_prediction_[0] == pytest.approx(0.0)
    constant = RLSRegressor(alpha=1.0, gamma=1.0, fit_intercept=True).fit(np.eye(4), np.full(4, 3.0))
    np.testing.assert_allclose(constant.predict(np.eye(4)), 3.0)
    np.testing.assert_allclose(constant.dual_coef_, 0.0, atol=1e-12)


@pytest.mark.parametrize(("parameter", "value"), [("alpha", -1.0), ("kernel", "cosine"), ("n_jobs", 0)])
def test_bad_parameters_are_named(parameter, value):
    with pytest.raises(ValueError, match=f"{parameter}=.* is not allowed"):
        RLSClassifier(**{parameter: value}).fit(np.eye(3), [0, 1, 1])
    with pytest.raises(ValueError, match="one row for each"):
        fit_targets(np.eye(3), np.ones(2))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", ["dense", "csr", "precomputed"])
def test_weights_are_repeated_rows(rng, intercept, layout):
    X, Y = _problem(rng, n=40)
    weights = rng.integers(0, 4, size=40)
    again = np.repeat(np.arange(40), weights)
    K = kernel_matrix(("rbf", 0.4, 0.0, 3), X, X)
    rows, repeated, how = X, X[again], {"gamma": 0.4}
    if layout == "csr":
        rows, repeated = sp.csr_array(X), sp.csr_array(X[again])
    elif layout == "precomputed":
        rows, repeated, how = K, K[np.ix_(again, again)], {"kernel": "precomputed"}
    one = RLSRegressor(0.3, fit_intercept=intercept, **how).fit(rows, Y, sample_weight=weights)
    all_ = RLSRegressor(0.3, fit_intercept=intercept, **how).fit(repeated, Y[again])
    outputs = all_.predict(K[:, again] if layout == "precomputed" else rows)
    np.testing.assert_allclose(one.predict(rows), outputs, atol=1e-9)
    if not intercept and layout == "dense":
        peer = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.4).fit(X, Y, sample_weight=weights)
        np.testing.assert_allclose(one.predict(X), peer.predict(X), atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_weighted_leave_one_out_equals_refits(rng, intercept):
    X, Y = _problem(rng, n=25)
    weights = rng.uniform(0.2, 3.0, size=25)
    weights[[3, 11]] = 0.0
    model = RLSRegressor(0.3, gamma=0.4, fit_intercept=intercept, leave_one_out=True)
    model.fit(X, Y, sample_weight=weights)
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        without = RLSRegressor(0.3, gamma=0.4, fit_intercept=intercept)
        value = without.fit(X[rest], Y[rest], sample_weight=weights[rest]).predict(X[[i]])[0]
        np.testing.assert_allclose(model.loo_prediction_[i], value, atol=1e-8)
    error = np.average(((model.loo_prediction_ - Y) ** 2).mean(axis=1), weights=weights)
    np.testing.assert_allclose(model.loo_error_, error)
    path = RLSRegressor(alphas=[1.0, 0.3], gamma=0.4, fit_intercept=intercept).fit(
        X, Y, sample_weight=weights
    )
    np.testing.assert_allclose(path.loo_errors_[1], error, rtol=1e-9)


def test_weighted_classification_and_its_bound(datasets):
    X, y = datasets["cancer"]
    weights = np.random.default_rng(0).integers(0, 3, size=len(y))
    model = RLSClassifier(0.5, gamma=0.05, leave_one_out=True).fit(X, y, sample_weight=weights)
    again = np.repeat(np.arange(len(y)), weights)
    repeated = RLSClassifier(0.5, gamma=0.05).fit(X[again], y[again])
    np.testing.assert_allclose(model.decision_function(X), repeated.decision_function(X), atol=1e-8)
    assert model.loo_error_bound_[0] >= model.loo_error_ - 1e-12
    with pytest.raises(ValueError, match="sample weights are all zero"):
        RLSClassifier().fit(X, y, sample_weight=np.zeros(len(y)))


def test_weights_in_a_refined_single_precision_factor(rng):
    X, y = rng.normal(size=(1500, 5)), rng.normal(size=1500)
    weights = rng.uniform(0.1, 5.0, size=1500)
    single = RLSRegressor(0.1, gamma=0.3).fit(X, y, sample_weight=weights)
    double = RLSRegressor(0.1, gamma=0.3, leave_one_out=True).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(single.dual_coef_, double.dual_coef_, atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", ["dense", "csr", "precomputed", "single"])
def test_a_path_by_one_eigendecomposition_equals_factorisations(rng, intercept, weighted, layout):
    X, Y = _problem(rng, n=300)
    alphas = [10.0, 1.0, 1e-2]
    weights = rng.uniform(0.2, 3.0, size=300) if weighted else None
    rows, how = X, {"gamma": 2.0, "fit_intercept": intercept}
    if layout == "csr":
        rows = sp.csr_array(X)
    elif layout == "single":
        rows = X.astype(np.float32)
    elif layout == "precomputed":
        rows = kernel_matrix(("rbf", 2.0, 0.0, 3), X, X)
        how = {"kernel": "precomputed", "fit_intercept": intercept}
    path = RLSRegressor(alphas=alphas, **how).fit(rows, Y, sample_weight=weights)
    assert path.solver_ == "eigh"
    for place, alpha in enumerate(alphas):
        # Without alphas there is one, and it is factored.
        single = RLSRegressor(alpha, leave_one_out=True, **how).fit(rows, Y, sample_weight=weights)
        assert single.solver_ == "cholesky"
        np.testing.assert_allclose(path.loo_errors_[place], single.loo_error_, rtol=1e-8)
        np.testing.assert_allclose(path.gcv_path_[place], single.gcv_.mean(), rtol=1e-8)
        if alpha == path.alpha_:
            scale = np.abs(single.dual_coef_).max()
            np.testing.assert_allclose(path.dual_coef_, single.dual_coef_, rtol=1e-8, atol=1e-8 * scale)
            np.testing.assert_allclose(path.intercept_, single.intercept_, atol=1e-8)
            np.testing.assert_allclose(path.loo_prediction_, single.loo_prediction_, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_along_a_decomposed_path_equals_refits(rng, intercept):
    X, Y = _problem(rng, n=25)
    weights = rng.uniform(0.2, 3.0, size=25)
    weights[4] = 0.0
    K = kernel_matrix(("rbf", 0.4, 0.0, 3), X, X)
    alphas = [0.02, 0.3, 5.0]
    plain = RLSRegressor(alphas=alphas, gamma=0.4, fit_intercept=intercept).fit(X, Y)
    left = [refits(K, Y, alpha, intercept=intercept) for alpha in alphas]
    np.testing.assert_allclose(plain.loo_errors_, [((Y - f) ** 2).mean() for f in left], rtol=1e-8)
    best = left[alphas.index(plain.alpha_)]
    np.testing.assert_allclose(plain.loo_prediction_, best, atol=1e-8)
    path = RLSRegressor(alphas=alphas, gamma=0.4, fit_intercept=intercept).fit(X, Y, sample_weight=weights)
    assert plain.solver_ == path.solver_ == "eigh"
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        without = RLSRegressor(path.alpha_, gamma=0.4, fit_intercept=intercept)
        value = without.fit(X[rest], Y[rest], sample_weight=weights[rest]).predict(X[[i]])[0]
        np.testing.assert_allclose(path.loo_prediction_[i], value, atol=1e-8)


def test_which_paths_are_decomposed(rng):
    X, y = rng.normal(size=(450, 3)), rng.normal(size=450)
    few, enough = (RLSRegressor(alphas=np.arange(1.0, 1.0 + k)).fit(X, y) for k in (4, 5))
    assert (few.solver_, enough.solver_) == ("cholesky", "eigh")
    np.testing.assert_allclose(few.loo_errors_, enough.loo_errors_[:4], rtol=1e-8)
    function = RLSRegressor(alphas=[1.0, 2.0, 3.0, 4.0, 5.0], kernel=lambda A, B: A @ B.T).fit(X, y)
    assert function.solver_ == "cholesky"
    # Alphas within the rounding of a singular K are left to factorisations, which refuse 0.
    rows = np.repeat(rng.normal(size=(20, 3)), 2, axis=0)
    singular = RLSRegressor(alphas=[0.0, 0.1, 1.0], gamma=1.0).fit(rows, rng.normal(size=40))
    assert singular.solver_ == "eigh"
    assert np.isfinite(singular.loo_errors_[1:]).all()
    with pytest.raises(ValueError, match="pivot"):
        RLSRegressor(alphas=[0.0, 0.0], gamma=1.0).fit(np.ones((4, 2)), np.arange(4.0))


def test_errors_that_differ_by_rounding_choose_the_largest_penalty():
    """Samples far from each other: each prediction is 0 whatever the penalty, and the errors are equal."""
    rng = np.random.default_rng(0)
    rows, targets, weights = 1e3 * rng.normal(size=(35, 3)), rng.normal(size=35), rng.uniform(0.1, 2.0, 35)
    for order in (np.arange(35), *(rng.permutation(35) for _ in range(20))):
        model = RLSRegressor(gamma=0.04, alphas=[0.1, 10.0, 1.0])
        model.fit(rows[order], targets[order], sample_weight=weights[order])
        assert model.alpha_ == 10.0
