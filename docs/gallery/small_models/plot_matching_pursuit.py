"""
Kernel matching pursuit step by step
====================================

A matching pursuit adds one kernel function after the other and computes all coefficients again. Dots are
the centers of the chosen functions.
"""

import matplotlib.pyplot as plt
import numpy as np

from svmarrow import KMPRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 200))
y = np.sinc(x) + 0.1 * rng.standard_normal(200)
grid = np.linspace(-3, 3, 400)
path = KMPRegressor(n_vectors=12, gamma=2.0, random_state=0).fit(x[:, None], y).path_

fig, axes = plt.subplots(1, 3, figsize=(12, 3.4), sharey=True, layout="constrained")
for ax, size in zip(axes, (2, 5, 12), strict=True):
    model = path[size]
    centres = model.expansion_.vectors[:, 0]
    ax.scatter(x, y, 6, color="#999999")
    ax.plot(grid, model.predict(grid[:, None]), color="#c1272d")
    ax.scatter(centres, model.predict(centres[:, None]), 40, color="#12355b", zorder=3)
    ax.set_title(f"{size} functions, R$^2$ = {model.score(x[:, None], y):.3f}", fontsize=10)
plt.show()
