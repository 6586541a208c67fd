"""The choice of least squares for a table, behind the learned scales.

Kernel, bandwidth and penalty have the least leave-one-out error of those that a pattern search visits. The
choice uses at most `MAX_CHOSEN` samples, and most of the search a few of them: the time of a fit grows with
the cube of the samples. The final model is exact up to `MAX_EXACT` samples and low-rank above.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from svmarrow._support.progress import UNTIMED, Steps
from svmarrow._support.training import class_weights
from svmarrow.least_squares._base import descend, is_clear_gain
from svmarrow.least_squares.exact import RLSClassifier, RLSRegressor
from svmarrow.least_squares.low_rank import LowRankRLSClassifier, LowRankRLSRegressor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["KERNELS", "MAX_CHOSEN", "Choice", "choose", "final_machine"]

#: Maximum number of samples of the choice, of an exact machine, and of vectors of one of low rank.
MAX_CHOSEN, MAX_EXACT, N_VECTORS = 2000, 20_000, 2000
#: Kernels that are tried, the first is the default.
KERNELS = ("rbf", "matern52", "matern32", "matern12")
#: Name of this phase in progress reports.
PHASE = "kernels"
#: Standard errors of paired leave-one-out losses by which another kernel must win.
STANDARD_ERRORS = 0.5


class Choice(NamedTuple):
    """A fitted machine, its leave-one-out losses (n,), and the seconds of the fit."""

    machine: Any
    losses: NDArray[np.float64]
    seconds: float


def _fit(
    kind: Any, X: Any, y: Any, weights: Any, about: dict[str, Any], gamma: float, alpha: float
) -> Choice:
    begin = time.monotonic()
    with warnings.catch_warnings():
        # Few samples of a table may have a class each.
        warnings.filterwarnings("ignore", message="The number of unique classes")
        machine = kind(gamma=gamma, alphas=[alpha], fit_intercept=True, **about).fit(X, y, weights)
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
    searched: NDArray[np.intp],
    classify: bool,
    kernels: Sequence[str],
    starts: Sequence[tuple[float, float]],
    about: dict[str, Any],
    steps: Steps = UNTIMED,
) -> Choice:
    """Returns least squares with the kernel, bandwidth and penalty of the least leave-one-out error.

    The search for each kernel uses the samples `searched` and begins at the better of several `starts`, which
    are those of the RBF kernel. The kernels are compared on all samples, and the best one is searched on all.
    If the time of `steps` is over, the result is the best machine so far. The first fit to all samples is
    always made.
    """
    kind: Any = RLSClassifier if classify else RLSRegressor
    counted = weights
    if classify and about.get("class_weight") is not None:
        classes, labels = np.unique(y, return_inverse=True)
        counted = class_weights(about["class_weight"], weights, classes, labels)[1]
    is_searched_by_all = searched.size == len(y)
    few = (X[searched], y[searched], None if weights is None else weights[searched])
    few_error = partial(_error, weights=None if counted is None else counted[searched])
    error = partial(_error, weights=counted)
    best: Choice | None = None
    last_error = np.inf

    def timed(
        kernel: str, samples: tuple[Any, Any, Any], done: int
    ) -> Callable[[float, float], Choice | None]:
        fit = partial(_fit, kind, *samples, {**about, "kernel": kernel})

        def fit_in_time(width: float, penalty: float) -> Choice | None:
            if not steps.may_begin(PHASE, done, len(kernels)):
                return None
            return steps.attempt(partial(fit, width, penalty))

        return fit_in_time

    def start_error(width: float, penalty: float) -> float:
        try:
            tried = timed(kernels[0], few, 0)(width, penalty)
        except np.linalg.LinAlgError:
            return np.inf
        return np.inf if tried is None else few_error(tried)

    if kernels[0] != "rbf":
        # The exponent of a Matérn kernel is 1 at the same distance.
        starts = [(float(np.sqrt(gamma)), penalty) for gamma, penalty in starts]
    start = first = starts[int(np.argmin([start_error(*start) for start in starts]))]
    for number, kernel in enumerate(kernels):
        candidate = None
        try:
            candidate = descend(timed(kernel, few, number), few_error, *start)
            if candidate is None:
                break
            start = (float(candidate.machine.gamma), candidate.machine.alpha_)
            first = start if number == 0 else first
            if not is_searched_by_all:
                candidate = timed(kernel, (X, y, weights), number)(*start)
                if candidate is None:
                    break
        except np.linalg.LinAlgError:
            candidate = None
        # The next kernel is a little rougher.
        start = (float(np.sqrt(start[0])), start[1]) if kernel == "rbf" else start
        if candidate is None:
            continue
        if best is None or _wins(best, candidate, counted):
            best = candidate
        # The kernels are in the order of their roughness, along which the error has one minimum.
        if error(candidate) > last_error:
            break
        last_error = error(candidate)
    if best is None:
        return _fit(kind, X, y, weights, {**about, "kernel": kernels[0]}, *first)
    if is_searched_by_all:
        return best
    machine = best.machine
    fit = timed(machine.kernel, (X, y, weights), len(kernels) - 1)
    return descend(fit, error, float(machine.gamma), machine.alpha_, best) or best


def _wins(before: Choice, after: Choice, weights: NDArray[np.float64] | None) -> bool:
    return is_clear_gain(before.losses - after.losses, weights, STANDARD_ERRORS)


def final_machine(
    chosen: Choice, X: Any, y: Any, weights: Any, random_state: Any, steps: Steps = UNTIMED
) -> Any | None:
    """Returns a machine with the chosen settings on all samples; None if the time of `steps` is over first.

    If the remaining time is too short for an exact machine, it is of low rank.
    """
    choice, remaining = chosen.machine, steps.remaining
    # The time of a fit grows with the cube of the samples.
    seconds = chosen.seconds * (X.shape[0] / chosen.losses.size) ** 3
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
