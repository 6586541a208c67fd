"""Mixins that make labels or predictions of outputs (n, q).

A class defines ``_outputs(X)`` and inherits the prediction methods. Labels follow from outputs by a decoding,
see `svmarrow._support.decoding`; a class with another decoding overrides ``_scores_of`` and ``_winners_of``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.atomic import consistent
from svmarrow._support.bases import ClassifierMixin, OutlierMixin, RegressorMixin
from svmarrow._support.decoding import Decoding, check_shape, class_indices, decision_values
from svmarrow._support.kinds import check_overrides
from svmarrow.models.compiled import CompiledModel
from svmarrow.models.output_spec import OutputSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = [
    "REMEDY",
    "ClassifierOutputMixin",
    "LabelMixin",
    "OutlierOutputMixin",
    "OutputMixin",
    "RegressorOutputMixin",
    "check_own",
    "one_expansion",
]


#: What to do with a subclass that predicts in its own way.
REMEDY = "fit the class itself, or give the subclass a method as_expansion that returns what it predicts"


def check_own(model: Any, name: str = "as_expansion") -> None:
    """Raise ``TypeError`` for an instance of a subclass that predicts by other functions than its conversion.

    The class that defines the method of this `name`, which converts, answers for itself. So do the classes of
    svmarrow for what they inherit.
    """
    definer = next((kind for kind in type(model).__mro__ if name in vars(kind)), None)
    if definer is not None:
        check_overrides(model, definer, REMEDY)


class OutputMixin:
    """Base class of the mixins: an estimator with outputs."""

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        """Outputs (n, q) of samples as the user gives them."""
        raise NotImplementedError

    def _output_spec(self) -> OutputSpec:
        """The fitted model as one expansion with the meaning of its outputs."""
        as_expansion = getattr(self, "as_expansion", None)
        if as_expansion is None:
            raise TypeError(f"a {type(self).__name__} is not one kernel expansion: it cannot be compiled")
        spec: OutputSpec = as_expansion()._output_spec()
        return spec

    @consistent
    def compiled(self) -> CompiledModel:
        """The fitted model for one sample at a time, in microseconds.

        Returns
        -------
        CompiledModel
            Its functions ``predict``, ``decision_function`` and ``predict_proba`` take one sample: a list, a
            tuple, a vector, or a dict from the names of the features if the model has names. They return what
            the methods here return for it, in double precision. It does not follow later fits.

        Raises
        ------
        TypeError
            If the model is not one kernel expansion, or its kernel is a Python function.
        sklearn.exceptions.NotFittedError
            If it is not fitted.
        """
        check_is_fitted(self)
        check_own(self, "as_expansion" if hasattr(self, "as_expansion") else "_output_spec")
        return CompiledModel(self._output_spec(), getattr(self, "feature_names_in_", None))


def one_expansion(model: Any) -> KernelExpansion:
    """The expansion of a fitted model; a TypeError with the reason for a model that is not one."""
    try:
        expansion: KernelExpansion = model.expansion_
    except AttributeError as error:
        raise TypeError(f"a {type(model).__name__} is not one kernel expansion: {error}") from None
    return expansion


def _columns(model: Any) -> int:
    return int(model.n_features_in_)


class LabelMixin(ClassifierMixin):
    """Labels of samples, from the indices of their classes."""

    classes_: NDArray[Any]

    def _classes_of(self, X: Any) -> NDArray[Any]:
        """Index in `classes_` of each row's class."""
        raise NotImplementedError

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
        classes = self._classes_of(X)
        labels: NDArray[Any] = self.classes_[classes]
        return labels


class ClassifierOutputMixin(LabelMixin, OutputMixin):
    """Scores and labels from outputs; by default one output for two classes, else one for each class."""

    decision_function_shape: Literal["ovo", "ovr"] = "ovr"
    break_ties: bool = False

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

    def _classes_of(self, X: Any) -> NDArray[np.intp]:
        return self._winners_of(self._outputs(X))

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


class RegressorOutputMixin(RegressorMixin, OutputMixin):
    """Predictions that are the outputs themselves."""

    #: Whether the one target there is was a vector, not a column.
    _single: bool = True

    def _shaped(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """`predict` of outputs (..., n, q)."""
        return outputs[..., 0] if self._single else outputs

    def _output_spec(self) -> OutputSpec:
        of = one_expansion(self)
        flat = self._single and of.n_outputs == 1
        return OutputSpec(of, "numbers", _columns(self), getattr(self, "preparation", None), flat=flat)

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


class OutlierOutputMixin(OutlierMixin, OutputMixin):
    """One output, negative outside a region."""

    expansion_: KernelExpansion

    def _output_spec(self) -> OutputSpec:
        columns, step = _columns(self), getattr(self, "preparation", None)
        return OutputSpec(one_expansion(self), "inside", columns, step, scores="flat")

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
