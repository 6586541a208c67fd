"""The command line: every command, every input format, exit codes, messages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification, make_moons

from helpers.interruption import interrupted, posix
from helpers.programs import command as run
from svmarrow import (
    SVC,
    SVCCV,
    KernelExpansion,
    KMPClassifier,
    PerceptronTreeClassifier,
    compress,
    compression_path,
    load,
)
from svmarrow.cascade import ExactCascade
from svmarrow.cli.data import DataOptions, read_data
from svmarrow.io import load_libsvm_model, save_libsvm_model, save_svmlight
from svmarrow.models import ExpansionClassifier


def one_line_error(*arguments):
    """Run what must fail on its input; the one line it says."""
    result = run(*arguments, code=1)
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("svmarrow: ")
    return lines[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits in every format, and a model."""
    folder = tmp_path_factory.mktemp("cli")
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = X[:700], X[700:1100], y[:700], y[700:1100]
    save_svmlight(X, y, folder / "train.svm")
    save_svmlight(X_test, y_test, folder / "test.svm")
    np.savez(folder / "digits.npz", X=X.astype(np.uint8), y=y.astype(np.uint8), X_test=X_test, y_test=y_test)
    parts = {}
    for prefix, rows in (("", sparse.csr_array(X)), ("test_", sparse.csr_array(X_test))):
        for name in ("data", "indices", "indptr", "shape"):
            parts[prefix + name] = getattr(rows, name)
    np.savez(folder / "sparse.npz", **parts, y=y, y_test=y_test)
    header = ["label", *(f"pixel {i}" for i in range(64))]
    names = np.array([f"digit {label}" for label in range(10)])
    with (folder / "train.csv").open("w") as file:
        print(",".join(header), file=file)
        for label, row in zip(names[y], X, strict=True):
            print(",".join([label, *map(str, row)]), file=file)
    np.savetxt(folder / "plain.tsv", np.column_stack([X_test, y_test]), delimiter="\t")
    np.savetxt(folder / "unlabelled.csv", X_test, delimiter=",")
    run("train", folder / "train.svm", "-o", folder / "model.safetensors", "-C", "10", "-g", "0.001")
    return folder


def test_help_shows_examples():
    text = run("--help").stdout
    for command in ("demo", "train", "compress", "predict", "info"):
        assert command in text
        assert f"svmarrow {command}" in text or command == "info"
        assert "Usage" in run(command, "--help").stdout
        if command != "demo":
            assert f"svmarrow {command} " in run(command, "-h").stdout


def test_train_reports_its_work_and_writes_the_librarys_model(folder):
    out = folder / "said.safetensors"
    text = run("train", folder / "train.svm", "-o", out, "-C", "10", "-g", "0.001", "-j", "1").stdout
    X, y = load_digits(return_X_y=True)
    model, same = load(out), SVC(C=10, gamma=0.001).fit(sparse.csr_array(X[:700]), y[:700])
    assert model.n_features_in_ in (63, 64)  # svmlight does not write a last column of zeros
    np.testing.assert_array_equal(model.support_, same.support_)
    assert f"Trained on 700 samples, {model.n_features_in_} features and 10 classes in " in text
    assert f": {len(same.support_)} support vectors.\nThe fit converged after " in text
    assert " steps with a duality gap of " in text
    assert f"Wrote {out} (" in text
    assert model.verbose is False


@pytest.mark.parametrize(
    "options", [["--multi-class", "ovr"], ["--kernel", "linear", "--balanced", "--tol", "0.01"]]
)
def test_train_passes_its_options_on(options, folder):
    out = folder / "options.safetensors"
    run("train", folder / "train.svm", "-o", out, *options, "--cache-size", "50", "--float32")
    model = load(out)
    assert model.cache_size == 50
    assert model.support_vectors_.dtype == np.float32
    if options[0] == "--kernel":
        assert (model.kernel, model.class_weight, model.tol) == ("linear", "balanced", 0.01)
    else:
        assert model.multi_class == "ovr"


def test_the_main_job_on_every_format(folder):
    small = folder / "small.safetensors"
    for train, test in (
        (["train.svm"], ["test.svm"]),
        (["digits.npz"], ["digits.npz", "--test"]),
        (["sparse.npz"], ["sparse.npz", "--test"]),
    ):
        model = folder / "job.safetensors"
        run("train", folder / train[0], "-o", model, "-C", "10", "-g", "0.001", "--multi-class", "ovr")
        text = run("compress", model, "-o", small, "-n", "60", "--data", folder / train[0]).stdout
        assert "vectors to 60 in" in text
        text = run("predict", small, folder / test[0], *test[1:], "-o", folder / "labels.txt").stdout
        accuracy = float(text.split("The accuracy is ")[1].split(" %")[0])
        labels = np.loadtxt(folder / "labels.txt", dtype=int)
        _, y = load_digits(return_X_y=True)
        assert accuracy == pytest.approx(100 * (labels == y[700:1100]).mean(), abs=0.006)
        assert accuracy > 88


def test_compress_by_loss_with_curve(folder):
    out, curve = folder / "by-loss.safetensors", folder / "curve.png"
    arguments = ["compress", folder / "model.safetensors", "-o", out, "--max-loss", "0.01"]
    arguments += ["-m", "backfit"]
    text = run(*arguments, "--validation", folder / "test.svm", "--curve", curve).stdout
    small, full = load(out), load(folder / "model.safetensors")
    data = read_data(folder / "test.svm", DataOptions(n_features=full.n_features_in_))
    assert isinstance(small, ExpansionClassifier)
    assert small.score(data.X, data.y) >= full.score(data.X, data.y) - 0.01 - 1e-9
    assert f"vectors to {small.expansion_.n_vectors} in" in text
    assert " after compression." in text
    assert "with 95 % confidence" in text
    assert curve.read_bytes().startswith(b"\x89PNG")
    few = [*arguments[:4], "--max-loss", "0", "--validation", folder / "test.svm", "-m", "prefit"]
    rows = ["--candidates", "samples", "--data", folder / "test.svm"]
    assert "max_loss=0 is not reached" in one_line_error(*few, *rows)


def test_compress_by_itself_bounds_the_loss_and_draws(tmp_path):
    X, y = make_moons(900, noise=0.2, random_state=0)
    for name, some in (("train", slice(300)), ("data", slice(300, 700)), ("test", slice(700, None))):
        np.savetxt(tmp_path / f"{name}.csv", np.column_stack([X[some], y[some]]), delimiter=",")
    model, out, curve = (tmp_path / name for name in ("model", "small", "curve.png"))
    run("train", tmp_path / "train.csv", "-o", model, "-g", "2")
    full = load(model)
    arguments = ["compress", model, "-o", out, "--data", tmp_path / "data.csv"]
    text = run(*arguments, "--max-loss", "0.05").stdout
    small = load(out)
    assert small.expansion_.n_vectors <= 20 < full.expansion_.n_vectors
    assert str(small.loss_bound_) in " ".join(text.split())
    assert (small.loss_bound_.max_loss, small.loss_bound_.n_samples) == (0.05, 200)
    assert "The error rate on" not in text
    text = run(*arguments, "-n", "4", "--validation", tmp_path / "test.csv", "--curve", curve).stdout
    assert "vectors to 4 in" in text
    assert load(out).loss_bound_.n_samples == 200
    assert curve.read_bytes().startswith(b"\x89PNG")
    # Nothing but rows that judge: the loss that Python takes, too.
    run(*arguments[:4], "-n", "6", "--validation", tmp_path / "test.csv", "-m", "backfit")
    assert load(out).loss_bound_.max_loss is None
    run(*arguments[:4], "--validation", tmp_path / "test.csv", "-m", "backfit")
    assert load(out).loss_bound_.max_loss == 0.003


def test_compress_with_validation_in_the_test_arrays_and_rows_as_candidates(folder):
    out = folder / "rows.safetensors"
    data = folder / "digits.npz"
    options = [
        "-n",
        "20",
        "--candidates",
        "samples",
        "--data",
        data,
        "--validation",
        data,
        "--validation-test",
    ]
    model = folder / "npz.safetensors"
    run("train", data, "-o", model, "-g", "0.001")
    text = run("compress", model, "-o", out, *options).stdout
    assert "The error rate on" in text
    assert load(out).expansion_.n_vectors == 20
    # Rows to choose from need no labels, and the output may take the place of the input.
    run(
        "compress",
        model,
        "-o",
        model,
        "-n",
        "9",
        "--candidates",
        "samples",
        "--data",
        folder / "unlabelled.csv",
    )
    assert load(model).expansion_.n_vectors == 9


def test_csv_with_names(folder):
    model = folder / "names.safetensors"
    run("train", folder / "train.csv", "--target", "label", "-o", model, "-g", "0.001")
    assert load(model).classes_.tolist() == [f"digit {label}" for label in range(10)]
    text = run("predict", model, folder / "train.csv", "--target", "0").stdout
    assert float(text.split("The accuracy is ")[1].split(" %")[0]) > 95
    run("predict", model, folder / "unlabelled.csv", "-o", folder / "labels.txt")
    labels = (folder / "labels.txt").read_text().splitlines()
    assert len(labels) == 400
    assert set(labels) <= set(load(model).classes_)


def test_rows_without_labels_go_to_standard_output(folder):
    model = folder / "npz.safetensors"
    run("train", folder / "digits.npz", "-o", model, "-g", "0.001")
    result = run("predict", model, folder / "unlabelled.csv")
    expected = load(model).predict(np.loadtxt(folder / "unlabelled.csv", delimiter=","))
    assert [int(line) for line in result.stdout.splitlines()] == expected.tolist()
    assert "Predicted 400 samples in" in result.stderr
    again = run("predict", model, folder / "plain.tsv", "-o", "-", "--decision")
    scores = np.array([[float(cell) for cell in line.split(",")] for line in again.stdout.splitlines()])
    np.testing.assert_allclose(
        scores, load(model).decision_function(np.loadtxt(folder / "unlabelled.csv", delimiter=","))
    )
    assert "accuracy" in again.stderr


def test_unknown_labels_are_counted(folder):
    lines = (folder / "test.svm").read_text().splitlines()
    lines[0] = "77 " + lines[0].split(" ", 1)[1]
    (folder / "odd.svm").write_text("\n".join(lines) + "\n")
    result = run("predict", folder / "model.safetensors", folder / "odd.svm")
    assert "1 of 400 labels" in result.stderr


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (
            lambda X, y: compress(SVC().fit(X, y), n_vectors=4),
            {"model": "ExpansionClassifier", "n_vectors": 4},
        ),
        (
            lambda X, y: compression_path(SVC(gamma=0.5).fit(X, y), n_vectors=3),
            {"model": "CompressionPath", "sizes": [1, 2, 3], "n_vectors": 3, "gamma": 0.5},
        ),
        (
            lambda X, y: PerceptronTreeClassifier(budget=9, random_state=0).fit(X, y),
            {"model": "PerceptronTreeClassifier", "n_seen": 150, "classes": [0, 1, 2], "n_features": None},
        ),
        (
            lambda X, y: ExactCascade(SVC(kernel="linear"), stages=[2]).fit(X, y),
            {"model": "ExactCascade", "kernel": "linear", "gamma": None, "decoding": "ovo"},
        ),
        (
            lambda X, y: KMPClassifier(5, kernel=["rbf", "linear"], random_state=0).fit(X, y),
            {"model": "KMPClassifier", "n_vectors": 5, "classes": [0, 1, 2]},
        ),
    ],
)
def test_info_of_every_kind(make, facts, tmp_path):
    X, y = load_iris(return_X_y=True)
    make(X, y).save(tmp_path / "model")
    found = json.loads(run("info", tmp_path / "model", "--json").stdout)
    assert {name: found.get(name) for name in facts} == facts
    assert found["what"].endswith(".")
    assert facts["model"] in run("info", tmp_path / "model").stdout


def test_info(folder):
    facts = json.loads(run("info", folder / "model.safetensors", "--json").stdout)
    model = load(folder / "model.safetensors")
    assert facts["model"] == "SVC"
    assert facts["kernel"] == "rbf"
    assert facts["gamma"] == 0.001
    assert facts["n_vectors"] == len(model.support_)
    assert facts["n_outputs"] == 45
    assert facts["classes"] == list(range(10))
    assert facts["bytes"] == (folder / "model.safetensors").stat().st_size
    assert facts["certificate"]["gap"] == pytest.approx(model.certificate_.gap)
    assert facts["metadata"]["training samples"] == 700
    text = run("info", folder / "model.safetensors").stdout
    assert "training samples" in text
    assert "certificate" in text
    assert f"{len(model.support_):,}" in text


def test_libsvm_models_in_and_out(folder):
    text_model, small = folder / "text.model", folder / "small.model"
    run("train", folder / "train.svm", "-o", text_model, "-C", "10", "-g", "0.001")
    assert text_model.read_text().startswith("svm_type c_svc")
    assert json.loads(run("info", text_model, "--json").stdout)["format"] == "libsvm"
    run("compress", text_model, "-o", small, "-n", "50", "--data", folder / "train.svm")
    assert len(load_libsvm_model(small).classes_) == 10
    text = run("predict", small, folder / "test.svm").stdout
    assert "accuracy" in text
    run("compress", text_model, "-o", folder / "named", "-n", "5", "--model-format", "libsvm")
    assert (folder / "named").read_text().startswith("svm_type")


def test_libsvm_models_take_data_of_other_widths(folder):
    (folder / "narrow.svm").write_text("1 1:1 2:1\n-1 1:0.5\n1 2:2\n-1 1:0.1\n")
    (folder / "wide.svm").write_text("1 1:1 2:1 9:4\n-1 1:0.5\n")
    run("train", folder / "narrow.svm", "-o", folder / "narrow.model", "-g", "1")
    assert "2 samples" in run("predict", folder / "narrow.model", folder / "wide.svm").stdout
    (folder / "first.svm").write_text("1 1:1\n-1 1:0.5\n")
    assert "2 samples" in run("predict", folder / "narrow.model", folder / "first.svm").stdout


# --- what goes wrong ---


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("missing.svm", None, [], "missing.svm: No such file"),
        ("bad.svm", "1 1:1\n2 1:x\n", [], "bad.svm:2: "),
        ("nan.svm", "1 1:1\n2 1:nan\n", [], "nan.svm:2: "),
        ("empty.svm", "", [], "there are no rows"),
        ("empty.csv", "", [], "there are no rows"),
        ("header.csv", "a,b\n", [], "there are no rows"),
        ("ragged.csv", "1,2,0\n3,4\n", [], "ragged.csv:2: 2 cells, the first line has 3"),
        ("text.csv", "a,b,y\n1,2,0\n1,x,1\n", [], "text.csv:3: column 'b' holds 'x'"),
        ("blank.csv", "a,b,y\n1,2,\n1,2,1\n", [], "row 1 has no label"),
        ("target.csv", "a,b,y\n1,2,0\n1,3,1\n", ["--target", "z"], "no column 'z': its columns are a, b, y"),
        ("index.csv", "1,2,0\n1,3,1\n", ["--target", "7"], "no column 7: it has the columns 0 to 2"),
        ("none.csv", "1,2,0\n1,3,1\n", ["--target", "none"], "the data have no labels"),
        ("binary.csv", b"\xff\xfe\x00\x01", [], "not UTF-8 text"),
        ("one.svm", "1 1:1\n1 1:2\n", [], "class"),
        ("inf.csv", "1,inf,0\n1,3,1\n", [], "infinity"),
        ("broken.npz", b"PK\x03\x04 not a zip", [], "not a readable npz archive"),
        ("format.svm", "1 1:1\n", ["--target", "y"], "--target is for CSV and parquet files"),
        ("format.csv", "1,0\n2,1\n", ["--test"], "--test is for npz files"),
        ("C.svm", "1 1:1\n2 1:2\n", ["-C", "-1"], "C=-1.0 is not allowed"),
        ("gamma.svm", "1 1:1\n2 1:2\n", ["-g", "-1"], "gamma=-1.0 is not allowed"),
        ("jobs.svm", "1 1:1\n2 1:2\n", ["-j", "0"], "n_jobs=0 is not allowed"),
    ],
)
def test_bad_training_data_is_one_line_and_writes_nothing(name, content, options, message, tmp_path):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    line = one_line_error("train", path, "-o", tmp_path / "model.safetensors", *options)
    assert message in line
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"Z": np.zeros(3)}, [], "neither X nor data, indices, indptr, shape in this archive, it holds Z"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(3)}, ["--test"], "neither X_test nor test_data"),
        ({"X": np.zeros(3), "y": np.zeros(3)}, [], "expected a matrix of numbers"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(4)}, [], "y has shape (4,), there are 3 rows"),
        ({"X": np.array([[None]]), "y": np.zeros(1)}, [], "not a readable npz archive of plain arrays"),
        (
            {"data": [1.0], "indices": [9], "indptr": [0, 1], "shape": [1, 2], "y": [1]},
            [],
            "data, indices, indptr and shape are no CSR matrix",
        ),
    ],
)
def test_bad_archives_are_refused(arrays, options, message, tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, **{name: np.asarray(value) for name, value in arrays.items()})
    assert message in one_line_error("train", path, "-o", tmp_path / "model", *options)


def test_bad_models_are_refused(folder, tmp_path):
    model, out = folder / "model.safetensors", tmp_path / "out"
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(model.read_bytes()[:-10])
    assert "cut.safetensors:" in one_line_error("info", cut)
    assert "not a safetensors file" in one_line_error("predict", folder / "train.svm", folder / "test.svm")
    assert "n_vectors=0" in one_line_error("compress", model, "-o", out, "-n", "0")
    (tmp_path / "wide.svm").write_text("1 500:1\n")
    assert "beyond" in one_line_error("predict", model, tmp_path / "wide.svm")
    np.savetxt(tmp_path / "narrow.csv", np.ones((3, 5)), delimiter=",")
    assert "4 columns, the model has" in one_line_error("predict", model, tmp_path / "narrow.csv")
    KernelExpansion(np.ones((1, 4)), [1.0], 0.0).save(tmp_path / "bare.safetensors")
    assert "no labels" in one_line_error("predict", tmp_path / "bare.safetensors", folder / "test.svm")
    assert json.loads(run("info", tmp_path / "bare.safetensors", "--json").stdout)["n_outputs"] == 1
    assert not out.exists()


def test_outputs_that_cannot_be_written_are_refused_before_the_work(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(SVC, "fit", lambda *_: pytest.fail("it trained first"))
    line = one_line_error("train", folder / "train.svm", "-o", tmp_path / "no" / "model")
    assert "its folder does not exist" in line
    assert "Is a directory" in one_line_error("train", folder / "train.svm", "-o", tmp_path)


def test_labels_that_libsvm_has_not_are_refused(folder, tmp_path):
    line = one_line_error("train", folder / "train.csv", "--target", "0", "-o", tmp_path / "text.model")
    assert "cannot be written to a LIBSVM model" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "DATA"),
        (["train", "x"], "--output"),
        (["train", "x", "-o", "y", "--kernel", "magic"], "magic"),
        (["train", "x", "-o", "y", "-g", "wide"], "neither a number nor"),
        (["train", "x", "-o", "y", "-C", "much"], "Invalid value for '--C'"),
        (["compress", "x", "-o", "y"], "compress needs a goal: give --n-vectors"),
        (["compress", "x", "-o", "y", "-n", "3", "--max-loss", "0.1"], "exclude each other"),
        (["compress", "x", "-o", "y", "-m", "l1", "-n", "3"], "'l1' is not one of"),
        (
            ["compress", "x", "-o", "y", "--candidates", "samples", "--data", "z"],
            "--n-vectors or --validation",
        ),
        (["compress", "x", "-o", "y", "--max-loss", "0.1"], "--max-loss needs --validation"),
        (["compress", "x", "-o", "y", "-n", "3", "--curve", "z.png"], "--curve needs --validation"),
        (["compress", "x", "-o", "y", "-n", "3", "--candidates", "samples"], "needs --data"),
        (["fit"], "fit"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments, message):
    assert message in run(*arguments, code=2).stderr


def test_ctrl_c_is_exit_code_130(folder, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(SVC, "fit", interrupted)
    result = run("train", folder / "train.svm", "-o", tmp_path / "model", code=130)
    assert result.stderr.strip() == "svmarrow: The command was interrupted and wrote nothing."


# --- real processes ---


def process(*arguments, **options):
    command = [sys.executable, "-m", "svmarrow", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@posix
def test_ctrl_c_ends_a_long_fit(tmp_path):
    X, y = make_classification(30_000, 20, flip_y=0.4, random_state=0)
    save_svmlight(X, y, tmp_path / "hard.svm")
    files = ["train", str(tmp_path / "hard.svm"), "-o", str(tmp_path / "model")]
    slow = ["-C", "1e6", "-g", "0.05", "--tol", "1e-9"]
    raised, units, _, message = interrupted(
        f"""
        import sys
        from svmarrow.cli import main
        sys.argv = {["svmarrow", *files, *slow]}
        work, after = main, lambda: None
        """,
        busy=4.0,
    )
    assert raised == ["SystemExit", "130"]
    assert units < 1.0
    assert message.strip() == "svmarrow: The command was interrupted and wrote nothing."
    assert not (tmp_path / "model").exists()


@pytest.mark.exhaustive
def test_the_demo_in_a_process(tmp_path):
    done = process("demo", cwd=tmp_path, env={**os.environ, "MPLBACKEND": "Agg"})
    assert done.returncode == 0, done.stderr
    assert "has the same predictions, to the last bit." in done.stdout
    assert "Bound: Accuracy " in done.stdout
    assert "scikit-learn SVC" in done.stdout
    assert "compressed, selected" in done.stdout
    folder = tmp_path / "svmarrow-demo"
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    small, full = load(folder / "digits.safetensors"), load(folder / "full.safetensors")
    assert small.expansion_.n_vectors < full.expansion_.n_vectors
    assert process("info", folder / "digits.safetensors").returncode == 0


def test_without_the_extra_the_message_names_it():
    for missing in ("typer", "rich"):
        code = f"import sys; sys.modules[{missing!r}] = None; from svmarrow.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == f"svmarrow: the command line needs {missing}: pip install 'svmarrow[cli]'\n"


def test_a_real_error_is_one_line(tmp_path):
    done = process("info", tmp_path / "nothing.safetensors")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"svmarrow: {tmp_path / 'nothing.safetensors'}: No such file or directory\n"


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise there")
def test_a_reader_that_has_enough_is_no_error_message(folder):
    model = folder / "pipe.safetensors"
    run("train", folder / "digits.npz", "-o", model, "-g", "0.001")
    command = [sys.executable, "-m", "svmarrow", "predict", model, folder / "unlabelled.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full device is Linux's")
def test_output_that_cannot_be_written_is_one_line(folder):
    model = folder / "full.safetensors"
    run("train", folder / "digits.npz", "-o", model, "-g", "0.001")
    for arguments in (["--help"], ["--version"], ["info", model]):
        command = [sys.executable, "-m", "svmarrow", *arguments]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr) == (1, "svmarrow: No space left on device\n")


def test_a_fit_that_runs_out_of_time_warns_and_is_saved(folder, tmp_path):
    out = tmp_path / "model.safetensors"
    done = process("train", folder / "train.svm", "-o", out, "--max-time", "0", "--tol", "1e-9")
    assert done.returncode == 0
    assert done.stderr.startswith("svmarrow: warning: SVC ended before the tolerance was reached (max_time)")
    assert load(out).certificate_.stop == "max_time"


def test_binary_labels_of_libsvm_files_keep_their_meaning(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.where(y == 1, 1, -1)
    X = X / X.max(axis=0)
    save_svmlight(X, labels, tmp_path / "data.svm")
    model = SVC(gamma=1.0).fit(X, labels)
    save_libsvm_model(model, tmp_path / "text.model")
    text = run("predict", tmp_path / "text.model", tmp_path / "data.svm").stdout
    assert f"{int((model.predict(X) == labels).sum())} of {len(y)} samples)" in text


def test_train_chooses_c_and_gamma(folder, tmp_path):
    X, y = load_iris(return_X_y=True)
    save_svmlight(X, y, tmp_path / "iris.svm")
    out, drawn = tmp_path / "m.safetensors", tmp_path / "grid.png"
    told = run("train", tmp_path / "iris.svm", "--tune", "--tune-plot", drawn, "-o", out).output
    search = SVCCV().fit(sparse.csr_matrix(X), y)
    chosen = ", ".join(f"{name}={value:.4g}" for name, value in search.best_params_.items())
    assert f"chose {chosen} with a mean score of {search.best_score_:.4f}." in told
    assert drawn.read_bytes().startswith(b"\x89PNG")
    np.testing.assert_array_equal(
        load(out).predict(sparse.csr_matrix(X)), search.predict(sparse.csr_matrix(X))
    )
    assert "mean score" in run("train", tmp_path / "iris.svm", "--tune", "--racing", "-o", out).output
    assert "give --tune too" in one_line_error("train", tmp_path / "iris.svm", "--racing", "-o", out)
