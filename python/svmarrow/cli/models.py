"""Model files of both formats, and data that fits a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scipy import sparse

from svmarrow.cli.data import Data, DataOptions, read_data, with_columns
from svmarrow.expansion.kernel_expansion import PARAMETERS_OF
from svmarrow.interop import as_expansion
from svmarrow.interop.libsvm_reader import is_libsvm_model
from svmarrow.io import load, load_libsvm_model, save, save_libsvm_model
from svmarrow.models import ExpansionClassifier

if TYPE_CHECKING:
    from pathlib import Path

    from svmarrow._support.progress import ProgressCallback

__all__ = ["describe", "model_format", "read_classifier", "read_model", "read_model_and_data", "write_model"]

CERTIFICATE = (
    "dual",
    "primal",
    "gap",
    "violation",
    "iterations",
    "kernel_values",
    "cache_hit_rate",
    "seconds",
    "stop",
)
"""What `describe` tells of a fit."""
LIBSVM_EXTENSIONS = {".model", ".libsvm", ".txt"}


def model_format(path: Path, asked: str) -> str:
    """Format of a model file that is to be written: "safetensors" or "libsvm"."""
    if asked != "auto":
        return asked
    return "libsvm" if path.suffix.lower() in LIBSVM_EXTENSIONS else "safetensors"


def read_model(path: Path) -> Any:
    """Model from a file of either format."""
    return load_libsvm_model(path) if is_libsvm_model(path) else load(path)


def read_classifier(path: Path) -> ExpansionClassifier:
    """Classifier from a file of either format; a ValueError for a model without labels."""
    return _classifier(path, read_model(path))


def _classifier(path: Path, model: Any) -> ExpansionClassifier:
    converted = as_expansion(model)
    if not isinstance(converted, ExpansionClassifier):
        raise ValueError(f"{path}: this model has no labels, it is a bare expansion")
    return converted


def write_model(model: Any, path: Path, asked: str = "auto") -> None:
    """Write a model in the format that the name or `asked` says."""
    if model_format(path, asked) == "libsvm":
        save_libsvm_model(model, path)
    else:
        save(model, path)


def read_model_and_data(
    model_path: Path,
    files: list[tuple[Path, DataOptions]],
    progress: ProgressCallback | None = None,
) -> tuple[ExpansionClassifier, list[Data]]:
    """Read a classifier and data with as many columns.

    A safetensors model knows its number of columns, which the data must have. A LIBSVM model does not: like
    ``svm-predict``, take columns that are in one file only as zeros in the others.
    """
    model = read_classifier(model_path)
    if not is_libsvm_model(model_path):
        columns = model.n_features_in_
        return model, [_read(path, options, columns, progress) for path, options in files]
    data = [read_data(path, options, progress) for path, options in files]
    widest = max([model.n_features_in_, *(part.X.shape[1] for part in data)])
    wide = _classifier(model_path, load_libsvm_model(model_path, widest))
    return wide, [with_columns(part, widest) for part in data]


def _read(path: Path, options: DataOptions, columns: int, progress: ProgressCallback | None) -> Data:
    return read_data(path, replace(options, n_features=columns), progress)


def describe(path: Path, model: Any) -> dict[str, Any]:
    """What there is to know about a model file, as plain values."""
    facts: dict[str, Any] = {
        "file": str(path),
        "format": "libsvm" if is_libsvm_model(path) else "safetensors",
        "bytes": path.stat().st_size,
        "model": type(model).__name__,
        "what": (type(model).__doc__ or "").partition("\n")[0],
    }
    if hasattr(model, "sizes"):
        facts["sizes"] = list(model.sizes)
        model = model[model.sizes[-1]]
    certificate = getattr(model, "certificate_", None)
    try:
        facts |= _of_expansion(as_expansion(getattr(model, "model_", model)))
    except (TypeError, AttributeError):  # It is several expansions, or none.
        facts |= _of_numbers(model)
    if certificate is not None:
        facts["certificate"] = {name: getattr(certificate, name) for name in CERTIFICATE}
    return {name: value for name, value in facts.items() if value is not None}


def _of_expansion(converted: Any) -> dict[str, Any]:
    expansion = getattr(converted, "expansion_", converted)
    facts: dict[str, Any] = {
        "kernel": expansion.kernel,
        **{name: getattr(expansion, name) for name in PARAMETERS_OF[expansion.kernel]},
        "n_vectors": expansion.n_vectors,
        "n_features": expansion.vectors.shape[1],
        "storage": f"{'sparse' if sparse.issparse(expansion.vectors) else 'dense'} {expansion.vectors.dtype}",
        "n_outputs": expansion.n_outputs,
    }
    if isinstance(converted, ExpansionClassifier):
        facts["n_features"] = converted.n_features_in_
        facts["decoding"] = converted.decoding
        facts["classes"] = converted.classes_.tolist()
    return facts


def _of_numbers(model: Any) -> dict[str, Any]:
    """The numbers that a fit has left, where there is not one expansion to speak of."""
    found = {name.removesuffix("_"): value for name, value in vars(model).items() if name.endswith("_")}
    facts = {name: value for name, value in found.items() if isinstance(value, int | float | str)}
    classes = getattr(model, "classes_", None)
    return facts if classes is None else facts | {"classes": classes.tolist()}
