"""Least squares behind the learned scales: the kernel, its bandwidth and the penalty by leave-one-out errors.

The choice uses at most `MAX_CHOSEN` samples. The final model is exact up to `MAX_EXACT` samples and low-rank
above.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from svmarrow._support.rows import class_weights
from svmarrow._support.steps import UNTIMED, Steps
from svmarrow.least_squares.classification import RLSClassifier
from svmarrow.least_squares.low_rank import LowRankRLSClassifier, LowRankRLSRegressor
from svmarrow.least_squares.regression import RLSRegressor

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Choice", "choose", "final_machine"]

#: Maximum number of samples of the choice, of an exact machine, and of vectors of one of low rank.
MAX_CHOSEN, MAX_EXACT, N_VECTORS = 2000, 20_000, 2000
#: Kernels that are tried, the first is the default.
KERNELS = ("rbf", "matern52", "matern32", "matern12")
#: Name of this phase in progress reports.
PHASE = "kernels"
#: Penalties relative to the last one.
ALPHA_FACTORS = (0.25, 1.0, 4.0)
#: Maximum number of steps of the search for the bandwidth, each by a factor of 2.
MAX_BANDWIDTH_STEPS = 8
#: Standard errors of paired leave-one-out losses by which another kernel must win.
STANDARD_ERRORS = 0.5


class Choice(NamedTuple):
    """A fitted machine, its leave-one-out losses (n,), and the seconds of the fit."""

    machine: Any
    losses: NDArray[np.float64]
    seconds: float


def _fit(kind: Any, X: Any, y: Any, weights: Any, about: dict[str, Any], alpha: float) -> Choice:
    alphas = [alpha * factor for factor in ALPHA_FACTORS]
    begin = time.monotonic()
    machine = kind(alphas=alphas, fit_intercept=True, **about).fit(X, y, weights)
    seconds = time.monotonic() - begin
    if kind is RLSRegressor:
        losses = ((machine.loo_prediction_ - y) ** 2).reshape(len(y), -1).mean(axis=1)
    else:
        labels = np.searchsorted(machine.classes_, y)
        k = machine.classes_.size
        codes = np.where(labels[:, np.newaxis] == (np.arange(k) if k > 2 else [1]), 1.0, -1.0)
        losses = ((machine.loo_decision_.reshape(len(y), -1) - codes) ** 2).mean(axis=1)
    return Choice(machine, losses, seconds)


def _error(choice: Choice, weights: Any) -> float:
    return float(np.average(choice.losses, weights=weights))


def choose(
    X: Any,
    y: NDArray[Any],
    weights: NDArray[np.float64] | None,
    *,
    classify: bool,
    gamma: float,
    alpha: float,
    about: dict[str, Any],
    steps: Steps = UNTIMED,
) -> Choice:
    """Returns least squares with the kernel, bandwidth and penalty of the least leave-one-out error.

    If the time of `steps` is over, that is the least error so far. The first fit is always made.
    """
    kind: Any = RLSClassifier if classify else RLSRegressor
    counted = weights
    if classify and about.get("class_weight") is not None:
        classes, labels = np.unique(y, return_inverse=True)
        counted = class_weights(about["class_weight"], weights, classes, labels)[1]
    best: Choice | None = None
    for number, kernel in enumerate(KERNELS):
        if best is not None and not steps.may_begin(PHASE, number, len(KERNELS)):
            break
        # The exponent is 1 at the same distance.
        width = gamma if kernel == "rbf" else float(np.sqrt(gamma))
        first = partial(_fit, kind, X, y, weights, {**about, "kernel": kernel, "gamma": width}, alpha)
        start = first() if best is None else steps.attempt(first)
        if start is None:
            break
        candidate = _search(kind, X, y, weights, {**about, "kernel": kernel}, start, counted, steps)
        if best is None or _wins(best, candidate, counted):
            best = candidate
    assert best is not None
    return best


def _search(
    kind: Any,
    X: Any,
    y: Any,
    weights: Any,
    about: dict[str, Any],
    best: Choice,
    counted: Any,
    steps: Steps,
) -> Choice:
    """Returns the fit with the bandwidth of the least error, starting from a fit."""
    number = KERNELS.index(about["kernel"])
    for factor in (2.0, 0.5):
        start = best
        for _ in range(MAX_BANDWIDTH_STEPS):
            if not steps.may_begin(PHASE, number, len(KERNELS)):
                return best
            width = float(best.machine.gamma) * factor
            settings = {**about, "gamma": width}
            other = steps.attempt(partial(_fit, kind, X, y, weights, settings, best.machine.alpha_))
            if other is None:
                return best
            if _error(other, counted) >= _error(best, counted):
                break
            best = other
        if best is not start:
            break
    return best


def _wins(before: Choice, after: Choice, weights: NDArray[np.float64] | None) -> bool:
    differences = before.losses - after.losses
    w = np.full(len(differences), 1.0 / len(differences)) if weights is None else weights / weights.sum()
    mean = float(w @ differences)
    return mean > STANDARD_ERRORS * float(np.sqrt(np.sum((w * (differences - mean)) ** 2)))


def final_machine(
    chosen: Choice, X: Any, y: Any, weights: Any, random_state: Any, steps: Steps = UNTIMED
) -> Any | None:
    """Returns a machine with the chosen settings on all samples; None if the time of `steps` is over first.

    If the remaining time is too short for an exact machine, it is of low rank.
    """
    choice, remaining = chosen.machine, steps.remaining
    # A path of penalties takes the time of about as many fits, which grows with the cube of the samples.
    seconds = chosen.seconds / len(ALPHA_FACTORS) * (X.shape[0] / chosen.losses.size) ** 3
    is_too_long = remaining is not None and seconds > remaining
    names = ("kernel", "gamma", "n_jobs")
    about = {name: getattr(choice, name) for name in names} | {"fit_intercept": True, "alpha": choice.alpha_}
    classify = isinstance(choice, RLSClassifier)
    if classify:
        about["class_weight"] = choice.class_weight
    machine: Any
    if X.shape[0] <= MAX_EXACT and is_too_long:
        steps.was_shortened = True
    if X.shape[0] <= MAX_EXACT and not is_too_long:
        machine = (RLSClassifier if classify else RLSRegressor)(**about)
    else:
        kind: Any = LowRankRLSClassifier if classify else LowRankRLSRegressor
        machine = kind(N_VECTORS, random_state=random_state, **about)
    return steps.attempt(lambda: machine.fit(X, y, weights), reports=True)
