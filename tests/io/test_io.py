"""Files: what is saved comes back, what is broken is refused, what fails leaves the old file."""

import struct
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import svm as peer

import svmarrow
from helpers.model_files import change_description, describe, read_parts, write_parts
from svmarrow import SVC, KernelExpansion, compress, load, save
from svmarrow.exceptions import ConvergenceWarning, FormatError, NotFittedError, SizeWarning
from svmarrow.models import ExpansionClassifier


@pytest.fixture(scope="module")
def svc(pixels):
    return SVC(C=10, gamma=0.001).fit(*pixels[:2])


@pytest.fixture
def saved(svc, tmp_path):
    path = tmp_path / "model.safetensors"
    svc.save(path)
    return path


# --- round trips ---

LABELS = {
    "int": np.arange(10),
    "int8": np.arange(10, dtype=np.int8),
    "str": np.array(list("abcdefghij")),
    "object": np.array([f"class {i}" for i in range(10)], dtype=object),
    "float": np.arange(10) * 2.0,
    "non-ascii": np.array(["é", "ß", "漢", "😀", '"', "\\", "\n", " ", "a\tb", "z"]),
}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_an_svc_comes_back_whole(labels, multi_class, pixels, tmp_path):
    X, y, X_test, _ = pixels
    model = SVC(C=10, gamma=0.001, multi_class=multi_class, class_weight="balanced").fit(X, LABELS[labels][y])
    path = tmp_path / "model"
    model.save(path)
    again = svmarrow.load(path)
    assert type(again) is SVC
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.decision_function(X_test), model.decision_function(X_test))
    np.testing.assert_array_equal(again.predict(X_test), model.predict(X_test))
    assert again.predict(X_test).dtype == model.predict(X_test).dtype
    for name in ("support_", "n_support_", "dual_coef_", "intercept_", "support_vectors_", "classes_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.class_weight_, model.class_weight_)
    assert again.certificate_ == model.certificate_
    assert (again.shape_fit_, again.n_features_in_) == (model.shape_fit_, model.n_features_in_)
    np.testing.assert_array_equal(again.n_iter_, model.n_iter_)
    again.fit(X, y)  # it can be trained again


def test_booleans_weights_and_layouts_come_back(cancer, tmp_path):
    X, y, X_test, _ = cancer
    path = tmp_path / "model"
    weights = {True: 2.0, False: 1.0}
    model = SVC(class_weight=weights, kernel="poly", degree=2, coef0=1).fit(
        sparse.csr_array(X), y.astype(bool)
    )
    model.save(path)
    again = load(path)
    assert again.class_weight == weights
    assert again.predict(X_test).dtype == bool
    assert sparse.issparse(again.support_vectors_)
    np.testing.assert_array_equal(again.decision_function(X_test), model.decision_function(X_test))
    for dtype in (np.float32, np.uint8):
        expansion = KernelExpansion((X[:5] * 10 + 50).astype(dtype), np.ones((5, 2)), [0, 1], gamma=1e-3)
        save(expansion, path)
        assert load(path) == expansion
        assert load(path).vectors.dtype == dtype


def test_precomputed_and_constant_models_come_back(cancer, tmp_path):
    X, y, X_test, _ = cancer
    path = tmp_path / "model"
    model = SVC(kernel="precomputed").fit(X @ X.T, y)
    model.save(path)
    np.testing.assert_array_equal(load(path).predict(X_test @ X.T), model.predict(X_test @ X.T))
    constant = KernelExpansion(np.empty((0, 3)), np.empty((0, 1)), [2.5])
    save(constant, path)
    assert load(path).decision_function(np.zeros((2, 3))).tolist() == [[2.5], [2.5]]


def test_a_fit_that_ended_early_comes_back(pixels, tmp_path):
    X, y, _, _ = pixels
    with pytest.warns(ConvergenceWarning):
        model = SVC(max_iter=1).fit(X, y)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").certificate_ == model.certificate_


def test_compressed_and_foreign_models_come_back(svc, pixels, tmp_path):
    X, y, X_test, _ = pixels
    path = tmp_path / "model"
    models = [
        compress(svc, n_vectors=20, X=X, y=y, method="backfit"),
        peer.SVC(break_ties=True).fit(X, y),
        peer.SVC(decision_function_shape="ovo").fit(X, y),
    ]
    for model in models:
        save(model, path)
        again = load(path)
        assert type(again) is ExpansionClassifier
        np.testing.assert_allclose(
            again.decision_function(X_test), model.decision_function(X_test), rtol=1e-6
        )
        np.testing.assert_array_equal(again.predict(X_test), model.predict(X_test))
    models[0].save(path)
    np.testing.assert_array_equal(load(path).decision_function(X_test), models[0].decision_function(X_test))


def test_column_names_come_back(cancer, tmp_path):
    X, y, _, _ = cancer
    frame = pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    model = SVC().fit(frame, y)
    for saved_model in (model, compress(model, n_vectors=4)):
        saved_model.save(tmp_path / "model")
        assert list(load(tmp_path / "model").feature_names_in_) == list(frame.columns)


def test_what_cannot_be_stored_is_refused_before_anything_is_written(cancer, tmp_path):
    X, y, _, _ = cancer
    path = tmp_path / "model"
    with pytest.raises(NotFittedError):
        save(SVC(), path)
    with pytest.raises(TypeError, match="LinearSVC"):
        save(peer.LinearSVC().fit(X, y), path)
    tuples = np.empty(2, dtype=object)
    tuples[:] = [("a", 1), ("b", 2)]
    expansion = KernelExpansion(np.zeros((1, 1)), [1.0], 0.0)
    with pytest.raises(TypeError, match="classes of type object"):
        save(ExpansionClassifier(expansion, tuples, "binary"), path)
    assert list(tmp_path.iterdir()) == []


# --- hostile model files ---


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "too few"),
        (b"PK\x03\x04 this is a zip file, not a model", "not a safetensors file"),
        (struct.pack("<Q", 2**63) + b"{}", "not a safetensors file"),
        (struct.pack("<Q", 50_000_000) + b'{"', "cut off"),
        (struct.pack("<Q", 4) + b"{no}", "not JSON"),
        (struct.pack("<Q", 2) + b"{}", "not a svmarrow model"),
        (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.", "not a safetensors file"),
    ],
)
def test_other_files_are_no_models(content, message, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_every_truncation_is_noticed(saved, tmp_path):
    data = saved.read_bytes()
    short = tmp_path / "short"
    for length in [*range(0, 64, 7), *range(64, len(data), len(data) // 40), len(data) - 1]:
        short.write_bytes(data[:length])
        with pytest.raises(FormatError):
            load(short)
    short.write_bytes(data + b"\0")
    with pytest.raises(FormatError, match="end at byte"):
        load(short)


def test_sizes_that_overflow_allocate_nothing(saved):
    header, data = read_parts(saved)
    for shape in ([2**62, 2**62], [2**40, 10], [10**12, 64], [-1, 64]):
        header["vectors"]["shape"] = shape
        write_parts(saved, header, data)
        with pytest.raises(FormatError):
            load(saved)


@pytest.mark.quick_every(3)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": "os.system"}, "schema 'os.system' must be a name and a number"),
        ({"schema": "os.system/1"}, "schema 'os.system/1' is unknown .*written by svmarrow .* upgrade"),
        ({"schema": "remove"}, "contains no model"),
        ({"schema": ["svc/1"]}, r"schema \['svc/1'\] must be"),
        ({"schema": "svc/0"}, "must be a name and a number"),
        ({"schema": "svc/01"}, "must be a name and a number"),
        ({"schema": "svc/\N{SUPERSCRIPT TWO}"}, "must be a name and a number"),
        ({"schema": "svc/" + "9" * 5000}, "must be a name and a number"),
        ({"schema": "certificate/1"}, "."),
        ({"schema": "classifier/1"}, "."),
        ({"support_": "remove"}, "."),
        ({"about/more": {"schema": "svc/1"}, "schema": "remove"}, "contains no model"),
        ({"exec": "rm"}, "field 'exec' of schema 'svc/1' is unknown to svmarrow .* written by svmarrow"),
        ({"certificate_/about": {}}, "field 'about' of schema 'certificate/1'"),
        ({"n_jobs": 0}, "n_jobs=0 is not allowed"),
        ({"loss": {"dict": []}}, "loss={} is not allowed"),
        ({"C": -1.0}, "C=-1.0"),
        ({"C": {"__reduce__": ["os.system", "false"]}}, "is not a part of a model"),
        ({"C": {"float": "1; exit()"}}, "is not a part of a model"),
        ({"C": {"range": [0, 10**12, 1]}}, "more than 1000000 elements"),
        ({"C": {"range": [0, 10**30, 1]}}, "."),
        ({"C": {"random": {"dict": []}}}, "."),
        ({"classes_": "remove"}, "classes_"),
        ({"classes_": {"strings": [1] * 10}}, "list of strings"),
        ({"classes_": {"strings": ["a"] * 10}}, "at least two distinct"),
        ({"classes_": {"strings": ["a", "b", "c"]}}, "needs 3"),
        ({"classes_": {"text": "support_"}}, "is not text"),
        ({"classes_": {"array": "elsewhere"}}, "'elsewhere' is missing"),
        ({"classes_": 3}, "classes_ is 3, expected NDArray"),
        ({"n_features_in_": 3}, "n_features=3"),
        ({"n_features_in_": "64"}, "n_features_in_ is '64', expected int"),
        ({"feature_names_in_": {"strings": ["a"]}}, "feature_names has 1 names"),
        ({"support_": {"array": "n_support_"}}, "support_ and n_support_ do not describe"),
        ({"support_": {"array": "class_weight_"}}, "expected NDArray"),
        ({"support_": "abc"}, "support_ is 'abc'"),
        ({"n_support_": {"array": "support_"}}, "do not describe"),
        ({"n_support_": {"same": 0}}, "contains itself"),
        ({"certificate_/machines": {"tuple": []}}, "certificate has 0 machines"),
        ({"certificate_/seconds": "long"}, "seconds is 'long'"),
        ({"shape_fit_": [1]}, "shape_fit_"),
        ({"class_weight_": None}, "."),
        ({"predict": "remove it"}, "field 'predict' of schema 'svc/1' is unknown"),
        ({"_rules": {"dict": []}}, "field '_rules'"),
        ({"__class__": "SVR"}, "field '__class__'"),
        ({"more": 1}, "field 'more'"),
    ],
)
def test_json_that_contradicts_the_model_is_refused(saved, changes, message):
    load(saved)
    change_description(saved, changes)
    with pytest.raises(FormatError, match=message):
        load(saved)


def test_versions_of_the_container_are_checked(saved):
    header, data = read_parts(saved)
    header["__metadata__"]["version"] = "7"
    write_parts(saved, header, data)
    with pytest.raises(FormatError, match='version "7"'):
        load(saved)


def test_random_damage_is_refused_or_harmless(saved, pixels, tmp_path):
    """A flipped bit may make another valid model, but no error except a FormatError may come out."""
    data = bytearray(saved.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    rng = np.random.default_rng(0)
    damaged = tmp_path / "damaged"
    for position in rng.integers(0, length + 8, 300):
        copy = data.copy()
        copy[position] ^= 1 << rng.integers(0, 8)
        damaged.write_bytes(copy)
        try:
            model = load(damaged)
        except FormatError:
            continue
        assert isinstance(model, SVC)


@pytest.mark.parametrize("text", ["{", "[" * 200_000, "[1e999]", "NaN", "3", "[]", '"SVC"'])
def test_text_that_is_no_model_is_refused(saved, text):
    describe(saved, text)
    with pytest.raises(FormatError):
        load(saved)


def test_unknown_tensors_are_refused(saved):
    header, data = read_parts(saved)
    header["more"] = {"dtype": "F64", "shape": [1], "data_offsets": [len(data), len(data) + 8]}
    write_parts(saved, header, data + bytes(8))
    with pytest.raises(FormatError, match="'more' is not part"):
        load(saved)


def test_system_errors_keep_their_class(tmp_path, svc):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises(OSError, match="No such file"):
        svc.save(tmp_path / "no folder" / "model")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_many_machines_for_few_vectors_are_worth_a_word(tmp_path):
    centres = np.random.default_rng(0).normal(scale=5, size=(24, 3))
    X = np.repeat(centres, 6, axis=0) + np.tile(np.linspace(0, 1, 6)[:, None], (24, 3))
    y = np.repeat(np.arange(24), 6)
    pairs = compress(SVC().fit(X, y), n_vectors=60)
    with pytest.warns(SizeWarning, match=r"one-vs-rest .* would take .* train with multi_class='ovr'"):
        save(pairs, tmp_path / "model")
    assert (load(tmp_path / "model").predict(X) == pairs.predict(X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(compress(SVC(multi_class="ovr").fit(X, y), n_vectors=60), tmp_path / "model")
        save(compress(SVC().fit(X, y), n_vectors=4), tmp_path / "model")
