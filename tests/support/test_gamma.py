"""The width that rows suggest: exact under powers of 2, and refused where no number can say it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from svmarrow import SVC, SVR, RLSRegressor
from svmarrow._support.training import default_gamma

ROWS = np.random.default_rng(0).standard_normal((40, 3))
WEIGHTS = np.linspace(0.0, 2.0, 40)
LABELS = np.arange(40) % 2
FORMS = [np.asarray, sparse.csr_array]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weights", [None, WEIGHTS, WEIGHTS * 1e307, WEIGHTS * 1e-307])
@pytest.mark.parametrize("power", [-500, -400, -30, 30, 400, 500])
def test_powers_of_two_change_no_digit(form, weights, power):
    plain = default_gamma("scale", form(ROWS), kernel="rbf", weights=weights)
    scaled = default_gamma("scale", form(np.ldexp(ROWS, power)), kernel="rbf", weights=weights)
    assert scaled == np.ldexp(plain, -2 * power)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_a_shift_changes_little(form, weights):
    plain = default_gamma("scale", ROWS, kernel="rbf", weights=weights)
    shifted = default_gamma("scale", form(ROWS + 1e8), kernel="rbf", weights=weights)
    assert shifted == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [0.0, 0.1, 3.7, 1e-320, 1e200, -1.7e308])
def test_equal_rows_have_width_one(form, value):
    assert default_gamma("scale", form(np.full((41, 3), value)), kernel="rbf") == 1.0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-160, 1e160, 1e300])
def test_a_width_beyond_double_precision_is_refused_by_name(form, size):
    rows = form(np.sign(ROWS) * size)
    with pytest.raises(ValueError, match=r"gamma='scale'.*largest value of X.*scale X"):
        default_gamma("scale", rows, kernel="rbf")
    assert default_gamma("scale", rows, kernel="linear") == 1.0
    for learner in (SVC(), SVR(), RLSRegressor(kernel="laplacian")):
        with pytest.raises(ValueError, match="gamma='scale'"):
            learner.fit(rows, LABELS)


def test_numbers_and_auto_are_what_they_say():
    assert default_gamma("auto", ROWS, kernel="rbf") == 1.0 / 3.0
    assert default_gamma(0.25, ROWS, kernel="rbf") == 0.25
    assert default_gamma("scale", ROWS, kernel="precomputed") == 1.0
    assert default_gamma("scale", ROWS, kernel=np.dot) == 1.0
    assert default_gamma("scale", ROWS, kernel="rbf") == pytest.approx(1.0 / (3.0 * ROWS.var()), rel=1e-14)
