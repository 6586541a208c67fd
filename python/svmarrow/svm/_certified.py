"""Labels, certificates and feature weights of support vector machines and of estimators around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.decoding import encode_classes
from svmarrow._support.estimator import Estimator
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

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow._support.decoding import Decoding
    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = [
    "DECODING_RULES",
    "UnavailableMethod",
    "check_certificate",
    "decoding_of",
    "feature_weights",
    "iterations_of_machines",
    "labelled",
]

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


def labelled(
    model: Any, y: NDArray[Any], sample_weight: Any
) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Returns the classes, class indices, class weights, and the combined weight of each sample.

    A class whose samples all have weight 0 is not one of the classes, and the index of its samples is
    that of some other class.
    """
    classes, labels = encode_classes(y)
    given_weights = sample_weights(1.0 if sample_weight is None else sample_weight, labels.size)
    assert given_weights is not None
    # scikit-learn's SVC balances the classes by their number of samples, ignoring weights.
    by_class, weights = class_weights(model.class_weight, given_weights, classes, labels, counted=False)
    totals = np.bincount(labels, given_weights, minlength=classes.size)
    if not totals.all():
        refuse_zero_weights(given_weights)
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
        if isinstance(model.class_weight, str):
            by_class = class_weights(model.class_weight, None, classes, labels[counts], counted=False)[0]
        weights = given_weights * by_class[labels]
    assert weights is not None
    check_every_class(classes, labels, weights)
    return classes, labels, by_class, weights


def decoding_of(model: Any, n_classes: int) -> Decoding:
    """Returns the decoding of a classifier with the parameter ``multi_class``."""
    decoding: Decoding = "binary" if n_classes == 2 else model.multi_class
    return decoding


def check_certificate(model: Any) -> None:
    """Checks the parts of a model from a file: its expansion, and a certificate of as many machines."""
    if getattr(model, "_coding", "") != "code":  # The owner of a code checks its outputs.
        Estimator._after_load(model)
    machines, outputs = len(model.certificate_.machines), model.expansion_.n_outputs
    if machines != outputs:
        raise ValueError(f"the certificate has {machines} machines, the expansion {outputs} outputs")


def iterations_of_machines(self: Any) -> NDArray[np.int64]:
    """Number of SMO steps of each machine (n_outputs,)."""
    self._check_fitted()
    return np.array([machine.iterations for machine in self.certificate_.machines], dtype=np.int64)


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
