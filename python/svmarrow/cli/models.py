"""Model files of both formats, and data that fits a model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.cli.data import read_data
from svmarrow.cli.pieces import read_pieces
from svmarrow.cli.rows import Data, DataOptions, with_columns
from svmarrow.export import to_c, to_onnx
from svmarrow.interop.convert import as_expansion
from svmarrow.interop.libsvm_reader import is_libsvm_model
from svmarrow.io import load_libsvm_model, save_libsvm_model
from svmarrow.io.model import load, save_as
from svmarrow.models import ExpansionClassifier, ExpansionRegressor
from svmarrow.models.base import ExpansionModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from svmarrow._support.progress import ProgressCallback

__all__ = [
    "answers_of",
    "c_name",
    "model_and_pieces",
    "model_format",
    "read_model",
    "read_model_and_data",
    "scores_of",
    "with_meaning",
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
    """Labels or predictions of outputs (n, q)."""
    if isinstance(model, ExpansionClassifier):
        labels: NDArray[Any] = model.classes_[model.decode(outputs)]
        return labels
    return (
        model.shaped(outputs) if isinstance(model, ExpansionRegressor) else np.where(outputs[:, 0] > 0, 1, -1)
    )


def scores_of(model: ExpansionModel, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """What `decision_function` makes of outputs (n, q); of a regressor they are what it has."""
    return model.scores_of(outputs) if isinstance(model, ExpansionClassifier) else outputs


def read_model(path: Path) -> Any:
    """Model from a file of either format."""
    return load_libsvm_model(path) if is_libsvm_model(path) else load(path)


def with_meaning(path: Path, model: Any) -> ExpansionModel:
    """The model as what it says about its outputs; a ValueError for one that says nothing."""
    converted = as_expansion(model)
    if not isinstance(converted, ExpansionModel):
        raise ValueError(f"{path}: this model has no labels, it is a bare expansion")
    return converted


def write_model(model: Any, path: Path, asked: str = "auto") -> None:
    """Write a model in the format that the name or `asked` says."""
    match model_format(path, asked):
        case "libsvm":
            save_libsvm_model(model, path)
        case "onnx":
            to_onnx(model, path)
        case "c":
            to_c(model, path, prefix=c_name(path))
        case _:
            save_as(model, path)


def read_model_and_data(
    model_path: Path,
    files: list[tuple[Path, DataOptions]],
    progress: ProgressCallback | None = None,
) -> tuple[ExpansionModel, list[Data]]:
    """Read a model and data with its columns.

    Columns of a CSV file with a header are taken by their names, where the model knows names.
    A safetensors model knows its number of columns, which the data must have. A LIBSVM model does not: like
    ``svm-predict``, take columns that are in one file only as zeros in the others.
    """
    model = with_meaning(model_path, read_model(model_path))
    if not is_libsvm_model(model_path):
        names = None if model.feature_names is None else tuple(map(str, model.feature_names_in_))
        columns = model.n_features_in_
        return model, [
            read_data(path, replace(options, n_features=columns, names=names), progress)
            for path, options in files
        ]
    data = [read_data(path, options, progress) for path, options in files]
    widest = max([model.n_features_in_, *(part.X.shape[1] for part in data)])
    wide = with_meaning(model_path, load_libsvm_model(model_path, widest))
    return wide, [with_columns(part, widest) for part in data]


def model_and_pieces(
    model_path: Path, path: Path, options: DataOptions, most: int
) -> Iterator[tuple[ExpansionModel, Data]]:
    """A model and rows that fit it as `read_model_and_data` has them, at most `most` at a time.

    The model is the same for all pieces, but for columns of LIBSVM's that came later.
    """
    model = with_meaning(model_path, read_model(model_path))
    if isinstance(model, ExpansionClassifier) and model.classes_.dtype.kind not in "biuf":
        options = replace(options, text_labels=True)
    if is_libsvm_model(model_path):
        return _widened(model_path, model, read_pieces(path, options, most))
    names = None if model.feature_names is None else tuple(map(str, model.feature_names_in_))
    options = replace(options, n_features=model.n_features_in_, names=names)
    return ((model, piece) for piece in read_pieces(path, options, most))


def _widened(
    model_path: Path, model: ExpansionModel, pieces: Iterator[Data]
) -> Iterator[tuple[ExpansionModel, Data]]:
    for piece in pieces:
        if piece.X.shape[1] > model.n_features_in_:
            model = with_meaning(model_path, load_libsvm_model(model_path, piece.X.shape[1]))
        yield model, with_columns(piece, model.n_features_in_)
