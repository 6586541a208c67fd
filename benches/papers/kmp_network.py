"""An RBF network with k-means centres whose weights are found by gradient descent.

This is the classical network of Schoelkopf and others (1997), with which kernel matching pursuit is compared.
For K w close to y, gradient descent on the squared error from w = 0 with a step of 1 / (largest eigenvalue of
K'K) has after t steps the coefficients of the least squares solution times 1 - (1 - l / l_max)^t along each
eigenvector of K'K, l being its eigenvalue. One decomposition gives every number of steps. The cited work does
not print the number of steps.

Cost: n m^2 for n samples and m centres.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import cdist

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Numbers of steps of the table.
STEPS = (10_000, 100_000, 1_000_000)
#: Eigenvalues below this share of the largest are those of rounding.
MIN_EIGENVALUE = 1e-14


def descended_outputs(
    centres: np.ndarray,
    gamma: float,
    training: tuple[np.ndarray, np.ndarray],
    X_test: np.ndarray,
    steps: Sequence[int] = STEPS,
) -> list[np.ndarray]:
    """Return the outputs on test samples after each number of steps."""
    X, y = training
    K, K_test = (np.exp(-gamma * cdist(samples, centres, "sqeuclidean")) for samples in (X, X_test))
    eigenvalues, vectors = np.linalg.eigh(K.T @ K)
    share = np.clip(eigenvalues / eigenvalues[-1], MIN_EIGENVALUE, 1 - MIN_EIGENVALUE)
    target = vectors.T @ (K.T @ y) / (share * eigenvalues[-1])
    return [K_test @ (vectors @ (-np.expm1(count * np.log1p(-share)) * target)) for count in steps]
