"""Kernels that are Python functions: their calls never overlap, so that they may keep state."""

import threading
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits

from svmarrow import SVC, SVCCV, CodedClassifier

X, y = load_digits(return_X_y=True)
X, y = X[:600] / 16, y[:600]


class Calls:
    """How many calls are under way, the most that were at the same time, and all."""

    guard = threading.Lock()
    inside = most = total = 0


def linear(A, B):
    """A linear kernel that counts its calls, and gives up the interpreter in each."""
    with Calls.guard:
        Calls.inside += 1
        Calls.total += 1
        Calls.most = max(Calls.most, Calls.inside)
    time.sleep(0.001)
    with Calls.guard:
        Calls.inside -= 1
    return A @ B.T


@pytest.mark.parametrize(
    "model",
    [
        SVC(C=1.0, n_jobs=4),
        SVC(C=1.0, multi_class="ovr", n_jobs=4),
        SVCCV(Cs=[0.1, 1.0], cv=2, n_jobs=4),
        CodedClassifier(SVC(C=1.0, n_jobs=4), "ovr"),
    ],
    ids=["one-vs-one", "one-vs-rest", "search", "codes"],
)
def test_calls_of_a_kernel_function_do_not_overlap(model):
    """Ten classes, four threads; the predictions are those of the kernel that is built in."""
    Calls.most = Calls.total = 0
    inner = getattr(model, "estimator", model)
    inner.set_params(kernel=linear)
    labels = model.fit(X, y).predict(X)
    assert Calls.total > 1
    assert Calls.most == 1
    inner.set_params(kernel="linear")
    np.testing.assert_array_equal(labels, model.fit(X, y).predict(X))
