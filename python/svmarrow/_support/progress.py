"""Progress reports of long computations: on stderr, as one line that a terminal or a notebook rewrites or as
lines, and to scikit-learn's callbacks of the active fit.
"""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from svmarrow._support.callbacks import Phases, active_fit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

__all__ = ["Progress", "ProgressCallback", "TimeOver", "progress", "within"]

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
