"""
Online learning with concept drift
==================================

Half-way through the stream the two classes change places. A perceptron without a budget needs many more
vectors to adapt, one that stops learning never recovers, and those that replace vectors adapt within the
budget. The curves show the error rate on the last 200 samples, each predicted before it was learned.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from svmarrow.online import KernelPerceptron

X, y = make_moons(8000, noise=0.15, random_state=0)
y[4000:] = 1 - y[4000:]
learners = {
    "KernelPerceptron": KernelPerceptron(gamma=2),
    "stop, 60": KernelPerceptron(policy="stop", budget=60, gamma=2),
    "oldest, 60": KernelPerceptron(policy="oldest", budget=60, gamma=2),
    "forgetron, 60": KernelPerceptron(policy="forgetron", budget=60, gamma=2),
}
fig, ax = plt.subplots(figsize=(9, 4.6), layout="constrained")
for (name, model), colour in zip(learners.items(), ("#888888", "#e3a531", "#12355b", "#c1272d"), strict=True):
    wrong = np.zeros(len(X))
    for start in range(0, len(X), 200):
        rows = slice(start, start + 200)
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
        wrong[model.mistake_indices_] = 1
    running = np.convolve(wrong, np.ones(200) / 200, "valid")
    ax.plot(
        np.arange(199, len(X)),
        100 * running,
        color=colour,
        label=f"{name}: {model.expansion_.n_vectors} vectors",
    )
ax.axvline(4000, color="black", linewidth=0.8, linestyle=":")
ax.annotate("the classes change places", (4000, 60), (-6, 0), textcoords="offset points", ha="right")
ax.set(xlabel="samples", ylabel="error rate on the last 200 samples, %", yscale="log", ylim=(0.4, 130))
ax.set_yticks([0.5, 1, 2, 5, 10, 20, 50, 100], ["0.5", "1", "2", "5", "10", "20", "50", "100"])
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(0, 0.62))
plt.show()
