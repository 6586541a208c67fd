"""`max_time` in reductions: the vectors chosen within the time are a path where that is of use."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from helpers.reference import path_by
from svmarrow import KernelExpansion


def machine(m: int, d: int = 5, q: int = 1) -> KernelExpansion:
    random = np.random.default_rng(0)
    Z, B = random.standard_normal((m, d)), random.standard_normal((m, q))
    return KernelExpansion(Z, B, np.zeros(q), gamma=1 / d)


@pytest.mark.parametrize("method", ["rank", "l0", "l1", "lars", "backfit", "prefit"])
def test_when_the_time_is_over_the_vectors_chosen_so_far_are_a_path(method: str) -> None:
    """The time ends in the middle of the choice: afterwards their coefficients are solved for."""
    full = machine(1200)

    def path_within(seconds: float) -> Any:
        try:
            return path_by(method, full, n_vectors=1000, tol=0.0, max_time=seconds, n_jobs=1)
        except ValueError as error:
            # On a slow machine it takes longer until there is a first vector.
            if "was over before the first vector was chosen" not in str(error):
                raise
            return path_within(2.0 * seconds)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = path_within(0.1)
    assert len(path) > 0
    assert np.isfinite(path.residual_norms).all()
    assert (np.diff(path.residual_norms) <= 1e-9).all()
    # What was kept is a path like any other: the coefficients are the best on the vectors chosen.
    small = path[len(path)]
    assert small.n_vectors == len(path)
    assert np.isfinite(small.coefficients).all()


def test_a_time_limit_without_a_first_vector_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"max_time=1e-09 was over before the first vector"):
        path_by("lars", machine(300), n_vectors=20, max_time=1e-9)
