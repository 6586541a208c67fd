"""The command ``svmarrow``: train, compress, predict. It needs the extra ``svmarrow[cli]``.

| file | holds |
|---|---|
| `app` | the commands and their help; LIBSVM's programs; `compress`, `info` and `grid` |
| `train`, `predict` | the commands that fit and that predict, whole or in pieces |
| `models` | model files of all formats, the command `convert`, and data that fits a model |
| `data` | files of all formats, packed or not, whole; a piece after the other |
| `formats` | samples of a file and the options with which they are read; CSV and parquet; npz |
| `terminal` | what goes to the terminal: errors, progress, tables; options that several commands have |
| `demo` | the tour on scikit-learn's bundled digits |

Exit codes: 0 done, 1 bad input (one line on standard error says what and where), 2 wrong usage, 130
interrupted.
"""

from __future__ import annotations

import sys

from svmarrow._support.system import end_output, reason

__all__ = ["main"]


def main() -> None:
    """Run the command line on ``sys.argv`` and exit."""
    if len(sys.argv) > 1 and (sys.argv[1].startswith("svm-") or sys.argv[1] == "grid"):
        # LIBSVM's programs are called thousands of times in a search: start them without typer and rich.
        from svmarrow.libsvm._programs import PROGRAMS, run

        if sys.argv[1] in PROGRAMS:
            raise SystemExit(run(sys.argv[1], sys.argv[2:]))
    try:
        from svmarrow.cli.app import app
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in {"typer", "rich"}:
            raise
        sys.stderr.write(f"svmarrow: the command line needs {missing}: pip install 'svmarrow[cli]'\n")
        raise SystemExit(1) from None
    try:
        app(prog_name="svmarrow")
    except KeyboardInterrupt:  # before a command has begun, or after it
        raise SystemExit(130) from None
    except OSError as error:  # of the help, which is no command
        sys.stderr.write(f"svmarrow: {reason(error)}\n")
        end_output()
        raise SystemExit(1) from None
