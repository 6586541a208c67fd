"""
Constructed vectors of a digit classifier
=========================================

Selected vectors are support vectors: digits that are hard to classify. Constructed vectors start at the
centers of clusters and are optimized by gradient descent. Both models have twenty vectors; the one with
the largest coefficient for each digit is shown.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from svmarrow import SVC, compress
from svmarrow.reduced_set import GradientSettings

X, y = load_digits(return_X_y=True)
X = X / 16
svc = SVC(C=10, gamma=0.02, multi_class="ovr").fit(X[:1000], y[:1000])
chosen = compress(svc, X[:1000], y[:1000], n_vectors=20, method="backfit")
constructed = compress(
    svc,
    X[:1000],
    y[:1000],
    n_vectors=20,
    method="gradient",
    settings=GradientSettings(steps=2000),
    random_state=0,
)

fig = plt.figure(figsize=(10, 3.6), layout="constrained")
for part, (model, words) in zip(
    fig.subfigures(2, 1), ((chosen, "selected"), (constructed, "constructed")), strict=True
):
    error = 100 * (1 - model.score(X[1000:], y[1000:]))
    part.suptitle(f"20 vectors, {words}: {error:.1f} % errors", fontsize=11, x=0.01, ha="left")
    vectors, weights = model.expansion_.vectors, model.expansion_.coefficients
    for ax, digit in zip(part.subplots(1, 10), range(10), strict=True):
        strongest = np.argmax(weights[:, digit])
        ax.imshow(vectors[strongest].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set_title(f"for {digit}", fontsize=8, pad=2)
        ax.set(xticks=[], yticks=[])
plt.show()
