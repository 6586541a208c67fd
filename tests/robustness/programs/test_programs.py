"""Random programs over the public interface: no falls, no wrong answers. See README.md."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import svmarrow
from helpers.programs import python
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


def test_a_seed_is_the_same_program_in_every_process():
    script = """
        from robustness.programs.runner import Program
        print("\\n".join(Program.of(seed).source for seed in range(30)))
    """
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    other = python(script, PYTHONPATH=path, PYTHONHASHSEED="7")
    assert other.strip() == "\n".join(Program.of(seed).source for seed in range(30)).strip()


def first_failure(kind):
    """The number of programs until the first failure of a kind, and the simplest program that shows it."""
    for seed in range(BLOCK * 4):
        program = Program.of(seed)
        kinds = [failure.kind for failure in run(program).failures if kind in failure.kind]
        if kinds:
            return seed + 1, shrink(program, kinds[0], SHRINK)
    return None, None


def test_a_planted_wrong_answer_is_found(monkeypatch):
    def load(path, original=svmarrow.load):
        model = original(path)
        return model.with_expansion(
            model.expansion_.replaced(coefficients=1.01 * model.expansion_.coefficients)
        )

    monkeypatch.setattr(svmarrow, "load", load)
    number, program = first_failure(" differs: save and load")
    assert number is not None
    assert program.steps == ("save and load",)


def test_a_planted_fall_is_found(monkeypatch):
    def core_parts(expansion):
        raise IndexError

    monkeypatch.setattr(svmarrow.KernelExpansion, "core_parts", property(core_parts))
    number, program = first_failure("fall, IndexError")
    assert number is not None
    assert program.call.inner is None


def test_most_programs_are_fitted():
    """A generator whose programs are refused finds nothing."""
    results = [run(Program.of(seed)) for seed in range(0, 1000, 25)]
    assert sum(result.fitted for result in results) >= 0.8 * len(results)


def test_open_faults_have_reasons():
    assert all(fault.reason for fault in FAULTS.values())
