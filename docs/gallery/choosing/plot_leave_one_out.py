"""
Choosing the penalty by leave-one-out errors
============================================

The exact leave-one-out errors of kernel ridge regression need no further fits. They select the penalty
about as well as a test set would.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from svmarrow import RLSClassifier

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
order = np.random.default_rng(0).permutation(len(y))
train, test = order[:250], order[250:]
alphas = np.logspace(-4, 2, 25)

model = RLSClassifier(alphas=alphas, gamma=0.03).fit(X[train], y[train])
fits = [RLSClassifier(alpha, gamma=0.03).fit(X[train], y[train]) for alpha in alphas]

fig, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
errors = {
    "training samples": ([1 - fit.score(X[train], y[train]) for fit in fits], "#999999"),
    "test samples": ([1 - fit.score(X[test], y[test]) for fit in fits], "#12355b"),
    "leave-one-out": (model.loo_errors_, "#c1272d"),
}
for name, (values, colour) in errors.items():
    ax.plot(alphas, 100 * np.asarray(values), color=colour, linewidth=2, label=name)
ax.axvline(model.alpha_, color="black", linewidth=0.8, linestyle=":")
ax.annotate(
    f"chosen: {model.alpha_:.2g}", (model.alpha_, ax.get_ylim()[1]), (5, -14), textcoords="offset points"
)
ax.set(xscale="log", xlabel="penalty alpha", ylabel="error rate, %")
ax.legend(frameon=False)
plt.show()
