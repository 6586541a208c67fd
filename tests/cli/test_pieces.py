"""Files in pieces: every format, as whole ones; training and predicting on them."""

import bz2
import gzip

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from helpers.programs import command as run
from svmarrow import SVC, SVR, load, save
from svmarrow.cli import data
from svmarrow.cli.data import DataOptions, read_data, read_pieces, sample, survey
from svmarrow.io import save_libsvm_model, save_svmlight
from svmarrow.least_squares import LowRankRLSClassifier

FILES = [
    "digits.svm", "digits.svm.gz", "digits.npz", "columns.npz", "sparse.npz", "bytes.npz.bz2", "names.csv",
    "names.csv.bz2", "plain.tsv", "names.parquet",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """400 digits in every format."""
    folder = tmp_path_factory.mktemp("pieces")
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    save_svmlight(X, y, folder / "digits.svm")
    (folder / "digits.svm.gz").write_bytes(gzip.compress((folder / "digits.svm").read_bytes()))
    np.savez(folder / "digits.npz", X=X.astype(np.float32), y=y)
    np.savez(folder / "columns.npz", X=np.asfortranarray(X), y=y.astype(np.uint8))
    np.savez(folder / "bytes.npz", X=X.astype(np.uint8), y=y)
    (folder / "bytes.npz.bz2").write_bytes(bz2.compress((folder / "bytes.npz").read_bytes()))
    rows = sparse.csr_array(X)
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": rows.shape, "y": y}
    np.savez_compressed(folder / "sparse.npz", **parts)
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    frame["digit"] = y
    frame.to_csv(folder / "names.csv", index=False)
    (folder / "names.csv.bz2").write_bytes(bz2.compress((folder / "names.csv").read_bytes()))
    frame.to_csv(folder / "plain.tsv", index=False, header=False, sep="\t")
    frame.to_parquet(folder / "names.parquet")
    return folder


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("most", [1, 37, 400, 1000])
def test_pieces_are_the_file(folder, name, most):
    options = DataOptions(n_features=64)
    whole, pieces = read_data(folder / name, options), list(read_pieces(folder / name, options, most))
    if not name.startswith(("bytes", "columns")):
        assert [piece.X.shape[0] for piece in pieces[:-1]] == [most] * (-(-400 // most) - 1)
    assert np.array_equal(np.vstack([dense(piece.X) for piece in pieces]), dense(whole.X))
    assert np.array_equal(np.concatenate([piece.y for piece in pieces]), whole.y)
    assert {piece.X.dtype for piece in pieces} == {whole.X.dtype}
    assert all(piece.names == whole.names for piece in pieces)


def test_columns_count_from_0_in_all_pieces_or_in_none(tmp_path):
    lines = ["1 2:1\n"] * 5 + ["1 0:1 2:1\n"]
    (tmp_path / "zero.svm").write_text("".join(lines))
    pieces = list(read_pieces(tmp_path / "zero.svm", DataOptions(n_features=3), 2))
    assert np.array_equal(np.vstack([dense(piece.X) for piece in pieces])[:, 2], np.ones(6))
    (tmp_path / "one.svm").write_text("".join(lines[:5]) + "1 10:0 3:x\n")
    with pytest.raises(ValueError, match=r"one.svm:6: "):
        list(read_pieces(tmp_path / "one.svm", DataOptions(), 2))


def test_one_word_makes_all_labels_text(tmp_path):
    (tmp_path / "mixed.csv").write_text("".join(f"{i},{label}\n" for i, label in enumerate("00110a1")))
    found = survey(tmp_path / "mixed.csv", DataOptions(), 2)
    assert found.classes.tolist() == ["0", "1", "a"]
    assert found.options.text_labels
    (tmp_path / "numbers.csv").write_text("".join(f"{i},{label}\n" for i, label in enumerate("0011021")))
    found = survey(tmp_path / "numbers.csv", DataOptions(), 2)
    assert found.classes.tolist() == [0, 1, 2]
    assert not found.options.text_labels


def test_rows_are_drawn_evenly_and_scales_are_those_of_all(tmp_path):
    X = np.arange(1000.0)[:, None]
    np.savez(tmp_path / "line.npz", X=X, y=np.zeros(1000, dtype=int))
    drawn = [
        sample(tmp_path / "line.npz", DataOptions(), 64, 50, np.random.default_rng(seed), None)[:, 0]
        for seed in range(40)
    ]
    assert all(len(set(rows)) == 50 for rows in drawn)
    # 2,000 draws from ten tenths: 200 each, deviation 13.
    counts = np.histogram(np.concatenate(drawn), bins=10, range=(0, 1000))[0]
    assert (abs(counts - 200) < 70).all()
    scaler = StandardScaler()
    few = sample(tmp_path / "line.npz", DataOptions(), 64, 5000, np.random.default_rng(0), scaler)
    assert scaler.mean_[0] == pytest.approx(499.5)
    assert np.allclose(few, StandardScaler().fit_transform(X))


@pytest.mark.parametrize("name", FILES)
def test_predictions_do_not_depend_on_the_piece(folder, name, tmp_path):
    X, y = load_digits(return_X_y=True)
    save(SVC(C=10).fit(X[400:900], y[400:900]), tmp_path / "model")
    told = [
        run(
            "predict", tmp_path / "model", folder / name, "--piece", piece, "-o", tmp_path / f"{piece}.txt"
        ).stdout
        for piece in (7, 100, 100_000)
    ]
    assert len({text.splitlines()[0] for text in told}) == 1
    assert "of 400 samples)" in told[0]
    assert len({(tmp_path / f"{piece}.txt").read_bytes() for piece in (7, 100, 100_000)}) == 1


def test_numbers_are_judged_over_all_pieces(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 3))
    y = 1e6 + X[:, 0] + np.repeat([0.0, 50.0, -50.0], 50)
    np.savez(tmp_path / "d.npz", X=X, y=y)
    model = SVR(C=100).fit(X, y)
    save(model, tmp_path / "model")
    off = np.sqrt(np.mean((model.predict(X) - y) ** 2))
    expected = f"R^2 is {model.score(X, y):.4f}, and the root mean squared error is {off:.6g}."
    for piece in (1, 40, 1000):
        assert expected in run("predict", tmp_path / "model", tmp_path / "d.npz", "--piece", piece).stdout


def test_columns_of_libsvm_that_come_late(tmp_path):
    X, y = np.eye(4)[:, :2] * 2, np.array([1, 1, 2, 2])
    save_libsvm_model(SVC(gamma=1.0, C=10).fit(X, y), tmp_path / "narrow.model")
    save_svmlight(np.eye(6), np.ones(6), tmp_path / "wide.svm")
    whole = run("predict", tmp_path / "narrow.model", tmp_path / "wide.svm", "-o", "-").stdout
    assert (
        run("predict", tmp_path / "narrow.model", tmp_path / "wide.svm", "-o", "-", "--piece", 1).stdout
        == whole
    )


@pytest.mark.parametrize("name", ["names.csv", "names.parquet", "digits.svm.gz", "sparse.npz", "digits.npz"])
def test_low_rank_is_that_of_all_rows(folder, name, tmp_path, monkeypatch):
    out, readings = tmp_path / "model.safetensors", []
    opened = data._pieces
    monkeypatch.setattr(data, "_pieces", lambda *about: readings.append(about) or opened(*about))
    run(
        "train",
        folder / name,
        "--low-rank",
        80,
        "--alpha",
        0.1,
        "-o",
        out,
        "--piece",
        90,
        "--scale",
        "minmax",
        "-g",
        0.2,
    )
    assert len(readings) == 3  # for labels, for points, for the fit
    model = load(out)
    # The same points in one fit of all rows.
    X, y = load_digits(return_X_y=True)
    rows = X[:400] if model.feature_names is None else pd.DataFrame(X[:400], columns=model.feature_names_in_)
    scaled = model.validated(rows)
    whole = LowRankRLSClassifier(
        80, alpha=0.1, gamma=0.2, fit_intercept=True, selection=np.asarray(dense(model.expansion_.vectors))
    ).fit(dense(scaled), y[:400])
    assert np.allclose(model.decision_function(rows), whole.decision_function(dense(scaled)), atol=1e-5)
    text = run("predict", out, folder / name, "--piece", 33).stdout
    assert float(text.split("accuracy is ")[1].split(" %")[0]) > 95


def test_low_rank_learns_words_and_numbers(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(30)])
    # The first words come when 300 rows have been read.
    frame["kind"] = np.where((y == 0) & (np.arange(len(y)) > 300), "ill", np.where(y == 0, "0", "1"))
    frame.to_csv(tmp_path / "words.csv", index=False)
    run(
        "train",
        tmp_path / "words.csv",
        "--low-rank",
        50,
        "--scale",
        "standard",
        "-o",
        tmp_path / "words",
        "--piece",
        60,
    )
    assert load(tmp_path / "words").classes_.tolist() == ["0", "1", "ill"]
    assert (
        "of 569 samples)" in run("predict", tmp_path / "words", tmp_path / "words.csv", "--piece", 50).stdout
    )
    frame["kind"] = X[:, 0] * 2
    frame[::-1].to_parquet(tmp_path / "numbers.parquet")
    options = ("--alpha", 1e-3, "--scale", "standard", "--task", "regression", "--piece", 60)
    run("train", tmp_path / "numbers.parquet", "--low-rank", 100, *options, "-o", tmp_path / "numbers")
    text = run("predict", tmp_path / "numbers", tmp_path / "numbers.parquet").stdout
    assert float(text.split("R^2 is ")[1].split(",")[0]) > 0.85


def test_bad_input_is_refused_with_a_message(folder, tmp_path):
    def error(*arguments):
        return run(*arguments, code=1).stderr

    X, y = load_digits(return_X_y=True)
    save(SVC().fit(X[:100], y[:100]), tmp_path / "model")
    (tmp_path / "cut.parquet").write_bytes((folder / "names.parquet").read_bytes()[:-100])
    assert "cut.parquet: not a readable parquet" in error(
        "predict", tmp_path / "model", tmp_path / "cut.parquet"
    )
    (tmp_path / "cut.npz").write_bytes((folder / "digits.npz").read_bytes()[:-9000])
    assert "cut.npz" in error("predict", tmp_path / "model", tmp_path / "cut.npz")
    lines = (folder / "names.csv").read_text().splitlines()
    (tmp_path / "bad.csv").write_text("\n".join([*lines[:300], "1,2"]))
    assert "bad.csv:301: 2 cells" in error("predict", tmp_path / "model", tmp_path / "bad.csv", "--piece", 7)
    (tmp_path / "labels.txt").write_text("old")
    error("predict", tmp_path / "model", tmp_path / "bad.csv", "--piece", 7, "-o", tmp_path / "labels.txt")
    assert (tmp_path / "labels.txt").read_text() == "old"
    frame = pd.read_parquet(folder / "names.parquet")
    frame["pixel 3"] = "x"
    frame.to_parquet(tmp_path / "text.parquet")
    assert "column 'pixel 3'" in error("predict", tmp_path / "model", tmp_path / "text.parquet")
    frame["pixel 3"] = [None, *np.zeros(399)]
    frame.to_parquet(tmp_path / "holes.parquet")
    assert "column 'pixel 3'" in error("predict", tmp_path / "model", tmp_path / "holes.parquet")
    data, out = folder / "names.csv", ("-o", tmp_path / "m")
    for option in (("--tune",), ("--balanced",), ("-C", 3), ("--max-time", 1), ("--tol", 1e-4)):
        told = error("train", data, "--low-rank", 5, *option, *out)
        assert "is not allowed with --low-rank, which fits least squares" in told
        assert option[0].removeprefix("-").removeprefix("-") in told
    for option in ("--alpha", "--random-state", "--piece"):
        assert "is not allowed without --low-rank" in error("train", data, option, 1, *out)
    assert not (tmp_path / "m").exists()
