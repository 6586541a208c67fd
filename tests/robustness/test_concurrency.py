"""Threads, forks, processes and pools inside pools: the answers are those of one fit after the other.

Each way runs in a process of its own (``tests/concurrency.py``), which is ended where it does not end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from concurrency import WAYS
from svmarrow._support.blas import one_blas_thread, product

PROGRAM = Path(__file__).resolve().parents[1] / "concurrency.py"
NAMES = [way.__name__ for way in WAYS if hasattr(os, "fork") or not way.__name__.startswith("fork")]


@pytest.mark.parametrize("way", NAMES)
def test_it_is_as_alone(way):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM, way], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


# --- the threads of BLAS ---


def blas_threads():
    from threadpoolctl import threadpool_info  # noqa: PLC0415 - the state at this moment

    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_one_thread_at_a_time_and_what_was_there_is_put_back():
    before, seen, ready = blas_threads(), [], threading.Event()

    def other():
        ready.set()
        with one_blas_thread():
            seen.append(blas_threads())

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert ready.wait(60.0)
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
        assert not seen
    thread.join()
    assert set(seen[0]) == {1}
    assert blas_threads() == before


def test_an_exception_puts_it_back():
    before = blas_threads()
    with pytest.raises(ValueError, match="matmul"):
        product(np.ones((2, 3)), np.ones((2, 3)))
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_waits_and_its_child_can_work():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            inside.set()
            leave.wait(0.2)

    before, thread = blas_threads(), threading.Thread(target=other)
    thread.start()
    assert inside.wait(60.0)
    child = os.fork()
    if child == 0:
        # Without the wait the lock would be taken for ever.
        os._exit(0 if blas_threads() == before and product(np.eye(2), np.eye(2)).sum() == 2.0 else 1)
    leave.set()
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert blas_threads() == before
