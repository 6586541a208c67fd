"""The meaning of the outputs of a fitted model, as exports and compiled models take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

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
        For classes, how the label is found: "sign" (the second class from 0 on), "largest", or a decoder of
        `matrix`.
    scores : str
        For classes, what `decision_function` gives: "outputs", "flat" (the one output as a number), "column"
        (the same, with the sign of the code), "difference" (of two classes' scores), or a decoder.
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
