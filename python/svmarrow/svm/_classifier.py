"""What the classifiers share: labels, class weights, decoding, bounds for the leave-one-out error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.decoding import Decoding, check_shape, class_indices, decision_values, pairs
from svmarrow._support.parameters import boolean, either, mapping, none, one_of
from svmarrow._support.rows import sample_weights
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.columns import Columns
from svmarrow.svm._base import SOLVER_RULES, SupportVectorMachine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from svmarrow._support.parameters import Rule

__all__ = ["CLASSIFIER_RULES", "KernelClassifier"]

#: Rules of the parameters that every classifier of the family has.
CLASSIFIER_RULES = {
    **SOLVER_RULES,
    "class_weight": either(none, one_of("balanced"), mapping),
    "multi_class": one_of("ovo", "ovr"),
    "decision_function_shape": one_of("ovo", "ovr"),
    "break_ties": boolean,
}


class KernelClassifier(ClassifierMixin, SupportVectorMachine):
    """Base of the classifiers."""

    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    multi_class: Literal["ovo", "ovr"]
    decision_function_shape: Literal["ovo", "ovr"]
    break_ties: bool

    _rules: ClassVar[Mapping[str, Rule]]
    _decoding: Decoding

    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]

    def _fit(self, X: Any, y: Any, sample_weight: Any, code: NDArray[np.int8] | None = None) -> Self:
        """Trains; ``code`` (k, q) takes the place of ``multi_class``."""
        X, y = self._validated(self._rules, X, y, with_y=True)
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        if classes.size < 2:
            raise ValueError(f"y has {classes.size} class: it must have at least 2 classes")
        decoding: Decoding = self._decoding_of(classes.size) if code is None else "code"
        check_shape(decoding, self.decision_function_shape, self.break_ties)
        class_weight = compute_class_weight(self.class_weight, classes=classes, y=y)
        weights = _row_weights(class_weight, labels, sample_weights(sample_weight, X.shape[0]), classes)
        training = self._training(X, weights)
        used = training.of_used(labels).astype(np.int64)
        counts = np.bincount(used, minlength=classes.size)
        sizes = _sizes(counts, decoding) if code is None else (counts @ (code != 0)).tolist()
        same = hasattr(self, "classes_") and np.array_equal(self.classes_, classes)
        start = self._start(training, len(sizes)) if same else None

        def fit(rows: Any, kernel: Any, solver: Any, **how: Any) -> Any:
            upper = training.weights * self._cost()
            coding = self.multi_class if code is None else code
            how |= self._options()
            return _core.fit_svc(rows, used, int(classes.size), upper, kernel, coding, *solver, **how)

        fitted = self._solve(training, sizes, fit, start=start)
        self.classes_ = classes
        self.class_weight_ = class_weight
        self._decoding = decoding
        self._store(training, fitted, fitted["class_counts"])
        return self

    def _fit_columns(
        self, X: Any, y: NDArray[Any], matrix: NDArray[np.int8], sample_weight: NDArray[np.float64] | None
    ) -> Columns:
        """All columns over one set of kernel rows, see `svmarrow.models.columns.ColumnTrainer`."""
        self._fit(X, y, sample_weight, matrix)
        return Columns(self.expansion_, self.support_.astype(np.int64), self.certificate_)

    def _options(self) -> Mapping[str, Any]:
        """Arguments of the solver that are the loss's own."""
        raise NotImplementedError

    def _cost(self) -> float:
        """Multiplier of all weights."""
        return 1.0

    def _decoding_of(self, n_classes: int) -> Decoding:
        return "binary" if n_classes == 2 else self.multi_class

    def _machine_sizes(self, y: Any, n: int) -> list[int]:
        if y is None:
            return [n]
        counts = np.unique(np.asarray(y), return_counts=True)[1]
        return _sizes(counts, self._decoding_of(counts.size))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Decision values, with scikit-learn's shapes and signs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows; (n, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n,), (n, n_classes) or (n, n_classes * (n_classes - 1) / 2)
            Two classes: positive for the second. Else one number for each class, or one for each pair with
            ``decision_function_shape="ovo"``.

        Raises
        ------
        ValueError
            For a wrong number of columns and values that are not finite.
        """
        outputs = self._outputs(X)
        check_shape(self._decoding, self.decision_function_shape, self.break_ties)
        return decision_values(outputs, self._decoding, self.classes_.size, self.decision_function_shape)

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows; (n, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n,)
            Elements of `classes_`.

        Raises
        ------
        ValueError
            For a wrong number of columns and values that are not finite.
        """
        outputs = self._outputs(X)
        check_shape(self._decoding, self.decision_function_shape, self.break_ties)
        winners = class_indices(
            outputs,
            self._decoding,
            self.classes_.size,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
        )
        labels: NDArray[Any] = self.classes_[winners]
        return labels

    def as_expansion(self) -> ExpansionClassifier:
        """The fitted model as a classifier made of a kernel expansion, without the training."""
        check_is_fitted(self)
        return ExpansionClassifier(
            self.expansion_,
            self.classes_,
            self._decoding,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
            feature_names=getattr(self, "feature_names_in_", None),
            n_features=self.n_features_in_,
            n_jobs=self.n_jobs,
        )

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """Signed coefficients in scikit-learn's layout.

        (1, n_SV) for two classes; (n_classes - 1, n_SV) one against one, where row r of a support vector
        belongs to its machine against the r-th of the other classes; (n_classes, n_SV) one against the rest.
        """
        coefficients = self._fitted_expansion().coefficients
        if self._decoding != "ovo":
            return coefficients.T
        k = self.classes_.size
        own = np.repeat(np.arange(k), self.n_support_)
        packed = np.zeros((k - 1, own.size))
        for output, (a, b) in enumerate(pairs(k)):
            packed[b - 1, own == a] = coefficients[own == a, output]
            packed[a, own == b] = coefficients[own == b, output]
        return packed

    @property
    def n_iter_(self) -> NDArray[np.int64]:
        """Pair steps of each machine (n_outputs,)."""
        self._fitted_expansion()
        return np.array([machine.iterations for machine in self.certificate_.machines], dtype=np.int64)


def _sizes(counts: NDArray[Any], decoding: Decoding) -> list[int]:
    """Variables of each machine."""
    if decoding == "ovo":
        return [int(counts[a] + counts[b]) for a, b in pairs(counts.size)]
    return [int(counts.sum())] * (1 if decoding == "binary" else counts.size)


def _row_weights(
    class_weight: NDArray[np.float64],
    labels: NDArray[np.intp],
    weights: NDArray[np.float64] | None,
    classes: NDArray[Any],
) -> NDArray[np.float64]:
    if not np.isfinite(class_weight).all() or (class_weight < 0.0).any():
        raise ValueError(
            f"class_weight gives {class_weight.tolist()}: weights must be finite and not negative"
        )
    rows: NDArray[np.float64] = class_weight[labels] if weights is None else class_weight[labels] * weights
    left = np.bincount(labels[rows > 0.0], minlength=classes.size)
    if (left == 0).any():
        gone = classes[int(np.argmin(left))]
        raise ValueError(
            f"the weights of class {gone} are all zero: every class needs a row of positive weight "
            "(sample_weight times class_weight)"
        )
    return rows
