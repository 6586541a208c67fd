"""Fits that get nowhere end as stalled; fits that are only slow are left alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning

from svmarrow import SVC, SVR, NuSVC, NuSVR, OneClassSVM

X, Y = (part[:120] for part in load_digits(return_X_y=True))


def test_kernel_values_that_have_lost_their_differences_end_as_stalled():
    # Double precision keeps sums of 1e14 to a hundredth, and distances are some thousands: rounding may
    # move an output by more than the tolerance.
    # Rows are refused before it comes to that; a matrix is taken as it is.
    far = X + 1e6
    with pytest.warns(ConvergenceWarning, match=r"stalled.*rounding may have moved an output"):
        model = SVC(kernel="precomputed", fit_intercept=False).fit(far @ far.T, Y)
    stops = {machine.stop for machine in model.certificate_.machines}
    assert stops == {"converged", "stalled"}
    assert model.certificate_.stop == "stalled"
    assert model.fit_status_ == 1
    for machine in model.certificate_.machines:
        assert np.isfinite(machine.dual)
        assert machine.violation <= 1e-3 or machine.stop == "stalled"
        assert max(machine.violation, machine.rounding) > 1e-3 or machine.stop == "converged"


def test_steps_that_would_need_days_end_as_stalled():
    """Kernel values of 1e12 for targets of 1: each of a million steps gains 1e-13 of a gap of hundreds."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(60, 5))
    targets = np.sin(3.0 * rows[:, 0]) + rows[:, 1] ** 2
    rows *= 1e6
    model = NuSVR(kernel="precomputed", nu=0.9, C=0.53, tol=1e-5, max_iter=30_000_000)
    with pytest.warns(ConvergenceWarning, match="stalled"):
        certificate = model.fit(rows @ rows.T, targets).certificate_.machines[0]
    assert certificate.stop == "stalled"
    # Gradients that do not follow the rounding of the coefficients move the primal objective away, to 1e5.
    assert certificate.gap < 200.0


def test_kernel_values_that_are_nearly_equal_are_factored():
    """Values of a smooth function have some twenty dimensions: steps alone left 2e-4 of the objective."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(93, 1))
    labels = np.digitize(rows[:, 0] + rng.normal(size=93), [-0.6, 0.6])
    kernel = np.exp(-((rows - rows.T) ** 2))
    model = NuSVC(kernel="precomputed", tol=1e-7, max_iter=10_000_000)
    certificate = model.fit(kernel, labels, sample_weight=np.full(93, 1e3)).certificate_
    assert certificate.stop == "converged"
    assert certificate.primal - certificate.dual <= 1e-9 * abs(certificate.primal)


def test_a_very_large_c_in_two_columns():
    """Ten million steps left 96 % of the objective."""
    rows, labels = make_moons(600, noise=0.25, random_state=0)
    certificate = SVC(C=1e8, gamma=0.5, max_iter=30_000_000).fit(rows, labels).certificate_
    assert certificate.stop == "converged"
    assert certificate.primal - certificate.dual <= 1e-3 * certificate.primal


def test_a_kernel_that_is_not_positive_semidefinite_has_no_factor():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 2))
    model = SVC(kernel="sigmoid", gamma=2.0, coef0=-1.0, C=1e9, max_iter=30_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        certificate = model.fit(rows, rng.normal(size=40) > 0.0).certificate_
    assert certificate.stop in ("stalled", "converged", "max_iter")


@pytest.mark.parametrize(
    "machine",
    [
        SVC(kernel="linear", C=1e6, max_iter=300_000),
        SVC(C=1e12, gamma=0.01, max_iter=300_000),
        SVC(C=1e9, loss="squared_hinge", gamma=0.01, max_iter=300_000),
        SVC(kernel="linear", C=1e10, fit_intercept=False, max_iter=300_000),
        SVR(kernel="linear", C=1e8, epsilon=0.01, max_iter=300_000),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_slow_fits_with_a_large_c_are_no_stalls(machine):
    rows, labels = make_classification(200, 6, n_informative=4, flip_y=0.3, class_sep=0.5, random_state=3)
    certificate = machine.fit(rows, labels).certificate_.machines[0]
    assert certificate.stop in ("converged", "max_iter")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_time_is_looked_at_within_a_block():
    rows, labels = make_classification(250, 6, n_informative=4, flip_y=0.4, class_sep=0.1, random_state=3)
    # A block of 250 rows would go on for 800,000 steps before a round ends.
    model = SVC(gamma=0.01, C=1e12, max_time=0.02, n_jobs=1).fit(rows, labels)
    certificate = model.certificate_.machines[0]
    assert certificate.stop == "max_time"
    assert certificate.iterations < 800_000
    assert np.isfinite(model.decision_function(rows)).all()


@pytest.mark.parametrize(
    "machine",
    [SVC(kernel="poly", degree=2), SVC(kernel="linear", fit_intercept=False), OneClassSVM(kernel="linear")],
    ids=str,
)
def test_rows_that_a_kernel_does_not_tell_apart_are_refused(machine):
    assert machine.fit(X + 100.0, Y).fit_status_ == 0
    with pytest.raises(ValueError, match=r"X=rows far from the origin.*must be scaled"):
        machine.fit(X + 1e9, Y)
    # Rows that are all equal have no distances to lose.
    if isinstance(machine, OneClassSVM):
        machine.fit(np.full((20, 3), 1e6))
