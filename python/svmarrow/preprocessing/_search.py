"""The search for shapes and a metric: which updates are tried and which are kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from svmarrow._support.progress import UNTIMED, Steps
from svmarrow._support.saving import savable
from svmarrow.preprocessing._metric import (
    Candidate,
    MetricProblem,
    gain,
    threshold,
    weighted_mean,
)
from svmarrow.preprocessing._shapes import ColumnShapes, ShapeName, column_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["LearnedMetric", "ScaleStep", "learn_metric"]

#: Powers of the average gradient outer product that are tried in each iteration; 1/2 damps it.
POWERS = (1.0, 0.5)
#: Share of the error below which a gain ends the iterations.
MIN_GAIN = 0.005
#: Name of this phase in progress reports.
PHASE = "scales"
#: Fewest samples from which something is learned.
MIN_SAMPLES = 20


@savable
@dataclass(frozen=True)
class ScaleStep:
    """One candidate of a learned metric.

    Parameters
    ----------
    iteration : int
        Number of updates of the metric, 0 for equal scales.
    shape : {"standard", "quantile", "both"}
        Shape of the columns.
    power : float
        Power of the average gradient outer product; 0 for equal scales.
    gamma, alpha : float
        Bandwidth and penalty of the fit on all drawn samples, by its leave-one-out error.
    loo_error : float
        Its mean leave-one-out error, in units of the targets' variances.
    error : float
        Mean squared error of the samples that folds held out, in the same units.
    gain, standard_error : float
        Mean of the paired differences of held-out losses, the metric before minus this one, and its standard
        error.
    kept : bool
        Whether this candidate replaced the metric before.
    """

    iteration: int
    shape: str
    power: float
    gamma: float
    alpha: float
    loo_error: float
    error: float
    gain: float
    standard_error: float
    kept: bool


class LearnedMetric(NamedTuple):
    """Shapes, map (p,) or (p, r), bandwidth, penalty, and every candidate that was tried."""

    shapes: ColumnShapes
    linear: NDArray[np.float64]
    gamma: float | None
    alpha: float | None
    history: tuple[ScaleStep, ...]


@dataclass(eq=False)
class _Search:
    """The candidates tried so far."""

    weights: NDArray[np.float64] | None
    history: list[ScaleStep]

    def choose(
        self,
        current: Candidate | None,
        tried: Sequence[tuple[Candidate, str, float]],
        iteration: int,
    ) -> int | None:
        """Records candidates; returns the number of the one that replaces the current, None for none."""
        gains = []
        # Shapes do not depend on the targets, so the least error among few of them hardly over-fits; outliers
        # of standardized columns give losses whose standard errors exceed every gain.
        n_errors = threshold(len(tried)) if iteration else 0.0
        for candidate, _, _ in tried:
            before = candidate if current is None else current
            gains.append(gain(before.losses, candidate.losses, self.weights))
        best = int(np.argmax([mean for mean, _ in gains]))
        mean, error = gains[best]
        is_better = current is None or (mean > 0.0 and mean >= n_errors * error)
        for number, ((candidate, shape, power), (mean, error)) in enumerate(zip(tried, gains, strict=True)):
            self.history.append(
                ScaleStep(
                    iteration,
                    shape,
                    power,
                    candidate.gamma,
                    candidate.alpha,
                    float(candidate.loo_error),
                    weighted_mean(candidate.losses, self.weights),
                    mean,
                    error,
                    is_better and number == best,
                )
            )
        return best if is_better else None


def learn_metric(
    X: Any,
    targets: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    *,
    names: tuple[ShapeName, ...],
    groups: NDArray[np.int64],
    folds: tuple[NDArray[np.intp], ...],
    full: bool,
    rank: int | None,
    max_iter: int,
    n_jobs: int | None,
    steps: Steps = UNTIMED,
) -> LearnedMetric:
    """Learns shapes and a metric from the drawn samples; the first of the `names` is the default shape.

    The shape of the least held-out error is kept. Then the metric is updated until no update wins, or the
    time of `steps` is over.
    """
    every = {name: column_shapes(X, weights, name, groups) for name in names}
    # A shape without a quantile column is the standard one.
    every = {name: shapes for name, shapes in every.items() if name == names[0] or shapes.columns.size}
    shapes = every[names[0]]
    if len(targets) < MIN_SAMPLES or not targets.any() or not _varies(X):
        return LearnedMetric(shapes, np.ones(shapes.sources.size), None, None, ())
    search = _Search(weights, [])

    def problem(of: ColumnShapes) -> MetricProblem:
        # Both shapes of a column have a scale of their own, and columns of a group share one.
        kind = np.concatenate([np.zeros(of.standard_columns.size), np.ones(of.columns.size)])
        shared = np.unique(groups[of.sources] * 2 + kind, return_inverse=True)[1].ravel()
        # Systems of small penalties are ill-conditioned in single precision.
        rows = of.apply(X).astype(np.float64)
        return MetricProblem(rows, targets, weights, folds, shared, full, rank, n_jobs)

    problems = {name: problem(of) for name, of in every.items()}
    name = names[0]
    first = steps.attempt(problems[name].start)
    if first is None:
        return LearnedMetric(shapes, np.ones(shapes.sources.size), None, None, ())
    current = first
    search.choose(None, [(current, name, 0.0)], 0)
    others = [other for other in every if other != name]
    if others and steps.may_begin(PHASE, 0, max_iter):
        size = problems[name].rows.shape[1]

        def start(other: ShapeName) -> Candidate:
            width = current.gamma * size / problems[other].rows.shape[1]
            return problems[other].start(width, current.alpha)

        shaped = steps.attempt(lambda: [(start(other), other, 0.0) for other in others])
        best = None if shaped is None else search.choose(current, shaped, 0)
        if shaped is not None and best is not None:
            current, name, _ = shaped[best]
    for iteration in range(1, max_iter + 1):
        if not steps.may_begin(PHASE, iteration - 1, max_iter):
            break
        tried = steps.attempt(partial(_updates, problems[name], current, name))
        best = None if tried is None else search.choose(current, tried, iteration)
        if tried is None or best is None:
            break
        before, current = current, tried[best][0]
        if weighted_mean(current.losses, weights) > (1.0 - MIN_GAIN) * weighted_mean(before.losses, weights):
            break
    return LearnedMetric(every[name], current.maps[0], current.gamma, current.alpha, tuple(search.history))


def _updates(
    problem: MetricProblem, current: Candidate, name: ShapeName
) -> list[tuple[Candidate, ShapeName, float]]:
    """Returns the candidates of an iteration."""
    return [(problem.update(current, power), name, power) for power in POWERS]


def _varies(X: Any) -> bool:
    """Returns whether any two rows differ."""
    first = X[:1]
    if sp.issparse(X):
        return bool(abs(X - sp.csr_array(np.ones((X.shape[0], 1))) @ first).max() > 0)
    return bool((first != X).any())
