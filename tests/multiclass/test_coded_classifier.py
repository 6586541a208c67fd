"""Coded classifiers: machines that share against machines one by one, oracles and peers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import svmarrow
from helpers import reference
from helpers.codes import NAMES, codes, refits
from svmarrow import (
    SVC,
    CodedClassifier,
    KMPClassifier,
    LowRankSVC,
    NuSVC,
    RLSClassifier,
    compress,
    compression_path,
)
from svmarrow.least_squares import fit_targets
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.multiclass import make_code
from svmarrow.online import KernelPerceptron
from svmarrow.papers import rifkin
from svmarrow.reduced_set import GradientSettings

Peer = sklearn.svm.SVC


# Classifiers


@pytest.mark.parametrize("name", ["ovr", "ovo", "dense", "sparse", "bch"])
@pytest.mark.parametrize(
    "svc",
    [
        SVC(C=5.0, gamma=0.1, tol=1e-5),
        SVC(C=5.0, gamma=0.1, tol=1e-5, fit_intercept=False),
        SVC(C=5.0, gamma=0.1, tol=1e-5, loss="squared_hinge"),
        NuSVC(nu=0.05, gamma=0.1, tol=1e-6),
    ],
    ids=["hinge", "no-intercept", "squared", "nu"],
)
def test_together_as_one_by_one(digits, name, svc):
    X, y, X_test, y_test = digits
    model = CodedClassifier(svc, name, random_state=0, n_draws=100).fit(X, y)
    apart = CodedClassifier(svc, name, random_state=0, n_draws=100, shared=False).fit(X, y)
    scale = np.abs(apart.outputs(X_test)).max()
    assert model.outputs(X_test) == pytest.approx(apart.outputs(X_test), abs=1e-3 * scale)
    assert (model.predict(X_test) == apart.predict(X_test)).mean() > 0.997
    assert model.score(X_test, y_test) > 0.9
    assert apart.expansion_.n_vectors <= len(X)
    assert len(apart.estimators_) == model.code_.distinct_columns()[0].size
    assert not hasattr(model, "estimators_")
    rows = np.unique(model.support_)
    assert rows.size == model.expansion_.n_vectors
    assert (X[model.support_] == model.expansion_.vectors).all()


@given(code=codes(most_columns=5), seed=st.integers(0, 1000), cached=st.booleans())
@settings(max_examples=15)
def test_any_code_solves_every_machine(code, seed, cached):
    """Each column's machine is optimal by the oracle, with cached kernel rows and without."""
    rng = np.random.default_rng(seed)
    d = 80 if cached else 3
    y = np.repeat(np.arange(code.n_classes), 12)
    X = rng.normal(size=(y.size, d)) + y[:, None] * 0.3
    gamma = 0.5 / d
    model = CodedClassifier(SVC(C=2.0, gamma=gamma, tol=1e-5), code).fit(X, y)
    K = reference.kernel(("rbf", gamma, 0.0, 3), X, X)
    B = np.zeros((y.size, code.n_columns))
    B[model.support_] = model.expansion_.coefficients
    for column in range(code.n_columns):
        signs = code.matrix[y, column].astype(np.float64)
        rows = np.flatnonzero(signs)
        assert not B[signs == 0, column].any()
        upper = np.full(rows.size, 2.0)
        part = K[np.ix_(rows, rows)]
        assert reference.feasible(signs[rows], upper, B[rows, column], 1e-9)
        assert reference.violation(part, signs[rows], upper, B[rows, column]) < 1e-4


def test_many_features_keep_kernel_rows_of_sparse_codes(rng):
    """Above the sizes from which rows are cached, with a cache that is too small for all of them."""
    y = np.repeat(np.arange(6), 500)
    X = (rng.normal(size=(y.size, 90)) + 0.6 * rng.normal(size=(6, 90))[y]).astype(np.float32)
    svc = SVC(C=1.0, gamma=0.01, tol=1e-4)
    for name in ("sparse", "ovo"):
        wide = CodedClassifier(svc, name, random_state=0, n_draws=50).fit(X, y)
        tight = CodedClassifier(clone(svc).set_params(cache_size=3.0), wide.code_).fit(X, y)
        assert wide.certificate_.stop == tight.certificate_.stop == "converged"
        scale = np.abs(wide.outputs(X[:200])).max()
        assert wide.outputs(X[:200]) == pytest.approx(tight.outputs(X[:200]), abs=2e-3 * scale)
        assert wide.certificate_.dual == pytest.approx(tight.certificate_.dual, rel=1e-5)


@pytest.mark.parametrize(("name", "multi_class"), [("ovr", "ovr"), ("ovo", "ovo")])
def test_the_codes_of_svc(digits, name, multi_class):
    X, y, X_test, _ = digits
    svc = SVC(C=5.0, gamma=0.1, multi_class=multi_class).fit(X, y)
    model = CodedClassifier(SVC(C=5.0, gamma=0.1), name, "loss" if name == "ovr" else "votes").fit(X, y)
    assert (model.outputs(X_test) == svc.expansion_.decision_function(X_test)).all()
    assert (model.predict(X_test) == svc.predict(X_test)).all()


def test_against_scikit_learns_wrappers(digits):
    X, y, X_test, _ = digits
    ours, peer = SVC(C=5.0, gamma=0.1, tol=1e-4), Peer(C=5.0, gamma=0.1, tol=1e-4)
    rest = OneVsRestClassifier(peer).fit(X, y)
    assert (CodedClassifier(ours).fit(X, y).predict(X_test) == rest.predict(X_test)).mean() > 0.997
    pairs = OneVsOneClassifier(peer).fit(X, y)
    model = CodedClassifier(ours, "ovo", "votes").fit(X, y)
    # Ties of votes are broken differently.
    assert (model.predict(X_test) == pairs.predict(X_test)).mean() > 0.98


@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (LogisticRegression(max_iter=500), "logistic"),
        (LinearSVC(tol=1e-9, max_iter=100_000), "squared_hinge"),
        (LinearSVC(loss="hinge", C=0.1, tol=1e-9, max_iter=100_000), "hinge"),
        (RidgeClassifier(), "square"),
        (AdaBoostClassifier(n_estimators=20), "exponential"),
        (LinearDiscriminantAnalysis(), "logistic"),
        (Perceptron(), "perceptron"),
        (Peer(C=5.0, gamma=0.1), "hinge"),
        (make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)), "logistic"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_other_binary_classifiers(estimator, loss):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for code in ("dense", "ovo"):
        model = CodedClassifier(estimator, code, random_state=0).fit(X, y)
        assert model.decoder_ == loss
        assert model.score(X, y) > 0.93
        single = clone(estimator).fit(X[y != 2], np.where(y[y != 2] == 0, 1, -1))
        if code == "ovo" and loss != "exponential":
            assert model.outputs(X)[:, 0] == pytest.approx(single.decision_function(X), rel=1e-5, abs=1e-5)
    if isinstance(estimator, Peer):
        assert model.expansion_.n_vectors < len(X)
    else:
        with pytest.raises(TypeError, match="not one kernel expansion"):
            model.as_expansion()


def test_perceptrons_predict_over_one_pool(digits):
    X, y, X_test, y_test = digits
    model = CodedClassifier(
        KernelPerceptron(gamma=0.1, n_epochs=3), "sparse", random_state=0, n_draws=50
    ).fit(X, y)
    assert model.decoder_ == "perceptron"
    pool = model.expansion_
    assert pool.n_vectors == len(np.unique(pool.vectors, axis=0))
    chosen, which, signs = model.code_.distinct_columns()
    assert len(model.estimators_) == chosen.size
    own = np.column_stack([machine.decision_function(X_test) for machine in model.estimators_])
    own = own[:, which] * signs
    assert model.outputs(X_test) == pytest.approx(own, abs=1e-9)
    assert model.score(X_test, y_test) > 0.85
    sparse = CodedClassifier(KernelPerceptron(gamma=0.1, n_epochs=3), model.code_).fit(sp.csr_array(X), y)
    assert sparse.outputs(sp.csr_array(X_test)) == pytest.approx(own, abs=1e-9)
    assert sparse.expansion_.n_vectors == pool.n_vectors


def test_matching_pursuit_predicts_over_one_pool(digits):
    X, y, X_test, y_test = digits
    model = CodedClassifier(KMPClassifier(40), "ovo").fit(X, y)
    assert model.decoder_ == "square"
    assert model.expansion_.n_outputs == 45
    own = np.column_stack([machine.decision_function(X_test) for machine in model.estimators_])
    assert model.outputs(X_test) == pytest.approx(own, abs=1e-8)
    assert model.score(X_test, y_test) > 0.85


def test_estimators_without_scores_are_refused(datasets):
    X, y = datasets["iris"]
    with pytest.raises(ValueError, match="no known loss"):
        CodedClassifier(KNeighborsClassifier()).fit(X, y)
    with pytest.raises(TypeError, match="decision_function"):
        CodedClassifier(KNeighborsClassifier(), decoder="hamming").fit(X, y)


def test_two_classes(datasets):
    X, y = datasets["moons"]
    plain = SVC(C=3.0).fit(X, y)
    for name in NAMES:
        model = CodedClassifier(SVC(C=3.0), name).fit(X, y)
        assert model.code_.matrix.tolist() == [[-1], [1]]
        assert (model.decision_function(X) == plain.decision_function(X)).all()
        assert (model.predict(X) == plain.predict(X)).all()
        assert model.predict(X).dtype == y.dtype
    both = CodedClassifier(SVC(C=3.0), [[1, -1], [-1, 1]]).fit(X, y)
    assert both.decision_function(X).shape == (len(X),)
    assert (both.predict(X) == plain.predict(X)).all()
    assert both.expansion_.coefficients[:, 0] == pytest.approx(-both.expansion_.coefficients[:, 1])


def test_a_class_of_one_row_and_strings(digits):
    X, y, _, _ = digits
    names = np.array(["n" + str(label) for label in y], dtype=object)
    names[0] = "alone"
    for name in ("ovr", "ovo", "dense", "sparse"):
        model = CodedClassifier(SVC(C=50.0, gamma=0.1), name, random_state=0, n_draws=50).fit(X, names)
        assert model.classes_.tolist()[0] == "alone"
        assert set(model.predict(X)) <= set(model.classes_)
        assert model.score(X, names) > 0.97


def test_a_hundred_classes(rng):
    y = np.repeat(np.arange(100), 12)
    X = rng.normal(size=(100, 10))[y] + 0.1 * rng.normal(size=(y.size, 10))
    for name in ("ovr", "dense", "bch", "sparse", "ovo"):
        model = CodedClassifier(SVC(C=10.0, gamma=0.2), name, random_state=0, n_draws=100).fit(X, y)
        assert model.outputs(X[:3]).shape == (3, model.code_.n_columns)
        assert model.score(X, y) > 0.95, name


def test_the_mean_of_the_own_loss_and_of_a_named_one(digits):
    X, y, X_test, y_test = digits
    svc = SVC(C=5.0, gamma=0.1)
    code = make_code("sparse", 10, random_state=0, n_draws=20)
    for decoder, name in (("mean_loss", "mean_hinge"), ("mean_square", "mean_square")):
        model = CodedClassifier(svc, code, decoder).fit(X, y)
        assert model.decoder_ == name
        expected = reference.code_scores(model.outputs(X_test), code.matrix, name)
        assert model.decision_function(X_test) == pytest.approx(expected, abs=1e-9)
        assert model.score(X_test, y_test) > 0.9
        small = compress(model, n_vectors=100)
        assert small.decoder == name
        assert small.score(X_test, y_test) > 0.85
    with pytest.raises(ValueError, match=r"decoder='mean_loss' is not allowed: .* no known loss"):
        CodedClassifier(KNeighborsClassifier(), decoder="mean_loss").fit(X, y)


def test_a_class_that_no_row_supports(digits):
    """Rows of weight 0 are no rows: the machines that need the class are refused by name."""
    X, y, _, _ = digits
    weights = (y != 3).astype(float)
    for code in ("ovo", "ovr"):
        for shared in (True, False):
            with pytest.raises(ValueError, match=r"class .*(weight|row)|positive weight"):
                CodedClassifier(SVC(), code, shared=shared).fit(X, y, sample_weight=weights)


WEIGHTED = [
    SVC(C=5.0, gamma=0.5, tol=1e-6),
    SVC(C=0.1, gamma=0.5, tol=1e-6, loss="squared_hinge", fit_intercept=False),
    NuSVC(nu=0.1, gamma=0.5, tol=1e-7),
    LowRankSVC(10_000, C=5.0, gamma=0.5, tol=1e-6),
    RLSClassifier(0.1),
    RLSClassifier(0.1, gamma=0.5, fit_intercept=True),
    LogisticRegression(tol=1e-10, max_iter=1000),
]


@pytest.mark.filterwarnings("ignore:n_vectors")
@pytest.mark.parametrize("estimator", WEIGHTED, ids=lambda value: " ".join(str(value).split()))
@pytest.mark.parametrize("code", ["ovr", "ovo", "complete"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_weights_are_repetitions(datasets, rng, estimator, code, form):
    X, y = datasets["iris"]
    weights = rng.integers(0, 3, size=len(y))
    repeated = form(np.repeat(X, weights, axis=0)), np.repeat(y, weights)
    for shared in (True, False):
        model = CodedClassifier(estimator, code, shared=shared)
        expected = clone(model).fit(*repeated).outputs(form(X))
        found = clone(model).fit(form(X), y, sample_weight=weights).outputs(form(X))
        assert found == pytest.approx(expected, abs=2e-3 * np.abs(expected).max())
        plain = clone(model).fit(form(X), y).outputs(form(X))
        assert np.abs(plain - expected).max() > 1e-2 * np.abs(expected).max()


def test_class_weights_are_weights_of_rows(digits):
    X, y, X_test, _ = digits
    svc = SVC(C=0.05, gamma=0.1, tol=1e-5)
    code = make_code("dense", 10, random_state=0, n_draws=20)
    by_row = CodedClassifier(svc, code).fit(X, y, sample_weight=np.where(y == 3, 0.2, 1.0))
    for model in (
        CodedClassifier(svc, code, class_weight={3: 0.2}),
        CodedClassifier(clone(svc).set_params(class_weight={3: 0.2}), code),
        CodedClassifier(svc, code, class_weight={3: 0.2}, shared=False),
    ):
        assert by_row.outputs(X_test) == pytest.approx(model.fit(X, y).outputs(X_test), abs=1e-3)
    plain = CodedClassifier(svc, code).fit(X, y)
    assert np.abs(plain.outputs(X_test) - by_row.outputs(X_test)).max() > 0.01
    # Both at once multiply, and a width that follows from the rows does not follow the classes' weights.
    for estimator in (SVC(C=0.05, tol=1e-5), RLSClassifier(0.1)):
        both = CodedClassifier(estimator, code, class_weight={3: 0.5}).fit(
            X, y, sample_weight=by_three(y, 0.4)
        )
        once = CodedClassifier(both.set_params(class_weight=None).estimator, code)
        gamma = once.fit(X, y, sample_weight=by_three(y, 0.4)).expansion_.gamma
        assert both.expansion_.gamma == gamma
        product = CodedClassifier(clone(estimator).set_params(gamma=gamma), code)
        product.fit(X, y, sample_weight=by_three(y, 0.2))
        assert both.outputs(X_test) == pytest.approx(product.outputs(X_test), abs=1e-6)


def test_balanced_classes_are_balanced_by_weight(datasets, rng):
    X, y = datasets["iris"]
    weights = rng.integers(0, 3, size=len(y)) + (y == 1)
    model = CodedClassifier(SVC(gamma=0.5, tol=1e-6), class_weight="balanced")
    expected = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).outputs(X)
    assert model.fit(X, y, sample_weight=weights).outputs(X) == pytest.approx(expected, abs=1e-4)


def by_three(y, weight):
    return np.where(y == 3, weight, 1.0)


def test_weights_that_cannot_be_taken_are_refused(datasets):
    X, y = datasets["iris"]
    lda = LinearDiscriminantAnalysis()
    for model, weights in (
        (CodedClassifier(lda), np.ones(len(y))),
        (CodedClassifier(lda, class_weight={0: 2.0}), None),
    ):
        with pytest.raises(ValueError, match="takes no sample_weight"):
            model.fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="class_weight='even'"):
        CodedClassifier(SVC(), class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match="random_state='now'"):
        CodedClassifier(SVC(), random_state="now").fit(X, y)
    with pytest.raises(ValueError, match="not negative"):
        CodedClassifier(SVC(), class_weight={0: -1.0}).fit(X, y)


@pytest.mark.parametrize("form", [np.float64, np.float32, sp.csr_array], ids=["double", "single", "sparse"])
@pytest.mark.parametrize("scale", [1e-3, 500.0])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e5])
def test_scales_and_precisions(datasets, form, scale, C):
    X, y = datasets["iris"]
    data = form(X * scale)
    for of, code in (
        (lambda gamma: SVC(C=C, gamma=gamma), "ovr"),
        (lambda gamma: RLSClassifier(1 / C, gamma=gamma), "complete"),
    ):
        plain = CodedClassifier(of(0.7), code).fit(X, y)
        model = CodedClassifier(of(0.7 / scale**2), code).fit(data, y)
        assert (model.predict(data) == plain.predict(X)).mean() > 0.97
        # Single precision of the rows is magnified by as much as the penalty is small.
        expected = plain.outputs(X)
        close = 1e-2 if C <= 1.0 else 5e-2
        assert model.outputs(data) == pytest.approx(expected, abs=close * np.abs(expected).max())


def test_one_column_of_data(rng):
    y = np.repeat(np.arange(12), 15)
    X = y[:, None] + 0.05 * rng.normal(size=(y.size, 1))
    for name in NAMES:
        model = CodedClassifier(SVC(C=100.0, gamma=3.0), name, random_state=0, n_draws=50).fit(X, y)
        assert model.score(X, y) == 1.0, name


def test_a_code_without_a_seed_is_drawn_at_each_fit(datasets):
    X, y = datasets["digits"]
    model = CodedClassifier(SVC(C=5.0, gamma=0.02, warm_start=True), "sparse", n_draws=20)
    assert model.fit(X, y).code_ != model.fit(X, y).code_


def test_precomputed_and_precisions(digits):
    X, y, X_test, _ = digits
    plain = CodedClassifier(SVC(C=5.0, gamma=0.1, tol=1e-5), "sparse", random_state=0, n_draws=20).fit(X, y)
    K, K_test = (reference.kernel(("rbf", 0.1, 0.0, 3), A, X) for A in (X, X_test))
    for shared in (True, False):
        model = CodedClassifier(SVC(C=5.0, kernel="precomputed", tol=1e-5), plain.code_, shared=shared)
        assert model.fit(K, y).outputs(K_test) == pytest.approx(plain.outputs(X_test), abs=1e-3)
    peer = CodedClassifier(Peer(C=5.0, kernel="precomputed", tol=1e-5), plain.code_).fit(K, y)
    assert peer.outputs(K_test) == pytest.approx(plain.outputs(X_test), abs=1e-3)
    for kind in (X.astype(np.float32), sp.csr_array(X)):
        model = CodedClassifier(SVC(C=5.0, gamma=0.1, tol=1e-5), plain.code_).fit(kind, y)
        assert model.expansion_.vectors.dtype == kind.dtype
        assert model.outputs(X_test) == pytest.approx(plain.outputs(X_test), abs=2e-3)


def test_compression_is_joint_and_models_are_saved(digits, tmp_path):
    X, y, X_test, y_test = digits
    model = CodedClassifier(SVC(C=5.0, gamma=0.1), "dense", random_state=0).fit(X, y)
    path = compression_path(model, n_vectors=150, X=X, y=y)
    small = path[150]
    assert isinstance(small, ExpansionClassifier)
    assert small.expansion_.n_vectors == 150
    assert small.expansion_.n_outputs == model.code_.n_columns
    assert small.score(X_test, y_test) > model.score(X_test, y_test) - 0.03
    for saved in (model, small):
        saved.save(tmp_path / "model.safetensors")
        again = svmarrow.load(tmp_path / "model.safetensors")
        assert (again.decision_function(X_test) == saved.decision_function(X_test)).all()
        assert (again.predict(X_test) == saved.predict(X_test)).all()
    made = compress(
        model, n_vectors=60, method="gradient", X=X, y=y, settings=GradientSettings(steps=200), random_state=0
    )
    assert made.score(X_test, y_test) > model.score(X_test, y_test) - 0.05
    labels = GradientSettings(steps=5, label_weight=0.5)
    with pytest.raises(ValueError, match="coded model"):
        compress(model, n_vectors=60, method="gradient", X=X, y=y, settings=labels)
    with pytest.raises(ValueError, match="LIBSVM"):
        svmarrow.io.save_libsvm_model(model, tmp_path / "model.txt")
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X_test) == model.predict(X_test)).all()


def test_a_fit_that_reaches_its_time_limit_warns(digits):
    X, y, _, _ = digits
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = CodedClassifier(SVC(C=100.0, gamma=0.1, max_iter=3), "dense", random_state=0).fit(X, y)
    assert model.certificate_.stop == "max_iter"


def test_warm_starts_and_rows_of_no_weight(digits):
    X, y, X_test, _ = digits
    svc = SVC(C=5.0, gamma=0.1, tol=1e-5, warm_start=True)
    model = CodedClassifier(svc, "sparse", random_state=0, n_draws=50).fit(X, y)
    cold = model.certificate_.iterations
    weights = np.ones(len(y))
    weights[model.support_[:3]] = 0.0
    again = model.fit(X, y, sample_weight=weights)
    assert again.certificate_.iterations < cold / 2
    used = weights > 0
    fresh = CodedClassifier(SVC(C=5.0, gamma=0.1, tol=1e-5), model.code_).fit(X[used], y[used])
    assert again.outputs(X_test) == pytest.approx(fresh.outputs(X_test), abs=1e-3)


# Least squares


def rls_sets(datasets):
    rng = np.random.default_rng(0)
    wine = load_wine(return_X_y=True)
    X, y = datasets["digits"]
    return {
        "iris": datasets["iris"],
        "wine": (StandardScaler().fit_transform(wine[0]), wine[1]),
        "digits": (X[:600], y[:600]),
        "noise": (rng.normal(size=(150, 4)), rng.integers(5, size=150)),
    }


@pytest.mark.parametrize("name", ["iris", "wine", "digits", "noise"])
@pytest.mark.parametrize("alpha", [1e-3, 0.5])
def test_complete_and_one_vs_rest_predict_alike_by_least_squares(datasets, name, alpha):
    """The theorem of section 4.4.2, on every row seen and on others."""
    X, y = rls_sets(datasets)[name]
    X_test = np.vstack([X, X + 0.05 * np.random.default_rng(1).normal(size=X.shape)])
    plain = RLSClassifier(alpha, gamma=0.1, leave_one_out=True).fit(X, y)
    for decoder in ("loss", "square"):
        complete = CodedClassifier(
            RLSClassifier(alpha, gamma=0.1, leave_one_out=True), "complete", decoder
        ).fit(X, y)
        one = CodedClassifier(RLSClassifier(alpha, gamma=0.1, leave_one_out=True), "ovr", decoder).fit(X, y)
        assert (complete.predict(X_test) == one.predict(X_test)).all()
        assert (complete.predict(X_test) == plain.predict(X_test)).all()
        assert complete.loo_error_ == one.loo_error_ == plain.loo_error_


@pytest.mark.parametrize("name", ["iris", "wine", "digits", "noise"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_short_cut_is_training_every_column(datasets, name, fit_intercept):
    X, y = rls_sets(datasets)[name]
    rls = RLSClassifier(0.01, gamma=0.1, fit_intercept=fit_intercept, leave_one_out=True)
    for code in ("dense", "bch", "complete" if len(np.unique(y)) < 6 else "ovr"):
        short = CodedClassifier(rls, code, random_state=0, n_draws=50).fit(X, y)
        long = CodedClassifier(rls, short.code_, shared=False).fit(X, y)
        again = CodedClassifier.from_ovr(clone(rls).fit(X, y), short.code_)
        labels = np.unique(y, return_inverse=True)[1]
        direct = fit_targets(
            X,
            short.code_.matrix[labels].astype(float),
            0.01,
            gamma=0.1,
            fit_intercept=fit_intercept,
            leave_one_out=True,
        )
        for other in (long.outputs(X), again.outputs(X), direct.expansion.decision_function(X)):
            assert short.outputs(X) == pytest.approx(other, abs=1e-8)
        assert (short.predict(X) == long.predict(X)).all()
        assert short.loo_decision_ == pytest.approx(long.loo_decision_, abs=1e-7)
        assert short.loo_error_ == long.loo_error_
    with pytest.raises(ValueError, match="zeros"):
        CodedClassifier.from_ovr(clone(rls).fit(X, y), "ovo")


@given(code=codes(most_classes=4), seed=st.integers(0, 1000), decoder=st.sampled_from(["loss", "hamming"]))
@settings(max_examples=20)
def test_exact_leave_one_out_and_its_bound_by_refits(code, seed, decoder):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(code.n_classes), 5)
    X = rng.normal(size=(y.size, 2)) + np.column_stack([y % 2, y // 2])
    for rls in (
        RLSClassifier(0.2, gamma=0.5, leave_one_out=True),
        RLSClassifier(3.0, gamma=0.5, leave_one_out=True),
    ):
        model = CodedClassifier(rls, code, decoder).fit(X, y)
        wrong = refits(rls, code, decoder, X, y)
        assert model.loo_error_ == pytest.approx(wrong.mean())
        bound = rifkin.leave_one_out(model, X, y)
        assert not (wrong & ~bound.suspects).any()
        assert bound.value >= model.loo_error_


def test_least_squares_of_sparse_codes_and_kernel_matrices(datasets):
    X, y = datasets["iris"]
    model = CodedClassifier(RLSClassifier(0.1, gamma=0.5, leave_one_out=True), "ovo").fit(X, y)
    assert model.expansion_.n_vectors == len(np.unique(X, axis=0))
    K = reference.kernel(("rbf", 0.5, 0.0, 3), X, X)
    for shared in (True, False):
        for code in ("ovo", "ovr"):
            plain = CodedClassifier(RLSClassifier(0.1, gamma=0.5, leave_one_out=True), code).fit(X, y)
            given_kernel = CodedClassifier(
                RLSClassifier(0.1, kernel="precomputed", leave_one_out=True), code, shared=shared
            )
            assert given_kernel.fit(K, y).outputs(K) == pytest.approx(plain.outputs(X), abs=1e-8)
            assert given_kernel.loo_error_ == plain.loo_error_
    small = compress(model, n_vectors=30)
    assert (small.predict(X) == model.predict(X)).mean() > 0.95
