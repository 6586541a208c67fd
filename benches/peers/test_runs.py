"""The suites themselves, on a few rows and on engines whose times are made up."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import growth
import latency
import numpy as np
import pytest
import run
import worker
from cells import LEFT_OUT, Cell
from process import Settings

SIZES = [100, 200, 400, 800]


class QuadraticPeer:
    """Stands in for `Comparison`: the peer takes (n / 100)^2 s, svmarrow n / 100 s."""

    def __init__(self, workload: dict[str, Any], engines: list[str], settings: Settings) -> None:
        self.workload, self.engines, self.settings = workload, engines, settings

    def run(self) -> list[Cell]:
        """One cell an engine."""
        assert self.settings.limit is not None
        scale = self.settings.limit / 100
        return [
            Cell(
                self.workload["name"], name, fit_seconds=[scale if name.startswith("svmarrow") else scale**2]
            )
            for name in self.engines
        ]


def grown(monkeypatch: pytest.MonkeyPatch, timeout: float | None) -> list[growth.Series]:
    """The growth suite on the made-up engines."""
    monkeypatch.setattr(growth, "Comparison", QuadraticPeer)
    engines = ["sklearn", "svmarrow-f32"]
    return growth.run({"name": "blobs"}, engines, SIZES, Settings(timeout=timeout), test=10)


def test_growth_exponents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known powers come back."""
    peer, ours = grown(monkeypatch, None)
    assert peer.exponent() == pytest.approx(2.0)
    assert ours.exponent() == pytest.approx(1.0)
    assert ours.expected(1600) == pytest.approx(16.0)


def test_growth_leaves_out_what_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer stops at the size expected to be over time, svmarrow goes on, both share three sizes."""
    peer, ours = group = grown(monkeypatch, 30.0)
    assert list(peer.seconds) == SIZES[:3]
    assert "expected 64 s, over 30" in peer.missing[800]
    assert list(ours.seconds) == SIZES
    rows = growth.lines(group, SIZES)
    assert [row[-2:] for row in rows] == [["2.00", "2.00"], ["1.00", "1.00"]]
    assert rows[0][5] == "-"
    assert growth.left_out(group) == ["blobs: sklearn has no time at 800 rows: expected 64 s, over 30"]
    assert all(len(row) == len(growth.headings(SIZES)) for row in rows)


def test_latency_of_a_known_call() -> None:
    """A sleep of 2 ms is at least 2 ms and not 20."""
    assert 0.002 <= latency.seconds_a_call(lambda: time.sleep(0.002), 0.004) < 0.02


def test_latency_contestants_are_one_machine() -> None:
    """The bare expansion, the module's and both estimators decide alike."""
    calls = latency.contestants(50, 20, np.float64)
    rows = np.random.default_rng(3).standard_normal((200, 20)) / 4
    values = np.asarray(calls[latency.BARE](rows)).ravel()
    core = next(call for name, call in calls.items() if name.startswith("_core"))
    np.testing.assert_array_equal(np.asarray(core(rows)).ravel(), values)
    clear = np.abs(values) > 1e-3
    for name in ("SVC.predict", "scikit-learn SVC.predict"):
        predicted = np.asarray(calls[name](rows))
        np.testing.assert_array_equal(predicted[clear], (values > 0.0)[clear])


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak")
def test_peak_memory_is_forgotten_and_found_again() -> None:
    """128 MB that came and went are in the high-water mark until it is set back."""
    size = 1 << 27
    np.ones(size, dtype=np.uint8).sum()
    before = worker.memory_bytes()
    worker.forget_peak()
    assert worker.memory_bytes() < before - size // 2


def test_comparison_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Real processes on the bundled digits: a checked solution, its bound, its memory, all in the file."""
    file = tmp_path / "out.json"
    arguments = ["--quick", "--workloads", "digits", "--engines", "sklearn,svmarrow-f32", "--json", str(file)]
    assert run.main([*arguments, "--cache", "50"]) == 0
    reference, ours = (Cell(**entry) for entry in json.loads(file.read_text())["comparison"])
    assert reference.reference
    assert ours.checked
    assert ours.trusted
    assert ours.bound_seconds[0] > 0.0
    assert ours.cache_bytes == 50 * 2**20
    assert ours.data_bytes == 600 * 64 * 4 + 600 * 8
    assert ours.memory_share is not None
    assert 0.0 < ours.memory_share <= 1.0
    assert "geometric mean of 1" in capsys.readouterr().out


def test_a_pair_can_be_left_out(tmp_path: Path) -> None:
    """Without any peer there is nothing to check against, and the file says that it was left out."""
    file = tmp_path / "out.json"
    arguments = ["--quick", "--workloads", "digits", "--engines", "svmarrow-f32", "--json", str(file)]
    assert run.main([*arguments, "--skip", "sklearn:digits"]) == 0
    peer, ours = (Cell(**entry) for entry in json.loads(file.read_text())["comparison"])
    assert (peer.engine, peer.note, peer.fit_seconds) == ("sklearn", LEFT_OUT, [])
    assert ours.fit_seconds
    assert not ours.checked


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="--threads needs Linux")
def test_tabular_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes and engines are those of the command, and errors alone have no seconds."""
    file = tmp_path / "out.json"
    narrow = ["--suite", "tabular", "--workloads", "breast_cancer", "--sizes", "60,40", "--repeat", "2"]
    engines = "svmarrow.Tabular*,least squares"
    assert run.main([*narrow, "--engines", engines, "--no-times", "--json", str(file)]) == 0
    results = json.loads(file.read_text())["tabular"]
    assert [(one["set"], one["training samples"]) for one in results] == [
        ("breast_cancer", 60),
        ("breast_cancer", 40),
    ]
    for one in results:
        assert set(one["engines"]) == set(engines.split(","))
        for cell in one["engines"].values():
            assert cell["seconds"] == [None, None]
            assert cell["run"] == [0, 0]
            assert len(cell["error"]) == 2
            assert 0.0 < max(cell["error"]) < 30.0
    assert "60 samples, svmarrow.Tabular* and least squares, 1 sets" in capsys.readouterr().out


def test_threads_suite(tmp_path: Path) -> None:
    """One processor and two, the same objective."""
    file = tmp_path / "out.json"
    arguments = ["--quick", "--suite", "threads", "--workloads", "blobs", "--engines", "svmarrow-f32"]
    assert run.main([*arguments, "--json", str(file)]) == 0
    (found,) = json.loads(file.read_text())["threads"]
    assert found["seconds"]["1"]
    assert all(abs(difference) < 1e-4 for difference in found["objective"].values())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engines", "libsvm"], "--engines libsvm: it must be among"),
        (["--suite", "second"], "--suite second: it must be among"),
        (["--workloads", "iris"], "--workloads iris: it must be among"),
        (["--skip", "sklearn"], "ENGINE:WORKLOAD"),
        (["--skip", "sklearn:iris"], "ENGINE:WORKLOAD"),
        (["--repeat", "0"], "--repeat 0: it must be at least 1"),
        (["--cache", "0"], "--cache 0: it must be at least 1"),
        (["--sizes", "5"], "it must be numbers of at least 10"),
        (["--suite", "tabular", "--resume"], "--resume needs"),
        (["--suite", "svm", "--resume", "--json", __file__], "--resume needs"),
    ],
)
def test_refused_arguments(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each names the argument, its value and the rule."""
    with pytest.raises(SystemExit):
        run.parse(arguments)
    assert said in capsys.readouterr().err
