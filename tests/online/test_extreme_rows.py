"""Rows whose kernel values leave the range of their precision, and what a stored stream may hold."""

from __future__ import annotations

import copy
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from helpers.programs import python
from svmarrow import PerceptronTreeClassifier
from svmarrow._support.rows import rows_of
from svmarrow.online import KernelPerceptron

_LEARNERS = [
    KernelPerceptron(kernel="linear"),
    KernelPerceptron(kernel="poly", gamma=1.0),
    KernelPerceptron(policy="oldest", budget=20, kernel="poly", gamma=1.0),
    KernelPerceptron(policy="forgetron", budget=20, kernel="linear"),
    KernelPerceptron(policy="projectron", kernel="linear"),
    PerceptronTreeClassifier(budget=20, kernel="linear", random_state=0),
    PerceptronTreeClassifier(budget=20, kernel="poly", gamma=1.0, random_state=0),
]


def rows(dtype: Any = np.float64) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 5))
    return X.astype(dtype), (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("learner", _LEARNERS, ids=repr)
@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1e25), (np.float64, 1e200)])
def test_rows_whose_values_overflow_are_refused_by_name(learner: Any, dtype: Any, scale: float) -> None:
    X, y = rows(dtype)
    with pytest.raises(ValueError, match=r"X=\(row \d+\) is not allowed: it must be small enough for the"):
        copy.deepcopy(learner).fit(X * dtype(scale), y)


@pytest.mark.parametrize("learner", _LEARNERS, ids=repr)
@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e4])
def test_what_is_not_refused_is_finite(learner: Any, scale: float) -> None:
    X, y = rows(np.float32)
    model = copy.deepcopy(learner).fit(X * np.float32(scale), y)
    assert np.isfinite(model.decision_function(X * np.float32(scale))).all()


_SHAPES = {
    "rbf": (
        2,
        (
            KernelPerceptron(),
            KernelPerceptron(policy="projectron", eta=0.2),
            KernelPerceptron(policy="tightest", budget=20),
        ),
    ),
    "laplacian": (1, (KernelPerceptron(), KernelPerceptron(policy="forgetron", budget=20))),
    "matern32": (1, (KernelPerceptron(), KernelPerceptron(policy="projectron", eta=0.2))),
    "chi2": (1, (KernelPerceptron(policy="margin", budget=20),)),
    "poly": (2, (KernelPerceptron(),)),
    "sigmoid": (2, (KernelPerceptron(),)),
}
_TREES = [
    PerceptronTreeClassifier(budget=15, split=split, random_state=0, n_draws=5)
    for split in ("wpq", "zpq", "bal-inds", "rndw-rnds")
]


@pytest.mark.parametrize("exponent", [-60, 42, 60])
@pytest.mark.parametrize("kernel", _SHAPES)
@pytest.mark.parametrize("sparse", [False, True])
def test_with_gamma_to_match_powers_of_two_change_no_bit(kernel: str, sparse: bool, exponent: int) -> None:
    """Single precision holds squares of numbers from 2^-63 to 2^63 only, and less of those small."""
    X, y = rows(np.float32)
    X = np.abs(X)
    times, learners = _SHAPES[kernel]

    def fitted(learner: Any, exponent: int) -> Any:
        given = {"kernel": kernel, "gamma": 0.5 * 2.0 ** (-times * exponent)}
        moved = X * np.float32(2.0**exponent)
        moved = sp.csr_array(moved) if sparse else moved
        model = copy.deepcopy(learner).set_params(**given)
        model.partial_fit(moved[:90], y[:90], classes=[0, 1]).partial_fit(moved[90:], y[90:])
        kept = model._state["rows"]
        kept = rows_of(kept).toarray() if sparse else kept
        return model.mistake_indices_, kept * np.float32(2.0**-exponent), model.decision_function(moved)

    for learner in (*learners, *_TREES):
        for here, there in zip(fitted(learner, 0), fitted(learner, exponent), strict=True):
            assert np.array_equal(here, there), learner


@pytest.mark.parametrize("learner", [*_SHAPES["rbf"][1], *_TREES], ids=repr)
def test_offsets_cost_no_digit_that_the_rows_have(learner: Any) -> None:
    X, y = rows()
    X = np.round(64 * X) / 64
    model = copy.deepcopy(learner)
    # Planes through the origin ask where it is.
    if getattr(learner, "split", "zpq") in ("wpq", "rndw-rnds"):
        model.set_params(split="ent-opts")
    here = copy.deepcopy(model).fit(X.astype(np.float32), y)
    there = copy.deepcopy(model).fit((X + 4096).astype(np.float32), y)
    assert np.array_equal(here.mistake_indices_, there.mistake_indices_)


@pytest.mark.parametrize(
    "learner", [KernelPerceptron(), KernelPerceptron(policy="oldest", budget=64), *_TREES], ids=repr
)
def test_a_stream_keeps_the_digits_of_rows_far_from_its_gamma(learner: Any) -> None:
    """They leave single precision where gamma is brought near 1; what is kept are the rows as given."""
    X, y = rows(np.float32)
    model = copy.deepcopy(learner).set_params(gamma=1e-80).fit(X, y)
    kept = model._state["rows"]
    assert kept.size
    assert {row.tobytes() for row in kept} <= {row.tobytes() for row in X}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from Linux's /proc")
@pytest.mark.parametrize("learner", ["KernelPerceptron()", "KernelPerceptron(policy='oldest', budget=200)"])
def test_memory_follows_entries_and_not_columns(learner: str) -> None:
    program = f"""
import numpy as np, scipy.sparse as sp
from svmarrow.online import *
def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
random = np.random.default_rng(0)
X = sp.csr_array((np.ones(40_000), random.integers(0, 2**20, 40_000), 10 * np.arange(4001)), (4000, 2**20))
X.sum_duplicates()
y = random.integers(0, 2, 4000)
model = {learner}
model.__class__(**model.get_params()).fit(X[:100], y[:100])
before = peak()
model.fit(X, y)
print(peak() - before)
"""
    # A list of the columns for every eight vectors would be 2 GB, or 100 MB.
    assert int(python(program)) < 60e6


def test_a_tree_continues_in_double_precision_where_single_overflows() -> None:
    X, y = rows(np.float32)
    tree = PerceptronTreeClassifier(budget=20, kernel="linear", random_state=0).fit(X, y)
    assert tree.n_leaves_ > 1
    huge = np.float32(3e37) * np.sign(X[:20])
    leaves = [tree.leaf_expansion(leaf) for leaf in tree.apply(huge)]
    expected = [
        leaf.decision_function(row[None].astype(float))[0] for leaf, row in zip(leaves, huge, strict=True)
    ]
    assert np.abs(expected).max() > 1e38
    assert tree.decision_function(huge) == pytest.approx(np.ravel(expected), rel=1e-12)
    assert np.array_equal(tree.apply(huge), tree.apply(huge.astype(float)))
    tree.set_params(split="zpq").fit(X, y)
    with pytest.raises(ValueError, match="X=a row whose distance or kernel value has overflowed"):
        tree.decision_function(huge)


def test_labels_of_a_stored_sample_are_those_of_the_stream() -> None:
    """A label counts classes when a leaf is split: one of four billion would be as many counters."""
    X, y = rows()
    tree = PerceptronTreeClassifier(budget=300, random_state=0).fit(X, y)
    state = tree._state | {"sample_labels": np.full_like(tree._state["sample_labels"], 2**32 - 1)}
    tree._state = state
    with pytest.raises(ValueError, match=r"sample_labels=4294967295 is not allowed: it must be below 2"):
        tree.partial_fit(X, y)


def test_projections_stay_exact_where_rows_nearly_repeat() -> None:
    """The factor of the pool's kernel matrix, of condition 1e10, is exact; its inverse would not be."""
    random = np.random.default_rng(0)
    X = np.repeat(random.standard_normal((60, 4)), 5, axis=0) + 1e-5 * random.standard_normal((300, 4))
    y = random.integers(0, 2, 300)
    model = KernelPerceptron(policy="projectron", eta=0.0, gamma=0.5).fit(X, y)
    Z, factor = model.expansion_.vectors, model._state["matrix"]
    K = np.exp(-0.5 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    assert np.linalg.cond(K) > 1e9
    assert np.abs(factor @ factor.T - K).max() < 1e-14
    assert np.abs(factor).max() <= 1.0 + 1e-15


def test_a_stream_of_an_earlier_version_continues() -> None:
    """It holds the inverse of the kernel matrix instead of its factor."""
    X, y = rows()
    whole = KernelPerceptron(policy="projectron", eta=0.1).partial_fit(X[:100], y[:100], classes=[0, 1])
    old = copy.deepcopy(whole)
    factor = whole._state["matrix"]
    old._state = old._state | {"matrix": np.linalg.inv(factor @ factor.T)}
    whole.partial_fit(X[100:], y[100:])
    old.partial_fit(X[100:], y[100:])
    assert np.array_equal(whole.expansion_.coefficients, old.expansion_.coefficients)
