"""scikit-learn's ensembles of kernel machines as one expansion: predictions are those of the ensemble."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as peer
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, VotingClassifier, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC, SVR, RLSClassifier, RLSRegressor, as_expansion, compress, load, save
from svmarrow.export import to_c
from svmarrow.svm import QuantileSVR

EXACT = {"rtol": 1e-9, "atol": 1e-9}
CLASSIFIERS = [SVC(gamma=0.3), peer.SVC(gamma=0.3), RLSClassifier(0.1, gamma=0.3)]
REGRESSORS = [SVR(gamma=0.02, C=20), peer.SVR(gamma=0.02, C=20), RLSRegressor(0.1, gamma=0.02)]


@pytest.fixture
def noisy(iris):
    """Rows on which machines disagree."""
    X, y = iris
    return X + np.random.default_rng(0).normal(scale=0.7, size=X.shape), y


@pytest.fixture
def binary(noisy):
    X, y = noisy
    return X[y != "a"], y[y != "a"]


@pytest.mark.parametrize("machine", REGRESSORS, ids=lambda machine: type(machine).__name__)
def test_averages_of_regressors(diabetes, machine, tmp_path):
    X, y = diabetes
    ensembles = [
        BaggingRegressor(machine, 5, max_samples=0.4, random_state=0),
        BaggingRegressor(machine, 5, max_samples=0.4, bootstrap=False, random_state=0),
        VotingRegressor([("a", machine), ("b", peer.SVR(gamma=0.02)), ("c", "drop")]),
        VotingRegressor([("a", machine), ("b", peer.SVR(gamma=0.02))], weights=[1.0, 3.0]),
    ]
    for ensemble in ensembles:
        ours = as_expansion(ensemble.fit(X[:300], y[:300]))
        np.testing.assert_allclose(ours.predict(X), ensemble.predict(X), **EXACT)
        assert ours.expansion_.n_outputs == 1
        assert ours.expansion_.n_vectors <= 300
        save(ensemble, tmp_path / "model.safetensors")
        assert np.array_equal(load(tmp_path / "model.safetensors").predict(X), ours.predict(X))
        small = compress(ensemble, n_vectors=40)
        assert small.score(X[300:], y[300:]) == pytest.approx(ensemble.score(X[300:], y[300:]), abs=0.1)
        assert to_c(ensemble).multiplications > 0


def test_averages_of_several_targets_and_of_sparse_rows(diabetes):
    X, y = diabetes
    Y = np.column_stack([y, -2 * y])
    model = BaggingRegressor(KernelRidge(kernel="rbf", gamma=0.02), 3, random_state=0).fit(X, Y)
    np.testing.assert_allclose(as_expansion(model).predict(X), model.predict(X), **EXACT)
    rows = sp.csr_array(X)
    model = BaggingRegressor(SVR(gamma=0.02), 3, random_state=0).fit(rows, y)
    np.testing.assert_allclose(as_expansion(model).predict(rows), model.predict(rows), **EXACT)


@pytest.mark.parametrize("machine", CLASSIFIERS, ids=lambda machine: type(machine).__name__)
@pytest.mark.parametrize("count", [1, 4, 5])
def test_votes_on_two_classes(binary, machine, count, tmp_path):
    X, y = binary
    ensembles = [
        BaggingClassifier(machine, count, max_samples=0.4, random_state=0),
        VotingClassifier([(str(j), clone_with(machine, 0.1 * 10**j)) for j in range(count)]),
    ]
    for ensemble in ensembles:
        ours = as_expansion(ensemble.fit(X, y))
        assert (ours.predict(X) == ensemble.predict(X)).all()
        assert ours.expansion_.n_outputs == count
        save(ensemble, tmp_path / "model.safetensors")
        assert (load(tmp_path / "model.safetensors").predict(X) == ensemble.predict(X)).all()
        assert to_c(ensemble).multiplications > 0


def clone_with(machine, value):
    name = "alpha" if isinstance(machine, RLSClassifier) else "C"
    return type(machine)(gamma=0.3).set_params(**{name: value})


def test_votes_on_the_boundary(binary):
    """Outputs of exactly zero vote for the second class, and a tie goes to the first."""
    X = np.array([[-1.0], [1.0]])
    model = BaggingClassifier(peer.SVC(kernel="linear"), 1, bootstrap=False).fit(X, ["a", "b"])
    origin = np.zeros((1, 1))
    assert model.decision_function(origin)[0] == 0.0
    assert as_expansion(model).predict(origin)[0] == model.predict(origin)[0] == "b"
    parts = [FrozenEstimator(peer.SVC(kernel="linear").fit(X + at, [0, 1])) for at in (-0.5, 0.5)]
    model = VotingClassifier([("a", parts[0]), ("b", parts[1])]).fit(X, ["a", "b"])
    assert as_expansion(model).predict(origin)[0] == model.predict(origin)[0] == "a"


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "inner",
    [
        BaggingRegressor(RLSRegressor(0.1, gamma=0.3), 4, random_state=0),
        VotingRegressor([("a", SVR(gamma=0.3)), ("b", RLSRegressor(gamma=0.3))]),
        BaggingClassifier(SVC(gamma=0.3), 4, random_state=0),
        BaggingClassifier(peer.SVC(gamma=0.3), 4, random_state=0),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_one_vs_rest_averages_decision_values(noisy, inner, classes):
    X, y = noisy
    rows = y != "a" if classes == 2 else np.ones(len(y), dtype=bool)
    model = OneVsRestClassifier(inner).fit(X[rows], y[rows])
    ours = as_expansion(model)
    assert ours.expansion_.n_outputs == (1 if classes == 2 else 3)
    assert (ours.predict(X) == model.predict(X)).all()
    if hasattr(inner, "decision_function"):
        np.testing.assert_allclose(ours.decision_function(X), model.decision_function(X), **EXACT)


def test_features_in_another_order(diabetes):
    X, y = diabetes
    model = BaggingRegressor(SVR(gamma=0.02), 3, random_state=0).fit(X, y)
    seen = [np.random.default_rng(seed).permutation(10) for seed in range(3)]
    model.estimators_ = [SVR(gamma=0.02).fit(X[:, own], y) for own in seen]
    model.estimators_features_ = seen
    np.testing.assert_allclose(as_expansion(model).predict(X), model.predict(X), **EXACT)


def refused(noisy):
    X, y = noisy
    two = y != "a"
    binary = (X[two], y[two])
    sigmoids = CalibratedClassifierCV(SVC(gamma=0.3), ensemble=False)
    machines = [("a", SVC(gamma=0.3)), ("b", SVC(gamma=0.3, C=9))]
    remedy = r"OneVsRestClassifier\(BaggingRegressor\(...\)\)"
    return [
        (BaggingClassifier(SVC(gamma=0.3), 3), (X, y), f"votes of machines for 3 classes.*{remedy}"),
        (VotingClassifier(machines), (X, y), f"votes of machines for 3 classes.*{remedy}"),
        (BaggingClassifier(sigmoids, 3, random_state=0), binary, f"averages probabilities.*{remedy}"),
        (
            VotingClassifier([("a", sigmoids), ("b", sigmoids)], voting="soft"),
            binary,
            f"this VotingClassifier averages probabilities.*{remedy}",
        ),
        (VotingClassifier(machines, weights=[1, 2]), binary, r"weights=\[1, 2\].*set weights=None"),
        (BaggingClassifier(SVC(gamma=0.3), 3, max_features=2), binary, "sees 2 of 4 features"),
        (BaggingClassifier(SVC(gamma=0.3), 3, bootstrap_features=True), binary, "sees . of 4 features"),
        (
            BaggingClassifier(OneVsRestClassifier(RLSRegressor(gamma=0.3)), 2, random_state=0),
            binary,
            None,
        ),
        (VotingClassifier([("a", SVC(gamma=0.3)), ("b", SVC(gamma=0.2))]), binary, None),
        (OneVsOneClassifier(BaggingClassifier(SVC(gamma=0.3), 3)), (X, y), "labels by votes"),
        (OneVsRestClassifier(sigmoids), (X, y), "it has no decision_function"),
        (CalibratedClassifierCV(BaggingClassifier(SVC(gamma=0.3), 3), ensemble=False), binary, None),
        (
            CalibratedClassifierCV(
                make_pipeline(StandardScaler(), BaggingClassifier(SVC(gamma=0.3), 3)), ensemble=False
            ),
            binary,
            None,
        ),
        (
            BaggingClassifier(make_pipeline(StandardScaler(), SVC(gamma=0.3)), 3),
            binary,
            "put what it does before",
        ),
    ]


def test_ensembles_that_are_not_one_expansion_are_refused(noisy):
    for model, (X, y), words in refused(noisy):
        model.fit(X, y)
        if words is None:
            assert (as_expansion(model).predict(X) == model.predict(X)).all()
            continue
        with pytest.raises(ValueError, match=words):
            as_expansion(model)


def test_averages_over_samples_are_refused(binary):
    X = binary[0]
    machine = QuantileSVR(gamma=0.3, quantile=[0.2, 0.8])
    model = VotingRegressor([("a", machine), ("b", machine)]).fit(X, X[:, 0])
    assert model.predict(X).shape == (2, 2)
    with pytest.raises(ValueError, match="VotingRegressor has machines of several outputs"):
        as_expansion(model)


def test_ensembles_that_are_not_fitted_or_hold_other_models_are_refused(binary):
    X, y = binary
    for model in (
        BaggingClassifier(SVC()),
        BaggingRegressor(SVR()),
        VotingClassifier([("a", SVC())]),
        VotingRegressor([("a", SVR())]),
    ):
        with pytest.raises(NotFittedError, match=f"this {type(model).__name__} is not fitted"):
            as_expansion(model)
    with pytest.raises(TypeError, match="DecisionTreeRegressor is not a kernel expansion"):
        as_expansion(BaggingRegressor(None, 2).fit(X, y == "b"))
