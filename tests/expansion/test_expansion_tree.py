"""Trees of local expansions: what they answer, hold, keep in files, and refuse."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmarrow
from svmarrow import SVC, SVR, OneClassSVM, compress
from svmarrow.models import ExpansionTree
from svmarrow.reduced_set.compression import _local_vectors
from svmarrow.reduced_set.paths import PathRequest

X, Y = load_digits(return_X_y=True)
TARGETS = X[:, 20] + 0.05 * X[:, 30] ** 2
SIZE = 40


@pytest.fixture(scope="module")
def machine():
    return SVC(C=10.0, gamma=0.001, multi_class="ovr").fit(X[:1200], Y[:1200])


@pytest.fixture(scope="module")
def tree(machine):
    return ExpansionTree.of(machine.expansion_, X[:1200], SIZE, random_state=0)


def test_a_sample_is_answered_by_its_leaf(tree):
    leaves, outputs = tree.apply(X), tree.decision_function(X)
    assert outputs.shape == (len(X), 10)
    assert len(np.unique(leaves)) == tree.n_leaves > 4
    for leaf in np.unique(leaves):
        local = tree.leaf_expansion(leaf)
        assert local.n_vectors <= tree.max_evaluations == SIZE
        assert np.array_equal(outputs[leaves == leaf], local.decision_function(X[leaves == leaf]))


def test_a_tree_has_the_bytes_of_its_leaves_alone(machine, tree):
    assert tree.n_vectors <= machine.expansion_.n_vectors
    assert tree.nbytes <= 1.2 * machine.expansion_.nbytes


def test_arrays_are_read_only(tree):
    for made in (tree, pickle.loads(pickle.dumps(tree))):
        for array in (made.vectors, *made.state.values()):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0


@pytest.mark.parametrize("form", ["float32", "csr", "bytes"])
def test_layouts_of_samples(machine, form):
    rows = {"float32": X.astype(np.float32), "csr": sp.csr_array(X), "bytes": X.astype(np.uint8)}[form]
    made = ExpansionTree.of(machine.expansion_, rows[:1200], SIZE, random_state=0)
    expected = ExpansionTree.of(machine.expansion_, X[:1200], SIZE, random_state=0)
    answers, others = made.decision_function(rows), expected.decision_function(X)
    assert np.mean(answers.argmax(axis=1) == others.argmax(axis=1)) > 0.99


@pytest.mark.parametrize("kind", ["classifier", "pipeline", "calibrated", "regressor", "detector"])
def test_models_of_all_kinds_hold_a_tree(kind, tmp_path):
    machine = SVC(C=10.0, gamma=0.001)
    models = {
        "classifier": lambda: machine.fit(X[:900], Y[:900]),
        "pipeline": lambda: make_pipeline(StandardScaler(), SVC(C=10.0)).fit(X[:900], Y[:900]),
        "calibrated": lambda: svmarrow.as_expansion(machine.fit(X[:900], Y[:900])).calibrated(
            X[900:1200], Y[900:1200]
        ),
        "regressor": lambda: SVR(C=10.0, gamma=0.001).fit(X[:900], TARGETS[:900]),
        "detector": lambda: OneClassSVM(nu=0.1, gamma=0.001).fit(X[:900]),
    }
    full = models[kind]()
    whole = svmarrow.as_expansion(full)
    rows = X[:900] if whole.preparation is None else whole.preparation.rows(X[:900])
    made = ExpansionTree.of(whole.expansion_, rows, SIZE, random_state=0)
    model = whole.with_expansion(made)
    answers, expected = model.predict(X), full.predict(X)
    if kind == "regressor":
        assert np.corrcoef(answers, expected)[0, 1] > 0.95
    else:
        assert np.mean(answers == expected) > 0.93
    model.save(tmp_path / "model")
    for other in (svmarrow.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), clone(model)):
        assert np.array_equal(other.predict(X), answers)
        assert other.expansion_ == made
    if kind == "calibrated":
        assert np.array_equal(svmarrow.load(tmp_path / "model").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "use",
    [
        lambda model: compress(model, n_vectors=10),
        lambda model: compress(model, X, Y),
        lambda model: svmarrow.compression_path(model),
        lambda model: svmarrow.quantize(model),
        lambda model: svmarrow.inspection.shapley_values(model, X[:5], X[:20]),
        lambda model: svmarrow.io.save_libsvm_model(model, "never-written"),
        lambda model: svmarrow.PerceptronTreeClassifier.from_expansion(model, X),
        lambda model: model.expansion_.coefficients,
        lambda model: model.expansion_.replaced(gamma=1.0),
    ],
)
def test_what_needs_one_expansion_refuses_a_tree(machine, tree, use):
    model = svmarrow.as_expansion(machine).with_expansion(tree)
    with pytest.raises(TypeError, match="a tree of local expansions has no"):
        use(model)


def test_compress_takes_a_number_of_kernel_values(machine):
    small = compress(machine, X[1200:], Y[1200:], max_evaluations=SIZE, random_state=0)
    assert small.loss_bound_.n_samples > 200
    expansion = small.expansion_
    assert (
        expansion.max_evaluations if isinstance(expansion, ExpansionTree) else expansion.n_vectors
    ) <= SIZE
    with pytest.raises(ValueError, match="max_evaluations needs samples"):
        compress(machine, max_evaluations=SIZE)
    with pytest.raises(ValueError, match="one goal"):
        compress(machine, X, Y, max_evaluations=SIZE, n_vectors=10)
    with pytest.raises(ValueError, match="'auto' with max_evaluations"):
        compress(machine, X, Y, max_evaluations=SIZE, method="backfit")
    with pytest.raises(ValueError, match="dtype='int8'"):
        compress(machine, X, Y, max_evaluations=SIZE, dtype="int8")


def test_outputs_of_a_regressor_count_alike_whatever_their_units():
    targets = np.column_stack([TARGETS, 1e6 * X[:, 34]])
    answers = []
    for units in (np.array([1.0, 1.0]), np.array([1.0, 1e-6])):
        full = svmarrow.RLSRegressor(1e-2, gamma=0.001).fit(X[:900], targets[:900] * units)
        request = PathRequest(svmarrow.as_expansion(full), SIZE, X[900:], random_state=0)
        model = _local_vectors(request, None).model(SIZE)
        assert isinstance(model.expansion_, ExpansionTree)
        answers.append(model.predict(X) / units)
    np.testing.assert_allclose(
        answers[0] / answers[1].std(axis=0), answers[1] / answers[1].std(axis=0), atol=1e-3
    )


def test_damaged_states_are_refused(tree):
    for name, value in (
        ("children", tree.state["children"] + np.uint64(10**6)),
        ("members", tree.state["members"] + np.uint64(10**6)),
        ("weights", tree.state["weights"][:-1]),
        ("directions", tree.state["directions"] * np.nan),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            ExpansionTree({**tree.state, name: value}, *tree.kernel_spec)


def test_pairs_of_classes_over_a_tree_or_a_sum_have_files_facts_and_cards(tmp_path):
    pairs = svmarrow.as_expansion(SVC(C=10.0, gamma=0.001).fit(X[:900], Y[:900]))
    tree = pairs.with_expansion(ExpansionTree.of(pairs.expansion_, X[:900], SIZE, random_state=0))
    widths = svmarrow.CodedClassifier(svmarrow.KMPClassifier(20, gamma=[0.001, 0.01]), code="ovo")
    for model in (tree, widths.fit(X[:400], Y[:400]).as_expansion()):
        svmarrow.save(model, tmp_path / "model.safetensors")
        loaded = svmarrow.load(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert svmarrow.io.info(tmp_path / "model.safetensors")["n_vectors"] == model.expansion_.n_vectors
        assert "size of a model file" in svmarrow.io.model_card(model, X[900:], Y[900:])
