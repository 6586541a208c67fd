"""Many threads at once, with or without the interpreter's lock: the same bits as one after the other.

On a free-threaded Python (3.14t, `PYTHON_GIL=0`) nothing but svmarrow orders these threads.
"""

from __future__ import annotations

import sys
import sysconfig
import threading

import numpy as np
import pytest
from sklearn.datasets import make_classification

import svmarrow
from helpers.interruption import HANG
from svmarrow import _core

N_THREADS = 4
X, y = make_classification(n_samples=150, n_features=12, n_informative=6, n_classes=3, random_state=0)
X_test = X[:100] + 0.1


def test_the_extension_leaves_the_lock_disabled():
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has the lock in any case")
    assert _core.__name__ in sys.modules
    assert not sys._is_gil_enabled()


def together(work):
    """Run `work(i)` in threads that start together; return the results, or raise the first error."""
    results, errors, start = [None] * N_THREADS, [], threading.Barrier(N_THREADS)

    def run(i):
        try:
            start.wait(HANG)
            results[i] = work(i)
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def answers(i, shared=None):
    """Fit a model of its own, compress it, and ask the shared one: all bits."""
    own = svmarrow.SVC(C=1.0 + i % 3, gamma=0.1, n_jobs=1 + i % 2).fit(X, y)
    small = svmarrow.compress(own, n_vectors=10)
    asked = own if shared is None else shared
    parts = [own.decision_function(X_test), small.decision_function(X_test)]
    parts += [asked.decision_function(X_test[k : k + 7]) for k in range(0, 35, 7)]
    parts += [asked.predict(X_test[k : k + 1]).astype(float) for k in range(10)]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def test_fits_and_predictions_of_many_threads_have_the_bits_of_one():
    shared = svmarrow.SVC(C=10.0, gamma=0.05).fit(X, y)
    expected = [answers(i, shared) for i in range(N_THREADS)]
    assert together(lambda i: answers(i, shared)) == expected


def test_one_estimator_fitted_by_many_threads_is_one_of_their_models():
    shared = svmarrow.RLSClassifier(gamma=0.1, alpha=1.0)
    whole = svmarrow.RLSClassifier(gamma=0.1, alpha=1.0).fit(X, y).decision_function(X_test)
    half = svmarrow.RLSClassifier(gamma=0.1, alpha=1.0).fit(X[::2], y[::2]).decision_function(X_test)

    def work(i):
        if i % 2:
            shared.fit(X, y)
        else:
            shared.fit(X[::2], y[::2])
        return shared.decision_function(X_test)

    for found in together(work):
        assert np.array_equal(found, whole) or np.array_equal(found, half)


def test_errors_stay_in_their_threads():
    def work(i):
        if i % 2:
            with pytest.raises(ValueError, match="C="):
                svmarrow.SVC(C=-1.0).fit(X, y)
            return None
        return svmarrow.SVC(gamma=0.1).fit(X, y).decision_function(X_test).tobytes()

    assert len({result for i, result in enumerate(together(work)) if not i % 2}) == 1
