"""Fitted models with certificates: an expansion, its certificate, and the decoding of classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.atomic import consistent
from svmarrow._support.decoding import encode_classes
from svmarrow._support.parameters import CLASS_WEIGHT, boolean, one_of
from svmarrow._support.rows import (
    check_every_class,
    class_weights,
    core_rows,
    refuse_zero_weights,
    sample_weights,
    threads,
    with_sparse_interface,
)
from svmarrow.models.fitted import FittedClassifier, FittedExpansion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from svmarrow._support.certificate import Certificate
    from svmarrow._support.decoding import Decoding
    from svmarrow._support.kernel_function import KernelFunction
    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["DECODING_RULES", "CertifiedClassifier", "CertifiedMachine", "feature_weights"]

#: Rules of the classifiers' parameters.
DECODING_RULES = {
    "class_weight": CLASS_WEIGHT,
    "multi_class": one_of("ovo", "ovr"),
    "decision_function_shape": one_of("ovo", "ovr"),
    "break_ties": boolean,
}


def feature_weights(expansion: KernelExpansion) -> Any:
    """Returns the read-only feature weights (n_outputs, d) of an expansion with the linear kernel."""
    vectors: Any = expansion.vectors
    if sp.issparse(vectors):
        weights = with_sparse_interface(type(vectors)(expansion.coefficients.T) @ vectors)
        weights.data.flags.writeable = False
    else:
        weights = _core.linear_weights(core_rows(vectors), expansion.coefficients, threads(None))
        weights.flags.writeable = False
    return weights


class CertifiedMachine(FittedExpansion):
    """An estimator whose fitted model is a kernel expansion, with a certificate of the fit."""

    kernel: str | KernelFunction
    certificate_: Certificate
    #: gamma="scale" ignores sample weights, as in scikit-learn.
    _weighs_gamma: ClassVar[bool] = False

    def _after_load(self) -> None:
        if getattr(self, "_coding", "") != "code":  # The owner of a code checks its outputs.
            super()._after_load()
        machines, outputs = len(self.certificate_.machines), self.expansion_.n_outputs
        if machines != outputs:
            raise ValueError(f"the certificate has {machines} machines, the expansion {outputs} outputs")

    @property
    @consistent
    def coef_(self) -> Any:
        """Weights of the features (n_outputs, d), sparse after a sparse fit; only for the linear kernel.

        Read-only.
        """
        self._check_fitted()
        expansion = self.expansion_
        if callable(expansion.kernel) or expansion.kernel != "linear":
            raise AttributeError(f"coef_ exists for kernel='linear' only, this is {expansion.kernel!r}")
        return feature_weights(expansion)

    def _in_kind(self, matrix: NDArray[np.float64]) -> Any:
        """Returns the matrix, sparse if the vectors are."""
        vectors = self.expansion_.vectors
        return with_sparse_interface(type(vectors)(matrix)) if sp.issparse(vectors) else matrix

    @property
    def n_iter_(self) -> Any:
        """Number of SMO steps."""
        self._check_fitted()
        return self.certificate_.iterations

    @property
    def fit_status_(self) -> int:
        """0 if every machine reached the tolerance, else 1."""
        self._check_fitted()
        return int(self.certificate_.stop != "converged")


class UnavailableMethod:
    """An unavailable method, whose error names an alternative; `hasattr` is False."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        kind = owner.__name__
        raise AttributeError(
            f"{kind} has no {self._name}: use CalibratedClassifierCV({kind}(...), ensemble=False) of "
            "sklearn.calibration; for SVC(probability=True) of scikit-learn call svmarrow.patch_sklearn()"
        )


class CertifiedClassifier(FittedClassifier, CertifiedMachine):
    """A classifier with a machine for each pair of classes, or for each class against the rest."""

    predict_proba: Any = UnavailableMethod()
    predict_log_proba: Any = UnavailableMethod()

    #: The loss, a name of `svmarrow._support.codes.LOSSES`, if it is not a parameter.
    _margin_loss: ClassVar[str] = "hinge"

    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    multi_class: Literal["ovo", "ovr"]

    class_weight_: NDArray[np.float64]
    _coding: Decoding

    def _labelled(
        self, y: NDArray[Any], sample_weight: Any
    ) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
        """Returns the classes, class indices, class weights, and the combined weight of each sample.

        A class whose samples all have weight 0 is not one of the classes, and the index of its samples is
        that of some other class.
        """
        classes, labels = encode_classes(y)
        own = sample_weights(1.0 if sample_weight is None else sample_weight, labels.size)
        assert own is not None
        # scikit-learn's SVC balances the classes by their number of samples, ignoring weights.
        by_class, weights = class_weights(self.class_weight, own, classes, labels, counted=False)
        totals = np.bincount(labels, own, minlength=classes.size)
        if not totals.all():
            refuse_zero_weights(own)
            present = np.flatnonzero(totals)
            if present.size < 2:
                raise ValueError(
                    f"sample_weight leaves the classes {classes[present].tolist()} of y: at least 2 classes "
                    "need a sample of positive weight"
                )
            counts = np.isin(labels, present)
            labels = np.minimum(np.searchsorted(present, labels), present.size - 1)
            # A dict may name a class without weight, but "balanced" must not count its samples.
            classes, by_class = classes[present], by_class[present]
            if isinstance(self.class_weight, str):
                by_class = class_weights(self.class_weight, None, classes, labels[counts], counted=False)[0]
            weights = own * by_class[labels]
        assert weights is not None
        check_every_class(classes, labels, weights)
        return classes, labels, by_class, weights

    @property
    def _decoding(self) -> Decoding:
        return self._coding

    def _decoding_of(self, n_classes: int) -> Decoding:
        return "binary" if n_classes == 2 else self.multi_class

    @property
    def n_iter_(self) -> NDArray[np.int64]:
        """Number of SMO steps of each machine (n_outputs,)."""
        self._check_fitted()
        return np.array([machine.iterations for machine in self.certificate_.machines], dtype=np.int64)
