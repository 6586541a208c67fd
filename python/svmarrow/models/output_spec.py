"""The meaning of the outputs of a fitted model, as exports and compiled models take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from svmarrow._support.decoding import class_indices, code_class_indices, code_scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.calibration import Calibration
    from svmarrow.models.preparation import Step

__all__ = ["OutputSpec"]


class OutputSpec(NamedTuple):
    """An expansion and the meaning of its outputs.

    Attributes
    ----------
    expansion : KernelExpansion
        The outputs.
    kind : {"classes", "numbers", "inside", "outputs"}
        Labels; predictions; 1 inside and -1 outside; nothing is known.
    n_features : int
        Columns of a sample.
    preparation : Step or None
        What happens to a sample before the kernel sees it.
    flat : bool
        For numbers: whether one target is a number, not a row of them.
    classes : ndarray or None
        The labels, for classes.
    winner : str
        For classes, how the label is found: "sign" (the second class from 0 on), "largest" (output),
        "probabilities" (the largest, which `calibration` gives), or a decoder of `matrix`.
    scores : str
        For classes, what `decision_function` gives: "outputs", "flat" (the one output as a number), "column"
        (the same, with the sign of the code), a decoder, or "difference" or "second" and a decoder, for the
        scores of two classes as one number.
    matrix : ndarray of int8 of shape (n_classes, n_outputs) or None
        The code of the decoders.
    calibration : Calibration or None
        How outputs or scores become probabilities, where that is known.
    """

    expansion: KernelExpansion
    kind: Literal["classes", "numbers", "inside", "outputs"]
    n_features: int
    preparation: Step | None = None
    flat: bool = False
    classes: NDArray[Any] | None = None
    winner: str = ""
    scores: str = "outputs"
    matrix: NDArray[np.int8] | None = None
    calibration: Calibration | None = None

    @property
    def score_decoder(self) -> str | None:
        """The decoder of the scores; None where they are outputs."""
        name = self.scores.rpartition(" ")[2]
        return None if name in ("outputs", "flat", "column") else name

    @property
    def one_score(self) -> str:
        """The rule that makes one number of two scores: "difference" or "second"; else empty."""
        return self.scores.rpartition(" ")[0]

    @property
    def calibrates_outputs(self) -> bool:
        """True if the sigmoids take outputs of pairs of several classes, not scores."""
        of = self.calibration
        return of is not None and of.link == "pairs" and self.classes is not None and len(self.classes) > 2

    def scores_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores (n, k) of outputs (n, q); (n, 1) where `decision_function` has one number a sample."""
        if self.scores == "column":
            assert self.matrix is not None
            return outputs * float(self.matrix[1, 0])
        decoder = self.score_decoder
        if decoder is None:
            return outputs
        assert self.matrix is not None
        scores = code_scores(outputs, self.matrix, decoder, 1)
        if self.one_score == "difference":
            return scores[:, 1:] - scores[:, :1]
        return scores[:, 1:] if self.one_score else scores

    def _calibrated_values(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return outputs if self.calibrates_outputs else self.scores_of(outputs)

    def probabilities_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities (n, n_classes) of outputs (n, q), with a `calibration`."""
        assert self.calibration is not None
        assert self.classes is not None
        return self.calibration.probabilities(self._calibrated_values(outputs), len(self.classes))

    def winners_of(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        """The index of the class that wins each row of outputs (n, q)."""
        assert self.classes is not None
        k = len(self.classes)
        if self.winner == "probabilities":
            assert self.calibration is not None
            return self.calibration.winners(self._calibrated_values(outputs), k)
        if self.winner in ("sign", "largest"):
            return class_indices(outputs, "binary" if self.winner == "sign" else "ovr", k)
        assert self.matrix is not None
        return code_class_indices(outputs, self.matrix, self.winner, 1)
