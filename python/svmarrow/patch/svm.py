"""Support vector machines with the signatures and behavior of scikit-learn's."""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn import svm as originals
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.metaestimators import available_if

from svmarrow._support.parameters import Decoding, atomic_fit, consistent, warn_caller
from svmarrow._support.rows import as_rows, select_rows, validated
from svmarrow._support.training import pairs
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.models.outputs import Calibration, class_indices, decision_values, sigmoid
from svmarrow.patch.replacement import Replacement, like
from svmarrow.svm import classification, regression
from svmarrow.svm._base import feature_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow._support.training import MemoryEstimate
    from svmarrow.models.machine import Certificate, Columns
    from svmarrow.svm._base import Training


__all__ = ["FOLDS", "SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "deal", "out_of_fold"]


# --- outputs of machines for pairs of classes on rows that they have not seen ---


#: Parts of the rows, each of which is left out once.
FOLDS = 5


def deal(labels: NDArray[np.intp], random: np.random.RandomState) -> NDArray[np.intp]:
    """The fold of each row: every class is dealt out evenly, after shuffling."""
    folds = np.empty(labels.size, dtype=np.intp)
    shuffled = random.permutation(labels.size)
    # One round of cards for all classes, so that the folds are of equal size too.
    folds[shuffled[np.argsort(labels[shuffled], kind="stable")]] = np.arange(labels.size) % FOLDS
    return folds


def out_of_fold(
    machine: Any,
    full: KernelExpansion,
    support: NDArray[np.integer[Any]],
    X: Any,
    labels: NDArray[np.intp],
    folds: NDArray[np.intp],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Outputs (n, pairs) of machines that were trained without the row's fold, positive for the first class.

    All machines of all folds are columns of one code over parts of classes, so they share kernel rows, and
    each starts from the solution ``full`` for all samples. Where a fold is all there is of a class, its rows
    get the side that the pair has left, or 0, as LIBSVM has it.
    """
    k = int(labels.max()) + 1
    parts, part = np.unique(labels * FOLDS + folds, return_inverse=True)
    columns, code = [], []
    outputs = np.zeros((labels.size, len(pairs(k))))
    for fold in range(FOLDS):
        for pair, (a, b) in enumerate(pairs(k)):
            stays = parts % FOLDS != fold
            first, second = stays & (parts // FOLDS == a), stays & (parts // FOLDS == b)
            if first.any() and second.any():
                columns.append((fold, pair))
                code.append(first.astype(np.int8) - second.astype(np.int8))
            else:
                outputs[folds == fold, pair] = float(first.any()) - float(second.any())
    if not columns:
        return outputs
    fold_of, pair_of = np.array(columns).T
    matrix = np.ascontiguousarray(np.array(code).T)
    if hasattr(machine, "nu"):
        # A fold may have fewer rows of the smaller class than nu needs.
        total = np.bincount(part, weights)
        for column in code:
            sides = total[column > 0].sum(), total[column < 0].sum()
            machine.nu = min(machine.nu, 2.0 * min(sides) / sum(sides) * (1.0 - 1e-12))
    coefficients = -full.coefficients if k == 2 else full.coefficients
    start = coefficients[:, pair_of] * (matrix[part[support]] != 0)
    machine.expansion_ = KernelExpansion(full.vectors, start, np.zeros(len(columns)), *_kernel(full))
    machine.support_, machine.classes_, machine.shape_fit_ = support, np.arange(parts.size), X.shape
    machine.warm_start = True
    trained = machine._fit_columns(X, part, matrix, weights).expansion
    for fold in np.unique(fold_of):
        rows, here = np.flatnonzero(folds == fold), np.flatnonzero(fold_of == fold)
        if rows.size:
            counts = trained.coefficients[:, here].any(axis=1)
            shorter = KernelExpansion(
                trained.vectors[counts],
                trained.coefficients[np.ix_(counts, here)],
                trained.intercepts[here],
                *_kernel(full),
            )
            outputs[np.ix_(rows, pair_of[here])] = shorter._evaluate(X[rows], machine.n_jobs)
    return outputs


def _kernel(expansion: KernelExpansion) -> tuple[Any, float, float, int]:
    return expansion.kernel, expansion.gamma, expansion.coef0, expansion.degree


#: Share of stored entries from which rows are trained faster dense; the solution is then that of dense
#: rows, to the last bit.
_DENSE = 0.5


class Trainer:
    """Changes of svmarrow's estimators for a replacement."""

    max_iter: int

    def _training(self, X: Any, weights: NDArray[np.float64]) -> Training:
        training: Training = super()._training(X, weights)  # type: ignore[misc]
        rows = training.rows
        if sp.issparse(rows) and rows.nnz >= _DENSE * rows.shape[0] * rows.shape[1]:
            return training._replace(rows=rows.toarray())
        return training

    def _convergence_message(self, certificate: Certificate) -> str:  # noqa: ARG002 - scikit-learn does not tell more
        return (
            f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your data with "
            "StandardScaler or MinMaxScaler."
        )


class SVCTrainer(Trainer, classification.SVC):
    """Trains `SVC`."""


class NuSVCTrainer(Trainer, classification.NuSVC):
    """Trains `NuSVC`."""


class SVRTrainer(Trainer, regression.SVR):
    """Trains `SVR`."""


class NuSVRTrainer(Trainer, regression.NuSVR):
    """Trains `NuSVR`."""


class OneClassSVMTrainer(Trainer, regression.OneClassSVM):
    """Trains `OneClassSVM`."""


class LibSVMReplacement(Replacement):
    """Base class of the five replacements.

    A kernel that is a function is called as scikit-learn calls it, once with the rows as they were given, and
    the machine is trained on the matrix that it returns: `expansion_` has the precomputed kernel.
    """

    _trainer: ClassVar[Any]
    #: Names of the parameters that the trainer has too.
    _shared: ClassVar[tuple[str, ...]]

    kernel: Any
    certificate_: Certificate
    shape_fit_: tuple[int, ...]
    # Attributes of a fit under scikit-learn's names, which a refit must not keep.
    support_: NDArray[Any]
    support_vectors_: Any
    dual_coef_: Any
    intercept_: NDArray[np.float64]
    fit_status_: int
    n_iter_: Any
    _sparse: bool
    _dual_coef_: Any
    _intercept_: NDArray[np.float64]
    _gamma: float
    _n_support: NDArray[np.int32]
    _num_iter: NDArray[np.int32]
    _effective_probability: Any
    _probA: NDArray[np.float64]  # noqa: N815 - scikit-learn's name
    _probB: NDArray[np.float64]  # noqa: N815
    _BaseLibSVM__Xfit: Any

    def __init_subclass__(cls, *, trainer: Any = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if trainer is not None:
            cls._trainer = trainer
            # `decision_function_shape` and `break_ties` affect predictions alone.
            about = set(trainer._get_param_names()) - {"kernel", "decision_function_shape", "break_ties"}
            cls._shared = tuple(name for name in cls._original._get_param_names() if name in about)

    @like(originals.SVR)
    @atomic_fit
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        return self._fit_or_fall_back(self._fit_here, X, y, sample_weight)

    def _new_trainer(self) -> Any:
        kernel = "precomputed" if callable(self.kernel) else self.kernel
        parameters = {name: getattr(self, name) for name in self._shared}
        return self._trainer(kernel=kernel, **parameters)

    def _fit_here(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Trains with svmarrow, and keeps what scikit-learn keeps."""
        random = check_random_state(self.random_state)  # type: ignore[attr-defined]
        if sample_weight is not None:
            sample_weight = np.maximum(np.asarray(sample_weight, dtype=np.float64), 0.0)
        is_function = callable(self.kernel)
        if is_function:
            self._BaseLibSVM__Xfit = X
        rows = self._compute_kernel(X) if is_function else X  # type: ignore[attr-defined]
        trained = self._new_trainer().fit(rows, y, sample_weight)
        self._keep(trained)
        self._sparse = sp.issparse(rows)
        if is_function:
            self.shape_fit_ = X.shape if hasattr(X, "shape") else (len(X),)
        else:
            self._keep_columns(trained)
        self._calibrate(trained, rows, y, sample_weight, random)
        # scikit-learn draws one number whatever it needs, which who shares the generator sees.
        random.randint(np.iinfo("i").max)

    def _keep(self, trained: Any) -> None:
        """The attributes of a fit, under scikit-learn's names."""
        expansion = trained.expansion_
        self.expansion_ = expansion
        self._weighted = trained._weighted
        self.certificate_ = trained.certificate_
        self.support_ = trained.support_
        self.support_vectors_ = trained.support_vectors_.astype(np.float64, copy=False)
        self.dual_coef_ = self._dual_coef_ = trained.dual_coef_
        self.intercept_ = expansion.intercepts.copy()
        self._intercept_ = self.intercept_.copy()
        self.fit_status_ = trained.fit_status_
        self.shape_fit_ = trained.shape_fit_
        self.n_iter_ = trained.n_iter_
        self._num_iter = np.atleast_1d(np.asarray(self.n_iter_, dtype=np.int32))
        self._gamma = 0.0 if expansion.kernel == "precomputed" else float(expansion.gamma)
        self._n_support = np.repeat(trained.n_support_, 2)
        self._effective_probability = self.probability  # type: ignore[attr-defined]

    def _calibrate(
        self,
        trained: Any,  # noqa: ARG002 - what classifiers need
        X: Any,  # noqa: ARG002
        y: Any,  # noqa: ARG002
        sample_weight: Any,  # noqa: ARG002
        random: np.random.RandomState,  # noqa: ARG002
    ) -> None:
        """Probabilities, where a machine has them."""
        self._probA = self._probB = np.empty(0)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        """Outputs (n, q) of a machine that svmarrow has fitted."""
        if callable(self.kernel):
            rows = as_rows(self._compute_kernel(X))  # type: ignore[attr-defined]
            if rows.shape[1] != self.shape_fit_[0]:
                raise ValueError(
                    f"X.shape[1] = {rows.shape[1]} should be equal to {self.shape_fit_[0]}, the number of "
                    "samples at training time"
                )
        elif sp.issparse(X) and not self._sparse:
            raise ValueError(f"cannot use sparse input in {type(self).__name__!r} trained on dense data")
        else:
            rows = validated(self, X, reset=False, precomputed=self.kernel == "precomputed")
        return self.expansion_._evaluate(rows, None)

    @property
    @consistent
    def coef_(self) -> Any:
        """Weights of the features for ``kernel="linear"``, read-only."""
        if self._is_ours() and isinstance(self.kernel, str) and self.kernel == "linear":
            return feature_weights(self.expansion_)
        return super().coef_  # type: ignore[misc]


def _gives_probabilities(classifier: Any) -> bool:
    """For `available_if`, in scikit-learn's words."""
    if getattr(classifier, "probability", False) in (False, "deprecated"):
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class ClassifierReplacement(LibSVMReplacement):
    """Base class of `SVC` and `NuSVC`: probabilities, for as long as scikit-learn has them.

    They are better made than LIBSVM's in three ways: the machines that have not seen a row share kernel rows
    and start from the solution for all samples; every class is dealt out evenly; pairs are coupled exactly.
    """

    #: In the version of scikit-learn that is installed.
    _is_probability_deprecated: ClassVar[bool] = (
        inspect.signature(originals.SVC).parameters["probability"].default == "deprecated"
    )

    probability: bool | str
    decision_function_shape: Literal["ovo", "ovr"]
    break_ties: bool
    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    n_iter_: Any

    def _keep(self, trained: Any) -> None:
        super()._keep(trained)
        self.classes_ = trained.classes_
        self.class_weight_ = trained.class_weight_
        self._n_support = trained.n_support_
        self.n_iter_ = self._num_iter
        if self.classes_.size == 2:
            # LIBSVM's outputs are positive for the first class.
            self._dual_coef_, self._intercept_ = -self.dual_coef_, -self.intercept_
        if self.probability == "deprecated":
            self._effective_probability = False

    def _calibrate(
        self, trained: Any, X: Any, y: Any, sample_weight: Any, random: np.random.RandomState
    ) -> None:
        """The sigmoid of each pair, in LIBSVM's direction: from outputs that are positive for the first."""
        self._probA = self._probB = np.empty(0)
        if self._is_probability_deprecated and self.probability != "deprecated":
            name = self._original.__name__
            warn_caller(
                "The `probability` parameter was deprecated in 1.9 and will be removed in version 1.11. Use "
                f"`CalibratedClassifierCV({name}(), ensemble=False)` instead of `{name}(probability=True)`",
                FutureWarning,
            )
        if self.probability in (False, "deprecated"):
            return
        X = as_rows(X)
        labels, support = np.searchsorted(self.classes_, np.asarray(y).ravel()), self.support_
        weights = (
            np.ones(labels.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        )
        used = np.flatnonzero(weights > 0.0)
        if used.size < labels.size:
            X = select_rows(X, used, precomputed=trained.kernel == "precomputed")
            labels, weights, support = labels[used], weights[used], np.searchsorted(used, support)
        folds = deal(labels, deepcopy(random))
        parameters = {"gamma": float(self.expansion_.gamma), "class_weight": None}
        machine = type(trained)(**trained.get_params(deep=False) | parameters)
        outputs = out_of_fold(
            machine,
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

    @property
    def _decoding(self) -> Decoding:
        return "binary" if self.classes_.size == 2 else "ovo"

    @consistent
    def _as_expansion(self) -> Any:
        model = super()._as_expansion()
        if model.calibration is not None or not self._probA.size:
            return model
        return model.with_calibration(self._calibration())

    def _expansion_model(self) -> ExpansionClassifier:
        return ExpansionClassifier(
            self.expansion_,
            self.classes_,
            self._decoding,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
            feature_names=getattr(self, "feature_names_in_", None),
            n_features=getattr(self, "n_features_in_", self.shape_fit_[0]),
            weighted=self._weighted,
        )

    @like(originals.SVC)
    @consistent
    def decision_function(self, X: Any) -> Any:
        if not self._is_ours():
            return super().decision_function(X)  # type: ignore[misc]
        outputs = self._outputs(X)
        return decision_values(outputs, self._decoding, self.classes_.size, self.decision_function_shape)

    @like(originals.SVC)
    @consistent
    def predict(self, X: Any) -> Any:
        if not self._is_ours() or (self.break_ties and self.decision_function_shape == "ovo"):
            return super().predict(X)  # type: ignore[misc]
        winners = class_indices(
            self._outputs(X),
            self._decoding,
            self.classes_.size,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
        )
        return self.classes_.take(winners)

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @like(originals.SVC)
    @consistent
    def predict_proba(self, X: Any) -> Any:
        if not self._is_ours():
            return super().predict_proba(X)  # type: ignore[misc]
        outputs = self._outputs(X)
        if not self._probA.size:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        return self._calibration().probabilities(outputs, self.classes_.size)

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @like(originals.SVC)
    @consistent
    def predict_log_proba(self, X: Any) -> Any:
        return np.log(self.predict_proba(X))

    def _fit_columns(
        self, X: Any, y: NDArray[Any], matrix: NDArray[np.int8], sample_weight: NDArray[np.float64] | None
    ) -> Columns | None:
        """See `svmarrow.models.machine.ColumnTrainer`."""
        if callable(self.kernel):
            return None
        columns: Columns | None = self._new_trainer()._fit_columns(X, y, matrix, sample_weight)
        return columns

    def _column_memory(
        self, X: Any, matrix: NDArray[np.int8], counts: NDArray[np.int64]
    ) -> MemoryEstimate | None:
        needed: MemoryEstimate | None = self._new_trainer()._column_memory(X, matrix, counts)
        return needed


class RegressorReplacement(LibSVMReplacement):
    """Base class of `SVR` and `NuSVR`."""

    @like(originals.SVR)
    @consistent
    def predict(self, X: Any) -> Any:
        return self._outputs(X)[:, 0] if self._is_ours() else super().predict(X)  # type: ignore[misc]


class SVC(ClassifierReplacement, originals.SVC, original=originals.SVC, trainer=SVCTrainer):  # noqa: D101 - the original's
    pass


class NuSVC(ClassifierReplacement, originals.NuSVC, original=originals.NuSVC, trainer=NuSVCTrainer):  # noqa: D101
    def _new_trainer(self) -> Any:
        # LIBSVM's nu-SVC has no weights of classes: scikit-learn stores `class_weight_` and does not use it.
        return super()._new_trainer().set_params(class_weight=None)

    def _fit_here(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._fit_here(X, y, sample_weight)
        self.class_weight_ = compute_class_weight(
            self.class_weight, classes=self.classes_, y=np.asarray(y).ravel()
        )


class SVR(RegressorReplacement, originals.SVR, original=originals.SVR, trainer=SVRTrainer):  # noqa: D101
    pass


class NuSVR(RegressorReplacement, originals.NuSVR, original=originals.NuSVR, trainer=NuSVRTrainer):  # noqa: D101
    pass


class OneClassSVM(  # noqa: D101
    LibSVMReplacement, originals.OneClassSVM, original=originals.OneClassSVM, trainer=OneClassSVMTrainer
):
    offset_: NDArray[np.float64]

    @like(originals.OneClassSVM)
    @atomic_fit
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: D102
        return self._fit_or_fall_back(self._fit_here, X, y, sample_weight)

    def _keep(self, trained: Any) -> None:
        super()._keep(trained)
        self.offset_ = -self._intercept_

    @like(originals.OneClassSVM)
    @consistent
    def decision_function(self, X: Any) -> Any:  # noqa: D102
        return self._outputs(X)[:, 0] if self._is_ours() else super().decision_function(X)

    @like(originals.OneClassSVM)
    @consistent
    def predict(self, X: Any) -> Any:  # noqa: D102
        return np.where(self.decision_function(X) >= 0.0, 1, -1) if self._is_ours() else super().predict(X)
