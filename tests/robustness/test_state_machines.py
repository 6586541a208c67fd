"""Estimators in any order of use against a fresh one that has seen the same: the same bits.

A machine fits, learns on, changes parameters, copies in four ways, fails and is interrupted, in an order that
hypothesis draws. What counts is written down as a history, and a fresh estimator that does what is written
there has to agree in parameters, in attributes and in every answer.
"""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone

import svmarrow
from helpers.comparison import assert_same, fitted_attributes, predictions, state_of
from helpers.data import IRIS, KIND
from helpers.fingerprints import digest
from svmarrow import SVC, CodedClassifier, ReducedSet, RLSClassifier
from svmarrow.cascade import ExactCascade
from svmarrow.online._stream import StreamClassifier
from svmarrow.svm import QuantileSVR

ORDER = np.random.default_rng(0).permutation(150)
#: Pieces of a stream, three classes in each.
PIECES = [(IRIS[ORDER[start : start + 30]], KIND[ORDER[start : start + 30]]) for start in range(0, 120, 30)]
ROWS = IRIS[ORDER[120:]]


@dataclass(frozen=True)
class Plan:
    """A learner, and values of parameters that may change between its fits."""

    make: Any
    choices: dict[str, list[Any]] = field(default_factory=dict)
    numbers: bool = False


SVM = {"C": [0.5, 10.0], "gamma": [0.3, "scale"], "kernel": ["rbf", "linear"], "n_jobs": [1, 2]}
WARM = {"warm_start": [True, True, False], "max_iter": [3, 40, -1]}
STREAM = {"gamma": [0.3, "scale"], "n_jobs": [1, 2], "n_epochs": [1, 3]}
PLANS = {
    "SVC": Plan(SVC, SVM | {"multi_class": ["ovo", "ovr"]}),
    "SVC warm": Plan(lambda: SVC(warm_start=True), SVM | WARM),
    "NuSVC": Plan(lambda: svmarrow.NuSVC(nu=0.2), {"nu": [0.1, 0.3], "warm_start": [True, False]}),
    "SVR": Plan(svmarrow.SVR, SVM | WARM | {"epsilon": [0.0, 0.1]}, numbers=True),
    "NuSVR": Plan(svmarrow.NuSVR, SVM | WARM, numbers=True),
    "QuantileSVR": Plan(QuantileSVR, SVM | WARM | {"quantile": [0.5, [0.1, 0.9]]}, numbers=True),
    "OneClassSVM": Plan(svmarrow.OneClassSVM, {"nu": [0.1, 0.6]} | WARM),
    "LowRankSVC": Plan(
        lambda: svmarrow.LowRankSVC(8, random_state=0), {"C": [0.5, 10.0], "n_vectors": [5, 8]}
    ),
    "RLSClassifier": Plan(RLSClassifier, {"alpha": [0.1, 10.0], "leave_one_out": [True, "auto"]}),
    "RLSRegressor": Plan(
        svmarrow.RLSRegressor, {"alphas": [None, (0.1, 1.0)], "solver": ["cholesky"]}, numbers=True
    ),
    "LinearRLSClassifier": Plan(
        svmarrow.least_squares.LinearRLSClassifier, {"solver": ["cg", "primal", "dual"]}
    ),
    "LowRankRLSClassifier": Plan(
        lambda: svmarrow.least_squares.LowRankRLSClassifier(8, random_state=0),
        {"alpha": [0.1, 10.0], "n_jobs": [1, 2]},
    ),
    "LowRankRLSRegressor": Plan(
        lambda: svmarrow.least_squares.LowRankRLSRegressor(8, random_state=0),
        {"alpha": [0.1, 10.0]},
        numbers=True,
    ),
    "KMPClassifier": Plan(lambda: svmarrow.KMPClassifier(5), {"n_vectors": [3, 5], "gamma": [0.3, "scale"]}),
    "KMPRegressor": Plan(
        lambda: svmarrow.KMPRegressor(5), {"variant": ["auto", "basic"], "n_vectors": [3]}, numbers=True
    ),
    "KernelPerceptron": Plan(svmarrow.online.KernelPerceptron, STREAM | {"prediction": ["last", "averaged"]}),
    "KernelPerceptron random": Plan(
        lambda: svmarrow.online.KernelPerceptron(policy="random", budget=8, random_state=3), STREAM
    ),
    "KernelPerceptron forgetron": Plan(
        lambda: svmarrow.online.KernelPerceptron(policy="forgetron", budget=8), STREAM
    ),
    "KernelPerceptron stop": Plan(lambda: svmarrow.online.KernelPerceptron(policy="stop", budget=8), STREAM),
    "KernelPerceptron projectron": Plan(
        lambda: svmarrow.online.KernelPerceptron(policy="projectron"), STREAM | {"eta": [0.05, 0.5]}
    ),
    "KernelPerceptron projectron++": Plan(
        lambda: svmarrow.online.KernelPerceptron(policy="projectron++"), STREAM
    ),
    "PerceptronTreeClassifier": Plan(
        lambda: svmarrow.PerceptronTreeClassifier(budget=6, gamma=2.0, random_state=0), {"n_epochs": [1, 2]}
    ),
    "CodedClassifier": Plan(lambda: CodedClassifier(SVC(), "ovo"), {"estimator__C": [0.5, 10.0]}),
    "CodedClassifier each": Plan(
        lambda: CodedClassifier(RLSClassifier(), shared=False), {"estimator__alpha": [0.1, 10.0]}
    ),
    "ReducedSet": Plan(lambda: ReducedSet(SVC(), 4), {"n_vectors": [3, 6], "estimator__C": [0.5, 10.0]}),
    "ExactCascade": Plan(lambda: ExactCascade(SVC(gamma=0.1)), {"estimator__C": [0.5, 10.0]}),
}
#: Inputs that no fit takes.
WRONG = {
    "NaN in X": lambda X, y: (np.where(X > 5.0, np.nan, X), y),
    "infinite y": lambda X, y: (X, np.where(y == y[0], np.inf, y)),
    "a row too many": lambda X, y: (X, np.append(y, y[:1])),
    "no rows": lambda X, y: (X[:0], y[:0]),
    "a cube": lambda X, y: (X[:, :, np.newaxis], y),
    "NaN in other columns": lambda X, y: (np.full((len(X), 7), np.nan), y),
}


def state(model):
    """Everything that an estimator has, to be compared later; not the caller's functions."""
    return {name: copy.deepcopy(value) for name, value in state_of(model).items() if not callable(value)}


class Uses(RuleBasedStateMachine):
    """One estimator and the history that made it."""

    plan: Plan

    @initialize()
    def begin(self):
        self.model = self.plan.make()
        self.history = []

    def targets(self, number):
        X, y = PIECES[number]
        return (np.sin(X[:, 0]) if self.plan.numbers else y) if self.supervised else None

    @property
    def supervised(self):
        return not isinstance(self.model, svmarrow.OneClassSVM)

    def do(self, model, step):
        """One step of a history."""
        kind, parameters, number = step
        model.set_params(**parameters)
        X, y = PIECES[number][0], self.targets(number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "fit":
                model.fit(X, y)
            elif self.plan.numbers:
                model.partial_fit(X, y)
            else:
                model.partial_fit(X, y, classes=[0, 1, 2])

    def now(self):
        return {name: self.model.get_params()[name] for name in self.plan.choices}

    # --- what changes the model ---

    @rule(number=st.integers(0, 3))
    def fit(self, number):
        step = ("fit", self.now(), number)
        self.do(self.model, step)
        warm = getattr(self.model, "warm_start", False)
        self.history = [*(self.history if warm else []), step]

    @precondition(lambda self: hasattr(self.model, "partial_fit"))
    @rule(number=st.integers(0, 3))
    def learn_on(self, number):
        step = ("partial_fit", self.now(), number)
        self.do(self.model, step)
        self.history.append(step)

    @precondition(lambda self: self.plan.choices)
    @rule(data=st.data())
    def set_parameters(self, data):
        name = data.draw(st.sampled_from(sorted(self.plan.choices)))
        self.model.set_params(**{name: data.draw(st.sampled_from(self.plan.choices[name]))})

    @rule()
    def start_over(self):
        fresh = clone(self.model)
        assert digest(fresh.get_params()) == digest(self.model.get_params())
        assert not [name for name in vars(fresh) if name.endswith("_")]
        self.model, self.history = fresh, []

    # --- what leaves it as it is ---

    @rule(how=st.sampled_from(["pickle", "deepcopy", "copy", "file"]))
    def take_a_copy(self, how):
        if how == "pickle":
            self.model = pickle.loads(pickle.dumps(self.model))
        elif how == "deepcopy":
            self.model = copy.deepcopy(self.model)
        elif how == "copy":
            self.model = copy.copy(self.model)
        elif self.history:
            with tempfile.TemporaryDirectory() as folder:
                self.model.save(Path(folder) / "model")
                self.model = svmarrow.load(Path(folder) / "model")

    @rule(wrong=st.sampled_from(sorted(WRONG)), number=st.integers(0, 3), on=st.booleans())
    def fail(self, wrong, number, on):
        if not self.supervised and wrong in ("infinite y", "a row too many"):
            return
        X, y = PIECES[number]
        X, y = WRONG[wrong](X, y.astype(float) if wrong == "infinite y" else y)
        before = state(self.model)
        learn = self.model.partial_fit if on and hasattr(self.model, "partial_fit") else self.model.fit
        with pytest.raises((ValueError, TypeError)):
            learn(X, y)
        assert_same(state(self.model), before, wrong)

    @precondition(lambda self: self.plan.choices)
    @rule(number=st.integers(0, 3), data=st.data())
    def fail_by_a_parameter(self, number, data):
        name = data.draw(st.sampled_from(sorted(self.plan.choices)))
        held = self.model.get_params()[name]
        self.model.set_params(**{name: float("nan")})
        before = state(self.model)
        with pytest.raises((ValueError, TypeError)):
            self.model.fit(PIECES[number][0], self.targets(number))
        assert_same(state(self.model), before, name)
        self.model.set_params(**{name: held})

    @precondition(lambda self: isinstance(self.model, StreamClassifier))
    @rule(number=st.integers(0, 3), after=st.integers(0, 2))
    def interrupt_a_stream(self, number, after):
        """Passes that ended before are kept; a piece that was interrupted is not."""
        X, y = PIECES[number]
        parameters = self.now() | ({"n_epochs": 3} if "n_epochs" in self.plan.choices else {})
        self.model.set_params(**parameters)
        before, learn, calls = state(self.model), type(self.model)._piece, []

        def piece(model, *rows):
            calls.append(1)
            if len(calls) > after:
                raise KeyboardInterrupt
            learn(model, *rows)

        with mock.patch.object(type(self.model), "_piece", piece), pytest.raises(KeyboardInterrupt):
            self.model.fit(X, y)
        if after == 0:
            assert_same(state(self.model), before, "interrupted before the end of the first pass")
        else:
            self.history = [("fit", parameters | {"n_epochs": after}, number)]

    @precondition(lambda self: callable(getattr(self.model, "kernel", "")) or "kernel" in self.plan.choices)
    @rule(number=st.integers(0, 3), call=st.integers(0, 2))
    def interrupt_a_kernel(self, number, call):
        """Whatever the caller's kernel raises leaves the estimator as it was."""
        seen = []

        def kernel(X, Z):
            seen.append(1)
            if len(seen) > call:
                raise KeyboardInterrupt
            return X @ Z.T

        held = self.model.get_params()
        self.model.set_params(kernel=kernel, warm_start=False)
        before = state(self.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.model.fit(PIECES[number][0], self.targets(number))
            except KeyboardInterrupt:
                assert_same(state(self.model), before, "interrupted in a kernel")
                self.model.set_params(kernel=held["kernel"], warm_start=held["warm_start"])
                return
        # It was over before the call that would have raised.
        assert len(seen) <= call
        self.model.set_params(kernel=held["kernel"], warm_start=held["warm_start"])
        self.begin()

    # --- what has to hold ---

    @invariant()
    def it_is_what_its_history_made(self):
        if not getattr(self, "history", None):
            return
        fresh = self.plan.make()
        for step in self.history:
            self.do(fresh, step)
        fresh.set_params(**self.now())
        assert digest(self.model.get_params()) == digest(fresh.get_params())
        ours, theirs = fitted_attributes(self.model), fitted_attributes(fresh)
        assert ours.keys() == theirs.keys()
        assert [name for name in ours if digest(ours[name]) != digest(theirs[name])] == []
        assert digest(predictions(self.model, ROWS)) == digest(predictions(fresh, ROWS))


def use(name, examples):
    machine = type(f"Uses of {name}", (Uses,), {"plan": PLANS[name]}).TestCase
    phases = (Phase.generate, Phase.shrink)
    machine.settings = settings(
        settings.default, max_examples=examples, stateful_step_count=12, phases=phases
    )
    machine().runTest()


@pytest.mark.parametrize("name", PLANS)
def test_any_order_of_use(name):
    use(name, 3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PLANS)
def test_many_orders_of_use(name):
    use(name, 2 * settings.default.max_examples // 5)
