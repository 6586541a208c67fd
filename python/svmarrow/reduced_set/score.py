"""Scores of many sizes of a path at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.decoding import label_indices
from svmarrow._support.parameters import check, either, none, one_of
from svmarrow._support.rows import as_rows
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.base import ExpansionModel
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Score", "decides", "numbers_for", "of_kind", "rows_for", "without_kind"]

NUMBERS = one_of("r2", "mse")


def without_kind(model: Any) -> KernelExpansion:
    """The expansion of any model."""
    expansion: KernelExpansion = model if isinstance(model, KernelExpansion) else model.expansion_
    return expansion


def of_kind(model: ExpansionModel | KernelExpansion, small: KernelExpansion) -> Any:
    """An expansion with the labels and manners of a model; as it is where the model is an expansion."""
    return small if isinstance(model, KernelExpansion) else model.with_expansion(small)


def decides(model: object) -> bool:
    """Whether the model says which class a row has, or whether it is an outlier: its score is an accuracy."""
    return isinstance(model, (ExpansionClassifier, ExpansionDetector))


def rows_for(model: ExpansionModel | KernelExpansion, X: ArrayLike) -> Any:
    """Rows as the extension module takes them; a ValueError if they do not fit the model."""
    if isinstance(model, ExpansionModel):
        return model.validated(X)
    rows = as_rows(X)
    if rows.shape[1] != model.vectors.shape[1]:
        raise ValueError(
            f"X has {rows.shape[1]} columns, the vectors of the model have {model.vectors.shape[1]}"
        )
    return rows


def numbers_for(model: Any, y: ArrayLike, rows: Any) -> NDArray[np.float64]:
    """The numbers (n, q) that outputs should be; a ValueError if they do not fit."""
    outputs = without_kind(model).n_outputs
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

    def __init__(
        self,
        model: ExpansionModel | KernelExpansion,
        rows: Any,
        y: ArrayLike,
        n_models: int,
        scoring: str | None = None,
    ) -> None:
        self.model = model
        labelled = decides(model)
        check({"scoring": scoring}, {"scoring": either(none, one_of("accuracy") if labelled else NUMBERS)})
        self.scoring = scoring or ("accuracy" if labelled else "r2")
        targets = np.asarray(y)
        if targets.shape[:1] != (rows.shape[0],):
            raise ValueError(f"X and y disagree: X has {rows.shape[0]} rows, y has shape {targets.shape}")
        if rows.shape[0] == 0:
            raise ValueError("X has no rows: a score needs at least one")
        self.sums = np.zeros(n_models)
        self.targets: NDArray[Any]
        if labelled:
            self.targets = self._labels(targets)
            return
        self.targets = numbers_for(model, targets, rows)

    def _labels(self, targets: NDArray[Any]) -> NDArray[np.int64]:
        if targets.ndim != 1:
            raise ValueError(f"y has shape {targets.shape}: expected one label a row")
        if isinstance(self.model, ExpansionClassifier):
            return label_indices(targets, self.model.classes_)
        return targets.astype(np.int64)

    def add(self, chunk: slice, outputs: NDArray[np.float64]) -> None:
        """Take the outputs (models, rows of the chunk, q)."""
        models, n, q = outputs.shape
        if isinstance(self.model, ExpansionClassifier):
            won = self.model.decode(outputs.reshape(models * n, q)).reshape(models, n)
            self.sums += (won == self.targets[chunk]).sum(axis=1)
        elif isinstance(self.model, ExpansionDetector):
            inside = self.model.inside(outputs.reshape(models * n, q)).reshape(models, n)
            self.sums += (inside == self.targets[chunk]).sum(axis=1)
        else:
            self.sums += ((outputs - self.targets[chunk]) ** 2).sum(axis=(1, 2))

    def result(self) -> NDArray[np.float64]:
        """Accuracy, R^2 over all outputs together, or the mean squared error with its sign turned."""
        if self.scoring == "accuracy":
            return self.sums / len(self.targets)
        if self.scoring == "mse":
            return -self.sums / self.targets.size
        spread = float(((self.targets - self.targets.mean(axis=0)) ** 2).sum())
        return 1.0 - self.sums / spread if spread > 0 else np.where(self.sums == 0, 1.0, 0.0)
