"""Estimators on objects: strings and series whose kernel is a Python function of two blocks of them.

The oracle is the same estimator on rows of numbers whose inner products are the kernel values.
"""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from helpers.estimators import ESTIMATORS
from svmarrow import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    CodedClassifier,
    KernelExpansion,
    KMPClassifier,
    KMPRegressor,
    LowRankSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    RLSClassifier,
    RLSRegressor,
    as_expansion,
)
from svmarrow.cascade import CalibratedCascade
from svmarrow.least_squares import LowRankRLSClassifier, LowRankRLSRegressor, fit_targets
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.svm import QuantileSVR

LETTERS = "ACGT"


def counts(words):
    """Shares of the pairs of neighboring letters of each word, (n, 16)."""
    table = np.zeros((len(words), 16))
    for line, word in zip(table, words, strict=True):
        for a, b in pairwise(word):
            line[4 * LETTERS.index(a) + LETTERS.index(b)] += 1.0
    return table / np.linalg.norm(table, axis=1, keepdims=True)


def spectrum(A, B):
    return counts(A) @ counts(B).T


def means(A, B):
    return np.array([a.mean(axis=0) for a in A]) @ np.array([b.mean(axis=0) for b in B]).T


def _words(n, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    shares = np.array([[0.4, 0.2, 0.2, 0.2], [0.2, 0.4, 0.2, 0.2], [0.2, 0.2, 0.2, 0.4]])
    words = ["".join(rng.choice(list(LETTERS), rng.integers(15, 40), p=shares[k])) for k in labels]
    return words, labels


WORDS, KIND = _words(150)
NEW_WORDS, _ = _words(60, 1)
ROWS, NEW_ROWS = counts(WORDS), counts(NEW_WORDS)
NUMBERS = ROWS[:, :4] @ [1.0, -2.0, 3.0, 0.5] + 0.1 * np.sin(np.arange(150))
WEIGHTS = np.arange(150) % 4 * 1.0

LEARNERS = {
    "SVC": (SVC(kernel=spectrum, tol=1e-6), KIND),
    "SVC of one machine a class": (SVC(kernel=spectrum, tol=1e-6, multi_class="ovr"), KIND),
    "NuSVC": (NuSVC(nu=0.2, kernel=spectrum, tol=1e-6), KIND),
    "SVR": (SVR(kernel=spectrum, tol=1e-7, epsilon=0.01), NUMBERS),
    "NuSVR": (NuSVR(kernel=spectrum, tol=1e-7), NUMBERS),
    "QuantileSVR": (QuantileSVR(kernel=spectrum, tol=1e-7), NUMBERS),
    "OneClassSVM": (OneClassSVM(kernel=spectrum, nu=0.2, tol=1e-7), None),
    "RLSClassifier": (RLSClassifier(alpha=0.1, kernel=spectrum, leave_one_out=True), KIND),
    "RLSRegressor": (RLSRegressor(kernel=spectrum, alphas=[0.01, 0.1], leave_one_out=True), NUMBERS),
    "KMPClassifier": (KMPClassifier(8, kernel=spectrum), KIND),
    "KMPRegressor": (KMPRegressor(8, kernel=spectrum), NUMBERS),
    "LowRankSVC": (LowRankSVC(12, kernel=spectrum, tol=1e-6, random_state=0), KIND),
    "LowRankRLSClassifier": (LowRankRLSClassifier(12, alpha=0.1, kernel=spectrum, random_state=0), KIND),
    "LowRankRLSRegressor": (
        LowRankRLSRegressor(12, alpha=0.1, kernel=spectrum, random_state=0, leave_one_out=True),
        NUMBERS,
    ),
    "SVCCV": (SVCCV(Cs=[0.1, 1.0], kernel=spectrum, cv=3, tol=1e-6), KIND),
    "SVRCV": (SVRCV(Cs=[0.1, 1.0], kernel=spectrum, cv=3, tol=1e-7, epsilon=0.01), NUMBERS),
    "QuantileSVRCV": (QuantileSVRCV(Cs=[0.1, 1.0], kernel=spectrum, cv=3, tol=1e-7), NUMBERS),
    "CodedClassifier": (CodedClassifier(SVC(kernel=spectrum, tol=1e-6), "ovr"), KIND),
}


def outputs(model, X):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


def on_numbers(model):
    """The same estimator with the linear kernel, which takes rows of numbers."""
    name = "estimator__kernel" if hasattr(model, "estimator") else "kernel"
    return clone(model).set_params(**{name: "linear"})


@pytest.mark.parametrize("weighted", [False, True], ids=["equal weights", "weights"])
@pytest.mark.parametrize("name", LEARNERS)
def test_the_fit_is_that_of_rows_with_the_same_kernel_values(name, weighted):
    model, y = LEARNERS[name]
    weights = {"sample_weight": WEIGHTS} if weighted else {}
    on_words = clone(model).fit(WORDS, y, **weights)
    with_rows = on_numbers(model).fit(ROWS, y, **weights)
    got, expected = outputs(on_words, NEW_WORDS), outputs(with_rows, NEW_ROWS)
    np.testing.assert_allclose(got, expected, atol=2e-4 * np.ptp(expected))
    if hasattr(with_rows, "loo_error_"):
        assert on_words.loo_error_ == pytest.approx(with_rows.loo_error_, rel=1e-6)
    copy = pickle.loads(pickle.dumps(on_words))
    np.testing.assert_array_equal(outputs(copy, NEW_WORDS), got)
    if hasattr(on_words, "as_expansion"):
        np.testing.assert_array_equal(as_expansion(on_words).predict(NEW_WORDS), on_words.predict(NEW_WORDS))


def test_the_registry_takes_objects_or_refuses_them_by_name():
    """An estimator with a kernel fits words by a function, or names the kernel; others refuse words."""
    refused = set()
    for name, entry in ESTIMATORS.items():
        for quick in entry.quick[:1]:
            model = clone(quick)
            parameters = model.get_params()
            kernel = next((key for key in ("kernel", "estimator__kernel") if key in parameters), None)
            if kernel is not None:
                model.set_params(**{kernel: spectrum})
            y = NUMBERS if "Regressor" in name or "SVR" in name else KIND
            try:
                model.fit(WORDS, y)
            except (ValueError, TypeError) as error:
                text = str(error)
                assert kernel is None or "kernel=" in text, f"{name}: {text}"
                refused.add(name)
            else:
                assert kernel is not None, f"{name} takes words without a kernel of them"
                assert len(model.predict(NEW_WORDS)) == len(NEW_WORDS)
    assert refused.isdisjoint(LEARNERS)


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "array of strings": np.array,
    "array of objects": lambda words: np.array(words, dtype=object),
    "column of objects": lambda words: np.array(words, dtype=object)[:, np.newaxis],
    "series": pd.Series,
    "frame of one column": lambda words: pd.DataFrame({"word": words}),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_sequence_of_objects_is_taken(container):
    expected = SVC(kernel=spectrum).fit(WORDS, KIND).decision_function(NEW_WORDS)
    make = CONTAINERS[container]
    model = SVC(kernel=spectrum).fit(make(WORDS), KIND)
    np.testing.assert_array_equal(model.decision_function(make(NEW_WORDS)), expected)
    assert model.support_vectors_.tolist() == [WORDS[i] for i in model.support_]


def test_series_may_have_different_lengths_or_be_an_array_of_three_dimensions():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    series = [rng.normal(y[i], 1.0, size=(rng.integers(3, 9), 2)) for i in range(40)]
    rows = np.array([one.mean(axis=0) for one in series])
    model, expected = SVC(kernel=means).fit(series, y), SVC(kernel="linear").fit(rows, y)
    np.testing.assert_allclose(model.decision_function(series), expected.decision_function(rows), atol=1e-3)
    block = rng.normal(size=(40, 5, 2)) + y[:, np.newaxis, np.newaxis]
    model = SVC(kernel=means).fit(block, y)
    # One sample, and a block that could be rows of numbers, are series for a model of series.
    assert model.predict(block[:1]).shape == (1,)
    np.testing.assert_array_equal(model.predict(list(block)), model.predict(block))


def test_lists_of_numbers_of_one_length_are_rows():
    """A function of rows gets a matrix, as before, whatever the container."""
    seen = []

    def linear(A, B):
        seen.append((A.shape, A.dtype))
        return A @ B.T

    SVC(kernel=linear).fit(ROWS[:30].tolist(), KIND[:30])
    assert all(len(shape) == 2 and dtype == np.float64 for shape, dtype in seen)


class Counted:
    """A kernel that counts its values, with a diagonal of its own."""

    def __init__(self):
        self.computed = self.diagonals = 0

    def __call__(self, A, B):
        self.computed += len(A) * len(B)
        return spectrum(A, B)

    def diagonal(self, A):
        self.diagonals += len(A)
        return np.ones(len(A))


def test_a_pair_is_computed_once_and_the_certificate_counts():
    words, kinds = _words(600, 2)
    pairs = len(words) ** 2 / 2
    kernel = Counted()
    model = SVC(kernel=kernel).fit(words, kinds)
    assert model.certificate_.kernel_values == kernel.computed < 1.2 * pairs
    assert kernel.diagonals == len(words)
    kernel = Counted()
    SVC(kernel=kernel).fit(words[:200], kinds[:200])
    assert kernel.computed < 1.4 * 200**2 / 2
    kernel = Counted()
    SVCCV(Cs=[0.1, 1.0], kernel=kernel, cv=3).fit(words, kinds)
    assert kernel.computed < 2.4 * pairs
    kernel = Counted()
    RLSClassifier(kernel=kernel).fit(words, kinds)
    assert kernel.computed < 1.2 * pairs
    kernel = Counted()
    LowRankRLSClassifier(20, kernel=kernel, leave_one_out=True).fit(words, kinds)
    assert kernel.computed <= 20 * len(words) + 20**2
    kernel = Counted()
    model.expansion_.replaced(kernel=kernel).decision_function(NEW_WORDS)
    assert kernel.computed == model.expansion_.n_vectors * len(NEW_WORDS)


class Prepared:
    """A kernel that does its work for each word once, in `prepare`."""

    def __init__(self):
        self.prepared = 0

    def prepare(self, words):
        self.prepared += len(words)
        return counts(words)

    def __call__(self, A, B):
        assert A.dtype == B.dtype == np.float64
        return A @ B.T


@pytest.mark.parametrize(
    "model",
    [SVC(), SVR(), RLSClassifier(), KMPClassifier(8), LowRankSVC(12, random_state=0), SVCCV(Cs=[1.0])],
)
def test_a_kernel_may_prepare_its_objects_once(model):
    kernel = Prepared()
    fitted = clone(model).set_params(kernel=kernel).fit(WORDS, KIND)
    assert kernel.prepared <= 6 * len(WORDS)
    expected = clone(model).set_params(kernel=spectrum).fit(WORDS, KIND)
    np.testing.assert_allclose(outputs(fitted, NEW_WORDS), outputs(expected, NEW_WORDS), atol=1e-6)
    before = kernel.prepared
    fitted.predict(NEW_WORDS)
    fitted.predict(NEW_WORDS)
    # The vectors are prepared at the first prediction.
    assert kernel.prepared <= before + 2 * len(NEW_WORDS) + len(WORDS)


def test_scikit_learn_selects_among_kernels_of_objects():
    scores = cross_val_score(SVC(kernel=spectrum), WORDS, KIND, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(SVC(kernel="linear"), ROWS, KIND, cv=3), atol=0.03)
    search = GridSearchCV(SVC(kernel=spectrum), {"C": [0.1, 1.0]}, cv=3).fit(WORDS, KIND)
    assert search.best_estimator_.expansion_.vectors.dtype == object


def test_the_rest_of_the_interface_takes_objects():
    model = SVC(kernel=spectrum).fit(WORDS, KIND)
    parts = model.estimate_memory(WORDS, KIND).parts
    assert parts["pairs"] == 9 * len(WORDS) ** 2
    assert "pairs" not in SVC(kernel="linear").estimate_memory(ROWS, KIND).parts
    fit = fit_targets(WORDS, NUMBERS, kernel=spectrum)
    np.testing.assert_allclose(fit.coef, fit_targets(ROWS, NUMBERS, kernel="linear").coef, atol=1e-8)
    calibrated = as_expansion(model).calibrated(WORDS, KIND)
    np.testing.assert_allclose(calibrated.predict_proba(NEW_WORDS).sum(axis=1), 1.0)
    cascade = CalibratedCascade(model, n_vectors=10).fit(WORDS, KIND)
    assert cascade.predict(NEW_WORDS).shape == (60,)
    chosen = KMPClassifier(5, kernel=spectrum, candidates=WORDS[:20]).fit(WORDS, KIND)
    assert set(chosen.expansion_.vectors[:, 0]) <= set(WORDS[:20])
    points = LowRankRLSClassifier(kernel=spectrum, selection=WORDS[:12])
    pieces = clone(points).partial_fit(WORDS[:70], KIND[:70], classes=[0, 1, 2])
    pieces = pickle.loads(pickle.dumps(pieces)).partial_fit(WORDS[70:], KIND[70:])
    whole = clone(points).fit(WORDS, KIND)
    np.testing.assert_allclose(outputs(pieces, NEW_WORDS), outputs(whole, NEW_WORDS), atol=1e-6)
    assert pieces.merge(whole).n_seen_ == 300
    assert KernelExpansion(WORDS[:3], [1.0, 2.0, 3.0], 0.0, spectrum) == KernelExpansion(
        WORDS[:3], [1.0, 2.0, 3.0], 0.0, spectrum
    )


MODEL = SVC(kernel=spectrum).fit(WORDS, KIND)
REFUSED = {
    "a missing object": (lambda: MODEL.predict([*WORDS[:2], None]), r"X\[2\] is None"),
    "no object": (lambda: MODEL.predict([]), "0 samples"),
    "objects without a function": (lambda: SVC().fit(WORDS, KIND), "could not convert string"),
    "another number of labels": (lambda: SVC(kernel=spectrum).fit(WORDS, KIND[1:]), "inconsistent"),
    "a file": (lambda: MODEL.save("words.safetensors"), "kernel=.*Python function"),
    "compiled": (lambda: MODEL.compiled(), "kernel=.*Python function"),
    "importances": (lambda: MODEL.feature_importances_, "feature_importances_ exists for the kernels"),
    "sparse rows": (lambda: MODEL.predict(sp.eye_array(3)), "sparse matrix"),
    "means of points": (
        lambda: LowRankSVC(5, kernel=spectrum, selection="kmeans").fit(WORDS, KIND),
        "selection='kmeans'",
    ),
    "conjugate gradients": (
        lambda: RLSClassifier(kernel=spectrum, solver="cg").fit(WORDS, KIND),
        "solver='cg'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_apply_is_refused_by_name(case):
    work, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError, AttributeError), match=message):
        work()


def test_numbers_and_objects_are_not_mixed():
    """A kernel that reads numbers is not asked about objects, nor a function of one kind about the other."""

    def sizes(A, B):
        return np.multiply.outer([float(len(a)) for a in A], [float(len(b)) for b in B])

    with pytest.raises(ValueError, match="could not convert string"):
        KMPClassifier(5, kernel=["rbf", sizes]).fit(WORDS, KIND)
    on_rows = SVC(kernel=sizes).fit(ROWS, KIND)
    for model in (on_rows, on_rows.as_expansion(), KMPClassifier(5, kernel=sizes).fit(ROWS, KIND)):
        with pytest.raises(ValueError, match="could not convert string"):
            model.predict(NEW_WORDS)


def test_functions_of_a_dictionary_get_the_objects():
    def length(words):
        return [[float(len(word))] for word in words]

    model = KMPRegressor(3, kernel=spectrum, functions=length).fit(WORDS, [len(word) for word in WORDS])
    np.testing.assert_allclose(model.predict(NEW_WORDS), [len(word) for word in NEW_WORDS], atol=1e-6)


def test_an_unsymmetric_or_wrong_diagonal_is_refused():
    def one_sided(A, B):
        return np.add.outer([len(a) for a in A], [2.0 * len(b) for b in B])

    with pytest.raises(ValueError, match="symmetric"):
        SVC(kernel=one_sided).fit(WORDS, KIND)
    kernel = Counted()
    kernel.diagonal = lambda A: np.ones((len(A), 1))
    with pytest.raises(ValueError, match="diagonal of the kernel function has shape"):
        SVC(kernel=kernel).fit(WORDS, KIND)
