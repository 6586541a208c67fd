"""Pipelines: what stands before a kernel machine goes where the machine goes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import svm as peer
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import svmarrow
from helpers.reference import largest
from svmarrow import SVC, SVR, OneClassSVM, ReducedSet, as_expansion, compress, compression_path
from svmarrow.export import to_onnx
from svmarrow.models.categories import Encode, Impute, Table
from svmarrow.models.outputs import Calibration
from svmarrow.models.preparation import Affine, Chain, Clip, Normalize, Parts
from svmarrow.preprocessing import LearnedScaler

FRAME, KIND = load_breast_cancer(return_X_y=True, as_frame=True)
X, Y = FRAME.to_numpy(), KIND.to_numpy()

AFFINE = {
    "standard": [StandardScaler()],
    "no centre": [StandardScaler(with_mean=False)],
    "no scale": [StandardScaler(with_std=False), RobustScaler(with_scaling=False)],
    "learned": [LearnedScaler(shape="standard", max_iter=1, n_samples=100)],
    "learned full": [
        LearnedScaler(shape="standard", metric="full", n_components=3, max_iter=1, n_samples=100)
    ],
    "chain": [RobustScaler(), PCA(5), StandardScaler(), PCA(3, whiten=True), MinMaxScaler()],
    "max": [MaxAbsScaler(), "passthrough", PCA(5, whiten=True)],
    "nested": [make_pipeline(StandardScaler(), PCA(4)), FunctionTransformer()],
    "svd": [StandardScaler(), TruncatedSVD(4), StandardScaler()],
}
OTHER = {
    "clip": [MinMaxScaler((-1, 2), clip=True)],
    "l1": [Normalizer("l1"), StandardScaler()],
    "l2": [Normalizer(), StandardScaler()],
    "largest": [StandardScaler(), Normalizer("max")],
    "choice": [StandardScaler(), SelectKBest(k=7), PCA(4)],
    "quantile shapes": [LearnedScaler(shape="quantile", max_iter=1, n_samples=100)],
    "both shapes": [StandardScaler(), LearnedScaler(shape="both", max_iter=1, n_samples=100), PCA(4)],
    "both shapes, full": [LearnedScaler(shape="both", metric="full", max_iter=1, n_samples=100)],
    "union": [make_union(StandardScaler(), make_pipeline(MinMaxScaler(), PCA(3)))],
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*AFFINE, *OTHER])
@pytest.mark.parametrize("last", [SVC, peer.SVC, SVR, OneClassSVM])
def test_a_pipeline_is_its_machine_behind_its_steps(name, last, dtype, tmp_path):
    rows = X.astype(dtype)
    pipeline = make_pipeline(*{**AFFINE, **OTHER}[name], last()).fit(rows[:400], Y[:400])
    model = as_expansion(pipeline)
    assert isinstance(model.preparation, Affine) == (name in AFFINE)
    decide = "predict" if last is SVR else "decision_function"
    tolerance = 1e-9 if dtype is np.float64 else 2e-4
    expected = getattr(pipeline, decide)(rows[400:])
    np.testing.assert_allclose(getattr(model, decide)(rows[400:]), expected, rtol=tolerance, atol=tolerance)
    assert model.n_features_in_ == 30
    svmarrow.save(pipeline, tmp_path / "model")
    again = svmarrow.load(tmp_path / "model")
    assert type(again) is type(model)
    assert (again.predict(rows) == model.predict(rows)).all()
    small = compress(pipeline, n_vectors=12)
    assert small.preparation is not None
    assert small.expansion_.n_vectors == 12
    assert small.predict(rows).shape == (569,)
    with pytest.raises(ValueError, match=r"X has 29 features, but Expansion.* is expecting 30 features"):
        model.predict(rows[:, 1:])


def test_columns_standardised_twice_keep_their_digits():
    # The means after the first step are those of rounding, 1e-4 of the width: too small for a centre of 1e6.
    rng = np.random.default_rng(0)
    samples, target = 1e6 + 1e-6 * rng.normal(size=(100, 3)), rng.normal(size=100)
    pipeline = make_pipeline(StandardScaler(), StandardScaler(), SVR(C=1e3, gamma=0.5)).fit(samples, target)
    assert np.abs(pipeline[1].mean_).max() > 1e-6
    expansion = as_expansion(pipeline)
    assert isinstance(expansion.preparation, Chain)
    expected, predict = pipeline.predict(samples), expansion.compiled().predict
    assert np.abs(expansion.predict(samples) - expected).max() < 1e-9
    assert np.abs([predict(row) for row in samples] - expected).max() < 1e-9


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_short_samples_keep_their_length(norm, precision):
    """scikit-learn divides no dense sample whose length is at most ten roundings of 1."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 3)).astype(precision)
    rows[::2] *= np.finfo(precision).eps
    expected = Normalizer(norm).fit_transform(rows)
    pipeline = make_pipeline(Normalizer(norm), SVR(gamma=1.0)).fit(rows, expected[:, 0])
    model = as_expansion(pipeline)
    np.testing.assert_allclose(model.preparation.rows(rows), expected, rtol=1e-6)
    np.testing.assert_allclose(model.predict(rows), pipeline.predict(rows), rtol=0, atol=1e-6)
    evaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator(to_onnx(pipeline, dtype=precision))
    outputs = evaluator.run(None, {"X": rows})[0]
    np.testing.assert_allclose(np.ravel(outputs), pipeline.predict(rows), rtol=0, atol=1e-5)
    short = np.flatnonzero(np.linalg.norm(expected, axis=1) < 0.5)
    assert len(short) >= 30


def test_compression_of_a_pipeline_is_that_of_its_machine():
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X[:400], Y[:400])
    rows = pipeline[:-1].transform(X)
    for options in (
        {"method": "backfit"},
        {"method": "backfit", "candidates": "samples"},
        {
            "method": "gradient",
            "settings": svmarrow.reduced_set.GradientSettings(steps=50),
            "random_state": 0,
        },
    ):
        small = largest(pipeline, X[:400], Y[:400], n_vectors=9, **options)
        inner = largest(pipeline[-1], rows[:400], Y[:400], n_vectors=9, **options)
        assert (small.predict(X) == inner.predict(rows)).all()
    path = compression_path(pipeline, X[:400], Y[:400], n_vectors=20)
    inner = compression_path(pipeline[-1], rows[:400], Y[:400], n_vectors=20)
    assert (path.scores(X[400:], Y[400:]) == inner.scores(rows[400:], Y[400:])).all()
    reduced = ReducedSet(make_pipeline(StandardScaler(), SVC()), 9).fit(FRAME[:400], KIND[:400])
    assert (
        reduced.predict(FRAME)
        == compress(pipeline, X[:400], Y[:400], n_vectors=9, method="backfit").predict(X)
    ).all()
    assert list(reduced.feature_names_in_) == list(FRAME.columns)


def test_regressors_compress_behind_their_steps():
    target = X[:, 0] + np.sin(X[:, 1])
    pipeline = make_pipeline(StandardScaler(), SVR(C=5)).fit(X[:400, 1:], target[:400])
    settings = svmarrow.reduced_set.GradientSettings(steps=300)
    made = compress(pipeline, X[:400, 1:], n_vectors=20, method="gradient", settings=settings, random_state=0)
    assert made.score(X[400:, 1:], target[400:]) > 0.5


@pytest.fixture
def people():
    random = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "age": random.normal(40, 10, n),
            "city": np.array(["a", "b", "c", np.nan], dtype=object)[random.integers(0, 4, n)],
            "size": random.choice(["s", "m", "l"], n),
            "income": random.normal(size=n),
            "visits": random.integers(0, 4, n),
        }
    )
    frame.loc[::9, "age"] = np.nan
    return frame, (frame["income"] > 0) ^ (frame["city"] == "a")


NUMBERS = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    OneHotEncoder(drop="first"),
    OneHotEncoder(min_frequency=80, handle_unknown="infrequent_if_exist"),
    OneHotEncoder(max_categories=2, drop="first", handle_unknown="infrequent_if_exist"),
    make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=np.nan), OrdinalEncoder()),
    make_pipeline(SimpleImputer(strategy="constant", fill_value="?", missing_values=np.nan), OneHotEncoder()),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
]


@pytest.mark.filterwarnings("ignore:Found unknown categories")
# scikit-learn 1.6 says that how it keeps the columns of the rest will change; both ways are understood.
@pytest.mark.filterwarnings("ignore:\\nThe format of the columns of the 'remainder':FutureWarning")
@pytest.mark.parametrize("encoder", ENCODERS, ids=[str(number) for number in range(len(ENCODERS))])
@pytest.mark.parametrize("rest", ["drop", "passthrough", StandardScaler()], ids=["drop", "keep", "scale"])
def test_categories_and_gaps(people, encoder, rest, tmp_path):
    frame, kind = people
    table = make_column_transformer(
        (NUMBERS, ["age", "income"]),
        (encoder, ["city"]),
        (OrdinalEncoder(categories=[["s", "m", "l"]]), ["size"]),
        remainder=rest,
    )
    pipeline = make_pipeline(table, SVC()).fit(frame[:250], kind[:250])
    svmarrow.save(pipeline, tmp_path / "model")
    for model in (as_expansion(pipeline), svmarrow.load(tmp_path / "model")):
        found = model.decision_function(frame)
        np.testing.assert_allclose(found, pipeline.decision_function(frame), atol=1e-9)
    foreign = frame.assign(city="elsewhere")
    try:
        expected = pipeline.decision_function(foreign)
    except ValueError:
        message = "'elsewhere' in column 'city', which is not one of its categories"
        with pytest.raises(ValueError, match=message):
            model.predict(foreign)
    else:
        np.testing.assert_allclose(model.decision_function(foreign), expected, atol=1e-9)
    small = compress(pipeline, frame, kind, n_vectors=10, method="backfit")
    assert small.expansion_.n_vectors == 10
    assert small.score(frame, kind) > 0.5


def test_ways_to_name_columns(people):
    frame, kind = people
    for columns in (
        ["age", "income"],
        [0, 3],
        [True, False, False, True, False],
        slice("income", "visits"),
        slice(3, 5),
        make_column_selector(dtype_include=float),
        [-1],
    ):
        table = ColumnTransformer([("n", NUMBERS, columns)], transformer_weights={"n": 3.0})
        pipeline = make_pipeline(table, SVC()).fit(frame, kind)
        found = as_expansion(pipeline).decision_function(frame)
        np.testing.assert_allclose(found, pipeline.decision_function(frame), atol=1e-9)


def test_sparse_rows_stay_sparse():
    rows = sp.random_array((200, 50), density=0.1, format="csr", random_state=np.random.default_rng(0))
    kind = np.asarray(rows.sum(axis=1)).ravel() > 2.5
    for steps in ([MaxAbsScaler()], [StandardScaler(with_mean=False), Normalizer()], [TruncatedSVD(5)]):
        pipeline = make_pipeline(*steps, SVC()).fit(rows, kind)
        model = as_expansion(pipeline)
        np.testing.assert_allclose(model.decision_function(rows), pipeline.decision_function(rows), atol=1e-9)
    with pytest.raises(ValueError, match="cannot be centered"):
        as_expansion(make_pipeline(StandardScaler(), SVC()).fit(rows.toarray(), kind)).predict(rows)


def test_what_is_refused(tmp_path):
    rows, kind = load_iris(return_X_y=True)
    for step, message in (
        (PowerTransformer(), "step 'powertransformer' is a PowerTransformer.*skops.*skl2onnx"),
        (FunctionTransformer(np.log1p), "step 'functiontransformer' calls a Python function"),
    ):
        pipeline = make_pipeline(step, SVC()).fit(rows, kind)
        for use in (
            as_expansion,
            lambda p: compress(p, n_vectors=5),
            lambda p: svmarrow.save(p, tmp_path / "model"),
        ):
            with pytest.raises(TypeError, match=message):
                use(pipeline)
    with pytest.raises(NotFittedError):
        as_expansion(make_pipeline(StandardScaler(), SVC()))
    scaled = make_pipeline(StandardScaler(), SVC()).fit(rows, kind)
    with pytest.raises(ValueError, match="no place for what a pipeline does"):
        svmarrow.io.save_libsvm_model(scaled, tmp_path / "model")
    with pytest.raises(ValueError, match="or steps of a pipeline"):
        svmarrow.PerceptronTreeClassifier.from_expansion(scaled, rows)
    with pytest.raises(ValueError, match="NaN"):
        as_expansion(scaled).predict(np.full((1, 4), np.nan))


ONE = np.ones(2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Affine(ONE, np.zeros(2)),
        lambda: Affine(ONE, np.ones(3)),
        lambda: Affine(ONE, ONE, None, ONE),
        lambda: Affine(ONE, ONE, np.ones((3, 2))),
        lambda: Affine(ONE, ONE, np.full((2, 2), np.inf)),
        lambda: Affine(ONE, ONE, np.ones((2, 2)), np.ones(3)),
        lambda: Clip(2, 1.0, 1.0),
        lambda: Normalize(2, "l7"),
        lambda: Impute((1.0, np.nan)),
        lambda: Impute((1.0,), None, np.array([1])),
        lambda: Table(np.array(["a"]), np.ones((3, 1))),
        lambda: Table(np.array(["a"]), np.ones((1, 1)), ONE),
        lambda: Encode(()),
        lambda: Parts(2, (np.array([2]),), (None,)),
        lambda: Parts(2, (np.array([0]),), (Clip(2, 0.0, 1.0),)),
        lambda: Chain((Clip(2, 0.0, 1.0), Clip(3, 0.0, 1.0))),
        lambda: Chain(()),
    ],
)
def test_steps_that_contradict_themselves(make):
    with pytest.raises(ValueError, match=r"must be|belongs|divided|has shape|is not|does not|gives"):
        make()


def test_columns_of_a_model_and_its_preparation():
    machine = as_expansion(SVC().fit(X[:50], Y[:50]))
    for step, columns in ((Clip(29, 0.0, 1.0), None), (Clip(30, 0.0, 1.0), 29)):
        with pytest.raises(ValueError, match=r"preparation|n_features"):
            machine.with_preparation(step, feature_names=None, n_features=columns)


@pytest.mark.parametrize("missing", [None, np.nan], ids=str)
@pytest.mark.parametrize("number", [np.nan, -2.0])
def test_none_is_a_category_of_an_ordinal_encoder_and_nan_has_a_number_of_its_own(missing, number):
    X = np.array([["a"], ["b"], [missing], ["c"]] * 6, dtype=object)
    y = np.arange(24) % 4 == 2
    encoder = make_pipeline(OrdinalEncoder(encoded_missing_value=number), SimpleImputer(strategy="median"))
    model = make_pipeline(encoder, SVC()).fit(X, y)
    assert np.array_equal(as_expansion(model).decision_function(X), model.decision_function(X))


def test_whitening_clips_small_deviations_in_the_precision_of_the_fit():
    X = (1e-9 * np.random.default_rng(0).normal(size=(40, 3))).astype(np.float32)
    model = make_pipeline(PCA(1, whiten=True), KernelRidge(kernel="linear")).fit(X, np.arange(40.0))
    assert np.sqrt(model[0].explained_variance_[0]) < np.finfo(np.float32).eps
    np.testing.assert_allclose(as_expansion(model).predict(X), model.predict(X), rtol=1e-3)


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_samples_prepared_in_double_precision_keep_the_limits_of_their_own(container):
    """Predictions that need double precision are made of the samples that scikit-learn's step would give."""
    rng = np.random.default_rng(0)
    samples = (1e-6 * rng.uniform(0.1, 2.0, size=(60, 2))).astype(np.float32)
    target = 1.0 + 1e-3 * rng.normal(size=60)
    pipeline = make_pipeline(Normalizer(), KernelRidge(1e-6, kernel="rbf", gamma=0.1)).fit(samples, target)
    model = as_expansion(pipeline)
    assert model.expansion.needs_double()
    is_short = np.linalg.norm(samples.astype(np.float64), axis=1) < 10.0 * np.finfo(np.float32).eps
    assert 5 < is_short.sum() < 55
    prepared = model.validated(container(samples))
    assert prepared.dtype == np.float64
    np.testing.assert_allclose(prepared, pipeline[0].transform(samples), rtol=1e-6)


@pytest.mark.parametrize("scaled", [False, True])
def test_single_precision_changes_no_probability_where_a_sigmoid_is_steep(scaled):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(200, 3)).astype(np.float32)
    machine = SVC(gamma=0.5).fit(samples, samples[:, 0] > 0)
    # Near one point all outputs of the machine are nearly equal.
    near = (0.5 + 1e-6 * samples).astype(np.float32)
    calibrated = CalibratedClassifierCV(FrozenEstimator(machine), method="sigmoid", cv=2, ensemble=False)
    pipeline = make_pipeline(StandardScaler(with_std=False), calibrated) if scaled else calibrated
    pipeline.fit(near, near[:, 0] > 0.5)
    model = as_expansion(pipeline)
    expected = model.predict_proba(near.astype(np.float64))
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(model.predict_proba(near), expected, atol=1e-4)


def test_samples_of_bytes_are_exact_where_a_sigmoid_is_steep():
    rng = np.random.default_rng(0)
    samples = rng.integers(0, 256, size=(200, 8)).astype(np.uint8)
    machine = as_expansion(SVC(gamma=1e-5).fit(samples, samples[:, 0] > 127))
    outputs = machine.decision_function(samples.astype(np.float64))
    # The sigmoids are steepest at the outputs of the samples.
    for output in outputs[:20]:
        steep = Calibration("classes", np.array([1e6]), np.array([-1e6 * output]))
        model = machine.with_calibration(steep)
        assert np.array_equal(model.predict_proba(samples), model.probabilities_of(outputs[:, np.newaxis]))
