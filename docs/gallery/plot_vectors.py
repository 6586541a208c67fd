"""
Which rows become vectors
=========================

A support vector machine keeps only the rows near its boundary.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from svmarrow import SVC, DecisionVectorsDisplay

X, y = make_moons(600, noise=0.2, random_state=0)
svc = SVC(C=10, gamma=2).fit(X, y)
DecisionVectorsDisplay.from_estimator(svc, X, y)
plt.show()
