"""Leave-one-group-out values: those of models without a sample's whole group."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_friedman1

from svmarrow import RLSClassifier, RLSRegressor


def data(n=90, seed=0):
    X, y = make_friedman1(n, random_state=seed)
    groups = np.random.default_rng(seed).integers(0, 7, n)
    return X, y, groups


def refitted(make, X, y, groups, weights=None):
    """Outputs of models that are fitted without each group."""
    values = None
    for group in np.unique(groups):
        held_out = groups == group
        part = {} if weights is None else {"sample_weight": weights[~held_out]}
        model = make().fit(X[~held_out], y[~held_out], **part)
        outputs = getattr(model, "decision_function", model.predict)(X[held_out])
        values = np.zeros((len(y), *outputs.shape[1:])) if values is None else values
        values[held_out] = outputs
    return values


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "precomputed"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_values_of_regression_are_those_of_fits_without_the_group(kernel, fit_intercept):
    X, y, groups = data()
    weights = 0.5 + np.random.default_rng(1).random(len(y))

    def make(**more):
        name = "linear" if kernel == "precomputed" else kernel
        return RLSRegressor(0.3, kernel=name, gamma=0.4, fit_intercept=fit_intercept, **more)

    expected = refitted(make, X, y, groups, weights)
    model = make(leave_one_out=True)
    rows = X
    if kernel == "precomputed":
        model.set_params(kernel="precomputed")
        rows = X @ X.T
    model.fit(rows, y, weights, groups)
    assert np.allclose(model.loo_prediction_, expected, atol=1e-7)
    assert model.loo_error_ == pytest.approx(np.average((expected - y) ** 2, weights=weights))


def test_values_of_several_targets_and_labels():
    X, y, groups = data()
    targets = np.stack([y, X[:, 0], X[:, 1] ** 2], axis=1)
    model = RLSRegressor(0.1, leave_one_out=True, gamma=0.3).fit(X, targets, groups=groups)
    expected = refitted(lambda: RLSRegressor(0.1, gamma=0.3), X, targets, groups)
    assert np.allclose(model.loo_prediction_, expected, atol=1e-7)

    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    classifier = RLSClassifier(0.1, leave_one_out=True, gamma=0.3).fit(X, labels, groups=groups)
    expected = refitted(lambda: RLSClassifier(0.1, gamma=0.3), X, labels, groups)
    assert np.allclose(classifier.loo_decision_, expected, atol=1e-7)
    assert classifier.loo_error_ == pytest.approx(np.mean(expected.argmax(axis=1) != labels))
    assert not hasattr(
        RLSClassifier(0.1, leave_one_out=True).fit(X, labels, groups=groups), "loo_error_bound_"
    )


def test_each_sample_alone_is_leave_one_out():
    X, y, _ = data()
    each = RLSRegressor(0.1, leave_one_out=True).fit(X, y)
    alone = RLSRegressor(0.1, leave_one_out=True).fit(X, y, groups=[f"sample {i}" for i in range(len(y))])
    assert np.allclose(each.loo_prediction_, alone.loo_prediction_, atol=1e-9)
    assert np.array_equal(each.dual_coef_, alone.dual_coef_)


def test_penalties_and_widths_are_chosen_by_group():
    """Samples that are repeated: only without all copies is a large penalty seen to be better."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 3)), 5, axis=0) + 1e-3 * rng.normal(size=(150, 3))
    noise = np.repeat(rng.normal(size=30), 5)
    y, groups = X[:, 0] + noise, np.repeat(np.arange(30), 5)
    alphas = [1e-4, 1e-2, 1.0, 30.0]
    alone = RLSRegressor(alphas=alphas, gamma=0.5).fit(X, y)
    together = RLSRegressor(alphas=alphas, gamma=0.5).fit(X, y, groups=groups)
    errors = [
        np.mean((refitted(lambda a=a: RLSRegressor(a, gamma=0.5), X, y, groups) - y) ** 2) for a in alphas
    ]
    assert alone.alpha_ < together.alpha_ == alphas[int(np.argmin(errors))]
    assert np.allclose(together.loo_errors_, errors)
    wide = RLSRegressor(1.0, gamma="loo").fit(X, y, groups=groups)
    error = np.mean((refitted(lambda: RLSRegressor(1.0, gamma=wide.gamma_), X, y, groups) - y) ** 2)
    assert wide.loo_error_ == pytest.approx(error)


def test_samples_of_weight_zero_have_the_outputs_of_the_model():
    X, y, groups = data()
    weights = np.ones(len(y))
    weights[groups == 3] = 0.0
    model = RLSRegressor(0.1, leave_one_out=True, gamma=0.3).fit(X, y, weights, groups)
    counted = weights > 0.0
    part = RLSRegressor(0.1, leave_one_out=True, gamma=0.3)
    part.fit(X[counted], y[counted], groups=groups[counted])
    assert np.allclose(model.loo_prediction_[counted], part.loo_prediction_)
    assert np.allclose(model.loo_prediction_[~counted], part.predict(X[~counted]))


def test_labels_of_groups_may_be_anything_that_sorts():
    X, y, groups = data()
    expected = RLSRegressor(0.1, leave_one_out=True).fit(X, y, groups=groups).loo_prediction_
    for other in (groups.tolist(), groups * 1.5, pd.Series(groups), np.array(list("abcdefg"))[groups]):
        values = RLSRegressor(0.1, leave_one_out=True).fit(X, y, groups=other).loo_prediction_
        assert np.allclose(values, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(90), "one group"),
        (np.zeros(89), "shape"),
        (np.zeros((90, 1)), "shape"),
        ([None, *range(89)], "missing"),
        ([np.nan, *range(89)], "missing"),
        (["a", 1] * 45, None),
    ],
)
def test_wrong_groups_are_refused(groups, message):
    X, y, _ = data()
    model = RLSRegressor(0.1, leave_one_out=True)
    if message is None:
        # NumPy makes strings of both.
        assert model.fit(X, y, groups=groups).loo_error_ > 0.0
        return
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, groups=groups)


@pytest.mark.parametrize("parameters", [{}, {"leave_one_out": False}, {"solver": "cg"}])
def test_groups_without_leave_one_out_values_are_refused(parameters):
    X, y, groups = data()
    with pytest.raises(ValueError, match="groups are for leave-one-out values"):
        RLSRegressor(0.1, **parameters).fit(X, y, groups=groups)


def samples_as(X, kind):
    """Samples in another layout or type, and the same numbers in double precision."""
    if kind == "csr":
        sparse = sp.csr_array(np.where(X > 0.4, X, 0.0))
        return sparse, sparse.toarray()
    if kind == "bytes":
        whole = (255 * X).astype(np.uint8)
        return whole, whole.astype(np.float64)
    if kind == "one column":
        return X[:, :1], X[:, :1]
    single = X.astype(np.float32)
    return single, single.astype(np.float64)


@pytest.mark.parametrize("kind", ["csr", "bytes", "one column", "float32"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_layouts_types_and_weights_of_classes(kind, class_weight):
    X, y, groups = data(120)
    labels = np.digitize(y, np.quantile(y, [0.2, 0.5, 0.9]))
    samples, numbers = samples_as(X, kind)
    weights = 0.5 + np.random.default_rng(3).random(len(y))
    settings = {"gamma": "scale", "fit_intercept": True, "kernel": "matern32"}
    model = RLSClassifier(0.2, leave_one_out=True, class_weight=class_weight, **settings)
    model.fit(samples, labels, weights, groups)
    # Weights and the width stay as they are when a group leaves.
    by_class = np.ones(len(y))
    if class_weight == "balanced":
        totals = np.bincount(labels, weights)
        by_class = (weights.sum() / (totals.size * totals))[labels]
    settings["gamma"] = model.expansion_.gamma
    codes = np.where(labels[:, np.newaxis] == np.arange(4), 1.0, -1.0)
    expected = np.zeros((len(y), 4))
    for group in np.unique(groups):
        out = groups == group
        part = RLSRegressor(0.2, **settings).fit(numbers[~out], codes[~out], (weights * by_class)[~out])
        expected[out] = part.predict(numbers[out])
    assert np.allclose(model.loo_decision_, expected, atol=1e-6)


def test_a_class_of_one_group_and_two_groups():
    X, y, _ = data(60)
    labels = (np.arange(60) >= 40).astype(int)
    groups = np.where(labels == 1, 1, np.arange(60) % 2 * 2)
    model = RLSClassifier(0.1, leave_one_out=True, gamma=0.3).fit(X, labels, groups=groups)
    # Without its only group a class has no sample: all of them are wrong.
    assert (model.loo_decision_[labels == 1] < 0.0).all()
    two = RLSRegressor(1e-3, leave_one_out=True, gamma=0.3, fit_intercept=True).fit(X, y, groups=labels)
    expected = refitted(lambda: RLSRegressor(1e-3, gamma=0.3, fit_intercept=True), X, y, labels)
    assert np.allclose(two.loo_prediction_, expected, atol=1e-6)


def test_kernel_functions_of_objects_and_large_groups():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ab"), rng.integers(1, 9))) for _ in range(80)]
    y, groups = np.array([word.count("a") for word in words], dtype=float), np.arange(80) % 4

    def kernel(A, B):
        return np.array(
            [[np.exp(-abs(len(a) - len(b)) - abs(a.count("a") - b.count("a"))) for b in B] for a in A]
        )

    model = RLSRegressor(alphas=[0.01, 1.0], kernel=kernel).fit(words, y, groups=groups)
    expected = np.zeros(80)
    for group in range(4):
        out = groups == group
        rest = [word for word, is_out in zip(words, out, strict=True) if not is_out]
        part = RLSRegressor(model.alpha_, kernel=kernel).fit(rest, y[~out])
        expected[out] = part.predict([word for word, is_out in zip(words, out, strict=True) if is_out])
    assert np.allclose(model.loo_prediction_, expected, atol=1e-8)


def test_no_number_of_threads_changes_a_bit():
    X, y, groups = data(1200)
    values = [
        RLSRegressor(0.1, leave_one_out=True, n_jobs=n).fit(X, y, groups=groups).loo_prediction_
        for n in (1, 2, 3)
    ]
    assert np.array_equal(values[0], values[1])
    assert np.array_equal(values[0], values[2])
