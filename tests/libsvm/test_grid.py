"""``svmarrow grid`` against LIBSVM's grid.py."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import minmax_scale

from svmarrow.io import save_svmlight
from svmarrow.libsvm._programs import run

GRID = "-log2c -1,5,2 -log2g 1,-7,-4"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid")
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X, (-1, 1)).round(3)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(y.size) < 0.1, rng.integers(0, 3, y.size), y)
    order = rng.permutation(y.size)
    save_svmlight(X[order], y[order], folder / "classes")
    save_svmlight(X[order], np.where(y[order] > 0, 1, -1), folder / "two")
    K = X[order] @ X[order].T
    lines = [
        f"{label} 0:{i + 1} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row))
        for i, (label, row) in enumerate(zip(y[order].tolist(), K.tolist(), strict=True))
    ]
    (folder / "kernel").write_text("\n".join(lines) + "\n")
    return folder


def ours(*arguments):
    """Exit code, standard output, standard error."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = run("grid", list(map(str, arguments)))
    return code, out.getvalue(), error.getvalue()


@pytest.mark.skipif(shutil.which("svm-grid") is None, reason="LIBSVM's tools are missing")
@pytest.mark.parametrize(
    ("options", "name"),
    [
        (GRID, "classes"),
        (GRID, "two"),
        (f"{GRID} -w1 3 -v 3", "two"),
        (f"{GRID} -t 1 -r 1 -d 2", "two"),
        ("-log2c 0,2,1 -log2g null -t 0", "classes"),
        ("-log2c null -log2g -5,-1,2", "classes"),
        ("-log2c -8,-6,1 -log2g null -t 4", "kernel"),
        ("-log2c null -log2g -3,-1,2 -s 1 -n 0.3", "two"),
    ],
)
def test_lines_are_those_of_libsvm(folder, tmp_path, monkeypatch, options, name):
    monkeypatch.chdir(tmp_path)
    arguments = [*options.split(), "-e", "1e-6", str(folder / name)]
    command = [sys.executable, shutil.which("svm-grid"), "-svmtrain", shutil.which("svm-train")]
    done = subprocess.run(
        [*command, "-gnuplot", "null", *arguments], capture_output=True, text=True, check=True
    )
    results = (tmp_path / f"{name}.out").read_text()
    code, out, error = ours("-out", "ours.out", *arguments)
    assert (code, error) == (0, "")
    assert out == done.stdout
    assert (tmp_path / "ours.out").read_text() == results


def test_default_range_has_the_points_of_grid_py(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = ours("-v", "2", folder / "two")
    assert code == 0
    lines = (tmp_path / "two.out").read_text().splitlines()
    assert len(lines) == len(set(lines)) == 110
    assert lines[0].startswith("log2c=5 log2g=-7 rate=")
    assert len(out.splitlines()[-1].split()) == 3


def test_a_search_is_resumed(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = [*GRID.split(), "-out", "some.out"]
    _, whole, _ = ours(*options, folder / "two")
    lines = (tmp_path / "some.out").read_text().splitlines(keepends=True)
    (tmp_path / "some.out").write_text("".join(lines[:5]))
    code, out, _ = ours(*options, "-resume", "some.out", folder / "two")
    assert code == 0
    assert (tmp_path / "some.out").read_text() == "".join(lines)
    assert [line.split()[0] for line in out.splitlines()[:-1]] == ["[resumed]"] * 5 + ["[local]"] * 7
    assert out.splitlines()[-1] == whole.splitlines()[-1]


def test_a_picture_is_drawn(folder, tmp_path):
    pytest.importorskip("matplotlib")
    code, _, _ = ours(*GRID.split(), "-out", "null", "-png", tmp_path / "grid.png", folder / "two")
    assert code == 0
    assert (tmp_path / "grid.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["grid.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage"),
        (["-c", "1", "@two"], "-c is not allowed: use -log2c and -log2g"),
        (["-svmtrain", "x", "@two"], "-svmtrain is not supported"),
        (["-gnuplot", "x", "@two"], "-gnuplot x is not supported"),
        (["-log2c", "null", "-log2g", "null", "@two"], "at least one of C and gamma"),
        (["-log2c", "1,2,0", "@two"], "step must not be 0"),
        (["-log2c", "1,2,-1", "@two"], "the range must have a value"),
        (["-log2c", "1,2", "@two"], "must be begin,end,step or null"),
        (["-log2c", "1,9999,1", "@two"], "must lie between"),
        (["-log2c", "@two"], "-log2c needs a value"),
        (["-s", "3", "@two"], "svmarrow.SVRCV searches for regression"),
        (["-v", "1", "@two"], "-v 1: the value must be at least 2"),
        (["-png", "a.png", "-log2g", "null", "@two"], "-png needs both"),
        (["-z", "1", "@two"], "unknown option: -z"),
        (["-log2g", "null", "@missing"], "No such file"),
        (["-resume", "@missing", "@two"], "No such file"),
    ],
)
def test_wrong_arguments_are_refused_by_name(folder, arguments, message):
    code, out, error = ours(*[a.replace("@", f"{folder}/") for a in arguments])
    assert code == 1
    assert message in out + error
