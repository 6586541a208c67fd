"""Mixins that make labels or predictions of outputs (n, q), for estimators and models alike.

A class defines ``_outputs(X)`` and inherits the prediction methods. Labels follow from outputs by a decoding,
see `svmarrow._support.decoding`; a class with another decoding overrides ``_scores_of`` and ``_winners_of``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from svmarrow._support.atomic import consistent
from svmarrow._support.bases import ClassifierMixin, OutlierMixin, RegressorMixin
from svmarrow._support.decoding import Decoding, check_shape, class_indices, decision_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["ClassifierOutputMixin", "OutlierOutputMixin", "RegressorOutputMixin"]


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
