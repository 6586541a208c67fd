"""Random programs over the public interface: no falls, no wrong answers. See README.md."""

from __future__ import annotations

import pytest

from robustness.programs.known import FAULTS, name_of
from robustness.programs.runner import Program, run, shrink

#: Programs of a test.
BLOCK = 25
QUICK = 300
MANY = 3000
#: Seconds for the simplification of the first failure.
SHRINK = 30.0


def check(first: int) -> None:
    for seed in range(first, first + BLOCK):
        program = Program.of(seed)
        for failure in run(program).failures:
            if name_of(failure, program) is None:
                simplest = shrink(program, failure.kind, SHRINK)
                pytest.fail(f"seed {seed}: {failure.kind}\n{failure.message}\n\n{simplest.source}")


@pytest.mark.parametrize("first", range(0, QUICK, BLOCK))
def test_random_programs(first):
    check(first)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(QUICK, QUICK + MANY, BLOCK))
def test_many_random_programs(first):
    check(first)


def test_a_seed_is_one_program():
    for seed in range(50):
        assert Program.of(seed).source == Program.of(seed).source


def test_most_programs_are_fitted():
    """A generator whose programs are refused finds nothing."""
    results = [run(Program.of(seed)) for seed in range(0, 1000, 25)]
    assert sum(result.fitted for result in results) >= 0.8 * len(results)


def test_open_faults_have_reasons():
    assert all(fault.reason for fault in FAULTS.values())
