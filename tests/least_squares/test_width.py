"""The width that leave-one-out errors choose."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import svmarrow
from svmarrow import CodedClassifier, RLSClassifier, RLSRegressor

ALPHAS = np.logspace(-4, 1, 6)
RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-1.0, 1.0, size=(400, 2))
WAVES = np.sin(9.0 * X[:, 0])
LABELS = np.where(WAVES > 0.0, "up", "down")


def naive_error(width, kernel, alpha, targets, fit_intercept):
    """The mean squared leave-one-out error of refits."""
    wrong = []
    for i in range(len(targets)):
        rest = np.delete(np.arange(len(targets)), i)
        machine = RLSRegressor(alpha, gamma=width, kernel=kernel, fit_intercept=fit_intercept)
        machine.fit(X[: len(targets)][rest], targets[rest])
        wrong.append((machine.predict(X[i : i + 1])[0] - targets[i]) ** 2)
    return np.mean(wrong)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern32"])
def test_the_errors_of_the_widths_are_those_of_refits(kernel):
    y = WAVES[:60]
    model = RLSRegressor(0.01, gamma="loo", kernel=kernel, fit_intercept=True).fit(X[:60], y)
    assert len(model.gammas_) >= 3
    ratios = model.gammas_[1:] / model.gammas_[:-1]
    np.testing.assert_allclose(ratios, np.sqrt(2.0) if kernel == "matern32" else 2.0)
    expected = [naive_error(width, kernel, 0.01, y, True) for width in model.gammas_]
    np.testing.assert_allclose(model.gamma_errors_, expected, rtol=1e-6)


@pytest.mark.parametrize("estimator", [RLSRegressor, RLSClassifier])
@pytest.mark.parametrize("options", [{}, {"alphas": ALPHAS}, {"fit_intercept": True}])
def test_the_model_is_that_of_its_width(estimator, options):
    y = WAVES if estimator is RLSRegressor else LABELS
    model = estimator(gamma="loo", **options).fit(X[:200], y[:200])
    assert model.gamma_ in model.gammas_
    plain = estimator(gamma=model.gamma_, leave_one_out=True, **options).fit(X[:200], y[:200])
    assert plain.expansion_ == model.expansion_
    assert (plain.loo_error_, plain.alpha_) == (model.loo_error_, model.alpha_)
    assert model.gamma == "loo"
    assert clone(model).fit(X[:200], y[:200]).expansion_ == model.expansion_
    scale = estimator(**options).fit(X[:200], y[:200])
    assert model.loo_error_ <= scale.set_params(leave_one_out=True).fit(X[:200], y[:200]).loo_error_
    if estimator is RLSRegressor:
        assert model.score(X[200:], y[200:]) > scale.score(X[200:], y[200:]) + 0.05


def test_no_width_is_taken_that_is_not_clearly_better():
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(size=60)
        model = RLSRegressor(1.0, gamma="loo").fit(X[:60], noise)
        scale, best = 1.0 / (2 * X[:60].var()), model.gammas_[model.gamma_errors_.argmin()]
        machines = [RLSRegressor(1.0, gamma=width, leave_one_out=True) for width in (scale, best)]
        losses = [(one.fit(X[:60], noise).loo_prediction_ - noise) ** 2 for one in machines]
        gains = losses[0] - losses[1]
        is_better = gains.mean() > gains.std() / np.sqrt(60)
        assert model.gamma_ == pytest.approx(best if is_better else scale)


def test_a_refit_is_a_fresh_fit():
    model = RLSRegressor(0.01, gamma="loo").fit(X, WAVES).fit(10.0 * X, X[:, 1])
    fresh = RLSRegressor(0.01, gamma="loo").fit(10.0 * X, X[:, 1])
    assert (model.gamma_, model.expansion_) == (fresh.gamma_, fresh.expansion_)
    np.testing.assert_array_equal(model.gammas_, fresh.gammas_)


def test_weights_count_in_the_choice():
    # The samples of weight 0 would ask for a narrow kernel.
    far = X[:, 0] > 0.0
    y = np.where(far, WAVES, X[:, 1])
    weights = np.where(far, 0.0, 1.0)
    model = RLSRegressor(0.01, gamma="loo").fit(X, y, sample_weight=weights)
    alone = RLSRegressor(0.01, gamma="loo").fit(X[~far], y[~far])
    assert model.gamma_ == pytest.approx(alone.gamma_)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-6)
    assert RLSRegressor(0.01, gamma="loo").fit(X, y).gamma_ > model.gamma_


def test_wrappers_files_and_several_classes(tmp_path):
    rows, labels = load_iris(return_X_y=True)
    model = RLSClassifier(0.1, gamma="loo").fit(rows, labels)
    svmarrow.save(model, tmp_path / "model")
    loaded = svmarrow.load(tmp_path / "model")
    assert loaded.gamma_ == model.gamma_
    np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))
    coded = CodedClassifier(RLSClassifier(0.1, gamma="loo"), code="ovr").fit(rows, labels)
    np.testing.assert_array_equal(coded.predict(rows), model.predict(rows))
    pairs = CodedClassifier(RLSClassifier(0.1, gamma="loo"), code="ovo").fit(rows, labels)
    assert len(pairs.estimators_) == 3
    assert (pairs.predict(rows) == labels).mean() > 0.9
    assert model.estimate_memory(rows, labels).total > RLSClassifier().estimate_memory(rows, labels).total


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "cg"},
        {"leave_one_out": False},
        {"kernel": "linear"},
        {"kernel": "poly"},
        {"kernel": lambda A, B: A @ B.T},
    ],
)
def test_what_has_no_width_to_choose_is_refused(options):
    with pytest.raises(ValueError, match="gamma='loo' is not allowed"):
        RLSClassifier(gamma="loo", **options).fit(X, LABELS)
