"""ONNX files say what the model says, in two other programs, over kernels, codes and precisions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as peer
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

import svmarrow
from helpers.exports import KERNELS, PIPELINES, some
from svmarrow import KernelExpansion
from svmarrow._support.decoding import CODES, DECODERS
from svmarrow.export import onnx_model, to_onnx
from svmarrow.export.onnx_kernels import Graph
from svmarrow.models import ExpansionClassifier, ExpansionRegressor, ExpansionTree
from svmarrow.multiclass import make_code

onnx = pytest.importorskip("onnx")
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator
onnxruntime = pytest.importorskip("onnxruntime")

DTYPES = ("float32", "float64")


def answers(made, X):
    """The results by name, of onnx's reference and of onnxruntime."""
    names = [result.name for result in made.graph.output]
    reference = ReferenceEvaluator(made).run(None, {"X": X})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    return [dict(zip(names, values, strict=True)) for values in (reference, session.run(None, {"X": X}))]


def judge(model, X, dtype, labels_from=None):
    """Both programs against the model; X as the program sees it."""
    X = np.asarray(X, dtype=dtype)
    made = to_onnx(model, dtype=dtype)
    onnx.checker.check_model(made, full_check=True)
    own = labels_from or model
    for found in answers(made, X):
        if "prediction" in found:
            wanted = own.predict(X.astype(np.float64))
            scale = 1.0 + np.abs(wanted).max()
            np.testing.assert_allclose(found["prediction"] / scale, wanted / scale, atol=tolerance(dtype))
            assert found["prediction"].shape == wanted.shape
            continue
        scores = own.decision_function(X.astype(np.float64))
        assert found["scores"].shape == scores.shape
        assert found["scores"].dtype == dtype
        scale = 1.0 + np.abs(scores).max()
        off = np.abs(found["scores"] - scores) / scale
        # Votes that rounding turns are whole numbers off; they are rare.
        assert np.mean(off > tolerance(dtype)) <= (0.0 if dtype == "float64" else 0.01)
        if "label" in found:
            wanted = own.predict(X.astype(np.float64))
            different = np.asarray(found["label"]) != wanted
            assert different.mean() <= (0.0 if dtype == "float64" else 0.01)
            assert np.asarray(found["label"]).dtype.kind in (
                "O" if wanted.dtype.kind in "UO" else wanted.dtype.kind
            )


def tolerance(dtype):
    return 1e-12 if dtype == "float64" else 2e-5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_machines_of_every_kernel(datasets, kernel, multi_class, dtype):
    X, y = datasets["iris"]
    model = svmarrow.SVC(kernel=kernel, multi_class=multi_class, **KERNELS[kernel]).fit(X[::2], y[::2])
    judge(model, X, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("code", CODES)
def test_every_code_and_decoder(rng, code, decoder, dtype):
    for n_classes in (2, 4):
        made = make_code(code, n_classes, random_state=0)
        if decoder == "dag" and code != "ovo" and n_classes > 2:
            continue
        expansion, X = some(rng, "rbf", made.n_columns)
        labels = np.array(["north", "east", "south", "west"])[:n_classes]
        judge(ExpansionClassifier(expansion, labels, "code", code=made, decoder=decoder), X, dtype)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("break_ties", [False, True])
def test_votes_as_scikit_learn_counts_them(datasets, shape, break_ties):
    if break_ties and shape == "ovo":
        pytest.skip("scikit-learn has no such combination")
    X, y = datasets["digits"]
    model = peer.SVC(gamma=0.5, decision_function_shape=shape, break_ties=break_ties).fit(X[:300], y[:300])
    judge(model, X[300:], "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_ties_and_zeros(rng, kernel, dtype):
    """Outputs of exactly 0, where only the rule of the decoder tells who wins."""
    for code, decoder in (("ovo", "votes"), ("ovr", "hamming"), ("ovo", "dag"), ("ovr", "hinge")):
        made = make_code(code, 3)
        expansion, X = some(rng, kernel, made.n_columns)
        flat = expansion.replaced(coefficients=np.zeros_like(expansion.coefficients), intercepts=[0.0] * 3)
        judge(ExpansionClassifier(flat, [3, 5, 7], "code", code=made, decoder=decoder), X, dtype)
    expansion, X = some(rng, kernel, 1)
    flat = expansion.replaced(coefficients=np.zeros_like(expansion.coefficients), intercepts=[0.0])
    judge(ExpansionClassifier(flat, [False, True], "binary"), X, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_numbers_and_bare_expansions(rng, kernel, dtype):
    for outputs, flat in ((1, True), (1, False), (3, True)):
        expansion, X = some(rng, kernel, outputs)
        judge(ExpansionRegressor(expansion, flat=flat), X, dtype)
    judge(expansion, X, dtype)
    # More outputs than vectors: weights of the columns would be more numbers than the vectors.
    expansion, X = some(rng, kernel, 6, m=2)
    judge(expansion, X, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_detectors_and_constants(datasets, rng, dtype):
    X, _ = datasets["moons"]
    judge(svmarrow.OneClassSVM(nu=0.2).fit(X), X, dtype)
    for kernel in ("rbf", "linear", "chi2"):
        constant = KernelExpansion(np.empty((0, 2)), np.empty((0, 1)), [0.25], kernel=kernel)
        judge(ExpansionRegressor(constant), np.abs(X[:5]), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_precomputed_kernels(datasets, dtype):
    X, y = datasets["iris"]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1))
    judge(svmarrow.SVC(kernel="precomputed", multi_class="ovr").fit(K[::2, ::2], y[::2]), K[:, ::2], dtype)


def test_far_from_the_origin_single_precision_is_as_good(datasets):
    X, y = datasets["iris"]
    model = svmarrow.SVC(gamma=2.0).fit(X + 64.0, y)  # the shift is exact in single precision to 5 digits
    X32 = (X + 64.0).astype(np.float32)
    scores = model.decision_function(X32.astype(np.float64))
    for found in answers(to_onnx(model, dtype="float32"), X32):
        assert np.abs(found["scores"] - scores).max() < 1e-3


def test_sparse_vectors_and_bytes(rng):
    Z = sparse.random(20, 8, 0.3, format="csr", random_state=0)
    B = rng.normal(size=(20, 2))
    judge(KernelExpansion(Z, B, [0.0, 1.0], gamma=0.5), rng.normal(size=(30, 8)), "float64")
    bytes_ = rng.integers(0, 255, size=(20, 8)).astype(np.uint8)
    expansion = KernelExpansion(bytes_, B, [0.0, 1.0], gamma=1e-5)
    assert answers(to_onnx(expansion), np.zeros((1, 8), np.float32))[0]["scores"].dtype == np.float32
    judge(expansion, rng.integers(0, 255, size=(30, 8)), "float32")


def test_other_peoples_models_and_any_estimator(datasets):
    X, y = datasets["cancer"]
    for model in (
        svmarrow.NuSVC(nu=0.2),
        svmarrow.RLSClassifier(),
        svmarrow.ReducedSet(svmarrow.SVC(), n_vectors=10),
        svmarrow.online.KernelPerceptron(policy="forgetron", budget=100),
        peer.SVC(),
        KernelRidge(kernel="rbf"),
        svmarrow.CodedClassifier(svmarrow.SVC(), "ovr"),
    ):
        fitted = model.fit(X, y)
        judge(fitted if is_classifier(fitted) else svmarrow.as_expansion(fitted), X, "float64")


def test_the_file_and_its_metadata(datasets, tmp_path):
    X, y = datasets["moons"]
    model = svmarrow.SVC().fit(X, y)
    file = tmp_path / "moons.onnx"
    made = to_onnx(model, file)
    assert onnx.load(file) == made
    said = {entry.key: entry.value for entry in made.metadata_props}
    assert said["producer"] == f"svmarrow {svmarrow.__version__}"
    assert said["kernel"].startswith("rbf")
    other = to_onnx(svmarrow.SVC(C=2.0).fit(X, y))
    assert said["sha256"] not in {entry.value for entry in other.metadata_props}
    assert (made.ir_version, made.opset_import[0].version) == (9, 18)
    assert to_onnx(model).SerializeToString(deterministic=True) == file.read_bytes()
    with pytest.raises(OSError, match="no"):
        to_onnx(model, tmp_path / "no" / "moons.onnx")


def test_calls_of_the_builder_nest():
    graph = Graph("float32")
    weights = graph.constant("weights", 2.0 * np.eye(2))
    products = graph.MatMul("X", weights)
    graph.Identity(graph.Add(graph.Max(products, 1.0), 1.0), name="scores")
    assert [node.op_type for node in graph.nodes] == ["MatMul", "Max", "Add", "Identity"]
    # Equal numbers are one constant, and no name occurs twice, not even in the body of a loop.
    assert [*graph.constants] == ["weights", "number"]
    assert graph.constant("weights", [1]) == "weights_2"
    body = Graph("float32", graph, is_body=True)
    assert body.Add(weights, 3.0) == "Add_2"
    assert ([node.op_type for node in body.nodes], body.constants) == (["Constant", "Add"], {})
    del graph.constants["weights_2"]
    made = onnx.helper.make_model(
        graph.build("sums", [graph.typed("X", "n", 2)], [graph.typed("scores", "n", 2)])
    )
    (scores,) = ReferenceEvaluator(made).run(None, {"X": np.array([[3.0, -4.0]], np.float32)})
    assert scores.tolist() == [[7.0, 2.0]]
    with pytest.raises(ValueError, match=r"rate of the model holds numbers beyond float32: .*'float64'"):
        graph.constant("rate", 1e50)
    with pytest.raises(AttributeError, match="matmul"):
        graph.matmul("X", weights)


def test_a_file_beyond_the_limit_is_refused(rng, monkeypatch):
    expansion, _ = some(rng, "rbf", 2)
    monkeypatch.setattr(onnx_model, "MAX_FILE_BYTES", 100)
    with pytest.raises(ValueError, match=r"takes \d+ bytes: an ONNX file has at most 100; compress it"):
        to_onnx(expansion)


def test_vectors_of_trees_count_for_the_limit(digits, monkeypatch):
    X, y = digits[:2]
    whole = svmarrow.as_expansion(svmarrow.SVC(C=10.0, gamma=0.05).fit(X, y))
    tree = whole.with_expansion(ExpansionTree.of(whole.expansion_, X, 20, random_state=0))
    monkeypatch.setattr(onnx_model, "MAX_FILE_BYTES", whole.expansion_.vectors.nbytes)
    with pytest.raises(ValueError, match=r"takes \d+ bytes"):
        to_onnx(tree, dtype="float64")


def test_what_onnx_cannot_express_is_refused(datasets):
    X, y = datasets["moons"]
    with pytest.raises(ValueError, match="Python function"):
        to_onnx(svmarrow.SVC(kernel=lambda a, b: a @ b.T).fit(X, y))
    with pytest.raises(ValueError, match="dtype='float16'"):
        to_onnx(svmarrow.SVC().fit(X, y), dtype="float16")
    far = KernelExpansion([[1e200]], [1.0], 0.0, kernel="linear")
    with pytest.raises(ValueError, match="float64"):
        to_onnx(far, dtype="float32")
    with pytest.raises(TypeError, match="not a kernel expansion"):
        to_onnx(object())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", PIPELINES, ids=lambda steps: type(steps[-1]).__name__)
def test_pipelines(datasets, steps, dtype):
    X, y = datasets["cancer"]
    judge(make_pipeline(*steps, svmarrow.SVC()).fit(X + 3.0, y), X + 3.0, dtype)


@pytest.mark.parametrize("missing", [-1.0, np.nan])
def test_gaps_categories_and_parts(datasets, rng, missing):
    X, y = datasets["cancer"]
    X = np.hstack([X[:, :6], np.floor(2.0 * X[:, 6:8])])
    X[rng.random(X.shape) < 0.05] = np.nan
    parts = ColumnTransformer(
        [
            ("gaps", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), [3, 0, 5]),
            ("kinds", OneHotEncoder(handle_unknown="ignore"), [6, 7]),
            ("order", OrdinalEncoder(encoded_missing_value=missing), [7]),
        ],
        sparse_threshold=0.0,
    )
    model = make_pipeline(parts, SimpleImputer(), svmarrow.SVC(gamma=0.05)).fit(X, y)
    judge(model, X, "float64")
    text = make_pipeline(OneHotEncoder(), svmarrow.SVC()).fit(np.array([["a"], ["b"]] * 20), [0, 1] * 20)
    with pytest.raises(ValueError, match="columns of text"):
        to_onnx(text)


@pytest.mark.parametrize("fitted", DTYPES)
def test_short_samples_are_divided_where_the_fit_divides_them(rng, fitted):
    """scikit-learn leaves samples below ten roundings of their own precision as they are."""
    X = (1e-6 * rng.normal(size=(60, 3))).astype(fitted)
    model = make_pipeline(Normalizer(), svmarrow.SVR(kernel="poly", degree=2)).fit(X, X[:, 0] * 1e6)
    made = to_onnx(model, dtype="float32")
    for found in answers(made, X.astype(np.float32)):
        expected = model.predict(X)
        assert np.abs(found["prediction"] - expected).max() < 1e-4 * np.ptp(expected)
