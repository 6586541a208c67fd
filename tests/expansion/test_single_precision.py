"""Predictions on rows in single precision: accurate to a thousandth of the spread of the outputs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from svmarrow import (
    SVC,
    SVR,
    KernelExpansion,
    KMPClassifier,
    KMPRegressor,
    OneClassSVM,
    RLSClassifier,
    RLSRegressor,
    as_expansion,
)
from svmarrow.models import ExpansionRegressor

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-1.0, 1.0, (400, 4))
FRESH = RANDOM.uniform(-1.0, 1.0, (300, 4))
TARGET = X @ [1.0, 2.0, -1.0, 0.5] + 0.01 * RANDOM.normal(size=400)


def relative_difference(model, rows):
    """Largest difference between outputs in double and single precision, relative to their spread.

    The rounding of the rows themselves counts for both.
    """
    single = rows.astype(np.float32)
    outputs = getattr(model, "decision_function", model.predict)
    exact, found = outputs(single.astype(np.float64)), outputs(single)
    return float((np.abs(found - exact).max(axis=0) / np.ptp(exact, axis=0)).max())


@pytest.mark.parametrize("alpha", [1e-8, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_small_penalties_and_units(alpha, unit):
    # Coefficients of up to 1e8 cancel to outputs of the size of the unit.
    model = RLSRegressor(alpha, gamma=0.05).fit(X, unit * TARGET)
    assert relative_difference(model, FRESH) < 1e-3
    several = RLSRegressor(alpha, gamma=0.05).fit(X, np.column_stack([unit * TARGET, TARGET**2]))
    assert relative_difference(several, FRESH) < 1e-3


@pytest.mark.parametrize(
    "model",
    [
        SVC(C=1e6, gamma=0.05),
        SVR(C=1e4, gamma=0.05, epsilon=0.02),
        RLSClassifier(1e-8, gamma=0.05),
        RLSRegressor(1e-6, kernel="poly", gamma=0.5, coef0=1.0, degree=4),
        RLSRegressor(1e-7, kernel="laplacian", gamma=0.05),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::svmarrow.exceptions.ConvergenceWarning")
def test_large_coefficients(model):
    kind = "class" if type(model).__name__ in ("SVC", "RLSClassifier") else "number"
    model.fit(X, 0.3 * np.sin(9.0 * X[:, 0]) < TARGET if kind == "class" else TARGET)
    assert relative_difference(model, FRESH) < 1e-3


def test_ordinary_models_stay_in_single_precision():
    # Otherwise rows in single precision would take twice the time: the outputs of both precisions differ.
    model = SVC(gamma=0.5).fit(X, TARGET > 0.0)
    single = FRESH.astype(np.float32)
    difference = model.decision_function(single) - model.decision_function(single.astype(np.float64))
    assert 0.0 < np.abs(difference).max() < 1e-4


def test_machines_whose_vectors_lie_on_the_boundary_stay_in_single_precision():
    # All outputs at the vectors are equal up to the tolerance, between them they are not.
    X_train = np.random.default_rng(0).normal(size=(400, 10)).astype(np.float32)
    assert not OneClassSVM(nu=0.003).fit(X_train).expansion_.needs_double()


def test_outputs_between_the_vectors_do_not_count_where_terms_cancel():
    # Terms of 5e5 cancel at the vectors, where outputs are of size 1, but not half-way to the one far away.
    vectors = np.append(np.linspace(-1.9, 2.1, 5), 20.0)[:, np.newaxis]
    target = np.where(vectors < 10.0, np.sin(3.0 * vectors), 1.0)
    coefficients = np.linalg.solve(np.exp(-0.02 * (vectors - vectors.T) ** 2), target)
    assert np.abs(coefficients).max() > 1e5
    expansion = KernelExpansion(vectors, coefficients, [0.0], kernel="rbf", gamma=0.02)
    near = np.linspace(-1.9, 2.1, 40)[:, np.newaxis]
    assert relative_difference(ExpansionRegressor(expansion), near) < 1e-3


def test_sums_of_several_kernels_cancel():
    target = np.sin(3.0 * X[:, 0]) + X[:, 1]
    model = KMPRegressor(60, gamma=(0.01, 0.05), random_state=0).fit(X, target)
    assert len(model.expansions_) == 2
    assert relative_difference(model, FRESH) < 1e-6


def test_an_intercept_far_from_all_outputs_does_not_count_as_spread():
    # The kernel value is nearly 1 for all samples, so that the outputs differ by some millionths.
    A = np.random.default_rng(0).normal(size=(40, 2)) * [0.0, 1e-3] + [1.0, 0.0]
    coefficients = np.random.default_rng(1).normal(size=(40, 1))
    expansion = KernelExpansion(A, coefficients, [0.0], kernel="rbf", gamma=0.5)
    assert expansion.needs_double()
    single = A.astype(np.float32)
    outputs = expansion.decision_function(single)
    difference = np.abs(outputs - expansion.decision_function(single.astype(np.float64))).max()
    assert difference <= 1e-3 * np.ptp(outputs)


def test_targets_far_from_zero_without_an_intercept():
    # All coefficients are positive, and the output between the two samples is another one by 3,000.
    A = np.arange(190)[:, np.newaxis] % 2 == 1
    model = RLSRegressor(0.013, gamma=4.0).fit(A, 1e4 + 0.005 * A[:, 0])
    assert relative_difference(model, A[:2]) < 1e-3


def test_the_output_of_an_outlier_is_no_spread():
    # gamma follows the sample far away, and the coefficients of 5e5 cancel at all others.
    A = np.random.default_rng(0).uniform(size=(60, 2)) + 100.0
    A[30] *= 30.0
    model = KMPClassifier(12, random_state=0).fit(A, A[:, 0] > A[:, 1])
    assert np.abs(model.expansion_.coefficients).max() > 1e5
    assert relative_difference(model, np.delete(A, 30, axis=0)) < 1e-3


def test_the_precision_belongs_to_the_model():
    # An output depends on its row alone, not on the others.
    model = RLSRegressor(1e-7, gamma=0.05).fit(X, 1e-3 * TARGET)
    single = FRESH.astype(np.float32)
    outputs = model.predict(single)
    assert np.array_equal(outputs[:7], model.predict(single[:7]))
    assert np.array_equal(outputs[5:6], model.predict(single[5:6]))
    # One vector, whose outputs have no spread but for the distance.
    expansion = KernelExpansion(X[:1], [[1.0]], [0.0], kernel="rbf", gamma=1.0)
    assert relative_difference(ExpansionRegressor(expansion), FRESH) < 1e-3


def test_linear_expansions_of_fewer_vectors_than_outputs():
    # Weights of the columns would be more numbers than the vectors, so kernel values of size 2e8 are summed.
    vectors = RANDOM.normal(size=(2, 2)) - 1e4
    coefficients = RANDOM.normal(size=(2, 5))
    expansion = KernelExpansion(vectors, coefficients, -2e8 * coefficients.sum(axis=0), kernel="linear")
    assert expansion.needs_double()
    assert relative_difference(ExpansionRegressor(expansion), FRESH[:, :2] - 1e4) < 1e-3


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern32"])
def test_distances_between_far_vectors(kernel):
    # Products of coordinates of 1e3 hide the distance of a row from itself: k(x, x) was .995.
    corners = np.array([[a, b, c] for a in (0.0, 1.0) for b in (0.0, 1.0) for c in (0.0, 1.0)])
    scale = 1e3 if kernel == "rbf" else 1e6
    rows = scale * corners + RANDOM.uniform(size=corners.shape).astype(np.float32)
    expansion = KernelExpansion(rows, RANDOM.normal(size=(8, 1)), [0.0], kernel=kernel, gamma=0.1)
    assert relative_difference(ExpansionRegressor(expansion), rows) < 1e-3


def test_the_steps_before_a_model_keep_its_precision():
    # A direction of small variance is stretched a thousand times: single precision loses its digits.
    narrow = np.column_stack([X, X[:, 0] + 1e-3 * RANDOM.normal(size=len(X))])
    pipeline = make_pipeline(PCA(whiten=True), RLSRegressor(1e-8, gamma=0.05)).fit(narrow, TARGET)
    assert relative_difference(as_expansion(pipeline), narrow[:100]) < 1e-3
