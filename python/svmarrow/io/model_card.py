"""Model cards: what a fitted model is and how good it is, as Markdown."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
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
from svmarrow._support.parameters import refuse
from svmarrow._support.training import sample_weights
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["model_card"]

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
