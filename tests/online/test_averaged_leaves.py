"""Trees whose leaves answer by the average of their hypotheses, against averages taken one by one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import svmarrow
from helpers import reference
from svmarrow import SVC, PerceptronTreeClassifier, compress
from svmarrow._support.rows import rows_of
from svmarrow.exceptions import FormatError
from svmarrow.online import KernelPerceptron


def stream(datasets, which, n=None):
    X, y = datasets[which]
    order = np.random.default_rng(1).permutation(len(y))[:n]
    return X[order], y[order]


def naive_averages(tree, X, y):
    """Each leaf's coefficients after each of its rows, added up: vectors -> sum, and the rows, by node.

    A row belongs to the leaf that it was answered by, unless that was split by it or lost vectors: a leaf
    begins anew where its vectors are chosen.
    """
    sums, lived, held = {}, {}, {}
    classes = np.unique(y)
    for t in range(len(y)):
        at = int(tree.apply(X[t : t + 1])[0]) if t else 0
        tree.partial_fit(X[t : t + 1], y[t : t + 1], classes=classes)
        state = tree._state
        members = slice(state["starts"][at], state["starts"][at + 1])
        rows = state["members"][members]
        if state["kinds"][at] != 0 or len(rows) < held.get(at, 0):
            sums.pop(at, None), lived.pop(at, None)
            held[at] = len(rows)
            continue
        held[at] = len(rows)
        stored = rows_of(state["rows"])
        stored = stored.toarray() if sp.issparse(stored) else stored
        known = sums.setdefault(at, {})
        for row, weights in zip(rows, state["weights"][members], strict=True):
            key = stored[row].tobytes()
            known[key] = known.get(key, 0.0) + weights
        lived[at] = lived.get(at, 0) + 1
    return sums, lived


@pytest.mark.quick_every(3)
@pytest.mark.parametrize(
    ("which", "split", "kind"),
    [
        ("moons", "wpq", "dense"),
        ("moons", "zpq", "sparse"),
        ("digits", "ent-opts", "single"),
        ("digits", "wpq", "dense"),
    ],
)
def test_a_leaf_answers_by_the_mean_of_its_hypotheses(which, split, kind, datasets):
    X, y = stream(datasets, which, 600)
    X = {"dense": X, "single": X.astype(np.float32), "sparse": sp.csr_array(X)}[kind]
    made = {"budget": 12, "gamma": 0.5 if which == "moons" else 0.01, "split": split}
    tree = PerceptronTreeClassifier(**made, sample_size=40, prediction="averaged", random_state=0)
    sums, lived = naive_averages(tree, X, y)
    assert tree.n_leaves_ > 1
    compared = 0
    for leaf in np.flatnonzero(tree._state["kinds"] == 0):
        f = tree.leaf_expansion(int(leaf))
        if not lived.get(int(leaf)):
            continue
        vectors = f.vectors.toarray() if sp.issparse(f.vectors) else f.vectors
        expected = [sums[int(leaf)][z.tobytes()] / lived[int(leaf)] for z in vectors]
        np.testing.assert_allclose(f.coefficients, expected, rtol=0, atol=1e-12)
        compared += 1
    assert compared > 1
    dense = X.toarray() if sp.issparse(X) else X
    outputs, leaves = tree._outputs(X), tree.apply(X)
    for leaf in np.unique(leaves):
        f = tree.leaf_expansion(int(leaf))
        vectors = f.vectors.toarray() if sp.issparse(f.vectors) else f.vectors
        wanted = reference.decision(
            f.kernel_spec, dense[leaves == leaf], vectors, f.coefficients, f.intercepts
        )
        assert outputs[leaves == leaf] == pytest.approx(wanted, abs=1e-4 if kind == "single" else 1e-9)


def test_without_a_split_the_tree_is_the_averaged_perceptron(datasets):
    for which in ("moons", "digits"):
        X, y = stream(datasets, which)
        made = {"gamma": 0.1, "prediction": "averaged", "n_epochs": 2}
        tree = PerceptronTreeClassifier(budget=10_000, **made).fit(X, y)
        flat = KernelPerceptron(**made).fit(X, y)
        assert (tree.n_leaves_, tree.mistakes_) == (1, flat.mistakes_)
        # The tree adds to the vector of an equal row what the perceptron makes another vector.
        np.testing.assert_allclose(tree.decision_function(X), flat.decision_function(X), rtol=0, atol=1e-9)


def test_learning_does_not_depend_on_the_prediction(datasets):
    X, y = stream(datasets, "moons")
    made = {"budget": 15, "gamma": 0.5, "random_state": 0}
    last = PerceptronTreeClassifier(**made).fit(X, y)
    averaged = PerceptronTreeClassifier(**made, prediction="averaged").fit(X, y)
    assert last.n_leaves_ == averaged.n_leaves_ > 1
    assert np.array_equal(last.mistake_indices_, averaged.mistake_indices_)
    assert np.array_equal(last._state["weights"], averaged._state["weights"])
    assert np.array_equal(last.kernel_values(X), averaged.kernel_values(X))
    assert not np.array_equal(last.decision_function(X), averaged.decision_function(X))
    pieces = PerceptronTreeClassifier(**made, prediction="averaged")
    for part in np.array_split(np.arange(len(y)), 7):
        pieces = pickle.loads(pickle.dumps(pieces.partial_fit(X[part], y[part], classes=np.unique(y))))
    assert np.array_equal(pieces.decision_function(X), averaged.decision_function(X))
    for n_jobs in (1, 3):
        again = PerceptronTreeClassifier(**made, prediction="averaged", n_jobs=n_jobs).fit(X, y)
        assert np.array_equal(again.decision_function(X), averaged.decision_function(X))


def test_averages_err_less_on_noisy_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4))
    y = (X[:, 0] + X[:, 1] ** 2 > 1) ^ (rng.random(6000) < 0.2)
    truth = X[:, 0] + X[:, 1] ** 2 > 1
    made = {"budget": 40, "gamma": 0.2, "random_state": 0}
    error = {}
    for prediction in ("last", "averaged"):
        tree = PerceptronTreeClassifier(**made, prediction=prediction).fit(X[:4000], y[:4000])
        error[prediction] = (tree.predict(X[4000:]) != truth[4000:]).mean()
    assert error["averaged"] < 0.8 * error["last"]


def test_a_converted_tree_averages_what_it_learns(datasets, tmp_path):
    X, y = stream(datasets, "moons")
    svc = SVC(C=10, gamma=1.0).fit(X, y)
    tree = PerceptronTreeClassifier.from_expansion(svc, X, budget=15, random_state=0)
    before = tree.decision_function(X)
    tree.set_params(prediction="averaged").save(tmp_path / "converted")
    # No leaf has learnt from a row yet.
    assert np.array_equal(svmarrow.load(tmp_path / "converted").decision_function(X), before)
    tree.partial_fit(X[:40], y[:40])
    tree.save(tmp_path / "tree")
    again = svmarrow.load(tmp_path / "tree")
    assert again.prediction == "averaged"
    assert np.array_equal(again.decision_function(X), tree.decision_function(X))
    more = [model.partial_fit(X[40:90], y[40:90]).decision_function(X) for model in (again, tree)]
    assert np.array_equal(*more)


def test_a_leaf_of_averages_is_compressed(datasets):
    X, y = stream(datasets, "moons")
    tree = PerceptronTreeClassifier(budget=40, gamma=0.5, prediction="averaged", random_state=0).fit(X, y)
    leaf = int(np.bincount(tree.apply(X)).argmax())
    f = tree.leaf_expansion(leaf)
    short = compress(f, n_vectors=f.n_vectors // 2, method="backfit")
    rows = X[tree.apply(X) == leaf]
    assert short.n_vectors <= f.n_vectors // 2
    both = [one.decision_function(rows).ravel() for one in (short, f)]
    assert np.corrcoef(*both)[0, 1] > 0.98


@pytest.mark.parametrize(
    ("part", "value"),
    [("age", -1), ("age", 10**9), ("accumulator", np.nan), ("accumulator", np.inf)],
)
def test_counts_and_sums_that_no_stream_has_are_refused(part, value, datasets, tmp_path):
    X, y = stream(datasets, "moons")
    tree = PerceptronTreeClassifier(budget=20, gamma=0.5, prediction="averaged", random_state=0).fit(X, y)
    tree._state[part] = tree._state[part].copy()
    tree._state[part].flat[-1] = value
    tree.save(tmp_path / "tree")
    with pytest.raises(FormatError):
        svmarrow.load(tmp_path / "tree")
    del tree._state[part]
    tree.save(tmp_path / "half")
    with pytest.raises(FormatError, match="the state has the parts"):
        svmarrow.load(tmp_path / "half")


def test_prediction_is_last_or_averaged(datasets):
    with pytest.raises(ValueError, match="prediction"):
        PerceptronTreeClassifier(prediction="voted").fit(*stream(datasets, "moons"))
