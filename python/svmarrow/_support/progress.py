"""Progress reports of long computations: on stderr, as a bar on a terminal with rich or as lines, and to
scikit-learn's callbacks of the active fit.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, Self

from svmarrow._support.callbacks import Phases, active_fit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

__all__ = ["Progress", "ProgressCallback", "TimeOver", "ending_at", "progress"]

#: The time on the clock of `time.monotonic` after which work that reports progress raises `TimeOver`.
_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)

#: Seconds between two lines without a bar.
_LINE_INTERVAL = 1.0


class TimeOver(Exception):  # noqa: N818 - it is caught where the limit was set, and never an error
    """The time of `ending_at` is over."""


@contextmanager
def ending_at(deadline: float) -> Iterator[None]:
    """Raises `TimeOver` in the block, at the first report of progress after a time of `time.monotonic`."""
    outer = _DEADLINE.get()
    token = _DEADLINE.set(deadline if outer is None else min(outer, deadline))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


class ProgressCallback(Protocol):
    """Callback of the extension module: phase, work done, its total if known, the gap (or NaN), SMO steps.

    If it returns True, the computation stops early and keeps its result so far.
    """

    def __call__(
        self, phase: str, done: int, total: int | None, gap: float, steps: int, /
    ) -> bool | None: ...


class Progress:
    """Lines on stderr; a context manager whose ``callback`` goes to the extension module."""

    #: The phase that callbacks may stop early, and the minimum work after which there is a model.
    stops_in: tuple[str, int] | None = None
    #: Text that follows the numbers, such as the best score so far.
    note = ""

    def __init__(self) -> None:
        self._last = time.monotonic()

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
        if time.monotonic() - self._last >= _LINE_INTERVAL:
            self._last = time.monotonic()
            print(f"{phase}: {_describe(done, total, gap, steps, self.note)}", file=sys.stderr, flush=True)
        return None


class _Silent(Progress):
    @property
    def callback(self) -> None:
        return None


class _Bar(Progress):
    """A bar on the terminal, or lines while another thread uses the terminal's only bar."""

    _terminal = threading.Lock()

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"))
        self._bar = RichProgress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
        self._tasks: dict[str, Any] = {}
        self._shown = False

    def __enter__(self) -> Self:
        self._shown = self._terminal.acquire(blocking=False)
        if self._shown:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._bar.stop()
            self._terminal.release()

    def _report(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool | None:
        if not self._shown:
            return super()._report(phase, done, total, gap, steps)
        if phase not in self._tasks:
            self._tasks[phase] = self._bar.add_task(phase, total=total, state="")
        state = _describe(done, total, gap, steps, self.note)
        self._bar.update(self._tasks[phase], completed=done, total=total, state=state)
        return None


class _CallbackProgress(Progress):
    """Reports to the callbacks of a fit in addition to the shown progress."""

    def __init__(self, shown: Progress, phases: Phases) -> None:
        super().__init__()
        self._shown, self._phases = shown, phases

    def __enter__(self) -> Self:
        self._shown.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.__exit__(kind, error, trace)
        if kind is None:
            self._phases.end()

    def _report(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool | None:
        shown, self._shown.note = self._shown.callback, self.note
        if shown is not None:
            shown(phase, done, total, gap, steps)
        self._phases.report(phase, done, total)
        if self.stops_in is None:
            return False
        stopping, min_done = self.stops_in
        return self._phases.stopped and phase == stopping and done >= min_done


class _TimedProgress(Progress):
    """Ends the work after a deadline, in addition to the shown progress."""

    def __init__(self, shown: Progress, deadline: float) -> None:
        super().__init__()
        self._shown, self._deadline = shown, deadline

    def __enter__(self) -> Self:
        self._shown.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.__exit__(kind, error, trace)

    def _report(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool | None:
        if time.monotonic() >= self._deadline:
            raise TimeOver
        self._shown.note, self._shown.stops_in = self.note, self.stops_in
        shown = self._shown.callback
        return None if shown is None else shown(phase, done, total, gap, steps)


def _describe(done: int, total: int | None, gap: float, steps: int, note: str) -> str:
    parts = [f"{done:,}" if total is None else f"{done:,} of {total:,}"]
    if steps:
        parts.append(f"{steps:,} steps")
    if not math.isnan(gap):
        parts.append(f"gap {gap:.3g}")
    if note:
        parts.append(note)
    return ", ".join(parts)


def progress(verbose: bool | int) -> Progress:
    """Returns a context manager for one long computation; shows nothing unless ``verbose``."""
    task, deadline = active_fit(), _DEADLINE.get()
    shown = _shown(verbose) if task is None else _CallbackProgress(_shown(verbose), Phases(task))
    return shown if deadline is None else _TimedProgress(shown, deadline)


def _shown(verbose: bool | int) -> Progress:
    if not verbose:
        return _Silent()
    if not sys.stderr.isatty():
        return Progress()
    try:
        return _Bar()
    except ImportError:
        return Progress()
