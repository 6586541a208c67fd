"""`compress` for a teacher that is no kernel machine: students of several sizes, the choice among them, the
bounds of what they lose.

The loss is that of the teacher's own score, and the agreement is that with the teacher's own answers, which
its ``predict`` gives. Sizes are chosen by the safe loss of `holdout`, as those of kernel machines are. There
is no full model to fall back on: where no size keeps to the goal, the best one is returned with a warning
that holds the curve of all sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from svmarrow._support.parameters import refuse
from svmarrow._support.warn import warn_caller
from svmarrow.exceptions import SizeWarning
from svmarrow.models.distillation import Distillation
from svmarrow.models.loss_bound import LossBound
from svmarrow.reduced_set.holdout import HoldoutEvaluator, SizeSearch
from svmarrow.reduced_set.score import CONFIDENCE, check_scoring, refuse_scoring, with_bound
from svmarrow.reduced_set.students import DistillationSettings, Student, distillation_sizes
from svmarrow.reduced_set.teachers import Teacher, numeric_rows

if TYPE_CHECKING:
    from svmarrow._support.progress import ProgressCallback
    from svmarrow.models.base import ExpansionModel
    from svmarrow.reduced_set.score import Goal

__all__ = ["DistillationRequest", "distil"]

MAX_REFINEMENTS = 2
"""Maximum number of sizes between the smallest that is good enough and the next."""


class DistillationRequest(NamedTuple):
    """The arguments of `compress` that distillation needs."""

    goal: Goal
    learn: Any
    holdout: Any
    scoring: str | None
    settings: Any
    random_state: Any
    n_jobs: int | None


def distil(
    model: Any, y: Any, request: DistillationRequest, progress: ProgressCallback | None
) -> ExpansionModel:
    """A student of a predictor.

    Parameters
    ----------
    model : object
        A fitted estimator or a function of the samples.
    y : array-like or None
        Labels of all samples.
    request : DistillationRequest
        The goal, the samples to learn from and those held out, and the options of `compress`.
    progress : callable or None
        Called with the progress.

    Returns
    -------
    ExpansionModel
        With its ``loss_bound_`` and its ``distillation_``.
    """
    goal, learn, holdout, scoring, settings, random_state, n_jobs = request
    if settings is None:
        settings = DistillationSettings()
    if not isinstance(settings, DistillationSettings):
        raise refuse(
            "settings", settings, "None or a DistillationSettings for a teacher that is no kernel machine"
        )
    numeric_rows(learn.X)
    teacher = Teacher(model, learn.X, y)
    check_scoring(teacher.template, scoring, learn.y if holdout is None else holdout.y)
    if goal.name == "min_agreement":
        refuse_scoring(scoring)
    student = Student(teacher, learn.X, settings, random_state, n_jobs, progress)
    evaluators = None if holdout is None else _Evaluators(teacher, holdout, goal, scoring, n_jobs)
    if goal.max_loss is None:
        size = student.size_within(int(goal.value)) if goal.name == "max_bytes" else int(goal.value)
        sizes = [min(size, student.max_size)]
    else:
        sizes = distillation_sizes(student.max_size)
    curve = {size: student.model(size) for size in sizes}
    chosen, n_tests = sizes[0], 1
    if evaluators is not None and goal.max_loss is not None:
        chosen = _smallest(student, curve, evaluators.goal, goal)
        # Two refinements reach at most three sizes between each two.
        n_tests = 4 * len(sizes)
    sizes = sorted(curve, reverse=True)
    about = Distillation(teacher.name, teacher.source, student.n_given, student.n_drawn, tuple(sizes))
    small = curve[chosen]
    bound = LossBound(None, None, CONFIDENCE, 0, "accuracy")
    if evaluators is not None:
        about = evaluators.curve(about, curve)
        bound = evaluators.bound(small, goal, n_tests)
        if goal.max_loss is not None and not evaluators.keeps(small, goal.max_loss):
            warn_caller(
                f"{goal} cannot be reached: the model has the {chosen} vectors that lose least ({bound}). "
                f"{about}",
                SizeWarning,
            )
    with_bound(small, bound)
    small.distillation_ = about
    return small


class _Evaluators:
    """The losses against a teacher: of its score, where there are labels, and of agreement with it."""

    def __init__(
        self, teacher: Teacher, holdout: Any, goal: Goal, scoring: str | None, n_jobs: int | None
    ) -> None:
        X, y, weights = holdout
        outputs = teacher.outputs(X)
        answers = None if teacher.source == "numbers" else teacher.answers(X)

        def evaluator(y: Any) -> HoldoutEvaluator:
            return HoldoutEvaluator(
                teacher.template,
                X,
                y,
                scoring if y is not None else None,
                n_jobs,
                weights,
                outputs=outputs,
                answers=answers,
            )

        self.agreement = evaluator(None)
        self.score = None if y is None or goal.name == "min_agreement" else evaluator(y)
        self.goal = self.agreement if self.score is None else self.score

    def keeps(self, model: Any, max_loss: float) -> bool:
        """True if the safe loss of a model is at most `max_loss`."""
        return self.goal.safe_loss(self.goal.scores_of(model)) <= max_loss + 1e-12

    def curve(self, about: Distillation, models: dict[int, Any]) -> Distillation:
        """The losses and agreements of all sizes."""
        agreements = tuple(
            1.0 - self.agreement.loss(self.agreement.scores_of(models[size], allow_constant=True))
            for size in about.sizes
        )
        losses: tuple[float, ...] = ()
        if self.score is not None:
            losses = tuple(
                self.score.loss(self.score.scores_of(models[size], allow_constant=True))
                for size in about.sizes
            )
        return replace(about, losses=losses, agreements=agreements)

    def bound(self, model: Any, goal: Goal, n_tests: int) -> LossBound:
        """The bound of the loss, with that of the agreement."""
        scores = self.goal.scores_of(model, allow_constant=True)
        bound = self.goal.loss_bound(scores, CONFIDENCE, goal.max_loss, n_tests)
        if self.score is None:
            return bound
        of_agreement = self.agreement.loss_bound(
            self.agreement.scores_of(model, allow_constant=True), CONFIDENCE, None, n_tests
        )
        assert of_agreement.loss is not None
        assert of_agreement.upper is not None
        return replace(bound, agreement=1.0 - of_agreement.loss, min_agreement=1.0 - of_agreement.upper)


def _smallest(student: Student, curve: dict[int, Any], evaluator: HoldoutEvaluator, goal: Goal) -> int:
    """The smallest size that keeps to the goal, else the one that loses least.

    Sizes between those of `curve` are added to it.
    """
    assert goal.max_loss is not None
    search, losses = SizeSearch(goal.max_loss), {}

    def add(size: int) -> None:
        losses[size] = evaluator.safe_loss(evaluator.scores_of(curve[size]))
        search.add(size, losses[size])

    for size in sorted(curve, reverse=True):
        add(size)
    for _ in range(MAX_REFINEMENTS):
        between = search.next_between
        if between is None:
            break
        curve[between] = student.model(between)
        add(between)
    if search.smallest is not None:
        return search.smallest
    return min(losses, key=lambda size: (losses[size], size))
