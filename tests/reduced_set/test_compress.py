"""Compression: conversion of models, the path, thresholds, selection, the meta-estimator."""

import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import svm as peer
from sklearn.base import clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.reference import largest
from svmarrow import (
    SVC,
    SVR,
    KernelExpansion,
    ReducedSet,
    RLSRegressor,
    _core,
    as_expansion,
    compress,
    compression_path,
    load,
)
from svmarrow._support import estimator as scoring
from svmarrow.models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.reduced_set import CompressionPath, GradientSettings
from svmarrow.reduced_set import path as path_module
from svmarrow.reduced_set.holdout import HoldoutEvaluator, isotonic, sizes_to_search
from svmarrow.reduced_set.score import threshold_shifts


def naive_kernel(A, B, gamma):
    return np.exp(-gamma * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


PEERS = {
    "binary": (peer.SVC(C=2, gamma=0.01), 2),
    "ovo": (peer.SVC(C=2), 5),
    "raw pairs": (peer.SVC(decision_function_shape="ovo"), 4),
    "break ties": (peer.SVC(break_ties=True), 5),
    "linear": (peer.SVC(kernel="linear"), 3),
    "poly": (peer.SVC(kernel="poly", coef0=1.0, degree=2), 3),
    "sigmoid": (peer.SVC(kernel="sigmoid", gamma=1e-4), 3),
    "gamma auto": (peer.SVC(gamma="auto"), 3),
    "nu": (peer.NuSVC(nu=0.1), 4),
}


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("name", PEERS)
def test_scikit_learn_models_keep_their_decisions(name, layout, pixels):
    estimator, classes = PEERS[name]
    X, y, X_test, _ = pixels
    X, X_test = X / 16, X_test / 16
    rows = np.flatnonzero(y < classes)[:300]
    labels = np.array([f"class {label}" for label in y[rows]])
    model = clone(estimator).fit(layout(X[rows]), labels)
    ours = as_expansion(model)
    assert sparse.issparse(ours.expansion_.vectors) == sparse.issparse(model.support_vectors_)
    expected = model.decision_function(layout(X_test))
    np.testing.assert_allclose(ours.decision_function(layout(X_test)), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(ours.predict(layout(X_test)), model.predict(layout(X_test)))


def test_precomputed_kernel_is_converted_and_compressed_with_the_whole_matrix_only(cancer):
    X, y, X_test, _ = cancer
    model = peer.SVC(kernel="precomputed").fit(X @ X.T, y)
    ours = as_expansion(model)
    assert ours.n_features_in_ == len(y)
    np.testing.assert_allclose(ours.decision_function(X_test @ X.T), model.decision_function(X_test @ X.T))
    with pytest.raises(ValueError, match="kernel matrix of all training samples"):
        compress(model, n_vectors=5)
    small = compress(model, X @ X.T, y, n_vectors=5)
    assert small.expansion_.n_vectors == 5
    assert small.predict(X_test @ X.T).shape == (len(X_test),)


@pytest.mark.parametrize("estimator", [peer.SVR(C=3), peer.NuSVR(), peer.OneClassSVM(nu=0.2)])
def test_models_without_labels_keep_their_kind(estimator, cancer):
    X, y, X_test, y_test = cancer
    model = clone(estimator).fit(X, y.astype(float))
    ours = as_expansion(model)
    detects = isinstance(model, peer.OneClassSVM)
    kind = ExpansionDetector if detects else ExpansionRegressor
    assert isinstance(ours, kind)
    decide = model.decision_function if detects else model.predict
    np.testing.assert_allclose(ours.outputs(X_test)[:, 0], decide(X_test), rtol=1e-9, atol=1e-9)
    path = compression_path(model, n_vectors=30)
    assert isinstance(path[7], kind)
    assert path[7].expansion_.n_vectors == 7
    if not detects:
        scores = path.scores(X_test, y_test)
        expected = (
            1 - ((y_test - path[12].predict(X_test)) ** 2).sum() / ((y_test - y_test.mean()) ** 2).sum()
        )
        assert scores[11] == pytest.approx(expected, abs=1e-9)


def test_what_is_no_expansion_is_refused_by_name(cancer):
    X, y, _, _ = cancer
    with pytest.raises(TypeError, match="LinearSVC"):
        compress(peer.LinearSVC().fit(X, y), n_vectors=3)
    with pytest.raises(TypeError, match="is a class: pass a fitted instance"):
        compress(SVC, n_vectors=3)
    with pytest.raises(ValueError, match="kernel=<function"):
        compress(peer.SVC(kernel=lambda a, b: a @ b.T).fit(X, y), n_vectors=3)
    for unfitted in (SVC(), peer.SVC(), peer.SVR(), ReducedSet(SVC())):
        with pytest.raises(NotFittedError, match=type(unfitted).__name__):
            compress(unfitted, n_vectors=3)


def test_every_size_is_the_best_approximation_on_its_vectors(digits_svc, pixels):
    X_test = pixels[2]
    path = compression_path(digits_svc, n_vectors=60, tol=0)
    full = digits_svc.expansion_
    assert len(path) == 60
    assert path.stop == "converged"
    gram = naive_kernel(full.vectors, full.vectors, 0.001)
    norm2 = np.einsum("iq,ij,jq->", full.coefficients, gram, full.coefficients)
    assert path.residual_norms[0] == pytest.approx(np.sqrt(norm2), rel=1e-5)
    assert (np.diff(path.residual_norms) <= 1e-9 * path.residual_norms[0]).all()
    for size in (1, 2, 17, 60):
        small = path[size].expansion_
        np.testing.assert_array_equal(small.vectors, full.vectors[path.order[:size]])
        chosen = path.order[:size]
        best = np.linalg.solve(gram[np.ix_(chosen, chosen)], gram[chosen] @ full.coefficients)
        residual2 = norm2 - np.einsum("iq,iq->", best, gram[chosen] @ full.coefficients)
        assert path.residual_norms[size] == pytest.approx(np.sqrt(max(residual2, 0)), rel=1e-3)
        outputs = naive_kernel(X_test, small.vectors, 0.001) @ best + full.intercepts
        np.testing.assert_allclose(small.decision_function(X_test), outputs, atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("tuned", [False, True])
def test_scores_are_those_of_the_models(digits_svc, pixels, tuned, monkeypatch):
    X, y, X_test, y_test = pixels
    options = {"X": X, "y": y} if tuned else {}
    path = compression_path(digits_svc, n_vectors=50, **options)
    whole = path.scores(X_test, y_test)
    assert whole.shape == (50,)
    for size in (1, 5, 33, 50):
        assert whole[size - 1] == pytest.approx(path[size].score(X_test, y_test), abs=1.5 / len(y_test))
    np.testing.assert_array_equal(path.scores(X_test, y_test, [33, 5, 33]), whole[[32, 4, 32]])
    # The same in chunks of a few rows and groups of a few sizes.
    monkeypatch.setattr(scoring, "MAX_SCORING_BYTES", 100_000)
    monkeypatch.setattr(path_module, "TUNING_BYTES", 1_000_000)
    again = compression_path(digits_svc, n_vectors=50, **options)
    # A threshold between two that are equally good on the training rows may turn on a last digit.
    assert np.count_nonzero(again.scores(X_test, y_test) != whole) <= 2 * tuned
    assert path.scores(X_test, y_test, []).shape == (0,)


def test_a_path_of_all_vectors_ends_at_the_full_model(cancer_svc, cancer):
    _, _, X_test, y_test = cancer
    m = cancer_svc.expansion_.n_vectors
    path = compression_path(cancer_svc, n_vectors=m, tol=0)
    difference = path[len(path)].decision_function(X_test) - cancer_svc.decision_function(X_test)
    assert np.abs(difference).max() < 1e-3
    assert path.full_score(X_test, y_test) == cancer_svc.score(X_test, y_test)


def test_a_linear_machine_needs_no_more_vectors_than_columns(cancer):
    X, y, X_test, _ = cancer
    svc = SVC(kernel="linear", C=0.1).fit(X, y)
    assert svc.expansion_.n_vectors > 31
    small = largest(svc, n_vectors=svc.expansion_.n_vectors, tol=1e-4)
    assert small.expansion_.n_vectors <= X.shape[1]
    np.testing.assert_array_equal(small.predict(X_test), svc.predict(X_test))


@pytest.mark.parametrize("fixture", ["pixels", "cancer"])
def test_tuned_thresholds_make_no_more_training_errors(fixture, request):
    X, y, _, _ = request.getfixturevalue(fixture)
    for multi_class in ("ovr", "ovo"):
        svc = SVC(C=10, gamma=0.001, multi_class=multi_class).fit(X, y)
        plain = compression_path(svc, n_vectors=20).scores(X, y)
        tuned = compression_path(svc, n_vectors=20, X=X, y=y).scores(X, y)
        if fixture == "cancer" or multi_class == "ovr":
            assert (tuned >= plain - 1e-12).all()
        assert tuned.sum() > plain.sum()


def test_binary_threshold_is_the_best_of_all(cancer_svc, cancer):
    X, y, _, _ = cancer
    plain = compress(cancer_svc, n_vectors=3)
    outputs = plain.outputs(X)[:, 0]
    candidates = np.concatenate([[0], -outputs + 1e-9, -outputs - 1e-9])
    fewest = min(((outputs + shift >= 0) != y).sum() for shift in candidates)
    tuned = compress(cancer_svc, n_vectors=3, X=X, y=y, method="backfit")
    assert (tuned.predict(X) != y).sum() == fewest
    assert tuned.expansion_.intercepts != plain.expansion_.intercepts


def test_thresholds_of_pairs_look_at_their_two_classes_only():
    expansion = KernelExpansion(np.zeros((1, 1)), np.ones((1, 3)), np.zeros(3), kernel="linear")
    model = ExpansionClassifier(expansion, ["a", "b", "c"], "ovo")
    labels = np.array([0, 0, 1, 1, 2])
    outputs = np.array([[-1.0, 9, 9], [-0.5, 9, 9], [-3, 9, 9], [-4, 9, 9], [100, -9, -9]])
    found = threshold_shifts(model, outputs, labels)
    # Pair (a, b): a's rows are at -1 and -0.5, b's at -3 and -4; the row of class c has no say.
    assert 1.0 < found[0] < 3.0
    assert found[1] == 0.0
    assert found[2] == 0.0


def test_select_takes_the_smallest_that_is_good_enough(digits_svc, pixels):
    X, y, X_test, y_test = pixels
    path = compression_path(digits_svc, n_vectors=300, X=X, y=y)
    small = path.select(X_test, y_test, max_loss=0.01)
    size = small.expansion_.n_vectors
    scores, full = path.scores(X_test, y_test), digits_svc.score(X_test, y_test)
    looked = np.array(sizes_to_search(path.sizes))
    evaluator = HoldoutEvaluator(path.model, X_test, y_test)
    losses = [evaluator.safe_loss(one) for _, one in evaluator.levels(path._outputs, looked.tolist())]
    losses = np.array(isotonic(losses))
    assert (losses[looked >= size] <= 0.01 + 1e-9).all()
    assert losses[looked < size][0] > 0.01
    promise = small.loss_bound_
    assert promise.loss == pytest.approx(full - scores[size - 1])
    assert (promise.n_samples, promise.confidence, promise.max_loss) == (len(y_test), 0.95, 0.01)
    assert promise.upper > promise.loss
    assert path.select(X_test, y_test, max_loss=0.99).expansion_.n_vectors == 1
    with pytest.raises(ValueError, match=r"max_loss=0 is not reached: 3 vectors, the largest size"):
        compression_path(digits_svc, n_vectors=3).select(X_test, y_test, max_loss=0)
    for bad in (-0.1, np.nan, "a", True):
        with pytest.raises(ValueError, match="max_loss"):
            path.select(X_test, y_test, max_loss=bad)


def test_a_target_gives_the_smallest_model_that_meets_it(cancer_svc, cancer):
    X, y, X_test, y_test = cancer
    held = X_test, y_test
    path = compression_path(cancer_svc, X, y)
    by_loss = compress(cancer_svc, X, y, max_loss=0.03, validation=held, method="backfit")
    assert by_loss.expansion_ == path.select(*held, max_loss=0.03).expansion_
    quick = {"method": "backfit", "validation": (X_test, None)}
    agreeing = compress(cancer_svc, X=X, y=y, min_agreement=0.95, **quick)
    assert agreeing.expansion_ == path.select(X_test, min_agreement=0.95).expansion_
    with pytest.raises(ValueError, match=r"max_loss=0 is not reached.*larger n_vectors"):
        compression_path(cancer_svc, X, y, n_vectors=1).select(*held, max_loss=0)
    strict = path.select(*held, max_loss=0.08, strict=True)
    assert strict.loss_bound_.guaranteed
    assert strict.expansion_.n_vectors >= path.select(*held, max_loss=0.08).expansion_.n_vectors


GOALS = {"n_vectors": 9, "max_loss": 0.02, "min_agreement": 0.98, "max_bytes": 4000}


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(GOALS, 2)])
def test_a_compression_has_one_goal(cancer_svc, cancer, one, other):
    X, y, _, _ = cancer
    message = f"{one}={GOALS[one]} and {other}={GOALS[other]} are not allowed together"
    with pytest.raises(ValueError, match=message):
        compress(cancer_svc, X, y, **{one: GOALS[one], other: GOALS[other]})
    if "n_vectors" not in (one, other):
        with pytest.raises(ValueError, match=message):
            compression_path(cancer_svc).select(X, y, **{one: GOALS[one], other: GOALS[other]})


def test_candidates_may_be_rows(cancer_svc, cancer):
    X = cancer[0]
    path = compression_path(cancer_svc, n_vectors=10, candidates="samples", X=X)
    np.testing.assert_array_equal(path.vectors, X[path.order])
    own = compression_path(cancer_svc, n_vectors=10)
    assert path.residual_norms[1] <= own.residual_norms[1] * 1.001
    assert set(path.order) - set(cancer_svc.support_), "some row that is no support vector is of use"
    sparse_path = compression_path(cancer_svc, n_vectors=10, candidates="samples", X=sparse.csr_array(X))
    np.testing.assert_array_equal(sparse_path.order, path.order)


def test_layouts_and_threads_do_not_change_the_path(cancer):
    X, y, X_test, _ = cancer
    reference = compression_path(SVC(gamma=0.01, n_jobs=1).fit(X, y), n_vectors=15, n_jobs=1)
    for model in (SVC(gamma=0.01).fit(sparse.csr_array(X), y), SVC(gamma=0.01).fit(np.asfortranarray(X), y)):
        path = compression_path(model, n_vectors=15, n_jobs=2)
        np.testing.assert_allclose(
            path[15].decision_function(X_test), reference[15].decision_function(X_test), atol=1e-3
        )
    single = SVC(gamma=0.01).fit(X.astype(np.float32), y)
    path = compression_path(single, n_vectors=15, X=X, y=y)
    assert path.vectors.dtype == np.float32
    assert path.scores(X.astype(np.float32), y)[14] == pytest.approx(path.scores(X, y)[14], abs=0.01)
    again = compression_path(SVC(gamma=0.01, n_jobs=2).fit(X, y), n_vectors=15, n_jobs=2)
    np.testing.assert_array_equal(again.order, reference.order)
    np.testing.assert_array_equal(again.residual_norms, reference.residual_norms)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_vectors": 0}, "n_vectors=0"),
        ({"n_vectors": -3}, "n_vectors=-3"),
        ({"n_vectors": 2.5}, "n_vectors=2.5"),
        ({"n_vectors": True}, "n_vectors=True"),
        ({}, "without samples the loss is not known: give X and y, or limit the size"),
        ({"max_loss": 0.1}, r"max_loss=0.1 needs samples .* or validation=\(X, y\)"),
        ({"max_loss": 0.1, "X": np.zeros((4, 30))}, "max_loss=0.1 needs labels or targets y"),
        ({"max_loss": 1, "X": np.zeros((4, 30)), "y": [0, 0, 1, 1]}, "max_loss=1 .* 0.01 is one percentage"),
        ({"max_bytes": 0}, "max_bytes=0"),
        ({"max_bytes": 90, "dtype": "int8"}, "max_bytes=90 .* which one vector of bytes takes"),
        ({"n_vectors": 3, "dtype": "int4"}, "dtype='int4'"),
        ({"max_loss": 0.1, "dtype": "int8", "X": np.zeros((4, 30)), "y": [0, 0, 1, 1]}, "dtype='int8'"),
        ({"max_bytes": 9, "X": np.zeros((4, 30)), "y": [0, 0, 1, 1]}, "max_bytes=9 is less than"),
        ({"max_bytes": 9, "X": np.zeros((4, 30)), "method": "gradient"}, "max_bytes=9 is not allowed"),
        ({"n_vectors": 3, "X": np.zeros((4, 30)), "settings": 3}, "settings=3"),
        ({"X": np.zeros((1, 30)), "y": [0]}, "X has 1 samples: at least 2 are needed"),
        ({"max_loss": -0.1, "validation": (np.zeros((1, 30)), [0])}, "max_loss=-0.1"),
        (
            {"max_loss": 0.1, "validation": (np.zeros((1, 30)), None)},
            "max_loss=0.1 needs labels or targets y",
        ),
        (
            {"min_agreement": 0.9, "validation": np.zeros((3, 30))},
            r"must be None, \(X, y\) or \(X, y, sample_weight\)",
        ),
        ({"n_vectors": 3, "random_state": "dice"}, "random_state='dice'"),
        ({"n_vectors": 3, "method": "magic"}, "method='magic'"),
        ({"n_vectors": 3, "method": "l1"}, "method='l1'"),
        ({"n_vectors": 3, "n_jobs": 0}, "n_jobs=0"),
        ({"n_vectors": 3, "y": [1]}, "y is given without X"),
        ({"n_vectors": 3, "X": np.zeros((4, 7)), "y": [0, 0, 1, 1]}, "7 features"),
        ({"n_vectors": 3, "X": np.zeros((4, 30)), "y": [0, 1]}, "X has 4 samples, y has 2"),
        (
            {"n_vectors": 3, "X": np.zeros((2, 30)), "y": [0, 7], "method": "backfit"},
            r"labels that the model does not know, such as \[7\]",
        ),
        ({"n_vectors": 3, "X": np.full((2, 30), np.nan), "y": [0, 1]}, "NaN"),
    ],
)
def test_bad_input_is_named(cancer_svc, options, message):
    with pytest.raises(ValueError, match=message):
        compress(cancer_svc, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": "stars"}, "candidates='stars'"),
        ({"candidates": "samples"}, "candidates='samples' needs X"),
        ({"tol": -1}, "tol=-1"),
        ({"max_time": np.nan}, "max_time=nan"),
        ({"method": "auto"}, "method='auto'"),
    ],
)
def test_bad_input_of_a_path_is_named(cancer_svc, options, message):
    with pytest.raises(ValueError, match=message):
        compression_path(cancer_svc, n_vectors=3, **options)


def test_bad_input_of_a_choice_is_named(cancer_svc, cancer):
    path = compression_path(cancer_svc, n_vectors=3)
    for name, value in (("confidence", 1.0), ("strict", "very"), ("max_bytes", 0)):
        with pytest.raises(ValueError, match=f"{name}={value!r}"):
            path.select(*cancer[:2], **{name: value})


def test_more_vectors_than_there_are_means_all(cancer_svc, cancer):
    m = cancer_svc.expansion_.n_vectors
    assert largest(cancer_svc, n_vectors=m + 100, tol=0).expansion_.n_vectors == m
    few = largest(cancer_svc, cancer[0][:5], n_vectors=50, candidates="samples", tol=0)
    assert few.expansion_.n_vectors == 5
    with pytest.raises(TypeError, match=r"X=100 is not allowed: it must be samples; .* n_vectors=100"):
        compress(cancer_svc, 100)
    with pytest.raises(TypeError, match="n_vectors=100"):
        compression_path(cancer_svc, 100)


def test_sizes_that_are_not_there(cancer_svc):
    path = compression_path(cancer_svc, n_vectors=5)
    for size in (0, 6, -1):
        with pytest.raises(IndexError, match="sizes 1 to 5"):
            path[size]
    with pytest.raises(TypeError, match=r"size=2.0"):
        path[2.0]
    with pytest.raises(ValueError, match="X has 3 rows, y has shape"):
        path.scores(np.zeros((3, 30)), [0, 1])


def test_a_path_that_runs_out_of_time_is_usable(digits_svc, monkeypatch):
    with pytest.raises(ValueError, match="max_time=0 was over before the first vector"):
        compression_path(digits_svc, n_vectors=400, tol=0, max_time=0)
    pursuit = _core.pursuit

    def early(parts, rivals, compared, given, *rest):
        return pursuit(parts, rivals, compared, {**given, "max_vectors": 7}, *rest) | {"stop": "max_time"}

    monkeypatch.setattr(_core, "pursuit", early)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_time\) with 7 vectors") as caught:
        path = compression_path(digits_svc, n_vectors=400, tol=0, max_time=60)
    assert caught[0].filename == __file__
    assert (len(path), path.stop) == (7, "max_time")
    assert path[7].expansion_.n_vectors == 7


def test_the_compressed_classifier_is_a_scikit_learn_citizen(digits_svc, pixels):
    X, y, X_test, y_test = pixels
    small = compress(digits_svc, n_vectors=80, X=X, y=y, method="backfit")
    assert isinstance(small, ExpansionClassifier)
    assert clone(small) is not small
    assert clone(small).expansion is small.expansion
    again = pickle.loads(pickle.dumps(small))
    np.testing.assert_array_equal(again.decision_function(X_test), small.decision_function(X_test))
    with pytest.raises(TypeError, match="ReducedSet"):
        small.fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but ExpansionClassifier is expecting 64"):
        small.predict(np.zeros((2, 3)))
    calibrated = CalibratedClassifierCV(FrozenEstimator(small)).fit(X, y)
    assert (calibrated.predict_proba(X_test).argmax(axis=1) == y_test).mean() > 0.9
    assert "80 vectors" in repr(small)
    assert [model.expansion_.n_vectors for model in compression_path(digits_svc, n_vectors=3)] == [1, 2, 3]
    # Compressing once more works on what is left.
    assert compress(small, n_vectors=40).expansion_.n_vectors == 40


def test_a_calibrated_estimator_keeps_its_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    machine = CalibratedClassifierCV(SVC(C=2.0, gamma=0.02), ensemble=False)
    whole = clone(machine).fit(X, y).predict_proba(X)
    small = ReducedSet(machine, 60).fit(X, y)
    probabilities = small.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.abs(probabilities - whole).mean() < 0.01
    np.testing.assert_array_equal(small.predict(X), small.classes_[probabilities.argmax(axis=1)])
    # A search by probabilities prefers more vectors.
    search = GridSearchCV(ReducedSet(machine), {"n_vectors": [1, 60]}, scoring="neg_log_loss", cv=2).fit(X, y)
    assert search.best_params_ == {"n_vectors": 60}
    assert search.predict_proba(X).shape == (len(y), 2)
    # Before the fit the estimator decides, as for scikit-learn's meta-estimators.
    assert hasattr(ReducedSet(machine), "predict_proba")
    with pytest.raises(NotFittedError):
        ReducedSet(machine).predict_proba(X)
    for without in (ReducedSet(SVC()), ReducedSet(SVC(), 5).fit(X, y), ReducedSet(SVR(), 5).fit(X, y)):
        assert not hasattr(without, "predict_proba")


def test_column_names_are_remembered(cancer):
    X, y, _, _ = cancer
    frame = pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    small = compress(peer.SVC().fit(frame, y), n_vectors=5)
    assert list(small.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        small.predict(frame.rename(columns={"column 0": "other"}))
    unnamed = compress(SVC().fit(X, y), n_vectors=5)
    assert not hasattr(unnamed, "feature_names_in_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": [1]}, "at least two distinct"),
        ({"classes": [1, 1]}, "at least two distinct"),
        ({"decoding": "vote"}, "decoding='vote'"),
        ({"classes": [1, 2, 3]}, "decoding='binary'"),
        ({"decision_function_shape": "any"}, "decision_function_shape='any'"),
        ({"decoding": "ovr"}, "needs 2"),
        ({"n_features": 4}, "n_features=4"),
        ({"feature_names": ["a"]}, "feature_names has 1 names"),
    ],
)
def test_the_classifier_refuses_parts_that_do_not_fit(options, message):
    expansion = KernelExpansion(np.zeros((1, 2)), [1.0], 0.0)
    with pytest.raises(ValueError, match=message):
        ExpansionClassifier(**{"expansion": expansion, "classes": [0, 1], "decoding": "binary", **options})


# --- the meta-estimator ---


def test_reduced_set_in_a_pipeline_and_a_search(cancer):
    X, y, X_test, y_test = cancer
    model = make_pipeline(StandardScaler(), ReducedSet(SVC(C=10, gamma=0.01)))
    search = GridSearchCV(model, {"reducedset__n_vectors": [1, 8, 10_000]}, cv=3).fit(X, y)
    assert search.cv_results_["mean_test_score"][1] > search.cv_results_["mean_test_score"][0]
    reduced = search.best_estimator_[-1]
    assert reduced.n_vectors_ <= reduced.estimator_.expansion_.n_vectors
    assert search.score(X_test, y_test) > 0.9


def test_reduced_set_delegates(pixels):
    X, y, X_test, y_test = pixels
    labels = np.array(list("zyxwvutsrq"))[y]
    reduced = ReducedSet(peer.SVC(C=10, gamma=0.001), n_vectors=60).fit(X, labels)
    assert reduced.n_vectors_ == reduced.expansion_.n_vectors == 60
    np.testing.assert_array_equal(reduced.classes_, reduced.estimator_.classes_)
    assert reduced.score(X_test, np.array(list("zyxwvutsrq"))[y_test]) > 0.9
    same = compress(reduced.estimator_, n_vectors=60, X=X, y=labels, method="backfit")
    np.testing.assert_array_equal(reduced.decision_function(X_test), same.decision_function(X_test))
    loose = ReducedSet(peer.SVC(C=10, gamma=0.001), n_vectors=60, tune_threshold=False).fit(X, labels)
    assert (loose.expansion_.intercepts == loose.estimator_.intercept_).all()
    weighted = ReducedSet(SVC(), n_vectors=60).fit(X, labels, sample_weight=1.0 + y)
    np.testing.assert_array_equal(weighted.expansion_.intercepts, weighted.estimator_.intercept_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_vectors": 0}, "n_vectors=0"),
        ({"n_vectors": None}, "n_vectors=None"),
        ({"method": "magic"}, "method='magic'"),
        ({"candidates": "none"}, "candidates='none'"),
        ({"tune_threshold": "yes"}, "tune_threshold='yes'"),
        ({"tol": -1.0}, "tol=-1"),
    ],
)
def test_reduced_set_names_bad_parameters(options, message, cancer):
    X, y, _, _ = cancer
    with pytest.raises(ValueError, match=message):
        ReducedSet(SVC(), **options).fit(X, y)


def test_reduced_set_refuses_what_does_not_classify(cancer):
    X, y, _, _ = cancer
    with pytest.raises(TypeError, match="must be a classifier or a regressor"):
        ReducedSet(peer.OneClassSVM()).fit(X, y)


@pytest.mark.parametrize("method", ["backfit", "gradient"])
@pytest.mark.parametrize("columns", [0, 1, 2])
def test_reduced_set_compresses_regressors(diabetes, method, columns):
    X, y = diabetes
    targets = np.column_stack([y, -2.0 * y])[:, :columns] if columns else y
    settings = GradientSettings(steps=300) if method == "gradient" else None
    model = ReducedSet(RLSRegressor(alpha=1.0), 30, method=method, settings=settings, random_state=0)
    model.fit(X[:300], targets[:300])
    full = model.estimator_
    assert is_regressor(model)
    assert model.n_vectors_ == 30 < full.expansion_.n_vectors
    assert model.predict(X[300:]).shape == full.predict(X[300:]).shape
    assert model.score(X[300:], targets[300:]) > full.score(X[300:], targets[300:]) - 0.1
    assert not hasattr(model, "decision_function")
    assert not hasattr(model, "classes_")
    compressed = as_expansion(model)
    assert isinstance(compressed, ExpansionRegressor)
    np.testing.assert_array_equal(compressed.predict(X), model.predict(X))


def test_reduced_set_of_a_regressor_in_a_search(diabetes, tmp_path):
    X, y = diabetes
    search = GridSearchCV(ReducedSet(peer.SVR(C=100.0, gamma=0.02)), {"n_vectors": [1, 200]}, cv=3).fit(X, y)
    assert search.best_params_ == {"n_vectors": 200}
    weighted = ReducedSet(SVR(C=100.0), 20).fit(X, y, sample_weight=1.0 + (X[:, 0] > 0.0))
    assert as_expansion(weighted).weighted is True
    weighted.save(tmp_path / "reduced")
    np.testing.assert_array_equal(load(tmp_path / "reduced").predict(X), weighted.predict(X))


def test_usps_errors_at_two_sizes():
    folder = Path(os.environ.get("SVMARROW_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (folder / "usps.npz").exists():
        pytest.skip("usps.npz is not in SVMARROW_DATA")
    with np.load(folder / "usps.npz") as data:
        X, y, X_test, y_test = (data[name] for name in ("X", "y", "X_test", "y_test"))
    svc = SVC(C=10, gamma=1 / 128, multi_class="ovr").fit(X.astype(np.float32), y)
    path = compression_path(svc, n_vectors=800)
    errors = 1 - path.scores(X_test.astype(np.float32), y_test, [400, 800])
    assert isinstance(path, CompressionPath)
    assert errors[0] <= 0.060
    assert errors[1] <= 0.046
