"""The engine in Node.js: the labels of the Python package, and the bits of its scalar level."""

from __future__ import annotations

import base64
import gzip
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmarrow

MODULE = Path(__file__).parents[2] / "web" / "dist" / "svmarrow.wasm"
MAX_COMPRESSED_BYTES = 900_000
X, Y = load_iris(return_X_y=True)
X_NEW = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), (400, 4))
NAMES = np.array(["setosa", "versicolor", "virginica"])

#: Models of all kernels and kinds, by name.
MODELS = {
    "linear": lambda: svmarrow.SVC(kernel="linear").fit(X, Y),
    "poly": lambda: svmarrow.SVC(kernel="poly", coef0=1.0, multi_class="ovr").fit(X, Y),
    "rbf": lambda: svmarrow.SVC(C=10).fit(X, NAMES[Y]),
    "sigmoid": lambda: svmarrow.SVC(kernel="sigmoid", gamma=0.01).fit(X, Y),
    "laplacian": lambda: svmarrow.RLSClassifier(kernel="laplacian", gamma=0.3).fit(X, Y),
    "chi2": lambda: svmarrow.SVC(kernel="chi2", gamma=0.5).fit(X, Y),
    "matern12": lambda: svmarrow.KMPClassifier(kernel="matern12", n_vectors=20).fit(X, NAMES[Y]),
    "matern32": lambda: svmarrow.SVC(kernel="matern32").fit(X, Y),
    "matern52": lambda: svmarrow.OneClassSVM(kernel="matern52", nu=0.2).fit(X),
    "two classes": lambda: svmarrow.SVC().fit(X[50:], Y[50:] == 2),
    "sparse": lambda: svmarrow.SVC().fit(sp.csr_array(X), Y),
    "regression": lambda: svmarrow.SVR(epsilon=0.05).fit(X[:, :3], X[:, 3]),
    "kernel ridge": lambda: svmarrow.RLSRegressor(alpha=0.1).fit(X[:, :3], X[:, 3]),
    "pipeline": lambda: make_pipeline(StandardScaler(), svmarrow.SVC(C=3)).fit(X, NAMES[Y]),
    "quantized": lambda: svmarrow.quantize(svmarrow.SVC().fit(X, Y)),
    "compressed": lambda: svmarrow.compress(svmarrow.SVC().fit(X, Y), X, Y, n_vectors=9, random_state=0),
}
#: Estimators and options of fits.
FITS = {
    "SVC": {"C": 10.0, "gamma": 0.3},
    "SVR": {"C": 2.0, "gamma": 0.3, "epsilon": 0.1},
    "OneClassSVM": {"nu": 0.2, "gamma": 0.3},
    "RLSClassifier": {"alpha": 0.1, "gamma": 0.3},
    "RLSRegressor": {"alpha": 0.1, "gamma": 0.3, "fit_intercept": True},
    "KMPClassifier": {"n_vectors": 12, "gamma": 0.3},
    "KMPRegressor": {"n_vectors": 12, "gamma": 0.3},
}


def targets_of(estimator):
    return X[:, 3] if estimator.endswith(("R", "Regressor")) else Y


def samples_of(estimator, samples):
    return samples[:, :3] if estimator.endswith(("R", "Regressor")) else samples


def estimator(name):
    """Returns an estimator. The crate's pursuit back-fits, in the precision of the samples."""
    pursuit = {"precision": "double", "variant": "backfit"} if name.startswith("KMP") else {}
    return getattr(svmarrow, name)(**FITS[name], **pursuit)


def fitted(name):
    """Returns a fit in Python."""
    return estimator(name).fit(samples_of(name, X), None if name == "OneClassSVM" else targets_of(name))


def bits(numbers):
    return [struct.pack(">d", number).hex() for number in np.ravel(numbers)]


def scalar_outputs(folder):
    """Prints the outputs of the model files of a folder and of all fits, as bits: at the scalar level."""
    files = {path.stem: svmarrow.load(path) for path in sorted(Path(folder).iterdir())}
    found = {}
    for name, model in (files | {name: fitted(name) for name in FITS}).items():
        model = svmarrow.as_expansion(model)
        new = np.ascontiguousarray(X_NEW[:, : model.n_features_in_])
        rows = new if model.preparation is None else model.preparation.rows(new)
        found[name] = bits(model.expansion_.decision_function(rows))
    print(json.dumps(found))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the model files."""
    folder = tmp_path_factory.mktemp("models")
    for name, make in MODELS.items():
        svmarrow.save(make(), folder / f"{name}.safetensors")
    return folder


@pytest.fixture(scope="module")
def scalar(files):
    """Outputs at the scalar level of this machine, as bits."""
    done = subprocess.run(
        [sys.executable, __file__, str(files)], env={**os.environ, "SVMARROW_SIMD": "scalar"},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_module_is_small(node):
    assert len(gzip.compress(MODULE.read_bytes(), 9)) <= MAX_COMPRESSED_BYTES


def test_model_files_give_the_same_labels_and_bits(node, scalar, files):
    calls, models = [], {path.stem: svmarrow.load(path) for path in sorted(files.iterdir())}
    assert len(models) == len(MODELS)
    for name, model in models.items():
        path = files / f"{name}.safetensors"
        new = X_NEW[:, : svmarrow.as_expansion(model).n_features_in_]
        calls.append({"load": base64.b64encode(path.read_bytes()).decode(), "on": new.tolist()})
    for (name, model), found in zip(models.items(), node(calls), strict=True):
        assert "error" not in found, (name, found)
        new = X_NEW[:, : found["n_features"]]
        expected = model.predict(new)
        if found["kind"] == "regressor":
            np.testing.assert_allclose(found["predictions"], expected, rtol=1e-9, err_msg=name)
        else:
            assert found["predictions"] == expected.tolist(), name
        assert found["outputs"] == scalar[name], name


@pytest.mark.parametrize("name", FITS)
def test_fits_are_those_of_python(node, scalar, name):
    samples, new = samples_of(name, X), samples_of(name, X_NEW)
    y = None if name == "OneClassSVM" else targets_of(name).tolist()
    (found,) = node([{"fit": [name, samples.tolist(), y, FITS[name]], "on": new.tolist()}])
    model = fitted(name)
    assert found["n_vectors"] == svmarrow.as_expansion(model).expansion_.n_vectors
    assert found["outputs"] == scalar[name]
    if found["kind"] != "regressor":
        assert found["predictions"] == model.predict(new).tolist()
    for certificate in found["certificates"]:
        assert certificate["dual"] <= certificate["primal"]
        assert certificate["stop"] == "converged"


def test_leave_one_out_predictions_are_those_of_refits(node):
    samples, y = X[::3], Y[::3]
    for name, options in FITS.items():
        if name in ("OneClassSVM", "SVR", "KMPRegressor", "RLSRegressor"):
            continue
        call = {"fit": [name, samples.tolist(), y.tolist(), options], "on": samples.tolist(), "y": y.tolist()}
        (found,) = node([{**call, "leave_one_out": True}])
        refits = []
        for i in range(len(y)):
            others = np.arange(len(y)) != i
            model = estimator(name).fit(samples[others], y[others])
            refits.append(model.predict(samples[i : i + 1])[0])
        assert found["left_out"] == refits, name


def test_saved_models_are_read_by_python(node, tmp_path):
    for name, options in FITS.items():
        samples, new = samples_of(name, X), samples_of(name, X_NEW)
        y = None if name == "OneClassSVM" else targets_of(name).tolist()
        call = {"fit": [name, samples.tolist(), y, options], "on": new.tolist(), "save": True}
        (found,) = node([call])
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(base64.b64decode(found["file"]))
        model = svmarrow.load(path)
        if found["kind"] == "regressor":
            np.testing.assert_allclose(model.predict(new), found["predictions"], rtol=1e-9)
        else:
            assert model.predict(new).tolist() == found["predictions"]


@pytest.mark.parametrize("method", ["gradient", "backfit"])
def test_compressed_models_agree(node, method):
    call = {"fit": ["SVC", X.tolist(), Y.tolist(), {"C": 10, "gamma": 0.1}], "on": X.tolist(), "save": True}
    options = {"n_vectors": 12, "method": method} | ({"steps": 2000} if method == "gradient" else {})
    (found,) = node([{**call, "compress": options}])
    assert found["n_vectors"] > found["small"]["n_vectors"] == 12
    for small in ("small", "moved"):
        if small in found:
            assert np.mean(np.array(found[small]["predictions"]) == found["predictions"]) >= 0.97


ERRORS = {
    "C=-1": (
        ["SVC", [[0.0], [1.0]], [0, 1], {"C": -1}],
        "c=-1 is not allowed: it must be positive and finite",
    ),
    "NaN": (["SVC", [["NaN"], [1.0]], [0, 1], {}], "X holds a value that is not finite"),
    "one class": (["SVC", [[0.0], [1.0]], [1, 1], {}], "at least 2 classes"),
    "unknown option": (["SVC", [[0.0], [1.0]], [0, 1], {"c": 1}], "c: 1 is not allowed"),
    "unknown estimator": (["SVX", [[0.0], [1.0]], [0, 1], {}], "estimator=SVX is not allowed"),
    "too few labels": (["SVC", [[0.0], [1.0]], [0], {}], "expected 2, found 1"),
    "labels": (["SVC", [[0.0], [1.0]], [0, 0.5], {}], "y=0.5 is not allowed"),
    "ragged rows": (["SVC", [[0.0], [1.0, 2.0]], [0, 1], {}], "rows of equal length"),
    "negative values": (["SVC", [[-1.0], [1.0]], [0, 1], {"kernel": "chi2", "gamma": 1}], "negative"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_have_the_words_of_the_engine(node, case):
    call, words = ERRORS[case]
    (found,) = node([{"fit": call}])
    assert found["error"].startswith("SvmarrowError: ")
    assert words in found["error"]


def test_damaged_files_are_refused(node, tmp_path):
    path = tmp_path / "model.safetensors"
    svmarrow.save(MODELS["rbf"](), path)
    whole = path.read_bytes()
    files = [whole[:length] for length in (0, 5, 100, len(whole) - 1)] + [whole[:200] + b"x" + whole[201:]]
    svmarrow.save(svmarrow.TabularClassifier().fit(X, Y), path)
    files.append(path.read_bytes())
    for found in node([{"load": base64.b64encode(file).decode(), "on": X.tolist()} for file in files]):
        assert found["error"].startswith("SvmarrowError: model file: ")


def test_a_panic_is_an_error_and_the_engine_starts_again(node):
    fit = {"fit": ["SVC", X.tolist(), Y.tolist(), {}], "on": X.tolist()}
    first, panic, second = node([fit, {"panic": "a wrong index"}, fit])
    assert "the engine stopped and was started again" in panic["error"]
    assert "a wrong index" in panic["error"]
    assert first == second


if __name__ == "__main__":
    scalar_outputs(sys.argv[1])
