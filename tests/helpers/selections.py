"""Random expansions for the selections of vectors, and their residuals by definition."""

from __future__ import annotations

import numpy as np

from helpers.reference import kernel
from svmarrow import KernelExpansion


def expansion(m=60, d=3, q=3, seed=0, **kernel_options):
    """A random expansion of m vectors."""
    rng = np.random.default_rng(seed)
    options = {"kernel": "rbf", "gamma": 0.3, **kernel_options}
    return KernelExpansion(rng.normal(size=(m, d)), rng.normal(size=(m, q)), rng.normal(size=q), **options)


def space(full, X=None):
    """Inner products, those with the target, squared norm: in feature space, or of predictions on X."""
    Z, B = np.asarray(full.vectors, dtype=np.float64), full.coefficients
    K = kernel(full.kernel_spec, Z, Z)
    if X is None:
        return K, K @ B, (B * (K @ B)).sum()
    features = kernel(full.kernel_spec, X, Z) / np.sqrt(len(X))
    F = features @ B
    return features.T @ features, features.T @ F, (F**2).sum()


def from_scratch(full, path, size, X=None):
    """The residual norm at a size, by its definition."""
    inner, _, _ = space(full, X)
    rest = full.coefficients.copy()
    rest[path.order[:size]] -= path[size].coefficients
    return np.sqrt(max(0.0, (rest * (inner @ rest)).sum()))
