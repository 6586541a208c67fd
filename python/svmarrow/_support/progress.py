"""Progress of a computation: its time, scikit-learn's callbacks, and lines on stderr; how it is stopped."""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType


__all__ = [
    "UNTIMED",
    "Phases",
    "Progress",
    "ProgressCallback",
    "Steps",
    "Subtasks",
    "TimeOver",
    "active_fit",
    "fitting",
    "progress",
    "subtasks",
    "within",
    "without_callbacks",
]


# --- the steps of a computation in Python: their progress, and the time after which they end ---


Result = TypeVar("Result")


class Steps:
    """Reports steps, says whether the next one may begin, and ends one for which the time is over.

    Parameters
    ----------
    callback : callable or None
        The callback of a `svmarrow._support.progress.Progress`.
    max_time : float or None
        Seconds from now.
    """

    def __init__(self, callback: ProgressCallback | None, max_time: float | None) -> None:
        self._callback = callback
        self._deadline = None if max_time is None else time.monotonic() + max_time
        self.was_stopped = False
        #: True if a step was replaced by a shorter one.
        self.was_shortened = False

    @property
    def remaining(self) -> float | None:
        """Seconds until the end, at least 0; None without a limit."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def first_part(self, share: float) -> Steps:
        """Returns steps that end after a share of the remaining time."""
        remaining = self.remaining
        return Steps(self._callback, None if remaining is None else share * remaining)

    def may_begin(self, phase: str, done: int, total: int) -> bool:
        """Reports the steps that are done; returns whether there is time for another one."""
        if self._callback is not None:
            self._callback(phase, done, total, math.nan, 0)
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self.was_stopped = True
        return not self.was_stopped

    def attempt(self, work: Callable[[], Result], *, reports: bool = False) -> Result | None:
        """Returns the result of a step; None if the time was over before its end.

        Fits within `work` end at their next report of progress, which is shown if `reports`.
        """
        if self._deadline is None and not reports:
            return work()
        if self._deadline is None or time.monotonic() < self._deadline:
            try:
                with within(self._deadline, self._callback if reports else None):
                    return work()
            except TimeOver:
                pass
        self.was_stopped = True
        return None


#: Steps that are not reported and have no limit.
UNTIMED = Steps(None, None)


# --- support of scikit-learn's callbacks (from version 1.9), for which a fit is a tree of tasks ---
# The root of the tree is ``fit``. Its subtasks are the steps of an algorithm (epochs, the machines of a
# code) and the phases that the core reports ten times a second; a phase with a known total has 100
# subtasks. Nothing is done for an estimator without callbacks. The active fit is a context variable, so
# that every function that a fit calls can report. A callback may stop a fit early if a part of it is a
# model: support vector machines keep the solution so far as on Ctrl-C with ``warm_start``, matching
# pursuits and compressions by pursuit keep the chosen vectors, and online learners stop after an epoch.
# Other fits ignore the request.
#
# Older versions have no callbacks, and estimators have no ``set_callbacks``.


try:
    from sklearn.callback import with_callbacks
except ImportError:  # before 1.9

    def with_callbacks(method: Any) -> Any:
        """Replaces scikit-learn's in older versions."""
        return method


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
def fitting(estimator: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Iterator[None]:
    """Reports the beginning and the end of a fit to the estimator's callbacks, and activates it between."""
    if not (hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")):
        yield
        return
    given = {"sample_weight": sample_weight, "groups": groups}
    metadata = {name: value for name, value in given.items() if value is not None} or None
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


# --- progress reports of long computations ---


#: Seconds between two lines without a bar.
_LINE_INTERVAL = 1.0
#: Minimum share and seconds of a phase before the remaining seconds are estimated.
_MIN_SHARE, _MIN_SECONDS = 0.02, 1.0
#: The phases of the extension module, and those of tables, in words.
PHASES = {
    "prepare": "preparing samples",
    "fit": "training",
    "gradients": "training",
    "gradient": "moving vectors",
    "kernel": "kernel values",
    "product": "kernel products",
    "factor": "factorization",
    "inverse": "leave-one-out values",
    "precondition": "preconditioner",
    "features": "features of the vectors",
    "sums": "sums over the samples",
    "select": "selecting vectors",
    "pursuit": "selecting vectors",
    "dictionary": "evaluating the dictionary",
    "path": "path of models",
    "outputs": "predicting",
    "scales": "learning scales",
    "kernels": "choosing the kernel",
}


class _Outer(NamedTuple):
    """The limit and the callback of an enclosing computation."""

    #: The time on the clock of `time.monotonic` after which reports of progress raise `TimeOver`.
    deadline: float | None
    #: The callback of the enclosing computation, to which the work reports.
    callback: ProgressCallback | None


_OUTER: ContextVar[_Outer | None] = ContextVar("outer", default=None)


class TimeOver(Exception):  # noqa: N818 - it is caught where the limit was set, and never an error
    """The time of `within` is over."""


@contextmanager
def within(deadline: float | None, callback: ProgressCallback | None = None) -> Iterator[None]:
    """Raises `TimeOver` at the first report of progress after a time of `time.monotonic`.

    The reports go to the callback too.
    """
    outer = _OUTER.get()
    if outer is not None:
        ends = [end for end in (deadline, outer.deadline) if end is not None]
        deadline, callback = min(ends, default=None), callback or outer.callback
    token = _OUTER.set(_Outer(deadline, callback))
    try:
        yield
    finally:
        _OUTER.reset(token)


class ProgressCallback(Protocol):
    """Callback of the extension module: phase, work done, its total if known, the gap (or NaN), SMO steps.

    If it returns True, the computation stops early and keeps its result so far.
    """

    def __call__(
        self, phase: str, done: int, total: int | None, gap: float, steps: int, /
    ) -> bool | None: ...


class Progress:
    """Lines on stderr, at most one a second; a context manager whose ``callback`` takes the reports."""

    #: The phase that callbacks may stop early, and the minimum work after which there is a model.
    stops_in: tuple[str, int] | None = None
    #: Text that follows the numbers, such as the best score so far.
    note = ""
    #: The tolerance that the violation is compared with, if the work has one.
    tolerance: float | None = None

    def __init__(self) -> None:
        self._begin = self._last = time.monotonic()
        self._phase, self._phase_begin, self._phase_done = "", self._begin, 0
        self._total: int | None = None
        self._gap = math.nan

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @property
    def callback(self) -> ProgressCallback | None:
        """The function to call about ten times a second; ``None`` if nothing is reported."""
        return self._report

    def _report(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool | None:
        text = self._describe(phase, done, total, gap, steps)
        if time.monotonic() - self._last >= _LINE_INTERVAL:
            self._last = time.monotonic()
            print(text, file=sys.stderr, flush=True)
        return None

    def _describe(self, phase: str, done: int, total: int | None, gap: float, steps: int) -> str:
        """Returns the phase, the share done, the violation, the seconds and those that remain."""
        now = time.monotonic()
        if (phase, total) != (self._phase, self._total) or done < self._phase_done:
            self._phase, self._total, self._phase_begin = phase, total, now
        self._phase_done = done
        if phase == "gradients":
            # A step of training, with another total in each round.
            total, gap = None, self._gap
            done = 0
        self._gap = gap
        share = done / total if total is not None and total > 1 else None
        parts = []
        if share is not None:
            parts.append(f"{100.0 * share:.0f} %")
        elif total is None and done:
            parts.append(f"{done:,}")
        if steps:
            parts.append(f"{steps:,} steps")
        if not math.isnan(gap):
            tolerance = "" if self.tolerance is None else f" (tolerance {self.tolerance:g})"
            parts.append(f"violation {gap:.3g}{tolerance}")
        parts.append(f"{now - self._begin:.0f} s")
        in_phase = now - self._phase_begin
        if share is not None and share > _MIN_SHARE and in_phase >= _MIN_SECONDS:
            parts.append(f"about {in_phase * (1.0 - share) / share:.0f} s left in this phase")
        if self.note:
            parts.append(self.note)
        return f"{PHASES.get(phase, phase)}: {', '.join(parts)}"


class _Silent(Progress):
    @property
    def callback(self) -> None:
        return None


class _Line(Progress):
    """One line that is rewritten, or lines while another thread writes the only one of the terminal."""

    _terminal = threading.Lock()

    def __init__(self) -> None:
        super().__init__()
        self._shown, self._width = False, 0

    def __enter__(self) -> Self:
        self._shown = self._terminal.acquire(blocking=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write("")
            self._terminal.release()
            self._shown = False

    def _report(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool | None:
        if not self._shown:
            return super()._report(phase, done, total, gap, steps)
        self._write(self._describe(phase, done, total, gap, steps))
        return None

    def _write(self, text: str) -> None:
        """Replaces the line, which is cut at the width of the terminal so that it does not wrap."""
        text = text[: shutil.get_terminal_size().columns - 1]
        end = "" if text else "\r"
        print("\r" + text.ljust(self._width), end=end, file=sys.stderr, flush=True)
        self._width = len(text)


class _Wrapped(Progress):
    """A progress that is shown, and more."""

    def __init__(self, shown: Progress) -> None:
        super().__init__()
        self._shown = shown

    def __enter__(self) -> Self:
        self._shown.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.__exit__(kind, error, trace)


class _CallbackProgress(_Wrapped):
    """Reports to the callbacks of a fit in addition to the shown progress."""

    def __init__(self, shown: Progress, phases: Phases) -> None:
        super().__init__(shown)
        self._phases = phases

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:
            self._phases.end()

    def _report(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool | None:
        shown, self._shown.note = self._shown.callback, self.note
        self._shown.tolerance = self.tolerance
        if shown is not None:
            shown(phase, done, total, gap, steps)
        self._phases.report(phase, done, total)
        if self.stops_in is None:
            return False
        stopping, min_done = self.stops_in
        return self._phases.stopped and phase == stopping and done >= min_done


class _InnerProgress(_Wrapped):
    """Ends the work after a deadline and reports to an outer callback, in addition to the shown progress."""

    def __init__(self, shown: Progress, outer: _Outer) -> None:
        super().__init__(shown)
        self._deadline, self._outer = outer.deadline, outer.callback

    def _report(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool | None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise TimeOver
        self._shown.note, self._shown.stops_in = self.note, self.stops_in
        self._shown.tolerance = self.tolerance
        shown = self._shown.callback or self._outer
        return None if shown is None else shown(phase, done, total, gap, steps)


def progress(verbose: bool | int) -> Progress:
    """Returns a context manager for one long computation; shows nothing unless ``verbose``."""
    task, outer = active_fit(), _OUTER.get()
    shown = _shown(verbose) if task is None else _CallbackProgress(_shown(verbose), Phases(task))
    return shown if outer is None else _InnerProgress(shown, outer)


def _shown(verbose: bool | int) -> Progress:
    if not verbose:
        return _Silent()
    # Notebooks rewrite a line as terminals do.
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return _Line() if in_notebook or sys.stderr.isatty() else Progress()
