"""Ctrl-C, and how much a process still works before it obeys.

A clock on the wall would measure the machine and whoever else uses it. So the process counts its own
processor time between the signal and the exception, and compares it with that of a piece of work of a known
size, done by the same process right afterwards.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

posix = pytest.mark.skipif(os.name == "nt", reason="Ctrl-C of a process is a POSIX signal")

#: Seconds after which a process or a thread hangs: on a loaded machine it may take a hundred times as long.
HANG = 1800.0

TESTS = Path(__file__).resolve().parents[1]

_PROGRAM = """
import json, sys
import numpy as np
sys.path.insert(0, {tests!r})
from helpers import interruption
{setup}
ended_ = interruption.stopped(work, {busy})
assert ended_ is not None, "the work ended before Ctrl-C"
print(json.dumps([ended_[0], ended_[1] / interruption.unit(), after()]))
"""


def unit(share: int = 1) -> float:
    """Processor seconds of the unit of work: about one on a machine of 2020.

    It draws numbers, on one thread and in no particular instruction set; a part of it is told for the whole.
    """
    start = time.process_time()
    random = np.random.default_rng(0)
    for _ in range(100 // share):
        random.standard_normal(1_000_000)
    return share * (time.process_time() - start)


def stopped(work: Callable[[], Any], busy: float) -> tuple[list[str], float] | None:
    """Sends Ctrl-C to this process when it has worked for so many processor seconds.

    Returns what was raised and the processor seconds between the signal and that; None if the work ended
    first.
    """
    # Whoever starts processes in the background may have them ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    told: list[float] = []
    over = threading.Event()

    def interrupt() -> None:
        start = time.process_time()
        while time.process_time() < start + busy:
            if over.wait(0.005):
                return
        told.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Thread(target=interrupt, daemon=True)
    timer.start()
    ended = False
    try:
        work()
        ended = True
        over.set()
        timer.join()
    except BaseException as error:
        if not told:
            raise
        worked = time.process_time() - told[0]
        timer.join()
        return None if ended else ([type(error).__name__, *map(str, error.args)], worked)
    finally:
        over.set()
    return None


def interrupted(setup: str, busy: float = 1.0) -> tuple[list[str], float, Any, str]:
    """Runs ``work()`` of a program for some processor seconds, then sends Ctrl-C.

    ``setup`` defines ``work``, which would run for minutes, and ``after``, whose value is given back. The
    result: what was raised, units of work between the signal and that, the value, and what went to stderr.
    """
    program = _PROGRAM.format(setup=textwrap.dedent(setup), busy=busy, tests=str(TESTS))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG)
    assert done.stdout, done.stderr
    raised, units, value = json.loads(done.stdout.splitlines()[-1])
    return raised, units, value, done.stderr


def stops_at_once(setup: str) -> Any:
    """Sees that ``work()`` ends by a KeyboardInterrupt within a unit of work; the value of ``after()``."""
    raised, units, value, _ = interrupted(setup)
    assert raised == ["KeyboardInterrupt"]
    assert units < 1.0
    return value
