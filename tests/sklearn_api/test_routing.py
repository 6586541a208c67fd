"""Weights by scikit-learn's metadata routing: they arrive, and what nobody asked for is an error."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from helpers.comparison import answers
from helpers.public import PUBLIC
from svmarrow import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    CodedClassifier,
    KMPClassifier,
    KMPRegressor,
    LowRankSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    ReducedSet,
    RLSClassifier,
    RLSRegressor,
    TabularClassifier,
    TabularRegressor,
)
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.least_squares import (
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
)
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.preprocessing import LearnedScaler
from svmarrow.svm import QuantileSVR

X, KIND = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
NUMBER = load_diabetes().target[: len(X)] / 100.0
WEIGHTS = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)

#: Learners, each by itself.
PLAIN = [
    SVC(),
    NuSVC(nu=0.2),
    LowRankSVC(20, random_state=0),
    RLSClassifier(),
    LinearRLSClassifier(),
    LowRankRLSClassifier(20, random_state=0),
    KMPClassifier(n_vectors=8),
    SVR(),
    NuSVR(),
    QuantileSVR(),
    RLSRegressor(),
    LinearRLSRegressor(),
    LowRankRLSRegressor(20, random_state=0),
    KMPRegressor(n_vectors=8),
    OneClassSVM(),
    TabularClassifier(n_samples=50),
    TabularRegressor(n_samples=50),
    LearnedScaler(max_iter=1, shape="standard"),
    SVCCV(Cs=2, gammas=2, cv=2),
    SVRCV(Cs=2, gammas=2, cv=2),
    QuantileSVRCV(Cs=[1.0], gammas=[0.3], cv=2),
]
#: Meta-estimators around a learner.
META = [
    (CodedClassifier, SVC(), {}),
    (CodedClassifier, RLSClassifier(), {"code": "complete", "class_weight": "balanced"}),
    (CodedClassifier, KMPClassifier(n_vectors=5), {"n_jobs": 2}),
    (ReducedSet, SVC(), {"n_vectors": 8}),
    (ExactCascade, SVC(), {}),
    (CalibratedCascade, SVC(), {"random_state": 0}),
]
meta = pytest.mark.parametrize(
    ("kind", "inner", "options"), META, ids=lambda case: " ".join(repr(case).split())
)


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def asking(estimator, name=True):
    return clone(estimator).set_fit_request(sample_weight=name)


def made(kind, inner, options, name=True):
    """A meta-estimator whose estimator asks for weights."""
    return kind(asking(inner, name), **options)


def target(estimator):
    return NUMBER if is_regressor(estimator) else KIND


def outputs(model):
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.model_.outputs(X) if hasattr(model, "model_") else answers(model, X)


def directly(estimator, **fit):
    """The estimator's outputs by a fit without any routing."""
    with sklearn.config_context(enable_metadata_routing=False):
        return outputs(clone(estimator).fit(X, target(estimator), **fit))


@pytest.mark.parametrize("estimator", PLAIN, ids=lambda of: type(of).__name__)
def test_weights_arrive_in_a_learner(estimator):
    expected = directly(estimator, sample_weight=WEIGHTS)
    assert not np.array_equal(expected, directly(estimator))
    pipeline = make_pipeline(asking(estimator)).fit(X, target(estimator), sample_weight=WEIGHTS)
    assert np.array_equal(outputs(pipeline[-1]), expected)
    with pytest.raises(UnsetMetadataPassedError, match=f"{type(estimator).__name__}.fit"):
        make_pipeline(clone(estimator)).fit(X, target(estimator), sample_weight=WEIGHTS)


@meta
def test_weights_arrive_inside_a_meta_estimator(kind, inner, options):
    plain = kind(inner, **options)
    expected = directly(plain, sample_weight=WEIGHTS)
    assert not np.array_equal(expected, directly(plain))
    y = target(plain)
    assert np.array_equal(outputs(made(kind, inner, options).fit(X, y, sample_weight=WEIGHTS)), expected)
    by_name = made(kind, inner, options, "counts").fit(X, y, counts=WEIGHTS)
    assert np.array_equal(outputs(by_name), expected)
    pipeline = make_pipeline(made(kind, inner, options)).fit(X, y, sample_weight=WEIGHTS)
    assert np.array_equal(outputs(pipeline[-1]), expected)


@meta
def test_metadata_without_a_request_is_an_error(kind, inner, options):
    plain = kind(clone(inner), **options)
    y, name = target(plain), type(inner).__name__
    for model in (plain, make_pipeline(plain)):
        with pytest.raises(UnsetMetadataPassedError, match=f"{name}.fit"):
            model.fit(X, y, sample_weight=WEIGHTS)
        with pytest.raises(TypeError, match="colours"):
            model.fit(X, y, colours=WEIGHTS)
    with (
        sklearn.config_context(enable_metadata_routing=False),
        pytest.raises(ValueError, match=f"colours cannot be passed to {kind.__name__}.fit"),
    ):
        plain.fit(X, y, colours=WEIGHTS)
    assert not vars(plain).keys() - plain.get_params(deep=False).keys()


@meta
def test_a_fit_without_metadata_asks_for_no_requests(kind, inner, options):
    plain = kind(inner, **options)
    assert np.array_equal(outputs(clone(plain).fit(X, target(plain))), directly(plain))


def test_a_pipeline_inside_gets_weights_from_every_thread():
    """Without routing a pipeline takes no weights; with it, threads must know that routing is on."""
    inner = make_pipeline(StandardScaler(), asking(SVC(), "counts"))
    model = CodedClassifier(inner, decoder="hinge", n_jobs=2).fit(X, KIND, counts=WEIGHTS)
    same = [
        SVC().fit(StandardScaler().fit_transform(X), np.where(kind == KIND, 1, -1), sample_weight=WEIGHTS)
        for kind in range(3)
    ]
    expected = np.column_stack([machine.decision_function(X) for machine in same])
    assert model.outputs(X) == pytest.approx(expected, abs=5e-3)
    plain = CodedClassifier(make_pipeline(SVC()), decoder="hinge")
    with sklearn.config_context(enable_metadata_routing=False), pytest.raises(ValueError, match="takes no"):
        plain.fit(X, KIND, sample_weight=WEIGHTS)


@meta
def test_metadata_requests_may_rename_weights(kind, inner, options):
    """Another name for weights on their way through a pipeline."""
    y = target(kind(inner, **options))
    model = made(kind, inner, options).set_fit_request(sample_weight="counts")
    pipeline = make_pipeline(model).fit(X, y, counts=WEIGHTS)
    assert np.array_equal(outputs(pipeline[-1]), directly(kind(inner, **options), sample_weight=WEIGHTS))
    # What an estimator has declined is left out.
    declined = kind(asking(inner, False), **options).fit(X, y, sample_weight=WEIGHTS)
    assert np.array_equal(outputs(declined), directly(kind(inner, **options)))


WITHIN = [
    SVC(),
    SVR(),
    CodedClassifier(SVC()),
    ReducedSet(SVC(), 8),
]
within = pytest.mark.parametrize("estimator", WITHIN, ids=lambda of: type(of).__name__)
POSITIVE = WEIGHTS + 1.0


def that_asks(estimator):
    """The estimator, or the one inside it, asks for weights."""
    estimator = clone(estimator)
    getattr(estimator, "estimator", estimator).set_fit_request(sample_weight=True)
    return estimator


@within
def test_weights_arrive_in_a_search(estimator):
    name = "C" if isinstance(estimator, (SVC, SVR)) else "estimator__C"
    asks = that_asks(estimator).set_score_request(sample_weight=True)
    search = GridSearchCV(asks, {name: [1.0]}, cv=3)
    search.fit(X, target(estimator), sample_weight=POSITIVE)
    assert np.array_equal(outputs(search.best_estimator_), directly(estimator, sample_weight=POSITIVE))
    silent = clone(estimator).set_score_request(sample_weight=True)
    with pytest.raises(ValueError, match="not explicitly set as requested"):
        GridSearchCV(silent, {name: [1.0]}, cv=3).fit(X, target(estimator), sample_weight=POSITIVE)


@pytest.mark.parametrize("estimator", [WITHIN[0], *WITHIN[2:4]], ids=lambda of: type(of).__name__)
def test_weights_arrive_in_calibration(estimator):
    model = CalibratedClassifierCV(that_asks(estimator), ensemble=False, cv=3)
    model.set_fit_request(sample_weight=True).fit(X, KIND, sample_weight=POSITIVE)
    fitted = model.calibrated_classifiers_[0].estimator
    assert np.array_equal(outputs(fitted), directly(estimator, sample_weight=POSITIVE))
    with pytest.raises(UnsetMetadataPassedError, match="fit"):
        CalibratedClassifierCV(clone(estimator), cv=3).fit(X, KIND, sample_weight=POSITIVE)


@within
def test_weights_arrive_in_votes(estimator):
    votes = VotingRegressor if is_regressor(estimator) else VotingClassifier
    model = votes([("one", that_asks(estimator))]).fit(X, target(estimator), sample_weight=WEIGHTS)
    assert np.array_equal(outputs(model.estimators_[0]), directly(estimator, sample_weight=WEIGHTS))
    with pytest.raises(UnsetMetadataPassedError, match="fit"):
        votes([("one", clone(estimator))]).fit(X, target(estimator), sample_weight=WEIGHTS)


@within
def test_weights_arrive_in_a_stack(estimator):
    regresses = is_regressor(estimator)
    stack, last = (StackingRegressor, RLSRegressor()) if regresses else (StackingClassifier, RLSClassifier())
    model = stack([("one", that_asks(estimator))], that_asks(last), cv=3)
    model.fit(X, target(estimator), sample_weight=POSITIVE)
    assert np.array_equal(outputs(model.estimators_[0]), directly(estimator, sample_weight=POSITIVE))
    with pytest.raises(UnsetMetadataPassedError, match="fit"):
        stack([("one", clone(estimator))], that_asks(last)).fit(X, target(estimator), sample_weight=POSITIVE)


def test_every_estimator_that_takes_weights_is_here():
    public = {PUBLIC[name] for name in PUBLIC}
    estimators = {kind for kind in public if hasattr(kind, "get_params")}
    takes = {kind for kind in estimators if has_fit_parameter(kind, "sample_weight")}
    assert takes == {type(one) for one in PLAIN} | {kind for kind, _, _ in META}
    routers = {kind for kind in estimators if "estimator" in signature(kind).parameters}
    assert routers == {kind for kind, _, _ in META}
    for kind, inner, options in META:
        routing = get_routing_for_object(made(kind, inner, options))
        assert routing.consumes("fit", ["sample_weight"]) == {"sample_weight"}
