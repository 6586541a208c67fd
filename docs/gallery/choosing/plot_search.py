"""
Grid search for C and gamma
===========================

Cross-validation accuracy of `SVCCV` over C and gamma. A smaller gamma needs a larger C; for large gamma
no C is good. The selected point is marked.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from svmarrow import SVCCV

X, y = load_digits(return_X_y=True)
X = StandardScaler().fit_transform(X[:900])
search = SVCCV(Cs=12, gammas=12, cv=3).fit(X, y[:900])

fig, ax = plt.subplots(figsize=(7, 5.2), layout="constrained")
search.plot(ax=ax)
ax.set_title(
    f"{len(search.cv_results_['params'])} points, 3 folds: {100 * search.best_score_:.1f} % accuracy"
)
plt.show()
