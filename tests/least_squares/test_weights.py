"""A weight of 2 is a row twice, a weight of 0 is no row: in every solver and form of least squares."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from svmarrow import RLSClassifier, RLSRegressor
from svmarrow.least_squares import (
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
)

N = 48
#: Weights 0 to 3 in turn, so that every class keeps some rows.
WEIGHTS = np.arange(N) % 4
REPEATED = np.repeat(np.arange(N), WEIGHTS)
X = np.random.default_rng(0).normal(size=(N, 4)) * (np.random.default_rng(1).random((N, 4)) < 0.7)
Y = np.random.default_rng(2).normal(size=(N, 2))
LABELS = np.arange(N) // 4 % 3
#: Points that are rows of positive weight.
POINTS = X[[1, 2, 3, 5, 6, 7, 9, 10]]

REGRESSORS = [
    RLSRegressor(0.3, gamma=0.4),
    RLSRegressor(0.3),
    RLSRegressor(alphas=[10.0, 0.3, 0.02]),
    RLSRegressor(0.3, solver="cg", tol=1e-11),
    LinearRLSRegressor(0.3, solver="primal"),
    LinearRLSRegressor(0.3, solver="dual"),
    LinearRLSRegressor(0.3, solver="cg", tol=1e-12),
    LowRankRLSRegressor(selection=POINTS, alpha=0.3),
    LowRankRLSRegressor(selection=POINTS, alpha=0.3, method="nystrom"),
]
CLASSIFIERS = [
    RLSClassifier(0.3),
    RLSClassifier(alphas=[10.0, 0.3, 0.02]),
    RLSClassifier(0.3, solver="cg", tol=1e-11),
    LinearRLSClassifier(0.3),
    LowRankRLSClassifier(selection=POINTS, alpha=0.3),
]


def name(model):
    chosen = {"solver", "method", "alphas", "gamma"}
    return (
        "-".join(
            [type(model).__name__, *(f"{k}" for k, v in model.get_params().items() if k in chosen and v)]
        )
        + str(getattr(model, "solver", ""))
        + str(getattr(model, "method", ""))
    )


def fresh(model, **changes):
    return type(model)(**(model.get_params() | changes))


def weighted_and_repeated(model, rows, targets, **changes):
    """A fit with weights, and one of repeated rows for the penalty that the first took.

    Rows are left out with all their weight, of copies one: so only weights of 0 and 1 choose as rows do.
    """
    one = fresh(model, **changes).fit(rows, targets, sample_weight=WEIGHTS)
    if model.get_params().get("alphas") is not None:
        kept = np.flatnonzero(WEIGHTS)
        there = fresh(model, **changes).fit(rows, targets, sample_weight=WEIGHTS > 0)
        alone = fresh(model, **changes).fit(rows[kept], targets[kept])
        np.testing.assert_allclose(there.loo_errors_, alone.loo_errors_, rtol=1e-4, atol=1e-12)
        assert there.alpha_ == alone.alpha_
        changes |= {"alphas": None, "alpha": one.alpha_}
    return one, fresh(model, **changes).fit(rows[REPEATED], targets[REPEATED])


def layouts(kind):
    return {"dense": X, "csr": sp.csr_array(X), "float32": X.astype(np.float32)}[kind]


CASES = [
    (model, layout, intercept)
    for model in REGRESSORS
    for layout in ("dense", "csr", "float32")
    for intercept in (False, True)
    if not (intercept and getattr(model, "method", "") == "nystrom")
]


@pytest.mark.parametrize(
    ("model", "layout", "intercept"), CASES, ids=lambda v: name(v) if hasattr(v, "fit") else str(v)
)
@pytest.mark.parametrize("several", [False, True])
def test_regressors(model, layout, intercept, several):
    rows, targets = layouts(layout), Y if several else Y[:, 0]
    changes = {"fit_intercept": intercept}
    single = layout == "float32"
    if single and getattr(model, "solver", "") == "cg":
        # Products of single-precision kernel values get no closer.
        changes["tol"] = 1e-5
    one, two = weighted_and_repeated(model, rows, targets, **changes)
    tolerance = 1e-3 if single else 1e-7
    np.testing.assert_allclose(one.predict(rows), two.predict(rows), atol=tolerance)
    np.testing.assert_allclose(one.intercept_, two.intercept_, atol=tolerance)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 1.0, 2: 0.5}], ids=str)
def test_classifiers_and_their_classes(model, class_weight):
    one, two = weighted_and_repeated(model, X, LABELS, class_weight=class_weight)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-7)
    if isinstance(class_weight, dict):
        rows = np.array([class_weight[label] for label in LABELS]) * WEIGHTS
        three = fresh(model).fit(X, LABELS, sample_weight=rows)
        np.testing.assert_allclose(one.decision_function(X), three.decision_function(X), atol=1e-7)
    with pytest.raises(ValueError, match="class_weight="):
        fresh(model, class_weight="even").fit(X, LABELS)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        RLSRegressor(0.3, gamma=0.4),
        LinearRLSRegressor(0.3, solver="primal"),
        LinearRLSRegressor(0.3, solver="dual"),
        LowRankRLSRegressor(selection=POINTS, alpha=0.3, gamma=0.4),
    ],
    ids=name,
)
def test_leave_one_out_values_with_weights_are_refits(model, intercept):
    how = {"fit_intercept": intercept}
    whole = fresh(model, leave_one_out=True, **how).fit(X, Y, sample_weight=WEIGHTS)
    for i in range(0, N, 3):
        rest = np.delete(np.arange(N), i)
        without = fresh(model, **how).fit(X[rest], Y[rest], sample_weight=WEIGHTS[rest])
        np.testing.assert_allclose(whole.loo_prediction_[i], without.predict(X[[i]])[0], atol=1e-7)
    error = np.average(((whole.loo_prediction_ - Y) ** 2).mean(axis=1), weights=WEIGHTS)
    np.testing.assert_allclose(whole.loo_error_, error)


def test_linear_solvers_agree_with_weighted_ridge():
    weights = np.random.default_rng(5).uniform(0.1, 3.0, N)
    for intercept in (False, True):
        peer = Ridge(0.7, fit_intercept=intercept).fit(X, Y, sample_weight=weights)
        for solver in ("primal", "dual", "cg"):
            model = LinearRLSRegressor(0.7, solver=solver, fit_intercept=intercept, tol=1e-12)
            model.fit(sp.csr_array(X), Y, sample_weight=weights)
            np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-9)
            np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_preconditioned_gradients_with_weights_reach_the_exact_solution(rng, intercept):
    """More rows than the preconditioner needs to have points, and weights of very different sizes."""
    rows, targets = rng.normal(size=(700, 3)), rng.normal(size=(700, 2))
    weights = 10.0 ** rng.uniform(-2.0, 1.0, size=700)
    how = {"gamma": 0.3, "fit_intercept": intercept}
    exact = RLSRegressor(0.1, **how).fit(rows, targets, sample_weight=weights)
    model = RLSRegressor(0.1, solver="cg", tol=1e-10, **how).fit(rows, targets, sample_weight=weights)
    np.testing.assert_allclose(model.predict(rows), exact.predict(rows), atol=1e-6)


def test_subsets_of_weighted_rows_are_weighted_systems():
    model = LowRankRLSRegressor(12, alpha=0.3, gamma=0.4, method="subset", leave_one_out=True, random_state=0)
    model.fit(X, Y, sample_weight=WEIGHTS)
    rows = model.indices_
    assert (WEIGHTS[rows] > 0).all()
    exact = RLSRegressor(0.3, gamma=0.4).fit(X[rows], Y[rows], sample_weight=WEIGHTS[rows])
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-9)
    assert np.isfinite(model.loo_prediction_).all()


def test_weighted_pieces_and_merged_models_equal_all_at_once():
    how = {"selection": POINTS, "gamma": 0.4, "alpha": 0.3, "fit_intercept": True}
    once = LowRankRLSClassifier(**how).fit(X, LABELS, sample_weight=WEIGHTS)
    pieces = LowRankRLSClassifier(**how)
    for start in range(0, N, 16):
        part = slice(start, start + 16)
        pieces.partial_fit(X[part], LABELS[part], classes=[0, 1, 2], sample_weight=WEIGHTS[part])
    pieces.partial_fit(X[:3], LABELS[:3], sample_weight=np.zeros(3))
    parts = [
        LowRankRLSClassifier(**how).fit(X[part], LABELS[part], sample_weight=WEIGHTS[part])
        for part in (slice(0, 20), slice(20, N))
    ]
    for model in (pieces, parts[0].merge(parts[1])):
        np.testing.assert_allclose(model.decision_function(X), once.decision_function(X), atol=1e-8)
        assert model.n_seen_ == once.n_seen_ == (WEIGHTS > 0).sum()
    with pytest.raises(ValueError, match="sample weights are all zero"):
        LowRankRLSClassifier(**how).partial_fit(X, LABELS, classes=[0, 1, 2], sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        LowRankRLSClassifier(class_weight="balanced").partial_fit(X, LABELS, classes=[0, 1, 2])


@pytest.mark.parametrize("model", [RLSClassifier, LinearRLSClassifier, LowRankRLSClassifier])
def test_weights_that_count_nothing_are_refused(model):
    with pytest.raises(ValueError, match="the sample weights are all zero"):
        model().fit(X, LABELS, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        model().fit(X, LABELS, sample_weight=-np.ones(N))


def test_leave_one_out_is_computed_where_it_chooses_and_where_it_is_asked_for():
    plain = RLSClassifier(leave_one_out=True).fit(X, LABELS)
    assert plain.loo_decision_.shape == (N, 3)
    plain.set_params(leave_one_out="auto").fit(X, LABELS)
    assert not hasattr(plain, "loo_decision_")
    assert not hasattr(plain, "loo_error_")
    assert plain.loo_error_bound_.shape == (3,)
    assert RLSClassifier(alphas=[0.1, 1.0]).fit(X, LABELS).loo_decision_.shape == (N, 3)
    iterated = RLSClassifier(solver="cg").fit(X, LABELS)
    exact = RLSClassifier().fit(X, LABELS)
    np.testing.assert_allclose(iterated.decision_function(X), exact.decision_function(X), atol=1e-4)
    assert iterated.dual_coef_.shape == (3, N)
    assert RLSRegressor().fit(X, Y[:, 0]).dual_coef_.shape == (1, N)
    with pytest.raises(ValueError, match="leave_one_out=True is not allowed: it must be False or 'auto' for"):
        RLSClassifier(solver="cg", leave_one_out=True).fit(X, LABELS)
    with pytest.raises(ValueError, match="leave_one_out=False is not allowed: it must be True or 'auto'"):
        RLSClassifier(alphas=[1.0], leave_one_out=False).fit(X, LABELS)
