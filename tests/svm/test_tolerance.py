"""Tolerances below rounding, and bounds far beyond the data: fits end and say how."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_moons
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


def test_low_rank_machines_end_whatever_the_weights():
    rows, labels = make_moons(300, noise=0.3, random_state=0)
    weights = np.full(300, 1e12)
    assert LowRankSVC().max_iter == 10_000_000
    model = LowRankSVC(50, gamma=0.5, random_state=0, max_iter=100_000)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(rows, labels, sample_weight=weights)
    certificate = model.certificate_.machines[0]
    assert certificate.stop == "max_iter"
    assert certificate.iterations <= 100_000
    assert certificate.violation > model.tol
    assert certificate.gap > 0
    assert np.isfinite(model.decision_function(rows)).all()
