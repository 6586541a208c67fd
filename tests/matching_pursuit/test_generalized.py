"""The size of a matching pursuit by generalized cross-validation."""

from __future__ import annotations

import numpy as np
import pytest

from svmarrow import KMPClassifier, KMPRegressor


def noisy(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples of a smooth function with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 3))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("variant", ["prefit", "backfit"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_error_is_that_of_its_definition(variant, fit_intercept):
    X, y = noisy(120, 0)
    settings = {"n_vectors": 70, "gamma": 0.5, "variant": variant, "fit_intercept": fit_intercept}
    model = KMPRegressor(early_stopping="gcv", precision="double", **settings).fit(X, y)
    path = KMPRegressor(precision="double", **settings).fit(X, y).path_
    errors = {}
    for size in range(1, 60):
        freedom = 2 * size + fit_intercept
        if freedom < len(y):
            errors[size] = np.mean((path[size].predict(X) - y) ** 2) / (1 - freedom / len(y)) ** 2
    assert model.n_vectors_ == min(errors, key=errors.__getitem__) < 50
    assert np.array_equal(model.predict(X), path[model.n_vectors_].predict(X))


def test_it_is_about_as_good_as_validation_on_other_samples():
    X_test, y_test = noisy(2000, 100)
    settings = {"n_vectors": 140, "gamma": 0.5, "random_state": 0}
    errors = {
        name: np.mean(
            [
                (KMPRegressor(**settings, **options).fit(*noisy(300, seed)).predict(X_test) - y_test) ** 2
                for seed in range(4)
            ]
        )
        for name, options in {
            "all": {},
            "gcv": {"early_stopping": "gcv"},
            "folds": {"early_stopping": True, "cv": 5},
        }.items()
    }
    assert errors["gcv"] < 1.15 * errors["folds"]
    assert errors["gcv"] < 0.75 * errors["all"]


def test_labels_of_several_classes():
    X, y = noisy(300, 3)
    labels = np.digitize(y, [-0.5, 0.5])
    model = KMPClassifier(n_vectors=140, gamma=0.5, early_stopping="gcv", precision="double")
    path = KMPClassifier(n_vectors=140, gamma=0.5, precision="double").fit(X, labels).path_
    codes = np.where(labels[:, np.newaxis] == np.arange(3), 1.0, -1.0)
    errors = {
        size: np.mean((path[size].decision_function(X) - codes) ** 2) / (1 - (2 * size + 1) / 300) ** 2
        for size in range(1, 141)
    }
    assert model.fit(X, labels).n_vectors_ == min(errors, key=errors.__getitem__) < 100


@pytest.mark.parametrize(
    ("options", "fitting", "message"),
    [
        ({"loss": "logistic"}, {}, "loss='logistic'"),
        ({"variant": "basic"}, {}, "variant='basic'"),
        ({"cv": 3}, {}, "cv=3"),
        ({"n_iter_no_change": 2}, {}, "n_iter_no_change=2"),
        ({"scoring": "accuracy"}, {}, "scoring='accuracy'"),
        ({}, {"sample_weight": np.arange(1, 61)}, "no weights"),
        ({"class_weight": "balanced"}, {}, "no weights"),
        ({}, {"X_val": np.zeros((2, 3)), "y_val": [0, 1]}, "no validation samples"),
    ],
)
def test_what_it_is_not_known_for_is_refused(options, fitting, message):
    X, y = noisy(60, 4)
    labels = (y > np.quantile(y, 0.4)).astype(int)
    with pytest.raises(ValueError, match=message):
        KMPClassifier(n_vectors=10, early_stopping="gcv", **options).fit(X, labels, **fitting)


def test_the_rule_of_the_parameter():
    with pytest.raises(ValueError, match="early_stopping='press' is not allowed"):
        KMPRegressor(early_stopping="press").fit(*noisy(30, 5))
