"""Online learners in files: what comes back, what is refused, and work that is told to stop."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import svmarrow
from helpers.interruption import posix, stops_at_once
from helpers.model_files import change_description, description
from svmarrow import SVC, PerceptronTreeClassifier
from svmarrow.exceptions import FormatError
from svmarrow.online import KernelPerceptron

MODELS = [
    KernelPerceptron(gamma=0.5, prediction="averaged"),
    KernelPerceptron(gamma=0.5, prediction="voted"),
    KernelPerceptron(kernel="linear"),
    KernelPerceptron(kernel="poly", degree=2, coef0=1.0),
    KernelPerceptron(policy="tightest", gamma=0.5, budget=20),
    KernelPerceptron(policy="projectron++", gamma=0.5, eta=0.3),
    PerceptronTreeClassifier(gamma=0.5, budget=15, sample_size=40, split="zpq", random_state=0),
    PerceptronTreeClassifier(gamma=0.5, budget=15, sample_size=40, split="ent-opts", random_state=0),
    PerceptronTreeClassifier(gamma=0.5, budget=15, sample_size=40, prediction="averaged", random_state=0),
]


def rows(n=300, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, 2)) + 1.5 * np.c_[np.cos(2.1 * y), np.sin(2.1 * y)], y


def attributes(model):
    """What a fitted learner knows, but for what is packed when it is first asked."""
    kept = {key: value for key, value in vars(model).items() if key not in ("_state", "_ready", "expansion_")}
    return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in kept.items()}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}")
def test_a_learner_comes_back_as_it_was(model, tmp_path):
    X, y = rows()
    labels = np.array(["a", "b", "ü"])[y]
    model = type(model)(**model.get_params())
    model.fit(pd.DataFrame(X, columns=["left", "right"]), labels)
    svmarrow.save(model, tmp_path / "model")
    again = svmarrow.load(tmp_path / "model")
    assert type(again) is type(model)
    assert attributes(again) == attributes(model)
    frame = pd.DataFrame(X, columns=["left", "right"])
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    svmarrow.save(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    again.fit(X, y)  # it can begin anew


def test_a_random_state_comes_back_where_it_stood(tmp_path):
    X, y = rows()
    model = KernelPerceptron(policy="random", budget=9, random_state=np.random.RandomState(3)).fit(X, y)
    svmarrow.save(model, tmp_path / "model")
    loaded = svmarrow.load(tmp_path / "model")
    assert loaded.random_state.randint(2**31) == model.random_state.randint(2**31)


def test_passes_are_counted():
    X, y = rows()
    model = KernelPerceptron(policy="stop", budget=9, n_epochs=3).fit(X, y)
    assert (model.n_epochs_, model.n_seen_) == (3, 3 * len(y))
    assert model.partial_fit(X, y).n_epochs_ == 3
    assert (
        KernelPerceptron(policy="stop", budget=9, n_epochs=3)
        .partial_fit(X, y, classes=np.unique(y))
        .n_epochs_
        == 0
    )


def test_a_converted_tree_is_saved_loaded_and_trained_further(tmp_path):
    X, y = rows(600, 2)
    tree = PerceptronTreeClassifier.from_expansion(
        SVC(C=10, gamma=2.0).fit(X, y), X, budget=20, random_state=0
    )
    svmarrow.save(tree, tmp_path / "tree")
    again = svmarrow.load(tmp_path / "tree")
    np.testing.assert_array_equal(again.decision_function(X), tree.decision_function(X))
    more = rows(200, 2, 1)
    np.testing.assert_array_equal(
        again.partial_fit(*more).decision_function(X), tree.partial_fit(*more).decision_function(X)
    )
    pairs = SVC(C=10, gamma=2.0, multi_class="ovo").fit(*rows())
    tree = PerceptronTreeClassifier.from_expansion(pairs, X, budget=20, random_state=0)
    svmarrow.save(tree, tmp_path / "pairs")
    np.testing.assert_array_equal(svmarrow.load(tmp_path / "pairs").predict(X), tree.predict(X))


@pytest.fixture(params=["pool", "tree"])
def saved(request, tmp_path):
    pool = KernelPerceptron(policy="oldest", gamma=0.5, budget=15)
    model = pool if request.param == "pool" else PerceptronTreeClassifier(gamma=0.5, budget=15)
    path = tmp_path / "model"
    svmarrow.save(model.fit(*rows()), path)
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 0}, "budget=0"),
        ({"exec": "rm"}, "exec"),
        ({"classes_": {"strings": ["a", "a", "b"]}}, "distinct"),
        ({"classes_": {"strings": ["a", "b"]}}, "."),
        ({"gamma_": -1.0}, "gamma"),
        ({"gamma_": "auto"}, "gamma_ is 'auto'"),
        ({"n_seen_": -1}, "."),
        ({"mistakes_": "few"}, "mistakes_ is 'few'"),
        ({"n_epochs_": True}, "n_epochs_ is True"),
        ({"state_": {"dict": []}}, "."),
        ({"state_/dict": [["rows", {"array": "mistake_indices_"}]]}, "."),
        ({"n_features_in_": 3}, "n_features_in_ is 3"),
        ({"feature_names_in_": {"strings": ["a"]}}, "1 names"),
        ({"schema": "svc/1"}, "."),
        ({"schema": "expansion/1"}, "."),
    ],
)
def test_what_contradicts_itself_is_refused(saved, changes, message):
    svmarrow.load(saved)
    change_description(saved, changes)
    with pytest.raises(FormatError, match=message):
        svmarrow.load(saved)


def test_an_expansion_that_is_not_the_state_s_is_refused(tmp_path):
    KernelPerceptron(policy="oldest", gamma=0.5, budget=15).fit(*rows()).save(tmp_path / "model")
    change_description(tmp_path / "model", {"kernel": "linear"})
    with pytest.raises(FormatError, match="differs from the state"):
        svmarrow.load(tmp_path / "model")


def test_schemas_of_files_do_not_mix(saved):
    names = ["kernel-perceptron/1", "perceptron-tree/1"]
    names.remove(description(saved)["schema"])
    change_description(saved, {"schema": names[0]})
    with pytest.raises(FormatError):
        svmarrow.load(saved)


def predicted(model, X):
    """Classes, or None if a damaged vector is too far away for kernel values."""
    try:
        return model.predict(X)
    except ValueError as error:
        if "must be scaled" not in str(error) and "scale the rows" not in str(error):
            raise
        return None


@pytest.mark.quick_every(3)
def test_damage_is_refused_or_harmless(saved, tmp_path):
    """A flipped bit may make another valid model, or one whose vectors are too far away to be used."""
    data, X = saved.read_bytes(), rows()[0]
    rng = np.random.default_rng(0)
    damaged = tmp_path / "damaged"
    for _ in range(600):
        copy = bytearray(data)
        copy[rng.integers(0, len(data))] ^= 1 << rng.integers(0, 8)
        damaged.write_bytes(copy)
        try:
            model = svmarrow.load(damaged)
        except FormatError:
            continue
        classes = predicted(model, X)
        assert classes is None or classes.shape == (300,)
        try:
            model.partial_fit(*rows(20))
        except ValueError:
            continue
    for end in range(0, len(data), 97):
        damaged.write_bytes(data[:end])
        with pytest.raises(FormatError):
            svmarrow.load(damaged)


# --- edges ---


@pytest.mark.parametrize("split", ["wpq", "zpq", "rndw-rnds", "rndw-inds", "bal-opts", "ent-inds"])
def test_a_budget_of_one(split):
    X, y = rows(400, 2)
    tree = PerceptronTreeClassifier(budget=1, split=split, gamma=0.5, sample_size=50, random_state=0).fit(
        X, y
    )
    path = tree.decision_depth(X) if split.startswith(("bal", "ent")) else 0
    assert tree.n_leaves_ > 1
    assert (tree.kernel_values(X) <= 1 + path).all()


def test_a_child_budget_above_the_budget_is_refused():
    X, y = rows()
    for C in (0, 21):
        with pytest.raises(ValueError, match="child_budget"):
            PerceptronTreeClassifier(budget=20, child_budget=C).fit(X, y)
    tree = PerceptronTreeClassifier(budget=20, child_budget=20, gamma=0.5, random_state=0).fit(X, y)
    assert tree.kernel_values(X).max() <= 20


def test_repeated_rows_are_one_vector():
    X, y = rows(60, 2)
    X, y = np.repeat(X, 20, axis=0), np.repeat(y, 20)
    order = np.random.default_rng(0).permutation(len(y))
    tree = PerceptronTreeClassifier(budget=10, gamma=0.5, random_state=0).fit(X[order], y[order])
    assert tree.n_vectors_ <= 60
    leaf = tree.leaf_expansion(int(tree.apply(X)[0]))
    assert len(np.unique(leaf.vectors, axis=0)) == leaf.n_vectors


def test_a_class_that_never_comes():
    X, y = rows()
    for model in (
        KernelPerceptron(policy="stop", budget=100, gamma=0.5),
        PerceptronTreeClassifier(gamma=0.5, random_state=0),
    ):
        model.partial_fit(X, y, classes=[0, 1, 2, 3])
        assert 3 not in model.predict(X)
        with pytest.raises(ValueError, match="label 4"):
            model.partial_fit(X[:1], [4])


# --- told to stop ---

WORK = {
    "pass": """
        y = rng.choice([-1, 1], 200_000)
        model = KernelPerceptron(gamma=1.0).partial_fit(X[:50], y[:50], classes=[-1, 1])
        work = lambda: model.partial_fit(X, y)
        after = lambda: model.n_seen_ == 50
        """,
    "tree": """
        y = rng.choice([-1, 1], 200_000)
        model = PerceptronTreeClassifier(gamma=1.0, split="bal-opts")
        model.partial_fit(X[:50], y[:50], classes=[-1, 1])
        work = lambda: model.partial_fit(X, y)
        after = lambda: model.n_seen_ == 50
        """,
}


@pytest.mark.quick_every(3)
@posix
@pytest.mark.parametrize("which", WORK)
def test_ctrl_c_stops_a_stream(which):
    kept = stops_at_once(f"""
        from svmarrow import PerceptronTreeClassifier
        from svmarrow.online import KernelPerceptron
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200_000, 5))
        {WORK[which]}""")
    assert kept
