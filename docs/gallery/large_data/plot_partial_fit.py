"""
Learning from a file in pieces
==============================

Error of low-rank models on other samples after each piece of a stream of two moons. `partial_fit`
accumulates sums, so every model is that of one fit of all samples so far.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from svmarrow.least_squares import LowRankRLSClassifier

X, y = make_moons(20_000, noise=0.25, random_state=0)
X_new, y_new = make_moons(20_000, noise=0.25, random_state=1)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for vectors, colour in ((10, "#e3a531"), (30, "#3f8f9b"), (100, "#12355b")):
    model = LowRankRLSClassifier(vectors, selection=X[:vectors], alpha=0.1, gamma=2)
    seen, errors = [], []
    for piece in np.array_split(np.arange(len(X)), 40):
        model.partial_fit(X[piece], y[piece], classes=[0, 1])
        seen.append(piece[-1] + 1)
        errors.append(100 * (1 - model.score(X_new, y_new)))
    ax.plot(seen, errors, color=colour, label=f"{vectors} vectors")
ax.set(xscale="log", xlabel="samples read", ylabel="error on other samples, %")
ax.grid(color="#e5e5e5")
ax.legend(frameon=False)
plt.show()
