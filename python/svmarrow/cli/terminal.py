"""What the commands show and ask for: output on the terminal, and the options that several commands have.

Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import functools
import warnings
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from svmarrow._support.system import end_output, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

__all__ = [
    "DATA_OPTIONS",
    "DATA_PANEL",
    "Candidates",
    "DataFormat",
    "Format",
    "Header",
    "Jobs",
    "Kernel",
    "Method",
    "ModelFormat",
    "MultiClass",
    "Numbers",
    "Piece",
    "Scale",
    "Scoring",
    "SinglePrecision",
    "Target",
    "Task",
    "TestKeys",
    "fail_cleanly",
    "on_terminal",
    "percent",
    "refuse_ignored",
    "say",
    "seconds",
    "size",
    "size_table",
    "to_stderr",
    "warn",
]

# --- output ---

P = ParamSpec("P")
R = TypeVar("R")
INTERRUPTED = 130
"""Exit code of a program that was interrupted by Ctrl-C: 128 + SIGINT."""


def out() -> Console:
    """Standard output as it is now: tests and pipes exchange it."""
    return Console(highlight=False, soft_wrap=True)


def to_stderr() -> Console:
    """Standard error as it is now."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def on_terminal() -> bool:
    """Returns whether standard error is a terminal, which shows progress bars."""
    return to_stderr().is_terminal


def say(text: str = "") -> None:
    """Prints one line of results."""
    out().print(text, markup=False)


def warn(text: str) -> None:
    """Prints a warning."""
    to_stderr().print(f"svmarrow: warning: {text}", markup=False)


def fail_cleanly(command: Callable[P, R]) -> Callable[P, R]:
    """Turn the errors of bad input and Ctrl-C into one line and an exit code."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with warnings.catch_warnings():
                # Columns of files are already in the order of the model.
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
                warnings.showwarning = lambda message, *_, **__: warn(str(message))
                return command(*args, **kwargs)
        except KeyboardInterrupt:
            to_stderr().print("svmarrow: The command was interrupted and wrote nothing.", markup=False)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader closed the pipe
            end_output()
        except OSError as error:
            to_stderr().print(f"svmarrow: {reason(error)}", markup=False)
            end_output()
        except (ValueError, TypeError, ImportError, MemoryError) as error:
            text = str(error) or type(error).__name__
            to_stderr().print("svmarrow: " + " ".join(text.split()), markup=False)
        raise typer.Exit(1)

    return guarded


def size_table(title: str, columns: list[str], rows: list[list[str]], marked: int | None = None) -> None:
    """A table of sizes on standard output; numbers to the right, one row marked."""
    table = Table(
        title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False
    )
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position == 0 else "right", no_wrap=True)
    for number, row in enumerate(rows):
        table.add_row(*row, style="bold" if number == marked else None)
    console = Console(highlight=False)
    width = max(console.width, 100) if not console.is_terminal else console.width
    Console(highlight=False, width=width).print(table)


def seconds(value: float) -> str:
    """Formats a time."""
    return (
        f"{1000 * value:.0f} ms"
        if value < 1
        else f"{value:.1f} s"
        if value < 120
        else f"{value / 60:.1f} min"
    )


def size(value: int) -> str:
    """Formats a number of bytes."""
    amount = float(value)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 100 else f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} GB"


def percent(value: float) -> str:
    """A share as percent with two digits."""
    return f"{100 * value:.2f} %"


def describe_certificate(certificate: Any) -> str:
    """Describes the certificate of a fit in one sentence."""
    end = "converged" if certificate.stop == "converged" else f"ended early ({certificate.stop})"
    return (
        f"The fit {end} after {certificate.iterations:,} steps with a duality gap of {certificate.gap:.3g} "
        f"and a largest violation of {certificate.violation:.2g}."
    )


def describe_file(path: Path, before: int | None = None) -> str:
    """Reports a file that was written, and the size of another one that it replaces."""
    instead = "" if before is None else f" instead of {size(before)}"
    return f"Wrote {path} ({size(path.stat().st_size)}{instead})."


# --- options of several commands ---


class DataFormat(StrEnum):
    """Formats of data files."""

    auto = "auto"
    svmlight = "svmlight"
    csv = "csv"
    npz = "npz"
    parquet = "parquet"


class ModelFormat(StrEnum):
    """Formats of model files."""

    auto = "auto"
    safetensors = "safetensors"
    libsvm = "libsvm"
    onnx = "onnx"
    c = "c"


class Task(StrEnum):
    """Learning tasks."""

    classification = "classification"
    regression = "regression"


class Scale(StrEnum):
    """Scaling of the features."""

    none = "none"
    standard = "standard"
    minmax = "minmax"
    learned = "learned"


class Numbers(StrEnum):
    """Numbers of an exported model."""

    float32 = "float32"
    float64 = "float64"
    int8 = "int8"


class Kernel(StrEnum):
    """Kernels that need no function."""

    linear = "linear"
    poly = "poly"
    rbf = "rbf"
    sigmoid = "sigmoid"
    laplacian = "laplacian"
    chi2 = "chi2"
    matern12 = "matern12"
    matern32 = "matern32"
    matern52 = "matern52"


class MultiClass(StrEnum):
    """Reductions of several classes to binary machines."""

    ovo = "ovo"
    ovr = "ovr"


class Method(StrEnum):
    """Methods that select or construct vectors."""

    auto = "auto"
    backfit = "backfit"
    prefit = "prefit"
    rank = "rank"
    gradient = "gradient"


class Scoring(StrEnum):
    """Scores of which a compression loses at most a given amount."""

    accuracy = "accuracy"
    balanced_accuracy = "balanced_accuracy"
    r2 = "r2"
    neg_mean_squared_error = "neg_mean_squared_error"


class Candidates(StrEnum):
    """Candidates for the compressed vectors."""

    vectors = "vectors"
    samples = "samples"


DATA_PANEL = "Reading data"
#: Parameters of the commands that say how data are read.
DATA_OPTIONS = ("data_format", "target", "header", "float32")
Format = Annotated[
    DataFormat,
    typer.Option(
        "--format", help="Format of data files; auto uses the suffix of the name.", rich_help_panel=DATA_PANEL
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="CSV, parquet: name or index of the label column, 'none' for none. Default: the last column.",
        rich_help_panel=DATA_PANEL,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="CSV: whether the first line has the names of the columns. Default: detected.",
        rich_help_panel=DATA_PANEL,
        show_default=False,
    ),
]
TestKeys = Annotated[
    bool,
    typer.Option(
        "--test",
        help="npz: use the test arrays (X_test or test_data, y_test).",
        rich_help_panel=DATA_PANEL,
    ),
]
SinglePrecision = Annotated[
    bool,
    typer.Option(
        "--float32",
        help="Store the data in single precision, which halves the memory.",
        rich_help_panel=DATA_PANEL,
    ),
]
Piece = Annotated[
    int,
    typer.Option(
        "--piece", min=1, help="Number of samples in memory at the same time.", rich_help_panel=DATA_PANEL
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--n-jobs", "-j", help="Number of threads. Default: all cores available to the process."),
]


def refuse_ignored(context: typer.Context, names: Iterable[str], rule: str) -> None:
    """Refuses given options that would be ignored; the rule ends the sentence "not allowed ..."."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        option = next(one for one in context.command.params if one.name == name)
        value = context.params[name]
        flag = max((*option.opts, *option.secondary_opts) if value is False else option.opts, key=len)
        shown = "" if isinstance(value, bool) else f"={getattr(value, 'value', value)}"
        raise ValueError(f"{flag}{shown} is not allowed {rule}: it would be ignored, leave it out")
