"""Refits over partitions: nothing of the last fit stays, and whoever reads meanwhile reads one of the two."""

from __future__ import annotations

import pickle
import threading

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from helpers.comparison import assert_same, predictions
from helpers.fingerprints import digest
from svmarrow._support.parameters import fitted_attribute_names
from svmarrow.dask import (
    DaskLowRankRLSClassifier,
    DaskLowRankRLSRegressor,
    DaskLowRankSVC,
    DaskSVC,
)

pytestmark = pytest.mark.filterwarnings("ignore")

ORDER = np.random.default_rng(0).permutation(150)
X, y = (values[ORDER] for values in load_iris(return_X_y=True))
LEARNERS = [
    DaskSVC(),
    DaskLowRankSVC(8, selection="greedy_trace", random_state=0),
    DaskLowRankRLSClassifier(8, selection="greedy_trace", random_state=0),
    DaskLowRankRLSRegressor(8, random_state=0),
]
FITS = [(X, y), (np.hstack([X, X[:, :2]]), np.where(y > 0, 7, 5)), (X.astype(np.float32), y)]


def fit(model, number):
    rows, labels = FITS[number]
    return model.fit(da.from_array(rows, chunks=(75, -1)), da.from_array(labels, chunks=75))


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_refit_is_the_fit_of_a_fresh_estimator(learner, client):
    model, sizes = clone(learner), {}
    for number in (0, 1, 2, 0, 1):
        fit(model, number)
        fresh = fit(clone(learner), number)
        assert vars(model).keys() == vars(fresh).keys()
        assert vars(model).keys() - vars(learner).keys() - fitted_attribute_names(type(model)) == set()
        assert_same(predictions(model, FITS[number][0]), predictions(fresh, FITS[number][0]))
        sizes.setdefault(number, set()).add(len(pickle.dumps(model.to_local())))
    # What workers send shares its strings in one way or another; a model that stayed would double the size.
    assert all(max(each) < 1.2 * min(each) for each in sizes.values())


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_thread_reads_one_of_two_models_while_they_are_fitted_in_turn(learner, client):
    def said(model):
        try:
            return digest(model.predict(X[:7]))
        except ValueError as error:
            return str(error)

    expected = {said(fit(clone(learner), number)) for number in (0, 1)}
    model, found, over = fit(clone(learner), 0), set(), threading.Event()

    def ask():
        while not over.is_set():
            found.add(said(model))

    reader = threading.Thread(target=ask)
    reader.start()
    try:
        for number in (1, 0):
            fit(model, number)
    finally:
        over.set()
        reader.join()
    assert found <= expected
