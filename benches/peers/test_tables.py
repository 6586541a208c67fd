"""Ratios, targets and the picture, on figures whose answers are known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import report
import run
import targets
from cells import LEFT_OUT, Cell, best_peer, geometric_mean, times_as_fast
from speedup import Speedup, counts

import tabular

if TYPE_CHECKING:
    from pathlib import Path


def cell(workload: str, engine: str, fit: float, predict: float, **rest: object) -> Cell:
    """A cell of one repeat."""
    times = {"fit_seconds": [fit], "predict_seconds": [predict], "peak_bytes": [1]}
    return Cell(workload, engine, **times, **rest)  # type: ignore[arg-type]


def figures() -> list[Cell]:
    """Two workloads; the best peer differs between them, and between fit and prediction."""
    return [
        cell("a", "sklearn", 8.0, 2.0),
        cell("a", "intelex-f32", 4.0, 6.0),
        cell("a", "svmarrow-f32", 1.0, 1.0, bound_seconds=[0.5]),
        cell("b", "sklearn", 9.0, 9.0),
        cell("b", "intelex-f32", 27.0, 27.0),
        cell("b", "svmarrow-f32", 1.0, 1.0, bound_seconds=[0.125]),
    ]


def text(verdicts: list[targets.Verdict]) -> list[str]:
    """As printed."""
    return [str(verdict) for verdict in verdicts]


def test_best_peer_is_the_best_of_those_that_solved_the_workload() -> None:
    """Not ours, not one whose solution differs, not one that did not run."""
    cells = figures()
    assert best_peer(cells, "a", "fit_seconds") == 4.0
    assert best_peer(cells, "a", "predict_seconds") == 2.0
    cells[1].trusted = False
    assert best_peer(cells, "a", "fit_seconds") == 8.0
    cells[0].fit_seconds = []
    assert best_peer(cells, "a", "fit_seconds") is None
    assert times_as_fast(cells, cells[2], "fit_seconds") is None


def test_median_of_repeats() -> None:
    """The middle one counts, and an untrusted cell has none."""
    found = Cell("a", "sklearn", fit_seconds=[9.0, 1.0, 2.0])
    assert found.seconds("fit_seconds") == 2.0
    found.trusted = False
    assert found.seconds("fit_seconds") is None


def test_targets_met() -> None:
    """Fit sqrt(4 x 9) = 6, prediction sqrt(2 x 9) = 4.24, over the bound sqrt(2 x 8) = 4."""
    verdicts = targets.of_comparison(figures())
    assert [verdict.met for verdict in verdicts] == [True] * 4
    said = text(verdicts)
    assert "6.00 times as fast" in said[0]
    assert "on 2 of 2" in said[1]
    assert "4.24 times as fast" in said[2]
    assert "4.00 times the lower bound" in said[3]


def test_targets_missed() -> None:
    """A slower workload, a mean below 3, a bound too far, more memory than allowed: each is a line."""
    cells = figures()
    cells[2].fit_seconds, cells[5].fit_seconds = [5.0], [2.0]
    cells[5].data_bytes, cells[5].cache_bytes, cells[5].added_bytes = 100, 900, [1100]
    verdicts = targets.of_comparison(cells)
    assert [verdict.met for verdict in verdicts] == [False, False, True, False, False]
    said = text(verdicts)
    assert all(line.startswith("MISSED") for line in said[:2] + said[3:])
    assert "not on a 0.80" in said[1]
    assert "109.1% of data, cache and 10 % (b)" in said[4]


def test_no_time_of_ours_is_a_miss() -> None:
    """A mean over the easy workloads does not meet a target."""
    cells = figures()
    cells[5].trusted = False
    verdicts = targets.of_comparison(cells)
    assert not verdicts[0].met
    assert "no time: b" in verdicts[0].text


def test_without_peers_nothing_is_claimed() -> None:
    """No line on peers where none ran; the bound is still judged."""
    verdicts = targets.of_comparison([entry for entry in figures() if entry.ours])
    assert text(verdicts) == [
        "met    svmarrow-f32 fit: 4.00 times the lower bound, geometric mean of 2 (at most 5)"
    ]


def test_speedup_and_its_target() -> None:
    """Ratio of medians; 1.7 is the least."""
    good = Speedup("a", "svmarrow-f32", {1: [2.0, 4.0, 3.0], 2: [1.5]})
    bad = Speedup("b", "svmarrow-f32", {1: [3.0], 2: [2.0]})
    none = Speedup("c", "svmarrow-f32", {1: [3.0], 2: []})
    assert good.of(2) == 2.0
    assert [verdict.met for verdict in targets.of_threads([good, bad, none])] == [True, False, False]


def test_serial_share_and_the_model_of_amdahl() -> None:
    """One second of work of which a quarter is serial; nothing of it is known from one thread."""
    found = Speedup("a", "svmarrow-f32", {1: [1.0], 2: [0.625]}, {1: [1.0], 2: [1.0]})
    assert found.serial_share(2) == pytest.approx(0.25)
    assert found.model(16, 2) == pytest.approx(1 / (0.25 + 0.75 / 16))
    assert found.serial_share(1) is None
    assert found.model(16, 1) is None
    busy = Speedup("a", "svmarrow-f32", {1: [1.0], 2: [0.5]}, {1: [1.0], 2: [1.25]})
    assert busy.serial_share(2) == 0.0


@pytest.mark.parametrize(
    ("processors", "expected"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])]
)
def test_thread_counts(processors: int, expected: list[int]) -> None:
    """Powers of two, then all."""
    assert counts(processors) == expected


def test_table_has_every_pair_and_the_means() -> None:
    """A pair that is left out stays in the table, under its name; the mean says over how many it is."""
    cells = figures()
    cells[3] = Cell("b", "sklearn", note=LEFT_OUT)
    rows = report.comparison(cells)
    assert all(len(row) == len(report.HEADINGS) for row in rows)
    assert rows[3][:3] == ["b", "sklearn", LEFT_OUT]
    means = {row[1]: (row[0], row[6]) for row in rows[6:]}
    assert means["sklearn"] == ("geometric mean of 1", "0.50")
    assert means["svmarrow-f32"] == ("geometric mean of 2", f"{geometric_mean([4.0, 27.0]):.2f}")
    assert report.table(report.HEADINGS, rows, markdown=True).count("\n") == len(rows) + 1


def test_picture(tmp_path: Path) -> None:
    """Multiples of ours, the geometric mean of the fastest peers, 800 pixels wide."""
    plot = pytest.importorskip("plot", reason="matplotlib is not installed")
    cells = [*figures(), Cell("c", "sklearn", note=LEFT_OUT), cell("c", "intelex-f32", 0.5, 1.0)]
    cells.append(cell("c", "svmarrow-f32", 1.0, 1.0))
    found = plot.multiples(cells, "svmarrow-f32", "fit_seconds")
    assert found["a"] == {"sklearn": 8.0, "intelex-f32": 4.0}
    assert found["c"] == {"intelex-f32": 0.5}
    fastest = [min(found[workload].values()) for workload in "abc"]
    assert found[plot.MEAN] == {plot.BEST: pytest.approx(geometric_mean(fastest))}
    assert min(fastest) == 0.5
    plot.draw(cells, tmp_path / "peers.png")
    header = (tmp_path / "peers.png").read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(header[16:20], "big") == plot.PIXELS
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.draw([cell("a", "svmarrow-f32", 1.0, 1.0)], tmp_path / "none.png")


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.0042, "4.2 ms"), (0.25, "0.25 s"), (3.21, "3.2 s"), (178.4, "178 s")]
)
def test_seconds_in_words(seconds: float, expected: str) -> None:
    """Two digits are enough."""
    assert pytest.importorskip("plot").seconds_text(seconds) == expected


class Constant:
    """Predicts the first label of its training samples and counts its fits."""

    fits = 0

    def fit(self, X: np.ndarray, y: np.ndarray) -> Constant:  # noqa: ARG002
        """Counts."""
        Constant.fits += 1
        self.label = y[0]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Returns one label for each sample."""
        return np.full(len(X), self.label)


def resumed(monkeypatch: pytest.MonkeyPatch, file: Path, *arguments: str) -> dict[str, Any]:
    """Runs the suite of tables on a bundled set with engines that count their fits."""
    monkeypatch.setattr(Constant, "fits", 0)
    monkeypatch.setattr(tabular, "engines", lambda _, __, chosen: {name: Constant() for name in chosen})
    narrow = ["--suite", "tabular", "--workloads", "breast_cancer", "--no-times", "--json", str(file)]
    assert run.main([*narrow, *arguments]) == 0
    record: dict[str, Any] = json.loads(file.read_text())
    return record


def test_tables_continue_from_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is skipped; the rest has the errors of one run and names its own."""
    options = ["--sizes", "60,40", "--engines", "SVM,extra trees"]
    whole = resumed(monkeypatch, tmp_path / "whole.json", *options, "--repeat", "3")
    assert Constant.fits == 12
    file = tmp_path / "part.json"
    resumed(monkeypatch, file, "--sizes", "60", "--engines", "SVM", "--repeat", "1")
    monkeypatch.setattr(report, "commit", lambda: "later")
    record = resumed(monkeypatch, file, *options, "--repeat", "3", "--resume")
    assert Constant.fits == 11
    for one, other in zip(record["tabular"], whole["tabular"], strict=True):
        for engine, cell in one["engines"].items():
            assert cell["error"] == other["engines"][engine]["error"]
            assert len(set(cell["error"])) > 1
            begun = (one["samples"], engine) == (60, "SVM")
            assert cell["run"] == ([0, 1, 1] if begun else [1, 1, 1])
    assert [one["commit"] == "later" for one in record["runs"]] == [False, True]
    # Nothing is left to do, and the file stays as it is.
    assert resumed(monkeypatch, file, *options, "--repeat", "2", "--resume") == record
    assert Constant.fits == 0


def test_tables_of_a_file_without_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier times and errors are of the run at the head of the file; a split without a time has None."""
    file = tmp_path / "old.json"
    record = resumed(monkeypatch, file, "--sizes", "60", "--engines", "SVM", "--repeat", "1")
    del record["runs"]
    record["commit"] = "old"
    record["tabular"][0]["engines"]["SVM"] = {"error": [7.0], "seconds": [0.5]}
    file.write_text(json.dumps(record))
    record = resumed(monkeypatch, file, "--sizes", "60", "--engines", "SVM", "--repeat", "2", "--resume")
    cell = record["tabular"][0]["engines"]["SVM"]
    assert (cell["error"][0], cell["seconds"], cell["run"]) == (7.0, [0.5, None], [0, 1])
    assert record["runs"][0]["commit"] == "old"
    assert "(0.5)" in next(tabular.lines(record["tabular"]))[2]


def test_large_sizes_are_for_large_sets() -> None:
    """A set takes part above 1,000 samples if it has half as many; only splits that exist are measured."""
    assert tabular.split_of("breast_cancer", 1000, 0) is not None
    assert tabular.split_of("breast_cancer", 5000, 0) is None
    result = tabular.start("breast_cancer", 5000)
    assert not tabular.extend(result, 0)
    assert not result["engines"]


def test_summary_where_an_engine_makes_no_error() -> None:
    def result(ours: float, other: float) -> dict[str, Any]:
        engines = {tabular.OURS: {"error": [ours]}, tabular.BOOSTING: {"error": [other]}}
        return {"set": f"{ours} and {other}", "samples": 500, "engines": engines}

    assert "worst 1.000 (0.0 and 0.0)" in next(tabular.summary([result(0.0, 0.0)]))
    assert "worst inf (2.0 and 0.0)" in next(tabular.summary([result(2.0, 0.0), result(1.0, 2.0)]))
