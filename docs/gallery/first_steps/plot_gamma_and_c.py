"""
Effect of gamma and C
=====================

From left to right gamma increases, so the boundary follows single samples more closely. From top to
bottom C increases, so fewer training samples are misclassified.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from svmarrow import SVC

X, y = make_moons(300, noise=0.3, random_state=1)
X_new, y_new = make_moons(5000, noise=0.3, random_state=2)
grid = np.stack(np.meshgrid(np.linspace(-2, 3, 140), np.linspace(-1.7, 2.2, 120)), axis=-1)

fig, axes = plt.subplots(3, 4, figsize=(11, 7.4), sharex=True, sharey=True, layout="constrained")
for row, C in zip(axes, (0.1, 1, 100), strict=True):
    for ax, gamma in zip(row, (0.05, 0.5, 5, 100), strict=True):
        svc = SVC(C=C, gamma=gamma).fit(X, y)
        outputs = svc.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
        ax.contourf(
            grid[..., 0], grid[..., 1], outputs, np.linspace(-2, 2, 17), cmap="RdBu", extend="both", alpha=0.8
        )
        ax.contour(grid[..., 0], grid[..., 1], outputs, [0], colors="black", linewidths=1)
        ax.scatter(*X.T, 6, np.where(y, "#12355b", "#7a1420"))
        error = 100 * (1 - svc.score(X_new, y_new))
        ax.set_title(f"{svc.expansion_.n_vectors} vectors, {error:.1f} % errors", fontsize=9)
        ax.set(xticks=[], yticks=[])
        if ax in axes[:, 0]:
            ax.set_ylabel(f"C = {C}", fontweight="bold")
        if ax in axes[-1]:
            ax.set_xlabel(f"gamma = {gamma}", fontweight="bold")
plt.show()
