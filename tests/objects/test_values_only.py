"""Low-rank training and compression for kernels that are known by their values: functions and matrices.

The oracle is the same work on rows of numbers whose inner products are the kernel values.
"""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons

from svmarrow import (
    SVC,
    SVR,
    LowRankSVC,
    OneClassSVM,
    ReducedSet,
    RLSRegressor,
    compress,
    compression_path,
    load,
)
from svmarrow.expansion.points import factor_points
from svmarrow.least_squares import LowRankRLSClassifier, LowRankRLSRegressor
from svmarrow.reduced_set import SelectionSettings

X, y = make_moons(240, noise=0.2, random_state=0)
NEW_X, new_y = make_moons(100, noise=0.2, random_state=1)
NUMBERS = X[:, 0] + 0.1 * np.sin(5.0 * X[:, 1])
WEIGHTS = np.arange(240) % 4 * 1.0


def gauss(A, B):
    return np.exp(-2.0 * cdist(A, B, "sqeuclidean"))


def hyperbolic(A, B):
    """A sigmoid kernel, which is not positive semidefinite."""
    return np.tanh(2.0 * A @ B.T - 1.0)


K, NEW_K = gauss(X, X), gauss(NEW_X, X)
RBF = {"kernel": "rbf", "gamma": 2.0}


def outputs(model, samples):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(samples)


def test_products_of_features_are_kernel_values():
    features, places, lines = factor_points(gauss, X[:40])
    np.testing.assert_allclose(lines @ lines.T, K[:40, :40], atol=1e-10)
    np.testing.assert_allclose(features.of(X) @ lines.T, K[:, :40], atol=1e-7)
    np.testing.assert_array_equal(features.points, X[:40][places])
    weights = np.random.default_rng(0).normal(size=(len(places), 2))
    coefficients = features.coefficients(weights)
    np.testing.assert_allclose(
        gauss(NEW_X, features.points) @ coefficients, features.of(NEW_X) @ weights, atol=1e-7
    )


def test_points_that_depend_on_others_are_left_out():
    _, places, lines = factor_points(gauss, np.repeat(X[:10], 3, axis=0))
    assert len(places) == lines.shape[1] == 10
    assert len(set(places // 3)) == 10
    rank = factor_points(lambda A, B: A @ B.T, X).places.size
    assert rank == 2


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (hyperbolic, np.linalg.LinAlgError, "not positive semidefinite"),
        (lambda A, B: A[:, :1] + 2.0 * B[:, 0], ValueError, "not symmetric"),
    ],
    ids=["indefinite", "unsymmetric"],
)
def test_a_kernel_without_features_is_refused(kernel, error, message):
    with pytest.raises(error, match=message):
        factor_points(kernel, X)
    with pytest.raises(error, match=message):
        LowRankSVC(50, kernel=kernel).fit(X, y)


METHODS = [
    {},
    {"leave_one_out": True},
    {"method": "subset", "leave_one_out": True},
    {"method": "nystrom"},
    {"fit_intercept": True},
]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal weights", "weights"])
@pytest.mark.parametrize("extra", METHODS, ids=str)
@pytest.mark.parametrize("learner", [LowRankRLSClassifier, LowRankRLSRegressor])
def test_low_rank_least_squares_of_a_function_and_of_a_matrix(learner, extra, weights):
    target = y if learner is LowRankRLSClassifier else NUMBERS
    options = {"n_vectors": 25, "alpha": 0.1, "random_state": 0, **extra}
    expected = learner(**options, **RBF).fit(X, target, weights)
    by_function = learner(**options, kernel=gauss).fit(X, target, weights)
    by_matrix = learner(**options, kernel="precomputed").fit(K, target, weights)
    want = outputs(expected, NEW_X)
    np.testing.assert_allclose(outputs(by_function, NEW_X), want, atol=1e-5)
    np.testing.assert_allclose(outputs(by_matrix, NEW_K), want, atol=1e-5)
    assert set(by_function.indices_) == set(by_matrix.indices_) == set(expected.indices_)
    if "leave_one_out" in extra:
        name = "loo_decision_" if learner is LowRankRLSClassifier else "loo_prediction_"
        np.testing.assert_allclose(getattr(by_function, name), getattr(expected, name), atol=1e-5)
        np.testing.assert_allclose(getattr(by_matrix, name), getattr(expected, name), atol=1e-5)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal weights", "weights"])
def test_low_rank_machine_of_a_function_and_of_a_matrix(weights, tmp_path):
    options = {"n_vectors": 25, "tol": 1e-6, "random_state": 0}
    want = outputs(LowRankSVC(**options, **RBF).fit(X, y, weights), NEW_X)
    by_function = LowRankSVC(**options, kernel=gauss).fit(X, y, weights)
    by_matrix = LowRankSVC(**options, kernel="precomputed").fit(K, y, weights)
    np.testing.assert_allclose(outputs(by_function, NEW_X), want, atol=1e-4)
    np.testing.assert_allclose(outputs(by_matrix, NEW_K), want, atol=1e-4)
    by_matrix.save(tmp_path / "model")
    np.testing.assert_array_equal(outputs(load(tmp_path / "model"), NEW_K), outputs(by_matrix, NEW_K))


def test_a_stored_model_of_a_matrix_has_its_path_of_penalties(tmp_path):
    model = LowRankRLSRegressor(25, kernel="precomputed", random_state=0).fit(K, NUMBERS)
    model.save(tmp_path / "model")
    (other,) = load(tmp_path / "model").path([0.1])
    expected = LowRankRLSRegressor(25, alpha=0.1, kernel="precomputed", random_state=0).fit(K, NUMBERS)
    np.testing.assert_allclose(other.predict(NEW_K), expected.predict(NEW_K), atol=1e-8)
    with pytest.raises(ValueError, match=r"kernel='precomputed' is not allowed: .* partial_fit"):
        LowRankRLSRegressor(25, kernel="precomputed").partial_fit(K, NUMBERS)


MACHINES = {
    "classifier": (SVC(C=10.0), y),
    "regressor": (SVR(epsilon=0.05), NUMBERS),
    "least squares": (RLSRegressor(alpha=0.1), np.column_stack([NUMBERS, y])),
    "detector": (OneClassSVM(nu=0.3), None),
}


def fitted(name, samples, **parameters):
    model, target = MACHINES[name]
    parameters = {key: value for key, value in parameters.items() if key in model.get_params()}
    return type(model)(**{**model.get_params(), **parameters, "tol": 1e-6}).fit(samples, target)


@pytest.mark.parametrize("method", ["backfit", "prefit"])
@pytest.mark.parametrize("name", MACHINES)
def test_compression_of_a_function_and_of_a_matrix(name, method):
    options = {"n_vectors": 12, "method": method}
    target = MACHINES[name][1]

    def error(samples, new_samples, **parameters):
        model = fitted(name, samples, **parameters)
        small = compress(model, samples, target, **options)
        assert small.expansion_.n_vectors == 12
        return np.sqrt(np.mean((outputs(small, new_samples) - outputs(model, new_samples)) ** 2))

    expected = error(X, NEW_X, **RBF)
    # Vectors that are as good as each other are chosen by rounding.
    assert error(X, NEW_X, kernel=gauss) == pytest.approx(expected, rel=0.2)
    assert error(K, NEW_K, kernel="precomputed") == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("name", ["classifier", "regressor", "least squares"])
def test_the_rank_of_a_function_is_lossless(name):
    def linear(A, B):
        return A @ B.T

    model = fitted(name, X, kernel=linear)
    small = compress(model, X, MACHINES[name][1], n_vectors=50, method="rank")
    assert small.expansion_.n_vectors == 2
    full = model.expansion_.decision_function(NEW_X) - model.expansion_.intercepts
    left = small.expansion_.decision_function(NEW_X) - small.expansion_.intercepts
    np.testing.assert_allclose(left, full, atol=1e-6 * np.ptp(full))


def test_a_compression_to_a_loss_selects_and_bounds_it():
    model = SVC(C=10.0, kernel=gauss).fit(X, y)
    small = compress(model, NEW_X, new_y, max_loss=0.05, random_state=0)
    assert small.expansion_.n_vectors < model.expansion_.n_vectors
    assert small.loss_bound_.n_samples == 50
    path = compression_path(model, X, y, n_vectors=20)
    expected = compression_path(SVC(C=10.0, **RBF).fit(X, y), X, y, n_vectors=20)
    np.testing.assert_allclose(path.scores(NEW_X, new_y), expected.scores(NEW_X, new_y), atol=0.02)
    reduced = ReducedSet(SVC(C=10.0, kernel="precomputed"), n_vectors=10).fit(K, y)
    assert reduced.score(NEW_K, new_y) > 0.9


def test_an_indefinite_function_is_compared_by_predictions_or_refused():
    model = SVC(kernel=hyperbolic).fit(X, y)
    for settings in (None, SelectionSettings(criterion="predictions")):
        with pytest.raises(np.linalg.LinAlgError, match="not positive semidefinite"):
            compress(model, X, y, n_vectors=10, settings=settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_bytes": 1000}, "max_bytes=1000"),
        ({"n_vectors": 5, "dtype": "int8"}, "dtype='int8'"),
        ({"max_evaluations": 5}, "max_evaluations=5"),
        ({"n_vectors": 5, "method": "gradient"}, "method='gradient'"),
    ],
)
@pytest.mark.parametrize("kernel", [gauss, "precomputed"], ids=["function", "matrix"])
def test_what_reads_the_numbers_of_vectors_is_refused(kernel, options, message):
    samples = X if callable(kernel) else K
    model = SVC(kernel=kernel).fit(samples, y)
    with pytest.raises(ValueError, match=message):
        compress(model, samples, y, **options)


def test_a_matrix_without_the_values_between_vectors_is_refused():
    model = SVC(kernel="precomputed").fit(K, y)
    for samples in (None, NEW_K):
        with pytest.raises(ValueError, match=r"kernel matrix of all training samples"):
            compress(model, samples, None if samples is None else new_y, n_vectors=5)
    with pytest.raises(ValueError, match="candidates='samples'"):
        compression_path(SVC(kernel=gauss).fit(X, y), X, y, candidates="samples")
    for selection in ("kmeans", "leverage", X[:5]):
        with pytest.raises(ValueError, match="selection="):
            LowRankSVC(5, kernel="precomputed", selection=selection).fit(K, y)


@pytest.mark.parametrize("name", MACHINES)
def test_a_matrix_of_the_columns_of_the_vectors_is_enough(name):
    """`support_` says which; compressed models, whose vectors are a few of them, too."""
    model = fitted(name, K, kernel="precomputed")
    for machine in (model, model.as_expansion(), compress(model, K, MACHINES[name][1], n_vectors=7)):
        vectors = machine.expansion_.vectors[:, 0].astype(int)
        np.testing.assert_array_equal(machine.predict(NEW_K[:, vectors]), machine.predict(NEW_K))
        if hasattr(machine, "support_"):
            np.testing.assert_array_equal(vectors, machine.support_)
        for width in (len(vectors) + 1, 3):
            with pytest.raises(ValueError, match=f"X has {width} features, but .* is expecting 240 features"):
                machine.predict(np.ones((2, width)))
