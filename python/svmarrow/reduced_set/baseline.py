"""Baseline of a compression path: models that have few vectors because they were trained on few samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from svmarrow._support.rows import sample_weights
from svmarrow.interop.convert import as_expansion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["subsample_baseline"]


def subsample_baseline(
    estimator: Any,
    X_train: ArrayLike,
    y_train: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sizes: ArrayLike,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Score models that are trained on random subsets of the samples instead of being compressed.

    This is the score that is reached without compression for as many vectors; ``path.plot(X, y,
    baseline=...)`` draws it together with the path.

    Parameters
    ----------
    estimator : estimator
        A fitted model: clones of it are fitted.
    X_train : {array-like, sparse matrix} of shape (n_train, n_features)
        Training samples.
    y_train : array-like of shape (n_train,)
        Their labels or targets.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples to score on.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    sizes : array-like of shape (n_sizes,)
        Approximate numbers of vectors, ``np.geomspace(5, len(path), 8)`` for example: the number of samples
        is in the proportion that the full model has.
    sample_weight : array-like of shape (n_train,), default=None
        Weights of the training samples, if the model was fitted with some.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of the samples.

    Returns
    -------
    sizes : ndarray of int
        Numbers of vectors of the models; subsets with one class only are left out.
    scores : ndarray of float
        ``estimator.score`` of each.
    """
    rng = check_random_state(random_state)
    vectors = as_expansion(estimator).expansion_.n_vectors
    n = _num_samples(X_train)
    order, labels = rng.permutation(n), np.asarray(y_train)
    weights = sample_weights(sample_weight, n)
    found: list[tuple[int, float]] = []
    for size in np.asarray(sizes, dtype=np.float64):
        rows = np.sort(order[: int(np.clip(round(n * size / max(1, vectors)), 2, n))])
        if is_classifier(estimator) and len(np.unique(labels[rows])) < len(np.unique(labels)):
            continue
        own = {} if weights is None else {"sample_weight": weights[rows]}
        machine = clone(estimator).fit(_safe_indexing(X_train, rows), labels[rows], **own)
        found.append((as_expansion(machine).expansion_.n_vectors, float(machine.score(X, y))))
    found.sort()
    return np.array([size for size, _ in found], dtype=np.int64), np.array([score for _, score in found])
