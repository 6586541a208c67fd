"""Bounds for the leave-one-out error: never below what training again without each row finds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

from svmarrow import SVC, NuSVC, load


def true_errors(params, X, y):
    """How many rows are wrong when left out, by class."""
    wrong = np.zeros(len(y), dtype=bool)
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        if len(np.unique(y[rest])) > 1:
            wrong[i] = SVC(**params).fit(X[rest], y[rest]).predict(X[i : i + 1])[0] != y[i]
    return wrong


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [{"kernel": "rbf", "gamma": 0.3}, {"kernel": "linear"}, {"kernel": "laplacian", "gamma": 2.0}],
    ids=str,
)
@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_hold_for_actual_refits(loss, fit_intercept, kernel, seed):
    X, y = make_classification(50, 4, n_informative=3, n_redundant=0, flip_y=0.1, random_state=seed)
    for C in (0.1, 1.0, 20.0):
        params = {"loss": loss, "fit_intercept": fit_intercept, "C": C, "tol": 1e-4, **kernel}
        svc = SVC(**params).fit(X, y)
        wrong = true_errors(params, X, y)
        estimate = svc.certificate_.machines[0].leave_one_out
        assert (estimate.positive, estimate.negative) == (np.sum(y == 1), np.sum(y == 0))
        if not fit_intercept:
            assert svc.loo_error_bound_[0] >= wrong.mean()
            assert svc.loo_error_bound_[0] <= svc.xi_alpha_error_[0]
        assert svc.xi_alpha_error_[0] >= wrong.mean()
        missed, alarms = wrong[y == 1].sum(), wrong[y == 0].sum()
        assert estimate.missed >= missed
        assert estimate.false_alarms >= alarms
        right = np.sum(y == 1) - missed
        assert svc.xi_alpha_recall_[0] <= right / np.sum(y == 1)
        assert svc.xi_alpha_precision_[0] <= right / max(1, right + alarms)


def test_the_bound_of_a_machine_whose_vectors_are_all_bounded_is_one():
    X, y = make_classification(40, 4, n_informative=3, n_redundant=0, flip_y=0.0, random_state=0)
    y[:20], y[20:] = 0, 1
    params = {"C": 1e-3, "gamma": 0.01, "tol": 1e-6}
    svc = SVC(**params).fit(X, y)
    assert not svc.certificate_.machines[0].leave_one_out.stable
    assert true_errors(params, X, y).mean() > 0.9
    assert svc.xi_alpha_error_[0] == 1.0
    # Without one of the majority's samples the classes have the same size.
    svc = SVC(**params).fit(X[1:], y[1:])
    assert svc.xi_alpha_error_[0] >= true_errors(params, X[1:], y[1:]).mean()


def random_machine(random):
    """Few samples of labels that have little or much to do with them, and parameters of a machine."""
    n, d = random.integers(6, 16), random.integers(1, 4)
    X = random.normal(size=(n, d))
    noise = random.choice([0.1, 1.0, 100.0])
    y = (X[:, 0] + noise * random.normal(size=n) > 0.0).astype(int)
    if random.random() < 0.3:
        X = np.round(X)
    kernel = str(random.choice(["rbf", "linear", "laplacian"]))
    C, gamma = 10.0 ** random.uniform(-2.5, 2.0), 10.0 ** random.uniform(-2.0, 1.0)
    return X, y, {"C": float(C), "kernel": kernel, "gamma": float(gamma), "tol": 1e-6}


@pytest.mark.quick_every(10)
@pytest.mark.parametrize("seed", range(40))
def test_no_refit_of_random_machines_has_more_errors(seed):
    random = np.random.default_rng(seed)
    for _ in range(20):
        X, y, params = random_machine(random)
        if np.bincount(y, minlength=2).min() < 2:
            continue
        wrong = true_errors(params, X, y)
        estimate = SVC(**params).fit(X, y).certificate_.machines[0].leave_one_out
        assert estimate.missed >= wrong[y == 1].sum()
        assert estimate.false_alarms >= wrong[y == 0].sum()


def test_the_bound_is_not_trivial():
    """On clean data it is far from trivial; it follows C."""
    X, y = make_classification(200, 4, n_informative=3, n_redundant=0, class_sep=2.0, random_state=0)
    svc = SVC(fit_intercept=False, C=1.0).fit(X, y)
    assert 0 < svc.loo_error_bound_[0] < 0.3
    narrow = SVC(fit_intercept=False, gamma=1e4).fit(X, y)
    assert narrow.loo_error_bound_[0] == 1.0  # every row stands alone


def test_the_formula_as_printed(datasets):
    X, y = datasets["cancer"]
    svc = SVC(fit_intercept=False, C=2.0, tol=1e-6).fit(X, y)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    margins = np.where(y == 1, 1, -1) * svc.decision_function(X) - alpha
    close = np.abs(margins) < 1e-4
    counts = np.sum(margins <= 0)
    assert abs(svc.loo_error_bound_[0] * len(y) - counts) <= close.sum()


def test_one_estimate_a_machine(datasets, tmp_path):
    X, y = datasets["iris"]
    for multi_class in ("ovo", "ovr"):
        svc = SVC(fit_intercept=False, multi_class=multi_class).fit(X, y)
        assert svc.loo_error_bound_.shape == svc.xi_alpha_error_.shape == (3,)
        for j, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
            rows = np.isin(y, (a, b)) if multi_class == "ovo" else np.ones(len(y), dtype=bool)
            positive = y[rows] == (a if multi_class == "ovo" else j)
            gamma = svc.expansion_.gamma
            binary = SVC(fit_intercept=False, gamma=gamma).fit(X[rows], positive)
            assert svc.loo_error_bound_[j] == pytest.approx(binary.loo_error_bound_[0], abs=0.02)
            assert svc.xi_alpha_recall_[j] == pytest.approx(binary.xi_alpha_recall_[0], abs=0.03)
        svc.save(tmp_path / "model")
        assert np.array_equal(load(tmp_path / "model").loo_error_bound_, svc.loo_error_bound_)


def test_where_there_is_no_estimate(datasets):
    X, y = datasets["iris"]
    with pytest.raises(AttributeError, match="fit_intercept=False"):
        _ = SVC().fit(X, y).loo_error_bound_
    assert not hasattr(SVC(), "xi_alpha_error_")
    assert not hasattr(NuSVC(nu=0.1).fit(X, y), "xi_alpha_error_")
