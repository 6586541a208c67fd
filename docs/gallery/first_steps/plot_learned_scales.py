"""
Learned feature scales
======================

Of twenty features, five are relevant for the target. `LearnedScaler` identifies them, and the error
decreases with each update that it keeps.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from svmarrow.preprocessing import LearnedScaler

X, y = make_friedman1(400, n_features=20, noise=0.5, random_state=0)
scaler = LearnedScaler(shape="standard").fit(X, y)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
relevant = np.arange(20) < 5
colours = np.where(relevant, "#c1272d", "#999999")
left.bar(np.arange(20), scaler.feature_importances_, color=colours)
left.set(xlabel="feature", ylabel="share of the squared scales", xticks=range(0, 20, 5))
left.set_title("the first five features are relevant", fontsize=10)

kept = [step for step in scaler.history_ if step.kept]
right.plot([step.iteration for step in kept], [step.error for step in kept], "o-", color="#12355b")
others = [step for step in scaler.history_ if not step.kept]
right.plot([step.iteration for step in others], [step.error for step in others], "x", color="#999999")
right.set(xlabel="update", ylabel="mean squared error of held-out samples", ylim=(0, None))
right.set_title("updates that were kept, and rejected (x)", fontsize=10)
plt.show()
