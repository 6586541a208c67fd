"""Rows of pixels and counts, which are multiplied as bytes where the processor can: nobody may notice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_digits

from svmarrow import SVC, KernelExpansion

DIGITS, LABELS = load_digits(return_X_y=True)
# Multiples of 1, of 1/16, of 1/255, and rows that are none but for the last digits of single precision.
UNITS = {"counts": 1.0, "shares": 1 / 16, "pixels": 1 / 255, "none": np.pi / 16 / 3}


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_solution_is_libsvm_s(kernel, unit, dtype):
    X = (DIGITS[:400] * UNITS[unit]).astype(dtype)
    gamma = 0.02 / (16 * UNITS[unit]) ** 2
    given = {"kernel": kernel, "gamma": gamma, "C": 10.0, "tol": 1e-4, "degree": 2}
    given["coef0"] = 0.5 if kernel == "poly" else 0.0
    ours = SVC(**given).fit(X, LABELS[:400])
    theirs = svm.SVC(**given, decision_function_shape="ovo").fit(X.astype(np.float64), LABELS[:400])
    scores = ours.set_params(decision_function_shape="ovo").decision_function(X)
    np.testing.assert_allclose(scores, theirs.decision_function(X.astype(np.float64)), atol=5e-3)


@pytest.mark.parametrize("weights", [None, np.linspace(0.2, 3.0, 300)])
def test_bytes_and_single_precision_are_the_same_rows(weights):
    X, y = DIGITS[:300].astype(np.uint8), LABELS[:300]
    of_bytes = SVC(gamma=0.001).fit(X, y, weights)
    of_single = SVC(gamma=0.001).fit(X.astype(np.float32), y, weights)
    np.testing.assert_array_equal(of_bytes.support_, of_single.support_)
    np.testing.assert_array_equal(of_bytes.dual_coef_, of_single.dual_coef_)
    rows = DIGITS[300:500]
    np.testing.assert_array_equal(
        of_bytes.decision_function(rows.astype(np.uint8)),
        of_bytes.decision_function(rows.astype(np.float32)),
    )


def test_a_row_that_is_no_multiple_changes_no_other():
    vectors = (DIGITS[:90] / 16).astype(np.float32)
    coefficients = np.random.default_rng(0).normal(size=(90, 2))
    expansion = KernelExpansion(vectors, coefficients, np.array([0.5, -0.5]), "rbf", gamma=0.3)
    rows = (DIGITS[100:150] / 16).astype(np.float32)
    before = expansion.decision_function(rows)
    changed = rows.copy()
    changed[7] += 0.01
    changed[9, 3] = 1e6
    after = expansion.decision_function(changed)
    others = np.setdiff1d(np.arange(len(rows)), [7, 9])
    np.testing.assert_array_equal(before[others], after[others])
    exact = expansion.decision_function(changed.astype(np.float64))
    np.testing.assert_allclose(after, exact, atol=1e-4)
    np.testing.assert_array_equal(after[9], [0.5, -0.5])


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_sparse_rows_meet_dense_vectors_of_pixels(kernel):
    rows = (DIGITS[300:360] / 16).astype(np.float32)
    model = SVC(gamma=0.3, kernel=kernel).fit((DIGITS[:300] / 16).astype(np.float32), LABELS[:300])
    dense = model.expansion_.decision_function(rows)
    np.testing.assert_array_equal(model.expansion_.decision_function(sparse.csr_array(rows)), dense)
    np.testing.assert_array_equal(model.expansion_.decision_function(rows, n_jobs=1), dense)
