"""Trees of local expansions outside of svmarrow: ONNX, C and compiled models say what the tree says."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmarrow
from helpers.exports import KERNELS
from helpers.programs import c_program, needs_gcc
from svmarrow import SVC, SVR, OneClassSVM, RLSClassifier
from svmarrow.export import to_c, to_onnx
from svmarrow.export.common import tree_tables
from svmarrow.models import ExpansionTree

DIGITS, Y = load_digits(return_X_y=True)
X = DIGITS / 16.0
DTYPES = ["float32", "float64"]
#: Reads rows, writes the prediction and the outputs.
PROGRAM = """#include <stdio.h>
#include "model.h"
int main(void) {
    static NUMBER x[P_FEATURES];
    NUMBER out[P_OUTPUTS];
    int j;
    if (!p_self_test()) {
        return 3;
    }
    for (;;) {
        for (j = 0; j < P_FEATURES; ++j) {
            double value;
            if (scanf("%lf", &value) != 1) {
                return 0;
            }
            x[j] = (NUMBER)value;
        }
        p_outputs(x, out);
        printf("%.17g", (double)p_predict(x));
        for (j = 0; j < P_OUTPUTS; ++j) {
            printf(" %.17g", (double)out[j]);
        }
        printf("\\n");
    }
}
"""


def as_tree(machine, size=30, rows=X[:1200]):
    whole = svmarrow.as_expansion(machine)
    if whole.preparation is not None:
        rows = whole.preparation.rows(rows)
    return whole.with_expansion(ExpansionTree.of(whole.expansion_, rows, size, random_state=0))


MACHINES = {
    **{
        kernel: lambda kernel=kernel: RLSClassifier(1e-2, kernel=kernel, **KERNELS[kernel])
        for kernel in KERNELS
        if kernel != "sigmoid"
    },
    # Is not positive definite, which least squares need.
    "sigmoid": lambda: SVC(kernel="sigmoid", gamma=0.01, coef0=-0.2),
    "pairs": lambda: SVC(C=10.0, gamma=0.05),
    "pipeline": lambda: make_pipeline(StandardScaler(), SVC(C=10.0)),
    "regressor": lambda: SVR(C=10.0, gamma=0.05),
    "detector": lambda: OneClassSVM(nu=0.1, gamma=0.05),
}


@pytest.fixture(scope="module", params=MACHINES)
def model(request):
    # In single precision, so that all programs see the same samples.
    rows = X[:1200].astype(np.float32).astype(np.float64)
    model = as_tree(MACHINES[request.param]().fit(rows, Y[:1200]), rows=rows)
    assert model.expansion_.n_leaves > 4
    return model


ROWS = X.astype(np.float32).astype(np.float64)


def compare(model, predicted, outputs, dtype):
    """Outputs of a program, and its predictions, against the model's."""
    prepared = ROWS if model.preparation is None else model.preparation.rows(ROWS)
    expected = model.expansion_.decision_function(prepared)
    off = np.abs(outputs - expected).max(axis=1) / np.abs(expected).max()
    limit = 1e-10 if dtype == "float64" else 1e-3
    # In single precision a sample may be so close to a hyperplane that another leaf answers it.
    assert np.mean(off > limit) <= (0.0 if dtype == "float64" else 0.002)
    labels = model.predict(ROWS)
    if labels.dtype.kind == "f":
        assert np.mean(np.abs(predicted - labels) > 10.0 * limit * np.abs(labels).max()) <= 0.002
    else:
        assert np.mean(predicted != labels) <= (0.0 if dtype == "float64" else 0.003)


@pytest.mark.parametrize("dtype", DTYPES)
def test_onnx(model, dtype):
    onnxruntime = pytest.importorskip("onnxruntime")
    reference = pytest.importorskip("onnx.reference").ReferenceEvaluator
    made = to_onnx(model, dtype=dtype)
    rows = ROWS.astype(dtype)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    found = session.run(None, {"X": rows})
    assert len(session.run(None, {"X": rows[:0]})[0]) == 0
    outputs = reference(made).run(["F"], {"X": rows})[0]
    compare(model, found[0], outputs, dtype)
    scores = model.predict(ROWS) if len(found) == 1 else model.decision_function(ROWS)
    off = np.abs(found[-1] - scores) / np.abs(scores).max()
    # Votes are whole numbers off where a sign turns.
    assert np.mean(off > (1e-10 if dtype == "float64" else 1e-3)) <= (0.0 if dtype == "float64" else 0.003)


@needs_gcc
@pytest.mark.parametrize("dtype", DTYPES)
def test_c(model, dtype, tmp_path):
    made = to_c(model, prefix="p", dtype=dtype)
    (tmp_path / "model.h").write_text(made.text)
    program = PROGRAM.replace("NUMBER", "float" if dtype == "float32" else "double")
    rows = "\n".join(" ".join(f"{value:.17g}" for value in row) for row in ROWS)
    answers = np.array([line.split() for line in c_program(tmp_path, program, rows, cpp=True).splitlines()])
    predicted, outputs = answers[:, 0].astype(float), answers[:, 1:].astype(float)
    if hasattr(model, "classes_"):
        predicted = model.classes_[predicted.astype(int)]
    compare(model, predicted, outputs, dtype)
    # A prediction costs the vectors of one leaf, not all.
    tree = model.expansion_
    if tree.kernel == "rbf":
        assert made.exponentials == tree.max_evaluations < tree.n_vectors


def test_compiled(model):
    compiled = model.compiled()
    rows = ROWS[::29]
    assert [compiled.predict(row) for row in rows.tolist()] == model.predict(rows).tolist()
    if compiled.decision_function is not None:
        scores = np.array([compiled.decision_function(row) for row in rows])
        assert np.array_equal(scores, model.decision_function(rows))


def test_exports_of_samples_of_bytes_and_csr(tmp_path):
    pytest.importorskip("onnx")
    for rows in (DIGITS.astype(np.uint8), sp.csr_array(X), X.astype(np.float32)):
        machine = SVC(C=10.0, gamma=0.001 if rows.dtype == np.uint8 else 0.05).fit(rows[:900], Y[:900])
        tree = as_tree(machine, rows=rows[:900])
        assert to_c(tree).flash > 0
        (scores,) = [result for result in to_onnx(tree).graph.output if result.name == "scores"]
        assert scores.type.tensor_type.shape.dim[1].dim_value == 10


def test_a_tree_of_one_leaf_and_leaves_without_vectors(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    machine = SVR(C=10.0, gamma=0.05).fit(X[:300], Y[:300])
    one = as_tree(machine, size=machine.expansion_.n_vectors, rows=X[:300])
    assert one.expansion_.n_leaves == 1
    several = as_tree(machine, size=40, rows=X[:300])
    state = {name: np.copy(array) for name, array in several.expansion_.state.items()}
    leaf = int(np.flatnonzero(state["kinds"] == 0)[0])
    first, end = state["starts"][leaf : leaf + 2]
    for name in ("members", "weights"):
        state[name] = np.delete(state[name], slice(first, end), axis=0)
    state["starts"][leaf + 1 :] -= end - first
    hollow = several.with_expansion(ExpansionTree(state, *several.expansion_.kernel_spec))
    assert hollow.expansion_.leaf_expansion(leaf).n_vectors == 0
    assert (hollow.expansion_.apply(X) == leaf).any()
    for number, model in enumerate((one, hollow)):
        made = to_onnx(model, dtype="float64")
        session = onnxruntime.InferenceSession(made.SerializeToString())
        np.testing.assert_allclose(session.run(None, {"X": X})[0], model.predict(X), atol=1e-9)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "model.h").write_text(to_c(model, prefix="p", dtype="float64").text)
        rows = "\n".join(" ".join(f"{value:.17g}" for value in row) for row in X)
        lines = c_program(folder, PROGRAM.replace("NUMBER", "double"), rows).splitlines()
        np.testing.assert_allclose(
            [float(line.split()[0]) for line in lines], model.predict(X), rtol=1e-9, atol=1e-9
        )


def test_hyperplanes_pass_between_samples():
    model = as_tree(SVC(C=10.0, gamma=0.05).fit(X[:1200], Y[:1200]))
    tables, lengths = tree_tables(model.expansion_), np.linalg.norm(X[:1200], axis=1)
    for direction, threshold in zip(tables.directions, tables.thresholds, strict=True):
        assert np.abs(X[:1200] @ direction / lengths - threshold).min() > 1e-9


def test_what_is_refused():
    machine = SVC(C=10.0, gamma=0.05).fit(X[:300], Y[:300])
    with pytest.raises(ValueError, match=r"dtype='int8' is not allowed: it must be 'float32' or 'float64'"):
        to_c(as_tree(machine, rows=X[:300]), dtype="int8")
    state = as_tree(machine, rows=X[:300]).expansion_.state
    stored = {**state, "kinds": np.where(state["kinds"] == 1, 3, 0).astype(np.uint8)}
    stored["directions"] = state["directions"][:0]
    counts = np.where(state["kinds"] == 1, 1, 0)
    stored["members"] = np.arange(counts.sum())
    stored["weights"] = np.ones((counts.sum(), state["weights"].shape[1]))
    stored["starts"] = np.append(0, np.cumsum(counts))
    tree = ExpansionTree(stored, *machine.expansion_.kernel_spec)
    with pytest.raises(ValueError, match="hyperplanes alone"):
        to_onnx(svmarrow.as_expansion(machine).with_expansion(tree))
