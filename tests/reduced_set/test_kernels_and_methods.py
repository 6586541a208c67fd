"""Every method of compression with every kernel: it works, or an error names what does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons

from helpers.reference import largest
from svmarrow import SVC, SVR, compress
from svmarrow.expansion.kernel_expansion import PARAMETERS_OF
from svmarrow.reduced_set import GradientSettings, SelectionSettings
from svmarrow.reduced_set.paths import METHODS

KERNELS = sorted(set(PARAMETERS_OF) - {"precomputed"})
#: Methods that measure distances, which the sigmoid kernel does not have on these rows.
BY_DISTANCE = set(METHODS) - {"gradient"}
X, Y = make_moons(160, noise=0.2, random_state=0)
X += 0.1 - X.min()  # chi2 takes no negative numbers
STEPS = GradientSettings(steps=200)


def machine(kernel, kind=SVC, targets=Y):
    return kind(kernel=kernel, gamma=0.5).fit(X, targets)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("method", METHODS)
def test_a_method_works_or_names_those_that_do(kernel, method):
    model = machine(kernel)
    settings = STEPS if method == "gradient" else None
    if kernel == "sigmoid" and method in BY_DISTANCE:
        with pytest.raises(ValueError, match=f"method='{method}': kernel=sigmoid is not allowed") as raised:
            largest(model, X, Y, n_vectors=5, method=method)
        for name in ("'auto'", "'gradient'", "criterion='predictions'"):
            assert name in str(raised.value)
        return
    small = largest(model, X, Y, n_vectors=5, method=method, settings=settings, random_state=0)
    assert 1 <= small.expansion_.n_vectors <= 5
    assert small.score(X, Y) > 0.7


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("asked", [{"n_vectors": 5}, {"max_loss": 0.3}, {"max_bytes": 500}], ids=str)
def test_auto_takes_every_kernel(kernel, asked):
    model = machine(kernel)
    small = compress(model, X, Y, settings=STEPS, random_state=0, **asked)
    assert small.expansion_.n_vectors <= asked.get("n_vectors", 40)
    assert small.score(X, Y) > model.score(X, Y) - 0.3
    assert small.loss_bound_.n_samples == 80


def test_auto_takes_the_sigmoid_kernel_without_rows_and_of_a_regressor():
    model = machine("sigmoid")
    small = compress(model, n_vectors=20)
    assert small.expansion_.n_vectors <= 20
    full = model.decision_function(X)
    rest = small.decision_function(X) - full
    assert np.sqrt((rest**2).mean()) < 0.1 * np.sqrt((full**2).mean())
    regressor = machine("sigmoid", SVR, X[:, 0])
    tight = compress(regressor, X, X[:, 0], n_vectors=10, settings=STEPS, random_state=0)
    assert tight.expansion_.n_vectors <= 10


def test_auto_keeps_the_settings_of_the_pursuit_for_the_sigmoid_kernel():
    settings = SelectionSettings(sample=30)
    small = compress(machine("sigmoid"), X, Y, n_vectors=10, settings=settings, random_state=0)
    assert small.expansion_.n_vectors <= 10
    with pytest.raises(ValueError, match="max_memory="):
        compress(machine("sigmoid"), X, Y, n_vectors=10, settings=SelectionSettings(max_memory=1e-6))


@pytest.mark.parametrize("method", METHODS)
def test_precomputed_values_are_refused_by_name(method):
    model = SVC(kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(ValueError, match=r"method='gradient'|kernel matrix of all training samples"):
        largest(model, n_vectors=5, method=method)
    with pytest.raises(ValueError, match="kernel matrix of all training samples"):
        compress(model, n_vectors=5)
