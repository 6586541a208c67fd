"""One search for C and gamma by one library, in a process of its own; prints JSON.

``python tuner.py ROWS.npz ENGINE [POINTS [MEGABYTES]]``: ten values of C, ten of gamma (or POINTS of each),
five folds; the clock starts when library and rows are loaded, and ends when the chosen machine is fitted to
all rows. liquidSVM has a grid of its own of the same size and combines the machines of the folds instead.
This file imports no more than its engine needs: liquidSVM lives in an environment of its own. MEGABYTES are
the budget of `SVCCV`; what a search took is how much the most memory that its process has had grew meanwhile.
An engine whose name ends in "path" searches fifty values of C at one gamma by ten folds, the setting of
TorchKM's authors.
"""

from __future__ import annotations

import json
import resource
import sys
import sysconfig
import time

import numpy as np


def _grid(X):
    """The grid of `SVCCV`, said once more: .1 to 1,000, and 10^-1.5 to 10^1.5 times "scale"."""
    scale = 1.0 / (X.shape[1] * X.var())
    return np.geomspace(0.1, 1000.0, 10), np.geomspace(10.0**-1.5, 10.0**1.5, 10) * scale


def _path(X):
    """Fifty values of C from .001 to 1,000, and gamma "scale"."""
    return np.geomspace(1e-3, 1e3, 50), [1.0 / (X.shape[1] * X.var())]


def _svmarrow_path():
    from svmarrow import SVCCV

    def run(X, y):
        Cs, gammas = _path(X)
        model = SVCCV(Cs=Cs, gammas=gammas, cv=10).fit(X, y)
        return model.predict, {**model.best_params_, "score": model.best_score_}

    return run


def _torchkm():
    import os
    import re
    import warnings

    import torch
    from torchkm.estimators import TorchKMSVC

    torch.set_num_threads(len(os.sched_getaffinity(0)))

    def run(X, y):
        Cs, (gamma,) = _path(X)
        # Its kernel is exp(-2 sigma ||x - z||^2). From the smallest C to the largest it converges more often
        # than in its own order, and 1,000 iterations with a tolerance of 1e-5, its defaults, are too few.
        options = {"Cs": Cs, "rbf_sigma": gamma / 2, "cv": 10, "tol": 1e-3, "max_iter": 10_000}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = TorchKMSVC(**options, device="cpu", random_state=0).fit(X, y)
        said = re.search(r"converge for (\d+) of", " ".join(str(warning.message) for warning in caught))
        unconverged = int(said[1]) if said else 0
        return model.predict, {"C": float(model.best_C_), "gamma": float(gamma), "unconverged": unconverged}

    return run


def _svmarrow(search):
    from svmarrow import SVCCV

    given = [int(text) for text in sys.argv[3:]]
    options = {"Cs": given[0], "gammas": given[0]} if given else {}
    options |= {"cache_size": given[1]} if given[1:] else {}

    def run(X, y):
        model = SVCCV(search=search, **options).fit(X, y)
        return model.predict, {**model.best_params_, "score": model.best_score_}

    return run


def _grid_search(machine, grid=_grid, cv=5):
    from sklearn.model_selection import GridSearchCV

    def run(X, y):
        C, gamma = grid(X)
        model = GridSearchCV(machine(), {"C": C, "gamma": gamma}, cv=cv).fit(X, y)
        found = {name: float(value) for name, value in model.best_params_.items()}
        return model.predict, {**found, "score": float(model.best_score_)}

    return run


def _ours():
    from svmarrow import SVC

    return _grid_search(SVC)


def _intelex(*setting):
    from sklearnex.svm import SVC

    return _grid_search(SVC, *setting)


def _liquid():
    # Its import asks for a variable that today's Python has under another name.
    known = sysconfig.get_config_var
    sysconfig.get_config_var = lambda name: known("EXT_SUFFIX" if name == "SO" else name)
    import os

    import liquidSVM

    threads = len(os.sched_getaffinity(0))

    def run(X, y):
        classes, labels = np.unique(y, return_inverse=True)
        numbers = np.array([-1.0, 1.0]) if classes.size == 2 else np.arange(1.0, classes.size + 1.0)
        model = liquidSVM.mcSVM(X, numbers[labels], threads=threads)

        def predict(rows):
            # It wants labels that it knows, whatever they are.
            said = np.asarray(model.test(rows, np.resize(numbers, len(rows)))[0])
            said = said.reshape(len(rows), -1)[:, 0]
            return classes[np.searchsorted(numbers, np.round(said))]

        return predict, {}

    return run


ENGINES = {
    "SVCCV full": lambda: _svmarrow("full"),
    "SVCCV racing": lambda: _svmarrow("racing"),
    "GridSearchCV(svmarrow)": _ours,
    "GridSearchCV(intelex)": _intelex,
    "liquidSVM": _liquid,
    "SVCCV path": _svmarrow_path,
    "GridSearchCV(intelex) path": lambda: _intelex(_path, 10),
    "TorchKM path": _torchkm,
}


def main() -> None:
    """One run."""
    rows = np.load(sys.argv[1])
    run = ENGINES[sys.argv[2]]()
    X, y = np.ascontiguousarray(rows["X"], dtype=np.float64), rows["y"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, processor = time.perf_counter(), time.process_time()
    predict, found = run(X, y)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    error = 100.0 * float(
        np.mean(predict(np.ascontiguousarray(rows["X_test"], np.float64)) != rows["y_test"])
    )
    told = {"seconds": wall, "processor_seconds": processor, "error": error, "megabytes": grown, **found}
    print(json.dumps(told), flush=True)
    # liquidSVM leaves with an error of its own after all is said.
    import os

    os._exit(0)


if __name__ == "__main__":
    main()
