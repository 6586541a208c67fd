"""Programs that tests run: the command in this process, Python in another one, C compiled by gcc."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from typer.testing import CliRunner

from helpers.interruption import HANG
from svmarrow.cli.app import app

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not here")
#: A wide terminal without colours: messages stay on their lines.
_RUNNER = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
_STRICT = ["-Wall", "-Wextra", "-Wdouble-promotion", "-Wfloat-conversion", "-Werror", "-O1"]


def command(*arguments, code=0):
    """Runs ``svmarrow`` with these arguments, checks its exit code and returns the result."""
    result = _RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


def python(program, *arguments, **environment):
    """Runs a program in a new interpreter, where it must not fail, and returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def c_program(folder, source, text="", *, cpp=False):
    """Compiles a C99 program next to its headers without a warning and returns its output for an input.

    With ``cpp`` it must be a C++11 program too, where a compiler for that is installed.
    """
    main, program = folder / "main.c", folder / "program"
    main.write_text(source)
    subprocess.run(["gcc", "-std=c99", *_STRICT, main, "-o", program, "-lm"], check=True)
    if cpp and shutil.which("g++"):
        syntax = ["g++", "-std=c++11", *_STRICT, "-fsyntax-only", "-x", "c++", main]
        subprocess.run(syntax, check=True)
    return subprocess.run([program], input=text.encode(), capture_output=True, check=True).stdout.decode()


def c_rows(X):
    """Rows as the text that a C program reads, in single precision."""
    return "\n".join(" ".join(f"{value:.9g}" for value in row) for row in X.astype("float32"))
