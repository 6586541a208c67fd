"""The choice of least squares for a table, behind the learned scales.

Kernel, bandwidth and penalty have the least leave-one-out error of those that a pattern search visits. The
choice uses at most `MAX_CHOSEN` samples, and most of the search a few of them: the time of a fit grows with
the cube of the samples. The final model is exact up to `MAX_EXACT` samples and low-rank above. An
exact system of at least `MIN_ITERATED` samples is solved by conjugate gradients if the penalty is not small
and they cost less than a factorization: for 20,000 samples and few columns a fifth of its time. They end when
the residual is a small share of the leave-one-out error.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmarrow._support.progress import UNTIMED, Steps
from svmarrow._support.training import class_weights
from svmarrow.least_squares._base import descend, is_clear_gain
from svmarrow.least_squares.estimators import (
    LowRankRLSClassifier,
    LowRankRLSRegressor,
    RLSClassifier,
    RLSRegressor,
)
from svmarrow.preprocessing._shapes import some_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["KERNELS", "MAX_CHOSEN", "Choice", "choose", "final_machine"]

#: Maximum number of samples of the choice, of an exact machine, and of vectors of one of low rank.
MAX_CHOSEN, MAX_EXACT, N_VECTORS = 2000, 20_000, 2000
#: Fewest samples of a final machine by conjugate gradients, and its least penalty: with .1 they take some 20
#: steps for 20,000 samples, with .001 more than 60.
MIN_ITERATED, MIN_ITERATED_ALPHA = 5000, 0.02
#: Steps that are expected, and those after which a factorization is tried instead.
ITERATIONS, MAX_ITERATIONS = 20, 40
#: The largest residual as a share of the root mean square leave-one-out error, and the least tolerance that
#: single precision reaches.
ITERATED_SHARE, MIN_ITERATED_TOL = 0.003, 1e-5
#: Multiply-adds of a kernel value in single precision, beside one for each column, and of a factorization for
#: each cube of the samples: half of a third, since its factor is in single precision too.
VALUE_COST, FACTOR_COST = 24, 1.0 / 6.0
#: Kernels of the Euclidean distance, the smoothest first, which is the default.
DISTANCE_KERNELS = ("rbf", "matern52", "matern32", "matern12")
#: The kernel of sums of absolute differences: a product over the columns, so that a target may jump along one
#: column and be smooth in the others, as trees' predictions do.
SUM_KERNEL = "laplacian"
#: Kernels that are tried, in this order.
KERNELS = (*DISTANCE_KERNELS, SUM_KERNEL)
#: `SUM_KERNEL` is dropped if its first error on the searched samples is this many times the least one there.
MAX_FIRST_RATIO = 2.0
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
    kind: Any, X: Any, y: Any, weights: Any, blocks: Any, about: dict[str, Any], gamma: float, alpha: float
) -> Choice:
    begin = time.monotonic()
    with warnings.catch_warnings():
        # Few samples of a table may have a class each.
        warnings.filterwarnings("ignore", message="The number of unique classes")
        machine = kind(gamma=gamma, alphas=[alpha], fit_intercept=True, **about).fit(X, y, weights, blocks)
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


@dataclass(frozen=True, eq=False)
class _Search:
    """The samples of the search and of the choice, and fits of least squares to them while there is time."""

    kind: Any
    about: dict[str, Any]
    n_kernels: int
    steps: Steps
    #: Samples, targets, weights and blocks: all, and those that search.
    every: tuple[Any, Any, Any, Any]
    few: tuple[Any, Any, Any, Any]
    #: The weights of the losses of both.
    every_weights: NDArray[np.float64] | None
    few_weights: NDArray[np.float64] | None

    def fits(
        self, kernel: str, done: int, *, to_all: bool = False
    ) -> Callable[[float, float], Choice | None]:
        """Returns the fit of a kernel with a width and a penalty, which is None when the time is over."""
        samples = self.every if to_all else self.few
        fit = partial(_fit, self.kind, *samples, {**self.about, "kernel": kernel})

        def fit_in_time(width: float, penalty: float) -> Choice | None:
            if not self.steps.may_begin(PHASE, done, self.n_kernels):
                return None
            return self.steps.attempt(partial(fit, width, penalty))

        return fit_in_time

    def error(self, choice: Choice) -> float:
        """Returns the error of a fit to all samples."""
        return _error(choice, self.every_weights)

    def few_error(self, choice: Choice) -> float:
        """Returns the error of a fit to the samples that search."""
        return _error(choice, self.few_weights)

    def start_error(self, kernel: str, start: tuple[float, float]) -> float:
        """Returns the error of a start on the samples that search; infinite if it has no solution."""
        try:
            tried = self.fits(kernel, 0)(*start)
        except np.linalg.LinAlgError:
            return np.inf
        return np.inf if tried is None else self.few_error(tried)


def choose(
    X: Any,
    y: NDArray[Any],
    weights: NDArray[np.float64] | None,
    *,
    searched: NDArray[np.intp],
    blocks: NDArray[np.intp] | None,
    classify: bool,
    kernels: Sequence[str],
    starts: Sequence[tuple[float, float]],
    about: dict[str, Any],
    steps: Steps = UNTIMED,
) -> Choice:
    """Returns least squares with the kernel, bandwidth and penalty of the least leave-one-out error.

    Samples with the same number in `blocks` (n,) leave together; None is each alone. The search for each
    kernel uses the samples `searched` and begins at the better of several `starts`, which are those of the
    RBF kernel. The kernels are compared on all samples, and the best one is searched on all. Kernels of the
    distance are tried until a rougher one has a larger error. If the time of `steps` is over, the result is
    the best machine so far. The first fit to all samples is always made.
    """
    counted = weights
    if classify and about.get("class_weight") is not None:
        classes, labels = np.unique(y, return_inverse=True)
        counted = class_weights(about["class_weight"], weights, classes, labels)[1]
    few_weights = None if weights is None else weights[searched]
    search = _Search(
        RLSClassifier if classify else RLSRegressor,
        about,
        len(kernels),
        steps,
        (X, y, weights, blocks),
        (X[searched], y[searched], few_weights, some_blocks(blocks, searched)),
        counted,
        None if counted is None else counted[searched],
    )
    distance_ratio = _ratio_of_distances(X[searched])
    starts = [(_width(gamma, "rbf", kernels[0], distance_ratio), penalty) for gamma, penalty in starts]
    first = starts[int(np.argmin([search.start_error(kernels[0], start) for start in starts]))]
    # Kernel, width and penalty where the next search begins.
    latest = (kernels[0], *first)
    best: Choice | None = None
    least_few = last_error = np.inf
    is_past_minimum = False
    for number, kernel in enumerate(kernels):
        if is_past_minimum and kernel != SUM_KERNEL:
            continue
        fit = search.fits(kernel, number)
        start, begun = (_width(latest[1], latest[0], kernel, distance_ratio), latest[2]), None
        try:
            if kernel == SUM_KERNEL and best is not None:
                begun = fit(*start)
                if begun is None:
                    break
                if search.few_error(begun) > MAX_FIRST_RATIO * least_few:
                    continue
            candidate = descend(fit, search.few_error, *start, begun)
            if candidate is None:
                break
            least_few = min(least_few, search.few_error(candidate))
            settings = (float(candidate.machine.gamma), candidate.machine.alpha_)
            latest = latest if kernel == SUM_KERNEL else (kernel, *settings)
            first = settings if number == 0 else first
            if searched.size < len(y):
                candidate = search.fits(kernel, number, to_all=True)(*settings)
                if candidate is None:
                    break
        except np.linalg.LinAlgError:
            continue
        if best is None or is_clear_gain(best.losses - candidate.losses, counted, STANDARD_ERRORS, blocks):
            best = candidate
        is_past_minimum = search.error(candidate) > last_error
        last_error = search.error(candidate)
    if best is None:
        return _fit(search.kind, *search.every, {**about, "kernel": kernels[0]}, *first)
    if searched.size == len(y):
        return best
    machine = best.machine
    fit = search.fits(machine.kernel, len(kernels) - 1, to_all=True)
    return descend(fit, search.error, float(machine.gamma), machine.alpha_, best) or best


def _ratio_of_distances(X: NDArray[np.float64]) -> float:
    """Returns the mean Euclidean distance of pairs of samples over their mean sum of absolute differences."""
    differences = np.abs(X - np.roll(X, len(X) // 2, axis=0))
    total = float(differences.sum(axis=1).mean())
    return float(np.sqrt((differences**2).sum(axis=1)).mean()) / total if total > 0.0 else 1.0


def _width(gamma: float, kernel: str, other: str, ratio: float) -> float:
    """Returns gamma of another kernel whose exponent is 1 at about the same distance."""
    if kernel == other:
        return gamma
    inverse_distance = float(np.sqrt(gamma)) if kernel == "rbf" else gamma
    if other == SUM_KERNEL:
        return inverse_distance * ratio
    return inverse_distance


def final_machine(
    chosen: Choice, X: Any, y: Any, weights: Any, random_state: Any, steps: Steps = UNTIMED
) -> Any | None:
    """Returns a machine with the chosen settings on all samples; None if the time of `steps` is over first.

    If the remaining time is too short for an exact machine, it is of low rank.
    """
    choice, n = chosen.machine, X.shape[0]
    names = ("kernel", "gamma", "n_jobs")
    about = {name: getattr(choice, name) for name in names} | {"fit_intercept": True, "alpha": choice.alpha_}
    classify = isinstance(choice, RLSClassifier)
    if classify:
        about["class_weight"] = choice.class_weight
    exact: Any = RLSClassifier if classify else RLSRegressor
    if n <= MAX_EXACT:
        work = ITERATIONS * n**2 * (X.shape[1] + VALUE_COST)
        is_iterated = n >= MIN_ITERATED and choice.alpha_ >= MIN_ITERATED_ALPHA and work < FACTOR_COST * n**3
        if is_iterated and _has_time(steps, chosen, work):
            machine = steps.attempt(partial(_iterated, exact, about, chosen, X, y, weights), reports=True)
            if machine is not None or steps.was_stopped:
                return machine
        if _has_time(steps, chosen, n**3):
            return steps.attempt(lambda: exact(**about).fit(X, y, weights), reports=True)
        steps.was_shortened = True
    kind: Any = LowRankRLSClassifier if classify else LowRankRLSRegressor
    machine = kind(N_VECTORS, random_state=random_state, **about)
    return steps.attempt(lambda: machine.fit(X, y, weights), reports=True)


def _has_time(steps: Steps, chosen: Choice, work: float) -> bool:
    """Returns whether there is time for `work` multiply-adds, by the time of the chosen fit."""
    remaining = steps.remaining
    return remaining is None or chosen.seconds * work / chosen.losses.size**3 <= remaining


def _iterated(kind: Any, about: dict[str, Any], chosen: Choice, X: Any, y: Any, weights: Any) -> Any | None:
    """Returns an exact machine by conjugate gradients; None if they take more steps than is worth it.

    Products with the kernel matrix are in single precision, whose rounding is far below the tolerance: a
    share of the leave-one-out error. The outputs differ from those of the solution by about as much.
    """
    centre: Any = 0.0
    variance = 1.0
    if kind is RLSRegressor:
        # Residuals are relative to the targets.
        centre = np.average(y, axis=0, weights=weights)
        y = y - centre
        variance = float(np.average(y**2, axis=0, weights=weights).mean())
    tol = ITERATED_SHARE * float(np.sqrt(chosen.losses.mean() / variance)) if variance > 0.0 else 0.0
    if tol < MIN_ITERATED_TOL:
        return None
    machine = kind(solver="cg", tol=tol, max_iter=MAX_ITERATIONS, **about)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X.astype(np.float32), y, weights)
    if machine.residual_ > tol:
        return None
    of = machine.expansion_
    machine.expansion_ = of.replaced(vectors=X.copy(), intercepts=of.intercepts + centre)
    return machine
