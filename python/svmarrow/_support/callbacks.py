"""Support of scikit-learn's callbacks (from version 1.9), for which a fit is a tree of tasks.

The root of the tree is ``fit``. Its subtasks are the steps of an algorithm (epochs, the machines of a code)
and the phases that the core reports ten times a second; a phase with a known total has 100 subtasks. Nothing
is done for an estimator without callbacks. The active fit is a context variable, so that every function that
a fit calls can report. A callback may stop a fit early if a part of it is a model: support vector machines
keep the solution so far as on Ctrl-C with ``warm_start``, matching pursuits and compressions by pursuit keep
the chosen vectors, and online learners stop after an epoch. Other fits ignore the request.

Older versions have no callbacks, and estimators have no ``set_callbacks``.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

try:
    from sklearn.callback import with_callbacks
except ImportError:  # before 1.9

    def with_callbacks(method: Any) -> Any:
        """Replaces scikit-learn's in older versions."""
        return method


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "Phases",
    "Subtasks",
    "active_fit",
    "fitting",
    "subtasks",
    "without_callbacks",
]

#: Attributes that scikit-learn's callbacks set on an estimator; they are not part of a model.
ATTRIBUTES = (
    "_skl_callbacks",
    "_callback_fit_ctx",
    "_skl_callbacks_to_teardown",
    "_parent_callback_ctx",
)
#: Number of subtasks of a phase with a known total.
N_PHASE_STEPS = 100


@with_callbacks  # type: ignore[untyped-decorator]
def _tear_down(estimator: Any) -> None:
    """Does nothing; the decorator then tears down all callbacks."""


class ActiveFit(NamedTuple):
    """A running fit that is reported to callbacks, and its callback context."""

    estimator: Any
    context: Any


#: The innermost fit of this context that has callbacks.
_ACTIVE_FIT: ContextVar[ActiveFit | None] = ContextVar("_ACTIVE_FIT", default=None)


def active_fit() -> ActiveFit | None:
    """Returns the innermost running fit that has callbacks, or None."""
    return _ACTIVE_FIT.get()


def without_callbacks(estimator: Any) -> Any:
    """Removes the callbacks of a copy that becomes part of a model, and returns it."""
    for name in ATTRIBUTES:
        vars(estimator).pop(name, None)
    return estimator


@contextmanager
def fitting(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Iterator[None]:
    """Reports the beginning and the end of a fit to the estimator's callbacks, and activates it between."""
    if not (hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")):
        yield
        return
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    try:
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(**data)
        token = _ACTIVE_FIT.set(ActiveFit(estimator, context))
        try:
            yield
        finally:
            _ACTIVE_FIT.reset(token)
        context.call_on_fit_task_end(**data, reconstruction_attributes={})
    finally:
        _tear_down(estimator)


class Subtasks:
    """The steps of an algorithm as subtasks; does nothing without an active fit."""

    def __init__(self, owner: ActiveFit | None, name: str, count: int) -> None:
        self._owner, self._parts = owner, []
        #: Whether a callback has requested a stop.
        self.stopped = False
        if owner is not None:
            self._task = owner.context.subcontext(f"{name}s", max_subtasks=count)
            self._task.call_on_fit_task_begin(estimator=owner.estimator)
            self._parts = [self._task.subcontext(name) for _ in range(count)]

    @contextmanager
    def part(
        self, number: int, of: Any = None, model: Callable[[], dict[str, Any]] | None = None
    ) -> Iterator[None]:
        """Reports a subtask, which is the fit of the estimator ``of`` if one is given.

        ``model()`` returns the attributes with which the estimator predicts if it stops after this subtask.
        """
        if self._owner is None:
            yield
            return
        part, estimator = self._parts[number], self._owner.estimator
        with nullcontext() if of is None else part.propagate_callback_context(of):
            part.call_on_fit_task_begin(estimator=estimator)
            yield
            self.stopped |= part.call_on_fit_task_end(estimator=estimator, reconstruction_attributes=model)

    def end(self) -> None:
        """Reports the end of the last subtask."""
        if self._owner is not None:
            self._task.call_on_fit_task_end(estimator=self._owner.estimator)


@contextmanager
def subtasks(name: str, count: int) -> Iterator[Subtasks]:
    """Creates ``count`` subtasks of the active fit, each named ``name``."""
    tasks = Subtasks(active_fit(), name, count)
    yield tasks
    tasks.end()


class Phases:
    """The phases that the core reports, as tasks."""

    def __init__(self, owner: ActiveFit) -> None:
        self._owner = owner
        self._phase: tuple[str, Any] | None = None
        self._reported = 0
        #: Whether a callback has requested a stop.
        self.stopped = False

    def report(self, phase: str, done: int, total: int | None) -> None:
        """Reports the progress of a phase."""
        if self._phase is None or self._phase[0] != phase:
            self.end()
            # A small total has no even hundredths: then every report is a subtask.
            is_even = total is not None and total >= N_PHASE_STEPS
            task = self._owner.context.subcontext(phase, max_subtasks=N_PHASE_STEPS if is_even else None)
            task.call_on_fit_task_begin(estimator=self._owner.estimator)
            self._phase, self._reported = (phase, task), 0
        task = self._phase[1]
        reached = (
            self._reported + 1
            if task.max_subtasks is None
            else min(N_PHASE_STEPS, N_PHASE_STEPS * done // (total or 1))
        )
        for _ in range(self._reported, reached):
            part = task.subcontext("part")
            part.call_on_fit_task_begin(estimator=self._owner.estimator)
            self.stopped |= part.call_on_fit_task_end(estimator=self._owner.estimator)
        self._reported = max(self._reported, reached)

    def end(self) -> None:
        """Reports the end of the last phase."""
        if self._phase is not None:
            self.stopped |= self._phase[1].call_on_fit_task_end(estimator=self._owner.estimator)
            self._phase = None
