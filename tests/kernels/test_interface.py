"""Kernels of series and strings: parameters, prepared samples, errors, calls inside a fit."""

from __future__ import annotations

import copy
import pickle
import signal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from helpers import interruption
from helpers.interruption import posix
from svmarrow import SVC
from svmarrow.kernels import GlobalAlignment, PreparedObjects, Subsequence

SERIES = [np.zeros(3), np.ones((5, 1)), [0.5, 1.5]]
STRINGS = ["cat", "cart", "bart"]
SAMPLES = [(GlobalAlignment(2.0, band=4), SERIES), (Subsequence(2, 0.7), STRINGS)]


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in SAMPLES])
def test_kernels_are_values(kernel):
    same = pickle.loads(pickle.dumps(kernel))
    assert same == kernel == copy.deepcopy(kernel)
    assert hash(same) == hash(kernel)
    assert eval(repr(kernel)) == kernel
    assert kernel != type(kernel)()
    with pytest.raises(AttributeError):
        kernel.n_jobs = 2
    assert clone(SVC(kernel=kernel)).kernel == kernel


def test_kernels_that_differ_by_threads_are_equal():
    assert GlobalAlignment(1, n_jobs=2) == GlobalAlignment(1.0)
    assert repr(GlobalAlignment(np.float64(2.0), 3)) == "GlobalAlignment(sigma=2.0, band=3.0, n_jobs=None)"


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (GlobalAlignment, {"sigma": 0.0}, "sigma=0.0 is not allowed"),
        (GlobalAlignment, {"sigma": "1"}, "sigma='1' is not allowed"),
        (GlobalAlignment, {"band": 0}, "band=0 is not allowed"),
        (GlobalAlignment, {"band": np.inf}, "band=inf is not allowed"),
        (GlobalAlignment, {"n_jobs": 0}, "n_jobs=0 is not allowed"),
        (Subsequence, {"length": 0}, "length=0 is not allowed"),
        (Subsequence, {"length": 2.0}, "length=2.0 is not allowed"),
        (Subsequence, {"decay": 0.0}, "decay=0.0 is not allowed"),
        (Subsequence, {"decay": 1.1}, "decay=1.1 is not allowed"),
    ],
)
def test_parameters_are_checked(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        kind(**parameters)


@pytest.mark.parametrize(("kernel", "samples"), SAMPLES)
def test_prepared_samples(kernel, samples):
    values = kernel(samples, samples)
    block = kernel.prepare(samples)
    assert isinstance(block, PreparedObjects)
    assert (len(block), block.shape, block.kernel) == (3, (3, 1), kernel)
    assert kernel.prepare(block) is block
    np.testing.assert_array_equal(kernel(block, block), values)
    np.testing.assert_array_equal(kernel(block, samples), values)
    np.testing.assert_array_equal(kernel.diagonal(block), np.diagonal(values))
    restored = pickle.loads(pickle.dumps(block[1:]))
    np.testing.assert_array_equal(kernel(restored, block), values[1:])
    for key in (slice(None, None, 2), [2, 0], np.array([True, False, True]), -1, []):
        chosen = block[key]
        expected = values[np.atleast_1d(np.arange(3)[key])]
        np.testing.assert_array_equal(kernel(chosen, block), expected)
    with pytest.raises(IndexError):
        block[3]
    with pytest.raises(IndexError):
        block[np.newaxis]
    with pytest.raises(ValueError, match="must be prepared by"):
        type(kernel)().prepare(block)


@pytest.mark.parametrize(("kernel", "samples"), SAMPLES)
def test_no_samples(kernel, samples):
    assert kernel([], samples).shape == (0, 3)
    assert kernel(samples, kernel.prepare([])).shape == (3, 0)
    assert kernel([], []).shape == (0, 0)
    assert kernel.diagonal([]).shape == (0,)
    assert len(pickle.loads(pickle.dumps(kernel.prepare([])))) == 0


def test_short_strings_have_the_value_zero():
    kernel = Subsequence(3)
    np.testing.assert_array_equal(kernel.diagonal(["", "ab", "abc"]), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(kernel(["", "ab"], ["ab", "abc"]), np.zeros((2, 2)))


def test_lengths_that_differ_by_the_band_have_the_value_zero():
    kernel = GlobalAlignment(1.0, band=2)
    values = kernel([np.zeros(5)], [np.zeros(n) for n in range(1, 9)])[0]
    np.testing.assert_array_equal(values > 0.0, np.abs(np.arange(1, 9) - 5) < 2)


def test_data_frames_of_one_column():
    frame = pd.DataFrame({"text": STRINGS})
    expected = Subsequence(2)(STRINGS, STRINGS)
    np.testing.assert_array_equal(Subsequence(2)(frame, frame["text"]), expected)


@pytest.mark.parametrize(
    ("A", "error", "message"),
    [
        ([np.zeros(2), [1.0, np.nan]], ValueError, r"A\[1\] has NaN or infinity"),
        (np.array([[0.0, 1.0], [np.inf, 0.0]]), ValueError, r"A\[1\] has NaN or infinity"),
        ([np.zeros(2), []], ValueError, r"A\[1\] has shape \(0,\): series must not be empty"),
        (np.zeros((3, 0, 2)), ValueError, "series must not be empty"),
        ([np.zeros((2, 2)), np.zeros(3)], ValueError, r"A\[1\] has 1 features and A\[0\] has 2"),
        ([np.zeros((2, 2, 2))], ValueError, r"A\[0\] has shape \(2, 2, 2\)"),
        ([np.zeros(2), 1.0], TypeError, r"A\[1\] is of type float"),
        ([np.zeros(2), "series"], TypeError, r"A\[1\] is of type str"),
        ([np.zeros(2), [[1.0], [1.0, 2.0]]], TypeError, r"A\[1\] is no array"),
        (np.empty((2, 3), dtype=object), ValueError, r"A has shape \(2, 3\)"),
        (3.0, TypeError, "A is of type float"),
        ("series", TypeError, "A is of type str"),
    ],
)
def test_faults_of_series(A, error, message):
    with pytest.raises(error, match=message):
        GlobalAlignment().prepare(A)


@pytest.mark.parametrize(
    ("A", "error", "message"),
    [
        ("cat", TypeError, "A is of type str: it must be a list of strings"),
        (["cat", b"car"], TypeError, r"A\[1\] is of type bytes and A\[0\] of type str"),
        (["cat", None], TypeError, r"A\[1\] is of type NoneType"),
        ([(1, 2), (1.5, 2)], TypeError, r"A\[1\] has shape \(2,\) and items of type float64"),
        ([[[1, 2]]], TypeError, r"A\[0\] has shape \(1, 2\)"),
        ([np.array([2**63], dtype=np.uint64)], ValueError, "below 2"),
    ],
)
def test_faults_of_strings(A, error, message):
    with pytest.raises(error, match=message):
        Subsequence().prepare(A)


def test_blocks_that_do_not_fit():
    with pytest.raises(TypeError, match="A has str and B has bytes"):
        Subsequence()(["cat"], [b"cat"])
    with pytest.raises(ValueError, match="features"):
        GlobalAlignment()([np.zeros((3, 2))], [np.zeros(3)])
    with pytest.raises(ValueError, match="exceeds the range"):
        Subsequence(400, decay=1.0)(["a" * 4000], ["b"])


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_a_call_inside_a_fit(n_jobs):
    """The solver calls the function on its threads, and each call starts threads of its own."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=90)
    X = np.sin(np.linspace(0.0, 6.0, 80) * (1 + y[:, np.newaxis])) + 0.3 * rng.normal(size=(90, 80))
    kernel = GlobalAlignment(4.0, n_jobs=2)
    fitted = SVC(kernel=lambda A, B: kernel(A, B), n_jobs=n_jobs).fit(X, y)
    precomputed = SVC(kernel="precomputed", n_jobs=n_jobs).fit(kernel(X, X), y)
    np.testing.assert_array_equal(fitted.support_, precomputed.support_)
    np.testing.assert_allclose(
        fitted.decision_function(X), precomputed.decision_function(kernel(X, X)), atol=1e-9
    )


_SETUP = """
import numpy as np
from svmarrow import SVC
from svmarrow.kernels import GlobalAlignment, Subsequence

rng = np.random.default_rng(0)
after = lambda: None
"""


@posix
@pytest.mark.parametrize(
    "work",
    [
        "A = rng.normal(size=(50, 20_000)); work = lambda: GlobalAlignment(9.0)(A, A)",
        "A = rng.integers(0, 9, size=(2, 400_000)); work = lambda: Subsequence(4)(A, A)",
    ],
    ids=["series", "strings"],
)
def test_ctrl_c_during_a_call(work):
    interruption.stops_at_once(_SETUP + work)


@posix
def test_ctrl_c_during_a_call_inside_a_fit():
    """Signals reach the thread that started the fit, not the one that calls the kernel for minutes."""
    interruption.stops_at_once(
        _SETUP
        + """
A, y = rng.normal(size=(200, 5_000)), np.arange(200) % 2
kernel = GlobalAlignment(9.0, n_jobs=2)
work = lambda: SVC(kernel=lambda A, B: kernel(A, B), n_jobs=2).fit(A, y)
"""
    )


@posix
def test_the_exception_of_a_signal_ends_a_call_inside_a_fit():
    class AlarmError(Exception):
        pass

    def ring(*_):
        raise AlarmError

    A, y = np.random.default_rng(0).normal(size=(200, 5_000)), np.arange(200) % 2
    kernel = GlobalAlignment(9.0, n_jobs=2)
    model = SVC(kernel=lambda A, B: kernel(A, B), n_jobs=2)
    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(AlarmError):
            model.fit(A, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
