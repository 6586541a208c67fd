"""Data files, and model files of LIBSVM.

| format | write | read | holds |
|---|---|---|---|
| safetensors | `svmarrow.save` | `svmarrow.load` | whatever svmarrow has fitted, exactly |
| LIBSVM model text | `save_libsvm_model` | `load_libsvm_model` | LIBSVM's kernels, integer labels |
| SVM-light model text | | `load_svmlight_model` | SVM-light's kernels |
| svmlight text | `save_svmlight` | `load_svmlight` | sparse rows and targets |

`info` reports the content of a model file, and `model_card` describes a fitted model in Markdown: what it is
and how good it is. svmlight is the text format of the field: ``target index:value ...``, one row a line.
Files contain no code: a file from a stranger can be wrong, and is then refused, but it cannot run anything.
Saving is all or nothing: if it fails, an existing file is unchanged.
"""

from __future__ import annotations

import base64
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)

from svmarrow import _core
from svmarrow._support import saving
from svmarrow._support.estimator import Estimator, SizePath
from svmarrow._support.parameters import refuse
from svmarrow._support.rows import as_rows, core_rows, rows_of
from svmarrow._support.saving import read_about
from svmarrow._support.training import sample_weights
from svmarrow.exceptions import SizeWarning
from svmarrow.expansion.kernel_expansion import PARAMETERS_OF, KernelExpansion
from svmarrow.interop.convert import (
    as_expansion,
    load_libsvm_model,
    load_model_file,
    load_svmlight_model,
    text_format,
)
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionDetector

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from svmarrow._support.progress import ProgressCallback

__all__ = [
    "info",
    "load_libsvm_model",
    "load_svmlight",
    "load_svmlight_model",
    "model_card",
    "save_libsvm_model",
    "save_svmlight",
]


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


#: Minimum ratio of the bytes of a file to those of one-vs-rest machines for a warning, and their difference.
MIN_SIZE_RATIO = 2
MIN_EXTRA_BYTES = 1 << 16


def save(model: Any, path: str | PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
    """Write a model as a safetensors file, all or nothing; `load` reads it.

    Parameters
    ----------
    model : object
        Anything of svmarrow that is fitted: an estimator, a path of sizes, a cascade, a tree, an expansion.
        It comes back as what it was, to the last bit, and an online learner continues its stream. What
        else `svmarrow.as_expansion` takes, a machine of scikit-learn for example, comes back as what it is to
        svmarrow: an `ExpansionClassifier`, an `ExpansionRegressor`, an `ExpansionDetector` or a
        `KernelExpansion`. So does a pipeline that ends in one: what it does to a row is kept as numbers.
    path : str or path-like
        The file; its name ends in ``.safetensors`` or has no suffix. An existing one is replaced when the new
        one is complete, and stays as it is on any error.
    metadata : dict or None, default=None
        Facts of your own about the model, such as the training data and a score: names with texts, numbers,
        booleans, None, and lists and dicts of them. `svmarrow.io.info` returns them, together with the date
        and the version of svmarrow, which every file has.

    Raises
    ------
    OSError
        If the system cannot write the file.
    ValueError
        If the name has another suffix, or the metadata hold other values.
    TypeError
        If the model, its labels or a parameter cannot be stored as plain data: a kernel that is a Python
        function, an estimator of another package inside one of svmarrow's.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Warns
    -----
    svmarrow.exceptions.SizeWarning
        If compressed machines for pairs of classes take more than twice the bytes that one-vs-rest machines
        on as many vectors would, and 64 kB more.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import svmarrow
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = svmarrow.SVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "iris.safetensors"
    ...     svmarrow.save(svc, file)
    ...     again = svmarrow.load(file)
    >>> bool((again.predict(X) == svc.predict(X)).all())
    True
    """
    saving.check_name(path)
    save_as(model, path, metadata)


def save_as(model: Any, path: str | PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
    """`save` under any name."""
    model = model if isinstance(model, (Estimator, KernelExpansion, SizePath)) else as_expansion(model)
    saving.save(model, path, metadata)
    _warn_of_size(model)


def _warn_of_size(model: Any) -> None:
    """Warn where the machines for pairs of classes of a shared pool of vectors are most of a file."""
    found = bytes_one_vs_rest(model)
    if found is not None and found[0] >= max(MIN_SIZE_RATIO * found[1], found[1] + MIN_EXTRA_BYTES):
        warnings.warn(f"{size_note(model)}: train with multi_class='ovr'", SizeWarning, stacklevel=4)


# --- LIBSVM's model text ---
# A file has one output for each pair of labels a < b in its own order, positive for a. So a binary model is
# written with its second class first.


def save_libsvm_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a model as LIBSVM's text, for ``svm-predict`` and everything else that reads it.

    A one-vs-rest model becomes the pairwise differences of its outputs, so that the votes have the same
    winner; its file has up to n_classes - 1 lines a vector. That a model was trained with weights is not
    part of the format.

    Parameters
    ----------
    model : object
        Anything that `svmarrow.as_expansion` takes. Labels must be whole numbers of at most 32
        bits. A model without labels needs one output and is written as ``epsilon_svr``, an outlier detector
        as ``one_class``.
    path : str or path-like
        The file. An existing one is replaced when the new one is complete, and stays as it is on any error.

    Raises
    ------
    OSError
        If the system cannot write the file.
    ValueError
        If the format cannot hold the model: another kernel, labels that are not integers, several outputs
        without labels, a preparation of the rows, labels by probabilities or with ``break_ties=True``.
    """
    converted = as_expansion(model)
    if getattr(converted, "preparation", None) is not None:
        raise ValueError(
            "a LIBSVM model has no place for what a pipeline does to a row: svmarrow.save keeps it"
        )
    expansion = converted if isinstance(converted, KernelExpansion) else converted.expansion_
    coefficients, intercepts = expansion.coefficients, expansion.intercepts
    if not isinstance(converted, ExpansionClassifier):
        if expansion.n_outputs != 1:
            raise ValueError(
                f"an expansion with {expansion.n_outputs} outputs and no labels has no place in a LIBSVM "
                "model: it must have one output"
            )
        svm_type = "one_class" if isinstance(converted, ExpansionDetector) else "epsilon_svr"
        labels = np.empty(0, dtype=np.int64)
    else:
        if converted.decoding == "code":
            raise ValueError("a LIBSVM model decodes pairs of classes only; svmarrow.save keeps any code")
        if converted.predict_by != "scores":
            raise ValueError(
                f"this model predicts by its {converted.predict_by}, and a LIBSVM model by the outputs of "
                "its machines; svmarrow.save keeps that, and model.with_predict_by('scores') gives it up"
            )
        if converted.decoding == "ovo" and converted.break_ties and len(converted.classes_) > 2:
            raise ValueError(
                "break_ties=True has no place in a LIBSVM model, which gives a tie to the first class; "
                "svmarrow.save keeps it"
            )
        svm_type, labels = "c_svc", _integer_labels(converted.classes_)
        if converted.decoding == "binary":
            labels = labels[::-1]  # a positive output votes for the first label of the file
        elif converted.decoding == "ovr":
            first, second = np.triu_indices(len(labels), 1)
            coefficients = coefficients[:, first] - coefficients[:, second]
            intercepts = intercepts[first] - intercepts[second]
    _core.write_libsvm_model(
        os.fspath(path),
        svm_type,
        (
            core_rows(expansion.vectors),
            np.ascontiguousarray(coefficients),
            np.ascontiguousarray(intercepts),
            expansion.kernel_spec,
        ),
        np.ascontiguousarray(labels),
        np.empty(0, dtype=np.int64),
        ((), ()),
    )


def _integer_labels(classes: NDArray[Any]) -> NDArray[np.int64]:
    if classes.dtype.kind in "biuf":
        integers = classes.astype(np.int64)
        if (integers == classes).all() and (np.abs(integers) < 2**31).all():
            return integers
    raise ValueError(
        f"classes {classes[:4].tolist()!r} cannot be written to a LIBSVM model: it has whole numbers of "
        "32 bits only; svmarrow.save keeps any labels"
    )


# --- svmlight data ---


def save_svmlight(X: ArrayLike, y: ArrayLike, path: str | PathLike[str]) -> None:
    """Write rows and targets as svmlight text, columns counted from 1.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows. Zeros are not written.
    y : array-like of shape (n_samples,)
        Targets: numbers.
    path : str or path-like
        The file. An existing one is replaced when the new one is complete, and stays as it is on any error.

    Raises
    ------
    OSError
        If the system cannot write the file.
    ValueError
        If X or y has NaN or infinities, their lengths disagree, or the targets are not numbers.
    """
    rows = as_rows(X)
    try:
        targets = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("y must hold numbers to be written as svmlight text") from None
    if targets.ndim != 1:
        raise ValueError(f"y has shape {targets.shape}: expected one number a row")
    _core.write_svmlight(os.fspath(path), core_rows(rows), targets)


def load_svmlight(
    path: str | PathLike[str],
    n_features: int | None = None,
    *,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float64,
    progress: ProgressCallback | None = None,
) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    r"""Read svmlight text, a line at a time.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_features : int, default=None
        Number of columns; None takes the largest index. A file with larger indices is refused.
    zero_based : bool or "auto", default="auto"
        Whether columns count from 0. ``"auto"``: if an index 0 occurs in the file.
    dtype : float64 or float32, default=float64
        Type of the values.
    progress : callable, default=None
        ``progress(phase, done, total, gap, steps)`` is called now and then; `done` and `total` are bytes.

    Returns
    -------
    X : scipy.sparse.csr_array of shape (n_samples, n_features)
        Samples.
    y : ndarray of float64 of shape (n_samples,)
        Targets.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        A ValueError that names the line which does not follow the format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from svmarrow.io import load_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "two.svm"
    ...     _ = file.write_text("1 1:0.5 3:2\n-1 2:1\n")
    ...     X, y = load_svmlight(file)
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    if np.dtype(dtype) not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype={dtype!r} is not allowed: it must be float64 or float32")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based={zero_based!r} is not allowed: it must be True, False or 'auto'")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features={n_features!r} is not allowed: it must be at least 1")
    data, indices, indptr, shape, targets = _core.read_svmlight(
        os.fspath(path),
        n_features,
        None if zero_based == "auto" else bool(zero_based),
        np.dtype(dtype) == np.float32,
        progress,
    )
    return rows_of((data, indices, indptr, shape)), targets


# --- model cards ---

#: Number of bins of the calibration picture, and its width and height in pixels.
N_BINS, PICTURE_SIZE = 10, 300
#: Maximum number of features in the table of importances.
MAX_FEATURES = 20


def model_card(model: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> str:
    """Describe a fitted model in Markdown: data, scores, bound of the loss, sizes, importances, calibration.

    Parameters
    ----------
    model : object
        A fitted estimator or model of svmarrow, or of another package that `svmarrow.as_expansion` takes.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Samples that neither training nor compression has seen.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their labels or targets.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the samples in the scores.

    Returns
    -------
    str
        Markdown. If the model has probabilities of two classes, a picture of their calibration is embedded.

    Raises
    ------
    TypeError
        If the model is not a kernel machine, or does not predict labels or targets.
    ValueError
        If X and y do not fit the model or each other.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from svmarrow import TabularClassifier
    >>> from svmarrow.io import model_card
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = TabularClassifier(n_samples=100).fit(X[:300], y[:300])
    >>> model_card(model, X[300:], y[300:]).splitlines()[0]
    '# Model card: TabularClassifier'
    """
    converted = as_expansion(model)
    predicted, targets = np.asarray(model.predict(X)), np.asarray(y)
    if predicted.shape != targets.shape:
        raise ValueError(f"y has shape {targets.shape}: it must be {predicted.shape}, the predictions' shape")
    weights = sample_weights(sample_weight, len(targets))
    sections = [
        f"# Model card: {type(model).__name__}",
        _model_section(model, converted),
        _section("Test data", _data_rows(model, targets)),
        _section("Scores on the test data", _score_rows(model, X, targets, predicted, weights)),
    ]
    bound = getattr(converted, "loss_bound_", None)
    if bound is not None:
        sections.append(f"## Loss by compression\n\n{bound}")
    rounded = getattr(converted, "quantization_", None)
    if rounded is not None:
        sections.append(f"## Quantization\n\n{rounded}")
    importances = getattr(model, "feature_importances_", None)
    if importances is not None:
        sections.append(_section("Feature importances", _importance_rows(model, importances)))
    if hasattr(model, "predict_proba") and len(model.classes_) == 2:
        sections.append(_calibration(model, X, targets, weights))
    return "\n\n".join(sections) + "\n"


def _section(title: str, rows: list[tuple[str, str]]) -> str:
    cells = [(name.replace("|", "\\|"), value.replace("|", "\\|")) for name, value in rows]
    lines = [f"| {name} | {value} |" for name, value in cells]
    return "\n".join([f"## {title}", "", "| | |", "|---|---|", *lines])


def _model_section(model: Any, converted: Any) -> str:
    expansion = converted.expansion_
    of_objects = callable(expansion.kernel)
    kernel = repr(expansion.kernel)
    if not of_objects:
        kernel = "; ".join(f"{part.kernel}, gamma = {part.gamma:.4g}" for part in expansion.parts)
    is_stored = not of_objects and all(type(part) is KernelExpansion for part in expansion.parts)
    parts = [part.core_parts for part in expansion.parts] if is_stored else []
    stored = sum(map(_core.stored_bytes, parts)) if is_stored else expansion.nbytes
    rows = [
        ("kernel", kernel),
        ("vectors", f"{expansion.n_vectors:,}"),
        ("outputs", f"{expansion.n_outputs:,}"),
        ("size of a model file", f"{stored:,} bytes of numbers"),
    ]
    rows += [(name, f"{getattr(model, name):.4g}") for name in ("C", "alpha_") if hasattr(model, name)]
    certificate = getattr(model, "certificate_", None)
    if certificate is not None:
        rows.append(("training", str(certificate).partition("\n")[0]))
        rows.append(("duality gap", f"{certificate.gap:.3g}"))
    return _section("Model", rows)


def _data_rows(model: Any, targets: NDArray[Any]) -> list[tuple[str, str]]:
    rows = [("samples", f"{len(targets):,}"), ("features", f"{model.n_features_in_:,}")]
    if is_classifier(model) or is_outlier_detector(model):
        labels, counts = np.unique(targets, return_counts=True)
        return rows + [(f"class {label}", f"{count:,}") for label, count in zip(labels, counts, strict=True)]
    return [*rows, ("mean of the targets", f"{targets.mean():.4g}"), ("deviation", f"{targets.std():.4g}")]


def _score_rows(
    model: Any, X: Any, targets: Any, predicted: Any, weights: NDArray[np.float64] | None
) -> list[tuple[str, str]]:
    shared = {"sample_weight": weights}
    if not is_classifier(model) and not is_outlier_detector(model):
        scores = {
            "R²": r2_score(targets, predicted, **shared),
            "root mean squared error": np.sqrt(mean_squared_error(targets, predicted, **shared)),
            "mean absolute error": mean_absolute_error(targets, predicted, **shared),
        }
        return [(name, f"{score:.4g}") for name, score in scores.items()]
    known = set(model.classes_.tolist()) if hasattr(model, "classes_") else {-1, 1}
    unknown = sorted(map(str, set(np.unique(targets).tolist()) - known))
    if unknown:
        raise refuse("y", unknown[0], f"a class of the model: {', '.join(map(str, sorted(known, key=str)))}")
    scores = {
        "accuracy": accuracy_score(targets, predicted, **shared),
        "balanced accuracy": balanced_accuracy_score(targets, predicted, **shared),
    }
    if len(known) == 2 and np.unique(targets).size == 2:
        scores["area under the ROC curve"] = roc_auc_score(targets, model.decision_function(X), **shared)
    if hasattr(model, "predict_proba"):
        chances = model.predict_proba(X)
        scores["log loss"] = log_loss(targets, chances, labels=model.classes_, **shared)
    return [(name, f"{score:.4f}") for name, score in scores.items()]


def _importance_rows(model: Any, importances: NDArray[np.float64]) -> list[tuple[str, str]]:
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(len(importances))])
    order = np.argsort(-importances, kind="stable")[:MAX_FEATURES]
    rows = [(str(names[j]), f"{importances[j]:.3f}") for j in order]
    hidden = len(importances) - len(order)
    return [*rows, (f"and {hidden} more", "")] if hidden else rows


def _calibration(model: Any, X: Any, targets: Any, weights: NDArray[np.float64] | None) -> str:
    """Returns a section with the picture of the calibration of the second class."""
    chance = model.predict_proba(X)[:, 1]
    is_second = targets == model.classes_[1]
    weights = np.ones(len(chance)) if weights is None else weights
    place = np.minimum((chance * N_BINS).astype(int), N_BINS - 1)
    total = np.bincount(place, weights, N_BINS)
    filled = np.flatnonzero(total > 0.0)
    predicted = np.bincount(place, weights * chance, N_BINS)[filled] / total[filled]
    observed = np.bincount(place, weights * is_second, N_BINS)[filled] / total[filled]
    size = PICTURE_SIZE
    points = " ".join(
        f"{size * p:.1f},{size * (1 - o):.1f}" for p, o in zip(predicted, observed, strict=True)
    )
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -10 {size + 20} {size + 20}" width="{size}">'
        f'<rect width="{size}" height="{size}" fill="white" stroke="gray"/>'
        f'<line x1="0" y1="{size}" x2="{size}" y2="0" stroke="gray" stroke-dasharray="4"/>'
        f'<polyline points="{points}" fill="none" stroke="steelblue" stroke-width="2"/></svg>'
    )
    encoded = base64.b64encode(picture.encode()).decode()
    label = f"Observed share (upwards) and predicted probability (to the right) of class {model.classes_[1]}"
    bins = [(f"{p:.2f}", f"{o:.2f}") for p, o in zip(predicted, observed, strict=True)]
    table = ["| predicted | observed |", "|---|---|", *(f"| {p} | {o} |" for p, o in bins)]
    image = f"![{label}](data:image/svg+xml;base64,{encoded})"
    return "\n".join(["## Calibration", "", f"{label}; the diagonal is ideal.", "", image, "", *table])
