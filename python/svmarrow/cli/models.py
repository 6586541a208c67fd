"""Model files of both formats, and data that fits a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scipy import sparse

from svmarrow.cli.data import Data, DataOptions, read_data, with_columns
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop import as_expansion
from svmarrow.io import load, load_libsvm_model, save, save_libsvm_model
from svmarrow.models import ExpansionClassifier

if TYPE_CHECKING:
    from pathlib import Path

    from svmarrow._support.progress import ProgressCallback

__all__ = ["describe", "model_format", "read_classifier", "read_model", "read_model_and_data", "write_model"]

KERNEL_PARAMETERS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "precomputed": (),
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "chi2": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "poly": ("gamma", "coef0", "degree"),
}
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


def is_libsvm(path: Path) -> bool:
    """Whether an existing model file is LIBSVM's: by its content, whatever it is called."""
    with path.open("rb") as file:
        return file.read(9) == b"svm_type "


def read_model(path: Path) -> Any:
    """Model from a file of either format."""
    return load_libsvm_model(path) if is_libsvm(path) else load(path)


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
    if not is_libsvm(model_path):
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
    converted = as_expansion(model)
    expansion = converted if isinstance(converted, KernelExpansion) else converted.expansion_
    _, gamma, coef0, degree = expansion.kernel_spec
    has = KERNEL_PARAMETERS[expansion.kernel_spec[0]]
    facts: dict[str, Any] = {
        "file": str(path),
        "format": "libsvm" if is_libsvm(path) else "safetensors",
        "bytes": path.stat().st_size,
        "model": type(model).__name__,
        "kernel": expansion.kernel,
        "gamma": gamma if "gamma" in has else None,
        "coef0": coef0 if "coef0" in has else None,
        "degree": degree if "degree" in has else None,
        "n_vectors": expansion.n_vectors,
        "n_features": expansion.vectors.shape[1],
        "storage": f"{'sparse' if sparse.issparse(expansion.vectors) else 'dense'} {expansion.vectors.dtype}",
        "n_outputs": expansion.n_outputs,
    }
    if isinstance(converted, ExpansionClassifier):
        facts["n_features"] = converted.n_features_in_
        facts["decoding"] = converted.decoding
        facts["classes"] = converted.classes_.tolist()
    certificate = getattr(model, "certificate_", None)
    if certificate is not None:
        facts["certificate"] = {name: getattr(certificate, name) for name in CERTIFICATE}
    return {name: value for name, value in facts.items() if value is not None}
