"""
Outlier detection
=================

`OneClassSVM` learns the region of the samples without labels. `nu` bounds the fraction of samples
outside the boundary (crosses).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_moons

from svmarrow import OneClassSVM

X = np.vstack(
    [
        make_moons(500, noise=0.08, random_state=0)[0],
        make_blobs(150, centers=[[2.4, 1.4]], cluster_std=0.2, random_state=0)[0],
    ]
)
X = np.vstack([X, np.random.default_rng(0).uniform([-2, -1.6], [3.4, 2.4], (30, 2))])
grid = np.stack(np.meshgrid(np.linspace(-2, 3.4, 240), np.linspace(-1.6, 2.4, 180)), axis=-1)

fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True, layout="constrained")
for ax, nu in zip(axes, (0.02, 0.05, 0.2), strict=True):
    detector = OneClassSVM(nu=nu, gamma=4).fit(X)
    outputs = detector.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    outside = detector.predict(X) == -1
    top = np.abs(outputs).max()
    ax.contourf(grid[..., 0], grid[..., 1], outputs, np.linspace(-top, top, 21), cmap="PuOr_r", alpha=0.7)
    ax.contour(grid[..., 0], grid[..., 1], outputs, [0], colors="black")
    ax.scatter(*X[~outside].T, 5, color="#333333")
    ax.scatter(*X[outside].T, 22, color="#c1272d", marker="x")
    ax.set(xticks=[], yticks=[])
    ax.set_title(f"nu = {nu}: {outside.sum()} outside, {detector.expansion_.n_vectors} vectors", fontsize=10)
plt.show()
