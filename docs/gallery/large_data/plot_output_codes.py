"""
Output codes
============

An output code has one row for each class and one column for each binary machine, which separates the
blue classes from the red ones; white classes are left out. Here further columns cost training time and
hardly reduce the error rate.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from svmarrow import SVC, CodedClassifier

X, y = load_digits(return_X_y=True)
X = X / 16
codes = ("ovr", "ovo", "dense", "sparse")
fig, axes = plt.subplots(4, 1, figsize=(10, 9), layout="constrained")
for ax, name in zip(axes, codes, strict=True):
    model = CodedClassifier(SVC(C=10, gamma=0.03), name, random_state=0).fit(X[:700], y[:700])
    matrix = model.code_.matrix
    ax.imshow(matrix, cmap="RdBu", vmin=-1.4, vmax=1.4, aspect="auto")
    ax.hlines([i + 0.5 for i in range(9)], -0.5, matrix.shape[1] - 0.5, color="white", linewidth=1)
    ax.vlines([i + 0.5 for i in range(matrix.shape[1] - 1)], -0.5, 9.5, color="white", linewidth=1)
    ax.set(xticks=[], yticks=range(10), ylabel="class")
    error = 100 * (1 - model.score(X[700:], y[700:]))
    vectors = model.expansion_.n_vectors
    ax.set_title(
        f'"{name}": {matrix.shape[1]} machines, {vectors} vectors in all, {error:.1f} % wrong',
        loc="left",
        fontsize=10,
    )
plt.show()
