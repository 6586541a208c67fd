"""
Probability calibration
=======================

A score of a support vector machine is not a probability. `CalibratedClassifierCV` fits a sigmoid on
held-out samples; its probabilities agree with the observed frequencies.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import make_classification

from svmarrow import SVC

X, y = make_classification(9000, n_features=12, n_informative=6, flip_y=0.1, class_sep=0.8, random_state=0)
svc = SVC(C=1, gamma=0.05).fit(X[:1500], y[:1500])
calibrated = CalibratedClassifierCV(SVC(C=1, gamma=0.05), ensemble=False).fit(X[:1500], y[:1500])
squeezed = expit(svc.decision_function(X[1500:]))
learnt = calibrated.predict_proba(X[1500:])[:, 1]

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
left.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
for values, colour, name in (
    (squeezed, "#888888", "sigmoid of the score, not calibrated"),
    (learnt, "#c1272d", "calibrated"),
):
    share, said = calibration_curve(y[1500:], values, n_bins=12)
    left.plot(said, share, "o-", color=colour, label=name)
    right.hist(values, np.linspace(0, 1, 25), histtype="step", linewidth=2, color=colour, label=name)
left.set(xlabel="predicted probability", ylabel="observed frequency")
right.set(xlabel="predicted probability", ylabel="samples")
left.legend(frameon=False)
plt.show()
