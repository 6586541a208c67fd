"""
Exact Shapley values of a support vector machine
================================================

The decision value is divided exactly among the features, without sampling coalitions. On the left each
point is a sample, colored by the value of the feature; on the right one prediction is explained, from
the mean over the background to the output of the model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC
from svmarrow.inspection import shapley_values

X, y = load_wine(return_X_y=True, as_frame=True)
model = make_pipeline(StandardScaler(), SVC(C=1, gamma=0.05)).fit(X, y == 0)
found = shapley_values(model, X, background=X[::3])
print("largest additivity error:", found.additivity_error.max())

fig, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
found.plot("beeswarm", max_display=8, ax=axes[0])

sample = 60
values = found.values[sample]
order = np.argsort(np.abs(values))
ends = found.base_values + np.cumsum(values[order])
starts = np.concatenate([[found.base_values], ends[:-1]])
colors = np.where(values[order] > 0, "#12355b", "#c1272d")
axes[1].barh(np.arange(order.size), ends - starts, left=starts, color=colors)
axes[1].set_yticks(np.arange(order.size), [found.feature_names[j] for j in order])
axes[1].axvline(
    found.base_values, color="#999999", linewidth=0.8, linestyle=":", label="mean over background"
)
axes[1].axvline(ends[-1], color="black", linewidth=0.8, label="output of the model")
axes[1].set_xlabel("decision value")
axes[1].margins(x=0.06)
axes[1].set_title(f"sample {sample}: what each feature adds", fontsize=10)
axes[1].legend(frameon=False, fontsize=8)
plt.show()
