"""A model takes one packed copy beside its vectors; benches/robustness/model_memory.py has the long run."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from helpers.model_memory import measure
from svmarrow import KernelExpansion

#: Vectors of 16 MB in single precision, and 32 in double.
SHAPE = (10_000, 400)
#: What the allocator and buffers of rows add, in multiples of the vectors.
SLACK = 0.25

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the memory is read from /proc")


def _stays(sequence: str) -> dict[str, float]:
    """What stays after each step."""
    return {step: stays for step, _, stays in measure(sequence, *SHAPE)}


def test_vectors_in_single_precision_are_packed_once_for_each_precision_of_the_rows():
    stays = _stays("single precision")
    assert stays["predict"] < 1.0 + SLACK
    # Rows that leave single precision need the vectors in double precision, which are freed afterwards.
    assert stays["outlier"] < 1.0 + SLACK
    # Single predictions are in double precision: twice the bytes.
    assert stays["compiled"] < 3.0 + SLACK
    assert stays["predict double"] < 3.0 + SLACK


def test_vectors_in_double_precision_are_packed_once():
    assert max(_stays("double precision").values()) < 1.0 + SLACK


@pytest.mark.parametrize("sequence", ["concurrent", "concurrent double"])
def test_threads_that_predict_first_pack_the_model_once(sequence):
    steps = measure(sequence, *SHAPE)
    assert max(peak for _, peak, _ in steps) < 1.0 + SLACK
    assert max(stays for _, _, stays in steps) < 1.0 + SLACK


def test_outliers_of_large_models_have_the_outputs_of_double_precision():
    random = np.random.default_rng(0)
    Z, b = random.random((3000, 60), dtype="f"), random.normal(size=(3000, 2))
    model = KernelExpansion(Z, b, [0.0, 1.0], "matern12", gamma=1e-25)
    X = random.random((50, 60), dtype="f")
    plain = model.decision_function(X)
    mixed = X.copy()
    mixed[[3, 40]] *= np.float32(1e25)
    for _ in range(2):
        found = model.decision_function(mixed)
        exact = model.decision_function(mixed.astype("d"))
        np.testing.assert_array_equal(found[[3, 40]], exact[[3, 40]])
        others = np.delete(np.arange(50), [3, 40])
        np.testing.assert_array_equal(found[others], plain[others])
