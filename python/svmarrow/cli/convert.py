"""The commands that write a model in another format, and LIBSVM's programs, which read their own options."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads annotations when it runs
from typing import Annotated, Any

import typer

from svmarrow._support.progress import progress as shown_progress
from svmarrow.cli import report
from svmarrow.cli.data import DataOptions, check_writable
from svmarrow.cli.models import c_name, model_format, read_model_and_data, write_model
from svmarrow.cli.options import (
    DataFormat,
    Format,
    Header,
    ModelFormat,
    Numbers,
    Target,
    TestKeys,
    refuse_ignored,
)
from svmarrow.cli.report import fail_cleanly, on_terminal, percent, say
from svmarrow.export import to_c, to_onnx
from svmarrow.interop.model_files import load_model_file
from svmarrow.libsvm._programs import run

__all__ = ["PASS_THROUGH", "convert", "grid", "svm_predict", "svm_scale", "svm_train"]


# --- LIBSVM's programs as subcommands ---


#: Settings of commands that read their own options.
PASS_THROUGH: dict[str, Any] = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "help_option_names": [],
}


def svm_train(context: typer.Context) -> None:
    """Train a model as LIBSVM's svm-train does; without arguments its usage.

    [bold]Example[/bold]

      svmarrow svm-train -s 0 -c 10 -g 0.1 train.svm train.model
    """
    raise typer.Exit(run("svm-train", context.args))


def svm_predict(context: typer.Context) -> None:
    """Predict as LIBSVM's svm-predict does; without arguments its usage.

    [bold]Example[/bold]

      svmarrow svm-predict -b 1 test.svm train.model labels.txt
    """
    raise typer.Exit(run("svm-predict", context.args))


def svm_scale(context: typer.Context) -> None:
    """Scale a data file as LIBSVM's svm-scale does; without arguments its usage.

    [bold]Example[/bold]

      svmarrow svm-scale -l 0 -u 1 -s ranges train.svm > scaled.svm
    """
    raise typer.Exit(run("svm-scale", context.args))


def grid(context: typer.Context) -> None:
    """Search C and gamma as LIBSVM's grid.py does, in one process; without arguments its usage.

    [bold]Example[/bold]

      svmarrow grid -log2c -3,9,2 -log2g 1,-9,-2 -v 5 -out results.txt train.svm
    """
    raise typer.Exit(run("grid", context.args))


@fail_cleanly
def convert(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Model file: safetensors, LIBSVM or SVM-light.", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="File to write: .onnx, .h, .model, .safetensors.", show_default=False
        ),
    ],
    model_format_: Annotated[
        ModelFormat,
        typer.Option("--model-format", help="Format of the output; auto uses the suffix of its name."),
    ] = ModelFormat.auto,
    dtype: Annotated[
        Numbers | None,
        typer.Option(
            "--dtype", help="ONNX: float32 or float64. C: float32, float64 or int8.", show_default=False
        ),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix", help="C: prefix of all names. Default: the name of the file.", show_default=False
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="C: data file on which int8 is optimized and measured.", show_default=False),
    ] = None,
    data_format: Format = DataFormat.auto,
    target: Target = None,
    header: Header = None,
    test: TestKeys = False,
) -> None:
    """Convert a model to another format: ONNX, a C header, LIBSVM's text, safetensors.

    [bold]Examples[/bold]

      svmarrow convert small.safetensors -o small.onnx
      svmarrow convert small.safetensors -o small.h --dtype int8 --data train.svm
      svmarrow convert svm-train.model -o model.safetensors
    """
    kind = model_format(output, model_format_.value)
    if dtype is not None and kind not in ("onnx", "c"):
        raise typer.BadParameter(f"--dtype is only for ONNX and C, but {output} is written as {kind}")
    if (prefix is not None or data is not None) and kind != "c":
        raise typer.BadParameter(f"--prefix and --data are only for C, but {output} is written as {kind}")
    if data is None:
        refuse_ignored(context, ("data_format", "target", "header", "test"), "without --data")
    check_writable(output)
    rows = None
    if data is None:
        model_file = load_model_file(model)
    else:
        options = DataOptions(data_format.value, target, header, test)
        with shown_progress(on_terminal()) as shown:
            model_file, (rows,) = read_model_and_data(model, [(data, options)], shown.callback)
    if kind == "onnx":
        to_onnx(model_file, output, dtype=dtype.value if dtype else None)  # type: ignore[arg-type]
    elif kind == "c":
        made = to_c(
            model_file,
            output,
            prefix=prefix or c_name(output),
            dtype=dtype.value if dtype else "float32",
            X=None if rows is None else rows.X,
            y=None if rows is None else rows.y,
        )
        cost = f"{made.multiplications:,} multiplications for a prediction"
        say(f"The tables take {made.flash:,} bytes, and the code needs {cost}.")
        if made.disagreement is not None:
            say(f"On {data} {percent(made.disagreement)} of the labels differ from those of the model.")
        if made.score_before is not None and made.score_after is not None:
            before, after = f"{made.score_before:.4f}", f"{made.score_after:.4f}"
            say(f"The score on {data} is {before} before and {after} after the conversion.")
    else:
        write_model(model_file, output, kind)
    say(report.describe_file(output))
