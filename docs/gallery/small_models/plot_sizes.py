"""
Error rate against number of vectors
====================================

Three ways to obtain a small model: training on fewer samples, selecting vectors of the full model, and
constructing new vectors. For the same error rate, constructed vectors are the fewest.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from svmarrow import SVC, compression_path
from svmarrow.reduced_set import GradientSettings, subsample_baseline

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
svc = SVC(C=10, gamma=0.02, multi_class="ovr").fit(X_train, y_train)
full = 100 * (1 - svc.score(X_test, y_test))

chosen = compression_path(svc, X_train, y_train, n_vectors=300)
constructed = compression_path(
    svc, X_train, y_train, n_vectors=80, method="gradient",
    settings=GradientSettings(steps=1500, sizes=[10, 20, 40, 80]), random_state=0,
)  # fmt: skip
fewer = np.array([20, 40, 80, 160, 320])
kept, scores = subsample_baseline(svc, X_train, y_train, X_test, y_test, sizes=fewer, random_state=0)

fig, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
ax.plot(chosen.sizes, 100 * (1 - chosen.scores(X_test, y_test)), color="#12355b", label="selected (pursuit)")
ax.plot(
    constructed.sizes,
    100 * (1 - constructed.scores(X_test, y_test)),
    "o-",
    color="#c1272d",
    label="constructed (gradient)",
)
ax.plot(kept, 100 * (1 - scores), "s--", color="#888888", label="trained on a subset")
ax.axhline(full, color="black", linewidth=0.8, linestyle=":")
ax.annotate(
    f"all {svc.expansion_.n_vectors} vectors: {full:.1f} %", (8, full), (0, -12), textcoords="offset points"
)
ax.set(xscale="log", yscale="log", xlabel="vectors", ylabel="test error, %", xlim=(7, 400), ylim=(2.5, 40))
ax.set_yticks([3, 5, 10, 20, 40], ["3", "5", "10", "20", "40"])
ax.minorticks_off()
ax.set_xticks([10, 20, 50, 100, 200], ["10", "20", "50", "100", "200"])
ax.grid(color="#e2e2e2", linewidth=0.6)
ax.legend(frameon=False)
plt.show()
