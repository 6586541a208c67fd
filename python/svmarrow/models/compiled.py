"""Fitted models for one row at a time, without arrays on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow.models.preparation import Affine

if TYPE_CHECKING:
    from collections.abc import Callable

    from svmarrow.models.reading import Reading

__all__ = ["CompiledModel"]


class CompiledModel:
    """A fitted model that answers single rows in microseconds.

    `compiled` of a fitted estimator makes one; it does not follow later fits. It computes in double precision
    and gives the labels and scores of the estimator. Safe to call from several threads.

    Parameters
    ----------
    reading : Reading
        The expansion and the meaning of its outputs.

    Attributes
    ----------
    n_features_in_ : int
        Numbers of a row.
    predict : callable
        From a row (a list, a tuple, a vector of NumPy or another sequence of numbers, columns in the order of
        training) to its label as a plain int, float or str, to 1 or -1 of an outlier detector, to a float, or
        to a tuple of floats for several targets. Raises a ValueError for another number of columns, NaN and
        infinities.
    decision_function : callable or None
        From a row to a float where `decision_function` of the estimator has one number a row, else to a tuple
        of floats. None for what predicts numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> fast = SVC().fit(X, y).compiled()
    >>> fast.predict([5.0, 3.4, 1.5, 0.2]), len(fast.decision_function((5.0, 3.4, 1.5, 0.2)))
    (0, 3)
    """

    __slots__ = ("decision_function", "n_features_in_", "predict", "reading")

    predict: Callable[[Any], Any]
    decision_function: Callable[[Any], Any] | None
    n_features_in_: int
    reading: Reading

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.n_features_in_ = reading.n_features
        step, before = reading.preparation, None
        if isinstance(step, Affine):
            before = (step.centre, step.scale, step.matrix, step.offset)
        elif step is not None:
            before = None
        answer, scores, labels = _words(reading)
        inner = step is not None and before is None
        single = _core.Single(
            reading.expansion.core_parts,
            step.n_out if inner and step is not None else reading.n_features,
            before,
            answer,
            scores,
            reading.matrix,
            labels,
        )
        self.predict, self.decision_function = single.predict, single.decision_function
        if inner and step is not None:
            # Categories and gaps are Python's business: such a step takes longer than the model behind it.
            kind = object if step.mixed else np.float64

            def prepared(row: Any) -> Any:
                rows = step.rows(np.asarray([row], dtype=kind))
                return (rows.toarray() if hasattr(rows, "toarray") else rows)[0]

            self.predict = lambda row: single.predict(prepared(row))
            self.decision_function = lambda row: single.decision_function(prepared(row))
        if reading.kind == "numbers":
            self.decision_function = None

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledModel, (self.reading,)

    def __repr__(self) -> str:
        return f"<CompiledModel: {self.reading.expansion!r}>"


def _words(reading: Reading) -> tuple[str, str, list[Any]]:
    """How the extension module is to read outputs, and the labels."""
    if reading.kind == "inside":
        return "inside", "flat", []
    if reading.kind in ("numbers", "outputs"):
        return "flat" if reading.flat else "outputs", "outputs", []
    assert reading.classes is not None
    scores = f"difference {reading.winner}" if reading.scores == "difference" else reading.scores
    return reading.winner, scores, reading.classes.tolist()
