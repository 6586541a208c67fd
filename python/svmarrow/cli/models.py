"""Model files of all formats, and data that fits a model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from svmarrow.cli.data import format_of, read_data
from svmarrow.cli.pieces import has_index_zero, read_pieces
from svmarrow.cli.rows import Data, DataOptions, with_columns
from svmarrow.export import to_c, to_onnx
from svmarrow.interop.convert import as_expansion
from svmarrow.interop.model_files import load_model_file, model_and_base, text_format
from svmarrow.io import load_libsvm_model, load_svmlight_model, save_libsvm_model
from svmarrow.io.model import save_as
from svmarrow.models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
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
