"""
Support vector regression, kernel ridge regression and matching pursuit
=======================================================================

Support vector regression ignores errors inside a tube, so only some samples are support vectors. Kernel
ridge regression uses all samples. Matching pursuit selects eight kernel functions.
"""

import matplotlib.pyplot as plt
import numpy as np

from svmarrow import SVR, KMPRegressor, RLSRegressor

rng = np.random.default_rng(3)
X = np.sort(rng.uniform(-4, 4, 160))[:, None]
truth = np.sinc(X[:, 0])
y = truth + 0.08 * rng.standard_normal(160)
y[rng.choice(160, 8, replace=False)] += rng.uniform(0.6, 1.1, 8)
line = np.linspace(-4, 4, 400)[:, None]

models = {
    "SVR(epsilon=0.12)": SVR(C=1, gamma=1, epsilon=0.12).fit(X, y),
    "RLSRegressor, penalty by leave-one-out": RLSRegressor(alphas=np.logspace(-3, 2, 11), gamma=1).fit(X, y),
    "KMPRegressor(8)": KMPRegressor(8, gamma=1, random_state=0).fit(X, y),
}
fig, axes = plt.subplots(1, 3, figsize=(12, 3.8), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ax.scatter(X[:, 0], y, 9, color="#999999")
    ax.plot(line, np.sinc(line), color="black", linewidth=0.8, linestyle=":", label="truth")
    curve = model.predict(line)
    ax.plot(line, curve, color="#c1272d", linewidth=2, label="fit")
    vectors = np.asarray(model.expansion_.vectors)[:, 0]
    if name.startswith("SVR"):
        ax.fill_between(line[:, 0], curve - 0.12, curve + 0.12, color="#c1272d", alpha=0.15)
        ax.scatter(X[model.support_, 0], y[model.support_], 26, facecolor="none", edgecolor="#12355b")
    else:
        ax.scatter(vectors, np.full(len(vectors), -0.62), 20, marker="|", color="#12355b")
    error = np.sqrt(np.mean((model.predict(X) - truth) ** 2))
    ax.set_title(f"{name}\n{len(vectors)} vectors, RMSE {error:.3f}", fontsize=9.5)
    ax.set_ylim(-0.68, 1.7)
axes[0].legend(frameon=False, fontsize=8)
plt.show()
