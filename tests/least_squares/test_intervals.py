"""Intervals, standard deviations and doubtful labels equal those of real refits and keep their coverage."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC, RLSClassifier, RLSRegressor, load, save
from svmarrow.inspection import suspicious_samples
from svmarrow.least_squares.targets import conformal_limits

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-2.0, 2.0, (120, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.2 * RANDOM.standard_normal(120)
NEW = RANDOM.uniform(-2.0, 2.0, (17, 2))
WEIGHTS = RANDOM.integers(0, 4, 120) / 2.0

MODELS = {
    "rbf": RLSRegressor(0.1, gamma=0.7),
    "intercept": RLSRegressor(0.1, gamma=0.7, fit_intercept=True),
    "linear": RLSRegressor(0.5, kernel="linear", fit_intercept=True),
    "poly": RLSRegressor(2.0, kernel="poly", degree=2, coef0=1.0, gamma=0.5),
    "laplacian": RLSRegressor(0.1, kernel="laplacian", gamma=0.5),
    "function": RLSRegressor(
        0.1, kernel=lambda a, b: np.exp(-0.7 * ((a[:, None] - np.asarray(b)) ** 2).sum(2))
    ),
    "cg": RLSRegressor(0.1, gamma=0.7, solver="cg", tol=1e-13),
    "chosen": RLSRegressor(alphas=[0.05, 0.5], gamma=0.7, fit_intercept=True),
}


def refits(model, X, Y, weights=None):
    """Models without one of the rows, by real fits, with the rows that were left out."""
    for i in np.flatnonzero(np.ones(len(X)) if weights is None else weights):
        kept = np.arange(len(X)) != i
        own = {} if weights is None else {"sample_weight": weights[kept]}
        yield i, clone(model).fit(X[kept], Y[kept], **own)


def by_refits(model, X, Y, new, coverage, weights=None):
    """The jackknife+ from its definition."""
    low, high = [], []
    for i, without in refits(model, X, Y, weights):
        error = np.abs(Y[i] - without.predict(X[i : i + 1])[0])
        predicted = without.predict(new)
        low.append(predicted - error)
        high.append(predicted + error)
    n = len(low)
    last = int(np.ceil(round(coverage * (n + 1), 9)))
    low, high = np.sort(low, axis=0), np.sort(high, axis=0)
    return np.stack([low[n - last], high[last - 1]], axis=-1)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_equal_those_of_actual_refits(name, coverage):
    model = clone(MODELS[name]).fit(X, Y)
    refitted = clone(model) if name != "chosen" else RLSRegressor(model.alpha_, gamma=0.7, fit_intercept=True)
    expected = by_refits(refitted, X, Y, NEW, coverage)
    found = model.predict_interval(NEW, coverage)
    assert found.shape == (17, 2)
    np.testing.assert_allclose(found, expected, atol=1e-8 if name != "cg" else 1e-7)


def test_two_hundred_refits_with_several_outputs_and_weights():
    rows = RANDOM.uniform(-2.0, 2.0, (200, 3))
    targets = np.column_stack([np.cos(rows[:, 0]), rows[:, 1] ** 2]) + 0.1 * RANDOM.standard_normal((200, 2))
    weights = RANDOM.integers(0, 3, 200) * 0.5
    model = RLSRegressor(0.2, gamma=0.4, fit_intercept=True).fit(rows, targets, weights)
    found = model.predict_interval(NEW @ np.ones((2, 3)), 0.8)
    assert found.shape == (17, 2, 2)
    expected = by_refits(model, rows, targets, NEW @ np.ones((2, 3)), 0.8, weights)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("form", [sp.csr_array, np.float32, np.asfortranarray])
def test_other_forms_of_rows_give_the_same_intervals(form):
    rows, new = (X, NEW) if form is np.float32 else (form(X), form(NEW))
    if form is np.float32:
        rows, new = X.astype(np.float32), NEW.astype(np.float32)
    plain = RLSRegressor(0.1, gamma=0.7).fit(X, Y).predict_interval(NEW)
    found = RLSRegressor(0.1, gamma=0.7).fit(rows, Y).predict_interval(new)
    np.testing.assert_allclose(found, plain, atol=1e-3 if form is np.float32 else 1e-9)


def test_ends_are_infinite_where_rows_are_too_few():
    model = RLSRegressor(0.1).fit(X[:8], Y[:8])
    assert np.isinf(model.predict_interval(NEW, 0.9)).all()
    assert np.isfinite(model.predict_interval(NEW, 8 / 9)).all()
    # A decimal fraction of a whole number is whole: 0.9 * 10 is the ninth of nine.
    low, high = conformal_limits(np.arange(9.0)[None], np.arange(9.0)[None], 0.9)
    assert (low, high) == (0.0, 8.0)


def test_standard_deviations_are_those_of_a_gaussian_process():
    peer = GaussianProcessRegressor(RBF(0.8), alpha=0.1, optimizer=None).fit(X, Y)
    mean, std = peer.predict(NEW, return_std=True)
    model = RLSRegressor(0.1, gamma=0.5 / 0.8**2).fit(X, Y)
    ours, deviations = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(ours, mean, atol=1e-8)
    np.testing.assert_allclose(deviations, std, atol=1e-8)
    weighted = RLSRegressor(0.1, gamma=0.5 / 0.8**2).fit(X, Y, WEIGHTS)
    used = WEIGHTS > 0
    peer = GaussianProcessRegressor(RBF(0.8), alpha=0.1 / WEIGHTS[used], optimizer=None)
    _, std = peer.fit(X[used], Y[used]).predict(NEW, return_std=True)
    np.testing.assert_allclose(weighted.predict(NEW, return_std=True)[1], std, atol=1e-8)


def test_an_intercept_is_a_constant_of_infinite_variance():
    kernel = ConstantKernel(1e7, "fixed") + RBF(0.8)
    _, std = (
        GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(X, Y).predict(NEW, return_std=True)
    )
    model = RLSRegressor(0.1, gamma=0.5 / 0.8**2, fit_intercept=True).fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW, return_std=True)[1], std, rtol=1e-4)


@pytest.mark.parametrize("name", ["linear", "poly", "laplacian", "function"])
def test_standard_deviations_of_other_kernels_follow_from_their_matrices(name):
    model = clone(MODELS[name]).set_params(fit_intercept=False).fit(X, Y)
    both = np.concatenate([X, NEW])
    parts = {"vectors": both, "coefficients": np.eye(len(both)), "intercepts": np.zeros(len(both))}
    kernel = model.expansion_.replaced(**parts).decision_function(both)
    n = len(X)
    inverse = np.linalg.inv(kernel[:n, :n] + model.alpha * np.eye(n))
    variance = kernel[n:, n:].diagonal() - np.einsum("ij,jk,ik->i", kernel[n:, :n], inverse, kernel[n:, :n])
    np.testing.assert_allclose(model.predict(NEW, return_std=True)[1], np.sqrt(variance), atol=1e-7)


@pytest.mark.parametrize("targets", [1, 9, 10, 11, 40])
def test_any_number_of_targets_is_solved_for_exactly(targets):
    # From 1,000 rows on, few targets are solved for by refining a factor in single precision.
    random = np.random.default_rng(targets)
    rows, aims = random.standard_normal((1200, 4)), random.standard_normal((1200, targets))
    model = RLSRegressor(0.1, gamma=0.2).fit(rows, aims)
    kernel = np.exp(-0.2 * ((rows[:, None] - rows) ** 2).sum(axis=2))
    exact = np.linalg.solve(kernel + 0.1 * np.eye(1200), aims)
    np.testing.assert_allclose(model.dual_coef_.T, exact, atol=1e-9 * np.abs(exact).max())


def test_coverage_is_what_was_asked_for():
    hits, width = [], []
    for seed in range(20):
        random = np.random.default_rng(seed)
        rows = random.uniform(-2.0, 2.0, (150, 1))
        targets = np.sin(3.0 * rows[:, 0]) + (0.1 + 0.2 * np.abs(rows[:, 0])) * random.standard_normal(150)
        model = RLSRegressor(0.5, gamma=1.0).fit(rows[:100], targets[:100])
        low, high = model.predict_interval(rows[100:], 0.8).T
        hits.append(np.mean((low <= targets[100:]) & (targets[100:] <= high)))
        width.append(np.mean(high - low))
    assert abs(np.mean(hits) - 0.8) < 2.0 * np.std(hits) / np.sqrt(20) + 0.01
    assert np.mean(width) < 2.0


def margins(outputs):
    if outputs.ndim == 1:
        return np.column_stack([-outputs, outputs])
    others = [np.delete(outputs, k, axis=1).max(axis=1) for k in range(outputs.shape[1])]
    return outputs - np.column_stack(others)


def test_sets_of_classes_equal_those_of_actual_refits():
    random = np.random.default_rng(1)
    rows, labels = load_iris(return_X_y=True)
    chosen = random.permutation(150)
    rows, labels = rows[chosen], labels[chosen]
    new = rows[60:90] + 0.5 * random.standard_normal((30, 4))
    for classes in (2, 3):
        kept = labels[:60] < classes
        train, own = rows[:60][kept], labels[:60][kept]
        model = RLSClassifier(0.3, gamma=0.3, fit_intercept=True).fit(train, own)
        smaller = np.zeros((30, classes))
        for i, without in refits(model, train, own):
            left = margins(without.decision_function(train[i : i + 1]))[0, own[i]]
            smaller += margins(without.decision_function(new)) < left
        for coverage in (0.6, 0.95):
            expected = smaller < coverage * (len(own) + 1)
            assert np.array_equal(model.predict_set(new, coverage), expected)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 1: 0.5}])
def test_weights_of_classes_count_in_the_models_without_one_row(class_weight):
    labels = (Y > 0.6).astype(int)
    model = RLSClassifier(0.3, gamma=0.7, class_weight=class_weight).fit(X, labels, WEIGHTS)
    used = np.flatnonzero(WEIGHTS)
    counts = np.bincount(labels, WEIGHTS)
    of_class = counts.sum() / (2 * counts) if class_weight == "balanced" else np.array([3.0, 0.5])
    weights = WEIGHTS * of_class[labels]
    smaller = np.zeros((len(NEW), 2))
    for i in used:
        kept = np.setdiff1d(used, [i])
        plain = RLSRegressor(0.3, gamma=0.7).fit(X[kept], 2.0 * labels[kept] - 1.0, weights[kept])
        sign = 2.0 * labels[i] - 1.0
        left = sign * plain.predict(X[i : i + 1])[0]
        smaller += margins(plain.predict(NEW)) < left
    assert np.array_equal(model.predict_set(NEW, 0.9), smaller < 0.9 * (used.size + 1))


def test_sets_hold_the_label_as_often_as_asked_for():
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = StandardScaler().fit_transform(rows)
    hits, sizes = [], []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(labels))
        train, test = order[:250], order[250:]
        model = RLSClassifier(1.0, gamma=0.02).fit(rows[train], labels[train])
        sets = model.predict_set(rows[test], 0.95)
        hits.append(np.mean(sets[np.arange(test.size), labels[test]]))
        sizes.append(sets.sum(axis=1).mean())
    assert abs(np.mean(hits) - 0.95) < 0.03
    assert np.mean(sizes) < 1.2


def test_flipped_labels_are_the_most_suspicious():
    rows, labels = load_iris(return_X_y=True)
    wrong = np.array([3, 60, 120, 141])
    noisy = labels.copy()
    noisy[wrong] = (labels[wrong] + 1) % 3
    model = RLSClassifier(0.1).fit(rows, noisy)
    found = suspicious_samples(model)
    assert set(wrong) <= set(found.indices.tolist())
    assert set(found.indices[:3].tolist()) <= set(wrong)
    place = [found.indices.tolist().index(row) for row in wrong]
    assert (found.predictions[place] == labels[wrong]).mean() >= 0.75
    assert np.all(np.diff(found.scores) >= 0.0)
    assert np.all(found.scores < 0.0)
    # The margins are those of the exact leave-one-out outputs.
    exact = RLSClassifier(0.1, leave_one_out=True).fit(rows, noisy)
    outputs = exact.loo_decision_[found.indices]
    assert np.array_equal(found.predictions, exact.classes_[outputs.argmax(axis=1)])
    assert len(suspicious_samples(model, 7)) == 7


def test_targets_with_errors_are_the_most_suspicious():
    targets = Y.copy()
    targets[[5, 50]] += [3.0, -3.0]
    found = suspicious_samples(RLSRegressor(0.1, gamma=0.7).fit(X, targets), 2)
    assert set(found.indices.tolist()) == {5, 50}
    weights = np.ones(120)
    weights[5] = 0.0
    found = suspicious_samples(RLSRegressor(0.1, gamma=0.7).fit(X, targets, weights))
    assert found.indices[0] == 50
    assert 5 not in found.indices
    assert found.scores[0] > 3.0


def test_a_refit_a_copy_and_a_file_have_intervals_of_their_own(tmp_path):
    model = RLSRegressor(0.1, gamma=0.7).fit(X, Y, WEIGHTS)
    first = model.predict_interval(NEW)
    for again in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, Y, WEIGHTS)):
        assert again._left_out is None
        assert np.array_equal(again.predict_interval(NEW), first)
    save(model, tmp_path / "model.safetensors")
    assert np.array_equal(load(tmp_path / "model.safetensors").predict_interval(NEW), first)
    model.fit(X[:60], Y[:60])
    fresh = RLSRegressor(0.1, gamma=0.7).fit(X[:60], Y[:60])
    assert np.array_equal(model.predict_interval(NEW), fresh.predict_interval(NEW))


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, np.nan, "0.9", None])
def test_a_coverage_outside_its_range_is_refused(coverage):
    with pytest.raises(ValueError, match="coverage="):
        RLSRegressor().fit(X, Y).predict_interval(NEW, coverage)
    with pytest.raises(ValueError, match="coverage="):
        RLSClassifier().fit(X, Y > 0).predict_set(NEW, coverage)


def test_models_without_intervals_refuse_them():
    gram = X @ X.T
    model = RLSRegressor(1.0, kernel="precomputed").fit(gram, Y)
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        model.predict_interval(gram)
    with pytest.raises(TypeError, match="RLSClassifier"):
        suspicious_samples(SVC().fit(X, Y > 0))
    with pytest.raises(ValueError, match="n_samples=-1"):
        suspicious_samples(RLSRegressor().fit(X, Y), -1)
    with pytest.raises(ValueError, match="features"):
        RLSRegressor().fit(X, Y).predict_interval(NEW[:, :1])
