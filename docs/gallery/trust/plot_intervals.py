"""
Prediction intervals
====================

Both bands are intended to contain 90 % of new targets. The jackknife+ uses the exact leave-one-out
errors of least squares and has almost constant width; its guarantee holds on average over samples. Two
quantiles of support vector regression follow the noise, which grows to the right.
"""

import matplotlib.pyplot as plt
import numpy as np

from svmarrow import RLSRegressor
from svmarrow.model_selection import QuantileSVRCV

rng = np.random.default_rng(0)


def draw(n):
    X = rng.uniform(0, 10, (n, 1))
    return X, np.sin(X[:, 0]) + (0.05 + 0.08 * X[:, 0]) * rng.standard_normal(n)


X, y = draw(400)
X_test, y_test = draw(5000)
line = np.linspace(0, 10, 300)[:, None]

squares = RLSRegressor(alphas=np.logspace(-3, 2, 11), gamma=0.3).fit(X, y)
low, high = (QuantileSVRCV(q, Cs=5, gammas=5).fit(X, y) for q in (0.05, 0.95))
bands = {
    "RLSRegressor.predict_interval": squares.predict_interval,
    "QuantileSVRCV(0.05), QuantileSVRCV(0.95)": lambda Z: np.column_stack([low.predict(Z), high.predict(Z)]),
}
fig, axes = plt.subplots(1, 2, figsize=(12, 4.2), sharey=True, layout="constrained")
for ax, (name, band) in zip(axes, bands.items(), strict=True):
    lower, upper = band(line).T
    ax.scatter(X[:, 0], y, 8, color="#999999")
    ax.fill_between(line[:, 0], lower, upper, color="#c1272d", alpha=0.2, label="90 % band")
    ax.plot(line, squares.predict(line), color="#12355b", label="least squares")
    ends = band(X_test).T
    inside = (ends[0] <= y_test) & (y_test <= ends[1])
    right = X_test[:, 0] > 7
    ax.set_title(
        f"{name}\n{inside.mean():.1%} of 5,000 new targets inside; {inside[right].mean():.1%} where x > 7",
        fontsize=9.5,
    )
axes[0].legend(frameon=False, fontsize=8)
plt.show()
