"""The same bits for any number of threads: every public estimator and reducer, in processes of their own."""

from __future__ import annotations

import functools
import inspect
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import svmarrow
from helpers.fingerprints import NAMES, set_default_jobs
from helpers.interruption import HANG
from helpers.public import PUBLIC
from svmarrow import _core

PROGRAM = Path(__file__).resolve().parents[1] / "fingerprints.py"
#: Numbers of threads that are compared with one thread, by instruction set, the widest first.
LEVELS = {"": ("2", "3", "None"), "avx2": ("3",), "scalar": ("3",)}


@functools.cache
def digests(level, jobs):
    environment = {key: value for key, value in os.environ.items() if key != "SVMARROW_SIMD"}
    if level:
        environment["SVMARROW_SIMD"] = level
    if jobs == "None":
        # One thread for NumPy's and SciPy's linear algebra too.
        environment["OMP_NUM_THREADS"] = "1"
    done = subprocess.run(
        [sys.executable, PROGRAM, jobs], env=environment, capture_output=True, text=True, timeout=HANG
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("level", "counts"),
    [("", ("3",)), *(pytest.param(*item, marks=pytest.mark.exhaustive) for item in LEVELS.items())],
)
def test_threads_change_no_bit(level, counts):
    with ThreadPoolExecutor(2) as pool:
        one, *others = pool.map(lambda jobs: digests(level, jobs), ["1", *counts])
    assert list(one) == NAMES
    for jobs, other in zip(counts, others, strict=True):
        assert other == one, (jobs, [name for name in one if other[name] != one[name]])


@pytest.mark.exhaustive
def test_the_instruction_sets_are_different_programs():
    """Else the comparison above would compare one of them with itself; the last digits tell them apart."""
    if _core.simd_level() in {"scalar", "neon"}:
        # The portable vectors are as wide as NEON's on 64-bit ARM, and fused there: most sums are the same.
        pytest.skip("this machine has no instruction set of another width")
    widest, scalar = digests("", "1"), digests("scalar", "1")
    different = [name for name in NAMES if widest[name] != scalar[name]]
    assert len(different) > len(NAMES) / 2


def test_the_number_of_threads_reaches_every_learner():
    """Else the processes above would all do the same."""
    learners = [PUBLIC[name] for name in PUBLIC if hasattr(PUBLIC[name], "fit")]
    try:
        set_default_jobs(3)
        assert {inspect.signature(learner).parameters["n_jobs"].default for learner in learners} == {3}
        assert inspect.signature(svmarrow.compress).parameters["n_jobs"].default == 3
        assert svmarrow.SVC().n_jobs == 3
    finally:
        set_default_jobs(None)
    assert svmarrow.SVC().n_jobs is None
