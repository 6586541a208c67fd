"""Probabilities travel: the same numbers from the model, its file, ONNX programs, C and the command."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from sklearn import svm as peer
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

import svmarrow
from helpers.programs import c_program, c_rows, command
from svmarrow import KernelExpansion
from svmarrow.export import to_c, to_onnx
from svmarrow.io import info
from svmarrow.models import Calibration, ExpansionClassifier
from svmarrow.multiclass import make_code
from svmarrow.patch import svm

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore:.*prob.*:FutureWarning")

PROGRAM = """#include <stdio.h>
#include "model.h"
int main(void) {
    float x[P_FEATURES], p[P_CLASSES];
    int j;
    while (scanf("%f", &x[0]) == 1) {
        for (j = 1; j < P_FEATURES; ++j) {
            if (scanf("%f", &x[j]) != 1) {
                return 1;
            }
        }
        p_probabilities(x, p);
        for (j = 0; j < P_CLASSES; ++j) {
            printf("%.9g ", (double)p[j]);
        }
        printf("\\n");
    }
    return p_predict(x) < P_CLASSES ? 0 : 2;
}
"""


def by_onnx(model, X, dtype):
    session = onnxruntime.InferenceSession(to_onnx(model, dtype=dtype).SerializeToString())
    assert [one.name for one in session.get_outputs()] == ["label", "scores", "probabilities"]
    label, _, found = session.run(None, {"X": X.astype(dtype)})
    assert found.dtype == dtype
    assert (label == model.predict(X.astype(dtype))).mean() >= 0.99
    return found


def by_c(model, X, folder, dtype="float32"):
    (folder / "model.h").write_text(to_c(model, prefix="p", dtype=dtype, X=X).text)
    lines = c_program(folder, PROGRAM, c_rows(X), cpp=True).splitlines()
    return np.array([[float(cell) for cell in line.split()] for line in lines])


def judge(model, X, folder):
    """The model's file, ONNX in both precisions and C against the model."""
    wanted = model.predict_proba(X)
    np.testing.assert_allclose(wanted.sum(axis=1), 1.0, atol=1e-12)
    assert (wanted >= 0).all()
    svmarrow.save(model, folder / "m.safetensors")
    assert (svmarrow.load(folder / "m.safetensors").predict_proba(X) == wanted).all()
    np.testing.assert_allclose(by_onnx(model, X, "float64"), wanted, atol=1e-11)
    for found in (by_onnx(model, X, "float32"), by_c(model, X, folder) if shutil.which("gcc") else wanted):
        off = np.abs(found - wanted).max(axis=1)
        # A vote that rounding turns moves the scores of some decoders by a whole number.
        assert np.median(off) < 2e-5
        assert np.mean(off > 2e-4) <= 0.02


def labelled(rng, k, n=160):
    X = rng.normal(size=(n, 4)).astype(np.float32).astype(np.float64)
    y = (X[:, 0] * 1.7 + X[:, 1] + 0.4 * rng.normal(size=n) > 0).astype(int)
    y += ((X[:, 2] > 0.3) * (k > 2)).astype(int) + ((X[:, 3] > 0.5) * (k > 3)).astype(int)
    return X, np.array(["north", "east", "south", "west"])[y % k]


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_machines(rng, k, multi_class, tmp_path):
    X, y = labelled(rng, k)
    svc = svmarrow.SVC(multi_class=multi_class, decision_function_shape="ovr").fit(X[:80], y[:80])
    judge(svmarrow.as_expansion(svc).calibrated(X[80:], y[80:]), X, tmp_path)


@pytest.mark.parametrize("decoder", ["votes", "hamming", "exponential", "mean_hinge"])
@pytest.mark.parametrize("code", ["ovr", "sparse"])
def test_codes(rng, code, decoder, tmp_path):
    for k in (2, 4):
        made = make_code(code, k, random_state=0)
        expansion = KernelExpansion(
            rng.normal(size=(7, 4)),
            rng.normal(size=(7, made.n_columns)),
            rng.normal(size=made.n_columns),
            gamma=0.4,
        )
        X, y = labelled(rng, k)
        model = ExpansionClassifier(expansion, np.unique(y), "code", code=made, decoder=decoder)
        judge(model.calibrated(X, y), X, tmp_path)


def test_rounds_of_a_knock_out_stay_with_python(rng):
    X, y = labelled(rng, 3)
    code = make_code("ovo", 3)
    expansion = KernelExpansion(rng.normal(size=(5, 4)), rng.normal(size=(5, 3)), np.zeros(3), gamma=0.4)
    model = ExpansionClassifier(expansion, np.unique(y), "code", code=code, decoder="dag").calibrated(X, y)
    np.testing.assert_allclose(by_onnx(model, X, "float64"), model.predict_proba(X), atol=1e-11)
    with pytest.raises(ValueError, match="decoder='dag' are rounds"):
        to_c(model)
    assert "p_probabilities" not in to_c(model.with_calibration(None), prefix="p").text


@pytest.mark.parametrize("method", ["sigmoid", "temperature"])
@pytest.mark.parametrize("k", [2, 3])
def test_calibrated_machines_of_scikit_learn(rng, k, method, tmp_path):
    X, y = labelled(rng, k)
    inner = make_pipeline(StandardScaler(), svmarrow.SVC(multi_class="ovr"))
    try:
        model = CalibratedClassifierCV(inner, method=method, ensemble=False).fit(X, y)
    except ValueError as error:  # scikit-learn before 1.8
        pytest.skip(str(error))
    taken = svmarrow.as_expansion(model)
    np.testing.assert_allclose(taken.predict_proba(X), model.predict_proba(X), atol=1e-12)
    assert taken.classes_.tolist() == model.classes_.tolist()
    assert set(taken.predict(X)) <= set(model.classes_)
    judge(taken, X, tmp_path)
    svmarrow.save(model, tmp_path / "calibrated.safetensors")
    loaded = svmarrow.load(tmp_path / "calibrated.safetensors")
    assert loaded.predict(X).tolist() == taken.predict(X).tolist()
    small = svmarrow.compress(model, n_vectors=30)
    assert log_loss(y, small.predict_proba(X)) < log_loss(y, np.full((len(y), k), 1 / k))


def test_probabilities_of_a_pipeline(rng, tmp_path):
    X, y = labelled(rng, 4)
    model = make_pipeline(StandardScaler(), svm.SVC(probability=True, random_state=0)).fit(X, y)
    judge(svmarrow.as_expansion(model), X, tmp_path)


@pytest.mark.parametrize("k", [2, 3])
def test_probabilities_of_svc(rng, k, tmp_path):
    X, y = labelled(rng, k)
    weights = rng.integers(1, 3, len(y)).astype(float)
    theirs = peer.SVC(probability=True, random_state=0).fit(X, y, weights)
    # LIBSVM's coupling ends at a tolerance of its own.
    np.testing.assert_allclose(
        svmarrow.as_expansion(theirs).predict_proba(X), theirs.predict_proba(X), atol=0.01
    )
    ours = svm.SVC(probability=True, random_state=0).fit(X, y, weights)
    taken = svmarrow.as_expansion(ours)
    np.testing.assert_allclose(taken.predict_proba(X), ours.predict_proba(X), atol=1e-14)
    judge(taken, X, tmp_path)


def test_one_machine_is_asked_for(rng):
    X, y = labelled(rng, 2)
    svc = svmarrow.SVC().fit(X, y)
    with pytest.raises(ValueError, match="ensemble=False"):
        svmarrow.as_expansion(CalibratedClassifierCV(svc, cv=3).fit(X, y))
    with pytest.raises(ValueError, match="is no sigmoid: use 'sigmoid'"):
        svmarrow.as_expansion(CalibratedClassifierCV(FrozenEstimator(svc), method="isotonic").fit(X, y))


def test_calibration_on_other_rows_is_better_than_on_those_of_the_training():
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    svc = svmarrow.SVC(gamma=0.002, C=10).fit(X[:300], y[:300])
    small = svmarrow.compress(svc, X[:300], y[:300], n_vectors=40, method="backfit")
    assert not hasattr(small, "predict_proba")
    with pytest.raises(AttributeError) as raised:
        small.predict_proba(X)
    assert "model.calibrated" in str(raised.value.__cause__)
    others = small.calibrated(X[300:1000], y[300:1000])
    own = small.calibrated(X[:300], y[:300])
    losses = [log_loss(y[1000:], one.predict_proba(X[1000:])) for one in (others, own)]
    assert losses[0] < min(losses[1], 0.5)
    assert (others.predict(X) == small.predict(X)).all()
    # A weight is a repetition.
    weights = np.arange(700) % 3
    weighted = small.calibrated(X[300:1000], y[300:1000], weights).calibration
    rows = np.repeat(np.arange(300, 1000), weights)
    repeated = small.calibrated(X[rows], y[rows]).calibration
    np.testing.assert_allclose(weighted.slopes, repeated.slopes, rtol=1e-5)


def test_what_is_refused(rng):
    X, y = labelled(rng, 3)
    model = svmarrow.as_expansion(svmarrow.SVC().fit(X, y))
    with pytest.raises(ValueError, match="labels that the model does not know, such as"):
        model.calibrated(X[:2], ["north", "up"])
    with pytest.raises(ValueError, match="y has no row of class 'south'"):
        model.calibrated(X[y != "south"], y[y != "south"])
    with pytest.raises(ValueError, match="X has 160 rows, y has shape"):
        model.calibrated(X, y[:3])
    with pytest.raises(ValueError, match="1 sigmoids: link='pairs' of 3 classes needs 3"):
        model.with_calibration(Calibration("pairs", [1.0], [0.0]))
    with pytest.raises(ValueError, match="vector of finite numbers"):
        Calibration("pairs", [np.nan], [0.0])
    with pytest.raises(ValueError, match="link='probit'"):
        Calibration("probit", [1.0], [0.0])
    with pytest.raises(ValueError, match="1 slopes and 2 offsets"):
        Calibration("pairs", [1.0], [0.0, 1.0])
    ovr = svmarrow.as_expansion(svmarrow.SVC(multi_class="ovr").fit(X, y))
    with pytest.raises(ValueError, match="needs decoding='ovo'"):
        ovr.with_calibration(Calibration("pairs", np.ones(3), np.zeros(3)))
    raw = svmarrow.as_expansion(svmarrow.SVC(decision_function_shape="ovo").fit(X, y))
    with pytest.raises(ValueError, match="takes a score for each class"):
        raw.with_calibration(Calibration("classes", np.ones(3), np.zeros(3)))
    assert raw.calibrated(X, y).predict_proba(X).shape == (160, 3)


def test_command(rng, tmp_path):
    X, y = labelled(rng, 3, 300)
    y = np.unique(y, return_inverse=True)[1]
    model, small, rows, out = (
        tmp_path / name for name in ("m.safetensors", "s.safetensors", "v.npz", "p.txt")
    )
    np.savez(rows, X=X[150:], y=y[150:])
    svmarrow.SVC(multi_class="ovr").fit(X[:150], y[:150]).save(model)

    def said(*words, code=0):
        return command(*words, code=code).output

    assert "has no probabilities" in said("predict", model, rows, "-o", out, "--probability", code=1)
    given = ("compress", model, "-o", small, "-n", "20", "-m", "backfit", "--probability")
    assert "--validation" in said(*given, code=2)
    said(*given, "--validation", rows)
    said("predict", small, rows, "-o", out, "--probability")
    wanted = svmarrow.load(small).predict_proba(X[150:])
    np.testing.assert_array_equal(np.loadtxt(out, delimiter=","), wanted)
    refusal = said("predict", small, rows, "--decision", "--probability", code=2)
    assert "exclude each other: give one of them" in " ".join(refusal.replace("│", " ").split())
    assert (
        json.loads(said("info", small, "--json"))["probabilities"]
        == info(small)["probabilities"]
        == "classes"
    )
