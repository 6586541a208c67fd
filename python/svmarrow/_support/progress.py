"""The one place that tells the progress of long work: on stderr a bar on a terminal with rich, or lines; to
scikit-learn's callbacks of the fit that runs.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol, Self

from svmarrow._support.callbacks import Phases, running

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Progress", "ProgressCallback", "progress"]

#: Seconds between two lines where there is no bar.
_LINE_INTERVAL = 1.0


class ProgressCallback(Protocol):
    """What the extension module calls: phase, work done, its total if known, the gap (or NaN), pair steps.

    True is a wish for an early end that keeps what there is.
    """

    def __call__(
        self, phase: str, done: int, total: int | None, gap: float, steps: int, /
    ) -> bool | None: ...


class Progress:
    """Lines on stderr; a context manager whose ``callback`` goes to the extension module."""

    #: The phase that callbacks may end early, and how much of it makes a model.
    stops_in: tuple[str, int] | None = None
    #: What is told beside the numbers, such as the best so far.
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
        """What is called about ten times a second; ``None`` where nothing is told."""
        return self._tell

    def say(self, text: str, /) -> None:
        """Tell something once."""
        print(text, file=sys.stderr, flush=True)

    def _tell(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool | None:
        if time.monotonic() - self._last >= _LINE_INTERVAL:
            self._last = time.monotonic()
            told = _describe(done, total, gap, steps, self.note)
            print(f"{phase}: {told}", file=sys.stderr, flush=True)
        return None


class _Silent(Progress):
    def say(self, _: str, /) -> None:
        return None

    @property
    def callback(self) -> None:
        return None


class _Bar(Progress):
    """A bar on the terminal; lines while another thread has the bar, since a terminal shows one at a time."""

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

    def say(self, text: str, /) -> None:
        if self._shown:
            self._bar.console.print(text, highlight=False)
        else:
            super().say(text)

    def _tell(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool | None:
        if not self._shown:
            return super()._tell(phase, done, total, gap, steps)
        if phase not in self._tasks:
            self._tasks[phase] = self._bar.add_task(phase, total=total, state="")
        state = _describe(done, total, gap, steps, self.note)
        self._bar.update(self._tasks[phase], completed=done, total=total, state=state)
        return None


class _Told(Progress):
    """The callbacks of a fit, beside what is shown."""

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

    def say(self, text: str, /) -> None:
        self._shown.say(text)

    def _tell(self, phase: str, done: int, total: int | None, gap: float, steps: int, /) -> bool | None:
        shown, self._shown.note = self._shown.callback, self.note
        if shown is not None:
            shown(phase, done, total, gap, steps)
        self._phases.tell(phase, done, total)
        if self.stops_in is None:
            return False
        stopping, least = self.stops_in
        return self._phases.stopped and phase == stopping and done >= least


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
    """A context manager for one piece of long work; shows nothing unless ``verbose``."""
    task = running()
    return _shown(verbose) if task is None else _Told(_shown(verbose), Phases(task))


def _shown(verbose: bool | int) -> Progress:
    if not verbose:
        return _Silent()
    if not sys.stderr.isatty():
        return Progress()
    try:
        return _Bar()
    except ImportError:
        return Progress()
