"""The command that fits a support vector machine, or least squares at a few points."""

from __future__ import annotations

import time
from pathlib import Path  # noqa: TC003 - typer reads annotations when it runs
from typing import Annotated, Any, Literal

import typer
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from svmarrow._support.plotting import image_axes
from svmarrow._support.progress import progress as shown_progress
from svmarrow.cli import report
from svmarrow.cli.data import IMAGES, DataOptions, check_writable, read_data, seekable
from svmarrow.cli.low_rank import fit_low_rank
from svmarrow.cli.models import model_format, write_model
from svmarrow.cli.options import (
    DataFormat,
    Format,
    Header,
    Jobs,
    Kernel,
    ModelFormat,
    MultiClass,
    Piece,
    Scale,
    SinglePrecision,
    Target,
    Task,
    TestKeys,
    refuse_ignored,
)
from svmarrow.cli.report import fail_cleanly, on_terminal, say
from svmarrow.interop.convert import as_expansion
from svmarrow.io.info import size_note
from svmarrow.least_squares.low_rank import LowRankRLSClassifier
from svmarrow.model_selection.classification import SVCCV
from svmarrow.model_selection.regression import SVRCV
from svmarrow.preprocessing import LearnedScaler
from svmarrow.svm.classification import SVC
from svmarrow.svm.regression import SVR

__all__ = ["train"]

#: Scalers by what they do; sparse rows are not centred.
SCALERS: dict[str, Any] = {
    "none": lambda sparse_rows: None,  # noqa: ARG005 - the same arguments for all
    "standard": lambda sparse_rows: StandardScaler(with_mean=not sparse_rows),
    "minmax": lambda sparse_rows: MaxAbsScaler() if sparse_rows else MinMaxScaler(),
    "learned": lambda sparse_rows: LearnedScaler(),  # noqa: ARG005
}


def _gamma(text: str) -> str | float:
    if text in ("scale", "auto"):
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor 'scale' nor 'auto'") from None


#: Options that only one of the two ways to train has.
OF_MACHINES = (
    "C", "epsilon", "multi_class", "balanced", "tune", "racing", "tune_plot", "tol", "cache_size", "max_time",
)  # fmt: skip
OF_LOW_RANK = ("alpha", "random_state", "piece")


#: Options of kernels, and the kernels that have them.
OF_KERNELS = {
    "gamma": tuple(kernel for kernel in Kernel if kernel is not Kernel.linear),
    "degree": (Kernel.poly,),
    "coef0": (Kernel.poly, Kernel.sigmoid),
}


def _check_options(
    context: typer.Context, low_rank: int | None, kernel: Kernel, task: Task, scale: Scale, *, tune: bool
) -> None:
    """Refuse options that would not be looked at, and those that do not go together."""
    if low_rank is not None and scale is Scale.learned:
        rule = "'learned' does not go with --low-rank, which reads the file in pieces"
        raise typer.BadParameter(rule, param_hint="--scale")
    if low_rank is None:
        refuse_ignored(context, OF_LOW_RANK, "without --low-rank")
    else:
        refuse_ignored(
            context, OF_MACHINES, "with --low-rank: it does not go with --low-rank, least squares in pieces"
        )
    if tune:
        refuse_ignored(context, ("C", "gamma"), "with --tune, which chooses it")
    else:
        refuse_ignored(
            context, ("racing", "tune_plot"), "without --tune: it is about a search, give --tune too"
        )
    for name, kernels in OF_KERNELS.items():
        if kernel not in kernels:
            refuse_ignored(context, (name,), f"with --kernel={kernel.value}, which has none")
    if task is Task.regression:
        refuse_ignored(context, ("multi_class", "balanced"), "with --task=regression, which has no classes")
    else:
        refuse_ignored(context, ("epsilon",), "without --task=regression")


@fail_cleanly
def train(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Labelled rows.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.", show_default=False)],
    kernel: Annotated[Kernel, typer.Option("--kernel", "-k", help="Kernel.")] = Kernel.rbf,
    C: Annotated[float, typer.Option("--C", "-C", help="Price of an error.")] = 1.0,
    gamma: Annotated[
        str, typer.Option("--gamma", "-g", help="The kernel's gamma: a number, scale or auto.")
    ] = "scale",
    degree: Annotated[int, typer.Option(help="Exponent of the poly kernel.")] = 3,
    coef0: Annotated[float, typer.Option(help="Constant of the poly and sigmoid kernels.")] = 0.0,
    task: Annotated[
        Task, typer.Option("--task", help="Learn labels, or numbers (epsilon-regression).")
    ] = Task.classification,
    epsilon: Annotated[float, typer.Option(help="Regression: errors up to this size cost nothing.")] = 0.1,
    scale: Annotated[
        Scale,
        typer.Option(
            "--scale",
            help="Columns to mean 0 and deviation 1 (standard), to 0 ... 1 (minmax), or shapes and scales "
            "learned from the labels (learned); kept in the model.",
        ),
    ] = Scale.none,
    multi_class: Annotated[
        MultiClass, typer.Option(help="More than two classes: one-vs-one or one-vs-rest.")
    ] = MultiClass.ovo,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Small classes weigh as much as large ones.")
    ] = False,
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose C and gamma over five folds; not with --C or --gamma.")
    ] = False,
    racing: Annotated[
        bool, typer.Option("--racing", help="With --tune: drop points that are worse with confidence.")
    ] = False,
    tune_plot: Annotated[
        Path | None, typer.Option(help="With --tune: draw the scores over the grid to this file.")
    ] = None,
    low_rank: Annotated[
        int | None,
        typer.Option(
            "--low-rank",
            min=1,
            help="Least squares with coefficients at this number of random rows; the file is read in "
            "pieces and may be larger than memory.",
            show_default=False,
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="With --low-rank: weight of the penalty, instead of --C.")
    ] = 1.0,
    random_state: Annotated[
        int, typer.Option("--random-state", "-r", help="With --low-rank: seed of the rows drawn.")
    ] = 0,
    tol: Annotated[float, typer.Option(help="Largest violation of optimality at the end.")] = 1e-3,
    cache_size: Annotated[
        float | None, typer.Option(help="Kernel cache in MB. Default: a share of free memory.")
    ] = None,
    max_time: Annotated[
        float | None, typer.Option(help="Stop after this number of seconds with the model so far.")
    ] = None,
    n_jobs: Jobs = None,
    model_format_: Annotated[
        ModelFormat, typer.Option("--model-format", help="Format to write; auto goes by the name.")
    ] = ModelFormat.auto,
    data_format: Format = DataFormat.auto,
    target: Target = None,
    header: Header = None,
    test: TestKeys = False,
    float32: SinglePrecision = False,
    piece: Piece = 100_000,
) -> None:
    """Fit a support vector machine and save it.

    The optimum is reached up to --tol; the duality gap that is printed bounds
    how much better the objective could be.

    [bold]Examples[/bold]

      svmarrow train train.svm -o model.safetensors -C 10 --gamma 0.02
      svmarrow train iris.csv --target species --scale standard -o iris.safetensors
      svmarrow train prices.csv.gz --task regression -o prices.safetensors
      svmarrow train iris.csv --tune --tune-plot grid.png -o iris.safetensors
      svmarrow train usps.npz --multi-class ovr -o usps.safetensors
      svmarrow train huge.parquet --low-rank 500 --scale standard -o huge.safetensors
      svmarrow train train.svm -o for-svm-predict.model
    """
    width = _gamma(gamma)
    _check_options(context, low_rank, kernel, task, scale, tune=tune)
    model_format(output, model_format_.value)
    check_writable(output)
    if tune_plot is not None:
        check_writable(tune_plot, "--tune-plot", IMAGES)
    options = DataOptions(data_format.value, target, header, test, single_precision=float32)
    kernel_of: dict[str, Any] = {"kernel": kernel.value, "gamma": width, "degree": degree, "coef0": coef0}
    if low_rank is not None:
        settings = kernel_of | {"n_vectors": low_rank, "alpha": alpha, "n_jobs": n_jobs}
        how = (task, scale, random_state)
        with seekable(data) as source:
            _train_low_rank(source, options, piece, settings, how, output, model_format_)
        return
    with shown_progress(on_terminal()) as shown, seekable(data) as source:
        rows = read_data(source, options, shown.callback)
    common: dict[str, Any] = {
        "C": C,
        **kernel_of,
        "tol": tol,
        "cache_size": cache_size,
        "max_time": max_time,
        "n_jobs": n_jobs,
        "verbose": on_terminal(),
    }
    targets = rows.labels
    machine: SVC | SVR
    if task is Task.regression:
        if targets.dtype.kind not in "iuf":
            raise ValueError(f"{data}: the targets are no numbers, which --task regression needs")
        machine = SVR(epsilon=epsilon, **common)
    else:
        weights: Literal["balanced"] | None = "balanced" if balanced else None
        machine = SVC(multi_class=multi_class.value, class_weight=weights, **common)
    scaler = SCALERS[scale](sparse.issparse(rows.X))
    if scale is Scale.learned:
        scaler.set_params(task=task.value, class_weight="balanced" if balanced else None, n_jobs=n_jobs)
    started = time.perf_counter()
    X = rows.X if scaler is None else scaler.fit_transform(rows.X, targets)
    search: Any = _search(machine, "racing" if racing else "full") if tune else None
    if search is None:
        machine.fit(X, targets)
    else:
        machine = search.fit(X, targets).best_estimator_
    elapsed = time.perf_counter() - started
    machine.set_params(verbose=False)  # the file is not for this terminal
    _write(machine, scaler, rows.names, output, model_format_)
    n, d = rows.X.shape
    what = f"{len(machine.classes_)} classes" if isinstance(machine, SVC) else "numbers"
    say(f"{n:,} rows, {d:,} columns, {what}: {machine.expansion_.n_vectors:,} support vectors")
    say(f"trained in {report.seconds(elapsed)}: {report.describe_certificate(machine.certificate_)}")
    if search is not None:
        chosen = ", ".join(f"{name}={value:.4g}" for name, value in search.best_params_.items())
        say(f"chosen over {search.n_splits_} folds: {chosen}, mean score {search.best_score_:.4f}")
        if scale is Scale.learned:
            say("The scales were learned from all labels, so the mean score is somewhat too high.")
        if tune_plot is not None:
            search.plot(image_axes()).figure_.savefig(tune_plot, dpi=150)
            say(f"wrote {tune_plot}")
    say(f"wrote {output}, {report.size(output.stat().st_size)}")
    note = size_note(machine)
    if note is not None:
        say(note)


def _write(machine: Any, scaler: Any, names: list[str] | None, output: Path, kind: ModelFormat) -> None:
    """Write a machine, with what the file has done to its columns and called them."""
    if scaler is None and names is None:
        write_model(machine, output, kind.value)
        return
    steps = [] if scaler is None else [scaler]
    write_model(
        as_expansion(make_pipeline(*steps, machine)).set_params(feature_names=names), output, kind.value
    )


def _train_low_rank(
    data: Path,
    options: DataOptions,
    piece: int,
    settings: dict[str, Any],
    how: tuple[Task, Scale, int],
    output: Path,
    model_format_: ModelFormat,
) -> None:
    task, scale, random_state = how
    started = time.perf_counter()
    with shown_progress(on_terminal()) as shown:
        machine, scaler, known = fit_low_rank(
            data,
            options,
            piece,
            settings,
            SCALERS[scale],
            classification=task is Task.classification,
            random_state=random_state,
            progress=shown.callback,
        )
    elapsed = time.perf_counter() - started
    machine.set_params(selection="random")  # the points are the model's vectors
    _write(machine, scaler, known.names, output, model_format_)
    what = f"{len(machine.classes_)} classes" if isinstance(machine, LowRankRLSClassifier) else "numbers"
    d = machine.n_features_in_
    say(f"{known.rows:,} rows, {d:,} columns, {what}: {machine.expansion_.n_vectors:,} points")
    say(f"trained in {report.seconds(elapsed)}")
    say(f"wrote {output}, {report.size(output.stat().st_size)}")


def _search(machine: SVC | SVR, search: Literal["full", "racing"]) -> SVCCV | SVRCV:
    """The search that chooses C and gamma of a machine."""
    kind = SVCCV if isinstance(machine, SVC) else SVRCV
    own = set(kind().get_params())
    shared = {name: value for name, value in machine.get_params().items() if name in own}
    return kind(search=search, **shared)
