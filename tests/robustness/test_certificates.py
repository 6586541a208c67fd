"""Certified intervals hold where kernel values differ by less than single precision resolves.

Takes some of the cases of ``benches/robustness/certificates.py``, the same every time.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

from helpers.scripts import robustness_script
from svmarrow import SVC, SVCCV, SVR, NuSVC, OneClassSVM

#: The step between two cases; it has no divisor in common with the lengths of the lists of cases.
STEP = 211


CERTIFICATES = robustness_script("certificates")
CASES = list(CERTIFICATES.cases())[::STEP]


@pytest.mark.quick_every(3)
@pytest.mark.parametrize(
    "case",
    [
        *CASES,
        CERTIFICATES.Case("iris, two classes", "rbf", 1e7, 1e-8),
        CERTIFICATES.Case("breast cancer", "rbf", 1e7, 1e-7),
        # Kernel values, even in extended precision, have fewer digits here than the certificate.
        CERTIFICATES.Case("regression", "poly", 1e7, 1e3),
        CERTIFICATES.Case("iris, three classes", "poly", 1e10, 1e-8),
    ],
    ids=lambda case: case.name,
)
def test_the_interval_contains_the_optimum(case):
    stop, fault = CERTIFICATES.outcome(case)
    assert not fault
    assert stop in ("converged", "max_iter", "stalled", "refused")


@pytest.mark.parametrize(
    "machine",
    [
        SVC(C=1e7, gamma=1e-8),
        SVC(C=1e7, gamma=1e-8, fit_intercept=False),
        SVC(C=1e7, gamma=1e-8, loss="squared_hinge"),
        SVC(C=1e7, gamma=1e-8, multi_class="ovr"),
        NuSVC(nu=0.2, gamma=1e-8, tol=1e-12),
        SVR(C=1e7, gamma=1e-8),
        OneClassSVM(gamma=1e-9, tol=1e-9),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_machine_continues_in_double_precision(machine):
    X, y = CERTIFICATES.SETS["iris, two classes"]()
    one, two = (
        (
            machine.set_params(n_jobs=n_jobs, max_iter=100_000).fit(X, y).certificate_.machines,
            machine.support_,
        )
        for n_jobs in (1, 2)
    )
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])
    (certificate,) = one[0]
    # Outputs of single precision are off by some 1e-8 of the sum of the coefficients.
    size = np.abs(machine.expansion_.coefficients).sum()
    assert certificate.rounding < 1e-11 * size
    assert certificate.dual <= certificate.primal


@pytest.mark.parametrize("names", [(1, 2), (0, 1, 2)])
def test_searches_go_on_in_double_precision(names):
    X, y = load_iris(return_X_y=True)
    chosen = np.isin(y, names)
    X, y = X[chosen], y[chosen]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    search = SVCCV(Cs=[1.0, 1e7], gammas=[1e-8], tol=1e-5, cv=folds).fit(X, y)
    # With C=1 all outputs are equal but for less than the tolerance.
    assert list(search.Cs_) == [1.0, 1e7]
    for k, (train, test) in enumerate(folds):
        expected = SVC(C=1e7, gamma=1e-8, tol=1e-5).fit(X[train], y[train]).score(X[test], y[test])
        assert expected > 0.8
        assert search.cv_results_[f"split{k}_test_score"][1] == pytest.approx(expected, abs=1e-12)
