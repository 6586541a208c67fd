"""The commands ``svm-train``, ``svm-predict`` and ``svm-scale``, which the core runs, and ``grid``."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from typing import TYPE_CHECKING, NoReturn

from svmarrow import _core
from svmarrow._support.rows import threads
from svmarrow.libsvm._grid import GRID_USAGE, GridTask, search
from svmarrow.libsvm._svmutil import print_warning

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PROGRAMS", "run", "svm_predict_main", "svm_scale_main", "svm_train_main"]

#: Names of the programs.
PROGRAMS = ("svm-train", "svm-predict", "svm-scale", "grid")

#: What shells report for a program that Ctrl-C ended: 128 + SIGINT.
_INTERRUPTED = 130


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _grid(arguments: Sequence[str]) -> int:
    """Runs ``grid``, whose search and picture are the package's."""
    if not arguments or arguments[0] == "--help":
        sys.stdout.write(GRID_USAGE)
        return 0 if arguments else 1
    try:
        task = GridTask.of(arguments)
    except ValueError as error:
        sys.stderr.write(f"grid: {error}\n{GRID_USAGE}")
        return 1
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print_warning(" ".join(str(message).split()))
        search(task, _say)
        sys.stdout.flush()
    return 0


def run(name: str, arguments: Sequence[str]) -> int:
    """Runs a program and returns its exit code: 0 done, 1 bad input or wrong usage, 130 interrupted."""
    try:
        if name == "grid":
            return _grid(arguments)
        return _core.libsvm_program(name, list(arguments), sys.stdout, sys.stderr, threads(None))
    except KeyboardInterrupt:
        if name == "grid":
            sys.stderr.write("grid: interrupted; nothing was written\n")
        return _INTERRUPTED
    except OSError as error:
        if name == "grid" and not isinstance(error, BrokenPipeError):
            text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
            sys.stderr.write(f"grid: {text}\n")
        else:
            # The output stream: a program has reported it. Python must not flush the remaining text at exit.
            with contextlib.suppress(AttributeError, io.UnsupportedOperation):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, ImportError, MemoryError) as error:
        sys.stderr.write(f"{name}: {' '.join((str(error) or type(error).__name__).split())}\n")
    return 1


def svm_train_main() -> NoReturn:
    """Runs ``svm-train`` on ``sys.argv``."""
    raise SystemExit(run("svm-train", sys.argv[1:]))


def svm_predict_main() -> NoReturn:
    """Runs ``svm-predict`` on ``sys.argv``."""
    raise SystemExit(run("svm-predict", sys.argv[1:]))


def svm_scale_main() -> NoReturn:
    """Runs ``svm-scale`` on ``sys.argv``."""
    raise SystemExit(run("svm-scale", sys.argv[1:]))
