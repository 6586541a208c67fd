"""Base class of `SVC` and `NuSVC`: labels, weights, machines of several classes with shared kernel rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from svmarrow import _core
from svmarrow._support.atomic import atomic_fit, consistent
from svmarrow._support.callbacks import fitting
from svmarrow._support.decoding import Decoding, check_shape, pairs
from svmarrow.models.columns import Columns
from svmarrow.models.output_mixins import ClassifierOutputMixin
from svmarrow.svm._base import SOLVER_RULES, SupportVectorMachine
from svmarrow.svm._certified import (
    DECODING_RULES,
    UnavailableMethod,
    decoding_of,
    iterations_of_machines,
    labelled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from svmarrow._support.memory import MemoryEstimate


__all__ = ["CLASSIFIER_RULES", "KernelClassifier"]

#: Rules of the parameters that `SVC` and `NuSVC` share.
CLASSIFIER_RULES = {**SOLVER_RULES, **DECODING_RULES}


class KernelClassifier(ClassifierOutputMixin, SupportVectorMachine):
    """Base class of `SVC` and `NuSVC`."""

    predict_proba: Any = UnavailableMethod()
    predict_log_proba: Any = UnavailableMethod()
    n_iter_: ClassVar[property] = property(iterations_of_machines)

    #: The loss, a name of `svmarrow._support.codes.LOSSES`, if it is not a parameter.
    _margin_loss: ClassVar[str] = "hinge"

    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    multi_class: Literal["ovo", "ovr"]

    class_weight_: NDArray[np.float64]
    _coding: Decoding

    @property
    def _decoding(self) -> Decoding:
        return self._coding

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training samples; kernel values between them for the precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each sample, which multiplies C. Samples of weight 0 are ignored, and a class of such
            samples alone is not in `classes_`; negative weights, which scikit-learn treats as 0, raise an
            error, since they are nearly always a mistake.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter is outside its range, the data contain NaN or infinity, lengths differ, there is a
            single class of positive weight, `class_weight` is 0 for a class, or nu is infeasible.
        MemoryError
            If the free memory is too small for the fit with the smallest cache.
        KeyboardInterrupt
            On Ctrl-C, within a second; the estimator is then unchanged, or has the solution so far with
            ``warm_start=True``.

        Warns
        -----
        ConvergenceWarning
            If a machine ended before the tolerance was reached.
        """
        with fitting(self, X, y, sample_weight):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, code: NDArray[np.int8] | None = None) -> Self:
        """Fits the model; ``code`` (k, q) replaces ``multi_class``."""
        X, y = self._validated(X, y, with_y=True)
        classes, labels, class_weight, weights = labelled(self, y, sample_weight)
        decoding: Decoding = decoding_of(self, classes.size) if code is None else "code"
        check_shape(decoding, self.decision_function_shape, self.break_ties)
        training = self._training(X, weights)
        used = training.of_used(labels).astype(np.int64)
        counts = np.bincount(used, minlength=classes.size)
        sizes = _sizes(counts, decoding) if code is None else (counts @ (code != 0)).tolist()
        same = hasattr(self, "classes_") and np.array_equal(self.classes_, classes)
        start = self._start(training, len(sizes)) if same else None

        def fit(rows: Any, kernel: Any, solver: Any) -> Any:
            task: Any = {
                "labels": used,
                "n_classes": int(classes.size),
                "upper": training.weights * self._cost(),
                "coding": self.multi_class if code is None else code,
                **self._options(),
            }
            return _core.fit_svc(rows, kernel, task, solver)

        fitted = self._solve(training, sizes, fit, start=start)
        self.classes_ = classes
        self.class_weight_ = class_weight
        self._coding = decoding
        self._store(training, fitted, fitted["class_counts"])
        return self

    def _fit_columns(
        self, X: Any, y: NDArray[Any], matrix: NDArray[np.int8], sample_weight: NDArray[np.float64] | None
    ) -> Columns:
        """Fits all columns with shared kernel rows, see `svmarrow.models.columns.ColumnTrainer`."""
        self._fit(X, y, sample_weight, matrix)
        return Columns(self.expansion_, self.support_.astype(np.int64), self.certificate_)

    def _column_memory(
        self, X: Any, matrix: NDArray[np.int8], counts: NDArray[np.int64]
    ) -> MemoryEstimate | None:
        self._check_parameters()
        return self._memory_of(X, int(X.shape[0]), (counts @ (matrix != 0)).tolist())

    def _options(self) -> Mapping[str, Any]:
        """Returns loss, nu and intercept for the solver."""
        raise NotImplementedError

    def _cost(self) -> float:
        """Returns the multiplier of all weights."""
        return 1.0

    def _machine_sizes(self, y: Any, n: int) -> list[int]:
        if y is None:
            return [n]
        counts = np.unique(np.asarray(y), return_counts=True)[1]
        return _sizes(counts, decoding_of(self, counts.size))

    @property
    @consistent
    def dual_coef_(self) -> Any:
        """Signed coefficients in scikit-learn's layout, sparse after a sparse fit.

        (1, n_SV) for two classes; (n_classes - 1, n_SV) one against one, where entry r of a support vector
        belongs to its machine against the r-th of the other classes; (n_classes, n_SV) one against the rest.
        """
        self._check_fitted()
        coefficients = self.expansion_.coefficients
        if self._decoding != "ovo":
            return self._in_kind(coefficients.T)
        k = self.classes_.size
        own = np.repeat(np.arange(k), self.n_support_)
        packed = np.zeros((k - 1, own.size))
        for output, (a, b) in enumerate(pairs(k)):
            packed[b - 1, own == a] = coefficients[own == a, output]
            packed[a, own == b] = coefficients[own == b, output]
        return self._in_kind(packed)


def _sizes(counts: NDArray[Any], decoding: Decoding) -> list[int]:
    """Returns the number of variables of each machine."""
    if decoding == "ovo":
        return [int(counts[a] + counts[b]) for a, b in pairs(counts.size)]
    return [int(counts.sum())] * (1 if decoding == "binary" else counts.size)
