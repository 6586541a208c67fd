"""skl2onnx converts pipelines with svmarrow's estimators, once it is told how."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

import svmarrow
from svmarrow.export import register_skl2onnx
from svmarrow.models import ExpansionTree

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")


@pytest.fixture(autouse=True, scope="module")
def registered():
    register_skl2onnx()


def answers(model, X):
    # 18 is the opset of the graphs that svmarrow writes.
    made = skl2onnx.to_onnx(model, X[:1], target_opset=18)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
@pytest.mark.parametrize("name", ["iris", "moons"])
def test_classifiers(datasets, name, kernel, dtype):
    X, y = datasets[name]
    X = X.astype(dtype)
    model = make_pipeline(StandardScaler(), svmarrow.SVC(kernel=kernel)).fit(X, y)
    labels, scores = answers(model, X)
    assert (labels != model.predict(X)).mean() < 0.01
    wanted = model.decision_function(X)
    assert scores.shape == wanted.shape
    assert np.abs(scores - wanted).max() < (1e-4 if dtype == np.float32 else 1e-10) * np.abs(wanted).max()


def test_a_step_that_only_skl2onnx_knows(diabetes):
    X, y = diabetes
    X = X.astype(np.float32)  # bins are single precision in skl2onnx whatever the rows are
    steps = KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), svmarrow.SVR(gamma=0.1)
    model = make_pipeline(*steps).fit(X, y)
    (numbers,) = answers(model, X)
    assert np.abs(numbers.ravel() - model.predict(X)).max() < 1e-4
    with pytest.raises(TypeError, match="KBinsDiscretizer"):
        svmarrow.export.to_onnx(model)


def test_trees(digits):
    X, y, Z, _ = digits
    whole = svmarrow.as_expansion(svmarrow.SVC(C=10.0, gamma=0.05).fit(X, y))
    tree = whole.with_expansion(ExpansionTree.of(whole.expansion_, X, 20, random_state=0))
    labels, scores = answers(tree, Z)
    np.testing.assert_array_equal(labels, tree.predict(Z))
    wanted = tree.decision_function(Z)
    assert np.abs(scores - wanted).max() < 1e-10 * np.abs(wanted).max()
    assert onnx_outputs(svmarrow.export.to_onnx(tree), Z[:0])[1].shape == (0, 10)


def onnx_outputs(made, X):
    session = onnxruntime.InferenceSession(made.SerializeToString())
    return session.run(None, {"X": X})
