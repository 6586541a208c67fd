"""``method="auto"``: a selection for the curve, construction where it pays, judged on held-out rows.

Where the kernel is not positive semidefinite, there are no distances, and the pursuit compares outputs.

Two descents through the sizes (see `judge`), with a share of the error each, so that both together are wrong
no oftener than one would be. The pursuit goes from as many vectors as it may down, in a moment. Construction
goes from half of the model's vectors down, each size 0.6 of the one before, and then looks between the last
that is good enough and the next. Vectors aim at the model's answers; where these are not good enough, at a
share of the labels too. The smaller model wins. Where a number of vectors is asked
for, the pursuit's and two constructions, from cluster centres and from the pursuit's vectors, are made
and the best on the held-out rows is taken: none of them is better there than what is given back.

The work of construction is planned in multiplications, not by a clock, so that a seed gives the same model on
any machine: `OPERATIONS` in all, some 10 to 30 seconds of one core, beside which the pursuit takes little.
Half of them are for one model of each size.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import _num_samples

from svmarrow._support.parameters import refuse
from svmarrow.models.base import ExpansionModel
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.reduced_set.construction import GradientSettings
from svmarrow.reduced_set.judge import Descent
from svmarrow.reduced_set.score import without_kind
from svmarrow.reduced_set.selection import SelectionSettings
from svmarrow.reduced_set.sizes import promised
from svmarrow.reduced_set.task import DEFAULT_PATH, path_of, pursuit_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.reduced_set.judge import Demand, Judge
    from svmarrow.reduced_set.task import Task

__all__ = ["announcement", "best_of_size", "plan", "smallest"]

OPERATIONS = 2e11
"""Multiplications that construction may take."""

RATE = 1e10
"""Of them in a second of a core, for what is told beforehand."""

OF_DESCENT = 0.5
"""Share of them for one model of each size down to the smallest; the rest is for second tries."""

MOST, LEAST = 512, 8
"""Largest and smallest size that construction begins with."""

BESIDES = 50
"""What a vector and a row cost beside their features and outputs, in multiplications."""

SHARE = 2
"""Construction begins with one in so many of the model's vectors."""

SHRINK = 0.6
"""A size that is made over the one before."""

HALVINGS = 2
"""Sizes between the smallest that is good enough and the next, which is not."""

MOST_STEPS, LEAST_STEPS = 8_000, 2_000
"""Steps of a construction; where the least are too dear, it begins with fewer vectors."""

PLACES, MOST_PLACES = 6_000, 8
"""Places to compare the models at, where fewer rows than that are given, and the most of a row."""

OF_CONSTRUCTION = 0.7
"""Share of the error that construction may spend."""

AIMS = (0.0, 0.3)
"""Shares of the labels in what made vectors aim at: on noisy rows the model is the better teacher, where it
knows little (many classes, few rows; numbers) the labels help. Tried in this order, for numbers the other way
round; which was good at a size comes first at the next."""


def plan(expansion: Any, n_rows: int, most: int, settings: GradientSettings) -> tuple[list[int], int]:
    """Sizes to make, decreasing, and steps for each.

    Parameters
    ----------
    expansion : KernelExpansion
        The full model.
    n_rows : int
        Rows to learn from.
    most : int
        The most vectors that the small model may have.
    settings : GradientSettings
        Its steps, where it names some.

    Returns
    -------
    sizes : list of int
        Empty where the model is too small for any, or its columns are too many.
    steps : int
        Steps of each.
    """
    m = expansion.n_vectors
    size = min(MOST, max(LEAST, m // SHARE), most, m - 1, n_rows)
    # A step moves each vector for each row of the batch; the sizes together are a geometric series.
    of_vector = _of_vector(expansion, settings) / (1.0 - SHRINK)
    affordable = int(OF_DESCENT * OPERATIONS / (of_vector * LEAST_STEPS))
    size = min(size, affordable) if affordable >= min(size, LEAST) else 0
    sizes: list[int] = []
    while size >= 1:
        sizes.append(size)
        size = min(size - 1, int(SHRINK * size + 0.5))
    steps = settings.steps
    if steps is None:
        most_steps = OF_DESCENT * OPERATIONS / (of_vector * max(sizes, default=1))
        steps = int(np.clip(most_steps, LEAST_STEPS, MOST_STEPS))
    return sizes, steps


def _of_vector(expansion: Any, settings: GradientSettings) -> float:
    """Multiplications of a step for a vector."""
    d, q = int(expansion.vectors.shape[1]), expansion.n_outputs
    return float(settings.batch * (2 * d + 3 * q + BESIDES))


def _steps_of_size(expansion: Any, size: int, settings: GradientSettings) -> int:
    """Steps of each of two constructions of one size; none where they are too dear."""
    if settings.steps is not None:
        return settings.steps
    return int(np.clip(OPERATIONS / (2 * size * _of_vector(expansion, settings)), 0, MOST_STEPS))


def announcement(task: Task, whole: Any, *, of_size: bool) -> str:
    """What ``"auto"`` is going to do, in a sentence.

    Parameters
    ----------
    task : Task
        As for `smallest` and `best_of_size`.
    whole : ExpansionModel or KernelExpansion
        The full model.
    of_size : bool
        Whether models of one size are made.

    Returns
    -------
    str
        The sentence.
    """
    work, expansion = _Work(task, None), without_kind(whole)
    most = min(task.n_vectors or DEFAULT_PATH, expansion.n_vectors)
    if of_size:
        sizes, steps = [most] * 2, _steps_of_size(expansion, most, work.making)
    else:
        sizes, steps = plan(expansion, work.n_rows(whole), most, work.making)
    seconds = sum(sizes) * steps * _of_vector(expansion, work.making) / RATE
    if not sizes or not steps:
        return "auto: a pursuit alone, vectors would be too dear to make"
    made = f"two models of {most} vectors are made"
    if not of_size:
        made = f"vectors are made for sizes {', '.join(map(str, sizes))} as long as they are good enough"
    limit = "" if task.max_time is None else f", {task.max_time:g} s by the clock at most"
    return (
        f"auto: a pursuit, then {made}, {steps:,} steps each: some {max(1.0, seconds):.0f} s of one core"
        f"{limit}"
    )


class _Work:
    """What both ways share: the task's rows and settings, and the time that is left."""

    def __init__(self, task: Task, progress: ProgressCallback | None) -> None:
        self.task, self.progress = task, progress
        self.begin = monotonic()
        given = task.settings
        if given is not None and not isinstance(given, (GradientSettings, SelectionSettings)):
            raise refuse("settings", given, "None, a GradientSettings or a SelectionSettings")
        self.making = given if isinstance(given, GradientSettings) else self._settings()
        self.choosing = given if isinstance(given, SelectionSettings) else None

    def _settings(self) -> GradientSettings:
        # Few rows say little of the model; it can be asked beside them, too.
        usual = GradientSettings()
        if self.task.X is None:
            return usual
        places = PLACES // max(1, int(_num_samples(self.task.X)))
        return replace(usual, places=int(np.clip(places, usual.places, MOST_PLACES)))

    def n_rows(self, whole: Any) -> int:
        """Rows that construction learns from."""
        return without_kind(whole).n_vectors if self.task.X is None else int(_num_samples(self.task.X))

    def left(self) -> float | None:
        if self.task.max_time is None:
            return None
        return max(0.0, self.task.max_time - (monotonic() - self.begin))

    def pursuit(self) -> Any:
        # Thresholds are set for the full model's answers: on rows that it was trained on, its labels are
        # too good an aim.
        task = self.task._replace(
            method="pursuit", settings=self.choosing, y=None, scoring=None, max_time=self.left()
        )
        return pursuit_of(task, self.progress)

    def aims(self, whole: Any) -> list[float | None]:
        """Shares of the labels to try, the likelier first."""
        asked, y = self.making.label_weight, self.task.y
        comparing = self.making.loss == "agreement" and getattr(whole, "decoding", "") != "code"
        if asked is not None or y is None or not comparing or isinstance(whole, ExpansionDetector):
            return [asked]
        if not self.task.counts_alike(whole):
            return [None]
        return [*AIMS] if isinstance(whole, ExpansionClassifier) else [*reversed(AIMS)]

    def made(self, size: int, steps: int, start: Any = "centres", aim: float | None = None) -> Any:
        """A constructed model, None where the time is over."""
        if self.left() == 0.0:
            return None
        settings = replace(self.making, steps=steps, sizes=None, start=start, label_weight=aim)
        task = self.task._replace(method="gradient", settings=settings, n_vectors=size, candidates="vectors")
        if aim == 0.0 and not isinstance(self.task.model, ExpansionClassifier):
            task = task._replace(y=None, scoring=None)
        found = path_of(task._replace(tol=0.0, max_time=self.left()), self.progress, every_size=False)
        return found[found.sizes[-1]]


def smallest(
    task: Task,
    whole: Any,
    demands: Sequence[Demand],
    confidence: float,
    progress: ProgressCallback | None,
    timed: Any,
    limits: dict[str, Any],
    *,
    strict: bool,
) -> Any:
    """The smallest model that meets the demands.

    Parameters
    ----------
    task : Task
        With the rows to learn from.
    whole : ExpansionModel or KernelExpansion
        The full model.
    demands : sequence of Demand
        With the rows that judge, which are others.
    confidence : float
        How sure the promise is to be.
    progress : callable or None
        See `compress`.
    timed : {array-like, sparse matrix}
        Rows to measure the time of predictions with.
    limits : dict
        ``max_bytes`` and ``max_microseconds``.
    strict : bool
        Whether the promise must keep to the demands, not only the loss as measured.

    Returns
    -------
    ExpansionModel or KernelExpansion
        The full model where none that is smaller meets them.
    """
    work = _Work(task, progress)
    judges = [demand.judge for demand in demands]
    error = 1.0 - confidence
    path = work.pursuit()
    chosen = Descent(demands, (1.0 - OF_CONSTRUCTION) * error)
    limit = path.within(timed, **limits)[0]
    chosen.through(path.levels(judges, limit))
    made, models = Descent(demands, OF_CONSTRUCTION * error), {}
    sizes, steps = plan(without_kind(whole), work.n_rows(whole), limit, work.making)
    # A strict promise is one test of one model at each size.
    aims = [work.making.label_weight] if strict else work.aims(whole)
    n_aims = len(aims)
    spent, each = 0.0, steps * _of_vector(without_kind(whole), work.making)

    def best(size: int) -> list[NDArray[np.float64]] | None:
        """Merits of the first aim that is good enough at a size, else of the better one."""
        nonlocal spent
        found: list[tuple[float, int, list[NDArray[np.float64]], Any]] = []
        for at, aim in enumerate(aims):
            if found and spent + size * each > OPERATIONS:
                break
            model = work.made(size, steps, aim=aim)
            spent += size * each
            if model is None:
                break
            merits = [judge.of_model(model) for judge in judges]
            good = made.meets(merits)
            found.append((-1.0 if good else judges[0].loss(merits[0]), at, merits, model))
            if good:
                break
        if not found:
            return None
        _, at, merits, models[size] = min(found, key=lambda one: one[:2])
        aims.insert(0, aims.pop(at))
        return merits

    for size in sizes:
        merits = best(size)
        if merits is None:
            break
        made.look(size, merits)
        if not made.goes_on:
            break
    for _ in range(0 if strict else HALVINGS):
        above, below = made.measured, made.failed
        if above is None or below is None or above[0] - below < 2:
            break
        size = int(np.sqrt(above[0] * below) + 0.5)
        merits = best(size) if spent + size * each <= OPERATIONS else None
        if merits is None:
            break
        made.between(size, merits)
    asked, judge = demands[0].most, judges[0]
    ends = [(descent.promised if strict else descent.measured) for descent in (chosen, made)]
    found = [(end[0], at, end[1]) for at, end in enumerate(ends) if end is not None]
    if found:
        size, at, merits = min(found, key=lambda one: one[:2])
        share = (1.0 - OF_CONSTRUCTION, OF_CONSTRUCTION)[at]
        # Every size that may be made: those of the descent, and three between each two of them.
        tries = 4 * n_aims * len(sizes)
        planned = (len(path.looked_at(limit)), tries)[at]
        tests = (1 if strict else planned) / share
        small = models[size] if at else path[size]
        return promised(small, judge.promise(merits[0], confidence, asked, tests))
    named = {"n_vectors": task.n_vectors, **limits}
    within = ", ".join(f"{name}={value}" for name, value in named.items() if value is not None)
    if within:
        raise ValueError(f"a loss of at most {asked:g} is not reached within {within}: allow more of either")
    same = whole.with_expansion(whole.expansion_) if isinstance(whole, ExpansionModel) else whole
    return promised(same, judge.promise(judge.full, confidence, asked))


def best_of_size(
    task: Task,
    judge: Judge,
    confidence: float,
    progress: ProgressCallback | None,
    timed: Any,
    limits: dict[str, Any],
) -> Any:
    """The best of several models of one size.

    Parameters
    ----------
    task : Task
        With the number of vectors, and the rows to learn from.
    judge : Judge
        The rows that judge.
    confidence : float
        How sure the promise is to be.
    progress : callable or None
        See `compress`.
    timed : {array-like, sparse matrix}
        Rows to measure the time of predictions with.
    limits : dict
        ``max_bytes`` and ``max_microseconds``.

    Returns
    -------
    ExpansionModel or KernelExpansion
        The model.
    """
    work = _Work(task, progress)
    path = work.pursuit()
    chosen = path[path.within(timed, **limits)[0]]
    expansion = without_kind(chosen)
    size = expansion.n_vectors
    most = limits["max_bytes"]
    found = [chosen]
    steps = _steps_of_size(expansion, size, work.making)
    if steps and size <= work.n_rows(judge.model):
        for start in ("centres", expansion.vectors):
            model = work.made(size, steps, start)
            if model is not None and (most is None or without_kind(model).nbytes <= most):
                found.append(model)
    best = min(found, key=lambda model: judge.loss(judge.of_model(model)))
    return promised(best, judge.promise_of(best, confidence, len(found)))
