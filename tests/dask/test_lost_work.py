"""A worker dies in the middle of a fit: the same bits, or an error that names what is lost."""

from __future__ import annotations

import os
import signal

import dask.array as da
import numpy as np
import pytest
from sklearn.datasets import make_moons

from svmarrow.dask import (
    DaskLowRankRLSClassifier,
    DaskLowRankSVC,
    DaskSVC,
    predict,
)
from svmarrow.dask import least_squares as additive
from svmarrow.dask.rounds import Rounds


@pytest.fixture
def rows(lazy):
    return lazy(150, *make_moons(900, noise=0.25, random_state=3))


@pytest.fixture
def scheduler(mortal):
    """Where it stands how many workers a task may take along."""
    found = mortal.cluster.scheduler
    before = found.allowed_failures
    yield found
    found.allowed_failures = before


@pytest.mark.quick_every(5)
@pytest.mark.parametrize(
    ("model", "persisted"),
    [(DaskSVC(C=10.0), True), (DaskSVC(C=10.0), False), (DaskLowRankSVC(40, random_state=0), True)],
    ids=repr,
)
def test_in_the_middle_of_the_rounds(mortal, rows, kill, monkeypatch, model, persisted):
    if persisted:
        rows = mortal.persist(rows)
    expected = model.fit(*rows)
    expansion, certificate = expected.expansion_, expected.certificate_
    tell, told = Rounds._report_round, []

    def tell_and_kill(rounds):
        tell(rounds)
        told.append(len(rounds.log))
        if told == [1]:
            kill()

    monkeypatch.setattr(Rounds, "_report_round", tell_and_kill)
    model.fit(*rows)
    assert len(told) > 1
    assert model.expansion_ == expansion
    assert model.certificate_.machines == certificate.machines


@pytest.mark.exhaustive
def test_between_the_points_and_the_sums(mortal, rows, kill, monkeypatch):
    rows = mortal.persist(rows)
    model = DaskLowRankRLSClassifier(40, random_state=0)
    expected = model.fit(*rows).expansion_
    choose = additive.choose_distributed_points

    def choose_and_kill(*arguments):
        chosen = choose(*arguments)
        kill()
        return chosen

    monkeypatch.setattr(additive, "choose_distributed_points", choose_and_kill)
    assert model.fit(*rows).expansion_ == expected


def test_in_the_middle_of_a_sum_and_of_a_machine(mortal, rows, tmp_path):
    X, y = rows

    def deadly(block, block_info=None, folder=tmp_path):
        # The first who comes to the fourth partition again, after it has been summarised, dies.
        if block_info[None]["chunk-location"][0] == 3:
            if (folder / "seen").exists() and not (folder / "died").exists():
                (folder / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            (folder / "seen").touch()
        return block

    bad = X.map_blocks(deadly, dtype=float, meta=np.empty((0, 2)))
    for model in (DaskLowRankRLSClassifier(40, random_state=0),):
        expected = model.fit(X, y).expansion_
        for left in tmp_path.iterdir():
            left.unlink()
        assert model.fit(bad, y).expansion_ == expected
        assert (tmp_path / "died").exists()


@pytest.mark.quick_every(3)
@pytest.mark.parametrize(
    "model",
    [DaskSVC(), DaskLowRankRLSClassifier(20), DaskLowRankSVC(20)],
    ids=repr,
)
def test_a_partition_that_kills_everyone_is_named(scheduler, rows, model):
    scheduler.allowed_failures = 0

    def deadly(block, block_info=None):
        if block_info[None]["chunk-location"][0] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    bad = rows[0].map_blocks(deadly, dtype=float, meta=np.empty((0, 2)))
    with pytest.raises(RuntimeError, match=r"the rows of partition .*2.* could not be computed: the workers"):
        model.fit(bad, rows[1])
    assert not hasattr(model, "expansion_")


def test_scattered_rows_are_gone_with_their_worker(mortal, kill, monkeypatch):
    X, y = make_moons(600, noise=0.25, random_state=3)
    held = [mortal.scatter(X[first : first + 150]) for first in range(0, 600, 150)]
    rows = da.concatenate([da.from_delayed(each, (150, 2), float) for each in held])
    labels = da.from_array(y, chunks=150)
    tell = Rounds._report_round

    def tell_and_kill(rounds):
        tell(rounds)
        if len(rounds.log) == 1:
            kill(everyone=True)

    monkeypatch.setattr(Rounds, "_report_round", tell_and_kill)
    model = DaskSVC(C=10.0)
    with pytest.raises(RuntimeError, match="cannot be computed again: scattered data"):
        model.fit(rows, labels)
    assert not hasattr(model, "expansion_")


def test_prediction_survives_a_lost_worker(mortal, rows, kill, tmp_path):
    model = DaskSVC().fit(*rows)
    labels = predict(model, mortal.persist(rows[0]))
    expected = labels.compute()
    kill()
    np.testing.assert_array_equal(labels.compute(), expected)

    def deadly(block, block_info=None, died=tmp_path / "died"):
        # In the middle of it, with the fourth partition.
        if block_info[None]["chunk-location"][0] == 3 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    bad = rows[0].map_blocks(deadly, dtype=float, meta=np.empty((0, 2)))
    np.testing.assert_array_equal(predict(model, bad).compute(), expected)
    assert (tmp_path / "died").exists()
