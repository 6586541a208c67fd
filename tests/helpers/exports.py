"""What the tests of exported programs share: kernels with their parameters, pipelines, any expansion."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler, Normalizer, RobustScaler, StandardScaler

from svmarrow import KernelExpansion
from svmarrow.preprocessing import LearnedScaler

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.4, "coef0": 0.5, "degree": 3},
    "rbf": {"gamma": 0.7},
    "sigmoid": {"gamma": 0.1, "coef0": -0.2},
    "laplacian": {"gamma": 0.3},
    "chi2": {"gamma": 0.3},
    "matern12": {"gamma": 0.4},
    "matern32": {"gamma": 0.4},
    "matern52": {"gamma": 0.4},
}
PIPELINES = [
    [StandardScaler()],
    [MinMaxScaler(clip=True), PCA(5, whiten=True)],
    [StandardScaler(), Normalizer()],
    [RobustScaler(), Normalizer("l1")],
    [Normalizer("max")],
    [LearnedScaler(shape="both", max_iter=1, n_samples=100)],
    [LearnedScaler(shape="both", metric="full", max_iter=1, n_samples=100)],
]


def some(rng, kernel, outputs, m=9, d=4, dtype=np.float64):
    """An expansion with nothing special about it, and rows in single precision."""
    Z = np.abs(rng.normal(size=(m, d))).astype(dtype)
    expansion = KernelExpansion(
        Z, rng.normal(size=(m, outputs)), rng.normal(size=outputs), kernel=kernel, **KERNELS[kernel]
    )
    return expansion, np.abs(rng.normal(size=(200, d))).astype(np.float32).astype(np.float64)
