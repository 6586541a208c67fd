"""A fit that fails leaves the estimator as it was, whatever ended it."""

from __future__ import annotations

import numpy as np
import pytest

from svmarrow import (
    SVC,
    SVR,
    BudgetPerceptron,
    CodedClassifier,
    KMPClassifier,
    LowRankRLSClassifier,
    OneClassSVM,
)
from svmarrow._support.atomic import Kept, all_or_nothing


class Thing:
    pass


@pytest.mark.parametrize("error", [ValueError, MemoryError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_of_what_failed(error):
    thing = Thing()
    thing.old, thing.gone = 1, 2

    def change():
        with all_or_nothing(thing):
            thing.old, thing.new = 3, 4
            del thing.gone
            raise error

    with pytest.raises(error):
        change()
    assert vars(thing) == {"old": 1, "gone": 2}


def test_what_was_kept_stays_for_its_own_estimator_alone():
    inner, outer = Thing(), Thing()

    def change():
        with all_or_nothing(outer):
            outer.new = 1
            with all_or_nothing(inner):
                inner.new = 1
                raise Kept(inner)

    with pytest.raises(KeyboardInterrupt):
        change()
    assert vars(inner) == {"new": 1}
    assert vars(outer) == {}


@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        OneClassSVM(),
        SVR(),
        LowRankRLSClassifier(9),
        KMPClassifier(5),
        BudgetPerceptron(),
        CodedClassifier(SVC()),
    ],
    ids=lambda model: type(model).__name__,
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
