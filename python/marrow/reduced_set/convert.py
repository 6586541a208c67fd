"""Any fitted model as a kernel expansion, with its labels where it has some.

scikit-learn's support vector machines keep LIBSVM's layout: in ``dual_coef_`` (k - 1, m) a vector of class c
has its k - 1 coefficients in the pairs that involve c. Here they are spread out to B (m, k (k - 1) / 2), one
column a pair: the vector of class a has its coefficient of the pair (a, b) in row b - 1, the vector of class
b in row a.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn import svm as peer
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from marrow.classifier import ExpansionClassifier
from marrow.expansion import KernelExpansion

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["as_expansion"]

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")


def as_expansion(model: Any) -> ExpansionClassifier | KernelExpansion:
    """Take a fitted model as what it is: a kernel expansion, with labels if it is a classifier.

    Parameters
    ----------
    model : KernelExpansion, marrow estimator or scikit-learn estimator
        A `KernelExpansion`, an `ExpansionClassifier`, a fitted estimator of marrow, or a fitted ``SVC``,
        ``NuSVC``, ``SVR``, ``NuSVR`` or ``OneClassSVM`` of scikit-learn with a built-in kernel, on dense or
        sparse rows.

    Returns
    -------
    ExpansionClassifier or KernelExpansion
        The former for classifiers. Its predictions are those of the model; the vectors are shared where their
        layout allows it.

    Raises
    ------
    TypeError
        If the model is of a kind that is not listed above.
    ValueError
        If its kernel is a Python function.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from marrow.reduced_set import as_expansion
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = SVC().fit(X, y)
    >>> bool((as_expansion(svc).predict(X) == svc.predict(X)).all())
    True
    """
    if isinstance(model, (KernelExpansion, ExpansionClassifier)):
        return model
    if isinstance(model, type):
        raise TypeError(f"model={model.__name__} is a class: pass a fitted instance")
    if isinstance(model, (peer.SVC, peer.NuSVC)):
        return _classifier_from_sklearn(model)
    if isinstance(model, (peer.SVR, peer.NuSVR, peer.OneClassSVM)):
        return _expansion_from_sklearn(model, _dense(model.dual_coef_) if _fitted(model) else None)
    convert = getattr(model, "as_expansion", None)
    if convert is not None:
        _fitted(model)
        converted = convert()
        if isinstance(converted, (KernelExpansion, ExpansionClassifier)):
            return converted
    raise TypeError(
        f"model of type {type(model).__name__} is not a kernel expansion: expected a marrow estimator, a "
        "KernelExpansion, or a fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM of scikit-learn"
    )


def _fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(
            f"this {type(model).__name__} is not fitted yet: call fit before compressing it"
        ) from None
    return True


def _dense(matrix: Any) -> NDArray[np.float64]:
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix
    return np.asarray(dense, dtype=np.float64)


def _classifier_from_sklearn(model: Any) -> ExpansionClassifier:
    _fitted(model)
    n_classes = len(model.classes_)
    dual = _dense(model.dual_coef_)
    coefficients = dual if n_classes == 2 else spread_pairs(dual, np.asarray(model.n_support_))
    return ExpansionClassifier(
        _expansion_from_sklearn(model, coefficients),
        model.classes_,
        "binary" if n_classes == 2 else "ovo",
        decision_function_shape=model.decision_function_shape,
        break_ties=bool(model.break_ties),
        feature_names=getattr(model, "feature_names_in_", None),
        n_features=int(model.n_features_in_),
    )


def spread_pairs(dual: NDArray[np.float64], counts: NDArray[Any]) -> NDArray[np.float64]:
    """One row of coefficients a pair of classes, (k (k - 1) / 2, m), from LIBSVM's ``dual_coef_`` (k - 1, m).

    Parameters
    ----------
    dual : ndarray of shape (k - 1, m)
        Coefficients, the vectors class after class.
    counts : ndarray of int of shape (k,)
        How many vectors each class has.
    """
    n_classes = len(counts)
    ends = np.cumsum(counts)
    of_class = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    pairs = [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]
    spread = np.zeros((len(pairs), dual.shape[1]))
    for row, (a, b) in zip(spread, pairs, strict=True):
        row[of_class[a]] = dual[b - 1, of_class[a]]
        row[of_class[b]] = dual[a, of_class[b]]
    return spread


def _expansion_from_sklearn(model: Any, coefficients: NDArray[np.float64] | None) -> KernelExpansion:
    name = type(model).__name__
    if callable(model.kernel) or model.kernel not in KERNELS:
        raise ValueError(
            f"kernel={model.kernel!r} of this {name} cannot be evaluated outside Python: expected one of "
            + ", ".join(KERNELS)
        )
    if coefficients is None:
        raise NotFittedError(f"this {name} is not fitted yet")
    if model.kernel == "precomputed":
        vectors: Any = np.asarray(model.support_, dtype=np.float64)[:, None]
    else:
        vectors = model.support_vectors_
        if sparse.issparse(vectors):
            vectors = sparse.csr_array(vectors)
    return KernelExpansion(
        vectors,
        np.ascontiguousarray(coefficients.T),
        np.asarray(model.intercept_, dtype=np.float64),
        kernel=model.kernel,
        gamma=float(model._gamma),
        coef0=float(model.coef0),
        degree=int(model.degree),
    )
