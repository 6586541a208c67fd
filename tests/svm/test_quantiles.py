"""QuantileSVR and its search: optimal, the shares that it promises, the same by every way in."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score, make_scorer, mean_pinball_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from svmarrow import SVR, compress, load, save
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.svm import QuantileSVR

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-2.0, 2.0, (300, 3))
Y = np.sin(2.0 * X[:, 0]) + (0.2 + 0.3 * np.abs(X[:, 1])) * RANDOM.standard_normal(300)
QUANTILES = [0.1, 0.5, 0.9]
GRAM = np.exp(-0.5 * ((X[:, np.newaxis] - X) ** 2).sum(axis=2))


def objectives(model, K, y, C, q, j):
    """Primal and dual objective of one output, in double precision from the definition."""
    beta = np.zeros(y.size)
    beta[model.support_] = np.atleast_2d(model.dual_coef_)[j]
    residual = y - K @ beta - model.intercept_[j]
    primal = 0.5 * beta @ K @ beta + np.sum(C * np.maximum(q * residual, (q - 1.0) * residual))
    return primal, beta @ y - 0.5 * beta @ K @ beta, beta


@pytest.mark.parametrize("weighted", [False, True])
def test_solutions_are_feasible_and_have_no_gap(weighted):
    weights = RANDOM.uniform(0.1, 3.0, Y.size) if weighted else np.ones(Y.size)
    model = QuantileSVR(QUANTILES, C=5.0, gamma=0.5, tol=1e-6).fit(X, Y, weights)
    for j, q in enumerate(QUANTILES):
        primal, dual, beta = objectives(model, GRAM, Y, 5.0 * weights, q, j)
        assert np.all(beta <= 5.0 * weights * q * (1 + 1e-12))
        assert np.all(beta >= -5.0 * weights * (1.0 - q) * (1 + 1e-12))
        assert abs(beta.sum()) < 1e-8 * np.abs(beta).sum()
        assert abs(primal - dual) < 1e-5 * primal
        certificate = model.certificate_.machines[j]
        assert certificate.dual <= dual + 1e-9 * primal
        assert certificate.primal >= primal - 1e-9 * primal
    assert model.fit_status_ == 0


def test_the_median_is_svr_without_a_tube():
    # The pinball loss of the median is half the absolute error.
    median = QuantileSVR(C=4.0, gamma=0.5, tol=1e-6).fit(X, Y)
    regression = SVR(C=2.0, epsilon=0.0, gamma=0.5, tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(median.predict(X), regression.predict(X), atol=1e-4)
    assert median.predict(X).shape == (300,)


def test_linear_quantiles_without_a_penalty_are_those_of_a_linear_program():
    q = 0.3
    model = QuantileSVR(q, kernel="linear", C=1e3, tol=1e-5).fit(X, Y)
    peer = QuantileRegressor(quantile=q, alpha=0.0).fit(X, Y)
    assert mean_pinball_loss(Y, model.predict(X), alpha=q) == pytest.approx(
        mean_pinball_loss(Y, peer.predict(X), alpha=q), rel=1e-3
    )
    np.testing.assert_allclose(np.ravel(model.coef_), peer.coef_, atol=0.02)


def test_small_problems_are_solved_exactly():
    # The l1-penalty of a linear program stands for no penalty at all: seven samples, five quantiles.
    x, y = np.arange(7.0)[:, np.newaxis], np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0])
    for q in (0.05, 0.25, 0.5, 0.77, 0.95):
        ones = np.ones((7, 1))
        A = np.hstack([x, -x, ones, -ones, np.eye(7), -np.eye(7)])
        c = np.concatenate([np.zeros(4), np.full(7, q), np.full(7, 1 - q)])
        least = linprog(c, A_eq=A, b_eq=y).fun
        model = QuantileSVR(q, kernel="linear", C=1e3, tol=1e-6).fit(x, y)
        assert 7 * mean_pinball_loss(y, model.predict(x), alpha=q) == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("q", QUANTILES)
def test_the_share_of_targets_below_is_the_quantile(q):
    model = QuantileSVR(q, C=10.0, gamma=0.5, tol=1e-5).fit(X, Y)
    residual = Y - model.predict(X)
    assert np.mean(residual < -1e-4) <= q
    assert np.mean(residual > 1e-4) <= 1.0 - q


def test_shares_hold_on_unseen_samples():
    random = np.random.default_rng(3)

    def draw(n):
        rows = random.uniform(-2.0, 2.0, (n, 1))
        return rows, np.sin(2.0 * rows[:, 0]) + (0.2 + 0.2 * np.abs(rows[:, 0])) * random.standard_normal(n)

    model = QuantileSVR(QUANTILES, C=1.0, gamma=0.5).fit(*draw(3000))
    rows, targets = draw(20_000)
    below = (targets[:, np.newaxis] < model.predict(rows)).mean(axis=0)
    # Two standard errors of the training and of the test samples.
    error = 2.0 * np.sqrt(np.multiply(QUANTILES, np.subtract(1.0, QUANTILES)) * (1 / 3000 + 1 / 20_000))
    assert np.all(np.abs(below - QUANTILES) < error + 0.005)


def test_several_quantiles_are_the_single_ones():
    several = QuantileSVR(QUANTILES, C=3.0, gamma=0.5, tol=1e-7).fit(X, Y)
    assert several.predict(X).shape == (300, 3)
    assert several.quantiles_.tolist() == QUANTILES
    for j, q in enumerate(QUANTILES):
        alone = QuantileSVR(q, C=3.0, gamma=0.5, tol=1e-7).fit(X, Y)
        np.testing.assert_allclose(several.predict(X)[:, j], alone.predict(X), atol=1e-5)
    column = QuantileSVR([0.5]).fit(X, Y)
    assert column.predict(X).shape == (300, 1)


def test_every_way_in_gives_one_model():
    reference = QuantileSVR(QUANTILES, gamma=0.5, tol=1e-6).fit(X, Y)
    predicted = reference.predict(X)
    gram = QuantileSVR(QUANTILES, kernel="precomputed", tol=1e-6).fit(GRAM, Y)
    np.testing.assert_allclose(gram.predict(GRAM), predicted, atol=1e-4)
    sparse = QuantileSVR(QUANTILES, gamma=0.5, tol=1e-6).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), predicted, atol=1e-4)
    function = QuantileSVR(QUANTILES, kernel=lambda a, b: np.exp(-0.5 * _distances(a, b)), tol=1e-6)
    np.testing.assert_allclose(function.fit(X, Y).predict(X), predicted, atol=1e-4)
    one = QuantileSVR(QUANTILES, gamma=0.5, tol=1e-6, n_jobs=1).fit(X, Y)
    assert np.array_equal(one.predict(X), predicted)


def _distances(a, b):
    return ((np.asarray(a)[:, np.newaxis] - np.asarray(b)) ** 2).sum(axis=2)


def test_rows_of_weight_zero_take_no_part_and_two_counts_twice():
    weights = RANDOM.integers(0, 3, Y.size).astype(float)
    weighted = QuantileSVR(QUANTILES, gamma=0.5, tol=1e-7).fit(X, Y, weights)
    repeated = np.repeat(np.arange(Y.size), weights.astype(int))
    plain = QuantileSVR(QUANTILES, gamma=0.5, tol=1e-7).fit(X[repeated], Y[repeated])
    np.testing.assert_allclose(weighted.predict(X), plain.predict(X), atol=1e-4)
    assert not np.isin(weighted.support_, np.flatnonzero(weights == 0)).any()


def test_a_warm_start_reaches_the_same_optimum():
    model = QuantileSVR(QUANTILES, C=1.0, gamma=0.5, tol=1e-6, warm_start=True).fit(X, Y)
    model.set_params(C=3.0).fit(X, Y)
    cold = QuantileSVR(QUANTILES, C=3.0, gamma=0.5, tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), cold.predict(X), atol=1e-4)
    # Another number of quantiles starts from zero.
    model.set_params(quantile=0.5).fit(X, Y)
    assert model.predict(X).shape == (300,)


def test_files_and_compression_keep_the_quantiles(tmp_path):
    model = QuantileSVR(QUANTILES, C=3.0, gamma=0.5).fit(X, Y)
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.score(X, Y) == model.score(X, Y)
    small = compress(model, n_vectors=40, X=X)
    assert small.predict(X).shape == (300, 3)
    spread = np.std(model.predict(X))
    assert np.sqrt(np.mean((small.predict(X) - model.predict(X)) ** 2)) < 0.2 * spread


def test_scores_are_shares_of_the_pinball_loss():
    model = QuantileSVR(QUANTILES, C=3.0, gamma=0.5).fit(X, Y)
    predicted = model.predict(X)
    expected = np.mean([d2_pinball_score(Y, predicted[:, j], alpha=q) for j, q in enumerate(QUANTILES)])
    assert model.score(X, Y) == pytest.approx(expected)
    assert 0.0 < np.mean(cross_val_score(QuantileSVR(0.9, gamma=0.5), X, Y)) < 1.0
    searched = GridSearchCV(make_pipeline(StandardScaler(), QuantileSVR(0.2)), {"quantilesvr__C": [0.1, 1.0]})
    assert searched.fit(X, Y).best_score_ > 0.0


@pytest.mark.parametrize("search", ["full", "racing"])
@pytest.mark.parametrize("q", [0.1, 0.5])
def test_the_search_scores_as_scikit_learn_does(q, search):
    folds = KFold(3, shuffle=True, random_state=0)
    Cs, gammas = [0.3, 3.0], [0.1, 1.0]
    own = QuantileSVRCV(q, Cs=Cs, gammas=gammas, cv=folds, search=search, tol=1e-5).fit(X, Y)
    scorer = make_scorer(d2_pinball_score, alpha=q)
    peer = GridSearchCV(QuantileSVR(q, tol=1e-5), {"gamma": gammas, "C": Cs}, cv=folds, scoring=scorer).fit(
        X, Y
    )
    assert own.best_params_ == peer.best_params_
    assert own.best_score_ == pytest.approx(peer.best_score_, abs=1e-4)
    if search == "full":
        ours = {(p["C"], p["gamma"]): s for p, s in _results(own)}
        for point, score in _results(peer):
            assert ours[point["C"], point["gamma"]] == pytest.approx(score, abs=1e-4)
    np.testing.assert_allclose(own.predict(X) - own.intercept_adjustment_, peer.predict(X), atol=1e-4)
    own.set_params(adjust_intercept=False).fit(X, Y)
    np.testing.assert_allclose(own.predict(X), peer.predict(X), atol=1e-4)
    assert own.intercept_adjustment_ == 0.0
    assert own.score(X, Y) == pytest.approx(peer.score(X, Y), abs=1e-4)


def _results(search):
    return zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)


def test_a_search_takes_weights_and_a_scorer():
    weights = RANDOM.uniform(0.0, 2.0, Y.size)
    search = QuantileSVRCV(0.9, Cs=3, gammas=2, cv=3).fit(X, Y, sample_weight=weights)
    assert 0.8 < np.average(search.predict(X) >= Y, weights=weights) < 1.0
    named = QuantileSVRCV(0.9, Cs=3, gammas=2, cv=3, scoring="neg_mean_absolute_error").fit(X, Y)
    assert named.best_score_ < 0.0


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_intercept_moves_by_the_quantile_of_held_out_residuals(kernel, weighted):
    weights = RANDOM.integers(0, 3, Y.size).astype(float) if weighted else None
    folds = KFold(4, shuffle=True, random_state=1)
    rows = rbf_kernel(X, gamma=0.5) if kernel == "precomputed" else X
    search = QuantileSVRCV(0.9, Cs=[3.0], gammas=[0.5], cv=folds, kernel=kernel)
    search.fit(rows, Y, sample_weight=weights)
    residuals = np.empty_like(Y)
    model = QuantileSVR(0.9, C=3.0, gamma=0.5, kernel=kernel)
    for train, test in folds.split(X):
        columns = train if kernel == "precomputed" else slice(None)
        own = None if weights is None else weights[train]
        fitted = model.fit(rows[train][:, columns], Y[train], own)
        residuals[test] = Y[test] - fitted.predict(rows[test][:, columns])
    expected = np.quantile(residuals, 0.9, weights=weights, method="inverted_cdf")
    assert search.intercept_adjustment_ == pytest.approx(expected, abs=1e-6)
    unmoved = model.fit(rows, Y, weights)
    np.testing.assert_allclose(search.intercept_, unmoved.intercept_ + expected, atol=1e-6)
    np.testing.assert_array_equal(search.best_estimator_.predict(rows), search.predict(rows))


def test_shares_on_unseen_samples_follow_the_adjustment():
    random = np.random.default_rng(0)
    rows, targets = random.normal(size=(4400, 6)), random.normal(size=4400)
    train, test = slice(0, 400), slice(400, None)
    search = QuantileSVRCV(0.9, Cs=[10.0], gammas=[1.0], cv=5)
    adjusted = np.mean(targets[test] < search.fit(rows[train], targets[train]).predict(rows[test]))
    search.set_params(adjust_intercept=False).fit(rows[train], targets[train])
    plain = np.mean(targets[test] < search.predict(rows[test]))
    # Two standard errors of a quantile of 400 training and of 4,000 test samples.
    assert abs(adjusted - 0.9) < 2.0 * (0.09 / 400 + 0.09 / 4000) ** 0.5
    assert plain < adjusted


@pytest.mark.parametrize(
    "quantile", [0.0, 1.0, -0.1, np.nan, np.inf, "0.5", None, True, [], [0.5, 1.0], [[0.5]]]
)
def test_quantiles_outside_their_range_are_refused(quantile):
    with pytest.raises(ValueError, match="quantile="):
        QuantileSVR(quantile).fit(X, Y)
    if np.ndim(quantile) == 0:
        with pytest.raises(ValueError, match="quantile="):
            QuantileSVRCV(quantile).fit(X, Y)
