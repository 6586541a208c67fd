"""
Support vectors
===============

A support vector machine keeps only the training samples near its boundary or on the wrong side of it
(circled).
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from svmarrow import SVC
from svmarrow.inspection import DecisionVectorsDisplay

X, y = make_moons(600, noise=0.2, random_state=0)
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
for ax, C in zip(axes, (0.1, 100), strict=True):
    svc = SVC(C=C, gamma=2).fit(X, y)
    DecisionVectorsDisplay.from_estimator(svc, X, y, ax=ax)
    ax.set_title(f"C = {C}: {svc.expansion_.n_vectors} of {len(X)} samples are support vectors")
plt.show()
