"""Perceptron trees: the program of a selection against SciPy, the parts of a tree, trees of other models."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from helpers import reference
from svmarrow import SVC, KernelExpansion, PerceptronTreeClassifier, _core
from svmarrow.models import ExpansionClassifier
from svmarrow.online import KernelPerceptron
from svmarrow.online.tree import SPLITS


@pytest.mark.parametrize("most", [1.0, 3.5, 12.0, 40.0])
@pytest.mark.parametrize("rank", [4, 30])
@pytest.mark.parametrize("seed", range(3))
def test_the_relaxed_selection_is_the_best(most, rank, seed):
    """Feasible, near a lower bound of the optimum, and no worse than SciPy's answer."""
    rng = np.random.default_rng(seed)
    m = 20
    G = rng.normal(size=(rank, m)) + 0.3
    Q = G.T @ G
    w = Q.sum(axis=1)
    p = _core.box_budget_program(Q, w, most, 1e-9)
    assert p.min() >= 0.0
    assert p.max() <= 1.0
    assert p.sum() <= most * (1 + 1e-12)

    def objective(p):
        return 0.5 * p @ Q @ p - w @ p

    def lower_bound(p):
        """The objective is convex, so above its tangent at p; the least value of that fills the steepest."""
        slope = Q @ p - w
        room = np.clip(most - np.arange(m), 0.0, 1.0)
        return objective(p) + np.minimum(np.sort(slope), 0.0) @ room - slope @ p

    gap = objective(p) - lower_bound(p)
    assert -1e-12 * np.abs(w).max() <= gap <= 1e-8 * np.abs(w).max()

    peer = minimize(
        objective,
        np.full(m, min(1.0, most / m)),
        jac=lambda p: Q @ p - w,
        bounds=[(0, 1)] * m,
        constraints={"type": "ineq", "fun": lambda p: most - p.sum(), "jac": lambda _: -np.ones(m)},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 2000},
    ).x
    # It may leave the constraints by its own tolerance: brought back, it is a point among others.
    peer = np.clip(peer, 0.0, 1.0)
    peer *= min(1.0, most / peer.sum())
    tolerance = 1e-8 * np.abs(w).max()
    assert objective(p) <= objective(peer) + tolerance
    assert lower_bound(peer) <= objective(p) + tolerance


def stream(datasets, which):
    X, y = datasets[which]
    order = np.random.default_rng(1).permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize("which", ["moons", "digits"])
@pytest.mark.parametrize("split", SPLITS)
def test_an_answer_is_that_of_its_leaf_within_the_budget(split, which, datasets):
    X, y = stream(datasets, which)
    tree = PerceptronTreeClassifier(
        budget=12, split=split, gamma=0.5, sample_size=50, n_draws=20, random_state=0
    ).fit(X, y)
    assert tree.n_leaves_ > 3
    leaves, outputs = tree.apply(X), tree._outputs(X)
    for leaf in np.unique(leaves):
        f = tree.leaf_expansion(int(leaf))
        rows = leaves == leaf
        assert f.n_vectors <= 12
        expected = reference.decision(f.kernel_spec, X[rows], f.vectors, f.coefficients, f.intercepts)
        assert outputs[rows] == pytest.approx(expected, abs=1e-9)
    own = np.array([tree.leaf_expansion(int(leaf)).n_vectors for leaf in leaves])
    on_path = tree.decision_depth(X) if split.split("-")[0] in ("bal", "ent") else 0
    assert np.array_equal(tree.kernel_values(X), own + on_path)
    assert tree.cumulative_error_ < 0.5 * (1 - 1 / len(tree.classes_))


@pytest.mark.parametrize("form", ["float64", "float32", "uint8", "csr"])
@pytest.mark.parametrize("prediction", ["last", "averaged"])
def test_an_answer_depends_on_its_sample_alone(form, prediction, datasets):
    """A leaf answers the samples of a batch together, in tasks of several hundred."""
    X, y = datasets["digits"]
    X = {"csr": sp.csr_array}.get(form, lambda X: X.astype(form))(np.round(X))
    tree = PerceptronTreeClassifier(
        budget=30, gamma=1e-3, kernel="rbf", prediction=prediction, random_state=0, n_jobs=1
    ).fit(X, y)
    assert tree.n_leaves_ > 5
    X = X[np.random.default_rng(0).permutation(np.arange(3 * X.shape[0]) % X.shape[0])]
    together = tree.decision_function(X)
    for n_jobs in (2, 3):
        assert np.array_equal(tree.set_params(n_jobs=n_jobs).decision_function(X), together)
    assert np.array_equal(
        np.vstack([tree.decision_function(X[i : i + 1]) for i in range(200)]), together[:200]
    )
    fresh = pickle.loads(pickle.dumps(tree))
    assert np.array_equal(fresh.decision_function(X[:100]), together[:100])
    assert np.array_equal(fresh.decision_function(X), together)
    leaves = tree.apply(X)
    for leaf in np.unique(leaves):
        rows = X[np.flatnonzero(leaves == leaf)]
        assert tree.leaf_expansion(leaf).decision_function(rows) == pytest.approx(
            together[leaves == leaf], rel=1e-4, abs=1e-4 * np.abs(together).max()
        )


@pytest.mark.parametrize("split", ["wpq", "zpq", "bal-opts", "ent-inds"])
@pytest.mark.parametrize(
    ("kernel", "gamma", "columns", "classes"),
    [("rbf", 1e6, 1, 2), ("rbf", 1e-8, 1, 2), ("rbf", 1.0, 3, 200), ("chi2", 0.5, 4, 3), ("poly", 0.1, 4, 5)],
)
def test_answers_have_the_bits_of_the_leafs_expansion(kernel, gamma, columns, classes, split):
    X = np.random.default_rng(0).random((1500, columns))
    y = np.floor(X.sum(axis=1) * 7 * classes).astype(int) % classes
    tree = PerceptronTreeClassifier(
        budget=25, kernel=kernel, gamma=gamma, split=split, n_draws=5, random_state=0
    ).fit(X, y)
    outputs, leaves = tree.decision_function(X), tree.apply(X)
    for leaf in np.unique(leaves):
        expected = tree.leaf_expansion(int(leaf)).decision_function(X[leaves == leaf])
        assert np.array_equal(outputs[leaves == leaf].reshape(expected.shape), expected)


def test_vectors_are_stored_once(datasets):
    X, y = stream(datasets, "moons")
    tree = PerceptronTreeClassifier(budget=10, gamma=0.5, random_state=0).fit(np.r_[X, X], np.r_[y, y])
    rows = tree._state["rows"]
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert tree.n_vectors_ <= len(rows) <= len(X)


def naive_tree(X, y, budget, gamma):
    """Rows by algorithm 2 until the first split; the vectors, their signs, the row that overflows."""
    rows, signs = [], []
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        k = reference.kernel(("rbf", gamma, 0.0, 3), X[rows], x[None])[:, 0] if rows else np.zeros(0)
        if label * (np.array(signs) @ k if rows else 0.0) <= 0:
            rows.append(t)
            signs.append(label)
        if len(rows) > budget:
            return rows, np.array(signs), t
    raise AssertionError("the budget was never spent")


@pytest.mark.parametrize("split", ["wpq", "rndw-opts", "bal-opts", "ent-opts", "zpq"])
def test_the_first_split_halves_the_rows_and_keeps_the_answers(split, datasets):
    X, y = stream(datasets, "moons")
    y = np.where(y == "right", 1.0, -1.0)
    budget, gamma = 15, 0.5
    rows, signs, t = naive_tree(X, y, budget, gamma)
    tree = PerceptronTreeClassifier(budget=budget, gamma=gamma, split=split, random_state=0, sample_size=600)
    tree.partial_fit(X[: t + 1], y[: t + 1], classes=[-1.0, 1.0])
    assert tree.mistakes_ == len(rows)
    assert tree.n_leaves_ == 2
    leaves = tree.apply(X[: t + 1])
    assert abs((leaves == 1).sum() - (leaves == 2).sum()) <= 1
    K = reference.kernel(("rbf", gamma, 0.0, 3), X[: t + 1], X[rows])
    before = K @ signs
    kept = [tree.leaf_expansion(leaf) for leaf in (1, 2)]
    vectors = {tuple(X[row]): sign for row, sign in zip(rows, signs, strict=True)}
    for f in kept:
        assert f.n_vectors <= budget // 2
        assert all(vectors[tuple(z)] == c for z, c in zip(f.vectors, f.coefficients[:, 0], strict=True))
    cost = ((tree.decision_function(X[: t + 1]) - before) ** 2).sum()
    # Selections without an optimiser, on the same partition, at the same size.
    rng = np.random.default_rng(0)
    others = []
    for _ in range(200):
        guess = np.zeros(t + 1)
        for leaf in (1, 2):
            some = rng.choice(len(rows), kept[leaf - 1].n_vectors, replace=False)
            guess[leaves == leaf] = K[leaves == leaf][:, some] @ signs[some]
        others.append(((guess - before) ** 2).sum())
    assert cost < np.quantile(others, 0.02)


def test_child_budget_is_at_most_the_budget(datasets):
    X, y = stream(datasets, "moons")
    with pytest.raises(ValueError, match=r"child_budget=11 .* between 1 and 10"):
        PerceptronTreeClassifier(budget=10, child_budget=11).fit(X, y)
    full = PerceptronTreeClassifier(budget=10, child_budget=10, gamma=0.5, random_state=0).fit(X, y)
    assert full.kernel_values(X).max() <= 10


@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
@pytest.mark.parametrize("which", ["moons", "digits", "iris"])
def test_a_tree_of_an_svm(which, form, datasets):
    X, y = stream(datasets, which)
    X = sp.csr_array(X) if form == "csr" else X.astype(form)
    svc = SVC(C=10.0, multi_class="ovr" if which == "digits" else "ovo").fit(X, y)
    budget = svc.expansion_.n_vectors // 4
    tree = PerceptronTreeClassifier.from_expansion(svc, X, budget=budget, random_state=0)
    assert tree.kernel_values(X).max() <= budget
    assert (tree.predict(X) == svc.predict(X)).mean() > 0.95
    assert pickle.loads(pickle.dumps(tree)).predict(X).tolist() == tree.predict(X).tolist()
    if which == "iris":
        with pytest.raises(ValueError, match="one-vs-one"):
            tree.partial_fit(X, y)
    else:
        assert tree.partial_fit(X, y).n_seen_ == len(y)
    whole = PerceptronTreeClassifier.from_expansion(svc, X, budget=10_000, refit=False)
    assert whole.n_leaves_ == 1
    assert whole.predict(X).tolist() == svc.predict(X).tolist()


def test_the_default_hyperplane_is_that_of_partial_least_squares(datasets):
    X, y = stream(datasets, "digits")
    svc = SVC(C=10.0, multi_class="ovr").fit(X, y)
    tree = PerceptronTreeClassifier.from_expansion(svc, X, budget=60, sample_size=len(X), random_state=0)
    outputs = svc.decision_function(X)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    expected = np.linalg.svd(unit.T @ (outputs - outputs.mean(axis=0)))[0][:, 0]
    found = tree._state["directions"][0]
    assert abs(found @ expected) >= 1.0 - 1e-3
    # The covariance along it is the largest singular value.
    covariance = np.linalg.norm((unit.T @ (outputs - outputs.mean(axis=0))).T @ found)
    assert covariance >= 0.999 * np.linalg.norm((unit.T @ (outputs - outputs.mean(axis=0))).T @ expected)


def test_rows_of_neighboring_leaves_help_a_leaf_of_few_rows(datasets):
    X, y = stream(datasets, "digits")
    X, other = X[::2], X[1::2]
    svc = SVC(C=10.0, multi_class="ovr").fit(X, y[::2])
    tree = PerceptronTreeClassifier.from_expansion(svc, X, budget=40, random_state=0)
    leaves, leaves_of_other = tree.apply(X), tree.apply(other)
    outputs, expected = svc.decision_function(X), svc.decision_function(other)
    ours = theirs = 0.0
    for leaf in np.unique(leaves_of_other):
        local = tree.leaf_expansion(leaf)
        own, new = leaves == leaf, leaves_of_other == leaf
        ours += np.sum((local.decision_function(other[new]) - expected[new]) ** 2)
        # The same vectors, fitted to the rows that reach the leaf alone.
        values = np.exp(-svc.expansion_.gamma * cdist(X[own], local.vectors, "sqeuclidean"))
        alone = np.linalg.lstsq(values, outputs[own] - local.intercepts, rcond=1e-6)[0]
        values = np.exp(-svc.expansion_.gamma * cdist(other[new], local.vectors, "sqeuclidean"))
        theirs += np.sum((values @ alone + local.intercepts - expected[new]) ** 2)
    assert ours < 0.8 * theirs


def test_expansions_of_many_vectors():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(16_400, 2))
    expansion = KernelExpansion(vectors, rng.normal(size=16_400) / 100, 0.0, "rbf", gamma=1.0)
    model = ExpansionClassifier(expansion, [0, 1], "binary")
    X = rng.normal(size=(500, 2))
    tree = PerceptronTreeClassifier.from_expansion(model, X, budget=60, random_state=0)
    assert (tree.predict(X) == model.predict(X)).mean() > 0.95
    with pytest.raises(ValueError, match="at most 16384 vectors for this split"):
        PerceptronTreeClassifier.from_expansion(model, X, split="wpq")


def test_models_that_cannot_become_trees(datasets):
    X, y = stream(datasets, "moons")
    with pytest.raises(TypeError, match="without labels"):
        PerceptronTreeClassifier.from_expansion(KernelExpansion(X, np.ones(len(X)), 0.0), X)
    svc = SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="precomputed"):
        PerceptronTreeClassifier.from_expansion(svc, X @ X.T)
    with pytest.raises(ValueError, match="split='best'"):
        PerceptronTreeClassifier.from_expansion(SVC().fit(X, y), X, split="best")
    with pytest.raises(ValueError, match="is not allowed"):
        PerceptronTreeClassifier().fit(X, y).leaf_expansion(10_000)


def test_a_tree_of_one_leaf_is_a_stoptron(datasets):
    X, y = stream(datasets, "moons")
    tree = PerceptronTreeClassifier(budget=20, max_leaves=1, gamma=0.5, random_state=0).fit(X, y)
    stoptron = KernelPerceptron(policy="stop", budget=20, gamma=0.5).fit(X, y)
    assert tree.mistake_indices_.tolist() == stoptron.mistake_indices_.tolist()
    assert tree.leaf_expansion(0) == stoptron.expansion_
    assert PerceptronTreeClassifier(budget=20, max_leaves=3, gamma=0.5).fit(X, y).n_leaves_ == 3


@pytest.mark.parametrize(("split", "max_leaves"), [("wpq", None), ("pls-rnds", 6), ("zpq", None)])
def test_threads_and_batches_do_not_change_a_tree(split, max_leaves):
    X, y = clusters(4000, 150)
    settings = {"budget": 30, "split": split, "max_leaves": max_leaves, "sample_size": 60, "random_state": 0}
    trees = [
        PerceptronTreeClassifier(gamma=0.02, n_jobs=n_jobs, **settings).fit(X, y) for n_jobs in (1, 2, 3, 8)
    ]
    in_batches = PerceptronTreeClassifier(gamma=0.02, n_jobs=3, **settings)
    for batch in np.split(np.arange(4000), [2900, 3000]):
        in_batches.partial_fit(X[batch], y[batch], classes=np.unique(y))
    assert trees[0].n_leaves_ > 5
    for tree in [*trees[1:], in_batches]:
        assert_same(tree._state, trees[0]._state)
        assert (tree.mistakes_, tree.n_leaves_) == (trees[0].mistakes_, trees[0].n_leaves_)
    for tree in trees[1:]:
        np.testing.assert_array_equal(tree.mistake_indices_, trees[0].mistake_indices_)


def test_signs_of_zeros_do_not_depend_on_the_threads():
    """Equal rows, some with -0, are stored once: the first of them is another one on several threads."""
    X = np.round(np.random.default_rng(0).normal(size=(15_000, 3))).astype(np.float32)
    y = np.abs(np.floor(2 * X[:, 0] + (X[:, 2] > 0))) % 20
    settings = {"budget": 150, "child_budget": 75, "gamma": 0.01, "random_state": 2}
    trees = [PerceptronTreeClassifier(n_jobs=n_jobs, **settings).fit(X, y) for n_jobs in (1, 2)]
    rows = [tree._state["rows"].tobytes() for tree in trees]
    assert rows[0] == rows[1]


def clusters(n, features):
    """Returns overlapping clusters of three classes in single precision."""
    rng = np.random.default_rng(3)
    cluster = rng.integers(18, size=n)
    X = 0.5 * rng.normal(size=(18, features))[cluster] + rng.normal(size=(n, features))
    return X.astype(np.float32), cluster % 3


def assert_same(state, expected):
    """Compares the arrays of trees to the last bit."""
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, tuple):
            assert all(np.array_equal(a, b) for a, b in zip(state[name], value, strict=True)), name
        else:
            np.testing.assert_array_equal(state[name], value, err_msg=name)
