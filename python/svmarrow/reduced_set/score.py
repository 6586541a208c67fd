"""Models and goals of a compression: their checks, scores at many sizes at once, thresholds."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from svmarrow import _core
from svmarrow._support.parameters import Rule, check, either, integer, none, one_of, real, refuse
from svmarrow._support.rows import as_samples
from svmarrow._support.training import label_indices, sample_weights
from svmarrow.exceptions import SizeWarning
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.base import ExpansionModel
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.models.outputs import pair_matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow.models.base import LossBound


__all__ = [
    "CONFIDENCE",
    "GOAL_RULES",
    "MAX_LOSS",
    "MIN_AGREEMENT",
    "SIZE_RULES",
    "Score",
    "check_scoring",
    "default_scoring",
    "goal_of",
    "loss_weights",
    "numbers_for",
    "output_spread",
    "predictions_of",
    "predicts_by_probabilities",
    "predicts_classes",
    "refuse_large_loss",
    "refuse_number",
    "refuse_scoring",
    "refuse_several_goals",
    "rows_for",
    "threshold_shifts",
    "warn_if_constant",
    "with_bound",
    "wrap_like",
]


# --- scales of a regressor's outputs ---


MAX_SPREAD_SAMPLES = 500
"""Maximum number of samples from which the spread of outputs is computed."""

MIN_DEVIATION = 1e-9
"""Deviation of an output relative to its largest value, up to which it is constant but for rounding."""


def output_spread(
    model: Any, rows: Any, sample_weight: ArrayLike | None, n_jobs: int | None
) -> NDArray[np.float64]:
    """Standard deviation of each output of a regressor, the largest for a constant one; 1 for other models.

    Outputs divided by it count alike, whatever the units of the targets. They are computed on validated rows;
    None takes the model's vectors.
    """
    expansion = model.expansion_
    if not isinstance(model, ExpansionRegressor):
        return np.ones(expansion.n_outputs)
    rows = expansion.vectors if rows is None else rows
    n = int(rows.shape[0])
    weights = loss_weights(np.empty(n), None, sample_weight)
    sampled_rows = np.arange(n) if weights is None else np.flatnonzero(weights)
    sampled_rows = sampled_rows[:: -(-sampled_rows.size // MAX_SPREAD_SAMPLES)]
    weights = None if weights is None else weights[sampled_rows]
    outputs = expansion._evaluate(rows[sampled_rows], n_jobs)
    # Their squares shall not overflow.
    size = np.abs(outputs).max(axis=0)
    outputs /= np.where(size > 0.0, size, 1.0)
    mean = np.average(outputs, axis=0, weights=weights)
    deviation = np.sqrt(np.average((outputs - mean) ** 2, axis=0, weights=weights))
    spread = np.where(deviation > MIN_DEVIATION, size * deviation, 0.0)
    return np.where(spread > 0.0, spread, spread.max() or 1.0)


CLASSES = one_of("accuracy", "balanced_accuracy")
NUMBERS = one_of("r2", "neg_mean_squared_error")


def wrap_like(
    model: ExpansionModel | KernelExpansion, small: KernelExpansion
) -> ExpansionModel | KernelExpansion:
    """The same kind of model around another expansion; the expansion itself where the model is bare."""
    return small if isinstance(model, KernelExpansion) else model.with_expansion(small)


def with_bound(model: ExpansionModel | KernelExpansion, bound: LossBound) -> ExpansionModel | KernelExpansion:
    """The model with the bound of its loss; a bare expansion has no place for one."""
    if isinstance(model, ExpansionModel):
        model.loss_bound_ = bound
    return model


def predicts_classes(model: object) -> bool:
    """True for a classifier or outlier detector, whose score is an accuracy."""
    return isinstance(model, (ExpansionClassifier, ExpansionDetector))


def predicts_by_probabilities(model: object) -> bool:
    """True for a classifier whose label is the most probable class."""
    return isinstance(model, ExpansionClassifier) and model.predict_by == "probabilities"


def predictions_of(model: Any, outputs: NDArray[np.float64]) -> NDArray[Any]:
    """Labels of outputs (n, q); the outputs themselves for a regressor or a bare expansion."""
    if not predicts_classes(model):
        return outputs
    decoded: NDArray[Any] = model.decode(outputs)
    return model.classes_[decoded] if isinstance(model, ExpansionClassifier) else decoded


def default_scoring(model: object) -> str:
    """The measure of what a compression loses, where none is named.

    Weights of samples or classes trade accuracy on purpose, and a small model should make the same trade.
    Accuracy is for models that are known to be trained without weights.
    """
    if not predicts_classes(model):
        return "r2"
    return "accuracy" if getattr(model, "weighted", None) is False else "balanced_accuracy"


def loss_weights(
    labels: NDArray[Any], scoring: str | None, sample_weight: ArrayLike | None
) -> NDArray[np.float64] | None:
    """Weights of the samples in a loss, 1 on average; None if all are equal.

    For ``"balanced_accuracy"`` a sample counts as its share of the weight of its class.
    """
    n = int(labels.shape[0])
    weights = sample_weights(sample_weight, n)
    if weights is not None and n and not weights.any():
        raise ValueError("sample_weight is zero everywhere: at least one row must count")
    if scoring == "balanced_accuracy":
        _, groups = np.unique(labels, return_inverse=True)
        totals = np.bincount(groups, weights)
        shares = np.divide(1.0, totals, out=np.zeros(totals.size), where=totals > 0.0)[groups]
        weights = shares if weights is None else weights * shares
    if weights is None or n == 0 or weights.min() == weights.max():
        return None
    shares_of_mean: NDArray[np.float64] = weights * (n / weights.sum())
    return shares_of_mean


def rows_for(model: ExpansionModel | KernelExpansion, X: ArrayLike) -> Any:
    """Rows as the extension module takes them; a ValueError if they do not fit the model."""
    if isinstance(model, ExpansionModel):
        return model.validated(X)
    rows = as_samples(X, model.kernel)
    if rows.shape[1] != model.vectors.shape[1]:
        raise ValueError(
            f"X has {rows.shape[1]} columns, the vectors of the model have {model.vectors.shape[1]}"
        )
    return rows


def numbers_for(model: Any, y: ArrayLike, rows: Any) -> NDArray[np.float64]:
    """The numbers (n, q) that outputs should be; a ValueError if they do not fit."""
    outputs = model.expansion_.n_outputs
    targets = np.asarray(y, dtype=np.float64)
    targets = targets[:, None] if targets.ndim == 1 else targets
    if targets.shape != (rows.shape[0], outputs):
        raise ValueError(
            f"y has shape {np.shape(y)}: expected one column for each of {outputs} outputs, "
            f"and {rows.shape[0]} rows"
        )
    if not np.isfinite(targets).all():
        raise ValueError("y holds NaN or infinities")
    return targets


class Score:
    """Scores of several models at once, from their outputs a chunk of rows at a time."""

    scoring: str
    weights: NDArray[np.float64] | None
    #: Weight of right labels (n_models,), or squared errors of each output (n_models, q).
    sums: NDArray[np.float64]

    def __init__(
        self,
        model: ExpansionModel | KernelExpansion,
        rows: Any,
        y: ArrayLike,
        n_models: int,
        scoring: str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.model = model
        labelled = predicts_classes(model)
        check({"scoring": scoring}, {"scoring": either(none, CLASSES if labelled else NUMBERS)})
        self.scoring = scoring or ("accuracy" if labelled else "r2")
        targets = np.asarray(y)
        if targets.shape[:1] != (rows.shape[0],):
            raise ValueError(f"X and y disagree: X has {rows.shape[0]} rows, y has shape {targets.shape}")
        if rows.shape[0] == 0:
            raise ValueError("X has no rows: a score needs at least one")
        self.weights = loss_weights(targets, self.scoring, sample_weight)
        self.targets: NDArray[Any]
        self.targets = self._labels(targets) if labelled else numbers_for(model, targets, rows)
        self.sums = np.zeros((n_models, *self.targets.shape[1:]))

    def _labels(self, targets: NDArray[Any]) -> NDArray[np.int64]:
        if targets.ndim != 1:
            raise ValueError(f"y has shape {targets.shape}: expected one label a row")
        if isinstance(self.model, ExpansionClassifier):
            return label_indices(targets, self.model.classes_)
        return targets.astype(np.int64)

    def add(self, chunk: slice, outputs: NDArray[np.float64]) -> None:
        """Take the outputs (models, rows of the chunk, q)."""
        models, n, q = outputs.shape
        if isinstance(self.model, (ExpansionClassifier, ExpansionDetector)):
            decoded = self.model.decode(outputs.reshape(models * n, q)).reshape(models, n)
            right = decoded == self.targets[chunk]
            self.sums += right.sum(axis=1) if self.weights is None else right @ self.weights[chunk]
        else:
            self.sums += self.weighted((outputs - self.targets[chunk]) ** 2, chunk).sum(axis=1)

    def weighted(self, squares: NDArray[np.float64], chunk: slice) -> NDArray[np.float64]:
        """Squares (..., rows of the chunk, q), each as its row counts."""
        return squares if self.weights is None else squares * self.weights[chunk, None]

    def spread(self) -> NDArray[np.float64]:
        """Squared distances (n, q) of the targets from their mean, each as its row counts."""
        mean = np.average(self.targets, axis=0, weights=self.weights)
        spread = self.weighted((self.targets - mean) ** 2, slice(None))
        # The mean of equal numbers may be rounded.
        counted = self.targets if self.weights is None else self.targets[self.weights > 0.0]
        return np.where(np.ptp(counted, axis=0) > 0.0, spread, 0.0)

    def result(self) -> NDArray[np.float64]:
        """Accuracy, or the mean over the outputs of R^2 or of minus the mean squared error.

        As in scikit-learn, R^2 of a constant target is 1 if it is predicted exactly, else 0.
        """
        if predicts_classes(self.model):
            return self.sums / len(self.targets)
        if self.scoring == "neg_mean_squared_error":
            return np.asarray(-self.sums.mean(axis=1) / len(self.targets))
        spread = self.spread().sum(axis=0)
        wrong = (self.sums != 0.0).astype(np.float64)
        missed = np.divide(self.sums, spread, out=wrong, where=spread > 0.0)
        return np.asarray((1.0 - missed).mean(axis=1))


class DefaultGoal(float):
    """A default that differs in type from the same number passed by a caller."""


MAX_LOSS, MIN_AGREEMENT = DefaultGoal(0.003), DefaultGoal(0.99)
"""Default goals: the loss of score with labels, the agreement without."""

CONFIDENCE = 0.95
"""Default confidence of the bound of a loss."""

SIZE_RULES = {
    "n_vectors": either(none, integer(least=1)),
    "max_loss": real(least=0.0),
    "min_agreement": real(least=0.0, most=1.0),
    "max_bytes": either(none, integer(least=1)),
    "validation": Rule(
        "None, (X, y) or (X, y, sample_weight)",
        lambda v: v is None or (isinstance(v, (tuple, list)) and len(v) in (2, 3)),
    ),
}
"""Rules of the parameters that `compress` and `distil` share."""

GOAL_RULES = {
    "max_loss": either(none, SIZE_RULES["max_loss"]),
    "min_agreement": either(none, SIZE_RULES["min_agreement"]),
    "max_bytes": SIZE_RULES["max_bytes"],
}
"""Rules of the goals of a path, of which None is left out."""


class Goal(NamedTuple):
    """The goal of a compression: the name of the parameter, and its value."""

    name: str
    value: float

    @property
    def max_loss(self) -> float | None:
        """The largest loss, None for a goal of size."""
        return {"max_loss": self.value, "min_agreement": 1.0 - self.value}.get(self.name)

    def __str__(self) -> str:
        return f"{self.name}={self.value:g}"


def refuse_several_goals(goals: dict[str, Any]) -> None:
    """Refuse more than one goal."""
    given = [f"{name}={value}" for name, value in goals.items() if value is not None]
    if len(given) > 1:
        raise ValueError(
            f"{' and '.join(given)} are not allowed together: a compression has one goal, leave "
            "out the others"
        )


def goal_of(goals: dict[str, float | None], X: Any, y: Any, validation: tuple[Any, ...] | None) -> Goal:
    """Returns the only goal that the caller passed, or the default."""
    passed = {name: value for name, value in goals.items() if not isinstance(value, DefaultGoal)}
    refuse_several_goals(passed)
    given = [Goal(name, value) for name, value in passed.items() if value is not None]
    has_samples = X is not None or validation is not None
    labels = y if validation is None else validation[1]
    if not given and not has_samples:
        raise ValueError(
            "without samples the loss is not known: give X and y, or limit the size with "
            "n_vectors or max_bytes"
        )
    default = Goal("min_agreement", float(MIN_AGREEMENT))
    if labels is not None:
        default = Goal("max_loss", float(MAX_LOSS))
    goal = given[0] if given else default
    if goal.max_loss is not None and not has_samples:
        raise ValueError(f"{goal} needs samples to measure the loss on: give X and y, or validation=(X, y)")
    if goal.name == "max_loss" and labels is None:
        raise ValueError(f"{goal} needs labels or targets y: without them ask for min_agreement")
    return goal


def refuse_large_loss(max_loss: float | None, scoring: str | None) -> None:
    """Refuse a loss that every model keeps to."""
    if max_loss is not None and max_loss >= 1.0 and scoring != "neg_mean_squared_error":
        raise refuse("max_loss", max_loss, "below 1, because it is a share: 0.01 is one percentage point")


def refuse_scoring(scoring: str | None) -> None:
    """Refuse a measure of labels where the models are compared without labels."""
    if scoring is not None:
        raise ValueError(
            f"scoring={scoring!r} is of no use with min_agreement, which compares both models and reads no "
            "labels: ask for max_loss, or leave it out"
        )


def warn_if_constant(
    model: Any, small: Any, rows: Any, goal: str, n_jobs: int | None, stacklevel: int = 3
) -> None:
    """Warn of a small model that predicts one class for all samples although the full model does not."""
    if not predicts_classes(model) or rows.shape[0] == 0:
        return
    outputs, full = (one.expansion_._evaluate(rows, n_jobs) for one in (small, model))
    if np.ptp(model.decode(outputs)) > 0 or np.ptp(model.decode(full)) == 0:
        return
    [label] = predictions_of(model, outputs)[:1].tolist()
    warnings.warn(
        f"{goal} leaves {small.expansion_.n_vectors} vectors, which give all {rows.shape[0]} samples "
        f"the class {label!r}, as the full model does not: allow more",
        SizeWarning,
        stacklevel=stacklevel,
    )


def refuse_number(X: Any) -> None:
    """Refuse a number of vectors in the place of X."""
    if isinstance(X, Integral):
        raise TypeError(f"X={X} is not allowed: it must be samples; a number of vectors is n_vectors={X}")


def check_scoring(full: Any, scoring: str | None, y: Any) -> None:
    """Refuses a measure that does not fit the model, or has no labels to look at."""
    check({"scoring": scoring}, {"scoring": either(none, CLASSES if predicts_classes(full) else NUMBERS)})
    if scoring is not None and y is None:
        raise ValueError(f"scoring={scoring!r} needs labels or numbers y")


# --- thresholds of a compressed classifier (Weston and Bakir, TR-132, footnote 4) ---
# Compression moves the outputs a little; where a decision boundary runs along many rows, a small shift of the
# intercepts wins much of the loss back. Which shift is the best for the training error depends on the
# decoding: one number for two classes, all classes together for one-vs-rest, each machine of one-vs-one or of
# another code on its own classes. A model that was trained with weights keeps its thresholds: the fewest
# errors would be those of another loss.


def threshold_shifts(
    model: Any,
    outputs: NDArray[np.float64],
    labels: NDArray[Any],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Changes of the intercepts that minimize the weight of errors on these samples.

    Parameters
    ----------
    model : ExpansionModel or KernelExpansion
        Says how outputs are decoded.
    outputs : ndarray of shape (n_samples, n_outputs)
        Outputs on the samples.
    labels : ndarray of int64 of shape (n_samples,), or of float64 of shape (n_samples, n_outputs)
        Index of each sample's class; 1 or -1 for a detector; the numbers that outputs should be, which their
        mean then is.
    weights : ndarray of shape (n_samples,), default=None
        What each sample counts, more than 0; None is 1 for each.

    Returns
    -------
    ndarray of shape (q,)
        The shifts; 0 where none gains anything.
    """
    if isinstance(model, ExpansionDetector):
        return np.array([_core.threshold_binary(np.ascontiguousarray(outputs[:, 0]), labels > 0, weights)])
    if not isinstance(model, ExpansionClassifier):
        missing = labels - outputs
        return np.asarray(
            missing.mean(axis=0) if weights is None else np.average(missing, axis=0, weights=weights)
        )
    if model.decoding == "ovr":
        return np.asarray(_core.threshold_joint(np.ascontiguousarray(outputs), labels, weights))
    if model.decoding == "binary":
        return np.array([_core.threshold_binary(np.ascontiguousarray(outputs[:, 0]), labels == 1, weights)])
    matrix = pair_matrix(len(model.classes_)) if model._matrix is None else model._matrix
    found, known = np.zeros(outputs.shape[1]), np.flatnonzero(labels >= 0)
    for column, entries in enumerate(matrix.T):
        signs = entries[labels[known]]
        rows, positive = known[signs != 0], signs[signs != 0] > 0
        if 0 < np.count_nonzero(positive) < rows.size:
            part = None if weights is None else weights[rows]
            found[column] = _core.threshold_binary(outputs[rows, column], positive, part)
    return found
