"""The commands of ``svmarrow`` and their help."""

from __future__ import annotations

import json
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from svmarrow._support.displays import image_axes
from svmarrow._support.progress import progress as shown_progress
from svmarrow.cli import terminal
from svmarrow.cli.data import IMAGES, DataOptions, check_writable
from svmarrow.cli.demo import run
from svmarrow.cli.models import convert, model_format, read_model_and_data, write_model
from svmarrow.cli.predict import predict
from svmarrow.cli.terminal import (
    DATA_OPTIONS,
    DATA_PANEL,
    Candidates,
    DataFormat,
    Format,
    Header,
    Jobs,
    Method,
    ModelFormat,
    Scoring,
    SinglePrecision,
    Target,
    fail_cleanly,
    on_terminal,
    percent,
    refuse_ignored,
    say,
)
from svmarrow.cli.train import train
from svmarrow.io import info as info_of
from svmarrow.io import size_note
from svmarrow.libsvm._programs import run as run_program
from svmarrow.models import ExpansionClassifier, ExpansionRegressor
from svmarrow.reduced_set.compression import compress as compress_model
from svmarrow.reduced_set.paths import compression_path

__all__ = ["PASS_THROUGH", "app", "grid", "svm_predict", "svm_scale", "svm_train"]


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
    raise typer.Exit(run_program("svm-train", context.args))


def svm_predict(context: typer.Context) -> None:
    """Predict as LIBSVM's svm-predict does; without arguments its usage.

    [bold]Example[/bold]

      svmarrow svm-predict -b 1 test.svm train.model labels.txt
    """
    raise typer.Exit(run_program("svm-predict", context.args))


def svm_scale(context: typer.Context) -> None:
    """Scale a data file as LIBSVM's svm-scale does; without arguments its usage.

    [bold]Example[/bold]

      svmarrow svm-scale -l 0 -u 1 -s ranges train.svm > scaled.svm
    """
    raise typer.Exit(run_program("svm-scale", context.args))


def grid(context: typer.Context) -> None:
    """Search C and gamma as LIBSVM's grid.py does, in one process; without arguments its usage.

    [bold]Example[/bold]

      svmarrow grid -log2c -3,9,2 -log2g 1,-9,-2 -v 5 -out results.txt train.svm
    """
    raise typer.Exit(run_program("grid", context.args))


app: typer.Typer = typer.Typer(
    name="svmarrow",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="""Train, compress and apply support vector machines.

A demonstration on data of scikit-learn, which takes a few seconds:

  [bold]svmarrow demo[/bold]

A typical session:

  [bold]svmarrow train train.svm -o model.safetensors -C 10 --gamma 0.02
  svmarrow compress model.safetensors -o small.safetensors \\
      --max-loss 0.003 --validation valid.svm
  svmarrow predict small.safetensors test.svm -o labels.txt[/bold]

Data files are svmlight text, .csv, .tsv, .npz or .parquet; text may be
compressed (.gz, .bz2). Model files are safetensors, or LIBSVM's text if the name
ends in .model, .libsvm or .txt; ONNX (.onnx) and C headers (.h) can be written.

Exit codes: 0 success, 1 invalid input, 2 wrong usage, 130 interrupted.""",
)


def _tell_version(asked: bool) -> None:
    if asked:
        say(f"svmarrow {version('svmarrow')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Options without a command."""


@app.command()
@fail_cleanly
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path(
        "svmarrow-demo"
    ),
    max_loss: Annotated[float, typer.Option(help="Maximum loss of accuracy of the selected size.")] = 0.003,
    n_jobs: Jobs = None,
) -> None:
    """Demonstrate the package on scikit-learn's handwritten digits.

    Trains a support vector machine, compresses it to every size, selects one,
    constructs new vectors, saves and loads the model, compares all with
    scikit-learn's SVC, and plots the error rate against the size.
    """
    run(output, max_loss, n_jobs)


app.command()(train)


@app.command()
@fail_cleanly
def compress(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Model file: safetensors, LIBSVM or SVM-light.", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.", show_default=False)],
    n_vectors: Annotated[
        int | None,
        typer.Option(
            "--n-vectors",
            "-n",
            help="Number of vectors of the compressed model.",
            show_default=False,
        ),
    ] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(
            help="Maximum loss of --scoring; the fewest vectors that satisfy it are kept. "
            "[default without --n-vectors: 0.003, which is 0.3 percentage points]",
            show_default=False,
        ),
    ] = None,
    scoring: Annotated[
        Scoring | None,
        typer.Option(
            help="Score whose loss is limited. [default: accuracy for models known to be trained without "
            "weights, otherwise balanced_accuracy; r2 for regression]",
            show_default=False,
        ),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(
            help="Data file with labels on which the loss is measured, preferably not used for training. "
            "Without it, half of --data (at most 20,000 samples) is held out.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            "-m",
            help="Method that selects or constructs vectors; auto tries backfit and gradient within a few "
            "seconds.",
        ),
    ] = Method.auto,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Data file to learn from: vectors are constructed for its samples, thresholds are fitted to "
            "them unless the model was trained with weights, and --candidates samples selects among them."
        ),
    ] = None,
    candidates: Annotated[
        Candidates, typer.Option(help="Select among the model's vectors, or among all samples of --data.")
    ] = Candidates.vectors,
    curve: Annotated[
        Path | None,
        typer.Option(
            help="Image file for a plot of the error on --validation against the number of vectors (auto: of "
            "backfit)."
        ),
    ] = None,
    probability: Annotated[
        bool,
        typer.Option(
            "--probability",
            help="Also calibrate probabilities on --validation, for predict --probability and for exports.",
        ),
    ] = False,
    random_state: Annotated[
        int, typer.Option("--random-state", "-r", help="Seed for constructed vectors.")
    ] = 0,
    n_jobs: Jobs = None,
    model_format_: Annotated[
        ModelFormat,
        typer.Option("--model-format", help="Format of the output; auto uses the suffix of its name."),
    ] = ModelFormat.auto,
    data_format: Format = DataFormat.auto,
    target: Target = None,
    header: Header = None,
    validation_test: Annotated[
        bool,
        typer.Option(
            "--validation-test",
            help="npz: use the test arrays of --validation.",
            rich_help_panel=DATA_PANEL,
        ),
    ] = False,
    float32: SinglePrecision = False,
) -> None:
    r"""Compress a model to few vectors.

    Given --validation, or --data of which half is held out, the result has the
    fewest vectors that lose at most --max-loss, and an upper bound of the loss on
    other samples is reported. Alternatively --n-vectors sets the number. The
    effect of class and sample weights is preserved.

    [bold]Examples[/bold]

      svmarrow compress model.safetensors -o small.safetensors \
          --data train.svm --validation valid.svm
      svmarrow compress model.safetensors -o small.safetensors \
          -n 100 --data train.svm
      svmarrow compress model.safetensors -o small.safetensors \
          --max-loss 0.003 --validation valid.svm -m backfit --curve curve.png
      svmarrow compress svm-train.model -o small.model -n 50
    """
    if n_vectors is None and max_loss is None and validation is None and data is None:
        raise typer.BadParameter(
            "compress needs a goal: give --n-vectors, or --validation or --data to measure the loss on"
        )
    by_path = curve is not None or candidates is Candidates.samples
    by_loss = n_vectors is None
    if not by_loss and max_loss is not None:
        raise typer.BadParameter("--n-vectors and --max-loss exclude each other: give one of them")
    if max_loss is not None and validation is None and data is None:
        raise typer.BadParameter("--max-loss needs --validation or --data, on which the loss is measured")
    if by_path and by_loss and validation is None:
        raise typer.BadParameter(
            f"--method={method.value} --candidates={candidates.value} needs --n-vectors or --validation"
        )
    if by_path and by_loss and method is Method.gradient:
        raise typer.BadParameter(
            "--curve with --method gradient needs --n-vectors, the maximum number of vectors"
        )
    if scoring is not None and validation is None and data is None:
        raise typer.BadParameter("--scoring needs --validation or --data, on which the loss is measured")
    if probability and validation is None:
        raise typer.BadParameter("--probability needs --validation, samples that were not used for training")
    if curve is not None and validation is None:
        raise typer.BadParameter("--curve needs --validation, on which the error is measured")
    if candidates is Candidates.samples and data is None:
        raise typer.BadParameter("--candidates samples needs --data, among whose samples it selects")

    if validation is None:
        refuse_ignored(context, ("validation_test",), "without --validation")
        if data is None:
            refuse_ignored(context, DATA_OPTIONS, "without --data or --validation")
    if method not in (Method.auto, Method.gradient):
        refuse_ignored(
            context, ("random_state",), f"with --method={method.value}, which uses no random numbers"
        )
    model_format(output, model_format_.value)
    check_writable(output)
    if curve is not None:
        check_writable(curve, "--curve", IMAGES)
    axes: Any = None if curve is None else image_axes()  # a missing matplotlib is reported before the work
    options = DataOptions(data_format.value, target, header, single_precision=float32)
    files = [(path, options) for path in (data,) if path is not None]
    if validation is not None:
        held_out = DataOptions(data_format.value, target, header, validation_test, single_precision=float32)
        files.append((validation, held_out))
    with shown_progress(on_terminal()) as shown:
        full: Any
        full, parts = read_model_and_data(model, files, shown.callback)
    rows = parts[0] if data is not None else None
    judge = parts[-1] if validation is not None else None
    started = time.perf_counter()
    arguments: Any = full, *((None, None) if rows is None else (rows.X, rows.y))
    measure: Any = None if scoring is None else scoring.value
    settings: dict[str, Any] = {"n_jobs": n_jobs}
    settings |= {"n_vectors": n_vectors, "random_state": random_state, "verbose": on_terminal()}
    with_goal = settings if max_loss is None else settings | {"max_loss": max_loss}
    path: Any = None
    if by_path:
        path_method: Any = "backfit" if method is Method.auto else method.value
        of_rows = None if rows is None or rows.y is None else measure
        path = compression_path(
            *arguments, method=path_method, scoring=of_rows, candidates=candidates.value, **settings
        )
    judging = None if judge is None else (judge.X, judge.labels)
    if path is None or (method is Method.auto and candidates is Candidates.vectors):
        tried: Any = method.value
        small: Any = compress_model(
            *arguments, method=tried, validation=judging, scoring=measure, **with_goal
        )
    elif by_loss:
        assert judging is not None
        small = path.select(*judging, max_loss, scoring=measure)
    else:
        small = path[path.sizes[-1]]
    elapsed = time.perf_counter() - started
    if probability and judging is not None:
        if not isinstance(small, ExpansionClassifier):
            raise ValueError(f"--probability: {model} has no classes")
        small = small.calibrated(*judging)
    chosen = small.expansion_.n_vectors
    before_bytes = model.stat().st_size  # the output may take its place
    write_model(small, output, model_format_.value)
    errors = None if judging is None else [1.0 - one.score(*judging) for one in (full, small)]
    if axes is not None and judging is not None and errors is not None:
        if method is Method.auto:
            path.plot(*judging, ax=axes, label="backfit")
            axes.plot(chosen, errors[1], "o", color="black", label=f"written, {chosen:,} vectors")
            axes.legend()
        else:
            path.plot(*judging, ax=axes, chosen=chosen)
        axes.figure.savefig(curve, dpi=160)
    say(f"Compressed {full.expansion_.n_vectors:,} vectors to {chosen:,} in {terminal.seconds(elapsed)}.")
    if small.loss_bound_ is not None and small.loss_bound_.n_samples:
        say(str(small.loss_bound_))
    if errors is not None and isinstance(full, ExpansionRegressor):
        full_fit, small_fit = 1.0 - errors[0], 1.0 - errors[1]
        say(f"R^2 on {validation} is {full_fit:.4f} before and {small_fit:.4f} after compression.")
    elif errors is not None:
        before, after = percent(errors[0]), percent(errors[1])
        say(f"The error rate on {validation} is {before} before and {after} after compression.")
    say(terminal.describe_file(output, before_bytes))
    note = size_note(full)
    if note is not None:
        say(note)
    if curve is not None:
        say(f"Wrote {curve}.")


app.command()(predict)
app.command()(convert)
for _program in (svm_train, svm_predict, svm_scale, grid):
    app.command(context_settings=dict(PASS_THROUGH))(_program)


#: Words of the facts of `svmarrow.io.info`, where they are not their names.
WORDS = {
    "bytes": "size in bytes",
    "what": "description",
    "version": "saved by svmarrow",
    "date": "saved on",
    "alpha_": "penalty alpha",
    "C": "penalty C",
    "loss_bound": "loss by compression",
    "n_vectors": "support vectors",
    "n_features": "features",
    "n_outputs": "binary machines or targets",
    "storage": "vectors stored as",
    "decoding": "several classes by",
    "predict_by": "label by",
    "weighted": "trained with weights",
    "dual": "dual objective",
    "primal": "primal objective",
    "gap": "duality gap",
    "violation": "largest violation",
    "iterations": "steps",
    "stop": "ended because",
}


@app.command()
@fail_cleanly
def info(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Model file: safetensors, LIBSVM or SVM-light.", show_default=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Describe the contents of a model file.

    Prints the kernel, the number of vectors, outputs and classes, the size of the
    file and, for a model trained by svmarrow, the certificate of its fit.

    [bold]Examples[/bold]

      svmarrow info small.safetensors
      svmarrow info small.safetensors --json | jq .n_vectors
    """
    facts = info_of(file)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    for key, value in facts.items():
        name = WORDS.get(key, key.replace("_", " "))
        if isinstance(value, dict):
            say(f"{name}:")
            for inner, number in value.items():
                # The metadata have the user's own names.
                word = inner if key == "metadata" else WORDS.get(inner, inner.replace("_", " "))
                say(f"  {word:<22} {_shown(number)}")
        else:
            say(f"{name:<24} {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        shown = ", ".join(map(str, value[:12]))
        return f"{shown}, ... ({len(value)} in all)" if len(value) > 12 else shown
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
