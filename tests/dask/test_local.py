"""What an estimator of Dask collections is: parameters, a fit, and the local estimator that it holds."""

from __future__ import annotations

import copy
import inspect
import pickle

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import svmarrow
from svmarrow import SVC, CodedClassifier, LowRankSVC
from svmarrow.dask import (
    DaskLowRankRLSClassifier,
    DaskLowRankRLSRegressor,
    DaskLowRankSVC,
    DaskSVC,
)
from svmarrow.dask.estimator import prediction_model
from svmarrow.least_squares import LowRankRLSClassifier, LowRankRLSRegressor

ORDER = np.random.default_rng(0).permutation(150)
X, y = (values[ORDER] for values in load_iris(return_X_y=True))
LOCAL = {
    DaskSVC: SVC,
    DaskLowRankSVC: LowRankSVC,
    DaskLowRankRLSClassifier: LowRankRLSClassifier,
    DaskLowRankRLSRegressor: LowRankRLSRegressor,
}
MODELS = [
    DaskSVC(),
    DaskLowRankSVC(8, random_state=0),
    DaskLowRankRLSClassifier(8, random_state=0),
    DaskLowRankRLSRegressor(8, random_state=0),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
every_kind = pytest.mark.parametrize("kind", LOCAL, ids=lambda kind: kind.__name__)


def fitted(model):
    return clone(model).fit(da.from_array(X, chunks=(75, -1)), da.from_array(y, chunks=75))


@every_kind
def test_the_parameters_are_those_of_the_local_class(kind):
    assert inspect.signature(kind) == inspect.signature(LOCAL[kind])
    model = kind(n_jobs=2)
    assert model.get_params() == LOCAL[kind](n_jobs=2).get_params()
    tags, local = get_tags(model), get_tags(LOCAL[kind]())
    assert tags == local
    assert is_classifier(model) != is_regressor(model)
    assert is_regressor(model) == (kind is DaskLowRankRLSRegressor)


@every_model
def test_attributes_are_those_of_the_local_estimator(client, model):
    model = fitted(model)
    assert type(model.local_) is LOCAL[type(model)]
    names = [name for name in dir(model.local_) if name.endswith("_") and not name.startswith("_")]
    names = [name for name in names if hasattr(model.local_, name)]
    assert {"expansion_", "n_features_in_", "dual_coef_", "intercept_", "n_iter_"} <= set(names)
    for name in names:
        assert name in dir(model)
        np.testing.assert_equal(getattr(model, name), getattr(model.local_, name))
    # Before version 1.9 scikit-learn shows parameters only.
    assert ("expansion_" in model._repr_html_()) == ("expansion_" in model.local_._repr_html_())
    if isinstance(model, (DaskSVC, DaskLowRankSVC)):
        with pytest.raises(AttributeError, match="coef_ exists for kernel='linear' only, this is 'rbf'"):
            _ = model.coef_


@every_model
def test_an_error_for_an_unknown_name_has_the_name_of_the_class(client, model):
    name, before = type(model).__name__, clone(model)
    for each in (before, fitted(model)):
        for missing in ("unknown", "unknown_", "_unknown", "remaining_trace_"):
            with pytest.raises(AttributeError, match=f"'{name}' object has no attribute '{missing}'"):
                getattr(each, missing)
    assert not hasattr(before, "local_")
    assert not hasattr(before, "expansion_")
    assert "dual_coef_" not in dir(before)
    for read in (
        lambda: before.dual_coef_,
        lambda: before.predict(X),
        lambda: before.predict(da.from_array(X)),
        lambda: before.score(X, y),
        before.to_local,
        before.as_expansion,
        before.compiled,
        lambda: svmarrow.save(before, "model"),
        lambda: svmarrow.as_expansion(before),
    ):
        with pytest.raises(NotFittedError, match=rf"(?i)this {name}"):
            read()


@every_model
def test_a_method_that_is_not_there_says_why(client, model):
    if is_classifier(model):
        with pytest.raises(AttributeError, match=r"Dask.* has no predict_proba: call as_expansion"):
            _ = fitted(model).predict_proba
    assert not hasattr(model, "predict_proba")
    assert hasattr(model, "decision_function") == is_classifier(model)
    assert hasattr(model, "partial_fit") == hasattr(model, "alpha")
    if hasattr(model, "alpha"):
        other = clone(model).set_params(solver="cg")
        assert not hasattr(other, "partial_fit")
        with pytest.raises(AttributeError, match=f"{type(model).__name__}' has no attribute 'partial_fit'"):
            _ = other.partial_fit


@every_model
def test_copies_hold_the_model_and_clones_do_not(client, model):
    model = fitted(model)
    model.client = client
    expected = model.predict(X)
    for each in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(each.predict(X), expected)
        assert vars(each).keys() == vars(model).keys() - {"_client"}
    assert not hasattr(clone(model), "local_")
    assert vars(clone(model)).keys() == clone(model).get_params().keys()


def test_parameters_that_are_set_after_a_fit_act_on_predictions(client, digits):
    X, y = digits[:2]
    model = DaskSVC().fit(da.from_array(X, chunks=(250, -1)), da.from_array(y, chunks=250))
    assert model.decision_function(X).shape == (len(X), 10)
    model.set_params(decision_function_shape="ovo", n_jobs=1)
    rows = da.from_array(X, chunks=(250, -1))
    for values in (model.decision_function(X), model.to_local().decision_function(X)):
        assert values.shape == (len(X), 45)
    assert model.decision_function(rows).shape == (len(X), 45)
    assert model.to_local().get_params() == model.get_params()
    assert model.local_.decision_function_shape == "ovr"
    assert model.as_expansion().decision_function_shape == "ovo"


@every_model
def test_what_is_sent_for_predictions_is_the_expansion(client, model):
    model = fitted(model)
    sent = prediction_model(model)
    assert sent.expansion is model.local_.expansion_
    assert not any(name in vars(sent) for name in ("_sums", "local_", "rounds_", "support_"))


@every_model
def test_a_fitted_estimator_is_taken_where_the_local_one_is(client, model):
    model = fitted(model)
    local = model.to_local()
    np.testing.assert_array_equal(svmarrow.as_expansion(model).predict(X), local.predict(X))
    assert svmarrow.compress(model, n_vectors=5).predict(X).shape == y.shape
    sample = X[0].tolist()
    assert model.compiled().predict(sample) == local.compiled().predict(sample)
    assert model.estimate_memory(X, y) == local.estimate_memory(X, y)
    assert model.score(X, y) == local.score(X, y)


def test_a_subclass_that_predicts_in_another_way_is_not_converted(client):
    class Other(DaskSVC):
        def predict(self, X):
            return super().predict(X)[::-1]

    class Trains(DaskSVC):
        def fit(self, X, y):
            return super().fit(X, y)

    with pytest.raises(TypeError, match="Other is a subclass of DaskSVC with another predict"):
        svmarrow.as_expansion(fitted(Other()))
    assert svmarrow.as_expansion(fitted(Trains())).expansion_.n_vectors > 3


def test_sums_are_merged_and_solved_again(client):
    points = X[::15]
    one = DaskLowRankRLSClassifier(selection=points, gamma=0.1)
    whole = fitted(one)
    halves = [
        clone(one).fit(da.from_array(X[rows], chunks=(25, -1)), da.from_array(y[rows], chunks=25))
        for rows in (slice(None, 75), slice(75, None))
    ]
    before = halves[0].local_
    for other in (halves[1], halves[1].to_local()):
        merged = copy.copy(halves[0]).merge(other)
        assert type(merged) is DaskLowRankRLSClassifier
        assert merged.n_seen_ == 150
        np.testing.assert_allclose(merged.decision_function(X), whole.decision_function(X), atol=1e-9)
    assert halves[0].local_ is before
    with pytest.raises(NotFittedError, match="DaskLowRankRLSClassifier"):
        clone(one).merge(halves[0])
    coded = CodedClassifier.from_ovr(whole, "complete")
    assert (coded.predict(X) == whole.predict(X)).all()
    assert isinstance(whole.path([2.0])[0], LowRankRLSClassifier)


def test_batches_in_memory(client):
    model = DaskLowRankRLSRegressor(selection=X[::15], gamma=0.1)
    model.partial_fit(X[:75], y[:75]).partial_fit(
        da.from_array(X[75:], chunks=(25, -1)), da.from_array(y[75:], chunks=25)
    )
    near = LowRankRLSRegressor(selection=X[::15], gamma=0.1).fit(X, y)
    np.testing.assert_allclose(model.predict(X), near.predict(X), atol=1e-9)
    seen = model.local_
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], y)
    assert model.local_ is seen


class Recorder:
    """A callback of scikit-learn that keeps what it is told of a fit."""

    max_propagation_depth = None

    def __init__(self):
        self.begun, self.fitted = [], []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.begun.append((context.task_name, context.estimator_name))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.fitted.append(fitted_estimator)


@every_model
def test_callbacks_see_a_fit_and_are_no_part_of_the_local_estimator(client, model):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9")
    recorder = Recorder()
    model = clone(model).set_callbacks(recorder)
    model.fit(da.from_array(X, chunks=(75, -1)), da.from_array(y, chunks=75))
    assert recorder.begun[0] == ("fit", type(model).__name__)
    np.testing.assert_array_equal(recorder.fitted[-1].predict(X), model.predict(X))
    for each in (model.local_, model.to_local()):
        assert not any("callback" in name for name in vars(each))
