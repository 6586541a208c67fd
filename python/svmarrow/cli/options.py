"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    "refuse_ignored",
]


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
