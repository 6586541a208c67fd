"""scikit-learn's callbacks (from 1.9): what they are told, when they end a fit, that they leave no trace."""

from __future__ import annotations

import copy
import io
import pickle
from contextlib import redirect_stdout

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmarrow
from helpers.comparison import answers
from helpers.data import KIND
from helpers.data import STANDARD_IRIS as X
from helpers.estimators import EXPANSION_MODELS, QUICK, name_of, target
from helpers.public import PUBLIC
from svmarrow import SVC, CodedClassifier, KMPClassifier, KMPRegressor, LowRankSVC, ReducedSet
from svmarrow.online import KernelPerceptron

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9")

#: With the machine below, work for longer than anybody would wait.
LONG, SIDE = make_moons(6000, noise=0.3, random_state=0)


class Recorder:
    """Keeps what it is told; asks for an end at the end of tasks of one name."""

    max_propagation_depth = None

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.told, self.fitted, self.given = [], [], []

    def setup(self, estimator, context):
        self.told.append(("setup", type(estimator).__name__))

    def teardown(self, estimator, context):
        self.told.append(("teardown", type(estimator).__name__))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.told.append(("begin", context.task_name, context.estimator_name))
        self.given.append((X, y, metadata))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.told.append(("end", context.task_name, context.estimator_name))
        if fitted_estimator is not None:
            self.fitted.append((context.task_name, fitted_estimator))
        return context.task_name == self.stop_at

    def names(self, event):
        return [told[1] for told in self.told if told[0] == event]


def trace(estimator):
    return {name for name in vars(estimator) if "callback" in name}


@pytest.mark.parametrize("estimator", QUICK, ids=name_of)
def test_callbacks_receive_every_fit_and_leave_no_trace(estimator):
    y, recorder = target(estimator), Recorder()
    model = clone(estimator).set_callbacks(recorder)
    name = type(estimator).__name__
    assert model.fit(X, y) is model
    assert recorder.told[:2] == [("setup", name), ("begin", "fit", name)]
    assert recorder.told[-2:] == [("end", "fit", name), ("teardown", name)]
    assert sorted(recorder.names("begin")) == sorted(recorder.names("end"))
    assert recorder.given[0][0] is X
    assert recorder.given[0][1] is y
    last, fitted = recorder.fitted[-1]
    assert last == "fit"
    assert np.array_equal(answers(fitted, X), answers(model, X))
    assert trace(model) == {"_skl_callbacks"}
    assert all(not trace(value) for value in vars(model).values() if hasattr(value, "get_params"))
    plain = clone(estimator).set_callbacks().fit(X, y)
    if "random_state" not in model.get_params() or model.random_state is not None:
        assert np.array_equal(answers(plain, X), answers(model, X))
    assert np.array_equal(answers(pickle.loads(pickle.dumps(model)), X), answers(model, X))


def test_all_public_estimators_are_here():
    public = {name for name in PUBLIC if hasattr(PUBLIC[name], "get_params")}
    assert public == {type(estimator).__name__ for estimator in QUICK} | EXPANSION_MODELS


def test_weights_are_metadata():
    recorder, weights = Recorder(), np.ones(len(X))
    SVC().set_callbacks(recorder).fit(X, KIND, sample_weight=weights)
    assert recorder.given[0][2] == {"sample_weight": weights}


def test_a_fit_that_fails_is_torn_down_and_changes_nothing():
    recorder = Recorder()
    model = SVC().set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((4, 2), np.nan), [0, 1, 0, 1])
    assert recorder.told == [("setup", "SVC"), ("begin", "fit", "SVC"), ("teardown", "SVC")]
    assert trace(model) == {"_skl_callbacks"}
    assert not hasattr(model, "classes_")


class Broken(Recorder):
    def on_fit_task_begin(self, estimator, context):
        if context.parent is not None:
            raise ZeroDivisionError


@pytest.mark.parametrize(
    "kind", [SVC, LowRankSVC, lambda **options: CodedClassifier(SVC(**options))], ids=["full", "low", "coded"]
)
def test_a_callback_ends_a_fit_with_a_usable_model(kind):
    """No warning either: who asked for the end knows of it (warnings are errors here)."""
    recorder = Recorder(stop_at="part")
    model = kind(C=1e6, gamma=100.0, tol=1e-12, n_jobs=1, max_time=300.0).set_callbacks(recorder)
    model.fit(LONG, SIDE)
    assert recorder.names("end").count("part") >= 1
    assert model.certificate_.stop == "interrupted"
    assert model.certificate_.violation > 1e-12
    assert model.score(LONG, SIDE) > 0.3


def test_a_callback_ends_a_pursuit_with_what_it_has():
    recorder = Recorder(stop_at="part")
    rows, y = LONG[:4000], np.sin(LONG[:4000, 0])
    model = KMPRegressor(n_vectors=4000, tol=0, gamma=100.0, n_jobs=1).set_callbacks(recorder).fit(rows, y)
    assert model.path_.stop == "interrupted"
    assert 0 < len(model.path_) < 4000
    assert model.score(rows, y) > 0


@pytest.mark.filterwarnings("ignore:n_vectors=100 may be too few:svmarrow.exceptions.SizeWarning")
def test_a_callback_ends_a_compression_with_what_it_has():
    machine = SVC(C=1.0, gamma=100.0)

    class AfterTheFit(Recorder):
        def on_fit_task_end(self, estimator, context, **data):
            return (
                super().on_fit_task_end(estimator, context, **data) and context.estimator_name == "ReducedSet"
            )

    model = ReducedSet(machine, n_jobs=1).set_callbacks(AfterTheFit(stop_at="part")).fit(LONG, SIDE)
    assert 0 < model.expansion_.n_vectors < model.estimator_.expansion_.n_vectors
    assert model.score(LONG, SIDE) > 0.5


def test_a_callback_that_fails_leaves_the_model_as_it_was():
    model = SVC(C=1e6, gamma=100.0, tol=1e-12, n_jobs=1, max_time=300.0)
    model.set_callbacks(Recorder(stop_at="part")).fit(LONG, SIDE)
    before = model.predict(LONG[:100])
    with pytest.raises(ZeroDivisionError):
        model.set_callbacks(Broken()).fit(LONG, SIDE)
    assert np.array_equal(model.predict(LONG[:100]), before)
    assert trace(model) == {"_skl_callbacks"}


def test_an_online_learner_ends_after_an_epoch():
    recorder = Recorder(stop_at="epoch")
    model = KernelPerceptron(n_epochs=5).set_callbacks(recorder).fit(X, KIND)
    assert model.n_epochs_ == 1
    assert np.array_equal(model.predict(X), KernelPerceptron(n_epochs=1).fit(X, KIND).predict(X))
    scores = [(name, one.score(X, KIND)) for name, one in recorder.fitted]
    assert [name for name, _ in scores] == ["epoch", "fit"]
    full = Recorder()
    KernelPerceptron(n_epochs=3).set_callbacks(full).fit(X, KIND)
    expected = [KernelPerceptron(n_epochs=n).fit(X, KIND).score(X, KIND) for n in (1, 2, 3)]
    assert [one.score(X, KIND) for name, one in full.fitted if name == "epoch"] == expected


@pytest.mark.parametrize(
    ("estimator", "part"),
    [
        (CodedClassifier(SVC(), shared=False, n_jobs=1), "column"),
        (CodedClassifier(SVC(), shared=False, n_jobs=2), "column"),
        (ReducedSet(SVC(), 8), "estimator"),
    ],
    ids=repr,
)
def test_callbacks_reach_the_machines_inside(estimator, part):
    recorder = Recorder()
    model = clone(estimator).set_callbacks(recorder).fit(X, KIND)
    count = 1 if part == "estimator" else 3
    inside = [told for told in recorder.told if told == ("begin", "fit", "SVC")]
    assert len(inside) == count
    assert recorder.names("begin").count(f"{part}s") == 1
    for machine in getattr(model, "estimators_", [getattr(model, "estimator_", None)]):
        assert not trace(machine)

    class Near(Recorder):
        max_propagation_depth = 0

    near = Near()
    clone(estimator).set_callbacks(near).fit(X, KIND)
    assert ("begin", "fit", "SVC") not in near.told
    assert near.names("end").count(part) == count


def test_in_pipelines_and_searches():
    recorder = Recorder()
    model = make_pipeline(StandardScaler(), CodedClassifier(SVC(), shared=False))
    model.set_callbacks(recorder).fit(X, KIND)
    assert recorder.told.count(("begin", "fit", "SVC")) == 3
    recorder = Recorder()
    GridSearchCV(SVC(), {"C": [1.0, 10.0]}, cv=2).set_callbacks(recorder).fit(X, KIND)
    assert recorder.told.count(("begin", "fit", "SVC")) == 5


def test_scikit_learns_own_callbacks():
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = KernelPerceptron(n_epochs=3).set_callbacks(monitor).fit(X, KIND)
    log = monitor.get_logs().data_as_pandas
    assert log["accuracy"].iloc[0] == model.score(X, KIND)
    assert (log["task_name"] == "epoch").sum() == 3
    bar = io.StringIO()
    with redirect_stdout(bar):
        CodedClassifier(SVC(), shared=False).set_callbacks(callback.ProgressBar()).fit(X, KIND)
    assert "CodedClassifier - columns" in bar.getvalue()


def test_models_are_saved_without_callbacks(tmp_path):
    for model in (KMPClassifier(n_vectors=5), CodedClassifier(SVC()), ReducedSet(SVC(), 8)):
        model.set_callbacks(Recorder()).fit(X, KIND)
        svmarrow.save(model, tmp_path / "model.safetensors")
        loaded = svmarrow.load(tmp_path / "model.safetensors")
        assert np.array_equal(loaded.predict(X), model.predict(X))
        assert not trace(loaded)
    path = model.set_callbacks() and KMPClassifier(n_vectors=5).set_callbacks(Recorder()).fit(X, KIND).path_
    assert not any(trace(value) for value in vars(path).values() if hasattr(value, "get_params"))
    assert not trace(path[2])
    assert copy.copy(path[2]).predict(X).shape == (len(X),)
