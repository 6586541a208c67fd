"""The choice of a size: by loss, agreement and bytes; the time of a prediction."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import isotonic_regression

from svmarrow import SVC, SVR, compression_path
from svmarrow.reduced_set import path
from svmarrow.reduced_set.holdout import HoldoutEvaluator, sizes_to_search


def test_choosing_the_size(diabetes, iris):
    X, y = diabetes
    model = SVR(C=5, gamma=0.02).fit(X[:300], y[:300])
    path = compression_path(model, n_vectors=80)
    held = X[300:], y[300:]
    r2, mse = path.scores(*held), path.scores(*held, scoring="neg_mean_squared_error")
    np.testing.assert_allclose(mse, -(1 - r2) * held[1].var())
    chosen = path.select(*held, max_loss=0.02)
    size = chosen.expansion_.n_vectors
    full = path.full_score(*held)
    looked = sizes_to_search(path.sizes)

    def safe_losses(y, scoring=None):
        evaluator = HoldoutEvaluator(path.model, held[0], y, scoring)
        found = [evaluator.safe_loss(one) for _, one in evaluator.levels(path._outputs, looked)]
        return isotonic_regression(found).x

    # Losses out of order are averaged, from the largest size on until one is too large beyond doubt.
    losses = safe_losses(held[1])
    assert (losses[np.array(looked) >= size] <= 0.02).all()
    assert losses[np.array(looked) < size][0] > 0.02
    assert r2[size - 1] >= full - 0.02
    worst = float(safe_losses(held[1], "neg_mean_squared_error")[looked.index(size)])
    assert (
        path.select(*held, max_loss=worst + 1e-9, scoring="neg_mean_squared_error").expansion_.n_vectors
        <= size
    )
    agreement = path.agreement(held[0])
    agreed = path.select(held[0], min_agreement=0.95).expansion_.n_vectors
    losses = safe_losses(None)
    assert (losses[np.array(looked) >= agreed] <= 0.05).all()
    assert losses[np.array(looked) < agreed][0] > 0.05
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
    agreed = labels.select(Xi[100:], min_agreement=0.9).expansion_.n_vectors
    assert share[agreed - 1] >= 0.9


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


class Clock:
    """Time that passes only where it is said to."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


def test_the_time_of_a_row_is_the_median_of_three_measurements(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(path, "time", clock)
    calls = []

    def predict(rows):
        calls.append(len(rows))
        clock.now += 1e-6 * len(rows) * (10.0 if len(calls) == 3 else 2.0)

    # The first of the three is slow.
    assert path.microseconds_per_row(predict, np.zeros((5000, 1))) == pytest.approx(2.0)
    assert set(calls) == {path.MAX_TIMED_SAMPLES}


def test_the_time_of_a_size_is_measured(iris):
    X, y = iris
    path = compression_path(SVC(gamma=0.3).fit(X, y), n_vectors=6, n_jobs=1)
    assert path.microseconds(X, 6) > 0


def test_goals_that_make_no_sense(iris):
    X, y = iris
    path = compression_path(SVC(gamma=0.3).fit(X, y), n_vectors=10)
    with pytest.raises(ValueError, match="max_loss needs X and y"):
        path.select(X, max_loss=0.1)
    with pytest.raises(ValueError, match="min_agreement needs X"):
        path.select(min_agreement=0.5)
    with pytest.raises(ValueError, match="min_agreement=2"):
        path.select(X, min_agreement=2)
    with pytest.raises(ValueError, match="scoring='neg_mean_squared_error'"):
        path.scores(X, y, scoring="neg_mean_squared_error")
    with pytest.raises(ValueError, match="max_loss needs X and y"):
        path.select()
