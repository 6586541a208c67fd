"""Fits on drafts: what fails changes nothing, what is published is published whole; snapshots of what was."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import svmarrow
import svmarrow.dask
from helpers.estimators import EXPANSION_MODELS, name_of
from svmarrow import SVC, SVR, CodedClassifier, KMPClassifier, OneClassSVM
from svmarrow._support.parameters import (
    InterruptedFit,
    atomic_fit,
    atomic_update,
    consistent,
    fitted_attribute_names,
    snapshot,
)
from svmarrow.least_squares import LowRankRLSClassifier
from svmarrow.online import KernelPerceptron
from svmarrow.patch import ridge, svm


class Thing:
    """An estimator of svmarrow, as far as its name says."""

    __module__ = "svmarrow.things"
    model_: object
    _own: object

    def __init__(self, parameter=0):
        self.parameter = parameter

    @atomic_fit
    def fit(self, work):
        work(self)

    @atomic_update
    def partial_fit(self, work):
        work(self)

    @consistent
    def read(self, work):
        return work(self)


def test_a_fit_is_given_nothing_of_the_last_one_and_published_at_its_end():
    thing = Thing()

    def first(draft):
        assert vars(thing) == {"parameter": 0}
        draft.model_, draft._own = 1, 2

    assert thing.fit(first) is thing
    assert vars(thing) == {"parameter": 0, "model_": 1, "_own": 2}

    def second(draft):
        assert vars(draft) == {"parameter": 0}
        draft.model_ = 3
        assert thing.model_ == 1

    thing.fit(second)
    assert vars(thing) == {"parameter": 0, "model_": 3}


def test_an_update_continues_from_the_last_fit():
    thing = Thing().fit(lambda draft: setattr(draft, "model_", 1))
    thing.partial_fit(lambda draft: setattr(draft, "model_", draft.model_ + 1))
    assert thing.model_ == 2


def test_a_fit_that_begins_from_the_last_one_finds_it():
    thing = Thing().fit(lambda draft: setattr(draft, "model_", 1))
    thing.warm_start = True
    thing.fit(lambda draft: setattr(draft, "_own", draft.model_))
    assert thing._own == 1
    thing._starts_from_last_fit = lambda: False
    thing.fit(lambda draft: setattr(draft, "_own", hasattr(draft, "model_")))
    assert thing._own is False


def test_what_is_not_of_a_fit_stays():
    """Attributes of a user's subclass, parameters that were set meanwhile, what the fit itself sets."""

    class Mine(Thing):
        __module__ = "mine"
        scaler_: object

    thing = Mine()
    thing.scaler_, thing.counter, thing.passing = "scaled", 1, True

    def work(draft):
        draft.counter += 1
        del draft.passing
        thing.parameter, thing.late = 7, "late"

    thing.fit(work)
    assert vars(thing) == {"parameter": 7, "scaler_": "scaled", "counter": 2, "late": "late"}


def test_a_snapshot_keeps_the_model_and_shares_what_it_caches():
    thing = Thing().fit(lambda draft: setattr(draft, "model_", 1))

    def read(view):
        assert type(view) is Thing
        view.cache = "made"
        thing.fit(lambda draft: setattr(draft, "model_", 2))
        return view.model_

    assert thing.read(read) == 1
    assert (thing.model_, thing.cache) == (2, "made")
    assert snapshot(thing).model_ == 2


@pytest.mark.parametrize("error", [ValueError, MemoryError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_of_what_failed(error):
    thing = Thing().fit(lambda draft: vars(draft).update(model_=1, _own=2))

    def change(draft):
        draft.model_, draft.new_ = 3, 4
        raise error

    for method in (thing.fit, thing.partial_fit):
        with pytest.raises(error):
            method(change)
        assert vars(thing) == {"parameter": 0, "model_": 1, "_own": 2}


def test_an_interrupted_fit_changes_its_own_estimator_only():
    inner, outer = Thing(), Thing()

    def change(draft):
        draft.model_ = 1
        raise InterruptedFit(draft)

    def around(draft):
        draft.model_ = 1
        inner.fit(change)

    with pytest.raises(KeyboardInterrupt):
        outer.fit(around)
    assert inner.model_ == 1
    assert vars(outer) == {"parameter": 0}
    with pytest.raises(KeyboardInterrupt):
        outer.fit(lambda _: change(inner))
    assert vars(outer) == {"parameter": 0}


# --- all public classes ---

#: What reads parameters and data alone.
OF_PARAMETERS = {"estimate", "estimate_memory", "get_metadata_routing", "save"}
PLACES = (svmarrow, svmarrow.dask, svm, ridge)
ESTIMATORS = {
    f"{place.__name__}.{name}": kind
    for place in PLACES
    for name, kind in vars(place).items()
    if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and name not in EXPANSION_MODELS
    if kind.__module__.startswith(place.__name__) and hasattr(kind, "fit") and name in dir(place)
    if not name.startswith("_")
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_public_method_is_a_fit_or_reads_one_fit(name):
    """A decorated function carries the name of its decorator's inner function in its code."""
    kind, plain = ESTIMATORS[name], []
    for method in dir(kind):
        owner = next(base for base in kind.__mro__ if method in vars(base))
        if method.startswith("_") or not owner.__module__.startswith("svmarrow"):
            continue
        function = inspect.getattr_static(kind, method)
        function = getattr(function, "fn", function)  # of scikit-learn's `available_if`
        if not inspect.isfunction(function) or method in OF_PARAMETERS:
            continue
        if not any(code.co_filename.endswith("parameters.py") for code in _codes(function)):
            plain.append(method)
    assert plain == []


def _codes(function):
    while function is not None:
        yield function.__code__
        function = getattr(function, "__wrapped__", None)


# --- fits of estimators ---


@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        OneClassSVM(),
        SVR(),
        LowRankRLSClassifier(9),
        KMPClassifier(5),
        KernelPerceptron(policy="oldest", budget=100),
        CodedClassifier(SVC()),
    ],
    ids=name_of,
)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_a_refit_that_is_stopped_leaves_the_model(model, stop, rng, monkeypatch):
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    model.fit(X, y)
    before = dict(vars(model))

    def stops(*arguments, **named):
        raise stop

    for name in (
        "fit_svc",
        "fit_svr",
        "fit_one_class_svm",
        "low_rank_sums",
        "matching_pursuit",
        "perceptron_stream",
    ):
        monkeypatch.setattr(f"svmarrow._core.{name}", stops)
    with pytest.raises(stop):
        model.fit(rng.normal(size=(50, 8)), np.arange(50) % 4)
    assert vars(model) == before
    assert model.predict(X).shape == (60,)


def test_the_names_are_those_that_a_fit_leaves():
    assert fitted_attribute_names(SVC) >= {"expansion_", "classes_", "_coding", "feature_names_in_"}
    assert not fitted_attribute_names(SVC) & {"C", "kernel", "_tuning", "_rules", "_margin_loss"}


@pytest.mark.parametrize(
    ("model", "stop"),
    [
        (SVC(max_iter=1), "max_iter"),
        (SVR(max_iter=1), "max_iter"),
        (svmarrow.RLSRegressor(solver="cg", max_iter=1, tol=1e-12), "max_iter"),
        (svmarrow.SVCCV(max_iter=1, Cs=2, gammas=2), "max_iter"),
        (svm.SVC(max_iter=1), "max_iter"),
    ],
    ids=name_of,
)
def test_warnings_name_the_line_that_called_fit(model, stop, rng):
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        clone(model).fit(X, y)
    assert stop in str(said[0].message)
    assert said[0].filename == __file__
