"""The command line with scaling, regression, columns by name, packed files and other formats."""

from __future__ import annotations

import bz2
import gzip
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmarrow
from helpers.programs import command
from svmarrow import SVC


def run(*arguments, code=0):
    return command(*arguments, code=code).output


def write(path, names, columns):
    rows = [",".join(names), *(",".join(map(str, row)) for row in zip(*columns, strict=True))]
    text = "\n".join(rows) + "\n"
    opened = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix)
    with opened(path, "wt") if opened else path.open("w") as file:
        file.write(text)


@pytest.fixture
def iris(tmp_path):
    """Columns of very different sizes, with names; the same in another order, with one more; packed."""
    X, y = load_iris(return_X_y=True)
    columns = {"a": X[:, 0], "b": 1000.0 * X[:, 1], "c": X[:, 2] / 100.0, "d": X[:, 3]}
    kind = np.array(["x", "y", "z"])[y]
    write(tmp_path / "train.csv", [*columns, "kind"], [*columns.values(), kind])
    other = ["d", "b", "id", "kind", "a", "c"]
    values = {**columns, "id": np.arange(150), "kind": kind}
    write(tmp_path / "other.csv", other, [values[name] for name in other])
    write(tmp_path / "train.csv.gz", [*columns, "kind"], [*columns.values(), kind])
    write(tmp_path / "train.csv.bz2", [*columns, "kind"], [*columns.values(), kind])
    return tmp_path


def test_version():
    assert run("--version").strip() == f"svmarrow {svmarrow.__version__}"


def test_columns_are_scaled_and_found_by_name(iris):
    model = iris / "m.safetensors"
    run("train", iris / "train.csv", "--scale", "standard", "-o", model)
    plain = run("predict", model, iris / "train.csv")
    right = float(plain.split("accuracy is ")[1].split(" ")[0])
    assert right > 96.0
    # The label is named, or it would be one of two columns that the model does not know.
    again = run("predict", model, iris / "other.csv", "--target", "kind")
    assert again.split("accuracy is ")[1].split(",")[0] == plain.split("accuracy is ")[1].split(",")[0]
    facts = json.loads(run("info", model, "--json"))
    assert facts["columns"] == ["a", "b", "c", "d"]
    assert "Affine" in facts["preparation"]
    small = iris / "small.safetensors"
    run("compress", model, "-n", 10, "-o", small, "--data", iris / "train.csv")
    assert (
        float(run("predict", small, iris / "other.csv", "--target", "kind").split("accuracy is ")[1][:5])
        > 90.0
    )
    text = (iris / "train.csv").read_text().replace("a,b,c,d,kind", "a,b,C,d,kind")
    (iris / "renamed.csv").write_text(text)
    assert "'c'" in run("predict", model, iris / "renamed.csv", code=1)
    # Without the scaler the widest column drowns the others.
    run("train", iris / "train.csv", "-o", iris / "raw.safetensors")
    assert (
        float(run("predict", iris / "raw.safetensors", iris / "train.csv").split("accuracy is ")[1][:5])
        < right
    )
    run("train", iris / "train.csv", "--scale", "minmax", "-o", model)
    assert float(run("predict", model, iris / "train.csv").split("accuracy is ")[1][:5]) > 95.0


def test_scales_are_learned_from_the_labels(iris):
    model = iris / "m.safetensors"
    common = ("train", iris / "train.csv", "--scale", "learned", "-o", model)
    run(*common, "--tune")
    predicted = run("predict", model, iris / "train.csv")
    assert float(predicted.split("accuracy is ")[1].split(" ")[0]) > 95.0
    run(*common, "--task", "classification", "--balanced")
    told = run(*common, "--low-rank", 10, code=2)
    assert "--scale" in told
    assert "in pieces" in told


@pytest.mark.parametrize("racing", [False, True])
def test_folds_are_scaled_by_their_training_samples(tmp_path, racing):
    # One held-out outlier sets the scale of all samples, unless the scaler does not see it.
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = (np.sin(3.0 * X[:, 0]) > 0.0).astype(int)
    X[7, 0] = 1e4
    lines = [",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist()]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,kind", *lines]) + "\n")
    options = ["--racing"] if racing else []
    output = tmp_path / "m.safetensors"
    data = tmp_path / "data.csv", "--target", "kind"
    told = run("train", *data, "--scale", "standard", "--tune", *options, "-o", output)
    chosen = told.split(" folds chose ")[1]
    C, gamma = (float(chosen.split(f"{name}=")[1].split()[0].rstrip(",")) for name in ("C", "gamma"))
    score = float(chosen.split("mean score of ")[1].split()[0].rstrip("."))
    folds = cross_val_score(make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma)), X, y, cv=5)
    assert score == pytest.approx(folds.mean(), abs=0.02)
    # The model has the scale of all samples.
    whole = make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma)).fit(X, y)
    frame = pd.DataFrame(X, columns=["a", "b"])
    assert np.mean(svmarrow.load(output).predict(frame) == whole.predict(X)) > 0.95


@pytest.mark.parametrize("name", ["train.csv.gz", "train.csv.bz2"])
def test_packed_files(iris, name):
    run("train", iris / name, "-o", iris / "m.safetensors", "--scale", "standard")
    assert "accuracy" in run("predict", iris / "m.safetensors", iris / name)
    (iris / "bad.csv.gz").write_bytes(b"this is no gzip file")
    told = run("predict", iris / "m.safetensors", iris / "bad.csv.gz", code=1)
    assert "bad.csv.gz" in told
    cut = iris / f"cut-{name}"
    cut.write_bytes((iris / name).read_bytes()[:-40])
    told = run("predict", iris / "m.safetensors", cut, code=1)
    assert f"cut-{name}" in told
    with gzip.open(iris / "letters.csv.gz", "wt") as file:
        file.write("a,b,c,d,kind\n1,2,?,4,x\n")
    told = run("predict", iris / "m.safetensors", iris / "letters.csv.gz", code=1)
    assert "letters.csv.gz:2" in told
    assert "/svmarrow-" not in told


def test_regression(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    write(tmp_path / "d.csv", [*"abcdefghij", "target"], [*X.T, y])
    model, labels = tmp_path / "m.safetensors", tmp_path / "out.txt"
    common = ("--task", "regression", "--scale", "standard", "-C", 50, "--epsilon", 5)
    assert "Trained on 442 samples and 10 features in" in run(
        "train", tmp_path / "d.csv", *common, "-o", model
    )
    told = run("predict", model, tmp_path / "d.csv", "-o", labels)
    found = np.loadtxt(labels)
    fit = 1 - np.square(y - found).sum() / np.square(y - y.mean()).sum()
    assert fit > 0.5
    assert f"R^2 is {fit:.4f}" in told
    write(tmp_path / "text.csv", ["a", "b"], [X[:, 0], ["u"] * len(X)])
    assert "--task regression needs numbers as targets" in run(
        "train", tmp_path / "text.csv", "--task", "regression", "-o", model, code=1
    )


def test_convert(iris):
    pytest.importorskip("onnx")
    model = iris / "m.safetensors"
    run("train", iris / "train.csv", "--scale", "standard", "-o", model)
    assert "Wrote" in run("convert", model, "-o", iris / "m.onnx", "--dtype", "float64")
    import onnx  # noqa: PLC0415

    assert [one.name for one in onnx.load(iris / "m.onnx").graph.output] == ["label", "scores"]
    told = run("convert", model, "-o", iris / "small-one.h", "--dtype", "int8", "--data", iris / "train.csv")
    assert "The tables take " in told
    assert "score on" in told
    assert "small_one_predict" in (iris / "small-one.h").read_text()
    run("convert", model, "-o", iris / "two.h", "--prefix", "q")
    assert "q_predict" in (iris / "two.h").read_text()
    assert "LIBSVM" in run("convert", model, "-o", iris / "m.model", code=1)
    X, y = load_iris(return_X_y=True)
    svmarrow.io.save_libsvm_model(svmarrow.SVC().fit(X, y), iris / "plain.model")
    run("convert", iris / "plain.model", "-o", iris / "plain.safetensors")
    again = svmarrow.load(iris / "plain.safetensors")
    assert (again.predict(X) == svmarrow.SVC().fit(X, y).predict(X)).mean() > 0.98
    assert "--dtype is only for ONNX" in run(
        "convert", model, "-o", iris / "x.safetensors", "--dtype", "int8", code=2
    )
    assert "--prefix" in run("convert", model, "-o", iris / "x.onnx", "--prefix", "q", code=2)


def test_info_reports_where_one_vs_rest_is_smaller(tmp_path, digits):
    X, y, _, _ = digits
    X = X + 0.01 * np.sin(X + np.arange(64))
    file = tmp_path / "m.safetensors"
    svmarrow.compress(svmarrow.SVC(gamma=0.05).fit(X, y), X, y, n_vectors=30, method="backfit").save(file)
    now = svmarrow.load(file).expansion_
    note = json.loads(run("info", file, "--json"))["note"]
    then = int(note.split("would take ")[1].split(" ")[0].replace(",", ""))
    assert then == pytest.approx(now.vectors.nbytes + 8 * 10 * (now.n_vectors + 1), rel=0.05)
    svmarrow.compress(
        svmarrow.SVC(gamma=0.05, multi_class="ovr").fit(X, y), X, y, n_vectors=30, method="backfit"
    ).save(file)
    assert "note" not in json.loads(run("info", file, "--json"))


SVMLIGHT_MODEL = """\
SVM-light Version V6.02
2 # kernel type
3 # kernel parameter -d
0.5 # kernel parameter -g
1 # kernel parameter -s
1 # kernel parameter -r
empty# kernel parameter -u
2 # highest feature index
4 # number of training documents
3 # number of support vectors plus 1
-0.25 # threshold b, each following line is a SV (starting with alpha*y)
1.5 1:1 2:-1 #
-1 1:-1 #
"""


def svmlight_outputs(X):
    """The outputs of the model above, by its formula."""
    Z, B = np.array([[1.0, -1.0], [-1.0, 0.0]]), np.array([1.5, -1.0])
    return np.exp(-0.5 * ((X[:, None, :] - Z) ** 2).sum(axis=2)) @ B + 0.25


def test_models_of_svm_light(tmp_path):
    (tmp_path / "light").write_text(SVMLIGHT_MODEL)
    X = np.random.default_rng(0).standard_normal((12, 2)).round(3)
    y = np.where(svmlight_outputs(X) > 0.0, 1, -1)
    assert len(set(y.tolist())) == 2
    # A third column, which the model does not have, is a distance of its own to vectors that are zero there.
    rows = [f"{label} 1:{a} 2:{b} 3:7" for label, (a, b) in zip(y, X.tolist(), strict=True)]
    (tmp_path / "data.svm").write_text("\n".join(rows) + "\n")
    narrow = [row.removesuffix(" 3:7") for row in rows]
    (tmp_path / "narrow.svm").write_text("\n".join(narrow) + "\n")
    facts = json.loads(run("info", tmp_path / "light", "--json"))
    assert (facts["format"], facts["kernel"], facts["n_vectors"]) == ("svmlight", "rbf", 2)
    assert facts["classes"] == [-1, 1]
    run("predict", tmp_path / "light", tmp_path / "narrow.svm", "--decision", "-o", tmp_path / "scores")
    np.testing.assert_allclose(np.loadtxt(tmp_path / "scores"), svmlight_outputs(X), rtol=1e-6)
    assert "accuracy is 100" in " ".join(run("predict", tmp_path / "light", tmp_path / "narrow.svm").split())
    run("predict", tmp_path / "light", tmp_path / "data.svm", "--decision", "-o", tmp_path / "wide")
    np.testing.assert_allclose(
        np.loadtxt(tmp_path / "wide"), (svmlight_outputs(X) - 0.25) * np.exp(-0.5 * 49) + 0.25, rtol=1e-6
    )
    # The file counts its columns from 1; an index 0 would name none of them.
    (tmp_path / "zero.svm").write_text("1 0:1 1:1\n")
    assert "0" in run("predict", tmp_path / "light", tmp_path / "zero.svm", code=1)
    run("convert", tmp_path / "light", "-o", tmp_path / "m.safetensors")
    loaded = svmarrow.load(tmp_path / "m.safetensors")
    np.testing.assert_allclose(loaded.decision_function(X), svmlight_outputs(X), rtol=1e-6)
    run("convert", tmp_path / "light", "-o", tmp_path / "libsvm.model")
    assert (tmp_path / "libsvm.model").read_text().startswith("svm_type c_svc")
    data = tmp_path / "narrow.svm"
    run("compress", tmp_path / "light", "-n", "1", "--data", data, "-o", tmp_path / "small.safetensors")
    assert svmarrow.load(tmp_path / "small.safetensors").expansion_.n_vectors == 1
    assert svmarrow.as_expansion(tmp_path / "light").classes_.tolist() == [-1, 1]
    (tmp_path / "light").write_text(SVMLIGHT_MODEL.replace("2 # kernel type", "4 # kernel type"))
    assert "line 2: kernel type 4" in run("info", tmp_path / "light", code=1)


def test_chi2_takes_samples_below_the_range_of_a_fold(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    lines = [f"{a},{b},{int(a > 0.0)}" for a, b in X.tolist()]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,kind", *lines, "-9,-9,0"]) + "\n")
    data, output = (tmp_path / "data.csv", "--target", "kind"), tmp_path / "m.safetensors"
    told = run("train", *data, "--kernel", "chi2", "--scale", "minmax", "--tune", "-o", output)
    assert "mean score" in told
    below = svmarrow.load(output).predict(pd.DataFrame({"a": [-20.0, -9.0], "b": [-20.0, -9.0]}))
    assert below[0] == below[1]
