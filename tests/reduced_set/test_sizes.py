"""The choice of a size: by loss, agreement, bytes and time."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import isotonic_regression

from svmarrow import SVC, SVR, compression_path
from svmarrow.reduced_set import CompressionPath, cost
from svmarrow.reduced_set.judge import sizes_to_look_at


def test_choosing_the_size(diabetes, iris):
    X, y = diabetes
    model = SVR(C=5, gamma=0.02).fit(X[:300], y[:300])
    path = compression_path(model, n_vectors=80)
    held = X[300:], y[300:]
    r2, mse = path.scores(*held), path.scores(*held, scoring="mse")
    np.testing.assert_allclose(mse, -(1 - r2) * held[1].var())
    chosen = path.select(*held, max_loss=0.02)
    size = chosen.expansion_.n_vectors
    full = path.full_score(*held)
    looked = np.array(sizes_to_look_at(path.sizes))
    # Losses out of order are averaged, from the largest size on until one is too large beyond doubt.
    losses = isotonic_regression(full - r2[looked - 1]).x
    assert (losses[looked >= size] <= 0.02).all()
    assert losses[looked < size][0] > 0.02
    assert r2[size - 1] >= full - 0.02
    worst = float((path.full_score(*held, scoring="mse") - mse[looked[looked >= size] - 1]).max())
    assert path.select(*held, max_loss=max(worst, 0) + 1e-9, scoring="mse").expansion_.n_vectors <= size
    agreement = path.agreement(held[0])
    agreed = path.select(held[0], min_agreement=0.95).expansion_.n_vectors
    lost = isotonic_regression(1 - agreement[looked - 1]).x
    assert (lost[looked >= agreed] <= 0.05).all()
    assert lost[looked < agreed][0] > 0.05
    outputs = model.predict(held[0])
    plain = 1 - ((path[5].predict(held[0]) - outputs) ** 2).sum() / ((outputs - outputs.mean()) ** 2).sum()
    assert agreement[4] == pytest.approx(plain)

    Xi, yi = iris
    labels = compression_path(
        SVC(C=5, gamma=0.3).fit(Xi[:100], yi[:100]), n_vectors=30, X=Xi[:100], y=yi[:100]
    )
    share = labels.agreement(Xi[100:])
    full_labels = labels.model.predict(Xi[100:])
    assert share[9] == (labels[10].predict(Xi[100:]) == full_labels).mean()
    both = labels.select(Xi[100:], yi[100:], 0.05, min_agreement=0.9).expansion_.n_vectors
    assert share[both - 1] >= 0.9


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array])
def test_sizes_by_bytes(iris, form):
    X, y = iris
    X = form(X)
    path = compression_path(SVC(C=5, gamma=0.3).fit(X, y), n_vectors=30)
    for size in path.sizes:
        assert path.nbytes(size) == path[size].expansion_.nbytes
    most = path.nbytes(12) + 3
    assert path.select(max_bytes=most).expansion_.n_vectors == 12
    best = path.select(X, y, max_bytes=most).expansion_.n_vectors
    assert path.scores(X, y)[best - 1] == path.scores(X, y)[:12].max()
    with pytest.raises(ValueError, match="max_bytes=10 is less than 1 vectors need"):
        path.select(max_bytes=10)
    with pytest.raises(ValueError, match=r"max_loss=0 is not reached.*within max_bytes"):
        path.select(X, y, 0.0, max_bytes=path.nbytes(1))


class Clock:
    """Time that passes only where it is said to."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


def test_the_time_of_a_row_is_the_median_of_three_measurements(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(cost, "time", clock)
    calls = []

    def predict(rows):
        calls.append(len(rows))
        clock.now += 1e-6 * len(rows) * (10.0 if len(calls) == 3 else 2.0)

    # The first of the three is slow.
    assert cost.microseconds_per_row(predict, np.zeros((5000, 1))) == pytest.approx(2.0)
    assert set(calls) == {cost.ROWS}


def test_sizes_by_time(rng, monkeypatch):
    X = rng.normal(size=(3000, 40))
    y = X[:, 0] * X[:, 1] > 0
    path = compression_path(SVC(C=10, gamma=0.02).fit(X, y), n_vectors=600, n_jobs=1)
    assert path.microseconds(X, 6) > 0
    # A machine that is always equally fast.
    monkeypatch.setattr(CompressionPath, "microseconds", lambda *given: 1.5 + 0.02 * given[-1])
    assert path.select(X, max_microseconds=3.5).expansion_.n_vectors == 100
    assert path.select(X, max_microseconds=100).expansion_.n_vectors == 600
    limited = path.select(X, max_bytes=path.nbytes(50), max_microseconds=3.5)
    assert limited.expansion_.n_vectors == 50
    with pytest.raises(ValueError, match=r"max_microseconds=1\.5 is not reached"):
        path.select(X, max_microseconds=1.5)


def test_the_line_through_measured_times():
    line = cost.TimeModel.fit([1, 10, 100], [1.5 + 0.02 * size for size in (1, 10, 100)])
    assert (line.fixed, line.per_vector) == pytest.approx((1.5, 0.02))
    assert line.largest_error < 1e-9
    size, _ = cost.largest_within(2.5, 200, lambda size: 1.5 + 0.02 * size)
    assert size == 50
    # A line that promises too much is corrected by measuring.
    size, _ = cost.largest_within(2.5, 200, lambda size: 1.5 + 0.02 * size + (0.3 if size > 30 else 0))
    assert 1.5 + 0.02 * size + (0.3 if size > 30 else 0) <= 2.5
    assert cost.largest_within(1.0, 200, lambda size: 1.5 + 0.02 * size)[0] == 0
    constant = cost.TimeModel.fit([1, 2], [3.0, 2.0])
    assert constant.per_vector == 0.0


def test_demands_that_make_no_sense(iris):
    X, y = iris
    path = compression_path(SVC(gamma=0.3).fit(X, y), n_vectors=10)
    with pytest.raises(ValueError, match="max_loss needs X and y"):
        path.select(X, max_loss=0.1)
    with pytest.raises(ValueError, match="min_agreement needs X"):
        path.select(min_agreement=0.5)
    with pytest.raises(ValueError, match="min_agreement=2"):
        path.select(X, min_agreement=2)
    with pytest.raises(ValueError, match="scoring='mse'"):
        path.scores(X, y, scoring="mse")
    with pytest.raises(ValueError, match="max_loss needs X and y"):
        path.select()
