"""Text files: LIBSVM's models, with its own programs where they are installed, and svmlight data."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as peer
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from svmarrow import SVC, KernelExpansion, compress
from svmarrow.exceptions import FormatError
from svmarrow.io import load_libsvm_model, load_svmlight, save_libsvm_model, save_svmlight
from svmarrow.models import ExpansionClassifier, ExpansionRegressor

# --- LIBSVM's model text ---


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("n_vectors", [None, 30])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_libsvm_round_trip(multi_class, n_vectors, n_classes, pixels, tmp_path):
    X, y, X_test, _ = pixels
    rows = y < n_classes
    model = SVC(C=10, gamma=0.001, multi_class=multi_class).fit(X[rows], 10 * y[rows] - 7)
    if n_vectors is not None:
        model = compress(model, n_vectors=n_vectors)
    path = tmp_path / "text.model"
    save_libsvm_model(model, path)
    again = load_libsvm_model(path, n_features=X.shape[1])
    assert isinstance(again, ExpansionClassifier)
    assert set(again.classes_) == set(model.classes_)
    np.testing.assert_array_equal(again.predict(X_test), model.predict(X_test))
    if n_classes == 2:
        np.testing.assert_allclose(
            again.decision_function(X_test), model.decision_function(X_test), rtol=1e-7
        )


@pytest.mark.skipif(shutil.which("svm-predict") is None, reason="needs svm-predict (package libsvm-tools)")
@pytest.mark.parametrize("labels", [(0, 1), (3, -5, 12, 0)])
def test_svm_predict_agrees_and_svm_train_is_read(labels, pixels, tmp_path):
    X, y, X_test, y_test = pixels
    rows, test_rows = y < len(labels), y_test < len(labels)
    names = np.array(labels)
    train, test, out = tmp_path / "train", tmp_path / "test", tmp_path / "out"
    save_svmlight(X[rows], names[y[rows]], train)
    save_svmlight(X_test[test_rows], names[y_test[test_rows]], test)

    def peer_predicts(model_file):
        subprocess.run(["svm-predict", test, model_file, out], check=True, capture_output=True)
        return np.loadtxt(out).astype(int)

    model = SVC(C=10, gamma=0.001).fit(X[rows], names[y[rows]])
    ovr = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X[rows], names[y[rows]])
    for ours in (model, compress(model, n_vectors=15), ovr, compress(ovr, n_vectors=15)):
        save_libsvm_model(ours, tmp_path / "ours.model")
        np.testing.assert_array_equal(peer_predicts(tmp_path / "ours.model"), ours.predict(X_test[test_rows]))

    theirs = tmp_path / "theirs.model"
    subprocess.run(["svm-train", "-q", "-g", "0.001", "-c", "10", train, theirs], check=True)
    read = load_libsvm_model(theirs, n_features=64)
    np.testing.assert_array_equal(peer_predicts(theirs), read.predict(X_test[test_rows]))
    small = compress(read, n_vectors=30)
    save_libsvm_model(small, theirs)
    np.testing.assert_array_equal(peer_predicts(theirs), small.predict(X_test[test_rows]))


def test_libsvm_regression_becomes_a_regressor(cancer, tmp_path):
    X, y, X_test, _ = cancer
    model = peer.SVR(gamma=0.01).fit(X, y)
    save_libsvm_model(model, tmp_path / "model")
    again = load_libsvm_model(tmp_path / "model")
    assert isinstance(again, ExpansionRegressor)
    np.testing.assert_allclose(again.predict(X_test), model.predict(X_test), rtol=1e-9)


@pytest.mark.parametrize(
    ("labels", "message"),
    [(["a", "b"], "classes"), ([0.5, 1.5], r"classes \[0.5, 1.5\]"), ([0, 2**31], "32 bits")],
)
def test_labels_that_libsvm_has_not_are_refused(labels, message, tmp_path):
    expansion = KernelExpansion(np.zeros((1, 1)), [1.0], 0.0)
    with pytest.raises(ValueError, match=message):
        save_libsvm_model(ExpansionClassifier(expansion, labels, "binary"), tmp_path / "model")
    with pytest.raises(ValueError, match="2 outputs and no labels"):
        save_libsvm_model(KernelExpansion(np.zeros((1, 1)), [[1.0, 2.0]], [0.0, 1.0]), tmp_path / "model")
    for name in ("laplacian", "matern32"):
        other = KernelExpansion(np.zeros((1, 1)), [1.0], 0.0, kernel=name)
        with pytest.raises(ValueError, match=f"{name}.*one that LIBSVM has"):
            save_libsvm_model(ExpansionClassifier(other, [0, 1], "binary"), tmp_path / "model")
    assert not (tmp_path / "model").exists()


GOOD = (
    "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.1\nlabel 1 -1\nnr_sv 1 1\nSV\n"
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "svm_type c_svc\n",
        GOOD,
        GOOD + "1 1:0.5\n",
        GOOD + "1 1:0.5\n-1 1:x\n",
        GOOD + "1 1:0.5\n-1 3:1 2:1 3:1\n",
        GOOD + "1 1:0.5\n-1 1:nan\n",
        GOOD.replace("rbf", "magic") + "1 1:0.5\n-1 1:1\n",
        GOOD.replace("total_sv 2", "total_sv 99999999999999999999") + "1 1:0.5\n-1 1:1\n",
        GOOD.replace("total_sv 2", "total_sv 4000000000") + "1 1:0.5\n-1 1:1\n",
        GOOD.replace("nr_class 2", "nr_class 2000000000") + "1 1:0.5\n-1 1:1\n",
        GOOD.replace("label 1 -1", "label 1 1") + "1 1:0.5\n-1 1:1\n",
    ],
)
def test_broken_libsvm_models_are_refused_with_their_line(text, tmp_path):
    path = tmp_path / "model"
    path.write_text(text)
    with pytest.raises(FormatError, match="model"):
        load_libsvm_model(path)
    with pytest.raises(ValueError, match="n_features=0"):
        load_libsvm_model(path, n_features=0)


# --- svmlight data ---


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_svmlight_round_trip(layout, dtype, pixels, tmp_path):
    X, y, _, _ = pixels
    X = (X / 7).astype(dtype)
    path = tmp_path / "data"
    save_svmlight(layout(X), y, path)
    again, targets = load_svmlight(path, n_features=64, dtype=dtype)
    assert again.dtype == dtype
    np.testing.assert_array_equal(again.toarray(), X)
    np.testing.assert_array_equal(targets, y)
    theirs, _ = load_svmlight_file(path, n_features=64)
    np.testing.assert_array_equal(theirs.toarray(), again.toarray().astype(float))


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight_of_scikit_learn_is_read(zero_based, pixels, tmp_path):
    X, y, _, _ = pixels
    path = os.fspath(tmp_path / "data")
    dump_svmlight_file(X, y, path, zero_based=zero_based, comment="two\nlines")
    again, targets = load_svmlight(path, n_features=64, zero_based=zero_based)
    np.testing.assert_array_equal(again.toarray(), X)
    np.testing.assert_array_equal(targets, y)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 1:2 1:3", ":2:"),
        ("1 3:2 1:3 3:1", ":2:.*appears twice"),
        ("1 a:2", ":2:"),
        ("1 1:b", ":2:"),
        ("1 1", ":2:"),
        ("x 1:1", ":2:"),
        ("1:1 2:2", ":2:"),
        ("1,2 1:1", ":2:.*multilabel"),
        ("1 1:nan", ":2:"),
        ("1 1:1e999", ":2:"),
        ("nan 1:1", ":2:"),
        ("1 99999999999999999999:1", ":2:"),
        ("1 -1:1", ":2:"),
    ],
)
def test_malformed_svmlight_names_the_line(line, message, tmp_path):
    path = tmp_path / "data"
    path.write_text(f"1 1:1 2:2\n{line}\n-1 1:1\n")
    with pytest.raises(FormatError, match=message):
        load_svmlight(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 2}, "beyond the 2 features"),
        ({"n_features": 0}, "n_features=0"),
        ({"dtype": np.int64}, "dtype="),
        ({"zero_based": "maybe"}, "zero_based='maybe'"),
    ],
)
def test_svmlight_options_are_checked(options, message, tmp_path):
    path = tmp_path / "data"
    path.write_text("1 1:1 7:2\n")
    with pytest.raises(ValueError, match=message):
        load_svmlight(path, **options)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[np.nan]], [1], "NaN"),
        ([[1.0]], [np.inf], "finite"),
        ([[1.0]], [1, 2], "expected"),
        ([[1.0]], ["a"], "numbers"),
        ([[1.0]], [[1.0]], "one number a row"),
    ],
)
def test_save_svmlight_checks_before_it_writes(X, y, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save_svmlight(X, y, tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


def test_progress_of_reading_is_reported(pixels, tmp_path):
    X, y, _, _ = pixels
    path = tmp_path / "data"
    save_svmlight(np.tile(X, (60, 1)) + 0.123456789, np.tile(y, 60), path)
    told = []
    load_svmlight(path, progress=lambda *progress: told.append(progress))
    assert all(phase == "read" and done <= total == path.stat().st_size for phase, done, total, _, _ in told)
