"""The command that predicts, in pieces, so that neither data nor predictions need to fit into memory."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from svmarrow._support.progress import progress as shown_progress
from svmarrow._support.system import new_file
from svmarrow.cli import terminal
from svmarrow.cli.data import TEXT, DataOptions, check_writable, seekable
from svmarrow.cli.models import answers_of, model_and_pieces, scores_of
from svmarrow.cli.terminal import (
    DataFormat,
    Format,
    Header,
    Jobs,
    Piece,
    SinglePrecision,
    Target,
    TestKeys,
    fail_cleanly,
    on_terminal,
    percent,
    say,
)
from svmarrow.models import ExpansionClassifier, ExpansionRegressor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.models.base import ExpansionModel

__all__ = ["predict"]


@fail_cleanly
def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Model file: safetensors, LIBSVM or SVM-light.", show_default=False
        ),
    ],
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Data file with or without labels.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File for the predictions, one per line; '-' is standard output."
        ),
    ] = None,
    decision: Annotated[
        bool,
        typer.Option(
            "--decision", help="Write the values of decision_function, comma-separated, instead of labels."
        ),
    ] = False,
    probability: Annotated[
        bool,
        typer.Option(
            "--probability",
            help="Write class probabilities, comma-separated, instead of labels, of a calibrated model.",
        ),
    ] = False,
    n_jobs: Jobs = None,
    data_format: Format = DataFormat.auto,
    target: Target = None,
    header: Header = None,
    test: TestKeys = False,
    float32: SinglePrecision = False,
    piece: Piece = 100_000,
) -> None:
    """Predict labels or numbers, and report the accuracy if the data have labels.

    Predictions are written to --output, one per line. Without --output they are
    written to standard output if the data have no labels; otherwise only the
    accuracy is reported. The data are read in pieces.

    [bold]Examples[/bold]

      svmarrow predict small.safetensors test.svm -o labels.txt
      svmarrow predict small.safetensors usps.npz --test
      svmarrow predict svm-train.model new.csv --target none -o -
    """
    if decision and probability:
        raise typer.BadParameter("--decision and --probability exclude each other: give one of them")
    if output is not None and output != Path("-"):
        check_writable(output, "--output", TEXT)
    options = DataOptions(data_format.value, target, header, test, single_precision=float32)
    with seekable(data) as source:
        pieces = model_and_pieces(model, source, options, piece)
        labelled, seconds, n = Labelled(), 0.0, 0
        fitted: Any
        fitted, rows = next(pieces)
        if probability and getattr(fitted, "calibration", None) is None:
            raise ValueError(
                f"--probability is not allowed: {model} has no probabilities. Calibrate it by svmarrow "
                "compress --probability --validation DATA, or by model.calibrated(X, y) in Python"
            )
        if output is None and rows.y is not None and (decision or probability):
            option = "--decision" if decision else "--probability"
            raise ValueError(
                f"{option} is not allowed without --output if the data have labels, since then only the "
                "accuracy is reported: give --output, '-' for standard output"
            )
        to_stdout = output == Path("-") or (output is None and rows.y is None)
        to_file = None if output is None or to_stdout else output
        written = (
            nullcontext(sys.stdout.buffer if to_stdout else None) if to_file is None else new_file(to_file)
        )
        with shown_progress(on_terminal()) as shown, written as file:
            while True:
                fitted.set_params(n_jobs=n_jobs)
                started = time.perf_counter()
                outputs = fitted.outputs(rows.X)
                answers = answers_of(fitted, outputs)
                seconds += time.perf_counter() - started
                n += rows.X.shape[0]
                if file is not None:
                    values = answers
                    if decision:
                        values = scores_of(fitted, outputs)
                    elif probability:
                        values = fitted.probabilities_of(outputs)
                    numbers = decision or probability or answers.dtype.kind == "f"
                    file.write(_text(values, numbers).encode("utf-8"))
                if rows.y is not None:
                    labelled.add(data, fitted, rows.y, answers)
                if shown.callback is not None:
                    shown.callback("rows", n, 0, float("nan"), 0)
                following = next(pieces, None)
                if following is None:
                    break
                fitted, rows = following
        if to_stdout:
            sys.stdout.buffer.flush()
        write = terminal.to_stderr().print if to_stdout else say
        if labelled.rows:
            write(labelled.summary(fitted))
            if labelled.unknown:
                terminal.warn(f"{labelled.unknown:,} of {n:,} labels in {data} are not classes of the model.")
        each = f"{1e6 * seconds / n:.1f} microseconds per sample"
        write(f"Predicted {n:,} samples in {terminal.seconds(seconds)} ({each}).")
        if to_file is not None:
            write(f"Wrote {to_file}.")


def _text(values: NDArray[Any], numbers: bool) -> str:
    lines = [",".join(map(repr, np.atleast_1d(row).tolist())) if numbers else str(row) for row in values]
    return "\n".join(lines) + "\n"


@dataclass
class Labelled:
    """Accumulates the accuracy of predictions over batches."""

    rows: int = 0
    right: int = 0
    unknown: int = 0
    #: Of numbers: their mean, the sums of the squares of their distance from it and of the errors.
    mean: float = 0.0
    spread: float = 0.0
    squares: float = 0.0

    def add(self, data: Path, model: ExpansionModel, y: NDArray[Any], answers: NDArray[Any]) -> None:
        """Adds a batch."""
        before, self.rows = self.rows, self.rows + len(y)
        if isinstance(model, ExpansionRegressor):
            if y.dtype.kind not in "iuf" or answers.ndim != 1:
                raise ValueError(f"{data}: the targets must be one number per sample")
            targets = np.asarray(y, dtype=np.float64)
            self.squares += float(np.square(targets - answers).sum())
            # Two spreads and the distance of their means (Chan, Golub, LeVeque).
            off = float(targets.mean()) - self.mean
            self.spread += float(np.square(targets - targets.mean()).sum())
            self.spread += off * off * before * len(y) / self.rows
            self.mean += off * len(y) / self.rows
            return
        self.right += int((y == answers).sum())
        known = model.classes_ if isinstance(model, ExpansionClassifier) else np.array([-1, 1])
        self.unknown += int((~np.isin(y, known)).sum())

    def summary(self, model: ExpansionModel) -> str:
        """Returns a summary in one sentence."""
        if isinstance(model, ExpansionRegressor):
            fit = 1.0 - self.squares / self.spread if self.spread > 0 else float("nan")
            error = float(np.sqrt(self.squares / self.rows))
            return f"R^2 is {fit:.4f}, and the root mean squared error is {error:.6g}."
        share = self.right / self.rows
        right = f"{self.right:,} of {self.rows:,} samples"
        return f"The accuracy is {percent(share)} ({right}), the error rate {percent(1 - share)}."
