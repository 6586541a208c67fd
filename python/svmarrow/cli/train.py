"""The command that fits a support vector machine, or least squares at a few points."""

from __future__ import annotations

import time
from pathlib import Path  # noqa: TC003 - typer reads annotations when it runs
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from svmarrow._support.displays import image_axes
from svmarrow._support.progress import progress as shown_progress
from svmarrow._support.training import default_gamma
from svmarrow.cli import terminal
from svmarrow.cli.data import (
    IMAGES,
    DataOptions,
    check_writable,
    read_data,
    read_pieces,
    sample,
    seekable,
    survey,
)
from svmarrow.cli.models import model_format, write_model
from svmarrow.cli.terminal import (
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
    fail_cleanly,
    on_terminal,
    refuse_ignored,
    say,
)
from svmarrow.interop.convert import as_expansion
from svmarrow.io import size_note
from svmarrow.least_squares import LowRankRLSRegressor
from svmarrow.least_squares.estimators import LowRankRLSClassifier
from svmarrow.model_selection.estimators import SVCCV, SVRCV
from svmarrow.preprocessing import LearnedScaler
from svmarrow.svm.classification import SVC
from svmarrow.svm.regression import SVR

if TYPE_CHECKING:
    from collections.abc import Callable

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.cli.data import Survey


__all__ = [
    "fit_low_rank",
    "train",
]


# --- training on a file larger than memory: coefficients at a few points, least squares over all rows ---
# The file is read three times: for its labels and columns, for scales and points, and for the fit.


def fit_low_rank(
    path: Path,
    options: DataOptions,
    most: int,
    settings: dict[str, Any],
    scaler_for: Callable[[bool], Any],
    *,
    classification: bool,
    random_state: int,
    progress: ProgressCallback | None,
) -> tuple[LowRankRLSClassifier | LowRankRLSRegressor, Any, Survey]:
    """Fit a low-rank machine to a file, at most `most` rows in memory.

    Parameters
    ----------
    path : Path
        Labeled rows.
    options : DataOptions
        How to read them.
    most : int
        Rows of a piece.
    settings : dict
        Parameters of the machine; ``gamma="scale"`` goes by the variance of the points.
    scaler_for : callable
        Makes a scikit-learn scaler with ``partial_fit``, or None, for rows that are sparse or not.
    classification : bool
        Labels, or numbers.
    random_state : int
        Seed of the points.
    progress : callable or None
        Called with the number of processed rows.

    Returns
    -------
    model : LowRankRLSClassifier or LowRankRLSRegressor
        Fitted to scaled rows.
    scaler : object or None
        The fitted scaler.
    known : Survey
        Summary of the file.
    """
    known = survey(path, options, most, classes=classification)
    scaler = scaler_for(known.is_sparse)
    random = np.random.default_rng(random_state)
    points = sample(path, known.options, most, settings["n_vectors"], random, scaler)
    settings = settings | {"selection": points, "fit_intercept": True}
    if isinstance(settings["gamma"], str):
        settings["gamma"] = default_gamma(settings["gamma"], points, kernel=settings["kernel"])
    kind = LowRankRLSClassifier if classification else LowRankRLSRegressor
    machine: Any = kind(**settings)
    first: dict[str, Any] = {"classes": known.classes} if classification else {}
    done = 0
    for piece in read_pieces(path, known.options, most):
        X = piece.X if scaler is None else scaler.transform(piece.X)
        machine.partial_fit(X, piece.labels, **first)
        done, first = done + X.shape[0], {}
        if progress is not None:
            progress("rows", done, known.rows, float("nan"), 0)
    return machine, scaler, known


#: Scalers by what they do; sparse rows are not centered.
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
    """Refuses options that would have no effect, and options that exclude each other."""
    if low_rank is not None and scale is Scale.learned:
        rule = "'learned' is not supported with --low-rank, which reads the file in pieces"
        raise typer.BadParameter(rule, param_hint="--scale")
    if low_rank is None:
        refuse_ignored(context, OF_LOW_RANK, "without --low-rank")
    else:
        refuse_ignored(context, OF_MACHINES, "with --low-rank, which fits least squares")
    if tune:
        refuse_ignored(context, ("C", "gamma"), "with --tune, which chooses it")
    else:
        refuse_ignored(context, ("racing", "tune_plot"), "without --tune: give --tune too")
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
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Data file with labels or targets.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.", show_default=False)],
    kernel: Annotated[Kernel, typer.Option("--kernel", "-k", help="Kernel.")] = Kernel.rbf,
    C: Annotated[float, typer.Option("--C", "-C", help="Weight of the training errors.")] = 1.0,
    gamma: Annotated[
        str, typer.Option("--gamma", "-g", help="Coefficient of the kernel: a number, scale or auto.")
    ] = "scale",
    degree: Annotated[int, typer.Option(help="Degree of the poly kernel.")] = 3,
    coef0: Annotated[float, typer.Option(help="Constant of the poly and sigmoid kernels.")] = 0.0,
    task: Annotated[
        Task, typer.Option("--task", help="Classification or regression (epsilon-SVR).")
    ] = Task.classification,
    epsilon: Annotated[float, typer.Option(help="Regression: half width of the tube without loss.")] = 0.1,
    scale: Annotated[
        Scale,
        typer.Option(
            "--scale",
            help="Scale features to mean 0 and variance 1 (standard), to the range 0 to 1 (minmax), or by "
            "shapes and scales learned from the labels (learned); the scaling becomes part of the model.",
        ),
    ] = Scale.none,
    multi_class: Annotated[
        MultiClass, typer.Option(help="Multiclass strategy: one-vs-one or one-vs-rest.")
    ] = MultiClass.ovo,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Weight classes inversely to their frequency.")
    ] = False,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Choose C and gamma by five-fold cross-validation; excludes --C and --gamma. Each fold is "
            "scaled by its training samples.",
        ),
    ] = False,
    racing: Annotated[
        bool, typer.Option("--racing", help="With --tune: discard points early that are significantly worse.")
    ] = False,
    tune_plot: Annotated[
        Path | None, typer.Option(help="With --tune: image file for a plot of the scores over the grid.")
    ] = None,
    low_rank: Annotated[
        int | None,
        typer.Option(
            "--low-rank",
            min=1,
            help="Fit least squares with this number of random vectors; the file is read in pieces "
            "and may be larger than memory.",
            show_default=False,
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="With --low-rank: weight of the penalty, instead of --C.")
    ] = 1.0,
    random_state: Annotated[
        int, typer.Option("--random-state", "-r", help="With --low-rank: seed of the selection.")
    ] = 0,
    tol: Annotated[
        float, typer.Option(help="Tolerance: maximum violation of the optimality conditions.")
    ] = 1e-3,
    cache_size: Annotated[
        float | None, typer.Option(help="Kernel cache in MB. Default: a share of the free memory.")
    ] = None,
    max_time: Annotated[
        float | None, typer.Option(help="Time limit in seconds; the model so far is saved.")
    ] = None,
    n_jobs: Jobs = None,
    model_format_: Annotated[
        ModelFormat,
        typer.Option("--model-format", help="Format of the output; auto uses the suffix of its name."),
    ] = ModelFormat.auto,
    data_format: Format = DataFormat.auto,
    target: Target = None,
    header: Header = None,
    test: TestKeys = False,
    float32: SinglePrecision = False,
    piece: Piece = 100_000,
) -> None:
    """Fit a support vector machine and save it.

    The problem is solved to the tolerance --tol. The reported duality gap bounds
    the distance of the objective from its optimum.

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
            raise ValueError(f"{data}: --task regression needs numbers as targets")
        machine = SVR(epsilon=epsilon, **common)
    else:
        weights: Literal["balanced"] | None = "balanced" if balanced else None
        machine = SVC(multi_class=multi_class.value, class_weight=weights, **common)
    scaler = SCALERS[scale](sparse.issparse(rows.X))
    if kernel is Kernel.chi2 and isinstance(scaler, MinMaxScaler):
        scaler.set_params(clip=True)  # the kernel is for values that are not negative
    if scale is Scale.learned:
        scaler.set_params(task=task.value, class_weight="balanced" if balanced else None, n_jobs=n_jobs)
    started = time.perf_counter()
    search: Any = _search(machine, "racing" if racing else "full") if tune else None
    if search is None:
        machine.fit(rows.X if scaler is None else scaler.fit_transform(rows.X, targets), targets)
    else:
        # The search fits the scaler to the training samples of each fold, and to all samples for the model.
        search._scaler = scaler
        machine = search.fit(rows.X, targets).best_estimator_
    elapsed = time.perf_counter() - started
    machine.set_params(verbose=False)  # the file is not for this terminal
    n, d = rows.X.shape
    metadata: dict[str, Any] = {"training samples": int(n), "C": float(machine.C)}
    if search is not None:
        metadata["score by cross-validation"] = float(search.best_score_)
    _write(machine, scaler, rows.names, output, model_format_, metadata)
    what = (
        f", {d:,} features and {len(machine.classes_)} classes"
        if isinstance(machine, SVC)
        else f" and {d:,} features"
    )
    found = f"{machine.expansion_.n_vectors:,} support vectors"
    say(f"Trained on {n:,} samples{what} in {terminal.seconds(elapsed)}: {found}.")
    say(terminal.describe_certificate(machine.certificate_))
    if search is not None:
        chosen = ", ".join(f"{name}={value:.4g}" for name, value in search.best_params_.items())
        folds = f"Cross-validation with {search.n_splits_} folds"
        say(f"{folds} chose {chosen} with a mean score of {search.best_score_:.4f}.")
        if tune_plot is not None:
            search.plot(image_axes()).figure_.savefig(tune_plot, dpi=150)
            say(f"Wrote {tune_plot}.")
    say(terminal.describe_file(output))
    note = size_note(machine)
    if note is not None:
        say(note)


def _write(
    machine: Any,
    scaler: Any,
    names: list[str] | None,
    output: Path,
    kind: ModelFormat,
    metadata: dict[str, Any],
) -> None:
    """Writes a model with the scaling and the names of its features."""
    if scaler is None and names is None:
        write_model(machine, output, kind.value, metadata)
        return
    steps = [] if scaler is None else [scaler]
    complete = as_expansion(make_pipeline(*steps, machine)).set_params(feature_names=names)
    write_model(complete, output, kind.value, metadata)


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
    _write(machine, scaler, known.names, output, model_format_, {"training samples": int(known.rows)})
    d = machine.n_features_in_
    what = f" and {d:,} features"
    if isinstance(machine, LowRankRLSClassifier):
        what = f", {d:,} features and {len(machine.classes_)} classes"
    found = f"{machine.expansion_.n_vectors:,} vectors"
    say(f"Trained on {known.rows:,} samples{what} in {terminal.seconds(elapsed)}: {found}.")
    say(terminal.describe_file(output))


def _search(machine: SVC | SVR, search: Literal["full", "racing"]) -> SVCCV | SVRCV:
    """The search that chooses C and gamma of a machine."""
    kind = SVCCV if isinstance(machine, SVC) else SVRCV
    parameters = set(kind().get_params())
    shared = {name: value for name, value in machine.get_params().items() if name in parameters}
    return kind(search=search, **shared)
