"""Model files of all formats, the command that writes a model in another one, and data that fits a model."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path  # noqa: TC003 - typer reads annotations when it runs
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from scipy import sparse

from svmarrow._support.progress import progress as shown_progress
from svmarrow.cli import terminal
from svmarrow.cli.data import check_writable, format_of, has_index_zero, read_data, read_pieces
from svmarrow.cli.formats import Data, DataOptions, with_columns
from svmarrow.cli.terminal import (
    DataFormat,
    Format,
    Header,
    ModelFormat,
    Numbers,
    Target,
    TestKeys,
    fail_cleanly,
    on_terminal,
    percent,
    refuse_ignored,
    say,
)
from svmarrow.export import to_c, to_onnx
from svmarrow.interop.convert import as_expansion, load_model_file, model_and_base, text_format
from svmarrow.io import load_libsvm_model, load_svmlight_model, save_as, save_libsvm_model
from svmarrow.models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.models.base import ExpansionModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from svmarrow._support.progress import ProgressCallback

__all__ = [
    "answers_of",
    "convert",
    "model_and_pieces",
    "model_format",
    "read_model_and_data",
    "scores_of",
    "write_model",
]


#: Formats of model files by the last part of their names.
FORMATS = {
    "": "safetensors",
    ".safetensors": "safetensors",
    ".onnx": "onnx",
    ".h": "c",
    ".model": "libsvm",
    ".libsvm": "libsvm",
    ".txt": "libsvm",
}


def model_format(path: Path, asked: str) -> str:
    """Format of a model file that is to be written: "safetensors", "libsvm", "onnx" or "c".

    A ValueError where the name says none of them.
    """
    if asked != "auto":
        return asked
    if path.suffix.lower() not in FORMATS:
        known = ", ".join(suffix for suffix in FORMATS if suffix)
        raise ValueError(
            f"--output={path} is not allowed: its name must end in one of {known}, or have no suffix "
            "(safetensors); give --model-format for any other name"
        )
    return FORMATS[path.suffix.lower()]


def c_name(path: Path) -> str:
    """A name for what a C header of this name defines."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    return name if name[:1].isalpha() else f"model_{name}"


def answers_of(model: ExpansionModel, outputs: NDArray[np.float64]) -> NDArray[Any]:
    """Converts outputs (n, q) to labels or predictions."""
    if isinstance(model, ExpansionClassifier):
        labels: NDArray[Any] = model.classes_[model.decode(outputs)]
        return labels
    if isinstance(model, ExpansionDetector):
        return model.decode(outputs)
    assert isinstance(model, ExpansionRegressor)
    return model._shaped(outputs)


def scores_of(model: ExpansionModel, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Converts outputs (n, q) to decision values; for a regressor they are the outputs."""
    return model.scores_of(outputs) if isinstance(model, ExpansionClassifier) else outputs


def with_meaning(path: Path, model: Any) -> ExpansionModel:
    """Converts a model to one with labels or targets; raises ValueError for a bare expansion."""
    converted = as_expansion(model)
    if not isinstance(converted, ExpansionModel):
        raise ValueError(f"{path}: this model has no labels, it is a bare expansion")
    return converted


def write_model(model: Any, path: Path, asked: str = "auto", metadata: dict[str, Any] | None = None) -> None:
    """Writes a model in the format of its suffix or `asked`; safetensors files contain the metadata too."""
    match model_format(path, asked):
        case "libsvm":
            save_libsvm_model(model, path)
        case "onnx":
            to_onnx(model, path)
        case "c":
            to_c(model, path, prefix=c_name(path))
        case _:
            save_as(model, path, metadata)


def read_model_and_data(
    model_path: Path,
    files: list[tuple[Path, DataOptions]],
    progress: ProgressCallback | None = None,
) -> tuple[ExpansionModel, list[Data]]:
    """Read a model and data with its columns.

    Columns of a CSV file with a header are taken by their names, where the model knows names.
    A safetensors model knows its number of columns, which the data must have. A text model does not: like
    ``svm-predict``, take columns that are in one file only as zeros in the others.
    """
    if text_format(model_path) is None:
        model = with_meaning(model_path, load_model_file(model_path))
        names = None if model.feature_names is None else tuple(map(str, model.feature_names_in_))
        columns = model.n_features_in_
        return model, [
            read_data(path, replace(options, n_features=columns, names=names), progress)
            for path, options in files
        ]
    model, files = _with_one_base(model_path, files)
    data = [read_data(path, options, progress) for path, options in files]
    if _is_precomputed(model):
        return model, [_kernel_rows(path, rows, model) for (path, _), rows in zip(files, data, strict=True)]
    widest = max([model.n_features_in_, *(part.X.shape[1] for part in data)])
    return _wider(model_path, widest, files), [with_columns(part, widest) for part in data]


def model_and_pieces(
    model_path: Path, path: Path, options: DataOptions, most: int
) -> Iterator[tuple[ExpansionModel, Data]]:
    """A model and rows that fit it as `read_model_and_data` has them, at most `most` at a time.

    The model is the same for all pieces, but for columns of a text model that came later.
    """
    if text_format(model_path) is not None:
        model, files = _with_one_base(model_path, [(path, options)])
        return _widened(model_path, model, files, most)
    model = with_meaning(model_path, load_model_file(model_path))
    if isinstance(model, ExpansionClassifier) and model.classes_.dtype.kind not in "biuf":
        options = replace(options, text_labels=True)
    names = None if model.feature_names is None else tuple(map(str, model.feature_names_in_))
    options = replace(options, n_features=model.n_features_in_, names=names)
    return ((model, piece) for piece in read_pieces(path, options, most))


def _widened(
    model_path: Path, model: ExpansionModel, files: list[tuple[Path, DataOptions]], most: int
) -> Iterator[tuple[ExpansionModel, Data]]:
    ((path, options),) = files
    first = 0
    for piece in read_pieces(path, options, most):
        if _is_precomputed(model):
            yield model, _kernel_rows(path, piece, model, first)
            first += piece.X.shape[0]
            continue
        if piece.X.shape[1] > model.n_features_in_:
            model = _wider(model_path, piece.X.shape[1], files)
        yield model, with_columns(piece, model.n_features_in_)


def _with_one_base(
    path: Path, files: list[tuple[Path, DataOptions]]
) -> tuple[ExpansionModel, list[tuple[Path, DataOptions]]]:
    """A text model and how to read svmlight data with it: as in ``svm-predict``, numbers name columns.

    Columns of SVM-light count from 1, those of LIBSVM from 0 if an index 0 occurs in any of the files. Rows
    of a precomputed kernel have their own number there.
    """
    if text_format(path) == "svmlight":
        return load_svmlight_model(path), [
            (data, replace(options, zero_based=False) if format_of(data, options) == "svmlight" else options)
            for data, options in files
        ]
    raw, zero_based = model_and_base(path, None, "auto")
    model = with_meaning(path, raw)
    precomputed = _is_precomputed(model)
    text = [format_of(data, options) == "svmlight" for data, options in files]
    zero_based = (
        zero_based
        or precomputed
        or any(is_text and has_index_zero(data) for is_text, (data, _) in zip(text, files, strict=True))
    )
    if zero_based and not precomputed:
        model = with_meaning(path, load_libsvm_model(path, zero_based=True))
    return model, [
        (data, replace(options, zero_based=zero_based) if is_text else options)
        for is_text, (data, options) in zip(text, files, strict=True)
    ]


def _wider(path: Path, columns: int, files: list[tuple[Path, DataOptions]]) -> ExpansionModel:
    """Loads a text model with more columns, counted as in the files."""
    if text_format(path) == "svmlight":
        return load_svmlight_model(path, columns)
    zero_based = any(bool(options.zero_based) for _, options in files)
    return with_meaning(path, load_libsvm_model(path, columns, zero_based=zero_based))


def _is_precomputed(model: ExpansionModel) -> bool:
    return bool(model.expansion_.kernel == "precomputed")


def _kernel_rows(path: Path, data: Data, model: ExpansionModel, first: int = 0) -> Data:
    """Kernel values (n, n_features_in_) of rows; LIBSVM's text has the number of the row in the column 0.

    ``svm-predict`` counts the values of a row whatever their indices are, so a row must have them all.
    """
    columns = model.n_features_in_
    if not sparse.issparse(data.X):
        if data.X.shape[1] < columns:
            raise ValueError(
                f"{path}: {data.X.shape[1]} columns, the model needs {columns} kernel values a row, one for "
                "each training row up to its last vector"
            )
        return replace(data, X=data.X[:, :columns])
    counts = np.diff(data.X.indptr)
    is_full = counts > columns
    is_full[is_full] = data.X.indices[data.X.indptr[1:][is_full] - 1] == counts[is_full] - 1
    if not is_full.all():
        row = first + int(np.argmin(is_full)) + 1
        raise ValueError(
            f"{path}: row {row} does not hold all values of the precomputed kernel: it must be 0:number and "
            f"then 1:value to at least {columns}:value, zeros written out"
        )
    return replace(data, X=data.X[:, 1 : columns + 1].toarray())


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
    say(terminal.describe_file(output))
