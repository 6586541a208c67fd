"""
Decision boundary of compressed models
======================================

A pursuit selects one vector after the other so that the outputs of the small model approach those of the
full model; one run gives models of all sizes. The gray line is the decision boundary of the full model.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from svmarrow import SVC, compression_path
from svmarrow.inspection import DecisionVectorsDisplay

X, y = make_moons(500, noise=0.18, random_state=0)
svc = SVC(C=10, gamma=2).fit(X, y)
path = compression_path(svc, X, y, n_vectors=32)

fig, axes = plt.subplots(2, 2, figsize=(10, 7.2), sharex=True, sharey=True, layout="constrained")
for ax, size in zip(axes.flat, (4, 6, 10, 20), strict=True):
    DecisionVectorsDisplay.from_estimator(path[size], X, y, full=svc, ax=ax)
    same = 100 * (path[size].predict(X) == svc.predict(X)).mean()
    ax.set_title(f"{size} of {svc.expansion_.n_vectors} vectors: {same:.1f} % of the labels agree")
    ax.title.set_fontsize(9)
plt.show()
