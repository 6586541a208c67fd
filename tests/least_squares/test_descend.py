"""The search for a width and a penalty."""

from __future__ import annotations

import numpy as np
import pytest

from svmarrow.least_squares._base import MAX_FITS, PENALTY_FACTOR, PENALTY_LIMITS, WIDTH_FACTOR, descend


def bowl(width: float, alpha: float, at: tuple[float, float]) -> float:
    """An error whose minimum is at a number of steps from (1, 1)."""
    steps = np.log(width) / np.log(WIDTH_FACTOR), np.log(alpha) / np.log(PENALTY_FACTOR)
    return float((steps[0] - at[0]) ** 2 + (steps[1] - at[1]) ** 2)


@pytest.mark.parametrize("at", [(0, 0), (1, 0), (-2, 0), (0, 2), (2, -1), (-3, 3)])
def test_the_minimum_of_a_bowl_is_found_and_no_point_is_fitted_twice(at):
    fitted = []

    def fit(width, alpha):
        fitted.append((width, alpha))
        return (width, alpha)

    best = descend(fit, lambda point: bowl(*point, at), 1.0, 1.0)
    assert best == (WIDTH_FACTOR ** at[0], PENALTY_FACTOR ** at[1])
    assert len(set(fitted)) == len(fitted) <= MAX_FITS
    neighbors = {
        (best[0] * a, best[1] * b)
        for a, b in ((WIDTH_FACTOR, 1), (1 / WIDTH_FACTOR, 1), (1, PENALTY_FACTOR), (1, 1 / PENALTY_FACTOR))
    }
    assert neighbors <= set(fitted)


def test_the_number_of_fits_and_the_penalty_are_limited():
    fitted = []

    def fit(width, alpha):
        fitted.append((width, alpha))
        return alpha

    # The error falls with the penalty for ever.
    assert descend(fit, lambda alpha: 1.0 / alpha, 1.0, 1.0) == PENALTY_LIMITS[1]
    assert max(alpha for _, alpha in fitted) == PENALTY_LIMITS[1]
    fitted.clear()
    descend(fit, lambda _: -float(len(fitted)), 1.0, 1.0)
    assert len(fitted) == MAX_FITS
    fitted.clear()
    descend(fit, lambda alpha: bowl(1.0, alpha, (0, 0)), 1.0, 1.0, None, 3)
    assert len(fitted) == 3


def test_a_known_fit_is_the_start_and_the_end_of_time_keeps_the_best():
    calls = []

    def fit(width, alpha):
        calls.append((width, alpha))
        return None if len(calls) == 3 else (width, alpha)

    assert descend(fit, lambda point: bowl(*point, (5, 0)), 1.0, 1.0, (1.0, 1.0)) == (WIDTH_FACTOR**2, 1.0)
    assert (1.0, 1.0) not in calls
    assert descend(lambda *_: None, lambda _: 0.0, 1.0, 1.0) is None


def test_systems_without_a_solution_count_as_infinite_errors():
    def fit(width, alpha):
        if alpha < 16.0:
            raise np.linalg.LinAlgError("not positive definite")
        return (width, alpha)

    assert descend(fit, lambda point: bowl(*point, (0, 2)), 1.0, 4.0) == (1.0, 16.0)
    # No neighbor of the start has a solution.
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        descend(fit, lambda _: 0.0, 1.0, 1.0)


def test_errors_that_are_no_numbers_do_not_win():
    best = descend(lambda *point: point, lambda point: np.nan if point[0] > 1 else 1.0, 1.0, 1.0)
    assert best == (1.0, 1.0)
