"""Weights of classes and samples outlive compression, saving, wrappers and the choice of sizes."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as peer
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, VotingClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import accuracy_score, balanced_accuracy_score, r2_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.programs import command
from helpers.public import PUBLIC
from helpers.reference import largest
from svmarrow import (
    SVC,
    SVCCV,
    SVR,
    CodedClassifier,
    KMPClassifier,
    KMPRegressor,
    LowRankSVC,
    NuSVC,
    OneClassSVM,
    ReducedSet,
    RLSClassifier,
    RLSRegressor,
    TabularClassifier,
    as_expansion,
    compress,
    compression_path,
    load,
    patch_sklearn,
    quantize,
    save,
    unpatch_sklearn,
)
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.exceptions import SizeWarning
from svmarrow.io import save_libsvm_model
from svmarrow.least_squares import (
    LinearRLSClassifier,
    LowRankRLSClassifier,
)
from svmarrow.models import ExpansionClassifier
from svmarrow.online import KernelPerceptron
from svmarrow.reduced_set import GradientSettings
from svmarrow.reduced_set.holdout import paired_bound, weighted_bound

QUICK = GradientSettings(steps=300)


def made(n, seed):
    """Two classes, 93 and 7 of 100 rows, whose rows overlap."""
    random = np.random.default_rng(seed)
    y = np.zeros(n, dtype=int)
    y[: round(0.07 * n)] = 1
    random.shuffle(y)
    X = random.normal(size=(n, 3))
    X[y == 1, :2] += 0.9
    return X, y


X, Y = made(1000, 0)
X_LEARN, Y_LEARN = made(1000, 1)
X_TEST, Y_TEST = made(4000, 2)
ROWS = np.where(Y == 1, 13.0, 1.0)
KIND = Y + 2 * (X[:, 2] > 1.4)
KINDS = {0: 1.0, 1: 5.0, 2: 2.0, 3: 9.0}


@pytest.fixture(scope="module")
def full():
    return SVC(C=1.0, gamma=0.3, class_weight="balanced").fit(X, Y)


@pytest.fixture(scope="module")
def plain():
    return SVC(C=1.0, gamma=0.3).fit(X, Y)


@pytest.fixture(scope="module")
def libsvm(full, tmp_path_factory):
    """A file that does not say whether there were weights."""
    path = tmp_path_factory.mktemp("libsvm") / "weighted.model"
    save_libsvm_model(full, path)
    return path


def balanced(model):
    return balanced_accuracy_score(Y_TEST, model.predict(X_TEST))


def by_class(**options):
    return SVC(gamma=0.3, class_weight="balanced", **options).fit(X, Y)


def by_row(model=None, rows=X, labels=Y):
    return (SVC(gamma=0.3) if model is None else model).fit(rows, labels, sample_weight=ROWS)


def sklearn_by_row():
    return peer.SVC(gamma=0.3).fit(X, Y, sample_weight=ROWS)


def patched():
    patch_sklearn()
    try:
        return peer.SVC(gamma=0.3, class_weight="balanced").fit(X, Y)
    finally:
        unpatch_sklearn()


WEIGHTED = {
    "class_weight": by_class,
    "a dict": lambda: SVC(gamma=0.3, class_weight={1: 4.0}).fit(X, Y),
    "sample_weight": by_row,
    "sparse": lambda: SVC(gamma=0.3, class_weight="balanced").fit(sparse.csr_array(X), Y),
    "one-vs-rest": lambda: SVC(gamma=0.3, multi_class="ovr", class_weight=KINDS).fit(X, KIND),
    "NuSVC": lambda: NuSVC(nu=0.1, gamma=0.3, class_weight={1: 4.0}).fit(X, Y),
    "LowRankSVC": lambda: LowRankSVC(60, gamma=0.3, class_weight="balanced", random_state=0).fit(X, Y),
    "RLSClassifier": lambda: RLSClassifier(0.1, gamma=0.3, class_weight="balanced").fit(X, Y),
    "LowRankRLS": lambda: LowRankRLSClassifier(60, gamma=0.3, class_weight="balanced").fit(X, Y),
    "pieces": lambda: (
        LowRankRLSClassifier(60, gamma=0.3, class_weight={1: 9.0})
        .partial_fit(X[:500], Y[:500], [0, 1])
        .partial_fit(X[500:], Y[500:])
    ),
    "LinearRLSClassifier": lambda: LinearRLSClassifier(0.1, class_weight="balanced").fit(X, Y),
    "KMPClassifier": lambda: KMPClassifier(30, gamma=0.3, class_weight="balanced").fit(X, Y),
    "SVCCV": lambda: SVCCV(Cs=[1.0], gammas=[0.3, 1.0], cv=2, class_weight="balanced").fit(X, Y),
    "SVCCV by row": lambda: by_row(SVCCV(Cs=[1.0], gammas=[0.3, 1.0], cv=2)),
    "coded": lambda: CodedClassifier(SVC(gamma=0.3), "ovr", class_weight=KINDS).fit(X, KIND),
    "coded machines": lambda: CodedClassifier(SVC(gamma=0.3, class_weight=KINDS), "ovr").fit(X, KIND),
    "coded, one by one": lambda: CodedClassifier(SVC(gamma=0.3), "ovo", class_weight=KINDS, shared=False).fit(
        X, KIND
    ),
    "coded peers": lambda: CodedClassifier(peer.SVC(gamma=0.3, class_weight="balanced"), "ovr").fit(X, KIND),
    "bagged": lambda: BaggingClassifier(SVC(gamma=0.3), 3, random_state=0).fit(X, Y),
    "bagged machines": lambda: BaggingClassifier(
        SVC(gamma=0.3, class_weight="balanced"), 3, random_state=0
    ).fit(X, Y),
    "TabularClassifier": lambda: TabularClassifier(
        n_samples=100, class_weight="balanced", random_state=0
    ).fit(X, Y),
    "ReducedSet": lambda: ReducedSet(SVC(gamma=0.3, class_weight="balanced"), 40).fit(X, Y),
    "ReducedSet by row": lambda: by_row(ReducedSet(peer.SVC(gamma=0.3), 40)),
    "pipeline": lambda: make_pipeline(StandardScaler(), SVC(gamma=0.3, class_weight="balanced")).fit(X, Y),
    "calibrated": lambda: CalibratedClassifierCV(FrozenEstimator(by_class())).fit(X_LEARN, Y_LEARN),
    "calibrated inside": lambda: CalibratedClassifierCV(
        SVC(gamma=0.3, class_weight="balanced"), ensemble=False
    ).fit(X, Y),
    "one-vs-rest wrapper": lambda: OneVsRestClassifier(SVC(gamma=0.3, class_weight="balanced")).fit(X, KIND),
    "one-vs-one wrapper": lambda: OneVsOneClassifier(SVC(gamma=0.3, class_weight="balanced")).fit(X, KIND),
    "patched": patched,
    "scikit-learn's SVC": lambda: peer.SVC(gamma=0.3, class_weight="balanced").fit(X, Y),
    "scikit-learn's NuSVC": lambda: peer.NuSVC(nu=0.1, gamma=0.3, class_weight={1: 4.0}).fit(X, Y),
    "scikit-learn's by row": sklearn_by_row,
}


@pytest.mark.quick_every(4)
@pytest.mark.parametrize("name", WEIGHTED)
def test_a_weighted_model_keeps_its_thresholds(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what scikit-learn says of its own parameters
        model = WEIGHTED[name]()
    whole = as_expansion(model)
    assert whole.weighted is True
    save(whole, tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").weighted is True
    others = ("patched", "coded peers", "ReducedSet by row")  # parts of scikit-learn, which are not saved
    if type(model).__module__.startswith("svmarrow") and name not in others:
        save(model, tmp_path / "estimator.safetensors")
        assert as_expansion(load(tmp_path / "estimator.safetensors")).weighted is True
    labels = KIND if len(whole.classes_) > 2 else Y
    path = compression_path(model, X, labels, n_vectors=10)
    for size in {min(5, len(path)), len(path)}:
        np.testing.assert_array_equal(path[size].expansion_.intercepts, whole.expansion_.intercepts)
        assert path[size].weighted is True
    answers = compression_path(model, X, n_vectors=10)[len(path)]
    np.testing.assert_array_equal(answers.expansion_.intercepts, whole.expansion_.intercepts)
    assert quantize(model).weighted is True


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (lambda: SVC().fit(X, Y), False),
        (lambda: SVC(class_weight={0: 2.0, 1: 2.0}).fit(X, Y), False),
        (lambda: SVC().fit(X, Y, sample_weight=np.full(len(Y), 0.3)), False),
        (lambda: SVC().fit(X, Y, sample_weight=np.arange(len(Y)) % 2), False),  # some rows are left out
        (lambda: by_class().set_params(class_weight=None).fit(X, Y), False),
        (lambda: RLSClassifier(0.1).fit(X, Y), False),
        (lambda: KMPClassifier(9).fit(X, Y), False),
        (lambda: CodedClassifier(SVC(), "ovr").fit(X, KIND), False),
        (lambda: VotingClassifier([("a", SVC(gamma=0.3)), ("b", SVC(gamma=0.3, C=9))]).fit(X, Y), False),
        (lambda: SVCCV(Cs=[1.0], gammas=[0.3, 1.0], cv=2).fit(X, Y), False),
        (lambda: KernelPerceptron().fit(X, Y), False),
        (lambda: make_pipeline(StandardScaler(), SVC()).fit(X, Y), False),
        (lambda: OneVsRestClassifier(SVC()).fit(X, KIND), False),
        (lambda: peer.SVC().fit(X, Y), None),
        (lambda: OneVsRestClassifier(peer.SVC()).fit(X, KIND), None),
    ],
)
def test_models_without_weights(model, known):
    assert as_expansion(model()).weighted is known


@pytest.mark.parametrize(
    ("model", "weighted", "known"),
    [
        (SVR(), True, True),
        (SVR(), False, False),
        (RLSRegressor(0.1), True, True),
        (RLSRegressor(0.1), False, False),
        (KMPRegressor(9), True, True),
        (KMPRegressor(9), False, False),
        (VotingRegressor([("a", SVR(gamma=0.3)), ("b", RLSRegressor(0.1, gamma=0.3))]), True, True),
        (VotingRegressor([("a", SVR(gamma=0.3)), ("b", RLSRegressor(0.1, gamma=0.3))]), False, False),
        (OneClassSVM(), True, True),
        (OneClassSVM(), False, False),
        (peer.SVR(), True, True),
        (peer.SVR(), False, None),
        (KernelRidge(kernel="rbf"), True, None),
    ],
    ids=lambda value: repr(value),
)
def test_models_of_numbers_and_outliers(model, weighted, known, tmp_path):
    targets = X[:, 0] + X[:, 1] ** 2
    weights = {"sample_weight": 1.0 + 3.0 * (X[:, 2] > 0.5)} if weighted else {}
    whole = as_expansion(model.fit(X, targets, **weights))
    assert whole.weighted is known
    save(whole, tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").weighted is known
    # Means of the outputs are moved to those of y only where all rows are known to count alike.
    if isinstance(model, OneClassSVM):
        return
    shifted = compression_path(whole, X, targets + 1.0, n_vectors=8)[8].predict(X).mean()
    answers = compression_path(whole, X, n_vectors=8)[8].predict(X).mean()
    if known is False:
        assert shifted == pytest.approx(targets.mean() + 1.0)
    else:
        assert shifted == pytest.approx(answers)


def test_models_made_of_others_know_it_too():
    weighted = RLSClassifier(0.1, class_weight=KINDS).fit(X, KIND)
    assert as_expansion(CodedClassifier.from_ovr(weighted, "ovr")).weighted is True
    plain_ = RLSClassifier(0.1).fit(X, KIND)
    assert as_expansion(CodedClassifier.from_ovr(plain_, "ovr")).weighted is False
    points = {"selection": X[:40], "gamma": 0.3}
    first = LowRankRLSClassifier(40, **points).fit(X[:500], Y[:500])
    assert as_expansion(first.path([0.1])[0]).weighted is False
    second = LowRankRLSClassifier(40, class_weight="balanced", **points).fit(X[500:], Y[500:])
    assert as_expansion(second.path([0.1])[0]).weighted is True
    assert as_expansion(first.merge(second)).weighted is True
    # A piece of one weight counts more than one of another.
    pieces = LowRankRLSClassifier(40, **points).partial_fit(X[:500], Y[:500], [0, 1])
    assert as_expansion(pieces).weighted is False
    pieces.partial_fit(X[500:], Y[500:], sample_weight=np.full(500, 2.0))
    assert as_expansion(pieces).weighted is True


METHODS = {
    "auto": lambda model: compress(model, X_LEARN, Y_LEARN, settings=QUICK, random_state=0),
    "auto of a size": lambda model: compress(
        model, X_LEARN, Y_LEARN, n_vectors=40, settings=QUICK, random_state=0
    ),
    "pursuit": lambda model: compress(model, X_LEARN, Y_LEARN, n_vectors=40, method="backfit"),
    "prefit": lambda model: compress(model, X_LEARN, Y_LEARN, n_vectors=40, method="prefit"),
    "l1": lambda model: largest(model, X_LEARN, Y_LEARN, n_vectors=60, method="l1"),
    "gradient": lambda model: compress(
        model, X_LEARN, Y_LEARN, n_vectors=20, method="gradient", settings=QUICK, random_state=0
    ),
    "rows": lambda model: largest(model, X_LEARN, Y_LEARN, n_vectors=60, candidates="samples"),
    "select": lambda model: compression_path(model, X, Y).select(X_LEARN, Y_LEARN),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["svmarrow", "scikit-learn", "libsvm", "pipeline"])
def test_balanced_accuracy_stays(method, kind, full, libsvm):
    model = {
        "svmarrow": lambda: full,
        "scikit-learn": lambda: peer.SVC(gamma=0.3, class_weight="balanced").fit(X, Y),
        "libsvm": lambda: as_expansion(libsvm),
        "pipeline": lambda: make_pipeline(StandardScaler(), by_class()).fit(X, Y),
    }[kind]()
    small = METHODS[method](model)
    before = balanced(model)
    assert before > 0.68
    # Fitted to plain errors, thresholds give .5 to .55.
    assert balanced(small) > before - 0.04


@pytest.mark.parametrize("method", ["backfit", "gradient"])
def test_reduced_sets_keep_weights(method, full):
    options = {"method": method, "settings": QUICK if method == "gradient" else None, "random_state": 0}
    small = ReducedSet(SVC(gamma=0.3, class_weight="balanced"), 30, **options).fit(X, Y)
    assert balanced(small) > balanced(full) - 0.04
    by_rows = ReducedSet(SVC(gamma=0.3), 30, **options).fit(X, Y, sample_weight=ROWS)
    assert balanced(by_rows) > balanced(full) - 0.04
    search = ReducedSet(SVCCV(Cs=[1.0], gammas=[0.3, 1.0], cv=2, class_weight="balanced"), 30, **options)
    assert balanced(search.fit(X, Y)) > balanced(full) - 0.05


def test_cascades_keep_weights(full):
    machine = SVC(C=1.0, gamma=0.3, class_weight="balanced")
    exact = ExactCascade(machine, 60).fit(X, Y)
    np.testing.assert_array_equal(exact.predict(X_TEST), full.predict(X_TEST))
    calibrated = CalibratedCascade(machine, 60, epsilon=0.05, random_state=0).fit(X, Y)
    assert balanced(calibrated) > balanced(calibrated.model_) - 0.04


@pytest.mark.parametrize("balanced_", [True, False])
def test_the_command_keeps_weights(balanced_, tmp_path):
    def run(*arguments):
        return command(*arguments).output

    np.savez(tmp_path / "train.npz", X=X, y=Y)
    np.savez(tmp_path / "learn.npz", X=X_LEARN, y=Y_LEARN)
    model, small = tmp_path / "model.safetensors", tmp_path / "small.safetensors"
    run("train", tmp_path / "train.npz", "-o", model, "--gamma", 0.3, *["--balanced"] * balanced_)
    assert as_expansion(load(model)).weighted is balanced_
    told = run(
        "compress", model, "-o", small, "--data", tmp_path / "learn.npz", "-m", "backfit", "--max-loss", 0.02
    )
    assert ("Balanced accuracy" in told) is balanced_
    assert np.unique(load(small).predict(X_TEST)).size == 2
    if balanced_:
        assert balanced(load(small)) > balanced(load(model)) - 0.04
        told = run(
            "compress", model, "-o", small, "--validation", tmp_path / "learn.npz", "-m", "backfit",
            "--scoring", "accuracy", "--max-loss", 0.5,
        )  # fmt: skip
        assert "\nAccuracy " in told


def test_what_is_not_known_follows_the_model_and_not_the_labels(libsvm):
    whole = as_expansion(libsvm)
    assert whole.weighted is None
    assert ExpansionClassifier(whole.expansion_, [0, 1], "binary").weighted is None
    options = {"n_vectors": 12, "method": "backfit"}
    answers = compress(whole, X_LEARN, **options).expansion_.intercepts
    assert (answers != whole.expansion_.intercepts).any()
    np.testing.assert_array_equal(compress(whole, X_LEARN, Y_LEARN, **options).expansion_.intercepts, answers)
    # Whoever names the loss has the thresholds that are best for it.
    named = compress(whole, X_LEARN, Y_LEARN, scoring="accuracy", **options)
    assert named.score(X_LEARN, Y_LEARN) > 0.9
    made = {"method": "gradient", "n_vectors": 6, "settings": QUICK, "random_state": 0}
    np.testing.assert_array_equal(
        compress(whole, X_LEARN, Y_LEARN, **made).decision_function(X_TEST),
        compress(whole, X_LEARN, **made).decision_function(X_TEST),
    )


def test_labels_are_not_learnt_without_weights(full, plain):
    made = {"method": "gradient", "n_vectors": 6, "random_state": 0}
    np.testing.assert_array_equal(
        compress(full, X_LEARN, Y_LEARN, settings=QUICK, **made).decision_function(X_TEST),
        compress(full, X_LEARN, settings=QUICK, **made).decision_function(X_TEST),
    )
    for settings, said in (
        (GradientSettings(steps=300, label_weight=0.5), "label_weight=0.5 is not allowed"),
        (GradientSettings(steps=300, loss="hinge"), "loss='hinge' is not allowed"),
    ):
        with pytest.raises(ValueError, match=f"{said}.*trained with weights"):
            compress(full, X_LEARN, Y_LEARN, settings=settings, **made)
        with pytest.raises(ValueError, match=f"{said}.*scoring='balanced_accuracy'"):
            compress(plain, X_LEARN, Y_LEARN, scoring="balanced_accuracy", settings=settings, **made)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SizeWarning)  # labels are few
            compress(plain, X_LEARN, Y_LEARN, settings=settings, **made)


@pytest.mark.parametrize("method", ["backfit", "auto"])
def test_agreement_does_not_look_at_labels(method, full, plain):
    settings = QUICK if method == "auto" else None
    options = {"min_agreement": 0.95, "method": method, "settings": settings, "random_state": 0}
    for model in (full, plain):
        small = compress(model, X_LEARN, **options)
        assert small.loss_bound_.measure == "agreement"
        for labels in (Y_LEARN, 1 - Y_LEARN):
            same = compress(model, X_LEARN, labels, **options)
            np.testing.assert_array_equal(same.decision_function(X_TEST), small.decision_function(X_TEST))
            held = compress(model, X_LEARN, labels, validation=(X[:500], labels[:500]), **options)
            assert (
                held.loss_bound_
                == compress(model, X_LEARN, validation=(X[:500], None), **options).loss_bound_
            )
    with pytest.raises(ValueError, match="scoring='accuracy' is of no use with min_agreement"):
        compress(full, X_LEARN, Y_LEARN, scoring="accuracy", **options)


def test_the_loss_is_the_one_that_is_asked_for(full, plain):
    weights = np.random.default_rng(0).uniform(0.0, 2.0, len(X_LEARN))
    held = (X_LEARN, Y_LEARN)

    def loss(model, small, score, **options):
        before, after = (score(Y_LEARN, one.predict(X_LEARN), **options) for one in (model, small))
        return before - after

    quick = {"n_vectors": 12, "method": "backfit"}
    small = compress(full, validation=held, **quick)
    assert small.loss_bound_.measure == "balanced_accuracy"
    assert small.loss_bound_.loss == pytest.approx(loss(full, small, balanced_accuracy_score))
    small = compress(full, validation=held, scoring="accuracy", **quick)
    assert small.loss_bound_.measure == "accuracy"
    assert small.loss_bound_.loss == pytest.approx(loss(full, small, accuracy_score))
    small = compress(full, validation=(*held, weights), **quick)
    assert small.loss_bound_.measure == "accuracy"
    assert small.loss_bound_.loss == pytest.approx(loss(full, small, accuracy_score, sample_weight=weights))
    small = compress(full, validation=(*held, weights), scoring="balanced_accuracy", **quick)
    expected = loss(full, small, balanced_accuracy_score, sample_weight=weights)
    assert small.loss_bound_.loss == pytest.approx(expected)
    small = compress(plain, validation=held, **quick)
    assert small.loss_bound_.measure == "accuracy"
    for score in ("accuracy", "balanced_accuracy"):
        path = compression_path(plain, X, Y, n_vectors=30, scoring=score)
        of = {"accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}[score]
        found = path.scores(X_LEARN, Y_LEARN, [7], scoring=score, sample_weight=weights)
        expected = of(Y_LEARN, path[7].predict(X_LEARN), sample_weight=weights)
        assert found[0] == pytest.approx(expected)
        expected = of(Y_LEARN, plain.predict(X_LEARN), sample_weight=weights)
        whole = path.full_score(X_LEARN, Y_LEARN, scoring=score, sample_weight=weights)
        assert whole == pytest.approx(expected)
    for options in ({}, {"n_vectors": 12}):
        quick = {"settings": QUICK, "random_state": 0, "scoring": "balanced_accuracy", **options}
        assert compress(plain, X_LEARN, Y_LEARN, **quick).loss_bound_.measure == "balanced_accuracy"
    # Weights of the rows are cut along with them.
    heavy = compress(plain, X_LEARN, Y_LEARN, max_loss=0.02, sample_weight=ROWS, method="backfit")
    assert heavy.loss_bound_.n_samples == 500
    again = compress(plain, X_LEARN, Y_LEARN, max_loss=0.02, sample_weight=4.0 * ROWS, method="backfit")
    assert again.loss_bound_ == heavy.loss_bound_
    alike = compress(
        plain, X_LEARN, Y_LEARN, max_loss=0.02, sample_weight=np.full(1000, 3.0), method="backfit"
    )
    assert alike.loss_bound_ == compress(plain, X_LEARN, Y_LEARN, max_loss=0.02, method="backfit").loss_bound_


def test_numbers_weigh_too():
    targets = X[:, 0] + X[:, 1] ** 2
    model = SVR(gamma=0.3).fit(X, targets)
    weights = 1.0 + 9.0 * (X[:, 2] > 0.5)
    small = compress(model, validation=(X, targets, weights), n_vectors=12, method="backfit")
    scores = [r2_score(targets, one.predict(X), sample_weight=weights) for one in (model, small)]
    assert small.loss_bound_.loss == pytest.approx(scores[0] - scores[1])
    for options in ({}, {"n_vectors": 12}):
        quick = {
            "settings": QUICK,
            "random_state": 0,
            "scoring": "neg_mean_squared_error",
            "sample_weight": weights,
            **options,
        }
        assert compress(model, X, targets, **quick).loss_bound_.measure == "neg_mean_squared_error"
    path = compression_path(model, X, targets, n_vectors=12, sample_weight=weights)
    missing = np.average(targets - path[12].predict(X), weights=weights)
    assert missing == pytest.approx(0.0, abs=1e-9)
    found = path.scores(X, targets, [12], scoring="neg_mean_squared_error", sample_weight=weights)
    expected = np.average((targets - path[12].predict(X)) ** 2, weights=weights)
    assert -found[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("machine", "several"),
    [
        (SVC(gamma=0.3), 2),
        (SVC(gamma=0.3, multi_class="ovr"), 4),
        (SVC(gamma=0.3, multi_class="ovo"), 4),
        (CodedClassifier(SVC(gamma=0.3), "dense"), 4),
    ],
    ids=["binary", "ovr", "ovo", "code"],
)
def test_thresholds_are_the_best_for_the_weights(machine, several):
    labels = Y if several == 2 else KIND
    model = machine.fit(X, labels)
    weights = np.array([1.0, 6.0, 2.0, 9.0])[labels]

    def errors(path, size):
        return 1.0 - accuracy_score(labels, path[size].predict(X), sample_weight=weights)

    weighted = compression_path(model, X, labels, n_vectors=12, sample_weight=weights)
    alike = compression_path(model, X, labels, n_vectors=12)
    untuned = compression_path(model, n_vectors=12)
    gained = [errors(weighted, size) - errors(alike, size) for size in (4, 8, 12)]
    assert np.mean(gained) < -0.005
    assert errors(weighted, 12) <= errors(untuned, 12)


def test_one_class_for_all_rows_is_no_result(plain, full):
    """Of 100 rows 93 are of one class: a model that says nothing else loses little, and is worth nothing."""
    labels = (X[:, 0] + X[:, 1] > 2.6).astype(int)
    model = SVC(C=10.0, gamma=0.3).fit(X, labels)
    assert 0.0 < model.predict(X).mean() < 0.07
    share = float(model.predict(X_LEARN).mean())
    judged = (X_LEARN[:500], (X_LEARN[:500, 0] + X_LEARN[:500, 1] > 2.6).astype(int))
    path = compression_path(model, X, labels)
    assert np.ptp(path[1].predict(X_LEARN)) == 0
    for demand in ({"max_loss": 2.0 * share}, {"min_agreement": 1.0 - 2.0 * share}):
        small = path.select(*judged, **demand)
        assert np.ptp(small.predict(judged[0])) == 1
        small = compress(model, X_LEARN, (X_LEARN[:, 0] + X_LEARN[:, 1] > 2.6).astype(int), **demand,
                         settings=QUICK, random_state=0)  # fmt: skip
        assert np.ptp(small.predict(X_LEARN)) == 1
    with pytest.raises(ValueError, match=r"1 vectors, the largest size, give all 500 samples one class"):
        compression_path(model, X, labels, n_vectors=1).select(*judged, max_loss=0.5)
    said = r"n_vectors=1 leaves 1 vectors, which give all \d+ samples the class .*0.*, as the full model does"
    with pytest.warns(SizeWarning, match=said):
        compress(model, X, labels, n_vectors=1, method="backfit", validation=judged)
    names = np.array(["no", "yes"], dtype=object)
    named = SVC(C=10.0, gamma=0.3).fit(X, names[labels])
    with pytest.warns(SizeWarning, match=r"give all \d+ samples the class 'no'"):
        compress(
            named,
            X,
            names[labels],
            n_vectors=1,
            method="backfit",
            validation=(X_LEARN[:500], names[judged[1]]),
        )
    hinge = GradientSettings(steps=300, loss="hinge")
    with pytest.warns(
        SizeWarning, match="n_vectors=2 leaves 2 vectors, which give all 1000 samples the class 0"
    ):
        compress(plain, X_LEARN, Y_LEARN, n_vectors=2, method="gradient", settings=hinge, random_state=0)
    with pytest.warns(SizeWarning, match=r"max_bytes=\d+ leaves 1 vectors"):
        path.select(*judged, max_bytes=path.nbytes(1))
    # A model that has one answer itself may be replaced by another.
    rows = X_LEARN[model.predict(X_LEARN) == 0]
    assert compress(model, X, labels, n_vectors=1, method="backfit", validation=(rows, None)) is not None


def test_bad_input_is_named(full, plain):
    one = {"n_vectors": 9, "method": "backfit"}
    with pytest.raises(ValueError, match="sample_weight is given without X"):
        compress(full, sample_weight=ROWS, **one)
    with pytest.raises(ValueError, match="sample_weight is given without X"):
        compression_path(full, sample_weight=ROWS)
    made_ = {"method": "gradient", "n_vectors": 4, "settings": GradientSettings(steps=9)}
    with pytest.raises(ValueError, match="sample_weight is given without X"):
        compression_path(plain, sample_weight=ROWS, **made_)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\)"):
        compression_path(plain, X, Y, sample_weight=[1.0, 2.0, 3.0], **made_)
    made_["settings"] = GradientSettings(steps=9, label_weight=0.4)
    with pytest.raises(ValueError, match=r"label_weight=0.4 is not allowed.*sample_weight is given"):
        compression_path(plain, X, Y, sample_weight=ROWS, **made_)
    with pytest.raises(ValueError, match=r"give validation=\(X, y, sample_weight\)"):
        compress(full, X, Y, sample_weight=ROWS, validation=(X, Y), **one)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\)"):
        compress(full, X, Y, sample_weight=[1.0, 2.0, 3.0], **one)
    with pytest.raises(ValueError, match="sample_weight is zero everywhere"):
        compression_path(full, X, Y, sample_weight=np.zeros(len(Y)))
    with pytest.raises(ValueError, match="scoring='r2' is not allowed"):
        compress(full, X, Y, scoring="r2", **one)
    with pytest.raises(ValueError, match="scoring='accuracy' is not allowed"):
        compress(SVR().fit(X, X[:, 0]), X, X[:, 0], scoring="accuracy", **one)
    with pytest.raises(ValueError, match="scoring='balanced_accuracy' needs labels"):
        compression_path(plain, X, scoring="balanced_accuracy")
    with pytest.raises(ValueError, match="y holds labels that the model does not know"):
        compression_path(full, X, Y + 5)
    names = inspect.signature(compress).parameters
    assert {"scoring", "sample_weight"} < set(names)


@pytest.mark.parametrize("error", [0.05, 0.001])
def test_weighted_bounds(error):
    random = np.random.default_rng(0)
    lost = random.choice([-1.0, 0.0, 1.0], 400, p=[0.02, 0.93, 0.05])
    b, c = int((lost > 0).sum()), int((lost < 0).sum())
    alike = weighted_bound(lost, np.ones(400), error)
    assert alike >= paired_bound(b, c, 400, error) - 1e-9
    assert alike == pytest.approx(paired_bound(b, c, 400, error), abs=0.01)
    # A row that weighs nothing is not there.
    weights = np.concatenate([np.ones(400), np.zeros(50)])
    assert weighted_bound(np.concatenate([lost, np.ones(50)]), weights, error) == pytest.approx(alike)
    # Nothing lost is no promise of nothing.
    few = np.where(np.arange(400) < 28, 13.0, 1.0)
    bound = weighted_bound(np.zeros(400), few, error)
    assert bound > paired_bound(0, 0, 400, error)
    assert bound < 1.0


@pytest.mark.parametrize("kind", ["two weights", "many weights"])
def test_weighted_bounds_hold(kind):
    """Of 300 draws of rows 5 in 100 may have a larger loss than their bound, and by chance some more."""
    random = np.random.default_rng(1)
    n, broken = 600, 0
    for _ in range(300):
        small = random.random(n) < 0.1
        weights = np.where(small, 9.0, 1.0) if kind == "two weights" else random.uniform(0.2, 5.0, n)
        losing = np.where(small, 0.10, 0.02)
        draws = random.random(n)
        lost = np.where(draws < losing, 1.0, np.where(draws > 0.98, -1.0, 0.0))
        true = (0.9 * 0.02 + 0.1 * 9.0 * 0.10) / 1.8 if kind == "two weights" else 0.9 * 0.02 + 0.1 * 0.10
        broken += weighted_bound(lost, weights, 0.05) < true - 0.02
    assert broken / 300 < 0.09


@pytest.mark.parametrize(
    "options", [{"cv": 3}, {"validation_fraction": 0.3}, {"scoring": "accuracy", "cv": 3}]
)
@pytest.mark.parametrize("loss", ["squared_error", "logistic"])
def test_matching_pursuits_stop_by_weighted_losses(options, loss):
    settings = {"gamma": 0.3, "loss": loss, "early_stopping": True, "random_state": 0, **options}
    by_classes = KMPClassifier(30, class_weight="balanced", **settings).fit(X, Y)
    assert balanced(by_classes) > 0.65
    by_rows = KMPClassifier(30, **settings).fit(X, Y, sample_weight=ROWS)
    assert balanced(by_rows) > 0.65


def test_given_validation_rows_weigh_as_their_classes():
    settings = {"gamma": 0.3, "early_stopping": True, "random_state": 0, "scoring": "accuracy"}
    model = KMPClassifier(30, class_weight="balanced", **settings).fit(X, Y, X_val=X_LEARN, y_val=Y_LEARN)
    assert model.path_.validation_error[0] == pytest.approx(0.5, abs=0.01)  # no function, one class
    assert model.n_vectors_ > 0


def test_searches_judge_by_the_weights_of_the_classes():
    grid = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.1, 1.0, 30.0], "cv": 3}
    found = SVCCV(class_weight="balanced", **grid).fit(X, Y)
    named = SVCCV(class_weight="balanced", scoring="balanced_accuracy", **grid).fit(X, Y)
    means = (search.cv_results_["mean_test_score"] for search in (found, named))
    np.testing.assert_allclose(*means, atol=0.02)
    assert found.best_params_ == named.best_params_
    assert balanced(found) > 0.68
    raced = SVCCV(class_weight="balanced", search="racing", **grid).fit(X, Y)
    assert balanced(raced) > 0.68


@pytest.mark.filterwarnings("ignore")
def test_every_learner_with_weights_is_known_as_weighted():
    """A classifier that takes weights and becomes an expansion must say whether it was given some."""
    models = {name: make() for name, make in WEIGHTED.items()}
    assert [name for name, model in models.items() if as_expansion(model).weighted is not True] == []
    known = {
        type(model).__name__ for name, model in models.items() if "peer" not in name and name != "patched"
    }
    for name, kind in PUBLIC.items():
        if not inspect.isclass(kind) or not hasattr(kind, "as_expansion") or not hasattr(kind, "fit"):
            continue
        if "class_weight" in inspect.signature(kind).parameters:
            assert name in known, name
