"""A cluster of two processes with one thread each, on this machine's loopback alone."""

from __future__ import annotations

import os
import signal

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from helpers.interruption import HANG


def started():
    """A cluster as a context."""
    return LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        silence_logs=50,
    )


@pytest.fixture(scope="session")
def cluster():
    with started() as made:
        yield made


@pytest.fixture
def client(cluster):
    with Client(cluster, set_as_default=True) as made:
        yield made


@pytest.fixture
def mortal():
    """The client of a cluster whose workers may be killed.

    One of its own for each test: nannies of workers that have been killed may still be at work when it ends.
    """
    with started() as cluster, Client(cluster, set_as_default=True) as made:
        yield made


@pytest.fixture(autouse=True)
def _ends():
    """A test that hangs fails."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def fail(*_):
        raise TimeoutError(f"hangs for {HANG} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(int(HANG))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def kill(mortal):
    """Kills the first worker that is there, or all: their nannies make others."""

    def now(*, everyone=False):
        pids = mortal.run(os.getpid)
        for address in sorted(pids) if everyone else [min(pids)]:
            os.kill(pids[address], signal.SIGKILL)

    return now


@pytest.fixture
def lazy():
    """Arrays as Dask's, in chunks of so many rows."""

    def made(rows, *arrays):
        return [da.from_array(np.asarray(array), chunks=(rows, *np.shape(array)[1:])) for array in arrays]

    return made
