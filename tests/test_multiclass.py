"""Codes, decoders, coded classifiers, bounds and study tools, against naive oracles and real refits."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import marrow
import reference
from marrow import (
    SVC,
    CodedClassifier,
    GradientSettings,
    KernelPerceptron,
    KMPClassifier,
    NuSVC,
    RLSClassifier,
    compress,
)
from marrow._decode import code_class_indices, code_scores
from marrow.classifier import ExpansionClassifier
from marrow.least_squares import fit_targets
from marrow.multiclass import (
    BinaryErrorDisplay,
    Code,
    OverlapDisplay,
    binary_errors,
    bounds,
    make_code,
    overlap_matrix,
    reverse_cumulative,
)

Peer = sklearn.svm.SVC

NAMES = ["one-vs-all", "all-pairs", "complete", "dense", "sparse", "bch"]
LOSSES = list(reference.LOSSES)


@st.composite
def codes(draw, most_classes=5, most_columns=6):
    """Any code of a few classes and columns, with zeros."""
    n = draw(st.integers(2, most_classes))
    f = draw(st.integers(max(1, n - 1), most_columns))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    zeros = draw(st.booleans())
    while True:
        matrix = rng.choice([-1, 0, 1] if zeros else [-1, 1], size=(n, f))
        try:
            return Code(matrix)
        except ValueError:
            f = min(f + 1, most_columns)


# Codes


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [2, 3, 4, 6, 10])
def test_named_codes(name, n):
    code = make_code(name, n, n_draws=200)
    columns = {
        "one-vs-all": n,
        "all-pairs": n * (n - 1) // 2,
        "complete": 2 ** (n - 1) - 1,
        "dense": min(int(np.ceil(10 * np.log2(n))), 2 ** (n - 1) - 1),
        "sparse": int(np.ceil(15 * np.log2(n))),
        "bch": 63,
    }
    assert code.n_columns == (1 if n == 2 else columns[name])
    assert code.has_zeros == (name in ("all-pairs", "sparse") and n > 2)
    assert (code.row_distance, code.column_distance) == pytest.approx(
        reference.code_distances(code.matrix), nan_ok=True
    )
    for column in code.matrix.T:
        assert {-1, 1} <= set(column.tolist())
    if name in ("dense", "complete") and n > 2:
        assert code.column_distance > 0
    if name == "bch" and n > 2:
        assert code.row_distance >= 31
    assert code == make_code(name, n, n_draws=200, n_jobs=1)
    assert code == pickle.loads(pickle.dumps(code))


def test_more_draws_are_no_worse_and_seeds_matter():
    few, many = (make_code("dense", 12, n_draws=draws).row_distance for draws in (5, 5000))
    assert many > few
    assert make_code("sparse", 12, random_state=1) != make_code("sparse", 12, random_state=2)
    assert make_code("sparse", 12, random_state=1) == make_code("sparse", 12, random_state=1)


def test_complete_code_has_every_partition_once():
    matrix = make_code("complete", 6).matrix
    upright = {tuple((column * column[0]).tolist()) for column in matrix.T}
    assert len(upright) == matrix.shape[1] == 31


def test_bch_for_many_classes():
    for n, least in ((100, 31), (128, 31), (129, 27), (1000, 27)):
        code = make_code("bch", n, n_draws=3)
        assert code.matrix.shape == (n, 63)
        assert code.row_distance >= least


@given(code=codes())
def test_distances_and_distinct_columns(code):
    assert (code.row_distance, code.column_distance) == pytest.approx(
        reference.code_distances(code.matrix), nan_ok=True
    )
    chosen, which, signs = code.distinct_columns()
    assert (code.matrix[:, chosen][:, which] * signs == code.matrix).all()
    if code.n_columns > 1 and not code.has_zeros:
        assert (code.column_distance > 0) == (chosen.size == code.n_columns)
    differing = [(code.matrix[a] != code.matrix[b]).sum() for a in range(code.n_classes) for b in range(a)]
    assert code.largest_difference == max(differing)


@pytest.mark.parametrize(
    ("matrix", "word"),
    [
        ([[1, -1], [1, -1], [-1, 1]], "equal rows 0 and 1"),
        ([[1, 1], [-1, 1], [0, 1]], "column 1 without -1"),
        ([[1, 0], [0, 0], [-1, 1]], "row 1 of zeros"),
        ([[2, 0], [-1, 1]], "-1, 0 and 1"),
        ([[0.5, 1], [-1, -1]], "-1, 0 and 1"),
        ([1, -1], "matrix"),
    ],
)
def test_what_is_no_code_is_refused(matrix, word):
    if word == "row 1 of zeros":
        matrix = [[1, 1], [0, 0], [-1, -1]]
    with pytest.raises(ValueError, match=word):
        Code(matrix)


def test_refused_codes_of_classifiers(datasets):
    X, y = datasets["iris"]
    for code, word in [
        ("ova", "one-vs-all"),
        (Code([[1], [-1]]), "2 rows and there are 3 classes"),
        ([[1, -1], [1, -1], [-1, 1]], "equal rows"),
    ]:
        with pytest.raises(ValueError, match=word):
            CodedClassifier(SVC(), code).fit(X, y)
    with pytest.raises(ValueError, match="complete"):
        make_code("complete", 16)
    with pytest.raises(ValueError, match="dag"):
        CodedClassifier(SVC(), "dense", "dag").fit(X, y)
    with pytest.raises(ValueError, match="decoder"):
        CodedClassifier(SVC(), "dense", "closest").fit(X, y)
    with pytest.raises(ValueError, match="1 class"):
        CodedClassifier(SVC()).fit(X, np.zeros(len(X)))


# Decoders


@given(code=codes(), seed=st.integers(0, 10_000), n=st.integers(1, 20))
def test_decoders_equal_their_sums(code, seed, n):
    outputs = np.random.default_rng(seed).normal(size=(n, code.n_columns)).round(1)
    for decoder in [*LOSSES, "hamming", "votes"]:
        expected = reference.code_scores(outputs, code.matrix, decoder)
        found = code_scores(outputs, code.matrix, decoder)
        assert found == pytest.approx(expected, abs=1e-9 * (1 + np.abs(expected).max()))
        winners = code_class_indices(outputs, code.matrix, decoder)
        best = expected.max(axis=1)
        assert (expected[np.arange(n), winners] >= best - 1e-9 * (1 + np.abs(best))).all()
        if decoder in ("hamming", "votes"):
            assert (winners == np.argmax(expected, axis=1)).all()


@given(n_classes=st.integers(2, 7), seed=st.integers(0, 1000))
def test_the_dag_is_a_knock_out(n_classes, seed):
    code = make_code("all-pairs", n_classes)
    outputs = np.random.default_rng(seed).normal(size=(30, code.n_columns))
    found = code_class_indices(outputs, code.matrix, "dag")
    signs = outputs if n_classes > 2 else -outputs
    assert (found == reference.knock_out(signs, n_classes)).all()
    scores = code_scores(outputs, code.matrix, "dag")
    assert (np.argmax(scores, axis=1) == found).all()
    assert (np.sort(scores, axis=1) == np.arange(n_classes)).all()


def test_every_clean_code_word_is_decoded_to_its_class():
    for name in NAMES:
        code = make_code(name, 8, n_draws=50)
        for decoder in ["hamming", "votes", *LOSSES]:
            found = code_class_indices(code.matrix.astype(np.float64), code.matrix, decoder)
            if decoder == "votes" and code.has_zeros and name == "sparse":
                continue  # classes that take part in more machines get more votes
            assert (found == np.arange(8)).all(), (name, decoder)


def test_a_code_corrects_as_many_errors_as_its_distance_promises(rng):
    code = make_code("bch", 20, n_draws=20)
    words = np.repeat(code.matrix, 20, axis=0).astype(np.float64)
    for word in words:
        flipped = rng.choice(63, size=int((code.row_distance - 1) // 2), replace=False)
        word[flipped] *= -1
    assert (code_class_indices(words, code.matrix, "hamming") == np.repeat(np.arange(20), 20)).all()


def test_thousands_of_rows_on_threads(rng):
    code = make_code("dense", 10)
    outputs = rng.normal(size=(70_000, code.n_columns))
    one, two = (code_class_indices(outputs, code.matrix, "hinge", jobs) for jobs in (1, 2))
    assert (one == two).all()
    margins = outputs[:2000, None, :] * code.matrix
    few = np.maximum(0, 1 - margins).sum(axis=2).argmin(axis=1)
    assert (one[:2000] == few).all()


# Classifiers


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    return X[:500], y[:500], X[500:1100], y[500:1100]


@pytest.mark.parametrize("name", ["one-vs-all", "all-pairs", "dense", "sparse", "bch"])
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
    model = CodedClassifier(svc, name, n_draws=100).fit(X, y)
    apart = CodedClassifier(svc, name, n_draws=100, shared=False).fit(X, y)
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
    for name in ("sparse", "all-pairs"):
        wide = CodedClassifier(svc, name, n_draws=50).fit(X, y)
        tight = CodedClassifier(clone(svc).set_params(cache_size=3.0), wide.code_).fit(X, y)
        assert wide.certificate_.stop == tight.certificate_.stop == "converged"
        scale = np.abs(wide.outputs(X[:200])).max()
        assert wide.outputs(X[:200]) == pytest.approx(tight.outputs(X[:200]), abs=2e-3 * scale)
        assert wide.certificate_.dual == pytest.approx(tight.certificate_.dual, rel=1e-5)


@pytest.mark.parametrize(("name", "multi_class"), [("one-vs-all", "ovr"), ("all-pairs", "ovo")])
def test_the_codes_of_svc(digits, name, multi_class):
    X, y, X_test, _ = digits
    svc = SVC(C=5.0, gamma=0.1, multi_class=multi_class).fit(X, y)
    model = CodedClassifier(SVC(C=5.0, gamma=0.1), name, "loss" if name == "one-vs-all" else "votes").fit(
        X, y
    )
    assert (model.outputs(X_test) == svc.expansion_.decision_function(X_test)).all()
    assert (model.predict(X_test) == svc.predict(X_test)).all()


def test_against_scikit_learns_wrappers(digits):
    X, y, X_test, _ = digits
    ours, peer = SVC(C=5.0, gamma=0.1, tol=1e-4), Peer(C=5.0, gamma=0.1, tol=1e-4)
    rest = OneVsRestClassifier(peer).fit(X, y)
    assert (CodedClassifier(ours).fit(X, y).predict(X_test) == rest.predict(X_test)).mean() > 0.997
    pairs = OneVsOneClassifier(peer).fit(X, y)
    model = CodedClassifier(ours, "all-pairs", "votes").fit(X, y)
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
    for code in ("dense", "all-pairs"):
        model = CodedClassifier(estimator, code).fit(X, y)
        assert model.decoder_ == loss
        assert model.score(X, y) > 0.93
        single = clone(estimator).fit(X[y != 2], np.where(y[y != 2] == 0, 1, -1))
        if code == "all-pairs" and loss != "exponential":
            assert model.outputs(X)[:, 0] == pytest.approx(single.decision_function(X), rel=1e-5, abs=1e-5)
    if isinstance(estimator, Peer):
        assert model.expansion_.n_vectors < len(X)
    else:
        with pytest.raises(TypeError, match="not one kernel expansion"):
            model.as_expansion()


def test_perceptrons_predict_over_one_pool(digits):
    X, y, X_test, y_test = digits
    model = CodedClassifier(KernelPerceptron(gamma=0.1, max_iter=3), "sparse", n_draws=50).fit(X, y)
    assert model.decoder_ == "perceptron"
    pool = model.expansion_
    assert pool.n_vectors == len(np.unique(pool.vectors, axis=0))
    chosen, which, signs = model.code_.distinct_columns()
    assert len(model.estimators_) == chosen.size
    own = np.column_stack([machine.decision_function(X_test) for machine in model.estimators_])
    own = own[:, which] * signs
    assert model.outputs(X_test) == pytest.approx(own, abs=1e-9)
    assert model.score(X_test, y_test) > 0.85
    sparse = CodedClassifier(KernelPerceptron(gamma=0.1, max_iter=3), model.code_).fit(sp.csr_array(X), y)
    assert sparse.outputs(sp.csr_array(X_test)) == pytest.approx(own, abs=1e-9)
    assert sparse.expansion_.n_vectors == pool.n_vectors


def test_matching_pursuit_predicts_over_one_pool(digits):
    X, y, X_test, y_test = digits
    model = CodedClassifier(KMPClassifier(40), "all-pairs").fit(X, y)
    assert model.decoder_ == "square"
    assert model.expansion_.n_outputs == 45
    own = np.column_stack([machine.decision_function(X_test) for machine in model.estimators_])
    assert model.outputs(X_test) == pytest.approx(own, abs=1e-8)
    assert model.score(X_test, y_test) > 0.85


def test_estimators_without_scores_are_refused(datasets):
    X, y = datasets["iris"]
    with pytest.raises(ValueError, match="name one"):
        CodedClassifier(KNeighborsClassifier()).fit(X, y)
    with pytest.raises(TypeError, match="decision_function"):
        CodedClassifier(KNeighborsClassifier(), decoder="hamming").fit(X, y)
    with pytest.raises(ValueError, match="sample_weight"):
        CodedClassifier(LinearDiscriminantAnalysis(), decoder="hamming").fit(
            X, y, sample_weight=np.ones(len(y))
        )


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
    for name in ("one-vs-all", "all-pairs", "dense", "sparse"):
        model = CodedClassifier(SVC(C=50.0, gamma=0.1), name, n_draws=50).fit(X, names)
        assert model.classes_.tolist()[0] == "alone"
        assert set(model.predict(X)) <= set(model.classes_)
        assert model.score(X, names) > 0.97


def test_a_hundred_classes(rng):
    y = np.repeat(np.arange(100), 12)
    X = rng.normal(size=(100, 10))[y] + 0.1 * rng.normal(size=(y.size, 10))
    for name in ("one-vs-all", "dense", "bch", "sparse", "all-pairs"):
        model = CodedClassifier(SVC(C=10.0, gamma=0.2), name, n_draws=100).fit(X, y)
        assert model.outputs(X[:3]).shape == (3, model.code_.n_columns)
        assert model.score(X, y) > 0.95, name


def test_weights_and_class_weights(digits):
    X, y, X_test, _ = digits
    weights = np.where(y == 3, 0.2, 1.0)
    svc = SVC(C=0.05, gamma=0.1, tol=1e-5)
    by_row = CodedClassifier(svc, "dense", n_draws=20).fit(X, y, sample_weight=weights)
    by_class = CodedClassifier(clone(svc).set_params(class_weight={3: 0.2}), by_row.code_).fit(X, y)
    assert by_row.outputs(X_test) == pytest.approx(by_class.outputs(X_test), abs=1e-4)
    plain = CodedClassifier(svc, by_row.code_).fit(X, y)
    assert np.abs(plain.outputs(X_test) - by_row.outputs(X_test)).max() > 0.01
    apart = CodedClassifier(svc, by_row.code_, shared=False).fit(X, y, sample_weight=weights)
    assert by_row.outputs(X_test) == pytest.approx(apart.outputs(X_test), abs=1e-3)


def test_precomputed_and_precisions(digits):
    X, y, X_test, _ = digits
    plain = CodedClassifier(SVC(C=5.0, gamma=0.1, tol=1e-5), "sparse", n_draws=20).fit(X, y)
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
    model = CodedClassifier(SVC(C=5.0, gamma=0.1), "dense").fit(X, y)
    path = compress(model, max_vectors=150, X=X, y=y)
    small = path[150]
    assert isinstance(small, ExpansionClassifier)
    assert small.expansion_.n_vectors == 150
    assert small.expansion_.n_outputs == model.code_.n_columns
    assert small.score(X_test, y_test) > model.score(X_test, y_test) - 0.03
    for saved in (model, small):
        saved.save(tmp_path / "model.safetensors")
        again = marrow.load(tmp_path / "model.safetensors")
        assert (again.decision_function(X_test) == saved.decision_function(X_test)).all()
        assert (again.predict(X_test) == saved.predict(X_test)).all()
    made = compress(model, 60, method="gradient", X=X, y=y, settings=GradientSettings(steps=200))
    assert made.score(X_test, y_test) > model.score(X_test, y_test) - 0.05
    labels = GradientSettings(steps=5, label_weight=0.5)
    with pytest.raises(ValueError, match="coded model"):
        compress(model, 60, method="gradient", X=X, y=y, settings=labels)
    with pytest.raises(ValueError, match="LIBSVM"):
        marrow.io.save_libsvm_model(model, tmp_path / "model.txt")
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X_test) == model.predict(X_test)).all()


def test_a_fit_that_is_interrupted_by_time_says_so(digits):
    X, y, _, _ = digits
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = CodedClassifier(SVC(C=100.0, gamma=0.1, max_iter=3), "dense").fit(X, y)
    assert model.certificate_.stop == "max_iter"


def test_warm_starts_and_rows_of_no_weight(digits):
    X, y, X_test, _ = digits
    svc = SVC(C=5.0, gamma=0.1, tol=1e-5, warm_start=True)
    model = CodedClassifier(svc, "sparse", n_draws=50).fit(X, y)
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
def test_complete_and_one_vs_all_predict_alike_by_least_squares(datasets, name, alpha):
    """The theorem of section 4.4.2, on every row seen and on others."""
    X, y = rls_sets(datasets)[name]
    X_test = np.vstack([X, X + 0.05 * np.random.default_rng(1).normal(size=X.shape)])
    plain = RLSClassifier(alpha, gamma=0.1).fit(X, y)
    for decoder in ("loss", "square"):
        complete = CodedClassifier(RLSClassifier(alpha, gamma=0.1), "complete", decoder).fit(X, y)
        one = CodedClassifier(RLSClassifier(alpha, gamma=0.1), "one-vs-all", decoder).fit(X, y)
        assert (complete.predict(X_test) == one.predict(X_test)).all()
        assert (complete.predict(X_test) == plain.predict(X_test)).all()
        assert complete.loo_error_ == one.loo_error_ == plain.loo_error_


@pytest.mark.parametrize("name", ["iris", "wine", "digits", "noise"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_short_cut_is_training_every_column(datasets, name, fit_intercept):
    X, y = rls_sets(datasets)[name]
    rls = RLSClassifier(0.01, gamma=0.1, fit_intercept=fit_intercept)
    for code in ("dense", "bch", "complete" if len(np.unique(y)) < 6 else "one-vs-all"):
        short = CodedClassifier(rls, code, n_draws=50).fit(X, y)
        long = CodedClassifier(rls, short.code_, shared=False).fit(X, y)
        again = CodedClassifier.from_one_vs_all(clone(rls).fit(X, y), short.code_)
        labels = np.unique(y, return_inverse=True)[1]
        direct = fit_targets(
            X, short.code_.matrix[labels].astype(float), 0.01, gamma=0.1, fit_intercept=fit_intercept
        )
        for other in (long.outputs(X), again.outputs(X), direct.expansion.decision_function(X)):
            assert short.outputs(X) == pytest.approx(other, abs=1e-8)
        assert (short.predict(X) == long.predict(X)).all()
        assert short.loo_decision_ == pytest.approx(long.loo_decision_, abs=1e-7)
        assert short.loo_error_ == long.loo_error_
    with pytest.raises(ValueError, match="zeros"):
        CodedClassifier.from_one_vs_all(clone(rls).fit(X, y), "all-pairs")


@given(code=codes(most_classes=4), seed=st.integers(0, 1000), decoder=st.sampled_from(["loss", "hamming"]))
@settings(max_examples=20)
def test_exact_leave_one_out_and_its_bound_by_refits(code, seed, decoder):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(code.n_classes), 5)
    X = rng.normal(size=(y.size, 2)) + np.column_stack([y % 2, y // 2])
    for rls in (RLSClassifier(0.2, gamma=0.5), RLSClassifier(3.0, gamma=0.5)):
        model = CodedClassifier(rls, code, decoder).fit(X, y)
        wrong = refits(rls, code, decoder, X, y)
        assert model.loo_error_ == pytest.approx(wrong.mean())
        bound = bounds.leave_one_out(model, X, y)
        assert not (wrong & ~bound.suspects).any()
        assert bound.value >= model.loo_error_


def test_least_squares_of_sparse_codes_and_kernel_matrices(datasets):
    X, y = datasets["iris"]
    model = CodedClassifier(RLSClassifier(0.1, gamma=0.5), "all-pairs").fit(X, y)
    assert model.expansion_.n_vectors == len(np.unique(X, axis=0))
    K = reference.kernel(("rbf", 0.5, 0.0, 3), X, X)
    for shared in (True, False):
        for code in ("all-pairs", "one-vs-all"):
            plain = CodedClassifier(RLSClassifier(0.1, gamma=0.5), code).fit(X, y)
            given_kernel = CodedClassifier(RLSClassifier(0.1, kernel="precomputed"), code, shared=shared)
            assert given_kernel.fit(K, y).outputs(K) == pytest.approx(plain.outputs(X), abs=1e-8)
            assert given_kernel.loo_error_ == plain.loo_error_
    small = compress(model, 30)
    assert (small.predict(X) == model.predict(X)).mean() > 0.95


# Bounds


def refits(estimator, code, decoder, X, y):
    """The leave-one-out errors by training again without each row."""
    wrong = np.zeros(len(y), dtype=bool)
    for j in range(len(y)):
        rows = np.arange(len(y)) != j
        model = CodedClassifier(estimator, code, decoder).fit(X[rows], y[rows])
        wrong[j] = model.predict(X[j : j + 1])[0] != y[j]
    return wrong


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
    bound = bounds.leave_one_out(model, X, y)
    wrong = refits(svc, code, decoder, X, y)
    assert not (wrong & ~bound.suspects).any()
    assert bound.value >= wrong.mean()
    assert bound.value == bound.suspects.mean()


@given(code=codes(most_classes=4, most_columns=5), seed=st.integers(0, 1000))
def test_the_bound_looks_at_all_corners(code, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(code.n_classes), 4)
    X = rng.normal(size=(y.size, 2)) + y[:, None]
    model = CodedClassifier(SVC(gamma=0.5, fit_intercept=False, tol=1e-5), code).fit(X, y)
    found = bounds.leave_one_out(model, X, y)
    moves = np.zeros((y.size, code.n_columns))
    moves[model.support_] = model.expansion_.coefficients
    slack = model.certificate_.violation + 1e-6 * (1 + np.abs(model.outputs(X)).max(axis=0))
    for decoder in ("hinge", "square", "hamming"):
        other = CodedClassifier(SVC(gamma=0.5, fit_intercept=False, tol=1e-5), code, decoder).fit(X, y)
        corners = reference.leave_one_out_suspects(model.outputs(X), moves, y, code.matrix, decoder, slack)
        found = bounds.leave_one_out(other, X, y)
        # The bound takes each term at its least for each rival: never fewer suspects than the corners show.
        assert (found.suspects >= corners).all()


def test_one_vs_all_bound_is_its_closed_form(digits):
    X, y, _, _ = digits
    svc = SVC(C=1.0, gamma=0.1, fit_intercept=False, tol=1e-6, multi_class="ovr").fit(X, y)
    found = bounds.leave_one_out(svc, X, y)
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
    assert 0.0 < bounds.leave_one_out(pairs, X, y).value < 1.0


def test_bounds_refuse_what_they_do_not_cover(datasets):
    X, y = datasets["iris"]
    with pytest.raises(ValueError, match="intercept"):
        bounds.leave_one_out(SVC().fit(X, y), X, y)
    model = CodedClassifier(SVC(fit_intercept=False), "all-pairs", "dag").fit(X, y)
    with pytest.raises(ValueError, match="dag"):
        bounds.leave_one_out(model, X, y)
    with pytest.raises(ValueError, match="trained on"):
        bounds.leave_one_out(model, X[::-1], y[::-1])
    with pytest.raises(ValueError, match="zeros"):
        bounds.multiclass_generalization_of(model, X, y, delta=0.05, gamma=1.0)
    with pytest.raises(TypeError, match="LogisticRegression"):
        bounds.leave_one_out(CodedClassifier(LogisticRegression()).fit(X, y), X, y)
    hamming = CodedClassifier(SVC(fit_intercept=False), decoder="hamming").fit(X, y)
    with pytest.raises(ValueError, match="is not the machines' loss"):
        bounds.multiclass_generalization_of(hamming, X, y, delta=0.05, gamma=1.0)


@given(code=codes(), seed=st.integers(0, 1000), loss=st.sampled_from(LOSSES[:-1]))
def test_training_errors_are_below_their_bounds(code, seed, loss):
    rng = np.random.default_rng(seed)
    labels = rng.integers(code.n_classes, size=40)
    outputs = code.matrix[labels] * 0.7 + rng.normal(size=(40, code.n_columns))
    for decoder in ("loss", "hamming"):
        found = code_class_indices(outputs, code.matrix, loss if decoder == "loss" else decoder)
        bound = bounds.training_error(code, outputs, labels, loss=loss, decoder=decoder)
        assert (found != labels).mean() <= bound.value + 1e-12


def test_stability_by_its_formulas():
    lam, kappa, n = 0.01, 1.0, 500
    assert float(bounds.stability("hinge", n=n, lam=lam, kappa=kappa)) == pytest.approx(1 / (2 * lam * n))
    sigma = bounds.admissibility("square", lam=lam, kappa=kappa)
    assert sigma.value == pytest.approx(2 * (np.sqrt(1 / lam) + 1))
    assert sigma.terms["largest_loss"] == pytest.approx((np.sqrt(1 / lam) + 1) ** 2)
    beta = bounds.stability("square", n=n, lam=lam, kappa=kappa)
    assert beta.value == pytest.approx(sigma.value**2 / (2 * lam * n))
    bound = bounds.generalization(0.1, 0.001, 1000, delta=0.05, largest=1.0)
    expected = 0.1 + 0.002 + (4 * 1000 * 0.001 + 1) * np.sqrt(np.log(20) / 2000)
    assert bound.value == pytest.approx(expected)
    assert bound.equation == "(5.5)"
    system = bounds.multiclass_generalization(0.1, 0.001, 1000, delta=0.05, gamma=2.0, difference=2)
    same = bounds.generalization(0.1, 0.002, 1000, delta=0.05, largest=1.0)
    assert system.value == pytest.approx(same.value)
    assert bounds.bagging_stability(0.5, chunk=10, n=1000).value == pytest.approx(0.005)
    with pytest.raises(ValueError, match="multiple"):
        bounds.bagging_stability(0.5, chunk=7, n=1000)
    with pytest.raises(ValueError, match="delta"):
        bounds.generalization(0.1, 0.001, 1000, delta=0.0, largest=1.0)


@given(seed=st.integers(0, 10_000), loss=st.sampled_from(["hinge", "squared_hinge"]))
@settings(max_examples=20)
def test_stability_is_not_exceeded_by_real_refits(seed, loss):
    rng = np.random.default_rng(seed)
    n = 30
    X, y = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    y[:4] = [0, 0, 1, 1]
    points = rng.normal(size=(50, 2))
    svc = SVC(C=0.2, gamma=0.5, loss=loss, fit_intercept=False, tol=1e-7)
    beta = bounds.stability(loss, n=n, lam=1 / (2 * 0.2 * n), kappa=1.0)
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
        ramp = bounds.ramp_loss(scores, labels, gamma=gamma)
        assert (ramp >= wrong).all()
        assert ((ramp >= 0) & (ramp <= 1)).all()
    assert bounds.ramp_loss(scores, labels, gamma=1e-9).sum() == pytest.approx(wrong.sum())


def test_a_generalization_bound_of_a_model(digits):
    X, y, X_test, y_test = digits
    model = CodedClassifier(SVC(C=1e-4, gamma=0.1, fit_intercept=False)).fit(X, y)
    bound = bounds.multiclass_generalization_of(model, X, y, delta=0.05, gamma=2.0)
    assert bound.value >= 1.0 - model.score(X_test, y_test)
    assert bound.terms["difference"] == 2.0
    assert bound.terms["kappa"] == 1.0
    assert bound.terms["machine_beta"] == pytest.approx(1e-4)


# Study tools


def test_overlaps():
    matrix = overlap_matrix([["a", "b", "c"], ["a", "b", "b"], ["c", "b", "c"]])
    assert matrix == pytest.approx(np.array([[1, 2 / 3, 2 / 3], [2 / 3, 1, 1 / 3], [2 / 3, 1 / 3, 1]]))
    with pytest.raises(ValueError, match="same rows"):
        overlap_matrix([[1, 2], [1, 2, 3]])


def test_binary_errors_one_by_one(digits):
    X, y, X_test, y_test = digits
    base = CodedClassifier(SVC(C=5.0, gamma=0.02)).fit(X, y)
    reference_labels = base.predict(X_test)
    for name in ("dense", "all-pairs", "sparse"):
        model = CodedClassifier(SVC(C=5.0, gamma=0.02), name, n_draws=50).fit(X, y)
        shares = binary_errors(model, X_test, y_test, reference_labels)
        outputs, matrix = model.outputs(X_test), model.code_.matrix
        expected = []
        for row in np.flatnonzero(reference_labels != y_test):
            own, other = matrix[y_test[row]], matrix[reference_labels[row]]
            sides = [i for i in range(len(own)) if own[i] * other[i] == -1]
            wrong = [i for i in sides if outputs[row, i] * own[i] <= 0]
            expected.append(len(wrong) / len(sides) if sides else np.nan)
        assert shares == pytest.approx(np.array(expected), nan_ok=True)
        points, above = reverse_cumulative(shares)
        for point, share in zip(points, above, strict=True):
            assert share == pytest.approx((shares[~np.isnan(shares)] >= point).mean())


def test_displays(digits):
    pytest.importorskip("matplotlib").use("Agg")
    X, y, X_test, y_test = digits
    models = {
        name: CodedClassifier(SVC(C=5.0, gamma=0.02), name, n_draws=20).fit(X, y)
        for name in ("one-vs-all", "dense")
    }
    predictions = {name: model.predict(X_test) for name, model in models.items()}
    overlap = OverlapDisplay.from_predictions(predictions).plot()
    assert overlap.matrix[0, 1] == (predictions["one-vs-all"] == predictions["dense"]).mean()
    curves = BinaryErrorDisplay.from_models(models, X_test, y_test, predictions["one-vs-all"]).plot(
        ax=overlap.ax_.figure.add_subplot()
    )
    assert [line.get_label() for line in curves.lines_] == ["one-vs-all", "dense"]
    assert curves.lines_[0].get_ydata()[0] == 100.0
