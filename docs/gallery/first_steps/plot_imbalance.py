"""
ROC curves and thresholds for a rare class
==========================================

Left: the ROC curves of support vector machines with and without class weights; marks are the default
thresholds. Right: recall and precision of the unweighted machine as functions of the threshold.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import precision_score, recall_score, roc_curve
from sklearn.model_selection import train_test_split

from svmarrow import SVC

X, y = make_classification(
    3000, n_features=10, n_informative=5, weights=[0.95], class_sep=0.7, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for class_weight, colour in ((None, "#12355b"), ("balanced", "#c1272d")):
    svc = SVC(gamma=0.02, class_weight=class_weight).fit(X_train, y_train)
    scores = svc.decision_function(X_test)
    false, true, _ = roc_curve(y_test, scores)
    left.plot(false, true, color=colour, label=f"class_weight={class_weight}")
    predicted = scores > 0
    left.plot(predicted[y_test == 0].mean(), predicted[y_test == 1].mean(), "o", color=colour)
    if class_weight is None:
        thresholds = np.linspace(-1.5, 0.5, 101)
        for name, score in (("recall", recall_score), ("precision", precision_score)):
            right.plot(thresholds, [score(y_test, scores > t) for t in thresholds], label=name)
left.set(xlabel="false positive rate", ylabel="true positive rate")
right.axvline(0, color="#777777", linewidth=0.8)
right.set(xlabel="threshold")
for ax in (left, right):
    ax.legend(frameon=False)
    ax.grid(color="#e5e5e5")
plt.show()
