"""Fitted models for one row at a time, without arrays on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow.models.preparation import Affine

if TYPE_CHECKING:
    from collections.abc import Callable

    from svmarrow.models.output_spec import OutputSpec

__all__ = ["CompiledModel"]


class CompiledModel:
    """A fitted model that answers single samples in microseconds.

    `compiled` of a fitted estimator makes one; it does not follow later fits. It computes in double precision
    and gives the labels and scores of the estimator. Safe to call from several threads.

    Parameters
    ----------
    spec : OutputSpec
        The expansion and the meaning of its outputs.

    Attributes
    ----------
    n_features_in_ : int
        Numbers of a sample.
    predict : callable
        From a sample (a list, a tuple, a vector of NumPy or another sequence of numbers, columns in the order
        of training) to its label as a plain int, float or str, to 1 or -1 of an outlier detector, to a float,
        or to a tuple of floats for several targets. Raises a ValueError for another number of features, NaN
        and infinities.
    decision_function : callable or None
        From a sample to a float where `decision_function` of the estimator has one number a sample, else to a
        tuple of floats. None for what predicts numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> fast = SVC().fit(X, y).compiled()
    >>> fast.predict([5.0, 3.4, 1.5, 0.2]), len(fast.decision_function((5.0, 3.4, 1.5, 0.2)))
    (0, 3)
    """

    __slots__ = ("decision_function", "n_features_in_", "predict", "spec")

    predict: Callable[[Any], Any]
    decision_function: Callable[[Any], Any] | None
    n_features_in_: int
    spec: OutputSpec

    def __init__(self, spec: OutputSpec) -> None:
        self.spec = spec
        self.n_features_in_ = spec.n_features
        step, before = spec.preparation, None
        if isinstance(step, Affine):
            before = (step.centre, step.scale, step.matrix, step.offset)
        inner = step is not None and before is None
        columns = step.n_out if inner and step is not None else spec.n_features

        def single(answer: str, scores: str, labels: list[Any]) -> _core.Single:
            parts = spec.expansion.core_parts
            return _core.Single(parts, columns, before, answer, scores, spec.matrix, labels)

        functions = single(*_decoding(spec))
        self.predict, self.decision_function = functions.predict, functions.decision_function
        if spec.one_score == "second":
            both = self.decision_function
            self.decision_function = lambda row: both(row)[1]
        if spec.winner == "probabilities":
            outputs = single("outputs", "outputs", []).predict
            assert spec.classes is not None
            names = spec.classes.tolist()
            self.predict = lambda row: names[spec.winners_of(np.array([outputs(row)]))[0]]
        if inner and step is not None:
            # Python handles categories and gaps: such a step takes longer than the model itself.
            kind = object if step.mixed else np.float64

            def prepared(row: Any) -> Any:
                rows = step.rows(np.asarray([row], dtype=kind))
                return (rows.toarray() if hasattr(rows, "toarray") else rows)[0]

            predict, decide = self.predict, self.decision_function
            self.predict = lambda row: predict(prepared(row))
            self.decision_function = lambda row: decide(prepared(row))
        if spec.kind == "numbers":
            self.decision_function = None

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledModel, (self.spec,)

    def __repr__(self) -> str:
        return f"<CompiledModel: {self.spec.expansion!r}>"


def _decoding(spec: OutputSpec) -> tuple[str, str, list[Any]]:
    """The meaning of the outputs as the extension module takes it, and the labels."""
    if spec.kind == "inside":
        return "inside", "flat", []
    if spec.kind in ("numbers", "outputs"):
        return "flat" if spec.flat else "outputs", "outputs", []
    assert spec.classes is not None
    winner = "sign" if len(spec.classes) == 2 else "largest"
    scores = str(spec.score_decoder) if spec.one_score == "second" else spec.scores
    return winner if spec.winner == "probabilities" else spec.winner, scores, spec.classes.tolist()
