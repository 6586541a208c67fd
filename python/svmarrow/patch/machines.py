"""Support vector machines with the signatures and manners of scikit-learn's."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn import svm as originals
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from svmarrow import svm
from svmarrow._support.atomic import atomic_fit, consistent
from svmarrow._support.decoding import pairs
from svmarrow._support.rows import as_rows, select_rows
from svmarrow._support.warn import warn_caller
from svmarrow.models.calibration import Calibration, sigmoid
from svmarrow.patch.drop_in import DropIn
from svmarrow.patch.probability import deal, out_of_fold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow._support.certificate import Certificate
    from svmarrow.svm._base import Training

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]


#: Share of stored entries from which rows are trained faster dense; the solution is then that of dense
#: rows, to the last bit.
_DENSE = 0.5


class Machine(DropIn):
    """What the five share.

    A kernel that is a function is called as scikit-learn calls it, once with the rows as they were given, and
    the machine is trained and stored on the matrix that it returns.
    """

    # svmarrow's parameters that scikit-learn does not have.
    fit_intercept: Any = True
    loss: Any = "hinge"
    multi_class: Any = "ovo"
    warm_start: Any = False
    max_time: Any = None
    n_jobs: Any = None

    kernel: Any
    max_iter: int
    expansion_: Any
    _sparse: bool
    _rows: Any
    _n_support: NDArray[np.int32]

    @atomic_fit
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train, as scikit-learn's class does.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training vectors; kernel values for the precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels or numbers; not used by `OneClassSVM`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, which multiply C for each row. Rows whose weight is not positive are left out.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return self._fit_or_hand_over(self._fit_here, X, y, sample_weight)

    def _fit_here(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Trains with svmarrow."""
        if sample_weight is not None:
            sample_weight = np.maximum(np.asarray(sample_weight, dtype=np.float64), 0.0)
        rows = self._kernel_values(X, X) if callable(self.kernel) else X
        super().fit(rows, y, sample_weight)  # type: ignore[misc]
        self._sparse = sp.issparse(rows)
        self._rows = X if callable(self.kernel) else None

    def _kernel_values(self, X: Any, Z: Any) -> Any:
        values = self.kernel(X, Z)
        return values.toarray() if sp.issparse(values) else np.asarray(values, dtype=np.float64)

    def _training(self, X: Any, weights: NDArray[np.float64]) -> Training:
        training: Training = super()._training(X, weights)  # type: ignore[misc]
        rows = training.rows
        if sp.issparse(rows) and rows.nnz >= _DENSE * rows.shape[0] * rows.shape[1]:
            return training._replace(rows=rows.toarray())
        return training

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        if callable(self.kernel):
            X = self._kernel_values(X, self._rows)
        elif sp.issparse(X) and not self._sparse:
            raise ValueError(f"cannot use sparse input in {type(self).__name__!r} trained on dense data")
        outputs: NDArray[np.float64] = super()._outputs(X)  # type: ignore[misc]
        return outputs

    def _is_precomputed(self) -> bool:
        return callable(self.kernel) or self.kernel == "precomputed"

    def _trained_kernel(self) -> Any:
        return "precomputed" if callable(self.kernel) else self.kernel

    def _ended_early(self, certificate: Certificate) -> str:  # noqa: ARG002 - scikit-learn does not tell more
        return (
            f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your data with "
            "StandardScaler or MinMaxScaler."
        )

    @property
    @consistent
    def support_vectors_(self) -> Any:
        """Support vectors, in double precision; empty for the precomputed kernel."""
        return super().support_vectors_.astype(np.float64, copy=False)  # type: ignore[misc]

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors of each class."""
        return self._n_support

    @n_support_.setter
    def n_support_(self, counts: NDArray[np.int32]) -> None:
        # A property of the original that cannot be set.
        self._n_support = counts

    @property
    def _gamma(self) -> float:
        return float(self.expansion_.gamma)


def _gives_probabilities(classifier: Any) -> bool:
    """For `available_if`, in scikit-learn's words."""
    if getattr(classifier, "probability", False) in (False, "deprecated"):
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class Classifier(Machine):
    """What `SVC` and `NuSVC` share: probabilities, for as long as scikit-learn has them.

    They are better made than LIBSVM's in three ways: the machines that have not seen a row share kernel rows
    and start from the solution for all rows; every class is dealt out evenly; pairs are coupled exactly.
    """

    probability: bool | str
    random_state: Any
    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    _probA: NDArray[np.float64]  # noqa: N815
    _probB: NDArray[np.float64]  # noqa: N815

    def _fit_here(self, X: Any, y: Any, sample_weight: Any) -> None:
        random = check_random_state(self.random_state)
        super()._fit_here(X, y, sample_weight)
        self._probA = self._probB = np.empty(0)
        default = inspect.signature(self.original).parameters["probability"].default
        if default == "deprecated" != self.probability:
            name = self.original.__name__
            warn_caller(
                "The `probability` parameter was deprecated in 1.9 and will be removed in version 1.11. Use "
                f"`CalibratedClassifierCV({name}(), ensemble=False)` instead of `{name}(probability=True)`",
                FutureWarning,
            )
        if self.probability not in (False, "deprecated"):
            rows = self._kernel_values(X, X) if callable(self.kernel) else X
            self._calibrate(as_rows(rows), np.asarray(y).ravel(), sample_weight, random)

    def _calibrate(self, X: Any, y: Any, sample_weight: Any, random: np.random.RandomState) -> None:
        """The sigmoid of each pair, in LIBSVM's direction: from outputs that are positive for the first."""
        labels, support = np.searchsorted(self.classes_, y), self.support_
        weights = (
            np.ones(labels.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        )
        used = np.flatnonzero(weights > 0.0)
        if used.size < labels.size:
            X = select_rows(X, used, precomputed=self._is_precomputed())
            labels, weights, support = labels[used], weights[used], np.searchsorted(used, support)
        folds = deal(labels, random)
        outputs = out_of_fold(
            self._for_folds(),
            self.expansion_,
            support,
            X,
            labels,
            folds,
            weights * self.class_weight_[labels],
        )
        fitted = []
        for pair, (a, b) in enumerate(pairs(self.classes_.size)):
            rows = np.flatnonzero((labels == a) | (labels == b))
            fitted.append(sigmoid(outputs[rows, pair], labels[rows] == a, weights[rows]))
        self._probA, self._probB = np.array(fitted).T

    def _calibration(self) -> Calibration:
        """The sigmoids in svmarrow's direction: the one output of two classes is positive for the second."""
        offsets = self._probB if self.classes_.size == 2 else -self._probB
        return Calibration("pairs", -self._probA, offsets)

    @consistent
    def as_expansion(self) -> Any:
        """The fitted model as a kernel expansion, without the training."""
        made = super().as_expansion()
        if made.calibration is not None or not np.size(getattr(self, "_probA", ())):
            return made
        return made.with_calibration(self._calibration())

    def _for_folds(self) -> Any:
        """The machine of svmarrow, with the parameters that this one has been trained with."""
        kind = svm.NuSVC if isinstance(self, svm.NuSVC) else svm.SVC
        taken = {name: getattr(self, name) for name in self._get_param_names() if name in kind._rules}
        taken |= {"kernel": self._trained_kernel(), "gamma": self._gamma, "class_weight": None}
        return kind(**taken | {"decision_function_shape": "ovr", "break_ties": False})

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @consistent
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; for the precomputed kernel (n_samples, n_samples_fitted).

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        outputs = self._outputs(X)
        if not self._probA.size:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        return self._calibration().probabilities(outputs, self.classes_.size)

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @consistent
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; for the precomputed kernel (n_samples, n_samples_fitted).

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))
        return logarithms


class SVC(Classifier, svm.SVC, originals.SVC, original=originals.SVC):  # noqa: D101 - the original's
    pass


class NuSVC(Classifier, svm.NuSVC, originals.NuSVC, original=originals.NuSVC):  # noqa: D101
    pass


class SVR(Machine, svm.SVR, originals.SVR, original=originals.SVR):  # noqa: D101
    pass


class NuSVR(Machine, svm.NuSVR, originals.NuSVR, original=originals.NuSVR):  # noqa: D101
    pass


class OneClassSVM(Machine, svm.OneClassSVM, originals.OneClassSVM, original=originals.OneClassSVM):  # noqa: D101
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train, see `Machine.fit`."""
        super().fit(X, y, sample_weight)
        return self
