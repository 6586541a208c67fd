"""Ctrl-C in a process of its own, and how much that process still works before it obeys.

A clock on the wall would measure the machine and whoever else uses it. So the process counts its own
processor time between the signal and the exception, and compares it with that of a piece of work of a known
size, done by the same process right afterwards.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest

posix = pytest.mark.skipif(os.name == "nt", reason="Ctrl-C of a process is a POSIX signal")

#: The unit of work takes about a second on a machine of 2020: drawing numbers, on one thread and in no
#: particular instruction set.
_PROGRAM = """
import json, os, signal, threading, time
import numpy as np
{setup}
def interrupt():
    start = time.process_time()
    while time.process_time() < start + {busy}:
        time.sleep(0.01)
    told.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)
told, raised = [], None
timer = threading.Thread(target=interrupt, daemon=True)
timer.start()
try:
    work()
except (KeyboardInterrupt, SystemExit) as error:
    raised = [type(error).__name__, *map(str, error.args)]
    worked = time.process_time() - told[0]
if raised is not None:
    timer.join()
    start = time.process_time()
    random = np.random.default_rng(0)
    for _ in range(100):
        random.standard_normal(1_000_000)
    unit = time.process_time() - start
    print(json.dumps([raised, worked / unit, after()]))
"""


def interrupted(setup: str, busy: float = 1.0) -> tuple[list[str], float, Any, str]:
    """Runs ``work()`` of a program for some processor seconds, then sends Ctrl-C.

    ``setup`` defines ``work``, which would run for minutes, and ``after``, whose value is given back. The
    result: what was raised, units of work between the signal and that, the value, and what went to stderr.
    """
    program = _PROGRAM.format(setup=textwrap.dedent(setup), busy=busy)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.stdout, f"the work ended before Ctrl-C, or failed:\n{done.stderr}"
    raised, units, value = json.loads(done.stdout.splitlines()[-1])
    return raised, units, value, done.stderr


def stops_at_once(setup: str) -> Any:
    """Sees that ``work()`` ends by a KeyboardInterrupt within a unit of work; the value of ``after()``."""
    raised, units, value, _ = interrupted(setup)
    assert raised == ["KeyboardInterrupt"]
    assert units < 1.0
    return value
