"""
One-vs-one and one-vs-rest
==========================

Class regions of five classes by both codings, with the same kernel and C. The support vectors of all
binary machines form one pool (circles).
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_blobs

from svmarrow import SVC

colours = ListedColormap(["#12355b", "#c1272d", "#e3a531", "#3f8f9b", "#8a4f7d"])
X, y = make_blobs(400, centers=5, cluster_std=1.1, random_state=4)
low, high = X.min(axis=0) - 1, X.max(axis=0) + 1
grid = np.stack(np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 240)), axis=-1)

fig, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True, layout="constrained")
for ax, multi_class in zip(axes, ("ovo", "ovr"), strict=True):
    svc = SVC(C=10, gamma=0.1, multi_class=multi_class).fit(X, y)
    labels = svc.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.pcolormesh(grid[..., 0], grid[..., 1], labels, cmap=colours, alpha=0.25, linewidth=0, rasterized=True)
    ax.scatter(*X.T, 8, y, cmap=colours)
    ax.scatter(*svc.support_vectors_.T, 40, facecolors="none", edgecolors="black", linewidths=0.7)
    machines = svc.expansion_.coefficients.shape[1]
    ax.set_title(
        f'multi_class="{multi_class}": {machines} machines, {len(svc.support_)} vectors', fontsize=10
    )
    ax.set(xticks=[], yticks=[])
plt.show()
