"""The search for shapes and a metric: where it starts, which updates are tried and which are kept.

Starts other than equal scales are importances of the columns in extremely randomized trees.

Problem: average gradient outer products are those of a fit. If many irrelevant columns hide the few relevant
ones from a kernel with equal scales, this fit is nearly constant, and its gradients do not show which columns
are relevant.

Algorithm: trees split one column at a time and find such columns. Their importances are a crude measure, but
only the start is needed. Two starts are computed from them. Squared importances reduce the share of
irrelevant columns, whose importances are small but not 0. The selection gives equal scales to the columns
above the widest gap of the importances; it is the better start if a target oscillates along a column faster
than the splits of a small tree can follow.

Cost: 25 small trees; the guard fits as many for the training part of each fold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from svmarrow._support.progress import UNTIMED, Steps
from svmarrow._support.schemas import savable
from svmarrow.least_squares._base import gain, is_clear_gain
from svmarrow.preprocessing._metric import Candidate, MetricProblem, threshold, weighted_mean
from svmarrow.preprocessing._shapes import ColumnShapes, ShapeName, column_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["START_NAMES", "LearnedMetric", "ScaleStep", "learn_metric", "start_sizes", "tree_importances"]


# --- starts: importances of the columns in extremely randomized trees ---

#: Number of trees, and the least share of the weight of the samples in a leaf.
N_TREES, MIN_LEAF_SHARE = 25, 0.005
#: Number of columns that a split chooses from; of more columns it is at least their square root.
MAX_SPLIT_COLUMNS = 64
#: Names of the starts, in the order of `start_sizes`.
START_NAMES = ("importances", "selection")
#: Sum of the squared scales of the columns that are not selected, as a share of the others; updates can still
#: enlarge them.
UNSELECTED_SHARE = 0.01
#: Importances are compared up to this share of the mean importance.
MIN_IMPORTANCE = 0.1


def tree_importances(
    rows: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None, seed: int
) -> NDArray[np.float64]:
    """Returns the importances (d,) of the columns, the mean over the trees; zeros if no tree splits.

    The trees of labels have the codes -1 and 1 as targets, for which the squared error is the Gini impurity.
    They are fitted one after the other without joblib, about a millisecond each: this works in every thread
    and backend, and sums in a fixed order.
    """
    from sklearn.tree import ExtraTreeRegressor  # noqa: PLC0415 - slow to import

    d = int(rows.shape[1])
    # The types of the trees, which `check_input` would convert for each of them.
    if sp.issparse(rows):
        values = sp.csc_matrix(rows, dtype=np.float32)
        values.sort_indices()
    else:
        values = np.ascontiguousarray(rows, dtype=np.float32)
    random = np.random.RandomState(seed)
    total = np.zeros(d)
    for _ in range(N_TREES):
        tree = ExtraTreeRegressor(
            min_weight_fraction_leaf=MIN_LEAF_SHARE,
            max_features=min(d, max(MAX_SPLIT_COLUMNS, math.isqrt(d))),
            random_state=random.randint(2**31 - 1),
        )
        total += tree.fit(values, targets, weights, check_input=False).feature_importances_
    return total / N_TREES


def start_sizes(
    importances: NDArray[np.float64], groups: NDArray[np.int64]
) -> tuple[NDArray[np.float64], ...]:
    """Returns the squared scales (d,) of the starts; columns of a group divide its size among them."""
    counts = np.bincount(groups)
    totals = np.asarray(np.bincount(groups, importances), dtype=np.float64)
    if not totals.any():
        # No tree has split.
        totals = np.ones(totals.size)
    order = np.argsort(-totals, kind="stable")
    floored = totals[order] + MIN_IMPORTANCE * totals.mean()
    # At most half of the columns are selected: below are ratios of noise.
    n_ratios = max(1, totals.size // 2)
    n_selected = 1 + int(np.argmax(floored[:n_ratios] / floored[1 : n_ratios + 1]))
    selected = np.full(totals.size, UNSELECTED_SHARE * n_selected / (totals.size - n_selected))
    selected[order[:n_selected]] = 1.0
    return tuple((sizes / counts)[groups] for sizes in (totals**2, selected))


# --- which updates are tried and which are kept ---

#: Powers of the average gradient outer product that are tried in each iteration; 1/2 damps it.
POWERS = (1.0, 0.5)
#: Share of the error below which a gain ends the iterations.
MIN_GAIN = 0.005
#: A start by trees is dropped unless its leave-one-out error is at most this share of that of the scales
#: learned from equal ones, and at most the other share with a coarse choice of the penalty, which saves most
#: tables a search. Both have seen all targets.
MAX_START_RATIO, MAX_COARSE_RATIO = 0.95, 1.05
#: Standard errors by which the scales learned from a start by trees must win.
START_STANDARD_ERRORS = 3.0
#: Share of the held-out error that an update must gain while the error is above that of the scales learned
#: from equal ones.
MIN_START_GAIN = 0.1
#: Name of this phase in progress reports.
PHASE = "scales"
#: Fewest samples from which something is learned.
MIN_SAMPLES = 20


@savable("scale-step/1")
@dataclass(frozen=True)
class ScaleStep:
    """One candidate of a learned metric.

    Parameters
    ----------
    iteration : int
        Number of updates of the metric, 0 for the start.
    shape : {"standard", "quantile", "both"}
        Shape of the columns.
    power : float
        Power of the average gradient outer product; 0 for the start.
    gamma, alpha : float
        Bandwidth and penalty, by the leave-one-out error: of all drawn samples for the first candidate, of at
        most 500 for others.
    loo_error : float
        Mean leave-one-out error of the samples that determine them, in units of the targets' variances.
    error : float
        Mean squared error of the samples that folds held out, in the same units.
    gain, standard_error : float
        Mean of the paired differences of held-out losses, the metric before minus this one, and its standard
        error.
    kept : bool
        Whether this candidate replaced the metric before.
    start : {"equal", "importances", "selection"}, default="equal"
        Where the updates began: equal scales, squared importances of the features in extremely randomized
        trees, or equal scales of the features above the widest gap of these importances.
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
    start: str = "equal"


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
    #: Gains of samples with the same number are not independent.
    blocks: NDArray[np.intp] | None
    history: list[ScaleStep]
    start: str = "equal"

    def error(self, candidate: Candidate) -> float:
        """Returns the mean held-out error."""
        return weighted_mean(candidate.losses, self.weights)

    def choose(
        self,
        current: Candidate | None,
        tried: Sequence[tuple[Candidate, str, float]],
        iteration: int,
        n_errors: float | None = None,
    ) -> int | None:
        """Records candidates; returns the number of the one that replaces the current, None for none.

        It must win by a number of standard errors, by default that of updates for all iterations but 0.
        """
        gains = []
        # Shapes do not depend on the targets, so the least error among few of them hardly over-fits; outliers
        # of standardized columns give losses whose standard errors exceed every gain.
        if n_errors is None:
            n_errors = threshold(len(tried)) if iteration else 0.0
        for candidate, _, _ in tried:
            before = candidate if current is None else current
            gains.append(gain(before.losses - candidate.losses, self.weights, self.blocks))
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
                    self.error(candidate),
                    mean,
                    error,
                    is_better and number == best,
                    self.start,
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
    searched: NDArray[np.intp],
    blocks: NDArray[np.intp] | None,
    full: bool,
    rank: int | None,
    max_iter: int,
    n_jobs: int | None,
    seed: int,
    steps: Steps = UNTIMED,
) -> LearnedMetric:
    """Learns shapes and a metric from the drawn samples; the first of the `names` is the default shape.

    The shape of the least held-out error is kept. Then the metric is updated until no update wins, or the
    time of `steps` is over. Samples with the same number in `blocks` are left out together. `seed` is that of
    the trees from whose importances the updates begin again; the result replaces that of equal scales if its
    held-out error is smaller by some standard errors.
    """
    every = {name: column_shapes(X, weights, name, groups) for name in names}
    # A shape without a quantile column is the standard one.
    every = {name: shapes for name, shapes in every.items() if name == names[0] or shapes.columns.size}
    shapes = every[names[0]]
    if len(targets) < MIN_SAMPLES or not targets.any() or not _varies(X):
        return LearnedMetric(shapes, np.ones(shapes.sources.size), None, None, ())
    search = _Search(weights, blocks, [])

    def problem(of: ColumnShapes) -> MetricProblem:
        # Both shapes of a column have a scale of their own, and columns of a group share one.
        kind = np.concatenate([np.zeros(of.standard_columns.size), np.ones(of.columns.size)])
        shared = np.unique(groups[of.sources] * 2 + kind, return_inverse=True)[1].ravel()
        # Systems of small penalties are ill-conditioned in single precision.
        rows = of.apply(X).astype(np.float64)
        return MetricProblem(rows, targets, weights, folds, searched, shared, blocks, full, rank, n_jobs)

    problems = {name: problem(of) for name, of in every.items()}
    name = names[0]
    first = steps.attempt(problems[name].start)
    if first is None:
        return LearnedMetric(shapes, np.ones(shapes.sources.size), None, None, ())
    current = first
    search.choose(None, [(current, name, 0.0)], 0)
    others = [other for other in every if other != name]
    if others and steps.may_begin(PHASE, 0, max_iter):

        def candidates() -> list[tuple[Candidate, ShapeName, float]]:
            return [
                (problems[other].in_this_shape(first, problems[other].equal_maps), other, 0.0)
                for other in others
            ]

        shaped = steps.attempt(candidates)
        best = None if shaped is None else search.choose(current, shaped, 0)
        if shaped is not None and best is not None:
            current, name, _ = shaped[best]
    current = _update(problems[name], current, name, search, range(1, max_iter + 1), steps)
    if max_iter and np.unique(groups).size > 1:
        standard = every.get("standard") or column_shapes(X, weights, "standard", groups)
        trees = _TreeStarts(problems, every, standard.apply(X), groups, seed)
        current, name = _from_trees(trees, current, name, search, max_iter, steps)
    return LearnedMetric(every[name], current.maps[0], current.gamma, current.alpha, tuple(search.history))


def _update(
    problem: MetricProblem,
    current: Candidate,
    name: ShapeName,
    search: _Search,
    iterations: range,
    steps: Steps,
    done: int = 0,
) -> Candidate:
    """Returns the metric after updates, which end if none wins or a gain is small."""
    for iteration in iterations:
        if not steps.may_begin(PHASE, max(done, iteration - 1), iterations.stop - 1):
            break
        tried = steps.attempt(partial(_updates, problem, current, name))
        best = None if tried is None else search.choose(current, tried, iteration)
        if tried is None or best is None:
            break
        before, current = current, tried[best][0]
        if search.error(current) > (1.0 - MIN_GAIN) * search.error(before):
            break
    return current


@dataclass(frozen=True, eq=False)
class _TreeStarts:
    """Starts by the importances of trees, of all samples and of the training part of each fold."""

    problems: dict[ShapeName, MetricProblem]
    shapes: dict[ShapeName, ColumnShapes]
    #: Standardized columns of the drawn samples, and their groups.
    rows: Any
    groups: NDArray[np.int64]
    seed: int

    def best(self, rival: Candidate, name: ShapeName) -> tuple[Candidate, str] | None:
        """Returns the start of the least leave-one-out error and its name; None if that is too large."""
        problem = self.problems[name]
        every = self._sizes(problem, None)
        fits = [problem.coarse_fit(self._scales(name, sizes)) for sizes in every]
        number = int(np.argmin([fit.loo_error_ for fit in fits]))
        rival_error = problem.searched_error(rival)
        if fits[number].loo_error_ > MAX_COARSE_RATIO * rival_error:
            return None
        fit = problem.fine_fit(fits[number], self._scales(name, every[number]))
        if fit.loo_error_ > MAX_START_RATIO * rival_error:
            return None
        folds = [self._sizes(problem, problem.fold_rows(fold))[number] for fold in range(len(problem.folds))]
        maps = [self._scales(name, sizes) for sizes in (every[number], *folds)]
        return problem.hold_out(fit, tuple(maps)), START_NAMES[number]

    def others(self, current: Candidate, name: ShapeName) -> list[tuple[Candidate, ShapeName, float]]:
        """Returns the candidates that give the columns of the other shapes the scales of a metric."""
        sources = self.shapes[name].sources
        squares = [np.square(linear).reshape(sources.size, -1).sum(axis=1) for linear in current.maps]
        sizes = [np.bincount(sources, square, minlength=self.groups.size) for square in squares]
        tried: list[tuple[Candidate, ShapeName, float]] = []
        for other, problem in self.problems.items():
            if other != name:
                maps = tuple(self._scales(other, size.astype(np.float64)) for size in sizes)
                tried.append((problem.in_this_shape(current, maps), other, 0.0))
        return tried

    def _sizes(
        self, problem: MetricProblem, taken: NDArray[np.intp] | None
    ) -> tuple[NDArray[np.float64], ...]:
        """Returns the squared scales of the columns for each start, from some samples or all."""
        rows, targets, weights = self.rows, problem.targets, problem.weights
        if taken is not None:
            rows, targets = rows[taken], targets[taken]
            weights = None if weights is None else weights[taken]
        importances = tree_importances(rows, targets, weights, self.seed)
        return start_sizes(importances, self.groups)

    def _scales(self, name: ShapeName, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.problems[name].scales(sizes[self.shapes[name].sources])


def _from_trees(
    trees: _TreeStarts, rival: Candidate, name: ShapeName, search: _Search, max_iter: int, steps: Steps
) -> tuple[Candidate, ShapeName]:
    """Returns the better of a learned metric and one whose updates begin with the importances of trees.

    The updates have one power, and they end unless the new metric has the smaller held-out error or
    approaches it fast. A metric that wins takes the best shape for its scales, and is then updated as usual.
    """

    def may_begin() -> bool:
        return steps.may_begin(PHASE, max_iter - 1, max_iter)

    start = steps.attempt(partial(trees.best, rival, name)) if may_begin() else None
    if start is None:
        return rival, name
    current, label = start
    fresh = _Search(search.weights, search.blocks, [], label)
    wins = fresh.choose(rival, [(current, name, 0.0)], 0, n_errors=START_STANDARD_ERRORS) is not None
    iteration = 0
    while not wins and iteration < max_iter and may_begin():
        iteration += 1
        updates = steps.attempt(partial(trees.problems[name].updates, current, POWERS[:1]))
        if updates is None or fresh.choose(current, [(updates[0], name, POWERS[0])], iteration) is None:
            break
        before, current = current, updates[0]
        wins = is_clear_gain(
            rival.losses - current.losses, search.weights, START_STANDARD_ERRORS, search.blocks
        )
        is_ahead = search.error(current) < search.error(rival)
        if search.error(current) > (1.0 - (MIN_GAIN if is_ahead else MIN_START_GAIN)) * search.error(before):
            break
    if wins:
        if len(trees.problems) > 1 and may_begin():
            shaped = steps.attempt(partial(trees.others, current, name))
            best = None if shaped is None else fresh.choose(current, shaped, 0)
            if shaped is not None and best is not None:
                current, name, _ = shaped[best]
        iterations = range(iteration + 1, max_iter + 1)
        current = _update(trees.problems[name], current, name, fresh, iterations, steps, max_iter - 1)
    search.history += [replace(step, kept=step.kept and wins) for step in fresh.history]
    return (current, name) if wins else (rival, name)


def _updates(
    problem: MetricProblem, current: Candidate, name: ShapeName
) -> list[tuple[Candidate, ShapeName, float]]:
    """Returns the candidates of an iteration."""
    candidates = problem.updates(current, POWERS)
    return [(candidate, name, power) for candidate, power in zip(candidates, POWERS, strict=True)]


def _varies(X: Any) -> bool:
    """Returns whether any two rows differ."""
    first = X[:1]
    if sp.issparse(X):
        return bool(abs(X - sp.csr_array(np.ones((X.shape[0], 1))) @ first).max() > 0)
    return bool((first != X).any())
