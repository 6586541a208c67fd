"""Online learners against the papers' algorithms written out, and streams in pieces against one pass."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp

import svmarrow
from helpers import reference
from svmarrow import PerceptronTreeClassifier, compress
from svmarrow.online import KernelPerceptron

GAMMA = 0.5
ONLINE = [
    KernelPerceptron(gamma=GAMMA),
    KernelPerceptron(policy="stop", gamma=GAMMA, budget=20),
    KernelPerceptron(policy="oldest", gamma=GAMMA, budget=20),
    KernelPerceptron(policy="margin", gamma=GAMMA, budget=20),
    KernelPerceptron(policy="random", gamma=GAMMA, budget=20, random_state=3),
    KernelPerceptron(policy="tightest", gamma=GAMMA, budget=20),
    KernelPerceptron(policy="forgetron", gamma=GAMMA, budget=20),
    KernelPerceptron(policy="projectron", gamma=GAMMA, eta=0.4),
    KernelPerceptron(policy="projectron++", gamma=GAMMA, eta=0.4),
    PerceptronTreeClassifier(gamma=GAMMA, budget=15, sample_size=60, random_state=1),
    PerceptronTreeClassifier(gamma=GAMMA, budget=15, sample_size=60, split="zpq", random_state=1),
    PerceptronTreeClassifier(gamma=GAMMA, budget=15, sample_size=60, split="bal-opts", random_state=1),
    PerceptronTreeClassifier(gamma=GAMMA, budget=15, sample_size=60, split="ent-inds", random_state=1),
    PerceptronTreeClassifier(gamma=GAMMA, budget=15, sample_size=60, split="rndw-rnds", random_state=1),
    PerceptronTreeClassifier(gamma=GAMMA, budget=15, sample_size=60, prediction="averaged", random_state=1),
]
BUDGETED = [model for model in ONLINE if model.budget is not None]


def name(model):
    extra = [str(v) for k, v in model.get_params().items() if k in ("policy", "split") or v == "averaged"]
    return "-".join([type(model).__name__, *extra])


def fresh(model, **changes):
    return type(model)(**(model.get_params() | changes))


def shuffled(datasets, which):
    X, y = datasets[which]
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def same_state(a, b):
    def same(x, z):
        if isinstance(x, tuple):
            return all(same(p, q) for p, q in zip(x, z, strict=True))
        return np.array_equal(x, z)

    return a._state.keys() == b._state.keys() and all(same(a._state[k], b._state[k]) for k in a._state)


class Naive:
    """One loop for all policies, straight from the papers, on a Gram matrix in double precision."""

    def __init__(self, model, X, y):
        self.model = model
        self.K = reference.kernel(("rbf", GAMMA, 0.0, 3), X, X)
        self.classes = np.unique(y)
        self.labels = np.searchsorted(self.classes, y)
        k = len(self.classes)
        self.q = 1 if k == 2 else k
        self.rows: list[int] = []
        self.B: list[np.ndarray] = []
        self.mistakes: list[int] = []
        self.deviation = 0.0

    def scores(self, t):
        return sum((b * self.K[i, t] for i, b in zip(self.rows, self.B, strict=True)), np.zeros(self.q))

    def margin(self, scores, label):
        if self.q == 1:
            return scores[0] if label == 1 else -scores[0], None
        others = scores.copy()
        others[label] = -np.inf
        rival = int(np.argmax(others))
        return scores[label] - scores[rival], rival

    def step(self, label, rival):
        v = np.zeros(self.q)
        if self.q == 1:
            v[0] = 1.0 if label == 1 else -1.0
        else:
            v[label], v[rival] = 1.0, -1.0
        return v

    def without(self, j):
        """Margins at all vectors when vector j is gone."""
        B = [b if i != j else 0.0 * b for i, b in enumerate(self.B)]
        margins = []
        for i in self.rows:
            scores = sum((b * self.K[z, i] for z, b in zip(self.rows, B, strict=True)), np.zeros(self.q))
            margins.append(self.margin(scores, self.labels[i])[0])
        return np.array(margins)

    def run(self):
        policy = self.model.policy
        for t, label in enumerate(self.labels):
            scores = self.scores(t)
            margin, rival = self.margin(scores, label)
            mistake = not margin > 0
            if mistake:
                self.mistakes.append(t)
            if policy.startswith("projectron"):
                self.project(t, label, rival, margin, policy.endswith("++"))
                continue
            if not mistake:
                continue
            if policy == "unlimited" or len(self.rows) < self.model.budget:
                self.rows.append(t)
                self.B.append(self.step(label, rival))
                continue
            if policy == "stop":
                continue
            new = self.step(label, rival)
            if policy == "forgetron":
                at, new = self.forget(t, new)
            elif policy == "oldest":
                at = int(np.argmin(self.rows))
            elif policy == "margin":
                at = int(np.argmax([self.without(j)[j] for j in range(len(self.rows))]))
            else:
                ranks = [((self.without(j) <= 0).sum(), -self.without(j)[j]) for j in range(len(self.rows))]
                at = min(range(len(ranks)), key=lambda j: ranks[j])
            self.rows[at], self.B[at] = t, new
        return self

    def forget(self, t, new):
        at = int(np.argmin(self.rows))
        r, b = self.rows[at], self.B[at]
        scores = self.scores(r) + new * self.K[t, r]
        sigma = np.abs(b).max()
        v = b / sigma
        mu = float(v @ scores)

        def psi(phi):
            return (sigma * phi) ** 2 * (v @ v) + 2 * sigma * phi - 2 * sigma * phi * (mu * phi)

        phi = 0.0
        for width in (1.0, 1e-3, 1e-6):  # the largest that is allowed, to one more group of three digits
            near = np.minimum(phi + width * np.linspace(0.0, 1.0, 1001), 1.0)
            phi = near[psi(near) + self.deviation <= 15 / 32 * len(self.mistakes)].max()
        self.deviation += psi(phi)
        self.B = [phi * b for b in self.B]
        return at, phi * new

    def project(self, t, label, rival, margin, plus):
        k = self.K[self.rows, t]
        d = np.linalg.solve(self.K[np.ix_(self.rows, self.rows)], k) if self.rows else k
        delta = np.sqrt(max(0.0, self.K[t, t] - k @ d))
        eta, new = self.model.eta, self.step(label, rival if self.q > 1 else None)
        step = 1.0
        if margin > 0:
            if not plus or margin >= 1:
                return
            loss, length = 1 - margin, (new @ new) * (k @ d)
            if loss < delta / eta:
                return
            step = min(loss / length, 2 * (loss - delta / eta) / length, 1.0)
        elif delta > eta:
            self.rows.append(t)
            self.B.append(new)
            return
        self.B = [b + step * w * new for b, w in zip(self.B, d, strict=True)]


NAIVE = [m for m in ONLINE if not isinstance(m, PerceptronTreeClassifier) and m.policy != "random"]


@pytest.mark.parametrize("which", ["moons", "iris", "cancer"])
@pytest.mark.parametrize("model", NAIVE, ids=name)
def test_policies_are_those_of_the_papers(model, which, datasets):
    X, y = shuffled(datasets, which)
    X, y = X[:200], y[:200]
    naive = Naive(model, X, y).run()
    model = fresh(model).fit(X, y)
    assert model.mistake_indices_.tolist() == naive.mistakes
    assert model.mistakes_ == len(naive.mistakes)
    assert model.cumulative_error_ == pytest.approx(len(naive.mistakes) / len(y))
    assert np.array_equal(model.expansion_.vectors, X[naive.rows])
    tolerance = 1e-5 if model.policy == "forgetron" else 1e-8
    assert np.allclose(model.expansion_.coefficients, np.array(naive.B), atol=tolerance)


@pytest.mark.parametrize("which", ["moons", "iris"])
@pytest.mark.parametrize("model", ONLINE, ids=name)
@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
def test_pieces_are_one_pass_bit_for_bit(model, which, form, datasets, tmp_path):
    X, y = shuffled(datasets, which)
    X = sp.csr_array(np.where(X > 0.4, X, 0.0)) if form == "csr" else X.astype(form)
    whole = fresh(model).fit(X, y)
    pieces = fresh(model)
    for start, end in [(0, 1), (1, 2), (2, 40), (40, 41), (41, 117), (117, len(y))]:
        pieces.partial_fit(X[start:end], y[start:end], classes=np.unique(y) if start == 0 else None)
        if start % 2:
            pieces = pickle.loads(pickle.dumps(pieces))
        else:
            svmarrow.save(pieces, tmp_path / "stream")
            pieces = svmarrow.load(tmp_path / "stream")
    assert same_state(whole, pieces)
    assert (whole.mistakes_, whole.n_seen_) == (pieces.mistakes_, pieces.n_seen_)
    assert np.array_equal(whole.decision_function(X), pieces.decision_function(X))


@pytest.mark.parametrize("model", BUDGETED, ids=name)
@pytest.mark.parametrize("budget", [1, 2, 7])
def test_budgets_hold(model, budget, datasets):
    X, y = shuffled(datasets, "iris")
    model = fresh(model, budget=budget).fit(X, y)
    if isinstance(model, PerceptronTreeClassifier):
        leaves = np.unique(model.apply(X))
        assert all(model.leaf_expansion(int(leaf)).n_vectors <= budget for leaf in leaves)
    else:
        assert model.expansion_.n_vectors == budget
    with pytest.raises(ValueError, match="budget="):
        fresh(model, budget=0).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"policy": "oldest"}, "budget=None is not allowed: it must be an integer of at least 1"),
        ({"policy": "forgetron"}, "budget=None is not allowed"),
        ({"budget": 10}, "budget=10 is not allowed: it must be None for policy='unlimited'"),
        ({"policy": "projectron", "budget": 10}, "budget=10 is not allowed: it must be None"),
        ({"policy": "projectron++", "eta": 0.0}, "eta=0.0 is not allowed: it must be above 0"),
        ({"policy": "stop", "budget": 5, "prediction": "voted"}, "prediction='voted' is not allowed"),
        ({"policy": "newest", "budget": 5}, "policy='newest' is not allowed"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(parameters, message, datasets):
    X, y = datasets["iris"]
    model = KernelPerceptron(**parameters)
    for call in (
        lambda: model.fit(X, y),
        lambda: model.partial_fit(X, y, classes=[0, 1, 2]),
        lambda: model.estimate_memory(X),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()
    assert not hasattr(model, "expansion_")


@pytest.mark.parametrize("other", [m for m in NAIVE if m.policy != "unlimited"], ids=name)
def test_the_policy_of_a_stream_does_not_change_its_past(other, datasets):
    """A stream goes on under another policy as far as its state allows, or the change is refused."""
    X, y = shuffled(datasets, "moons")
    model = KernelPerceptron(gamma=GAMMA).fit(X[:100], y[:100])
    before = model.expansion_
    model.set_params(policy=other.policy, budget=None if other.budget is None else 500)
    try:
        model.partial_fit(X[100:], y[100:])
    except ValueError as error:
        assert re.search("policy|state|scores|matrix", str(error))  # noqa: PT017
        assert model.expansion_ is before
    else:
        assert model.n_seen_ == len(y)
        if other.budget is not None:
            assert model.expansion_.n_vectors <= 500


def test_a_budget_may_grow_but_not_shrink(datasets):
    X, y = shuffled(datasets, "moons")
    model = KernelPerceptron(policy="oldest", budget=5).fit(X, y)
    model.set_params(budget=9).partial_fit(X, y)
    assert model.expansion_.n_vectors == 9
    with pytest.raises(ValueError, match=r"budget=3 .* at least 9"):
        model.set_params(budget=3).partial_fit(X, y)


@pytest.mark.parametrize("which", ["moons", "iris"])
def test_averaged_and_voted_are_sums_over_all_hypotheses(which, datasets):
    X, y = shuffled(datasets, which)
    X, y = X[:150], y[:150]
    classes = np.unique(y)
    last = KernelPerceptron(gamma=GAMMA)
    total = np.zeros((len(y), 1 if classes.size == 2 else classes.size))
    votes = np.zeros((len(y), classes.size))
    for t in range(len(y)):
        last.partial_fit(X[t : t + 1], y[t : t + 1], classes=classes)
        scores = last.expansion_.decision_function(X)
        total += scores
        winner = (scores[:, 0] >= 0).astype(int) if classes.size == 2 else scores.argmax(axis=1)
        votes[np.arange(len(y)), winner] += 1
    averaged = KernelPerceptron(gamma=GAMMA, prediction="averaged").fit(X, y)
    assert averaged.expansion_.decision_function(X) == pytest.approx(total / len(y))
    voted = KernelPerceptron(gamma=GAMMA, prediction="voted").fit(X, y)
    shares = votes / len(y)
    expected = shares[:, 1] - shares[:, 0] if classes.size == 2 else shares
    assert voted.decision_function(X) == pytest.approx(expected)
    assert same_state(averaged, voted)
    with pytest.raises(TypeError, match="voted"):
        compress(voted, n_vectors=3)


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "laplacian", "chi2", "matern12", "matern52"])
@pytest.mark.parametrize(
    "model",
    [KernelPerceptron(), KernelPerceptron(policy="projectron", eta=0.5), PerceptronTreeClassifier(budget=10)],
    ids=name,
)
def test_kernels(model, kernel, datasets):
    X, y = shuffled(datasets, "iris")
    gamma = 2.0 if kernel.startswith("matern") else 0.3
    model = fresh(model, kernel=kernel, gamma=gamma, coef0=0.5, n_epochs=3).fit(X, y)
    sparse = fresh(model).fit(sp.csr_array(X), y)
    if kernel != "sigmoid":
        assert model.score(X, y) > 0.5
    if kernel != "sigmoid" and not isinstance(model, PerceptronTreeClassifier):
        assert model.mistakes_ == sparse.mistakes_
    if isinstance(model, KernelPerceptron):
        spec = model.expansion_.kernel_spec
        expected = reference.decision(spec, X, model.expansion_.vectors, model.expansion_.coefficients, 0.0)
        assert model.decision_function(X) == pytest.approx(expected, abs=1e-6)


def test_layouts_may_change_along_a_stream(datasets):
    X, y = shuffled(datasets, "iris")
    whole = KernelPerceptron(gamma=GAMMA).fit(X, y)
    mixed = KernelPerceptron(gamma=GAMMA).partial_fit(X[:50], y[:50], classes=np.unique(y))
    mixed.partial_fit(sp.csr_array(X[50:100]), y[50:100]).partial_fit(X[100:], y[100:])
    assert same_state(whole, mixed)
    assert whole.predict(sp.csr_array(X)).tolist() == whole.predict(X).tolist()


def test_labels_outside_the_classes_are_refused(datasets):
    X, y = shuffled(datasets, "iris")
    for model in (KernelPerceptron(), PerceptronTreeClassifier()):
        with pytest.raises(ValueError, match="classes=None"):
            model.partial_fit(X, y)
        with pytest.raises(ValueError, match="label 2"):
            model.partial_fit(X, y, classes=[0, 1])
        assert not hasattr(model, "_state")
        model.partial_fit(X[:60], y[:60], classes=[0, 1, 2])
        before = pickle.dumps(model._state)
        with pytest.raises(ValueError, match="label 7"):
            model.partial_fit(X[:2], [0, 7])
        with pytest.raises(ValueError, match="classes="):
            model.partial_fit(X[:2], [0, 1], classes=[0, 1])
        assert pickle.dumps(model._state) == before
        assert model.partial_fit(X[60:], y[60:]).score(X, y) > 0.5


@pytest.mark.parametrize("model", ONLINE, ids=name)
def test_streams_without_variety(model):
    X = np.ones((40, 3))
    one_class = fresh(model).partial_fit(X, np.ones(40), classes=[0, 1])
    assert one_class.mistakes_ == 1
    assert one_class.predict(X).tolist() == [1] * 40
    labels = np.arange(40) % 2
    constant = fresh(model).fit(X, labels)
    assert constant.n_seen_ == 40
    assert set(constant.predict(X).tolist()) <= {0, 1}
    zeros = fresh(model).fit(0.0 * X, labels)
    assert np.isfinite(zeros.decision_function(X)).all()


@pytest.mark.parametrize("model", [KernelPerceptron(), PerceptronTreeClassifier()], ids=name)
def test_parameters_are_refused(model, datasets):
    X, y = datasets["iris"]
    for changes, words in [
        ({"kernel": "precomputed"}, "kernel='precomputed'"),
        ({"gamma": -1.0}, "gamma=-1.0"),
        ({"n_epochs": 0}, "n_epochs=0"),
    ]:
        with pytest.raises(ValueError, match=words):
            fresh(model, **changes).fit(X, y)
    with pytest.raises(ValueError, match="1 class"):
        fresh(model).fit(X, np.zeros(len(y)))


def test_an_online_model_is_an_expansion(datasets, tmp_path):
    X, y = shuffled(datasets, "iris")
    model = KernelPerceptron(gamma=GAMMA, n_epochs=3).fit(X, y)
    small = compress(model, n_vectors=model.expansion_.n_vectors)
    assert (small.predict(X) == model.predict(X)).mean() > 0.95
