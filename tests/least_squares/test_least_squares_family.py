"""Linear and iterative least squares, the path of penalties, the low-rank machine."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge, RidgeClassifier

from helpers.reference import kernel as kernel_matrix
from helpers.reference import least_squares, refits
from svmarrow import RLSClassifier, RLSRegressor
from svmarrow.least_squares import (
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSRegressor,
    fit_targets,
)

SPEC = ("rbf", 0.3, 0.0, 3)


@pytest.mark.parametrize("n", [1111])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [False, True])
def test_refined_solutions_are_as_accurate_as_lapack(rng, n, kind, intercept):
    X, Y = rng.normal(size=(n, 5)).astype(kind), rng.normal(size=(n, 3))
    model = RLSRegressor(0.05, gamma=0.3, fit_intercept=intercept).fit(X, Y)
    full = RLSRegressor(0.05, gamma=0.3, leave_one_out=True, fit_intercept=intercept).fit(X, Y)
    c, b = least_squares(kernel_matrix(SPEC, X, X), Y, 0.05, intercept=intercept)
    np.testing.assert_allclose(full.dual_coef_, c.T, atol=1e-8)
    # Kernel values of rows in single precision are themselves in single precision.
    tolerance = 1e-8 if kind == np.float64 else 5e-3
    np.testing.assert_allclose(model.dual_coef_, c.T, atol=tolerance)
    np.testing.assert_allclose(model.intercept_, b, atol=tolerance)


def test_a_system_too_hard_for_single_precision_is_still_solved(rng):
    X, y = rng.normal(size=(1001, 2)), rng.normal(size=1001)
    model = RLSRegressor(1e-9, gamma=0.05).fit(X, y)
    K = kernel_matrix(("rbf", 0.05, 0.0, 3), X, X) + 1e-9 * np.eye(1001)
    assert np.abs(K @ model.dual_coef_[0] - y).max() < 1e-4


def test_the_path_is_that_of_single_fits(datasets):
    X, y = datasets["iris"]
    alphas = [1e-3, 0.1, 10.0]
    path = RLSClassifier(alphas=alphas, gamma=2.0).fit(X, y)
    fits = [RLSClassifier(alpha=alpha, gamma=2.0, leave_one_out=True).fit(X, y) for alpha in alphas]
    np.testing.assert_allclose(path.loo_errors_, [fit.loo_error_ for fit in fits])
    np.testing.assert_allclose(path.gcv_path_, [fit.gcv_.mean() for fit in fits])
    best = fits[alphas.index(path.alpha_)]
    assert best.loo_error_ == min(path.loo_errors_)
    np.testing.assert_allclose(path.dual_coef_, best.dual_coef_)
    regression = RLSRegressor(alphas=alphas, gamma=2.0).fit(X, y)
    assert regression.alpha_ == alphas[int(np.argmin(regression.loo_errors_))]
    singular = RLSRegressor(alphas=[0.0, 1.0], gamma=1.0).fit(np.ones((4, 1)), np.arange(4))
    assert singular.alpha_ == 1.0
    assert np.isnan(singular.loo_errors_[0])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_conjugate_gradients_reach_the_exact_solution(rng, intercept, layout):
    X, Y = rng.normal(size=(700, 3)), rng.normal(size=(700, 2))
    rows = sp.csr_array(X) if layout == "csr" else X
    exact = RLSRegressor(0.1, gamma=0.3, fit_intercept=intercept).fit(X, Y)
    model = RLSRegressor(0.1, gamma=0.3, fit_intercept=intercept, solver="cg", tol=1e-10).fit(rows, Y)
    np.testing.assert_allclose(model.predict(rows), exact.predict(X), atol=1e-7)
    c = model.dual_coef_.T
    residual = Y - model.intercept_ - (kernel_matrix(SPEC, X, X) @ c + 0.1 * c)
    assert model.residual_ <= 1e-10
    assert np.linalg.norm(residual) / np.linalg.norm(Y) < 1e-8
    assert model.n_iter_ > 1


def test_conjugate_gradients_say_when_they_ended_early(rng):
    X, y = rng.normal(size=(400, 3)), rng.normal(size=400)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = RLSRegressor(0.01, solver="cg", tol=1e-12, max_iter=3).fit(X, y)
    assert model.residual_ > 1e-12
    with pytest.warns(ConvergenceWarning, match="max_time"):
        RLSRegressor(0.01, solver="cg", tol=1e-12, max_time=0.0).fit(X, y)
    for bad in ({"leave_one_out": True}, {"alphas": [1.0], "leave_one_out": False}):
        with pytest.raises(ValueError, match="solver='cg'"):
            RLSRegressor(solver="cg", **bad).fit(X, y)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", ["primal", "dual", "cg"])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("shape", [(200, 8), (50, 120)])
def test_linear_solvers_agree_with_ridge(rng, intercept, solver, layout, shape):
    X = rng.normal(size=shape) * (rng.random(shape) < 0.4)
    Y = rng.normal(size=(shape[0], 3))
    rows = sp.csr_array(X) if layout == "csr" else X
    left_out = solver != "cg"
    model = LinearRLSRegressor(
        0.7, solver=solver, fit_intercept=intercept, leave_one_out=left_out, tol=1e-12
    ).fit(rows, Y)
    peer = Ridge(0.7, fit_intercept=intercept).fit(X, Y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-8)
    np.testing.assert_allclose(model.predict(rows), peer.predict(X), atol=1e-8)
    assert model.solver_ == solver
    if left_out:
        np.testing.assert_allclose(
            model.loo_prediction_, refits(X @ X.T, Y, 0.7, intercept=intercept), atol=1e-8
        )


def test_linear_classifier_chooses_by_shape(datasets, rng):
    X, y = datasets["cancer"]
    model = LinearRLSClassifier(fit_intercept=True, leave_one_out=True).fit(X, y)
    assert model.solver_ == "primal"
    assert (model.predict(X) == RidgeClassifier().fit(X, y).predict(X)).all()
    wide = sp.random_array((600, 20000), density=0.002, rng=rng, format="csr")
    assert LinearRLSClassifier().fit(wide, rng.integers(0, 2, 600)).solver_ in ("dual", "cg")
    assert LinearRLSClassifier().fit(wide[:100], rng.integers(0, 2, 100)).solver_ == "dual"


def test_threads_change_nothing(datasets):
    X, y = datasets["digits"]
    for model in (
        RLSClassifier(0.1),
        RLSClassifier(0.1, solver="cg"),
        LinearRLSClassifier(solver="cg"),
        LinearRLSClassifier(solver="primal", leave_one_out=True),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one, two = (model.set_params(n_jobs=jobs).fit(X, y).expansion_ for jobs in (1, 2))
        assert one == two


@pytest.mark.parametrize(
    "model",
    [
        RLSRegressor(max_time=1.0),
        RLSRegressor(alphas=[0.1, 1.0], max_time=1.0),
        LinearRLSRegressor(solver="primal", max_time=1.0),
        LinearRLSRegressor(solver="dual", max_time=1.0),
        LinearRLSRegressor(leave_one_out=True, max_time=1.0),
    ],
    ids=repr,
)
def test_a_limit_of_time_that_nothing_obeys_is_refused(model):
    X = np.random.default_rng(0).standard_normal((60, 3))
    with pytest.raises(ValueError, match=r"max_time=1\.0 is not allowed: it must be None for solver="):
        model.fit(X, X[:, 0])


def test_a_limit_of_time_makes_auto_an_iteration():
    X = np.random.default_rng(0).standard_normal((60, 3))
    assert LinearRLSRegressor(max_time=100.0).fit(X, X[:, 0]).solver_ == "cg"
    assert LinearRLSRegressor().fit(X, X[:, 0]).solver_ == "primal"


@pytest.mark.parametrize("method", ["subset_of_regressors", "subset"])
def test_leave_one_out_of_a_single_sample_is_refused(method):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    rows = X if method == "subset" else X[:1]
    low_rank = LowRankRLSRegressor(1, method=method, leave_one_out=True)
    message = (
        "one sample is in the model, and leave-one-out values .* fit_intercept=False or leave_one_out=False"
    )
    with pytest.raises(ValueError, match=message):
        clone(low_rank).set_params(fit_intercept=True).fit(rows, y[: len(rows)])
    # Without its sample the model is 0, unless it has an intercept.
    assert low_rank.fit(rows, y[: len(rows)]).loo_prediction_[low_rank.indices_] == pytest.approx(0.0)
    for exact in (RLSRegressor(leave_one_out=True), RLSRegressor(alphas=[1.0, 2.0])):
        with pytest.raises(ValueError, match=message):
            exact.set_params(fit_intercept=True).fit(X[:1], y[:1])
        assert exact.set_params(fit_intercept=False).fit(X[:1], y[:1]).loo_prediction_ == pytest.approx([0.0])
    with pytest.raises(ValueError, match=message):
        fit_targets(X[:1], y[:1], fit_intercept=True, leave_one_out=True)
