"""What a fit leaves behind: an expansion, its certificate, and for classifiers what the outputs mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.decoding import Decoding, check_shape, class_indices, decision_values
from svmarrow._support.parameters import boolean, either, mapping, none, one_of
from svmarrow._support.rows import class_weights, validated
from svmarrow._support.saving import Savable
from svmarrow.models.classifier import ExpansionClassifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from svmarrow._support.certificate import Certificate
    from svmarrow._support.kernel_function import KernelFunction
    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["DECODING_RULES", "CertifiedClassifier", "CertifiedMachine"]

#: Rules of the parameters that are about classes.
DECODING_RULES = {
    "class_weight": either(none, one_of("balanced"), mapping),
    "multi_class": one_of("ovo", "ovr"),
    "decision_function_shape": one_of("ovo", "ovr"),
    "break_ties": boolean,
}


class CertifiedMachine(Savable, BaseEstimator):
    """An estimator whose fitted model is a kernel expansion, with a certificate of the fit."""

    kernel: str | KernelFunction
    n_jobs: int | None

    expansion_: KernelExpansion
    certificate_: Certificate
    n_features_in_: int
    #: gamma="scale" takes all rows alike, whatever their weights: scikit-learn's rule.
    _weighs_gamma: ClassVar[bool] = False

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        expansion = self.expansion_
        X = validated(self, X, reset=False, precomputed=self._is_fitted_precomputed())
        return expansion._evaluate(X, self.n_jobs)

    def _is_fitted_precomputed(self) -> bool:
        kernel = self.expansion_.kernel
        return isinstance(kernel, str) and kernel == "precomputed"

    def as_expansion(self) -> Any:
        """The fitted model as a kernel expansion, without the training."""
        check_is_fitted(self)
        return self.expansion_

    def _after_load(self) -> None:
        if getattr(self, "_decoding", "") != "code":  # What a code's outputs mean knows who has the code.
            super()._after_load()
        machines, outputs = len(self.certificate_.machines), self.expansion_.n_outputs
        if machines != outputs:
            raise ValueError(f"the certificate has {machines} machines, the expansion {outputs} outputs")

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Intercepts (n_outputs,)."""
        return self._fitted_expansion().intercepts

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """Signed coefficients (n_outputs, n_SV)."""
        return self._fitted_expansion().coefficients.T

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the features (n_outputs, d), read-only; for the linear kernel alone."""
        expansion = self._fitted_expansion()
        if callable(expansion.kernel) or expansion.kernel != "linear":
            raise AttributeError(f"coef_ exists for kernel='linear' only, this is {expansion.kernel!r}")
        vectors = (
            expansion.vectors if sp.issparse(expansion.vectors) else expansion.vectors.astype(np.float64)
        )
        weights: NDArray[np.float64] = np.asarray((vectors.T @ expansion.coefficients).T)
        weights.flags.writeable = False
        return weights

    @property
    def n_iter_(self) -> Any:
        """Pair steps."""
        self._fitted_expansion()
        return self.certificate_.iterations

    @property
    def fit_status_(self) -> int:
        """0 if every machine reached the tolerance, else 1."""
        self._fitted_expansion()
        return int(self.certificate_.stop != "converged")

    def _fitted_expansion(self) -> KernelExpansion:
        try:
            return self.expansion_
        except AttributeError:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not self._is_precomputed()
        tags.input_tags.positive_only = isinstance(self.kernel, str) and self.kernel == "chi2"
        return tags


class CertifiedClassifier(ClassifierMixin, CertifiedMachine):
    """One of labels: a machine for each pair of classes, or for each class against the rest."""

    #: Its loss by the names of `svmarrow._support.codes.LOSSES`, where no parameter says it.
    _margin_loss: ClassVar[str] = "hinge"

    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    multi_class: Literal["ovo", "ovr"]
    decision_function_shape: Literal["ovo", "ovr"]
    break_ties: bool

    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    _decoding: Decoding

    def _labelled(
        self, y: NDArray[Any], sample_weight: Any
    ) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
        """The classes, the number of each row's, the weight of each class, and of each row in all."""
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        if classes.size < 2:
            raise ValueError(f"y has {classes.size} class: it must have at least 2 classes")
        # scikit-learn's SVC balances the classes by their rows, whatever the rows weigh.
        weights = class_weights(self.class_weight, sample_weight, classes, labels, counted=False)
        return classes, labels, *weights

    def _decoding_of(self, n_classes: int) -> Decoding:
        return "binary" if n_classes == 2 else self.multi_class

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
    def n_iter_(self) -> NDArray[np.int64]:
        """Pair steps of each machine (n_outputs,)."""
        self._fitted_expansion()
        return np.array([machine.iterations for machine in self.certificate_.machines], dtype=np.int64)
