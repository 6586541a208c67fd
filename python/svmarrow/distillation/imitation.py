"""`distil`: students of several sizes, the choice among them, the bounds of what they lose.

The loss is that of the teacher's own score, and the agreement is that with the teacher's own answers, which
its ``predict`` gives. Sizes are chosen by the safe loss of `holdout`, as those of kernel machines are. There
is no full model to fall back on: where no size keeps to the goal, the best one is returned with a warning
that holds the curve of all sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from svmarrow._support.parameters import check, refuse, warn_caller
from svmarrow._support.progress import progress as shown_progress
from svmarrow.distillation.students import DistillationSettings, Student, distillation_sizes
from svmarrow.distillation.teachers import Teacher, numeric_rows
from svmarrow.exceptions import SizeWarning
from svmarrow.interop.convert import is_predictor
from svmarrow.models.base import Distillation
from svmarrow.reduced_set.holdout import HoldoutEvaluator, Samples, SizeSearch, split_samples
from svmarrow.reduced_set.score import (
    CONFIDENCE,
    MAX_LOSS,
    MIN_AGREEMENT,
    SIZE_RULES,
    check_scoring,
    goal_of,
    predicts_classes,
    refuse_large_loss,
    refuse_number,
    refuse_scoring,
    with_bound,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from svmarrow.models.base import ExpansionModel, LossBound
    from svmarrow.reduced_set.compression import Scoring
    from svmarrow.reduced_set.score import Goal

__all__ = ["distil"]

MAX_REFINEMENTS = 2
"""Maximum number of sizes between the smallest that is good enough and the next."""


def distil(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    n_vectors: int | None = None,
    max_loss: float = MAX_LOSS,
    min_agreement: float = MIN_AGREEMENT,
    max_bytes: int | None = None,
    validation: tuple[Any, ...] | None = None,
    scoring: Scoring | None = None,
    sample_weight: ArrayLike | None = None,
    settings: DistillationSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> ExpansionModel:
    """Train a small kernel machine that imitates any fitted predictor.

    ``distil(model, X, y)`` holds out half of the samples, at most 20,000. It learns from the others, and from
    samples drawn around them, a kernel expansion with a gamma for each column, and bounds its loss on other
    samples by those held out. The held-out samples have half of each class and follow `random_state`;
    `validation` gives others, so that all of X is learned from.

    There is one goal: `max_loss` by default, `min_agreement` by default without labels, or whichever of
    `n_vectors`, `max_loss`, `min_agreement` and `max_bytes` is passed. The result never has the labels of
    `y`, but the answers of the predictor: labels are read for the loss alone.

    `svmarrow.compress` reduces kernel machines, whose outputs are known exactly.

    Parameters
    ----------
    model : object
        A fitted estimator with ``predict``, or a function of X: floating-point numbers that it returns are
        predicted as such, other values are labels, and samples of non-negative numbers that sum to 1 are
        probabilities. Of a classifier ``predict_proba`` is imitated, else ``decision_function``, else
        ``predict``. Probabilities are clipped to 0.005 to 0.995.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples to learn from, as the predictor takes them, with numbers in all columns and no gaps. Its
        training samples serve if `validation` is given.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Their labels, or targets for regression, with which the loss is measured. Without them only the
        agreement is.
    n_vectors : int, default=None
        Number of vectors.
    max_loss : float, default=0.003
        How much lower the score may be than the predictor's, see `scoring`; 0.003 is 0.3 percentage points
        of accuracy. Needs labels or targets. The default is the goal if there are some and no other goal is
        passed.
    min_agreement : float, default=0.99
        Smallest fraction of samples that get the predictor's label; for regression, R^2 against its outputs,
        averaged over them. Labels `y` are not read. The default is the goal if there are no labels and no
        other goal is passed.
    max_bytes : int, default=None
        Largest number of bytes of the model's arrays.
    validation : tuple of (X, y) or (X, y, sample_weight), default=None
        The samples held out, best some that the predictor has not seen; y may be None.
    scoring : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"}, default=None
        The measure of `max_loss`; needs y. None is "accuracy" for a classifier where `sample_weight` is
        given, "balanced_accuracy" for other classifiers and for detectors, since weights of the predictor's
        training are not known, and "r2" for regression.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples `X` in the loss, in its bound and in the agreement; None is 1 for each.
    settings : DistillationSettings, default=None
        The kernel, the drawn samples and the steps, see `svmarrow.distillation.DistillationSettings`.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples that are held out and drawn, and of the training. None holds out the same samples
        each time.
    n_jobs : int, default=None
        Number of threads. None means all cores that this process may use. The predictor has its own.
    verbose : bool, default=False
        Show the progress on standard error.

    Returns
    -------
    ExpansionClassifier, ExpansionRegressor or ExpansionDetector
        A model of the kind of `model`, ready to predict, with a ``loss_bound_``
        (`svmarrow.models.LossBound`), which includes the agreement, and a ``distillation_`` with the curve of
        the sizes that were tried (`svmarrow.models.Distillation`). Where no size keeps to `max_loss` or
        `min_agreement`, the size that loses least, with a warning.

    Raises
    ------
    ValueError
        If a parameter is out of its range, there are several goals, X holds strings or NaN, or the predictor
        returns several labels for a sample, one class, or numbers that are not finite.
    TypeError
        If `model` does not predict.
    sklearn.exceptions.NotFittedError
        If `model` is not fitted.

    Warns
    -----
    svmarrow.exceptions.SizeWarning
        If no size keeps to `max_loss` or `min_agreement`: the warning holds the curve of what is possible.

    See Also
    --------
    compress : Fewer vectors for a kernel machine.

    Examples
    --------
    A forest as a kernel expansion, learned from its own training samples:

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.utils import shuffle
    >>> from svmarrow import distil
    >>> from svmarrow.distillation import DistillationSettings
    >>> X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X[:800], y[:800])
    >>> quick = DistillationSettings(steps=1000, n_drawn=2000)
    >>> held_out = X[800:1400], y[800:1400]
    >>> small = distil(
    ...     forest, X[:800], y[:800], validation=held_out, n_vectors=50, settings=quick, random_state=0
    ... )
    >>> small.loss_bound_.agreement > 0.9, small.predict_proba(X[:1]).shape
    (True, (1, 10))
    """
    refuse_number(X)
    goals = {
        "n_vectors": n_vectors,
        "max_loss": max_loss,
        "min_agreement": min_agreement,
        "max_bytes": max_bytes,
    }
    check({**goals, "validation": validation}, SIZE_RULES)
    refuse_large_loss(max_loss, scoring)
    goal = goal_of(goals, X, y, validation)
    if settings is None:
        settings = DistillationSettings()
    if not isinstance(settings, DistillationSettings):
        raise refuse("settings", settings, "None or a DistillationSettings")
    if not is_predictor(model):
        name = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise TypeError(
            f"model={name} is not allowed: it must be a fitted estimator with predict, or a function of X; "
            "model files and kernel expansions are for compress"
        )
    numeric_rows(X)
    teacher = Teacher(model, X, y)

    def compared_labels() -> Any:
        return y if y is not None and goal.name != "min_agreement" else teacher.answers(X)

    learn, holdout = split_samples(
        Samples(X, y, sample_weight),
        validation,
        hold_out=True,
        labels=compared_labels if predicts_classes(teacher.template) else None,
        random_state=random_state,
    )
    assert holdout is not None
    check_scoring(teacher.template, scoring, holdout.y)
    if goal.name == "min_agreement":
        refuse_scoring(scoring)
    with shown_progress(verbose) as shown:
        student = Student(teacher, learn.X, settings, random_state, n_jobs, shown.callback)
        return _chosen(student, _Evaluators(teacher, holdout, goal, scoring, n_jobs), goal)


def _chosen(student: Student, evaluators: _Evaluators, goal: Goal) -> ExpansionModel:
    """Returns the student of the size that the goal asks for, with its bound and the curve of the sizes."""
    if goal.max_loss is None:
        size = student.size_within(int(goal.value)) if goal.name == "max_bytes" else int(goal.value)
        sizes = [min(size, student.max_size)]
    else:
        sizes = distillation_sizes(student.max_size)
    curve = {size: student.model(size) for size in sizes}
    chosen, n_tests = sizes[0], 1
    if goal.max_loss is not None:
        chosen = _smallest(student, curve, evaluators.goal, goal)
        # Two refinements reach at most three sizes between each two.
        n_tests = 4 * len(sizes)
    sizes = sorted(curve, reverse=True)
    teacher = student.teacher
    record = Distillation(teacher.name, teacher.source, student.n_given, student.n_drawn, tuple(sizes))
    record = evaluators.curve(record, curve)
    small = curve[chosen]
    bound = evaluators.bound(small, goal, n_tests)
    if goal.max_loss is not None and not evaluators.keeps(small, goal.max_loss):
        warn_caller(
            f"{goal} cannot be reached: the model has the {chosen} vectors that lose least ({bound}). "
            f"{record}",
            SizeWarning,
        )
    with_bound(small, bound)
    small.distillation_ = record
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

    def curve(self, record: Distillation, models: dict[int, Any]) -> Distillation:
        """The losses and agreements of all sizes."""
        agreements = tuple(
            1.0 - self.agreement.loss(self.agreement.scores_of(models[size], allow_constant=True))
            for size in record.sizes
        )
        losses: tuple[float, ...] = ()
        if self.score is not None:
            losses = tuple(
                self.score.loss(self.score.scores_of(models[size], allow_constant=True))
                for size in record.sizes
            )
        return replace(record, losses=losses, agreements=agreements)

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
