"""Numbers at the ends of their types in models, files and targets: right answers or a refusal by name."""

from __future__ import annotations

import numpy as np
import pytest

import svmarrow
from svmarrow import SVC, SVRCV, KernelExpansion
from svmarrow.export import to_onnx
from svmarrow.models import ExpansionClassifier, ExpansionRegressor

Z = np.array([[1.0], [2.0]])


@pytest.mark.parametrize(
    ("decoding", "outputs", "classes"), [("binary", 1, [0, 1]), ("ovo", 3, [0, 1, 2]), ("ovr", 3, [0, 1, 2])]
)
def test_a_stored_classifier_whose_outputs_overflow_is_refused(decoding, outputs, classes, tmp_path):
    expansion = KernelExpansion(Z, np.full((2, outputs), 1.5e308), np.zeros(outputs), gamma=1.0)
    svmarrow.save(ExpansionClassifier(expansion, classes, decoding), tmp_path / "m")
    model = svmarrow.load(tmp_path / "m")
    for answer in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match=r"X=row 0 is not allowed: .*double precision"):
            answer(Z)


def test_a_stored_regressor_whose_outputs_overflow_is_refused(tmp_path):
    expansion = KernelExpansion(Z, np.full((2, 1), 1.5e308), np.zeros(1), gamma=1.0)
    svmarrow.save(ExpansionRegressor(expansion), tmp_path / "m")
    with pytest.raises(ValueError, match=r"X=row 0 is not allowed: .*double precision"):
        svmarrow.load(tmp_path / "m").predict(Z)
    half = KernelExpansion(Z, np.full((2, 1), 0.5e308), np.zeros(1), gamma=1.0)
    svmarrow.save(ExpansionRegressor(half), tmp_path / "m")
    assert np.isfinite(svmarrow.load(tmp_path / "m").predict(Z)).all()


def test_labels_of_64_bits_without_a_sign_reach_onnx(tmp_path):
    ort = pytest.importorskip("onnxruntime")
    rows = np.random.default_rng(0).standard_normal((60, 3)).astype(np.float32)
    labels = np.array([2**63 + 5, 3], dtype=np.uint64)[(rows[:, 0] > 0).astype(int)]
    model = SVC().fit(rows, labels)
    to_onnx(model, tmp_path / "m.onnx")
    session = ort.InferenceSession(tmp_path / "m.onnx")
    found = session.run(None, {session.get_inputs()[0].name: rows})[0]
    assert found.dtype == np.uint64
    np.testing.assert_array_equal(found, model.predict(rows))


@pytest.mark.filterwarnings("ignore")
def test_a_search_does_not_choose_by_scores_that_are_no_numbers():
    # R^2 of targets beyond 1e154 is NaN, as scikit-learn's is.
    rows = np.random.default_rng(0).standard_normal((60, 3))
    with pytest.raises(ValueError, match="no point of the grid could be scored"):
        SVRCV(Cs=[1e158, 1e160], gammas=[0.1]).fit(rows, rows[:, 0] * 1e160)
