"""The meaning of the outputs of a fitted model, as exports and compiled models take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from svmarrow._support.atomic import consistent
from svmarrow._support.bases import ClassifierMixin, OutlierMixin, RegressorMixin
from svmarrow._support.decoding import (
    Decoding,
    check_shape,
    class_indices,
    code_class_indices,
    code_scores,
    decision_values,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.calibration import Calibration
    from svmarrow.models.preparation import Step


__all__ = [
    "ClassifierOutputMixin",
    "OutlierOutputMixin",
    "OutputSpec",
    "RegressorOutputMixin",
]


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


# --- mixins that make labels or predictions of outputs (n, q), for estimators and models alike ---
# A class defines ``_outputs(X)`` and inherits the prediction methods. Labels follow from outputs by a
# decoding, see `svmarrow._support.decoding`; a class with another decoding overrides ``_scores_of`` and
# ``_winners_of``.


class ClassifierOutputMixin(ClassifierMixin):
    """Scores and labels from outputs; by default one output for two classes, else one for each class."""

    classes_: NDArray[Any]
    decision_function_shape: Literal["ovo", "ovr"] = "ovr"
    break_ties: bool = False

    if TYPE_CHECKING:

        def _outputs(self, X: Any) -> NDArray[np.float64]: ...

    @property
    def _decoding(self) -> Decoding:
        return "binary" if self.classes_.size == 2 else "ovr"

    def _scores_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """`decision_function` of outputs (n, q)."""
        check_shape(self._decoding, self.decision_function_shape, self.break_ties)
        return decision_values(outputs, self._decoding, self.classes_.size, self.decision_function_shape)

    def _winners_of(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        """Index in `classes_` that wins each row of outputs (n, q)."""
        check_shape(self._decoding, self.decision_function_shape, self.break_ties)
        return class_indices(
            outputs,
            self._decoding,
            self.classes_.size,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
        )

    @consistent
    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
            Elements of `classes_`.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        winners = self._winners_of(self._outputs(X))
        labels: NDArray[Any] = self.classes_[winners]
        return labels

    @consistent
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,), (n, n_classes) or (n, n_classes * (n_classes - 1) / 2)
            Two classes: one number a sample, positive for the second. Else one for each class, the larger the
            better, or with ``decision_function_shape="ovo"``, where there is such a parameter, one for each
            pair. Shapes and signs are scikit-learn's.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        return self._scores_of(self._outputs(X))


class RegressorOutputMixin(RegressorMixin):
    """Predictions that are the outputs themselves."""

    if TYPE_CHECKING:

        def _outputs(self, X: Any) -> NDArray[np.float64]: ...

    #: Whether the one target there is was a vector, not a column.
    _single: bool = True

    def _shaped(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """`predict` of outputs (..., n, q)."""
        return outputs[..., 0] if self._single else outputs

    @consistent
    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the shape of y in `fit`.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        return self._shaped(self._outputs(X))


class OutlierOutputMixin(OutlierMixin):
    """One output, negative outside a region."""

    expansion_: KernelExpansion

    if TYPE_CHECKING:

        def _outputs(self, X: Any) -> NDArray[np.float64]: ...

    @property
    def offset_(self) -> NDArray[np.float64]:
        """`score_samples` minus `decision_function`, (1,)."""
        return -self.expansion_.intercepts

    @consistent
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Distances from the boundary in units of the feature space: negative outside.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        return self._outputs(X)[:, 0]

    @consistent
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """`decision_function` without the offset.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    @consistent
    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict if samples are inside the region (1) or not (-1).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
            -1 outside, where `decision_function` is negative; 1 inside and on the boundary.
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)
