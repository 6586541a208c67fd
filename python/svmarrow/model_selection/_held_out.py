"""Outputs of a fold's machines for the held-out rows, in the shape in which scorers ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from svmarrow._support.decoding import Decoding, pairs
from svmarrow.models.output_mixins import ClassifierOutputMixin, OutputMixin, RegressorOutputMixin

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Answers", "LabelAnswers", "NumberAnswers", "labels_of_part"]


class Answers(OutputMixin, BaseEstimator):
    """In the place of an estimator that was fitted to the rest of the rows: it knows its outputs already."""

    _known: NDArray[np.float64]

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        if X.shape[0] != self._known.shape[0]:
            raise ValueError(
                f"a scorer asks about {X.shape[0]} rows, but a search knows the outputs of the "
                f"{self._known.shape[0]} held-out rows alone"
            )
        return self._known

    def fit(self, X: Any, y: Any) -> Any:  # noqa: ARG002 - scorers look for such a method
        """There is nothing to fit."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class LabelAnswers(ClassifierOutputMixin, Answers):
    """Of a classifier."""

    def __init__(self, outputs: Any, classes: Any, coding: Any, shape: Any, break_ties: bool) -> None:
        self._known, self.classes_, self._coding = outputs, classes, coding
        self.decision_function_shape, self.break_ties = shape, break_ties

    @property
    def _decoding(self) -> Decoding:
        coding: Decoding = self._coding
        return coding


class NumberAnswers(RegressorOutputMixin, Answers):
    """Of a regressor."""

    def __init__(self, outputs: Any) -> None:
        self._known = outputs


def labels_of_part(
    outputs: NDArray[np.float64], decoding: Decoding, present: NDArray[np.intp], k: int
) -> tuple[NDArray[np.float64], Decoding]:
    """The outputs of the machines of some of the k classes, as those of a fit to rows of these alone."""
    if present.size == k:
        return outputs, decoding
    if decoding == "ovr":
        own = outputs[:, present]
        return (own[:, 1:], "binary") if present.size == 2 else (own, decoding)
    columns = [place for place, pair in enumerate(pairs(k)) if set(pair) <= set(present.tolist())]
    own = np.ascontiguousarray(outputs[:, columns])
    # Positive for the first class of a pair, for the second of two classes.
    return (-own, "binary") if present.size == 2 else (own, decoding)
