"""Tolerances below rounding, and bounds far beyond the data: fits end and say how."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning

from svmarrow import SVC, SVR, LowRankSVC, NuSVC, NuSVR, OneClassSVM
from svmarrow.svm import QuantileSVR

X, Y = make_classification(600, 12, n_informative=8, flip_y=0.1, random_state=0)
T = X[:, 0] * X[:, 1]


@pytest.mark.parametrize("tol", [1e-16, 1e-300])
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (SVC(), Y),
        (SVC(C=100), Y),
        (SVC(kernel="poly", coef0=1, C=10), Y),
        (SVC(loss="squared_hinge"), Y),
        (SVC(kernel="linear"), Y),
        (NuSVC(nu=0.4), Y),
        (SVR(), T),
        (NuSVR(), T),
        (QuantileSVR([0.2, 0.9]), T),
        (OneClassSVM(nu=0.3), None),
        (LowRankSVC(60, C=10, random_state=0), Y),
    ],
    ids=str,
)
def test_a_tolerance_below_rounding_ends_with_a_warning(model, y, tol):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(tol=tol).fit(X, y)
    certificate = model.certificate_
    assert certificate.stop in ("converged", "stalled")
    # Rounding of gradients whose terms are of the size of the coefficients and kernel values.
    assert certificate.violation < 1e-10
    assert (certificate.violation <= tol) == (certificate.stop == "converged")
    assert any(w.category is ConvergenceWarning for w in caught) == (certificate.stop != "converged")


@pytest.mark.parametrize(
    ("model", "rows", "y"),
    [
        (OneClassSVM(nu=0.01, gamma=1.0), X, None),
        (OneClassSVM(nu=1e-6), X, None),
        (NuSVC(nu=0.1), X, Y),
        (SVR(C=1e4, epsilon=0.01), X[:, :3], 0.01 * T),
        (SVR(C=1e4, epsilon=0.1, gamma=1e-3), X[:, :1], 0.1001 * np.sign(T)),
        (NuSVR(C=100, nu=0.3), X[:200], T[:200]),
        (QuantileSVR([0.2, 0.9], C=100), X[:100], T[:100]),
        (SVC(C=1e5), X[:100], Y[:100]),
        (SVC(C=1e8, kernel="linear"), *make_blobs(100, centers=2, cluster_std=0.4, random_state=1)),
        (SVC(C=np.inf, gamma=1.0), X[:100], Y[:100]),
        (SVR(C=np.inf, gamma=1.0), X[:100], T[:100]),
        (SVC(C=1e6, loss="squared_hinge"), X[:100], Y[:100]),
        (SVC(C=1e6, fit_intercept=False), X[:100], Y[:100]),
        (LowRankSVC(60, C=1e4, random_state=0), X[:200], Y[:200]),
    ],
    ids=lambda value: str(value) if hasattr(value, "fit") else "",
)
def test_a_machine_with_a_large_gap_has_not_converged(model, rows, y):
    for machine in model.fit(rows, y).certificate_.machines:
        assert machine.stop == "converged"
        assert machine.dual <= machine.primal
        assert machine.gap <= 0.1 * abs(machine.primal)
        assert machine.violation <= model.tol


def test_an_objective_of_zero_is_no_large_gap():
    rng = np.random.default_rng(0)
    around = rng.normal(size=(200, 2))
    # The origin lies among the samples, and the classes are not separable: w = 0.
    for model, rows, y in (
        (OneClassSVM(nu=0.5, kernel="linear"), around, None),
        (NuSVC(nu=0.95, kernel="linear"), around, np.arange(200) % 2),
        (NuSVC(nu=0.1), *make_moons(200, noise=0.3, random_state=0)),
    ):
        certificate = model.fit(rows, y).certificate_
        assert certificate.stop == "converged"
        assert certificate.gap < 2e-4 * model.nu * 200
    for model in (SVR(), NuSVR(), QuantileSVR([0.5])):
        certificate = model.fit(around, np.full(200, 3.0)).certificate_
        assert (certificate.stop, certificate.gap) == ("converged", pytest.approx(0.0, abs=1e-7))


def test_low_rank_machines_end_whatever_the_weights():
    rows, labels = make_moons(300, noise=0.3, random_state=0)
    weights = np.full(300, 1e12)
    assert LowRankSVC().max_iter == 10_000_000
    model = LowRankSVC(50, gamma=0.5, random_state=0, max_iter=10_000)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(rows, labels, sample_weight=weights)
    certificate = model.certificate_.machines[0]
    assert certificate.stop == "max_iter"
    assert certificate.iterations <= 10_000
    assert certificate.violation > model.tol
    assert certificate.gap > 0
    assert np.isfinite(model.decision_function(rows)).all()
    # The interior-point method takes over once the steps have cost as much.
    model.set_params(max_iter=LowRankSVC().max_iter).fit(rows, labels, sample_weight=weights)
    certificate = model.certificate_.machines[0]
    assert certificate.stop == "converged"
    assert certificate.gap < 1e-2 * certificate.primal


@pytest.mark.parametrize("unit", [1e-3, 1e-6])
def test_tiny_targets_end(unit):
    # The objective is next to nothing for this C: no violation that can be reached leaves a small gap.
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(60, 2))
    target = unit * (np.sin(2.0 * samples[:, 0]) + (samples**2).mean(axis=1))
    model = NuSVR(gamma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(samples, target)
    assert model.certificate_.stop in ("converged", "stalled")
    assert model.certificate_.machines[0].iterations < 100_000 * 2 * 60
    assert model.certificate_.violation <= 1e-3 * np.ptp(target)


def test_tiny_targets_of_smooth_functions_end():
    # Steps alone reach no violation that is small against the targets; the factor of the kernel values does.
    rng = np.random.default_rng(165490279)
    samples = rng.normal(size=(64, 1))
    target = 1e-6 * (np.sin(2.0 * samples[:, 0]) + samples[:, 0] ** 2)
    samples[:21] = samples[21:42]
    samples -= samples.min()
    model = NuSVR(kernel="chi2", max_iter=30_000_000)
    machine = model.fit(samples, target, sample_weight=np.full(64, 1e3)).certificate_.machines[0]
    assert machine.stop == "converged"
    assert machine.iterations < 200_000 * 2 * 64
    assert machine.violation <= 1e-3 * np.ptp(target)


def test_rows_at_the_centre_have_no_rounding():
    # All kernel values about the centre are zero, for more support vectors than are measured one by one.
    y = np.repeat([0, 1], [108, 49])
    model = SVC(kernel="linear", C=0.34, class_weight="balanced").fit(np.ones((157, 1)), y)
    assert model.certificate_.stop == "converged"
    assert model.certificate_.machines[0].support > 128
