"""scikit-learn's callbacks (from version 1.9): a fit as a tree of tasks, each told when it begins and ends.

The root of the tree is ``fit``. Below it lie the parts that a family has by nature (passes over the rows, the
machines of a code), and what the core is at, ten times a second: a task for each phase, whose parts are
hundredths of it where the whole is known. Nothing is done for an estimator without callbacks. What runs is
known by the thread that runs it, so that whatever a fit calls can tell. A callback may end a fit early where
a part of it is a model: support vector machines, which it leaves as Ctrl-C would with ``warm_start``,
matching pursuits and compressions by pursuit, which keep what is chosen, and online learners, which end after
an epoch. Elsewhere its wish for an end is passed over.

In older versions there are no callbacks, and estimators have no ``set_callbacks``.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

try:
    from sklearn.callback import with_callbacks
except ImportError:  # before 1.9

    def with_callbacks(method: Any) -> Any:
        """In the place of scikit-learn's."""
        return method


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Phases", "Subtasks", "fitting", "running", "subtasks", "without"]

#: What scikit-learn keeps with an estimator about callbacks: about training, no part of a model.
ATTRIBUTES = (
    "_skl_callbacks",
    "_callback_fit_ctx",
    "_skl_callbacks_to_teardown",
    "_parent_callback_ctx",
)
#: Parts of a phase whose whole is known.
PARTS = 100


@with_callbacks  # type: ignore[untyped-decorator]
def _tear_down(estimator: Any) -> None:
    """Nothing, after which the decorator tears down all callbacks that are set up."""


class Running:
    """A fit that callbacks are told about."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self.estimator, self.context = estimator, context


#: The innermost fit of this thread whose callbacks are told.
_RUNNING: ContextVar[Running | None] = ContextVar("_RUNNING", default=None)


def running() -> Running | None:
    """The fit that callbacks are told about, if there is one."""
    return _RUNNING.get()


def without(estimator: Any) -> Any:
    """Itself, after it has forgotten its callbacks: for copies that are kept as parts of a model."""
    for name in ATTRIBUTES:
        vars(estimator).pop(name, None)
    return estimator


@contextmanager
def fitting(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Iterator[None]:
    """Around a fit: tells the estimator's callbacks of its begin and its end, and of what is between."""
    if not (hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")):
        yield
        return
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    try:
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(**data)
        token = _RUNNING.set(Running(estimator, context))
        try:
            yield
        finally:
            _RUNNING.reset(token)
        context.call_on_fit_task_end(**data, reconstruction_attributes={})
    finally:
        _tear_down(estimator)


class Subtasks:
    """Parts that a family has by nature; nothing where no callbacks are told."""

    def __init__(self, owner: Running | None, name: str, count: int) -> None:
        self._owner, self._parts = owner, []
        #: Whether a callback has asked to go no further.
        self.stopped = False
        if owner is not None:
            self._task = owner.context.subcontext(f"{name}s", max_subtasks=count)
            self._task.call_on_fit_task_begin(estimator=owner.estimator)
            self._parts = [self._task.subcontext(name) for _ in range(count)]

    @contextmanager
    def part(
        self, number: int, of: Any = None, model: Callable[[], dict[str, Any]] | None = None
    ) -> Iterator[None]:
        """The part of a number, done by an estimator of its own where one is given.

        ``model()`` are the attributes with which this estimator predicts as if it ended with this part.
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
        """All parts that there will be are done."""
        if self._owner is not None:
            self._task.call_on_fit_task_end(estimator=self._owner.estimator)


@contextmanager
def subtasks(name: str, count: int) -> Iterator[Subtasks]:
    """So many parts of the fit that runs in this thread, each ``name``."""
    parts = Subtasks(running(), name, count)
    yield parts
    parts.end()


class Phases:
    """What the core tells, as tasks."""

    def __init__(self, owner: Running) -> None:
        self._owner = owner
        self._phase: tuple[str, Any] | None = None
        self._told = 0
        #: Whether a callback has asked to go no further.
        self.stopped = False

    def tell(self, phase: str, done: int, total: int | None) -> None:
        """So much is done of a phase."""
        if self._phase is None or self._phase[0] != phase:
            self.end()
            # A total of few is reached in no even steps: then every look is a part.
            even = total is not None and total >= PARTS
            task = self._owner.context.subcontext(phase, max_subtasks=PARTS if even else None)
            task.call_on_fit_task_begin(estimator=self._owner.estimator)
            self._phase, self._told = (phase, task), 0
        task = self._phase[1]
        reached = self._told + 1 if task.max_subtasks is None else min(PARTS, PARTS * done // (total or 1))
        for _ in range(self._told, reached):
            part = task.subcontext("part")
            part.call_on_fit_task_begin(estimator=self._owner.estimator)
            self.stopped |= part.call_on_fit_task_end(estimator=self._owner.estimator)
        self._told = max(self._told, reached)

    def end(self) -> None:
        """The last phase is over."""
        if self._phase is not None:
            self.stopped |= self._phase[1].call_on_fit_task_end(estimator=self._owner.estimator)
            self._phase = None
