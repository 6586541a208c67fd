"""Concurrent work in threads and processes: ``python -m helpers.concurrency WAY`` prints the differences.

Each way runs in its own process, so that a hang or a crash of the interpreter fails one test alone. A way
prints a JSON list of messages, which is empty where all results are those of serial work.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV

from helpers.comparison import predictions
from helpers.data import IRIS, KIND, WIDE, WIDE_LABELS
from helpers.estimators import EXAMPLES, example
from helpers.fingerprints import digest, fingerprint, set_default_jobs
from svmarrow import SVC, CodedClassifier, RLSClassifier

#: The first example of each class.
NAMES = list({name.split()[0]: name for name in reversed(EXAMPLES)}.values())
#: Those that draw from NumPy's generator of the whole process, which threads share.
DRAWN = {"CalibratedCascade", "GradientPath"}
ROUNDS = 3


def serial():
    """The digest of each example, made one after the other."""
    return {name: fingerprint(name) for name in NAMES}


def compared(found, expected, where):
    return [f"{where}: {name}" for name in found if found[name] != expected[name]]


def readers():
    """Eight threads ask one model while it is cloned, pickled and fitted anew, on the same rows."""
    said, pool = [], ThreadPoolExecutor(8)
    for name in NAMES:
        model, X = example(name), EXAMPLES[name][1]
        expected = digest(predictions(model, X))
        start = threading.Barrier(9)

        def ask(name=name, model=model, X=X, start=start):
            start.wait()
            return {digest(predictions(model, X)) for _ in range(ROUNDS)}

        asked = [pool.submit(ask) for _ in range(8)]
        start.wait()
        if isinstance(model, BaseEstimator):
            clone(model)
        copy = pickle.loads(pickle.dumps(model))
        fresh = EXAMPLES[name][0]()
        if set().union(*(one.result() for one in asked)) != {expected}:
            said.append(f"another answer: {name}")
        if digest(predictions(copy, X)) != expected:
            said.append(f"the pickled copy: {name}")
        if name not in DRAWN and digest(predictions(fresh, X)) != expected:
            said.append(f"the fit beside the readers: {name}")
    return said


def same_object():
    """Readers of a batch learner that is fitted again on the same rows never see half of a fit."""
    said = []
    for learner in (SVC(C=0.1), RLSClassifier(), CodedClassifier(SVC(C=0.1))):
        model = learner.fit(WIDE, WIDE_LABELS)
        expected, stop = digest(predictions(model, WIDE[::7])), threading.Event()

        def ask(model=model, expected=expected, stop=stop):
            while not stop.is_set():
                if digest(predictions(model, WIDE[::7])) != expected:
                    said.append(f"half of a fit: {model}")
                    return

        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask) for _ in range(4)]
            for _ in range(ROUNDS):
                model.fit(WIDE, WIDE_LABELS)
            stop.set()
            for one in asked:
                one.result()
    return said


def fits():
    """Fits of all families at once, in the threads of a pool."""
    names, expected = [name for name in NAMES if name not in DRAWN], serial()
    with multiprocessing.pool.ThreadPool(4) as pool:
        found = dict(zip(names * 2, pool.map(fingerprint, names * 2, chunksize=1), strict=True))
    return compared(found, expected, "in four threads")


def in_a_child(work):
    """What ``work`` gives in a fork of this process."""
    back, out = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(out, "w") as file:
                json.dump(work(), file)
        finally:
            os._exit(0)
    os.close(out)
    with os.fdopen(back) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {}


def _names():
    for task in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended since
            yield task.read_text().strip()


def threads_left():
    """Names of the threads of fits that do not end, where the system tells; libraries have others."""
    for _ in range(600):
        left = [name for name in _names() if name.startswith("svmarrow")]
        if not left:
            break
        time.sleep(0.1)  # they end on their own a moment after the fit
    return left


def fork_after():
    """A fork of a process that has fitted, and has no thread of a fit left."""
    expected = serial()
    said = [f"left after the fits: {name}" for name in threads_left()]
    found = in_a_child(serial)
    return said + compared(found, expected, "after a fork") + ([] if found else ["the child said nothing"])


def fork_during():
    """Forks while another thread fits."""
    expected, stop, said = serial(), threading.Event(), []

    def work():
        while not stop.is_set():
            SVC(n_jobs=2).fit(WIDE, WIDE_LABELS)

    other = threading.Thread(target=work)
    other.start()
    for _ in range(ROUNDS):
        found = in_a_child(serial)
        said += compared(found, expected, "forked during a fit") + (
            [] if found else ["the child said nothing"]
        )
    stop.set()
    other.join()
    return said


def fork_inside():
    """Forks in a kernel function, so in the midst of a fit of the same thread."""
    expected, found = serial(), []

    def kernel(X, Z):
        if len(found) < ROUNDS:
            found.append(in_a_child(serial))
        return X @ Z.T

    plain = SVC(kernel=lambda X, Z: X @ Z.T, n_jobs=2).fit(IRIS, KIND).decision_function(IRIS)
    forked = SVC(kernel=kernel, n_jobs=2).fit(IRIS, KIND).decision_function(IRIS)
    said = [] if np.array_equal(plain, forked) else ["the fit that forked is another"]
    for one in found:
        said += compared(one, expected, "forked inside a fit") + ([] if one else ["the child said nothing"])
    return said


def _processes(kind):
    expected = serial()
    with multiprocessing.get_context(kind).Pool(2) as pool:
        found = dict(zip(NAMES, pool.map(fingerprint, NAMES), strict=True))
    return compared(found, expected, kind)


def fork_pool():
    return _processes("fork")


def spawn_pool():
    return _processes("spawn")


def _with_jobs(name, n_jobs):
    set_default_jobs(n_jobs)
    return fingerprint(name)


def loky():
    """joblib's processes, in which every learner asks for two threads of its own."""
    expected = serial()
    found = Parallel(n_jobs=2, backend="loky")(delayed(_with_jobs)(name, 2) for name in NAMES)
    return compared(dict(zip(NAMES, found, strict=True)), expected, "loky")


def nested():
    """Searches, columns and bags that run in parallel inside one another."""
    said = []
    plain = None
    for outer, inner in ((1, 1), (2, 1), (1, 2), (2, 2), (3, None)):
        coded = CodedClassifier(SVC(n_jobs=inner), "ovo", shared=False, n_jobs=inner)
        search = GridSearchCV(coded, {"estimator__C": [0.1, 1.0]}, cv=3, n_jobs=outer).fit(IRIS, KIND)
        model = search.best_estimator_
        found = digest([search.cv_results_["mean_test_score"], model.decision_function(IRIS)])
        plain = plain or found
        if found != plain:
            said.append(f"{outer} searches of {inner} threads")
    expected = serial()
    with ThreadPoolExecutor(1) as pool:
        for backend in ("threading", "loky"):
            names = [name for name in NAMES if name not in DRAWN]
            calls = (delayed(fingerprint)(name) for name in names)
            found = pool.submit(Parallel(n_jobs=2, backend=backend), calls).result()
            said += compared(dict(zip(names, found, strict=True)), expected, f"{backend} in a thread")
    return said


WAYS = (readers, same_object, fits, fork_after, fork_during, fork_inside, fork_pool, spawn_pool, loky, nested)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = {way.__name__: way for way in WAYS}[sys.argv[1]]
    print(json.dumps(chosen()))
