"""Models are values: nothing is fitted or assigned, copies predict the same bits, methods make sense."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import svmarrow
from helpers.data import KIND, TARGET
from helpers.data import STANDARD_IRIS as X
from svmarrow import SVC, SVR, OneClassSVM, as_expansion, compress

METHODS = (
    "predict",
    "decision_function",
    "predict_proba",
    "score",
    "score_samples",
    "save",
    "compiled",
    "calibrated",
)
#: Of each model, what it can do.
ABILITIES = {
    "classifier": {"predict", "decision_function", "score", "save", "compiled", "calibrated"},
    "calibrated": set(METHODS) - {"score_samples"},
    "tree": {"predict", "decision_function", "score", "save", "compiled", "calibrated"},
    "regressor": {"predict", "score", "save", "compiled"},
    # As scikit-learn's OneClassSVM, detectors have no score.
    "detector": {"predict", "decision_function", "score_samples", "save", "compiled"},
}


@pytest.fixture(scope="module")
def models():
    svc = SVC(C=10.0).fit(X, KIND)
    return {
        "classifier": as_expansion(svc),
        "calibrated": as_expansion(svc).calibrated(X, KIND),
        "tree": compress(svc, X, KIND, max_evaluations=6, random_state=0),
        "regressor": as_expansion(SVR().fit(X, TARGET)),
        "detector": as_expansion(OneClassSVM(nu=0.3).fit(X)),
    }


@pytest.mark.parametrize("name", ABILITIES)
def test_models_have_the_methods_that_make_sense(models, name):
    assert {method for method in METHODS if hasattr(models[name], method)} == ABILITIES[name]


@pytest.mark.parametrize("name", ABILITIES)
def test_parameters_are_not_assigned(models, name):
    model = clone(models[name])
    for parameter in set(model.get_params(deep=False)) - {"n_jobs"}:
        with pytest.raises(
            AttributeError, match=rf"{parameter} of an Expansion\w+ cannot be assigned: call set_params"
        ):
            setattr(model, parameter, None)
    model.n_jobs = 1
    np.testing.assert_array_equal(model.predict(X), models[name].predict(X))


@pytest.mark.parametrize("name", ABILITIES)
def test_copies_are_equal_and_independent(models, name, tmp_path):
    model = models[name]
    model.save(tmp_path / "model")
    copies = [clone(model), pickle.loads(pickle.dumps(model)), svmarrow.load(tmp_path / "model")]
    expected = model.predict(X)
    for copied in copies:
        copied.set_params(n_jobs=1, weighted=True)
        np.testing.assert_array_equal(copied.predict(X), expected)
    assert model.weighted is not True
    assert FrozenEstimator(model).fit(X, KIND).estimator is model
    with pytest.raises(TypeError, match="cannot be fitted again"):
        model.fit(X, KIND)


def test_set_params_that_contradict_change_nothing(models):
    model = clone(models["calibrated"])
    state = dict(vars(model))
    for parameters in ({"classes": [1, 2]}, {"decoding": "binary"}, {"n_features": 3}, {"unknown": 1}):
        with pytest.raises(ValueError):  # noqa: PT011 - each has its own message
            model.set_params(**parameters)
        assert vars(model) == state


def test_set_params_beside_predictions_of_other_threads(models):
    model, expected = clone(models["classifier"]), models["classifier"].predict(X)
    failures, is_over = [], threading.Event()

    def predict():
        while not is_over.is_set():
            try:
                np.testing.assert_array_equal(model.predict(X), expected)
            except Exception as error:  # noqa: BLE001 - reported below
                failures.append(error)
                return

    worker = threading.Thread(target=predict)
    worker.start()
    for number in range(300):
        model.set_params(weighted=bool(number % 2))
    is_over.set()
    worker.join()
    assert not failures
