"""
Duality gap during training
===========================

The optimal objective lies between the dual objective (below) and the primal objective (above). Here a
fit is stopped and resumed several times; the difference bounds the distance from the optimum.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from svmarrow import SVC
from svmarrow.exceptions import ConvergenceWarning

X, y = make_moons(3000, noise=0.25, random_state=0)
svc = SVC(C=100, gamma=2, warm_start=True, max_iter=150, n_jobs=1)
steps, duals, primals = [], [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for _ in range(400):
        certificate = svc.fit(X, y).certificate_
        steps.append(certificate.machines[0].iterations + (steps[-1] if steps else 0))
        duals.append(certificate.dual)
        primals.append(certificate.primal)
        if certificate.machines[0].stop == "converged":
            break

fig, (above, below) = plt.subplots(
    2, 1, figsize=(8, 5.6), sharex=True, height_ratios=(3, 2), layout="constrained"
)
above.plot(steps, primals, color="#c1272d", label="primal objective")
above.plot(steps, duals, color="#12355b", label="dual objective")
above.fill_between(steps, duals, primals, color="#e3b261", alpha=0.35, label="duality gap")
above.set(
    yscale="log",
    ylabel="objective",
    title=f"{len(steps)} stops; final gap {primals[-1] - duals[-1]:.2g}",
)
above.legend(frameon=False)
gaps = [(primal - dual) / primal for primal, dual in zip(primals, duals, strict=True)]
below.plot(steps, gaps, color="black")
below.set(yscale="log", xlabel="SMO steps", ylabel="relative\nduality gap")
plt.show()
