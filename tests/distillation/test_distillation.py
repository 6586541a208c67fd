"""`distil`: a kernel machine that imitates any predictor."""

import inspect
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import DBSCAN
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score, r2_score
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neighbors import KNeighborsRegressor, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from svmarrow import (
    SVC,
    KMPClassifier,
    KMPRegressor,
    PerceptronTreeClassifier,
    compress,
    distil,
    export,
    load,
    quantize,
    save,
)
from svmarrow import inspection as explanations
from svmarrow.distillation import DistillationSettings
from svmarrow.distillation.students import distillation_sizes, draw_samples, whole_columns
from svmarrow.distillation.teachers import MIN_PROBABILITY, Teacher
from svmarrow.exceptions import SizeWarning
from svmarrow.models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.reduced_set import GradientSettings

FAST = DistillationSettings(steps=400, n_drawn=600)


@pytest.fixture(scope="module")
def numbers():
    """Samples and a smooth target, which depends on two of four columns of very different scales."""
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (900, 4)) * [1.0, 100.0, 0.01, 1.0] + [0.0, 5000.0, 0.0, 1.0]
    y = np.sin(3 * X[:, 0]) + 0.01 * (X[:, 1] - 5000.0) + 0.05 * random.standard_normal(900)
    return X, y


@pytest.fixture(scope="module")
def classes():
    """Samples of three named classes in two columns."""
    random = np.random.default_rng(1)
    y = random.integers(0, 3, 1200)
    X = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]])[y] + 0.7 * random.standard_normal((1200, 2))
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="module")
def two(classes):
    """The samples of two of the classes."""
    X, y = classes
    return X[y != "c"], y[y != "c"]


def outputs_by_definition(model, X):
    """The outputs of a student, from its arrays."""
    step, expansion = model.preparation, model.expansion_
    rows = (X - step.centre) / step.scale
    squares = ((rows[:, None, :] - expansion.vectors.astype(float)[None]) ** 2).sum(axis=2)
    return np.exp(-expansion.gamma * squares) @ expansion.coefficients + expansion.intercepts


def distilled(*arguments, **options):
    return distil(*arguments, **{"settings": FAST, "random_state": 0, **options})


def test_a_regressor_is_imitated_by_an_ordinary_model(numbers):
    X, y = numbers
    teacher = make_pipeline(StandardScaler(), KNeighborsRegressor(10)).fit(X, y)
    small = distilled(teacher, X, y, n_vectors=40, random_state=1)
    assert isinstance(small, ExpansionRegressor)
    assert small.expansion_.n_vectors == 40
    np.testing.assert_allclose(
        small.predict(X[:50]), outputs_by_definition(small, X[:50])[:, 0], rtol=1e-4, atol=1e-4
    )
    assert r2_score(teacher.predict(X), small.predict(X)) > 0.97


def test_columns_without_influence_lose_their_weight(numbers):
    X, _ = numbers
    settings = DistillationSettings(steps=2000, n_drawn=600)
    small = distilled(
        lambda X: np.sin(3 * X[:, 0]) + np.cos(0.03 * (X[:, 1] - 5000.0)), X, n_vectors=40, settings=settings
    )
    gammas = (X.std(axis=0) / small.preparation.scale) ** 2
    assert gammas[[2, 3]].max() < 0.7 * gammas[[0, 1]].min()


def test_several_numbers_at_once(numbers):
    X, y = numbers
    teacher = DecisionTreeRegressor(max_depth=5).fit(X, np.column_stack([y, 1e4 - 50 * y]))
    small = distilled(teacher, X, n_vectors=60)
    assert small.predict(X).shape == (900, 2)
    wanted = teacher.predict(X)
    for column in range(2):
        assert r2_score(wanted[:, column], small.predict(X)[:, column]) > 0.8
    assert small.loss_bound_.measure == "agreement"


def test_probabilities_of_two_classes(two):
    X, y = two
    teacher = HistGradientBoostingClassifier(max_iter=30).fit(X, y)
    small = distilled(teacher, X, y, n_vectors=40)
    assert isinstance(small, ExpansionClassifier)
    assert small.classes_.tolist() == ["a", "b"]
    wanted = np.clip(teacher.predict_proba(X), MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    assert np.abs(small.predict_proba(X) - wanted).mean() < 0.05
    assert (small.predict(X) == teacher.predict(X)).mean() > 0.93
    # Where the teacher is certain its answer is the student's.
    certain = np.abs(wanted[:, 1] - 0.5) > 0.3
    assert (small.predict(X) == teacher.predict(X))[certain].mean() > 0.99


def test_probabilities_of_three_classes(classes):
    X, y = classes
    teacher = RandomForestClassifier(30, min_samples_leaf=10, random_state=0).fit(X, y)
    small = distilled(teacher, X, y, n_vectors=60)
    assert small.decoding == "ovr"
    probabilities = small.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.abs(probabilities - teacher.predict_proba(X)).mean() < 0.05
    assert (small.predict(X) == small.classes_[probabilities.argmax(axis=1)]).all()
    assert (small.predict(X) == teacher.predict(X)).mean() > 0.93


def test_decision_values_labels_and_detectors(classes, two):
    X, y = classes
    for teacher, source in (
        (RidgeClassifier().fit(X, y), "decision values"),
        (NearestCentroid().fit(X, y), "labels" if not hasattr(NearestCentroid, "predict_proba") else None),
    ):
        small = distilled(teacher, X, n_vectors=40)
        assert source in (None, small.distillation_.source)
        assert (small.predict(X) == teacher.predict(X)).mean() > 0.95
        assert hasattr(small, "predict_proba") == (small.distillation_.source == "probabilities")
    binary = RidgeClassifier().fit(*two)
    small = distilled(binary, two[0], n_vectors=30)
    assert r2_score(binary.decision_function(two[0]), small.decision_function(two[0])) > 0.99
    forest = IsolationForest(n_estimators=20, random_state=0).fit(X)
    small = distilled(forest, X, n_vectors=60)
    assert isinstance(small, ExpansionDetector)
    assert r2_score(forest.decision_function(X), small.decision_function(X)) > 0.8


def test_functions(classes):
    X, y = classes
    numbers = distilled(lambda X: X[:, 0] * X[:, 1], X, n_vectors=30)
    assert isinstance(numbers, ExpansionRegressor)
    assert r2_score(X[:, 0] * X[:, 1], numbers.predict(X)) > 0.98
    labels = distilled(lambda X: np.where(X[:, 0] > 1, "right", "left"), X, n_vectors=30)
    assert labels.classes_.tolist() == ["left", "right"]
    assert (labels.predict(X) == np.where(X[:, 0] > 1, "right", "left")).mean() > 0.95
    teacher = LogisticRegression().fit(X, y)
    probable = distilled(teacher.predict_proba, X, y, n_vectors=30)
    assert probable.classes_.tolist() == ["a", "b", "c"]
    assert np.abs(probable.predict_proba(X) - teacher.predict_proba(X)).mean() < 0.02
    assert distilled(teacher.predict_proba, X, n_vectors=5).classes_.tolist() == [0, 1, 2]


def test_the_loss_and_the_agreement_are_those_of_the_samples_held_out(two):
    X, y = two
    random = np.random.default_rng(0)
    teacher = RandomForestClassifier(20, random_state=0).fit(X[:300], y[:300])
    held = X[500:], y[500:]
    small = distilled(teacher, X[300:500], y[300:500], n_vectors=12, validation=held, scoring="accuracy")
    bound = small.loss_bound_
    loss = accuracy_score(y[500:], teacher.predict(X[500:])) - accuracy_score(y[500:], small.predict(X[500:]))
    assert bound.loss == pytest.approx(loss, abs=1e-12)
    assert bound.agreement == pytest.approx((small.predict(X[500:]) == teacher.predict(X[500:])).mean())
    assert bound.upper > bound.loss
    assert bound.min_agreement < bound.agreement
    assert "Agreement with the teacher: " in str(bound)
    # By default both classes count alike, since weights of the teacher are not known.
    balanced = distilled(teacher, X[300:500], y[300:500], n_vectors=12, validation=held)
    assert balanced.loss_bound_.measure == "balanced_accuracy"
    loss = balanced_accuracy_score(y[500:], teacher.predict(X[500:]))
    loss -= balanced_accuracy_score(y[500:], balanced.predict(X[500:]))
    assert balanced.loss_bound_.loss == pytest.approx(loss, abs=1e-12)
    weights = random.uniform(0.5, 2.0, len(y))
    weighted = distilled(
        teacher, X[300:500], y[300:500], n_vectors=12, validation=(*held, weights[500:]),
        sample_weight=weights[300:500], scoring="accuracy",
    )  # fmt: skip
    loss = sum(
        sign * accuracy_score(y[500:], model.predict(X[500:]), sample_weight=weights[500:])
        for sign, model in ((1, teacher), (-1, weighted))
    )
    assert weighted.loss_bound_.loss == pytest.approx(loss, abs=1e-12)


def test_losses_of_numbers(numbers):
    X, y = numbers
    teacher = KNeighborsRegressor(5).fit(X[:400], y[:400])
    small = distilled(teacher, X[400:700], y[400:700], n_vectors=20, validation=(X[700:], y[700:]))
    loss = r2_score(y[700:], teacher.predict(X[700:])) - r2_score(y[700:], small.predict(X[700:]))
    assert small.loss_bound_.loss == pytest.approx(loss, abs=1e-9)
    agreement = r2_score(teacher.predict(X[700:]), small.predict(X[700:]))
    assert small.loss_bound_.agreement == pytest.approx(agreement, abs=1e-9)


def test_goals(two, numbers):
    X, y = two
    teacher = LogisticRegression().fit(X[:200], y[:200])
    few = distilled(teacher, X, y, max_loss=0.05)
    assert few.expansion_.n_vectors < 64
    assert few.loss_bound_.max_loss == 0.05
    sizes = few.distillation_.sizes
    assert list(sizes) == sorted(sizes, reverse=True)
    assert len(few.distillation_.losses) == len(few.distillation_.agreements) == len(sizes)
    same = distilled(teacher, X, min_agreement=0.9)
    assert same.loss_bound_.measure == "agreement"
    assert same.loss_bound_.loss <= 0.1
    X, y = numbers
    teacher = KNeighborsRegressor(5).fit(X, y)
    for max_bytes in (300, 2000):
        within = distilled(teacher, X, max_bytes=max_bytes)
        expansion, step = within.expansion_, within.preparation
        arrays = (expansion.vectors, expansion.coefficients, expansion.intercepts, step.centre, step.scale)
        used = sum(array.nbytes for array in arrays)
        assert max_bytes - expansion.vectors[:1].nbytes - 8 < used <= max_bytes
    with pytest.raises(ValueError, match="max_bytes=50"):
        distilled(teacher, X, max_bytes=50)


def test_what_cannot_be_imitated_is_said_with_the_curve(two):
    X, _ = two
    random = np.random.default_rng(0)
    # Answers that change from sample to sample.
    noise = {row.tobytes(): random.integers(2) for row in X}
    settings = DistillationSettings(steps=50, n_drawn=0)
    with pytest.warns(
        SizeWarning, match=r"min_agreement=0.99 cannot be reached.* vectors agree 0\."
    ) as caught:
        small = distil(
            lambda X: np.array([bool(noise[row.tobytes()]) for row in X]),
            X,
            settings=settings,
            random_state=0,
        )
    assert caught[0].filename == __file__
    curve = small.distillation_
    assert str(curve) in str(caught[0].message)
    assert curve.agreements[curve.sizes.index(small.expansion_.n_vectors)] < 0.9
    assert small.loss_bound_.guaranteed is False


def test_names_and_frames(two):
    pandas = pytest.importorskip("pandas")
    X, y = two
    frame = pandas.DataFrame({"width": X[:, 0], "count": np.rint(X[:, 1]).astype(int)})
    teacher = RandomForestClassifier(10, random_state=0).fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = distilled(teacher, frame, y, n_vectors=20)
    assert small.feature_names_in_.tolist() == ["width", "count"]
    with pytest.raises(ValueError, match="must be in the same order"):
        small.predict(frame[["count", "width"]])
    with pytest.raises(ValueError, match=r"hold no numbers .*city.*encode them first"):
        distilled(teacher, frame.assign(city="Rome"), y, n_vectors=20)
    seen = []

    def function(X):
        seen.append(X)
        return X["width"].to_numpy() + X["count"]

    distilled(function, frame, n_vectors=5)
    assert all(part.dtypes.tolist() == frame.dtypes.tolist() for part in seen)


def test_sparse_samples(two):
    X, y = two
    rows = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    teacher = LogisticRegression().fit(rows, y)
    small = distilled(teacher, rows, y, n_vectors=20)
    assert (small.predict(rows) == teacher.predict(rows)).mean() > 0.9
    np.testing.assert_array_equal(small.predict(rows), small.predict(rows.toarray()))


def test_sparse_samples_become_dense_once(two, monkeypatch):
    X, y = two
    rows = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    # A tree that takes sparse samples and densifies none.
    teacher = DecisionTreeClassifier(max_depth=3).fit(rows, y)
    counts, inner = [], sparse.csr_array.toarray

    def counted(self, *arguments, **options):
        counts.append(self.shape[0])
        return inner(self, *arguments, **options)

    monkeypatch.setattr(sparse.csr_array, "toarray", counted)
    distilled(teacher, rows, y, n_vectors=10)
    assert counts == [len(y) - len(y) // 2]
    gaps = rows.copy()
    gaps.data[3] = np.nan
    for kind in (sparse.csr_array, sparse.csc_array, sparse.lil_array):
        with pytest.raises(ValueError, match=r"NaN.*impute"):
            distilled(teacher, kind(gaps), y, n_vectors=10)


def test_kinds_of_numbers_and_columns(numbers):
    X, y = numbers
    teacher = KNeighborsRegressor(5).fit(X[:, :1], y)
    column = distilled(teacher, X[:, :1], n_vectors=10)
    assert r2_score(teacher.predict(X[:, :1]), column.predict(X[:, :1])) > 0.8
    constant = np.column_stack([X[:, :1], np.full(len(X), 7.0)])
    teacher = KNeighborsRegressor(5).fit(constant, y)
    with_constant = distilled(teacher, constant, n_vectors=10)
    assert r2_score(teacher.predict(constant), with_constant.predict(constant)) > 0.8
    single = distilled(teacher, constant.astype(np.float32), n_vectors=10)
    assert r2_score(teacher.predict(constant), single.predict(constant.astype(np.float32))) > 0.8
    never = distilled(lambda X: np.full(len(X), 2.5), constant, n_vectors=3)
    np.testing.assert_allclose(never.predict(constant), 2.5)


def test_thresholds_of_the_teacher(two):
    X, y = two
    base = LogisticRegression().fit(X, y)
    teacher = FixedThresholdClassifier(base, threshold=0.2, pos_label="b").fit(X, y)
    small = distilled(teacher, X, y, n_vectors=30)
    assert (small.predict(X) == teacher.predict(X)).mean() > 0.96
    assert (small.predict(X) == base.predict(X)).mean() < 0.95
    assert np.abs(small.predict_proba(X) - base.predict_proba(X)).mean() < 0.03


def test_the_same_bits_for_any_number_of_threads(classes):
    X, y = classes
    teacher = RandomForestClassifier(10, random_state=0).fit(X, y)
    settings = DistillationSettings(steps=40, n_drawn=100)
    one, other = (
        distil(teacher, X, n_vectors=70, settings=settings, random_state=3, n_jobs=n) for n in (1, 3)
    )
    for name in ("vectors", "coefficients", "intercepts"):
        np.testing.assert_array_equal(getattr(one.expansion_, name), getattr(other.expansion_, name))
    np.testing.assert_array_equal(one.preparation.scale, other.preparation.scale)
    different = distil(teacher, X, n_vectors=70, settings=settings, random_state=4)
    assert not np.array_equal(one.expansion_.vectors, different.expansion_.vectors)


def test_files_bytes_and_exports(classes, tmp_path):
    X, y = classes
    small = distilled(RandomForestClassifier(10, random_state=0).fit(X, y), X, y, n_vectors=15)
    save(small, tmp_path / "small.safetensors")
    again = load(tmp_path / "small.safetensors")
    np.testing.assert_array_equal(small.predict_proba(X), again.predict_proba(X))
    assert again.loss_bound_ == small.loss_bound_
    assert again.distillation_ == small.distillation_
    assert (quantize(small, X=X).predict(X) == small.predict(X)).mean() > 0.97
    assert "p_probabilities" in export.to_c(small, prefix="p").text
    values = explanations.shapley_values(small, X[:5], X[100:120])
    np.testing.assert_allclose(
        values.values.sum(axis=1) + values.base_values, small.decision_function(X[:5]), atol=1e-4
    )


def test_onnx(two):
    runtime = pytest.importorskip("onnxruntime")
    X, y = two
    small = distilled(LogisticRegression().fit(X, y), X, y, n_vectors=15)
    made = export.to_onnx(small, dtype="float64")
    used = {name for node in made.graph.node for name in node.input}
    # onnxruntime warns of constants that nothing uses.
    assert {constant.name for constant in made.graph.initializer} <= used
    session = runtime.InferenceSession(made.SerializeToString())
    label, probabilities = session.run(["label", "probabilities"], {"X": X})
    assert (label == small.predict(X)).all()
    np.testing.assert_allclose(probabilities, small.predict_proba(X), atol=1e-5)


def test_the_result_is_never_worse_than_its_start(numbers):
    X, y = numbers
    teacher = KNeighborsRegressor(10).fit(X, y)
    start, wild = (
        distilled(
            teacher, X, n_vectors=30,
            settings=DistillationSettings(steps=steps, n_drawn=0, vector_rate=50.0, scale_rate=1.0, batch=4),
        )
        for steps in (0, 200)
    )  # fmt: skip
    assert wild.loss_bound_.loss <= start.loss_bound_.loss + 0.1


def test_column_scales_find_the_columns_that_matter():
    random = np.random.default_rng(0)
    X = random.standard_normal((800, 10))
    settings = [
        DistillationSettings(kernel=kernel, steps=1500, n_drawn=1000, column_scales=scales)
        for kernel in ("rbf", "laplacian")
        for scales in (False, True)
    ]
    agreements = [
        distil(lambda X: np.sin(2 * X[:, 3]), X, n_vectors=20, settings=each, random_state=0).loss_bound_.loss
        for each in settings
    ]
    assert agreements[1] < 0.5 * agreements[0]
    assert agreements[3] < agreements[2]


def test_drawn_samples_keep_whole_numbers():
    random = np.random.RandomState(0)
    X = np.column_stack([np.arange(60) % 7, random.standard_normal(60), np.arange(60) % 2])
    assert whole_columns(X).tolist() == [True, False, True]
    options = {"mixing": 1.0, "noise": 0.1, "random": np.random.RandomState(1)}
    drawn = draw_samples(X, X.std(axis=0), 500, **options)
    assert set(drawn[:, 0]) <= set(range(7))
    assert set(drawn[:, 2]) == {0.0, 1.0}
    assert not np.isin(drawn[:, 1], X[:, 1]).any()
    again = draw_samples(X, X.std(axis=0), 500, **{**options, "random": np.random.RandomState(1)})
    np.testing.assert_array_equal(drawn, again)
    # Without noise and mixing each sample is its first parent.
    parents = draw_samples(X, X.std(axis=0), 130, mixing=0.0, noise=0.0, random=np.random.RandomState(1))
    np.testing.assert_array_equal(parents, X[np.arange(130) % 60])


def test_sizes():
    assert distillation_sizes(10_000) == [512, 256, 128, 64, 32, 16, 8]
    assert distillation_sizes(20) == [20, 10]
    assert distillation_sizes(1) == [1]


def test_refused_in_words(two, classes, numbers):
    X, y = two
    teacher = DecisionTreeClassifier(max_depth=3).fit(X, y)
    with pytest.raises(NotFittedError, match="DecisionTreeClassifier"):
        distil(DecisionTreeClassifier(), X, y)
    for model, name in (
        (DBSCAN().fit(X), "a DBSCAN"),
        (DecisionTreeClassifier, "the class DecisionTreeClassifier"),
        ("small.safetensors", "a str"),
        (SVC().fit(X, y).expansion_, "a KernelExpansion"),
    ):
        with pytest.raises(TypeError, match=f"model={name} is not allowed.*fitted estimator with predict"):
            distil(model, X, y)
    with pytest.raises(TypeError, match=r"X=5 is not allowed.*n_vectors=5"):
        distil(teacher, 5)
    with pytest.raises(ValueError, match=r"max_loss=0\.1 and min_agreement=0\.9 are not allowed together"):
        distil(teacher, X, y, max_loss=0.1, min_agreement=0.9)
    with pytest.raises(ValueError, match="max_loss=None"):
        distil(teacher, X, y, max_loss=None)
    with pytest.raises(ValueError, match="predicts 2 labels for each sample"):
        distilled(DecisionTreeClassifier(max_depth=2).fit(X, np.column_stack([y, y])), X)
    with pytest.raises(ValueError, match=r"strings or objects.*encode them first"):
        distilled(teacher, np.array([["a", "b"]] * 50))
    with pytest.raises(ValueError, match=r"NaN.*impute"):
        distilled(teacher, np.where(X > 2, np.nan, X), n_vectors=3)
    with pytest.raises(ValueError, match="DistillationSettings"):
        distilled(teacher, X, y, settings=GradientSettings())
    with pytest.raises(ValueError, match="knows one class"):
        distilled(DummyClassifier().fit(X, np.zeros(len(X))), X)
    with pytest.raises(ValueError, match="NaN or infinities"):
        distilled(lambda X: np.where(X[:, 0] > 2, np.inf, 0.0), X, n_vectors=3)
    for function, message in (
        (lambda X: X[:3, 0], r"returned a ndarray of shape \(3,\)"),
        (lambda X: X[:, 0] + 1j, "dtype complex128"),
        (lambda _X: None, "returned a NoneType"),
        (lambda X: sparse.csr_array(X), "returned a csr_array"),
        (lambda X: np.rint(1e6 * X[:, 0]).astype(int), r"label \d+ .*drawn sample.*floating-point numbers"),
        (lambda X: 1e300 * X[:, 0], "<lambda> predicts numbers whose variance overflows"),
    ):
        with pytest.raises(ValueError, match=message):
            distilled(function, np.abs(X), n_vectors=3)
    with pytest.raises(ValueError, match=r"columns whose variance overflows \(\[1\]\)"):
        distilled(lambda X: X[:, 0], X * [1.0, 1e200], n_vectors=3)
    with pytest.raises(ValueError, match="y holds labels, and Ridge predicts numbers"):
        distilled(Ridge().fit(*numbers), numbers[0], np.array(["a", "b"])[np.arange(900) % 2], n_vectors=3)
    with pytest.raises(ValueError, match="scoring='r2'"):
        distilled(teacher, X, y, scoring="r2")
    for name, value in (("kernel", "linear"), ("gamma", 0.0), ("n_drawn", -1), ("noise", -1.0), ("batch", 0)):
        with pytest.raises(ValueError, match=f"{name}="):
            DistillationSettings(**{name: value})


def test_estimators_around_estimators(two):
    X, y = two
    machines = GridSearchCV(SVC(kernel="poly"), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert compress(machines, n_vectors=10).expansion_.kernel == "poly"
    with pytest.raises(ValueError, match="refit=False of this GridSearchCV"):
        compress(GridSearchCV(SVC(), {"C": [1.0]}, refit=False).fit(X, y), n_vectors=10)
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 3]}, cv=2).fit(X, y)
    small = distilled(search, X, y, n_vectors=20)
    assert small.distillation_.teacher == "GridSearchCV"
    assert (small.predict(X) == search.predict(X)).mean() > 0.9

    class Own(ClassifierMixin, BaseEstimator):
        """A classifier that has labels alone."""

        def fit(self, _X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return self.classes_[(np.asarray(X)[:, 0] > 1).astype(int)]

    class Fixed(BaseEstimator):
        """Parameters and ``predict``, but no ``fit``."""

        def predict(self, X):
            return X[:, 0]

    for predictor, name in ((Fixed(), "Fixed"), (search.predict_proba, "GridSearchCV.predict_proba")):
        assert distilled(predictor, X, n_vectors=5).distillation_.teacher == name

    small = distilled(Own().fit(X, y), X, y, n_vectors=20)
    assert small.distillation_.source == "labels"
    assert not hasattr(small, "predict_proba")
    assert (small.predict(X) == Own().fit(X, y).predict(X)).mean() > 0.95


def test_compress_refuses_predictors_and_names_distil(two):
    X, y = two
    tree = DecisionTreeClassifier(max_depth=3).fit(X, y)
    hint = r"svmarrow\.distil\(model, X, y\) trains a kernel model that imitates this "
    for model, why, name in (
        (tree, "DecisionTreeClassifier is not a kernel expansion", "DecisionTreeClassifier"),
        (tree.predict, "method is not a kernel expansion", "predict"),
        (make_pipeline(StandardScaler(), tree).fit(X, y), "DecisionTreeClassifier", "Pipeline"),
        (KMPClassifier(9, functions=np.abs).fit(X, y), "functions that are no kernels", "KMPClassifier"),
        (PerceptronTreeClassifier(budget=20).fit(X, y), "not a kernel", "PerceptronTreeClassifier"),
    ):
        for arguments in ((), (X, y)):
            with pytest.raises(TypeError, match=f"{why}.*{hint}{name}"):
                compress(model, *arguments, n_vectors=5)
    for model in (DBSCAN().fit(X), "nothing", DecisionTreeClassifier):
        with pytest.raises((TypeError, OSError)) as refusal:
            compress(model, X, y)
        assert "distil" not in str(refusal.value)
    with pytest.raises(NotFittedError, match="SVC"):
        compress(SVC(), X, y)


def test_a_kernel_machine_may_be_a_teacher(two):
    X, y = two
    machine = SVC(C=10.0).fit(X, y)
    small = distilled(machine, X, y, n_vectors=15)
    assert small.distillation_.teacher == "SVC"
    assert np.mean(small.predict(X) == machine.predict(X)) > 0.95


def test_the_default_goals_stand_in_the_signatures():
    for function in (compress, distil):
        parameters = inspect.signature(function).parameters
        defaults = {name: str(parameters[name]).rpartition("= ")[2] for name in ("max_loss", "min_agreement")}
        assert defaults == {"max_loss": "0.003", "min_agreement": "0.99"}


def test_own_models_that_are_not_one_expansion_are_imitated(two, numbers):
    X, y = two
    settings = DistillationSettings(steps=300, n_drawn=200)
    pursuit = KMPClassifier(20, gamma=[0.05, 0.5]).fit(X, y)
    small = distil(pursuit, X, y, n_vectors=20, settings=settings)
    assert np.mean(small.predict(X) == pursuit.predict(X)) > 0.8
    rows, targets = numbers[0] / [1.0, 100.0, 0.01, 1.0], numbers[1]
    regressor = KMPRegressor(20, gamma=[0.05, 0.5]).fit(rows, targets)
    small = distil(regressor, rows, targets, n_vectors=20, settings=settings)
    assert r2_score(regressor.predict(rows), small.predict(rows)) > 0.8
    tree = PerceptronTreeClassifier(budget=20, random_state=0).fit(X, y)
    small = distil(tree, X, y, n_vectors=20, settings=settings)
    assert np.mean(small.predict(X) == tree.predict(X)) > 0.8


def test_targets_by_definition(classes, two):
    X, y = classes
    teacher = MLPClassifier((8,), max_iter=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        teacher.fit(X, y)
    outputs = Teacher(teacher, X).outputs(X)
    p = np.clip(teacher.predict_proba(X), MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    np.testing.assert_allclose(
        np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True), p / p.sum(axis=1, keepdims=True)
    )
    binary = LogisticRegression(C=0.01).fit(*two)
    np.testing.assert_allclose(
        Teacher(binary, two[0]).outputs(two[0])[:, 0], binary.decision_function(two[0]), atol=1e-9
    )


def test_regressors_of_ensembles(numbers):
    X, y = numbers
    teacher = RandomForestRegressor(20, min_samples_leaf=5, random_state=0).fit(X, y)
    small = distilled(teacher, X, y, n_vectors=60)
    assert r2_score(teacher.predict(X), small.predict(X)) > 0.9
