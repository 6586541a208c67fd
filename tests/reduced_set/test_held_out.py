"""The samples that `compress` holds out: half of each class, drawn by random_state."""

from __future__ import annotations

import numpy as np
import pytest

from svmarrow import SVC, SVR, compress, distil
from svmarrow.distillation import DistillationSettings, imitation
from svmarrow.reduced_set import compression, holdout
from svmarrow.reduced_set.holdout import Samples, split_samples

X = np.random.default_rng(0).normal(size=(400, 2))
RARE = np.where(np.arange(400) < 8, "rare", np.where(X[:, 0] > 0.0, "right", "left"))

QUICK = DistillationSettings(steps=20, n_drawn=0)


def split(y, random_state=None, *, classes=True, X=X):
    rows = np.arange(len(X))
    learn, held = split_samples(
        Samples(rows, y),
        None,
        hold_out=True,
        labels=(lambda: y) if classes else None,
        random_state=random_state,
    )
    assert np.array_equal(np.sort(np.r_[learn.X, held.X]), rows)
    return held.X


@pytest.mark.parametrize("seed", [None, *range(20)])
def test_half_of_each_class_is_held_out(seed):
    held = split(RARE, seed)
    for label in np.unique(RARE):
        assert abs(np.sum(RARE[held] == label) - np.sum(label == RARE) / 2) <= 1
    assert held.size == 200
    mixed = np.where(RARE == "rare", None, RARE).astype(object)
    mixed[mixed == "left"] = 3
    assert 3 <= np.sum(mixed[split(mixed, seed)] == None) <= 5  # noqa: E711 - elementwise


def test_a_class_is_held_out_by_its_share_of_many_samples(monkeypatch):
    monkeypatch.setattr(holdout, "MAX_HOLDOUT_SAMPLES", 100)
    held = split(RARE)
    assert held.size == 100
    assert np.sum(RARE[held] == "rare") == 2


def test_the_seed_draws_the_samples():
    assert np.array_equal(split(RARE), split(RARE))
    assert np.array_equal(split(RARE, 5), split(RARE, 5))
    assert not np.array_equal(split(RARE, 5), split(RARE, 6))
    random = np.random.RandomState(0)
    assert not np.array_equal(split(RARE, random), split(RARE, random))
    targets = X[:, 0]
    assert not np.array_equal(split(targets, 1, classes=False), split(targets, 2, classes=False))


def watched(monkeypatch):
    """The parts that `compress` and `distil` hold out, as they do."""
    held = []
    inner = compression.split_samples

    def split(samples, *args, **options):
        parts = inner(samples, *args, **options)
        held.append(parts[1])
        return parts

    for module in (compression, imitation):
        monkeypatch.setattr(module, "split_samples", split)
    return held


def test_the_seed_is_passed(monkeypatch):
    held = watched(monkeypatch)
    svc, svr = SVC().fit(X, RARE), SVR().fit(X, X[:, 0])
    for seed in (None, None, 1, 2):
        compress(svc, X, RARE, method="backfit", random_state=seed)
        compress(svr, X, X[:, 0], method="backfit", random_state=seed)
        distil(
            lambda rows: rows[:, 0] > 0.0, X, RARE == "right", n_vectors=3, settings=QUICK, random_state=seed
        )
    for kind in range(3):
        first, second, third, fourth = (one.X for one in held[kind::3])
        assert np.array_equal(first, second)
        assert not np.array_equal(third, fourth)
    assert all(3 <= np.sum(one.y == "rare") <= 5 for one in held[0::3])


@pytest.mark.parametrize("seed", range(3))
def test_without_labels_half_of_each_class_of_the_answers_is_held_out(monkeypatch, seed):
    held = watched(monkeypatch)
    # Eight samples far from the others are the second class.
    far = np.where(np.arange(400)[:, None] < 8, X + 20.0, X)
    svc = SVC(gamma=0.1).fit(far, np.arange(400) < 8)
    assert svc.predict(far).sum() == 8

    def is_far(rows):
        return rows[:, 0] + rows[:, 1] > 20.0

    # Labels that are unlike the answers are not read.
    other = np.arange(400) % 2 == 0
    for y in (None, other):
        compress(svc, far, y, min_agreement=0.9, method="backfit", random_state=seed)
        distil(is_far, far, y, min_agreement=0.1, settings=QUICK, random_state=seed)
    compress(svc, far, n_vectors=3, random_state=seed)
    distil(is_far, far, n_vectors=3, settings=QUICK, random_state=seed)
    assert len(held) == 6
    assert [int(is_far(part.X).sum()) for part in held] == [4] * 6
