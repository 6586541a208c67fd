"""Estimators that return the known outputs of a fold's fit for its held-out samples, for scorers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.bases import BaseEstimator
from svmarrow._support.decoding import Decoding, pairs
from svmarrow.models.output_mixins import ClassifierOutputMixin, RegressorOutputMixin

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HeldOutClassifier", "HeldOutEstimator", "HeldOutRegressor", "outputs_of_present_classes"]


class HeldOutEstimator(BaseEstimator):
    """Stands for the estimator fitted to the training samples of a fold, whose outputs are known."""

    _held_outputs: NDArray[np.float64]

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        if X.shape[0] != self._held_outputs.shape[0]:
            raise ValueError(
                f"the scorer passed {X.shape[0]} samples: it can only predict the "
                f"{self._held_outputs.shape[0]} held-out samples of the fold"
            )
        return self._held_outputs

    def fit(self, X: Any, y: Any) -> Any:  # noqa: ARG002 - scorers require the method
        """Does nothing, since the outputs are known."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class HeldOutClassifier(ClassifierOutputMixin, HeldOutEstimator):
    """A classifier with known outputs."""

    def __init__(self, outputs: Any, classes: Any, coding: Any, shape: Any, break_ties: bool) -> None:
        self._held_outputs, self.classes_, self._coding = outputs, classes, coding
        self.decision_function_shape, self.break_ties = shape, break_ties

    @property
    def _decoding(self) -> Decoding:
        coding: Decoding = self._coding
        return coding


class HeldOutRegressor(RegressorOutputMixin, HeldOutEstimator):
    """A regressor with known outputs."""

    def __init__(self, outputs: Any) -> None:
        self._held_outputs = outputs


def outputs_of_present_classes(
    outputs: NDArray[np.float64], decoding: Decoding, present: NDArray[np.intp], k: int
) -> tuple[NDArray[np.float64], Decoding]:
    """Returns outputs and decoding of the machines of the present classes, as a fit to these classes has
    them.
    """
    if present.size == k:
        return outputs, decoding
    if decoding == "ovr":
        chosen = outputs[:, present]
        return (chosen[:, 1:], "binary") if present.size == 2 else (chosen, decoding)
    columns = [column for column, pair in enumerate(pairs(k)) if set(pair) <= set(present.tolist())]
    chosen = np.ascontiguousarray(outputs[:, columns])
    # Outputs are positive for the first class of a pair, and for the second class of a binary problem.
    return (-chosen, "binary") if present.size == 2 else (chosen, decoding)
