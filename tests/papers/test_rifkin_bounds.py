"""Bounds of coded classifiers, never below real refits."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from helpers import reference
from helpers.codes import LOSSES, codes, refits
from svmarrow import SVC, CodedClassifier, RLSClassifier
from svmarrow.models.outputs import code_class_indices
from svmarrow.papers import rifkin

Peer = sklearn.svm.SVC


@given(
    code=codes(most_classes=4, most_columns=5),
    seed=st.integers(0, 10_000),
    c=st.sampled_from([0.3, 3.0, 100.0]),
    loss=st.sampled_from(["hinge", "squared_hinge"]),
    decoder=st.sampled_from(["loss", "hamming", "votes", "square", "logistic"]),
)
@settings(max_examples=25)
def test_the_leave_one_out_bound_holds_for_svms(code, seed, c, loss, decoder):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(code.n_classes), 5)
    X = rng.normal(size=(y.size, 2)) + np.column_stack([y % 2, y // 2]) * 1.2
    svc = SVC(C=c, gamma=0.5, loss=loss, fit_intercept=False, tol=1e-6)
    model = CodedClassifier(svc, code, decoder).fit(X, y)
    bound = rifkin.leave_one_out(model, X, y)
    wrong = refits(svc, code, decoder, X, y)
    assert not (wrong & ~bound.suspects).any()
    assert bound.value >= wrong.mean()
    assert bound.value == bound.suspects.mean()


CHOSEN = {
    "alpha": {"alpha": 0.01},
    "alphas of one": {"alphas": [0.01]},
    "alphas": {"alphas": [1e-4, 0.01, 1.0]},
    "cg": {"alpha": 0.01, "solver": "cg", "leave_one_out": False},
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("code", ["ovr", "ovo", "complete"])
@pytest.mark.parametrize("chosen", CHOSEN)
def test_the_leave_one_out_bound_holds_for_least_squares(chosen, code, weighted):
    """Whatever chose the penalty, machines trained together or one by one, weights or none."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(3), 12)
    X = rng.normal(size=(36, 2)) + y[:, None] * 0.4
    weights = rng.uniform(0.2, 5.0, size=36) if weighted else np.ones(36)
    rls = RLSClassifier(gamma=2.0, **CHOSEN[chosen])
    model = CodedClassifier(rls, code, decoder="loss").fit(X, y, sample_weight=weights)
    bound = rifkin.leave_one_out(model, X, y)
    matrix = model.code_.matrix
    # The penalties stay as they are when a row leaves: those of single machines, or the one of all.
    machines = model._machines.estimators or [clone(rls).fit(X, y, sample_weight=weights)] * matrix.shape[1]
    wrong = np.empty(36, dtype=bool)
    for left in range(36):
        outputs = np.empty((1, matrix.shape[1]))
        for column, machine in enumerate(machines):
            side = matrix[y, column]
            kept = (np.arange(36) != left) & (side != 0)
            one = RLSClassifier(alpha=machine.alpha_, gamma=2.0)
            one.fit(X[kept], side[kept], sample_weight=weights[kept])
            outputs[0, column] = one.decision_function(X[left : left + 1])[0]
        wrong[left] = code_class_indices(outputs, matrix, model.decoder_)[0] != y[left]
    assert wrong.mean() > 0.3
    assert not (wrong & ~bound.suspects).any()
    assert bound.value < 1.0


def test_one_by_one_and_together_have_one_bound():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 10)
    X = rng.normal(size=(40, 2)) + np.column_stack([y % 2, y // 2])
    for machine in (
        SVC(C=3.0, gamma=0.5, fit_intercept=False, tol=1e-6),
        RLSClassifier(alpha=0.1, gamma=0.5),
    ):
        for code in ("ovo", "ovr"):
            together, apart = (
                rifkin.leave_one_out(CodedClassifier(machine, code, shared=shared).fit(X, y), X, y)
                for shared in (True, False)
            )
            np.testing.assert_array_equal(together.suspects, apart.suspects)


def test_averages_need_rows_that_count_alike(rng):
    X = rng.normal(size=(40, 2))
    y = np.repeat([0, 1], 20)
    weights = np.where(np.arange(40) % 2, 2.0, 1.0)
    options = {"delta": 0.05, "gamma": 1.0}
    for machine in (
        SVC(fit_intercept=False, tol=1e-5),
        SVC(fit_intercept=False, tol=1e-5, loss="squared_hinge"),
        RLSClassifier(),
        RLSClassifier(alphas=[0.5, 2.0]),
    ):
        of = CodedClassifier(machine).fit(X, y)
        told = rifkin.multiclass_generalization_of(of, X, y, **options).terms["lam"]
        alpha = getattr(clone(machine).fit(X, y), "alpha_", 0.5)
        np.testing.assert_allclose(told, alpha / 40, rtol=1e-3)
        with pytest.raises(ValueError, match="samples of equal weight"):
            rifkin.multiclass_generalization_of(of.fit(X, y, sample_weight=weights), X, y, **options)


@given(code=codes(most_classes=4, most_columns=5), seed=st.integers(0, 1000))
def test_the_bound_covers_all_corners(code, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(code.n_classes), 4)
    X = rng.normal(size=(y.size, 2)) + y[:, None]
    model = CodedClassifier(SVC(gamma=0.5, fit_intercept=False, tol=1e-5), code).fit(X, y)
    found = rifkin.leave_one_out(model, X, y)
    moves = np.zeros((y.size, code.n_columns))
    moves[model.support_] = model.expansion_.coefficients
    slack = model.certificate_.violation + 1e-6 * (1 + np.abs(model.outputs(X)).max(axis=0))
    for decoder in ("hinge", "square", "hamming"):
        other = CodedClassifier(SVC(gamma=0.5, fit_intercept=False, tol=1e-5), code, decoder).fit(X, y)
        corners = reference.leave_one_out_suspects(model.outputs(X), moves, y, code.matrix, decoder, slack)
        found = rifkin.leave_one_out(other, X, y)
        # The bound takes each term at its least for each rival: never fewer suspects than the corners show.
        assert (found.suspects >= corners).all()


def test_one_vs_rest_bound_is_its_closed_form(digits):
    X, y, _, _ = digits
    svc = SVC(C=1.0, gamma=0.1, fit_intercept=False, tol=1e-6, multi_class="ovr").fit(X, y)
    found = rifkin.leave_one_out(svc, X, y)
    f = svc.expansion_.decision_function(X)
    c = np.zeros_like(f)
    c[svc.support_] = svc.expansion_.coefficients
    high, low = np.maximum(f, f - c), np.minimum(f, f - c)
    own = np.arange(len(y)), y
    rivals = high.copy()
    rivals[own] = -np.inf
    # (4.63); the slack of the solver moves rows that are on the edge only.
    closed = rivals.max(axis=1) >= low[own]
    assert abs(found.suspects.sum() - closed.sum()) <= 2
    pairs = SVC(C=1.0, gamma=0.1, fit_intercept=False).fit(X, y)
    assert 0.0 < rifkin.leave_one_out(pairs, X, y).value < 1.0


def test_bounds_refuse_what_they_do_not_cover(datasets):
    X, y = datasets["iris"]
    with pytest.raises(ValueError, match="intercept"):
        rifkin.leave_one_out(SVC().fit(X, y), X, y)
    model = CodedClassifier(SVC(fit_intercept=False), "ovo", "dag").fit(X, y)
    with pytest.raises(ValueError, match="dag"):
        rifkin.leave_one_out(model, X, y)
    mean = CodedClassifier(SVC(fit_intercept=False), "sparse", "mean_loss", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="mean loss"):
        rifkin.leave_one_out(mean, X, y)
    with pytest.raises(ValueError, match="trained on"):
        rifkin.leave_one_out(model, X[::-1], y[::-1])
    with pytest.raises(ValueError, match="zeros"):
        rifkin.multiclass_generalization_of(model, X, y, delta=0.05, gamma=1.0)
    with pytest.raises(TypeError, match="LogisticRegression"):
        rifkin.leave_one_out(CodedClassifier(LogisticRegression()).fit(X, y), X, y)
    hamming = CodedClassifier(SVC(fit_intercept=False), decoder="hamming").fit(X, y)
    with pytest.raises(ValueError, match="is not the machines' loss"):
        rifkin.multiclass_generalization_of(hamming, X, y, delta=0.05, gamma=1.0)


@given(code=codes(), seed=st.integers(0, 1000), loss=st.sampled_from(LOSSES[:-1]))
def test_training_errors_are_below_their_bounds(code, seed, loss):
    rng = np.random.default_rng(seed)
    labels = rng.integers(code.n_classes, size=40)
    outputs = code.matrix[labels] * 0.7 + rng.normal(size=(40, code.n_columns))
    for decoder in ("loss", "hamming"):
        found = code_class_indices(outputs, code.matrix, loss if decoder == "loss" else decoder)
        bound = rifkin.training_error(code, outputs, labels, loss=loss, decoder=decoder)
        assert (found != labels).mean() <= bound.value + 1e-12


def test_stability_by_its_formulas():
    lam, kappa, n = 0.01, 1.0, 500
    assert float(rifkin.stability("hinge", n=n, lam=lam, kappa=kappa)) == pytest.approx(1 / (2 * lam * n))
    sigma = rifkin.admissibility("square", lam=lam, kappa=kappa)
    assert sigma.value == pytest.approx(2 * (np.sqrt(1 / lam) + 1))
    assert sigma.terms["largest_loss"] == pytest.approx((np.sqrt(1 / lam) + 1) ** 2)
    beta = rifkin.stability("square", n=n, lam=lam, kappa=kappa)
    assert beta.value == pytest.approx(sigma.value**2 / (2 * lam * n))
    bound = rifkin.generalization(0.1, 0.001, 1000, delta=0.05, largest=1.0)
    expected = 0.1 + 0.002 + (4 * 1000 * 0.001 + 1) * np.sqrt(np.log(20) / 2000)
    assert bound.value == pytest.approx(expected)
    assert bound.equation == "(5.5)"
    system = rifkin.multiclass_generalization(0.1, 0.001, 1000, delta=0.05, gamma=2.0, difference=2)
    same = rifkin.generalization(0.1, 0.002, 1000, delta=0.05, largest=1.0)
    assert system.value == pytest.approx(same.value)
    assert rifkin.bagging_stability(0.5, chunk=10, n=1000).value == pytest.approx(0.005)
    with pytest.raises(ValueError, match="multiple"):
        rifkin.bagging_stability(0.5, chunk=7, n=1000)
    with pytest.raises(ValueError, match="delta"):
        rifkin.generalization(0.1, 0.001, 1000, delta=0.0, largest=1.0)


@given(seed=st.integers(0, 10_000), loss=st.sampled_from(["hinge", "squared_hinge"]))
@settings(max_examples=20)
def test_stability_is_not_exceeded_by_actual_refits(seed, loss):
    rng = np.random.default_rng(seed)
    n = 30
    X, y = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    y[:4] = [0, 0, 1, 1]
    points = rng.normal(size=(50, 2))
    svc = SVC(C=0.2, gamma=0.5, loss=loss, fit_intercept=False, tol=1e-7)
    beta = rifkin.stability(loss, n=n, lam=1 / (2 * 0.2 * n), kappa=1.0)
    full = svc.fit(X, y).decision_function(points)
    for j in range(4):
        rows = np.arange(n) != j
        part = clone(svc).fit(X[rows], y[rows]).decision_function(points)
        for sign in (-1.0, 1.0):
            moved = reference.LOSSES[loss](sign * full) - reference.LOSSES[loss](sign * part)
            assert np.abs(moved).max() <= beta.value + 1e-6
    assert np.abs(full).max() <= beta.terms["largest_output"] + 1e-6


def test_the_ramp_is_above_the_errors(rng):
    scores = rng.normal(size=(200, 4))
    labels = rng.integers(4, size=200)
    wrong = np.argmax(scores, axis=1) != labels
    for gamma in (0.01, 1.0, 10.0):
        ramp = rifkin.ramp_loss(scores, labels, gamma=gamma)
        assert (ramp >= wrong).all()
        assert ((ramp >= 0) & (ramp <= 1)).all()
    assert rifkin.ramp_loss(scores, labels, gamma=1e-9).sum() == pytest.approx(wrong.sum())


def test_a_generalization_bound_of_a_model(digits):
    X, y, X_test, y_test = digits
    model = CodedClassifier(SVC(C=1e-4, gamma=0.1, fit_intercept=False)).fit(X, y)
    bound = rifkin.multiclass_generalization_of(model, X, y, delta=0.05, gamma=2.0)
    assert bound.value >= 1.0 - model.score(X_test, y_test)
    assert bound.terms["difference"] == 2.0
    assert bound.terms["kappa"] == 1.0
    assert bound.terms["machine_beta"] == pytest.approx(1e-4)
