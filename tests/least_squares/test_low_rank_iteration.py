"""Low-rank least squares by conjugate gradients: the direct solution is the oracle."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from helpers.reference import kernel as kernel_matrix
from helpers.reference import subset_of_regressors
from svmarrow.least_squares import LowRankRLSClassifier, LowRankRLSRegressor

SPEC = ("rbf", 0.3, 0.0, 3)


def _problem(rng, n=700, d=4, q=2):
    X = rng.normal(size=(n, d))
    return X, np.sin(X @ rng.normal(size=(d, q))) + 3.0 + 0.1 * rng.normal(size=(n, q))


def _relative(found, expected, weights=None):
    """The largest root mean square of the differences of an output, relative to the outputs."""
    squares = np.average((found - expected) ** 2, axis=0, weights=weights)
    return float(np.sqrt(squares / np.average(expected**2, axis=0, weights=weights)).max())


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", ["dense", "csr", "strided", "float32"])
@pytest.mark.parametrize("outputs", [1, 3, 7])
def test_the_outputs_are_those_of_the_direct_solution(rng, intercept, layout, outputs):
    X, Y = _problem(rng, q=outputs)
    rows = {
        "dense": X,
        "csr": sp.csr_array(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "float32": X.astype(np.float32),
    }[layout]
    how = {"alpha": 0.3, "gamma": 0.3, "fit_intercept": intercept, "random_state": 0}
    direct = LowRankRLSRegressor(60, solver="cholesky", **how).fit(rows, Y)
    model = LowRankRLSRegressor(60, solver="cg", tol=1e-8, **how).fit(rows, Y)
    assert (model.solver_, direct.solver_) == ("cg", "cholesky")
    assert model.residual_ <= 1e-8
    assert model.n_iter_ < 40
    limit = 1e-4 if layout == "float32" else 1e-6
    T = rng.normal(size=(50, 4))
    assert _relative(model.predict(X).reshape(700, -1), direct.predict(X).reshape(700, -1)) < limit
    assert _relative(model.predict(T).reshape(50, -1), direct.predict(T).reshape(50, -1)) < limit
    Z = X[model.indices_]
    c, b, _ = subset_of_regressors(
        kernel_matrix(SPEC, X, Z), kernel_matrix(SPEC, Z, Z), Y, 0.3, intercept=intercept
    )
    expected = kernel_matrix(SPEC, T, Z) @ c + b
    assert _relative(model.predict(T).reshape(50, -1), expected) < limit


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "matern12", "matern32", "matern52"])
def test_every_positive_definite_kernel(rng, kernel):
    X, Y = _problem(rng)
    how = {"alpha": 0.3, "kernel": kernel, "gamma": 0.3, "coef0": 1.0, "fit_intercept": True}
    fits = [
        LowRankRLSRegressor(40, solver=solver, random_state=0, **how).fit(X, Y)
        for solver in ("cholesky", "cg")
    ]
    assert _relative(fits[1].predict(X), fits[0].predict(X)) < 1e-6


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
def test_the_residual_bounds_the_distance_from_the_exact_outputs(rng, tol, alpha):
    X, Y = _problem(rng)
    weights = rng.uniform(0.1, 5.0, size=700)
    how = {"alpha": alpha, "gamma": 0.3, "random_state": 1}
    direct = LowRankRLSRegressor(50, solver="cholesky", **how).fit(X, Y, weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LowRankRLSRegressor(50, solver="cg", tol=tol, **how).fit(X, Y, weights)
    squares = np.average((model.predict(X) - direct.predict(X)) ** 2, axis=0, weights=weights)
    relative = np.sqrt(squares / np.average(Y**2, axis=0, weights=weights)).max()
    assert relative <= model.residual_ + 1e-7
    assert model.residual_ <= tol


def test_weights_stand_for_repetitions(rng):
    X, Y = _problem(rng, n=300)
    weights = rng.integers(0, 4, size=300)
    how = {
        "solver": "cg",
        "alpha": 0.3,
        "gamma": 0.3,
        "selection": X[:30],
        "fit_intercept": True,
        "tol": 1e-9,
    }
    weighted = LowRankRLSRegressor(**how).fit(X, Y, weights)
    repeated = LowRankRLSRegressor(**how).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-7)


def test_classes_with_weights_equal_the_direct_solution(datasets):
    X, y = datasets["digits"]
    how = {"alpha": 0.1, "gamma": 0.05, "class_weight": {3: 50.0}, "fit_intercept": True, "random_state": 0}
    direct = LowRankRLSClassifier(150, solver="cholesky", **how).fit(X, y)
    model = LowRankRLSClassifier(150, solver="cg", tol=1e-8, **how).fit(X, y)
    assert _relative(model.decision_function(X), direct.decision_function(X)) < 1e-6
    assert pickle.loads(pickle.dumps(model)).score(X, y) == model.score(X, y)


@pytest.mark.parametrize("outputs", [1, 6])
def test_threads_do_not_change_a_bit(rng, outputs):
    X, Y = _problem(rng, n=3000, q=outputs)
    fits = [
        LowRankRLSRegressor(90, solver="cg", gamma=0.3, random_state=0, n_jobs=jobs).fit(X, Y)
        for jobs in (1, 2)
    ]
    assert fits[0].expansion_ == fits[1].expansion_


def test_dependent_points_and_more_points_than_samples():
    X, y = np.repeat(np.eye(3), 4, axis=0), np.arange(12.0) % 5
    how = {"gamma": 1.0, "alpha": 0.1, "selection": X}
    direct = LowRankRLSRegressor(solver="cholesky", **how).fit(X, y)
    model = LowRankRLSRegressor(solver="cg", **how).fit(X, y)
    np.testing.assert_allclose(model.predict(X), direct.predict(X), atol=1e-6)


def test_constant_targets_and_targets_of_any_size(rng):
    X, Y = _problem(rng, n=200)
    how = {"solver": "cg", "gamma": 0.3, "random_state": 0}
    zero = LowRankRLSRegressor(20, **how).fit(X, np.zeros(200))
    assert not zero.dual_coef_.any()
    assert zero.residual_ == 0.0
    constant = LowRankRLSRegressor(20, fit_intercept=True, **how).fit(X, np.full(200, 7.0))
    np.testing.assert_allclose(constant.predict(X), 7.0)
    once = LowRankRLSRegressor(20, **how).fit(X, Y).predict(X)
    for size in (1e-200, 1e200):
        np.testing.assert_allclose(
            LowRankRLSRegressor(20, **how).fit(X, size * Y).predict(X), size * once, rtol=1e-5
        )


def test_an_iteration_that_ends_early_warns_and_leaves_a_model(rng):
    X, Y = _problem(rng)
    how = {"gamma": 0.3, "alpha": 1e-3, "random_state": 0, "fit_intercept": True}
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = LowRankRLSRegressor(50, solver="cg", max_iter=2, **how).fit(X, Y)
    assert model.n_iter_ == 2 or model.n_iter_ == 3
    assert model.residual_ > 1e-6
    assert np.isfinite(model.predict(X)).all()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = LowRankRLSRegressor(50, max_time=0.0, **how).fit(X, Y)
    assert model.solver_ == "cg"
    assert model.residual_ <= 1.0
    np.testing.assert_allclose(model.predict(X), np.tile(Y.mean(axis=0), (700, 1)), atol=4.0)


def test_the_choice_follows_the_cost_and_what_is_asked_for(rng):
    X = np.zeros((10_000_000, 1), dtype=np.float32)
    assert LowRankRLSRegressor(10_000)._choice(X, 1) == "cg"
    assert LowRankRLSRegressor(500)._choice(X, 1) == "cholesky"
    for how in (
        {"leave_one_out": True},
        {"alphas": [1.0, 2.0]},
        {"alpha": 0.0},
        {"kernel": "sigmoid"},
        {"kernel": len},
        {"method": "subset"},
    ):
        assert LowRankRLSRegressor(10_000, **how)._choice(X, 1) == "cholesky"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"leave_one_out": True}, "leave_one_out=True"),
        ({"alphas": [1.0]}, "alphas="),
        ({"alpha": 0.0}, "alpha=0"),
        ({"method": "nystrom"}, "solver='cg'"),
        ({"method": "subset"}, "solver='cg'"),
        ({"kernel": "precomputed"}, "kernel='precomputed'"),
        ({"solver": "cholesky", "max_time": 1.0}, "max_time=1.0"),
        ({"solver": "eigh"}, "solver='eigh'"),
    ],
)
def test_what_the_iteration_does_not_give_is_refused(rng, parameters, message):
    X, Y = _problem(rng, n=20)
    X = np.eye(20) if parameters.get("kernel") == "precomputed" else X
    with pytest.raises(ValueError, match=message):
        LowRankRLSRegressor(**{"n_vectors": 5, "solver": "cg"} | parameters).fit(X, Y)


def test_models_without_sums_refuse_batches_paths_and_merging(rng):
    X, Y = _problem(rng, n=100)
    how = {"selection": X[:10], "gamma": 0.3}
    model = LowRankRLSRegressor(solver="cg", **how).fit(X, Y)
    other = LowRankRLSRegressor(**how).fit(X, Y)
    before = model.expansion_
    for call in (
        lambda: model.set_params(solver="auto").partial_fit(X, Y),
        lambda: model.path([1.0]),
        lambda: model.merge(other),
        lambda: other.merge(model),
    ):
        with pytest.raises(ValueError, match="solver='cholesky'"):
            call()
    assert not hasattr(LowRankRLSRegressor(solver="cg", **how), "partial_fit")
    assert model.expansion_ == before
    assert model.set_params(solver="cholesky").fit(X, Y).partial_fit(X, Y).n_seen_ == 200
