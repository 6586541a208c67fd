"""
Exact cascade
=============

`ExactCascade` predicts with few vectors if a bound proves that all vectors would give the same label.
More vectors, and finally the full model, are evaluated only near the decision boundary. All labels are
those of the full model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from svmarrow import SVC
from svmarrow.cascade import ExactCascade

X, y = make_moons(3000, noise=0.22, random_state=0)
cascade = ExactCascade(SVC(C=1, gamma=0.5), stages=[8, 12, 20, 40]).fit(X, y)
svc = cascade.model_

grid = np.stack(np.meshgrid(np.linspace(-2, 3, 260), np.linspace(-1.7, 2.2, 220)), axis=-1)
points = grid.reshape(-1, 2)
assert (cascade.predict(points) == svc.predict(points)).all()
stage = cascade.route(points).reshape(grid.shape[:2])
report = cascade.report(X)

fig, ax = plt.subplots(figsize=(8.6, 5.2), layout="constrained")
colours = plt.colormaps["YlGnBu"](np.linspace(0.1, 0.9, len(report.sizes)))
ax.contourf(*np.moveaxis(grid, -1, 0), stage, np.arange(len(report.sizes) + 1) - 0.5, colors=colours)
ax.contour(
    *np.moveaxis(grid, -1, 0), svc.decision_function(points).reshape(grid.shape[:2]), [0], colors="black"
)
ax.scatter(*X[:500].T, 5, np.where(y[:500], "#c1272d", "#555555"), alpha=0.6)
shares = 100 * np.asarray(report.answered) / report.n_samples
names = [
    f"{size} vectors: {share:.0f} % of the rows"
    for size, share in zip(report.sizes[:-1], shares, strict=False)
]
names.append(f"all {report.full_size}: {shares[-1]:.0f} %")
ax.legend(
    [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours],
    names,
    loc="upper right",
    framealpha=0.9,
)
ax.set(
    xticks=[],
    yticks=[],
    title=f"{report.mean_kernel_values:.0f} kernel evaluations per sample instead of {report.full_size}",
)
plt.show()
