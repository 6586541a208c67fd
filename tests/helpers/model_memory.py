"""The memory that a model takes beyond its vectors, step by step, each sequence in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from helpers.programs import python

__all__ = ["SEQUENCES", "measure"]

#: The steps of each sequence.
SEQUENCES = {
    "single precision": ("predict", "outlier", "predict", "compiled", "predict double"),
    "double precision": ("predict double", "compiled", "compiled scores"),
    "concurrent": ("eight threads",),
    "concurrent double": ("eight threads double", "compiled"),
}

PROGRAM = """
    import gc, json, sys, threading, ctypes
    import numpy as np
    from svmarrow import KernelExpansion
    from svmarrow.models import ExpansionRegressor

    vectors, features, dtype, steps = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    trim = ctypes.CDLL(None).malloc_trim

    def status(field):
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

    def resident():
        gc.collect()
        trim(0)
        return status("VmRSS")

    def restart_peak():
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")

    random = np.random.default_rng(0)
    # What the first call of each kind loads is no memory of the model.
    few = KernelExpansion(random.random((40, features), dtype=dtype), random.normal(size=40), 0.0, gamma=1.0)
    for rows in (np.ones((2, features)), np.ones((2, features), dtype="f")):
        few.decision_function(rows, n_jobs=2)
    ExpansionRegressor(few).compiled().predict([0.0] * features)

    Z = random.random((vectors, features), dtype=dtype)
    model = ExpansionRegressor(KernelExpansion(Z, random.normal(size=vectors), 0.0, gamma=1.0 / features))
    X = random.random((20, features), dtype="f")
    outlier = X[:2].copy()
    outlier[0] = 1e22

    def eight(rows):
        gate = threading.Barrier(8)

        def predict():
            gate.wait()
            model.expansion_.decision_function(rows, n_jobs=1)

        callers = [threading.Thread(target=predict) for _ in range(8)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()

    single = None

    def compiled():
        global single
        single = model.compiled()
        single.predict([0.5] * features)

    do = {
        "predict": lambda: model.predict(X),
        "predict double": lambda: model.predict(X.astype("d")),
        "outlier": lambda: model.predict(outlier),
        "compiled": compiled,
        "compiled scores": lambda: (model.compiled().predict([0.5] * features)),
        "eight threads": lambda: eight(X),
        "eight threads double": lambda: eight(X.astype("d")),
    }
    start, out = resident(), []
    for step in steps:
        restart_peak()
        do[step]()
        out.append([step, status("VmHWM") - start, resident() - start])
    print(json.dumps({"vectors": Z.nbytes, "steps": out}))
"""


def measure(sequence: str, vectors: int, features: int) -> list[tuple[str, float, float]]:
    """Each step with the peak and the final memory beyond that of the vectors, in multiples of the vectors.

    Vectors are in single precision, or in double precision if the sequence says so.
    """
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    dtype = "d" if "double" in sequence else "f"
    found = json.loads(python(PROGRAM, vectors, features, dtype, *SEQUENCES[sequence], PYTHONPATH=path))
    size = found["vectors"]
    return [(step, peak / size, final / size) for step, peak, final in found["steps"]]
