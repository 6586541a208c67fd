"""Linear and polynomial machines in few columns of very different scales, where SMO steps get nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

import svmarrow
from svmarrow.svm import QuantileSVR

RANDOM = np.random.default_rng(0)
#: The shape and the scales of a signature matrix of gene expression: columns of 1 to 100,000.
SIGNATURES = RANDOM.lognormal(5.0, 2.0, (547, 22))
TARGETS = SIGNATURES @ RANDOM.dirichlet(np.ones(22)) * np.exp(0.1 * RANDOM.normal(size=547))
NOISE = np.exp(0.2 * RANDOM.normal(size=547))
SIDES = np.where(np.median(TARGETS) * NOISE < TARGETS, 1, 0)
#: SMO steps alone need tens of millions, or do not end.
MAX_STEPS = 1_000_000
#: With certificates that count the rounding of each kernel value the gap was half of the objective.
MAX_GAP_SHARE = 5e-3


def machines() -> dict[str, tuple[Any, Any]]:
    return {
        "SVC": (svmarrow.SVC(kernel="linear", C=10.0), SIDES),
        "SVC, squared hinge": (svmarrow.SVC(kernel="linear", C=1e-3, loss="squared_hinge"), SIDES),
        "SVR": (svmarrow.SVR(kernel="linear"), TARGETS),
        "NuSVR": (svmarrow.NuSVR(kernel="linear"), TARGETS),
        "NuSVR, standardised targets": (
            svmarrow.NuSVR(kernel="linear"),
            (TARGETS - TARGETS.mean()) / TARGETS.std(),
        ),
        "OneClassSVM": (svmarrow.OneClassSVM(kernel="linear", nu=0.1), None),
        "QuantileSVR": (QuantileSVR(kernel="linear", quantile=0.8), TARGETS),
    }


@pytest.mark.parametrize("layout", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("name", list(machines()))
def test_fits_on_raw_columns_end_and_are_certified(name: str, layout: str) -> None:
    model, y = machines()[name]
    X: Any = SIGNATURES.astype(np.float32) if layout == "float32" else SIGNATURES
    model.fit(sparse.csr_matrix(X) if layout == "sparse" else X, y)
    for machine in model.certificate_.machines:
        assert machine.stop == "converged"
        assert machine.iterations < MAX_STEPS
        assert machine.gap <= MAX_GAP_SHARE * abs(machine.primal)


def test_the_objective_is_that_of_its_definition() -> None:
    model = svmarrow.SVR(kernel="linear", C=2.0, epsilon=0.5).fit(SIGNATURES, TARGETS)
    machine = model.certificate_.machines[0]
    weights = model.dual_coef_ @ model.support_vectors_
    losses = np.maximum(0.0, np.abs(TARGETS - model.predict(SIGNATURES)) - 0.5)
    objective = 0.5 * float(np.sum(weights**2)) + 2.0 * losses.sum()
    assert machine.dual <= objective * (1 + 1e-9)
    assert objective <= machine.primal * (1 + 1e-6)
    assert abs(model.dual_coef_.sum()) <= 1e-9 * np.abs(model.dual_coef_).sum()
    assert np.abs(model.dual_coef_).max() <= 2.0


def test_units_of_the_columns_do_not_decide_whether_a_fit_ends() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    models = [svmarrow.SVC(kernel="linear", C=C) for C in (1.0, 1e4)]
    for model in [*models, svmarrow.NuSVC(kernel="linear", nu=0.1)]:
        machine = model.fit(X, y).certificate_.machines[0]
        assert machine.stop == "converged"
        assert machine.iterations < MAX_STEPS
        assert machine.gap <= MAX_GAP_SHARE * abs(machine.primal)
        assert model.score(X, y) > 0.95


def test_threads_do_not_change_a_bit() -> None:
    first, second = (
        svmarrow.NuSVR(kernel="linear", n_jobs=n_jobs).fit(SIGNATURES, TARGETS) for n_jobs in (1, 3)
    )
    assert np.array_equal(first.dual_coef_, second.dual_coef_)
    assert first.intercept_ == second.intercept_


def test_each_machine_of_a_classifier_decides_for_itself() -> None:
    random = np.random.default_rng(3)
    y = random.integers(0, 4, 547)
    X = SIGNATURES * np.exp(0.3 * y)[:, None]
    model = svmarrow.SVC(kernel="linear").fit(X, y)
    for machine in model.certificate_.machines:
        assert machine.stop == "converged"
        assert machine.iterations < MAX_STEPS
        assert machine.gap <= 0.1 * machine.primal


def test_weights_may_have_any_scale() -> None:
    random = np.random.default_rng(5)
    weights = 10.0 ** random.integers(-6, 2, 547)
    for model, options in [
        (svmarrow.SVC(kernel="linear", C=10.0), {"sample_weight": weights}),
        (svmarrow.SVC(kernel="linear", C=10.0, class_weight={0: 1e-3, 1: 50.0}), {}),
    ]:
        machine = model.fit(SIGNATURES, SIDES, **options).certificate_.machines[0]
        assert machine.stop == "converged"
        assert machine.iterations < MAX_STEPS
        assert machine.gap <= MAX_GAP_SHARE * machine.primal


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_gaps_in_raw_columns(layout: str) -> None:
    # Variables inside their bounds that a last step would move over them stay there, and the sum is kept.
    random = np.random.default_rng(0)
    X: Any = np.where(random.random((300, 6)) < 0.6, 0.0, random.lognormal(3.0, 2.0, (300, 6)))
    y = X @ random.normal(size=6) + 50.0 * random.normal(size=300) > 0.0
    model = svmarrow.SVC(kernel="linear", C=100.0).fit(sparse.csr_matrix(X) if layout == "sparse" else X, y)
    assert model.certificate_.stop == "converged"
    assert model.certificate_.machines[0].iterations < MAX_STEPS


def test_columns_that_are_far_away_or_zero() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2)) - 1e4
    X = np.where(random.random(X.shape) < 0.5, 0.0, X)
    y = np.round(np.sin(X[:, 0]) + X[:, 1] % 3.0)
    for model in (svmarrow.NuSVR(kernel="linear"), svmarrow.SVR(kernel="linear")):
        model.fit(X, y)
        assert model.certificate_.stop == "converged"
        assert model.certificate_.machines[0].iterations < MAX_STEPS


def raw_columns() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.lognormal(3.0, 2.0, (300, 5))
    return X, X @ random.normal(size=5) + 50.0 * random.normal(size=300)


@pytest.mark.parametrize("layout", ["dense", "float32", "sparse"])
@pytest.mark.parametrize(
    "model",
    [
        svmarrow.SVC(kernel="poly", degree=3, coef0=1.0, C=1e4),
        svmarrow.SVC(kernel="poly", degree=2, coef0=1.0, C=1e4, loss="squared_hinge"),
        svmarrow.SVR(kernel="poly", degree=2, coef0=1.0, C=100.0),
        svmarrow.NuSVR(kernel="poly", degree=2, coef0=1.0, C=100.0),
    ],
    ids=repr,
)
def test_polynomial_kernels_on_raw_columns(model: Any, layout: str) -> None:
    X, y = raw_columns()
    rows = {"float32": X.astype(np.float32), "sparse": sparse.csr_matrix(X)}.get(layout, X)
    target = y > 0.0 if isinstance(model, svmarrow.SVC) else y
    machine = clone(model).fit(rows, target).certificate_.machines[0]
    assert machine.stop == "converged"
    assert machine.iterations < MAX_STEPS
    # Certificates by kernel values left a gap of half of the objective.
    assert machine.gap <= 1e-3 * machine.primal


def test_a_polynomial_machine_is_a_linear_one_of_its_monomials() -> None:
    X, y = raw_columns()
    X = X[:, :2] / 30.0
    a, b = X.T
    # (x'z + 1)^2 is the inner product of these columns.
    columns = np.column_stack([a**2, b**2, 2**0.5 * a * b, 2**0.5 * a, 2**0.5 * b, np.ones(300)])
    polynomial = svmarrow.SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=10.0, tol=1e-6).fit(X, y > 0.0)
    linear = svmarrow.SVC(kernel="linear", C=10.0, tol=1e-6).fit(columns, y > 0.0)
    outputs = linear.decision_function(columns)
    assert np.abs(polynomial.decision_function(X) - outputs).max() <= 1e-4 * np.ptp(outputs)
    assert polynomial.certificate_.dual == pytest.approx(linear.certificate_.dual, rel=1e-6)


@pytest.mark.parametrize("degree", [3, 4])
def test_kernel_values_with_too_few_digits_end(degree: int) -> None:
    # Kernel values of 1e16 differ by less than their rounding: no method finds the optimum.
    random = np.random.default_rng(0)
    X, y = random.normal(size=(66, 2)) + 100.0, random.integers(0, 4, size=66)
    model = svmarrow.SVC(kernel="poly", degree=degree, coef0=0.5, C=74.0)
    with pytest.warns(svmarrow.exceptions.ConvergenceWarning, match="stalled"):
        model.fit(X, y)
    for machine in model.certificate_.machines:
        assert machine.iterations <= MAX_STEPS


def test_c_is_named_where_the_squared_loss_has_no_solution() -> None:
    # This kernel is not positive definite, and the squared loss bounds no coefficient.
    random = np.random.default_rng(0)
    X = random.uniform(size=(53, 5))
    model = svmarrow.SVC(kernel="sigmoid", loss="squared_hinge", C=7.0)
    with pytest.raises(ValueError, match="C=7e0 for these kernel values"):
        model.fit(X, random.integers(0, 2, size=53))
