"""Ctrl-C ends long work of every learner within a second; each line of the table would run for minutes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

LEARNERS = {
    "pre-fitting": "KMPRegressor(5000, gamma=0.1).fit(X, y)",
    "any loss": "KMPRegressor(2000, gamma=0.1, loss='huber').fit(X, y)",
    "drawn candidates": "KMPRegressor(5000, gamma=0.1, sample_size=2000).fit(X, y)",
}


@pytest.mark.skipif(os.name == "nt", reason="signals to a child process are POSIX's")
@pytest.mark.parametrize("learner", LEARNERS)
def test_ctrl_c(learner):
    program = f"""
        import numpy as np
        from svmarrow import KMPRegressor
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12000, 8))
        y = np.sin(X[:, 0]) + rng.normal(size=12000)
        print("go", flush=True)
        try:
            {LEARNERS[learner]}
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "go\n"
        time.sleep(1.0)
        assert child.poll() is None
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=60)
    assert output == "stopped\n"
    assert time.monotonic() - start < 2.0
