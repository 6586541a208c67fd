"""The steps of a computation in Python: their progress, and the time after which no further step begins."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from svmarrow._support.progress import ProgressCallback

__all__ = ["UNTIMED", "Steps"]


class Steps:
    """Reports steps, and says whether the next one may begin.

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

    def may_begin(self, phase: str, done: int, total: int) -> bool:
        """Reports the steps that are done; returns whether there is time for another one."""
        if self._callback is not None:
            self._callback(phase, done, total, math.nan, 0)
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self.was_stopped = True
        return not self.was_stopped


#: Steps that are not reported and have no limit.
UNTIMED = Steps(None, None)
