"""Kernel values of series and strings against naive programs in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from svmarrow.kernels import GlobalAlignment, Subsequence


def alignment(x, y, sigma, band=None):
    """The logarithm of the sum over all alignments, cell by cell."""
    x, y = (np.reshape(series, (len(series), -1)).astype(float) for series in (x, y))
    table = np.full((len(x) + 1, len(y) + 1), -np.inf)
    table[0, 0] = 0.0
    for i, j in itertools.product(range(1, len(x) + 1), range(1, len(y) + 1)):
        weight = 1.0 if band is None else max(0.0, 1.0 - abs(i - j) / band)
        if weight > 0.0:
            g = np.log(weight) - np.sum((x[i - 1] - y[j - 1]) ** 2) / (2.0 * sigma**2)
            before = np.logaddexp.reduce([table[i - 1, j], table[i, j - 1], table[i - 1, j - 1]])
            table[i, j] = g - np.log(2.0 - np.exp(g)) + before
    return table[-1, -1]


def subsequences(s, t, length, decay):
    """The recursion of Lodhi and others, table by table."""
    below = np.ones((len(s) + 1, len(t) + 1))
    for _ in range(1, length):
        table = np.zeros_like(below)
        for i in range(1, len(s) + 1):
            second = 0.0
            for j in range(1, len(t) + 1):
                second = decay * second + (s[i - 1] == t[j - 1]) * decay**2 * below[i - 1, j - 1]
                table[i, j] = decay * table[i - 1, j] + second
        below = table
    matches = [(i, j) for i in range(len(s)) for j in range(len(t)) if s[i] == t[j]]
    return sum(decay**2 * below[place] for place in matches)


def series_of(rng, features):
    lengths = [1, 2, 7, 30, 31, 64]
    return [rng.normal(size=(n, features)).cumsum(axis=0) for n in lengths]


@pytest.mark.parametrize("features", [1, 3, 17])
@pytest.mark.parametrize(("sigma", "band"), [(0.1, None), (2.0, None), (50.0, None), (2.0, 12.5), (1.0, 1)])
def test_alignments(features, sigma, band):
    series = series_of(np.random.default_rng(features), features)
    logarithms = np.array([[alignment(x, y, sigma, band) for x in series] for y in series])
    halves = 0.5 * np.diagonal(logarithms)
    expected = np.exp(logarithms - halves - halves[:, np.newaxis])
    values = GlobalAlignment(sigma, band)(series, series)
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(values, values.T)
    np.testing.assert_array_equal(np.diagonal(values), 1.0)
    assert np.linalg.eigvalsh(values)[0] > -1e-10


@pytest.mark.parametrize(("length", "decay"), [(1, 0.5), (2, 1.0), (3, 0.5), (6, 0.9)])
def test_subsequences(length, decay):
    rng = np.random.default_rng(length)
    strings = ["".join(rng.choice(list("abcä𝄞"), size=n)) for n in (0, 2, 6, 9, 40, 41)]
    raw = np.array([[subsequences(s, t, length, decay) for s in strings] for t in strings])
    scale = np.sqrt(np.diagonal(raw))
    expected = np.divide(raw, scale * scale[:, np.newaxis], out=np.zeros_like(raw), where=raw > 0.0)
    values = Subsequence(length, decay)(strings, strings)
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=1e-13)
    np.testing.assert_array_equal(values, values.T)
    np.testing.assert_array_equal(np.diagonal(values), np.diagonal(raw) > 0.0)
    assert np.linalg.eigvalsh(values)[0] > -1e-10


def test_long_series_are_finite():
    rng = np.random.default_rng(0)
    series = [np.sin(np.arange(10_000) / 50.0) + 0.1 * rng.normal(size=10_000) for _ in range(2)]
    series.append(series[0] + 1e-3)
    for sigma in (0.01, 1.0, 100.0):
        values = GlobalAlignment(sigma, band=400)(series[:1], series)[0]
        assert np.isfinite(values).all()
        assert values[0] == 1.0
        assert 0.0 <= values[1] < values[2] < 1.0


@pytest.mark.parametrize("kernel", [GlobalAlignment(0.7), GlobalAlignment(3.0, band=20), Subsequence(3, 0.8)])
def test_values_depend_on_the_pair_alone(kernel):
    """The bits are those of single pairs, for any number of threads, block and order."""
    rng = np.random.default_rng(3)
    if isinstance(kernel, Subsequence):
        samples = [rng.integers(0, 4, size=n) for n in rng.integers(0, 90, size=60)]
    else:
        samples = [rng.normal(size=(n, 2)) for n in rng.integers(1, 90, size=60)]
    values = kernel(samples, samples)
    np.testing.assert_array_equal(values, values.T)
    for n_jobs in (1, 2, 5):
        other = type(kernel)(*[getattr(kernel, name) for name in list(vars(kernel))[:2]], n_jobs=n_jobs)
        np.testing.assert_array_equal(other(samples, list(samples)), values)
    pairs = [[kernel([x], [y])[0, 0] for y in samples[:20]] for x in samples[:20]]
    np.testing.assert_array_equal(pairs, values[:20, :20])
    block = kernel.prepare(samples)
    np.testing.assert_array_equal(kernel(block[::-3], block[5:9]), values[::-3, 5:9])


def test_forms_of_strings_agree():
    texts = ["gattaca", "tacgattc", "aattgg"]
    values = Subsequence(2)(texts, texts)
    for form in (
        [text.encode() for text in texts],
        [tuple(map(ord, text)) for text in texts],
        [np.array([ord(c) for c in text], dtype=np.uint8) for text in texts],
        np.array(texts),
        np.array(texts, dtype=object)[:, np.newaxis],
    ):
        np.testing.assert_array_equal(Subsequence(2)(form, form), values)


def test_forms_of_series_agree():
    X = np.random.default_rng(0).normal(size=(5, 12))
    values = GlobalAlignment()(X, X)
    objects = np.empty((5, 1), dtype=object)
    for i in range(5):
        objects[i, 0] = X[i]
    for form in (X[:, :, np.newaxis], list(X), X.tolist(), objects, objects.ravel(), np.asfortranarray(X)):
        np.testing.assert_array_equal(GlobalAlignment()(form, form), values)
    single = X.astype(np.float32)
    np.testing.assert_allclose(GlobalAlignment()(list(single), X), values, atol=1e-6)
