"""Facts about a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from svmarrow import _core
from svmarrow._support.saving import read_about
from svmarrow.expansion.kernel_expansion import PARAMETERS_OF, KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.interop.model_files import load_libsvm_model, load_model_file, text_format
from svmarrow.models.classifier import ExpansionClassifier

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["bytes_one_vs_rest", "info", "size_note"]

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
"""Attributes of the certificate that `info` reports."""


def info(path: str | PathLike[str]) -> dict[str, Any]:
    """Facts about the content of a model file.

    Parameters
    ----------
    path : str or path-like
        The file, of svmarrow, LIBSVM or SVM-light.

    Returns
    -------
    dict
        Numbers, strings and lists by name: date and version of svmarrow when it was saved, the metadata that
        were passed to `save`, kernel, vectors, outputs, classes, bytes on disk, the penalty C or alpha, the
        bound of the loss of a compressed model, for a model that was trained here the certificate of its fit,
        and a ``note`` where machines of another kind would take fewer bytes.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        If it is no model.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVC
    >>> from svmarrow.io import info
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "iris.safetensors"
    ...     SVC().fit(*load_iris(return_X_y=True)).save(file)
    ...     facts = info(file)
    >>> facts["kernel"], facts["classes"], facts["certificate"]["stop"]
    ('rbf', [0, 1, 2], 'converged')
    """
    path = Path(path)
    text = text_format(path)
    model: Any = load_libsvm_model(path, zero_based="auto") if text == "libsvm" else load_model_file(path)
    facts: dict[str, Any] = {
        "file": str(path),
        "format": text or "safetensors",
        "bytes": path.stat().st_size,
        "model": type(model).__name__,
        "what": (type(model).__doc__ or "").partition("\n")[0],
    }
    if text is None:
        facts |= read_about(path)
    facts |= {name: getattr(model, name, None) for name in ("C", "alpha_")}
    bound = getattr(model, "loss_bound_", None)
    facts["loss_bound"] = None if bound is None else str(bound)
    rounded = getattr(model, "quantization_", None)
    facts["quantization"] = None if rounded is None else str(rounded)
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
    return {name: _plain(value) for name, value in facts.items() if value is not None}


def _plain(value: Any) -> Any:
    """Returns a NumPy value as one of Python."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def bytes_one_vs_rest(model: Any) -> tuple[int, int] | None:
    """Bytes of a one-vs-one model and of one-vs-rest machines on as many vectors, where that is less."""
    if not isinstance(model, ExpansionClassifier) or model.decoding != "ovo":
        return None
    expansion, k = model.expansion_, len(model.classes_)
    if type(expansion) is not KernelExpansion or callable(expansion.kernel) or k < 4:
        return None
    now = _core.stored_bytes(expansion.core_parts)
    m, B = expansion.n_vectors, expansion.coefficients
    alone = expansion.replaced(coefficients=np.sqrt(2.0 + np.arange(m)), intercepts=[0.0])
    vectors = _core.stored_bytes(alone.core_parts) - 8 * (m + 1)
    each = 1 if now - vectors < 4 * np.count_nonzero(B) else 8
    then = vectors + each * m * k + 8 * k
    return (now, then) if then < now else None


def size_note(model: Any) -> str | None:
    """Returns a sentence about the size of a one-vs-rest model, if that is smaller."""
    found = bytes_one_vs_rest(as_expansion(model))
    if found is None:
        return None
    now, then = found
    size = f"{then:,} bytes instead of {now:,}"
    return f"A one-vs-rest model (ovr) with the same number of vectors would take {size}."


def _of_expansion(converted: Any) -> dict[str, Any]:
    expansion = converted.expansion_
    of_objects = callable(expansion.kernel)
    layout = "sparse" if sparse.issparse(expansion.vectors) else "dense"
    parameters = PARAMETERS_OF.get("" if of_objects else expansion.kernel, ())
    facts: dict[str, Any] = {
        "kernel": repr(expansion.kernel) if of_objects else expansion.kernel,
        **{name: getattr(expansion, name) for name in parameters},
        "parts": [_kernel_of(part) for part in expansion.parts] if len(expansion.parts) > 1 else None,
        "n_vectors": expansion.n_vectors,
        "n_features": expansion.vectors.shape[1],
        "storage": "objects" if of_objects else f"{layout} {expansion.vectors.dtype}",
        "n_outputs": expansion.n_outputs,
    }
    if isinstance(converted, ExpansionClassifier):
        facts["n_features"] = converted.n_features_in_
        facts["decoding"] = converted.decoding
        facts["classes"] = converted.classes_.tolist()
        if converted.calibration is not None:
            facts["probabilities"] = converted.calibration.link
        if converted.predict_by != "scores":
            facts["predict_by"] = converted.predict_by
        facts["note"] = size_note(converted)
    if getattr(converted, "weighted", None) is not None:
        facts["weighted"] = converted.weighted
    if getattr(converted, "preparation", None) is not None:
        facts["preparation"] = repr(converted.preparation)
    if getattr(converted, "feature_names", None) is not None:
        facts["columns"] = [str(name) for name in converted.feature_names_in_]
    return facts


def _kernel_of(part: Any) -> str:
    """The kernel of a part of a sum with the parameters that it has, and the number of its vectors."""
    values = [f"{name}={getattr(part, name):.4g}" for name in PARAMETERS_OF[part.kernel]]
    return f"{', '.join([part.kernel, *values])}: {part.n_vectors} vectors"


def _of_numbers(model: Any) -> dict[str, Any]:
    """The numbers that a fit has left, where there is not one expansion to speak of."""
    found = {name.removesuffix("_"): value for name, value in vars(model).items() if name.endswith("_")}
    facts = {name: value for name, value in found.items() if isinstance(value, int | float | str)}
    classes = getattr(model, "classes_", None)
    return facts if classes is None else facts | {"classes": classes.tolist()}
