"""Quantiles by liquidSVM: ``python liquid.py PROBLEM.npz PREDICTIONS.npz``, run by `intervals.py`.

liquidSVM (1.0.1, AGPL) needs an environment of its own, so this file imports nothing else. It chooses the
bandwidth and the penalty on its default grid of 10 by 10 points by five folds.
"""

import os
import sys
import sysconfig
import time

import numpy as np

# Its import asks for a variable that recent Pythons have under another name.
_known = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: _known("EXT_SUFFIX" if name == "SO" else name)

import liquidSVM  # noqa: E402

problem = np.load(sys.argv[1])
start = time.perf_counter()
model = liquidSVM.qtSVM(
    problem["X"], problem["y"], weights=problem["quantiles"].tolist(), threads=os.cpu_count()
)
predicted = np.asarray(model.test(problem["X_test"], problem["y_test"])[0])
np.savez(sys.argv[2], predicted=predicted, seconds=time.perf_counter() - start)
# Its destructors abort at the exit of recent Pythons.
os._exit(0)
