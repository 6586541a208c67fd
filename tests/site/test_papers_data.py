"""Data of the papers' scripts: conversion and hashes with a fake source, advice where a set is missing."""

from __future__ import annotations

import bz2
import importlib
import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from helpers.programs import python

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "benches" / "papers"
#: A part of each script that needs a set.
NEEDS_DATA = {
    "cascades": "sets",
    "compressed_svm": "targets",
    "compressed_svm_figure3": "mnist",
    "kmp": "table1",
    "perceptron_trees": "figure1",
    "perceptron_variants": "gammas",
    "promises": "promises",
    "rifkin_bounds": "codes",
    "rifkin_multiclass": "satimage",
    "rifkin_rls": "text-ovr",
    "rifkin_svmfu": "growth-usps",
    "tr132": "two-class",
}


@pytest.fixture
def data(monkeypatch, tmp_path):
    """The module, with hashes and folder of its own."""
    monkeypatch.syspath_prepend(PAPERS)
    monkeypatch.delitem(sys.modules, "data", raising=False)
    monkeypatch.delitem(sys.modules, "common", raising=False)
    module = importlib.import_module("data")

    monkeypatch.setenv("SVMARROW_DATA", str(tmp_path / "sets"))
    monkeypatch.setattr(module, "HASHES", tmp_path / "hashes.json")
    yield module
    sys.modules.pop("data", None)
    sys.modules.pop("common", None)


class FakeSources:
    """Answers from memory; what it does not have raises as a network would."""

    def __init__(self, files=None, sets=None, documents=None):
        self.files, self.sets, self.documents = files or {}, sets or {}, documents or {}

    def file(self, address):
        if address not in self.files:
            raise OSError("no route to host")
        return self.files[address]

    def openml(self, name, version):
        assert version == 1
        if name not in self.sets:
            raise OSError("no route to host")
        return self.sets[name]

    def newsgroups(self, subset):
        return self.documents[subset]


def expect(data, **recipes):
    """Write the hashes of some arrays, as if they had been measured."""
    found = {name: data.fingerprint(arrays, data.RECIPES[name].decimals) for name, arrays in recipes.items()}
    data.HASHES.write_text(json.dumps(found), encoding="utf-8")


def svmlight_text(X, y):
    """Samples in the text format of the LIBSVM data page."""
    stream = io.BytesIO()
    dump_svmlight_file(X, y, stream, zero_based=False)
    return stream.getvalue()


def archive(**files):
    """An archive of text files, whose names have a dot for each underscore."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as opened:
        for name, text in files.items():
            opened.writestr(name.replace("_", "."), text)
    return stream.getvalue()


def test_dense_set_of_libsvm(data, tmp_path):
    rng = np.random.default_rng(0)
    X, X_test = (rng.integers(-1000, 1001, (n, 256)) / 1000 for n in (12, 5))
    y, y_test = np.arange(12) % 10, np.arange(5)
    # Measured from another file, in single precision.
    expect(data, usps={"X": X.astype(np.float32), "y": y, "X_test": X_test, "y_test": y_test})
    sources = FakeSources(
        {
            data.LIBSVM + "multiclass/usps.bz2": bz2.compress(svmlight_text(X, y + 1)),
            data.LIBSVM + "multiclass/usps.t.bz2": bz2.compress(svmlight_text(X_test, y_test + 1)),
        }
    )
    assert data.main(["usps"], sources) == 0
    with np.load(tmp_path / "sets" / "usps.npz") as file:
        assert np.array_equal(X, file["X"])
        assert np.array_equal(file["y_test"], y_test)
    rows = importlib.import_module("common").load("usps")
    assert np.allclose(rows.X_test, X_test)
    assert rows.y.tolist() == y.tolist()
    # A second call finds it, without asking a source.
    assert data.main(["usps"], FakeSources()) == 0


def test_sparse_set_of_libsvm(data, capsys):
    X, X_test = (sp.random_array((n, 123), density=0.2, rng=n, format="csr") for n in (9, 4))
    X.data[:], X_test.data[:] = 1.0, 1.0
    y, y_test = np.where(np.arange(9) % 2, 1, -1), np.array([1, -1, 1, 1])
    expect(data, a9a=data.sparse("", X) | data.sparse("test_", X_test) | {"y": y, "y_test": y_test})
    sources = FakeSources(
        {
            data.LIBSVM + "binary/a9a": svmlight_text(X, y),
            data.LIBSVM + "binary/a9a.t": svmlight_text(X_test, y_test),
        }
    )
    assert data.main(["a9a"], sources) == 0
    assert "the same" in capsys.readouterr().out
    rows = importlib.import_module("common").load("a9a")
    assert (sp.csr_array(X) != rows.X).nnz == 0
    assert rows.y_test.tolist() == y_test.tolist()


def test_sets_of_openml(data):
    X = np.arange(60_010 * 2, dtype=np.float64).reshape(-1, 2) % 256
    target = np.array([str(i % 10) for i in range(60_010)], dtype=object)
    y = np.arange(60_010) % 10
    expect(
        data,
        mnist={"X": X[:60_000], "y": y[:60_000], "X_test": X[60_000:], "y_test": y[60_000:]},
        breast_cancer_wisconsin={"X": np.array([[1.0, 2.0], [5.0, 6.0]]), "y": np.array([-1, 1])},
    )
    incomplete = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 6.0]])
    labels = np.array(["benign", "malignant", "malignant"], dtype=object)
    sources = FakeSources(sets={"mnist_784": (X, target), "breast-w": (incomplete, labels)})
    assert data.main(["mnist", "breast_cancer_wisconsin"], sources) == 0


def test_sets_of_uci(data, capsys):
    measured = {"X": np.array([[0.58, 0.61], [0.43, 0.67]]), "y": np.array([3, 1])}
    shells = {"X": np.array([[1, 0.455], [3, 0.33]]), "y": np.array([15.0, 7.0])}
    land = {
        "X": np.array([[92, 115]]),
        "y": np.array([3]),
        "X_test": np.array([[80, 102]]),
        "y_test": np.array([7]),
    }
    expect(data, yeast=measured, abalone=shells, satimage=land)
    sources = FakeSources(
        {
            # The same samples in another order than measured.
            data.UCI + "110/yeast.zip": archive(yeast_data="B  0.43  0.67  CYT\nA  0.58  0.61  MIT\n"),
            data.UCI + "1/abalone.zip": archive(abalone_data="M,0.455,15\nI,0.33,7\n"),
            data.UCI + "146/statlog+landsat+satellite.zip": archive(
                sat_trn="92 115 3\n", sat_tst="80 102 7\n"
            ),
        }
    )
    assert data.main(["yeast", "abalone", "satimage"], sources) == 0
    said = capsys.readouterr().out
    assert f"yeast: fetched from UCI: {data.REORDERED}" in said
    assert f"abalone: fetched from UCI: {data.SAME}" in said


def test_newsgroups(data):
    train, test = ["a cat and a dog", "the cat sat", "the dog sat"], ["a cat and dog dog"]
    # Words of two training documents: cat, dog, sat, the.
    X = sp.csr_array([[1, 1, 0, 0], [1, 0, 1, 1], [0, 1, 1, 1]])
    measured = data.sparse("", X) | data.sparse("test_", sp.csr_array([[1, 2, 0, 0]]))
    expect(data, news20_bydate=measured | {"y": np.array([0, 1, 1]), "y_test": np.array([1])})
    documents = {"train": (train, np.array([0, 1, 1])), "test": (test, np.array([1]))}
    assert data.main(["news20_bydate"], FakeSources(documents=documents)) == 0


def test_splits_are_made_here(data):
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(20, 3)), np.array(["g", "h"] * 10, dtype=object)
    expect(data, magic={"X": X[:14], "y": np.ones(14), "X_test": X[14:], "y_test": np.ones(6)})
    sources = FakeSources(sets={"MagicTelescope": (X, labels)})
    assert data.main(["magic"], sources) == 1
    assert data.main(["magic", "--keep-different"], sources) == 0
    rows = importlib.import_module("common").load("magic")
    assert rows.X.shape == (14, 3)
    assert np.allclose(rows.X.mean(axis=0), 0)
    assert set(rows.y_test) <= {-1.0, 1.0}


def test_a_different_set_is_not_written(data, tmp_path, capsys):
    X, y = np.arange(6.0).reshape(3, 2), np.array([1, -1, 1])
    expect(data, sonar={"X": X, "y": y})
    changed = X.copy()
    changed[1, 1] += 0.001
    sources = FakeSources(sets={"sonar": (changed, np.array(["Mine", "Rock", "Mine"], dtype=object))})
    assert data.main(["sonar"], sources) == 1
    assert "differs from the set that was measured" in capsys.readouterr().out
    assert not (tmp_path / "sets").exists()


def test_what_cannot_be_obtained_is_reported(data, capsys):
    expect(data)
    assert data.main(["usps", "ratsch_banana"], FakeSources()) == 1
    said = capsys.readouterr().out
    assert "usps: could not be obtained from LIBSVM: OSError: no route to host" in said
    assert "ratsch_banana: the splits of Raetsch" in said
    assert "Not obtained: usps, ratsch_banana." in said
    with pytest.raises(SystemExit):
        data.main(["nonsense"], FakeSources())
    assert "nonsense" in capsys.readouterr().err


def test_labels_and_splits_are_part_of_the_hash(data):
    X, y = np.arange(8.0).reshape(4, 2), np.array([1, 1, -1, -1])
    one = data.fingerprint({"X": X, "y": y}, 6)
    assert data.compared(data.fingerprint({"X": X, "y": -y}, 6), one) == data.DIFFERENT
    assert data.compared(data.fingerprint({"X": X[::-1], "y": y[::-1]}, 6), one) == data.REORDERED
    two = {"X": X[:3], "y": y[:3], "X_test": X[3:], "y_test": y[3:]}
    assert data.compared(data.fingerprint(two, 6), one) == data.DIFFERENT


def test_smoothed_images_are_made_of_the_set_in_the_folder(data, tmp_path, capsys):
    X = np.full((2, 256), -1.0)
    X[0, 17] = 0.5004
    y, X_test, y_test = np.array([3, 4]), np.full((1, 256), -1.0), np.array([5])
    (tmp_path / "sets").mkdir()
    np.savez(tmp_path / "sets" / "usps.npz", X=X, y=y, X_test=X_test, y_test=y_test)
    # The value is rounded first; a constant image at the background stays as it is.
    weights = np.exp(-0.5 * (np.arange(-3, 4) / 0.75) ** 2)
    weights /= weights.sum()
    padded = np.full((22, 22), -1.0)
    padded[4, 4] = 0.5
    smooth = np.array(
        [[weights @ padded[i : i + 7, j : j + 7] @ weights for j in range(16)] for i in range(16)]
    )
    expected = np.stack([smooth.ravel(), np.full(256, -1.0)])
    expect(data, usps_smoothed={"X": expected, "y": y, "X_test": X_test, "y_test": y_test})
    assert data.main(["usps_smoothed"], FakeSources()) == 0
    assert f"usps_smoothed: fetched from usps: {data.SAME}" in capsys.readouterr().out


def test_headers_of_newsgroups(data, capsys):
    train = ["From: a cat\n\na dog", "From: a cat\n\nthe dog sat\n\nFrom: b", "no header"]
    documents = {"train": (train, np.array([0, 1, 1])), "test": (train[:1], np.array([1]))}
    # The only word of two bodies is dog.
    X, X_test = sp.csr_array([[1], [1], [0]]), sp.csr_array([[1]])
    arrays = data.sparse("", X) | data.sparse("test_", X_test)
    expect(data, news20_no_headers=arrays | {"y": np.array([0, 1, 1]), "y_test": np.array([1])})
    assert data.main(["news20_no_headers"], FakeSources(documents=documents)) == 0
    assert data.SAME in capsys.readouterr().out
    # The set that no page was measured on has no hash.
    data.HASHES.write_text(json.dumps({"news20_no_headers": None}), encoding="utf-8")
    assert data.main(["news20_no_headers"], FakeSources()) == 0
    assert "no page was measured on it" in capsys.readouterr().out


def test_every_recipe_has_a_hash():
    hashes = json.loads((PAPERS / "data_hashes.json").read_text(encoding="utf-8"))
    assert [name for name, value in hashes.items() if value is None] == ["news20_no_headers"]
    program = "import sys; sys.path.insert(0, sys.argv[1]); import data; print(*data.RECIPES)"
    assert sorted(hashes) == sorted(python(program, PAPERS).split())


RUN_ALL = """
import contextlib, io, runpy, sys
folder = sys.argv[1]
sys.path.insert(0, folder)
for pair in sys.argv[2:]:
    name, part = pair.split("=")
    sys.argv = [name, "--only", part, "--quick"]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(f"{folder}/{name}.py", run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code
    print(name, code, said.getvalue().strip().replace(chr(10), " "))
"""


def test_scripts_without_data_end_with_advice(tmp_path, monkeypatch):
    pairs = [f"{name}={part}" for name, part in NEEDS_DATA.items()]
    monkeypatch.chdir(ROOT)
    said = python(RUN_ALL, PAPERS, *pairs, SVMARROW_DATA=str(tmp_path))
    lines = {line.split()[0]: line for line in said.splitlines()}
    assert set(lines) == set(NEEDS_DATA)
    for name, line in lines.items():
        assert line.startswith(f"{name} 2 "), line
        assert "python benches/papers/data.py" in line, line
        assert "Traceback" not in line, line
