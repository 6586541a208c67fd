"""
Novelty detection without labels
================================

A one-class machine with a tiny `nu` encloses all training samples. Held-out samples show where gamma is too
large: the machine rejects many of them, and machines of two halves of the samples disagree.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import KFold

from svmarrow import OneClassSVM

X = make_moons(400, noise=0.06, random_state=0)[0]
low, high = X.min(axis=0) - 0.6, X.max(axis=0) + 0.6
grid = np.stack(np.meshgrid(np.linspace(low[0], high[0], 240), np.linspace(low[1], high[1], 180)), axis=-1)
points = grid.reshape(-1, 2)
gammas = np.logspace(-1, 3, 17)
kept, agreement = [], []
for gamma in gammas:
    folds = KFold(5, shuffle=True, random_state=0).split(X)
    kept.append([(OneClassSVM(nu=1e-6, gamma=gamma).fit(X[a]).predict(X[b]) == 1).mean() for a, b in folds])
    halves = [OneClassSVM(nu=1e-6, gamma=gamma).fit(X[k::2]).predict(points) == 1 for k in (0, 1)]
    agreement.append((halves[0] & halves[1]).sum() / (halves[0] | halves[1]).sum())

fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
chosen, large = 2.0, 60.0
for ax, gamma in zip(axes[[0, 2]], (chosen, large), strict=True):
    detector = OneClassSVM(nu=1e-6, gamma=gamma).fit(X)
    inside = (detector.predict(points) == 1).reshape(grid.shape[:2])
    ax.contourf(grid[..., 0], grid[..., 1], inside, [0.5, 1.5], colors=["#9ecfc6"])
    ax.scatter(*X.T, 5, color="#333333")
    ax.scatter(*X[detector.support_].T, 22, facecolors="none", edgecolors="#c1272d")
    ax.set(xticks=[], yticks=[])
    outside = (detector.predict(X) == -1).sum()
    ax.set_title(
        f"gamma = {gamma:g}: {outside} outside, {detector.expansion_.n_vectors} vectors", fontsize=10
    )
ax = axes[1]
ax.plot(gammas, np.mean(kept, axis=1), color="#12355b", label="held-out samples inside")
ax.plot(gammas, agreement, color="#c1272d", label="agreement of the halves' regions")
for gamma in (chosen, large):
    ax.axvline(gamma, color="#999999", linewidth=0.8, linestyle="--")
ax.set(xscale="log", xlabel="gamma", ylim=(0, 1.02))
ax.legend(frameon=False, loc="lower left", fontsize=9)
ax.set_title("5 folds, and 2 halves", fontsize=10)
plt.show()
