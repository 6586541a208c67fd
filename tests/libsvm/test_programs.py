"""``svm-train``, ``svm-predict`` and ``svm-scale`` against LIBSVM's, and LIBSVM's tools on them.

The core has the programs. With the path of the crate's program in ``SVMARROW_PROGRAM`` they are tested
through it instead of through the package's commands.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from typer.testing import CliRunner

import svmarrow
from svmarrow.cli import main
from svmarrow.cli.app import app
from svmarrow.io import load_svmlight, save_svmlight
from svmarrow.libsvm._programs import PROGRAMS, run

#: The crate's program, built by ``cargo build --release --features cli``.
PROGRAM = os.environ.get("SVMARROW_PROGRAM", "")
NAMES = sorted(set(PROGRAMS) - ({"grid"} if PROGRAM else set()))
package_only = pytest.mark.skipif(bool(PROGRAM), reason="a part of the package")
needs_libsvm = pytest.mark.skipif(shutil.which("svm-train") is None, reason="LIBSVM's programs are missing")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    X, y = load_wine(return_X_y=True)
    X[X < 0.2] = 0.0
    order = np.random.default_rng(0).permutation(y.size)
    X, y = X[order], y[order]
    save_svmlight(X[:120], y[:120], folder / "train")
    save_svmlight(X[120:], y[120:], folder / "test")
    save_svmlight(X[:120], X[:120, 0], folder / "numbers")
    return folder


def ours(name, *arguments):
    """Exit code, standard output, standard error."""
    if PROGRAM:
        return theirs(PROGRAM, name, *arguments)
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = run(name, list(map(str, arguments)))
    return code, out.getvalue(), error.getvalue()


def package(name, *arguments):
    """The package's command."""
    return theirs(sys.executable, "-m", "svmarrow", name, *arguments)


def theirs(name, *arguments):
    done = subprocess.run([name, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@needs_libsvm
@pytest.mark.parametrize("options", [[], ["-l", "0"], ["-l", -2, "-u", 3, "-y", 0, 1], ["-u", "0.5"]])
def test_scaling_is_that_of_libsvm(folder, tmp_path, options):
    found = [
        program("svm-scale", *options, "-s", tmp_path / program.__name__, folder / "train")
        for program in (ours, theirs)
    ]
    assert found[0][:2] == found[1][:2]
    assert found[0][1]
    # LIBSVM's versions differ in the last line of the warning.
    assert found[0][2].splitlines()[:1] == found[1][2].splitlines()[:1]
    assert (tmp_path / "ours").read_text() == (tmp_path / "theirs").read_text()
    found = [program("svm-scale", "-r", tmp_path / "ours", folder / "test") for program in (ours, theirs)]
    assert found[0][:2] == found[1][:2]


def test_memory_depends_on_the_features_that_occur(tmp_path):
    """The largest index of the format: an array of all features would take tens of gigabytes."""
    largest = 2**31 - 1
    (tmp_path / "data").write_text(f"1 5:2 {largest}:1\n-1 {largest}:3\n2 7:1 {largest}:3\n")
    code, scaled, _ = ours("svm-scale", "-s", tmp_path / "ranges", tmp_path / "data")
    assert code == 0
    assert scaled == (f"1 5:1 7:-1 {largest}:-1 \n-1 5:-1 7:-1 {largest}:1 \n2 5:-1 7:1 {largest}:1 \n")
    assert ours("svm-scale", "-r", tmp_path / "ranges", tmp_path / "data")[1] == scaled


def test_memory_depends_on_the_kernel_values_that_are_used(tmp_path):
    """A column that belongs to no training row changes nothing."""
    labels, K = [1, -1, 1, -1], np.array([[4, 1, 2, 0], [1, 3, 0, 1], [2, 0, 5, 1], [0, 1, 1, 4]])
    for name, extra in (("plain", ""), ("wide", f" {2**31 - 1}:1")):
        lines = (
            f"{label} 0:{i + 1} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) + extra
            for i, (label, row) in enumerate(zip(labels, K, strict=True))
        )
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        assert ours("svm-train", "-q", "-t", 4, tmp_path / name, tmp_path / f"{name} model")[0] == 0
        arguments = (tmp_path / name, tmp_path / f"{name} model", tmp_path / f"{name} answers")
        assert ours("svm-predict", "-q", *arguments)[0] == 0
    for kind in ("model", "answers"):
        assert (tmp_path / f"wide {kind}").read_text() == (tmp_path / f"plain {kind}").read_text()
    assert "0:1 " in (tmp_path / "wide model").read_text()


@needs_libsvm
def test_features_without_a_range_are_skipped(tmp_path):
    (tmp_path / "train").write_text("1 1:1 2:5\n2 1:3 2:5\n")
    (tmp_path / "test").write_text("1 1:1 2:5\n2 1:2 2:6 4:1\n")
    assert ours("svm-scale", "-s", tmp_path / "ranges", tmp_path / "train")[0] == 0
    found = [program("svm-scale", "-r", tmp_path / "ranges", tmp_path / "test") for program in (ours, theirs)]
    assert found[0] == found[1]
    assert "feature index 4" in found[0][2]


@needs_libsvm
@pytest.mark.parametrize("svm_type", range(5))
@pytest.mark.parametrize("probability", [0, 1])
def test_predictions_are_those_of_libsvm(folder, tmp_path, svm_type, probability):
    if svm_type == 2 and probability:
        pytest.skip("one-class SVM has no probabilities")
    (tmp_path / "scaled").write_text(ours("svm-scale", folder / ("numbers" if svm_type > 2 else "train"))[1])
    data = tmp_path / "scaled"
    options = ["-s", svm_type, "-b", probability, "-e", "1e-6", "-q", "-n", "0.2"]
    assert ours("svm-train", *options, data, tmp_path / "model") == (0, "", "")
    found = [
        program("svm-predict", "-b", probability, data, tmp_path / "model", tmp_path / program.__name__)
        for program in (ours, theirs)
    ]
    assert found[0][0] == found[1][0] == 0
    lines = [(tmp_path / name).read_text().splitlines() for name in ("ours", "theirs")]
    if probability and svm_type < 2:
        assert lines[0][0] == lines[1][0]
        lines = [text[1:] for text in lines]
    values = [np.array([line.split() for line in text], dtype=float) for text in lines]
    if svm_type == 2:  # support vectors lie on the boundary, where rounding decides
        assert (values[0] == values[1]).mean() > 0.8
        return
    np.testing.assert_allclose(values[0], values[1], rtol=1e-5, atol=1e-8)
    for mine, other in zip(found[0][1].split(), found[1][1].split(), strict=True):
        assert mine == other or float(mine) == pytest.approx(float(other), rel=1e-4)


def test_training_names_the_model_after_the_data(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, error = ours("svm-train", "-t", "0", "-h", "0", "-m", "40", folder / "train")
    assert (code, error) == (0, "")
    assert "Total nSV = " in out
    assert (tmp_path / "train.model").read_text().startswith("svm_type c_svc\nkernel_type linear\n")
    code, out, _ = ours("svm-train", "-v", "4", "-t", "0", folder / "train")
    assert code == 0
    assert out.startswith("Cross Validation Accuracy = ")
    assert out.endswith("%\n")


@needs_libsvm
@pytest.mark.parametrize(
    "options",
    [
        ["-v", "3"],
        ["-v", "500"],
        ["-v", "4", "-b", "1"],
        ["-v", "4", "-w1", "3", "-w7", "2"],
        ["-v", "4", "-s", "1", "-n", "0.3"],
        ["-v", "4", "-s", "2"],
        ["-v", "4", "-s", "3"],
        ["-v", "4", "-s", "4", "-b", "1"],
    ],
)
def test_cross_validation_is_that_of_libsvm(folder, tmp_path, options):
    regression = options[2:4] in (["-s", "3"], ["-s", "4"])
    (tmp_path / "scaled").write_text(ours("svm-scale", folder / ("numbers" if regression else "train"))[1])
    found = [
        program("svm-train", "-e", "1e-6", "-q", *options, tmp_path / "scaled") for program in (ours, theirs)
    ]
    assert found[0][0] == found[1][0] == 0
    assert found[0][1].startswith("Cross Validation ")
    lines = [out.splitlines() for _, out, _ in found]
    if regression:  # errors differ by the tolerance
        values = [[float(line.rpartition("= ")[2]) for line in each] for each in lines]
        np.testing.assert_allclose(values[0], values[1], rtol=1e-4)
    else:
        assert lines[0] == lines[1]
    # LIBSVM repeats the warning in each fold.
    assert set(found[0][2].splitlines()) == set(found[1][2].splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["svm-train"], "Usage"),
        (["svm-train", "-c"], "-c needs a value"),
        (["svm-train", "-x", "1", "@train"], "unknown option: -x"),
        (["svm-train", "-c", "-1", "@train"], "-c -1.0: the value must be above 0"),
        (["svm-train", "-t", "4", "@train"], "serial numbers"),
        (["svm-train", "@missing"], "No such file"),
        (["svm-train", "@model"], "@model"),
        (["svm-train", "@train", "a", "b"], "give training_set_file"),
        (["svm-predict", "@test", "@model"], "give test_file, model_file and output_file"),
        (["svm-predict", "-b", "1", "@test", "@model", "@out"], "does not support probability"),
        (["svm-train", "-s", "2", "-b", "1", "@train"], "-b 1 is not supported for one-class SVM"),
        (["svm-predict", "-b", "2", "@test", "@model", "@out"], "-b 2: the value must be 0 or 1"),
        (["svm-predict", "@test", "@test", "@out"], "@test"),
        (["svm-predict", "@test", "@model", "@no/out"], "@no/out: No such file or directory"),
        (["svm-scale", "-l", "1", "-u", "1", "@train"], "inconsistent lower/upper"),
        (["svm-scale", "-s", "a", "-r", "b", "@train"], "cannot use -r and -s"),
        (["svm-scale", "-y", "1", "@train"], "-y @train: the value must be a finite number"),
        (["svm-scale", "-r", "@test", "@train"], "expected the line 'x'"),
    ],
)
def test_errors_are_a_line_and_an_exit_code(folder, arguments, message):
    if not (folder / "model").exists():
        assert ours("svm-train", "-q", folder / "train", folder / "model")[0] == 0
    code, out, error = ours(*[a.replace("@", f"{folder}/") for a in arguments])
    assert code == 1
    assert message in (out + error).replace(f"{folder}/", "@")
    assert not (folder / "out").exists()


@package_only
def test_commands_of_svmarrow(folder, tmp_path, monkeypatch, capsys):
    arguments = ["svm-train", "-h", "0", "-c", "10", "-w1", "2", "-q", str(folder / "train")]
    result = CliRunner().invoke(app, [*arguments, str(tmp_path / "one")])
    assert (result.exit_code, result.output) == (0, "")
    monkeypatch.setattr(sys, "argv", ["svmarrow", *arguments, str(tmp_path / "two")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    result = CliRunner().invoke(app, ["svm-scale", "-l", "0", str(folder / "train")])
    assert result.output == ours("svm-scale", "-l", "0", folder / "train")[1]
    for name in PROGRAMS:
        result = CliRunner().invoke(app, [name])
        assert (result.exit_code, result.output) == ours(name)[:2]
        assert result.output.startswith("Usage: ")


posix = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")


def test_an_early_end_is_a_warning(tmp_path):
    rng = np.random.default_rng(0)
    save_svmlight(rng.normal(size=(60, 2)), np.where(rng.random(60) < 0.5, 1, -1), tmp_path / "data")
    code, out, error = ours("svm-train", "-c", "1e3", "-e", "1e-15", tmp_path / "data", tmp_path / "model")
    assert (code, (tmp_path / "model").exists()) == (0, True)
    assert out.startswith("*\noptimization finished, #iter = ")
    assert error.startswith("WARNING: training ended before the tolerance was reached (stalled): ")
    assert len(error.splitlines()) == 1


@posix
def test_names_of_files_need_no_encoding(tmp_path):
    """Arguments are the system's bytes, as they are for LIBSVM."""
    names = [os.fsdecode(b"\xff" + name) for name in (b"data", b"ranges", b"model", b"answers")]
    data, ranges, model, answers = (tmp_path / name for name in names)
    data.write_text("1 1:1\n-1 1:-2\n1 1:3\n")
    assert ours("svm-scale", "-s", ranges, data)[0] == 0
    assert ours("svm-train", "-q", data, model) == (0, "", "")
    assert ours("svm-predict", "-q", data, model, answers) == (0, "", "")
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    code, _, error = ours("svm-scale", tmp_path / os.fsdecode(b"\xff"))
    assert code == 1
    assert error.endswith(": No such file or directory\n")


def command_line(name, *arguments):
    """The command line of a program in a process."""
    start = [PROGRAM] if PROGRAM else [sys.executable, "-m", "svmarrow"]
    return [*start, name, *map(str, arguments)]


@posix
def test_a_reader_that_has_ended_is_no_error(tmp_path):
    (tmp_path / "data").write_text("1 1:1 2:2\n-1 1:-1 2:3\n" * 20_000)
    arguments = command_line("svm-scale", tmp_path / "data")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "1 1:1 2:-1 \n"
        process.stdout.close()
        error = process.stderr.read()
    assert (process.returncode, error) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device without space")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("svm-scale", ["data"]),
        ("svm-train", ["few"]),
        ("svm-train", ["-v", "2", "few"]),
        ("svm-train", ["--help"]),
        pytest.param("grid", ["--help"], marks=package_only),
        pytest.param("grid", ["-log2c", "0,0,1", "-log2g", "0,0,1", "-v", "2", "few"], marks=package_only),
    ],
)
def test_a_full_disk_is_reported(name, arguments, tmp_path):
    (tmp_path / "data").write_text("1 1:1 2:2\n-1 1:-1 2:3\n" * 20_000)
    (tmp_path / "few").write_text("1 1:1 2:2\n-1 1:-1 2:3\n" * 10)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command_line(name, *arguments),
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, f"{name}: No space left on device\n")


@package_only
@posix
@pytest.mark.parametrize("phase", ["reading", "training"])
def test_ctrl_c_ends_a_program_within_a_second(tmp_path, phase):
    """The data come from a pipe: whoever can open it for writing knows that the program reads."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 20)).round(3), rng.integers(0, 2, 4000)
    lines = (
        f"{label} " + " ".join(f"{j + 1}:{value}" for j, value in enumerate(row)) + "\n"
        for label, row in zip(y, X, strict=True)
    )
    text = "".join(lines)
    os.mkfifo(tmp_path / "data")
    arguments = command_line("svm-train", "-c", "1e4", "-v", "2000", tmp_path / "data")
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        with (tmp_path / "data").open("w") as pipe:
            pipe.write(text)
            pipe.flush()
            if phase == "reading":
                process.send_signal(signal.SIGINT)
                start = time.perf_counter()
                assert process.wait(60) == 130
        if phase == "training":
            time.sleep(1.0)
            process.send_signal(signal.SIGINT)
            start = time.perf_counter()
            assert process.wait(60) == 130
        seconds = time.perf_counter() - start
        assert process.stderr.read() == "svm-train: interrupted; the output is incomplete\n"
        assert process.stdout.read() == ""
    assert seconds < 3.0  # a second, on a computer that does three things at once
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


WORDS = st.one_of(
    st.sampled_from(
        [f"-{letter}" for letter in "stdgrcnpmehbvqwluyz"]
        + [
            "-w1",
            "-w-1",
            "-wx",
            "--",
            "-",
            "",
            "0",
            "1",
            "2",
            "3",
            "4",
            "-1",
            "1e-3",
            "1e300",
            "nan",
            "@train",
        ]
        + ["@model", "@out", "@missing", "@empty", "@odd"]
    ),
    st.text(max_size=4),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(NAMES),
    words=st.lists(WORDS, max_size=7),
    is_led=st.booleans(),
)
def test_no_command_line_ends_in_a_traceback(tmp_path, monkeypatch, name, words, is_led):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train").write_text("1 1:1 2:0.5\n-1 1:-1\n1 2:1\n-1 1:-2 2:-1\n")
    (tmp_path / "odd").write_bytes(b"1 1:1\n\xff\xfe x\n")
    (tmp_path / "empty").write_text("")
    if not (tmp_path / "model").exists():
        assert ours("svm-train", "-q", tmp_path / "train", tmp_path / "model")[0] == 0
    words = [word.replace("@", f"{tmp_path}/").replace("\0", "") for word in words]
    if is_led:
        words = [*words, f"{tmp_path}/train", *([f"{tmp_path}/model", f"{tmp_path}/out"][: len(words) % 3])]
    code, _, error = ours(name, *words)
    assert code in (0, 1)
    assert "Traceback" not in error


@pytest.fixture
def programs(tmp_path):
    """Executables of svmarrow in the folder that LIBSVM's tools look in."""
    for name in PROGRAMS:
        path = tmp_path / name
        command = f'"{PROGRAM}"' if PROGRAM else f'"{sys.executable}" -m svmarrow'
        path.write_text(f'#!/bin/sh\nexec {command} {name} "$@"\n')
        path.chmod(0o755)
    (tmp_path / "tools").mkdir()
    return tmp_path


@pytest.mark.skipif(shutil.which("svm-grid") is None, reason="LIBSVM's tools are missing")
def test_grid_of_libsvm_runs_on_our_program(folder, programs):
    found = []
    for trainer in ("svm-train", str(programs / "svm-train")):
        options = ["-log2c", "0,2,2", "-log2g", "-4,-6,-2", "-v", "3", "-gnuplot", "null", "-e", "1e-6"]
        (programs / "scaled").write_text(ours("svm-scale", folder / "train")[1])
        command = [sys.executable, shutil.which("svm-grid"), "-svmtrain", shutil.which(trainer) or trainer]
        done = subprocess.run(
            [*command, *options, "scaled"], capture_output=True, text=True, check=True, cwd=programs
        )
        found.append((done.stdout, (programs / "scaled.out").read_text()))
    assert found[0] == found[1]
    assert len(found[0][1].splitlines()) == 4


@pytest.mark.skipif(
    shutil.which("svm-easy") is None or shutil.which("gnuplot") is None, reason="svm-easy needs gnuplot"
)
def test_easy_of_libsvm_runs_on_our_programs(folder, programs):
    grid = programs / "tools" / "grid.py"
    found = f'exec "{sys.executable}" "{shutil.which("svm-grid")}" -log2c 0,0,1 -log2g -3,-3,1 "$@"'
    grid.write_text(f"#!/bin/sh\n{found}\n")
    grid.chmod(0o755)
    command = [sys.executable, shutil.which("svm-easy"), folder / "train", folder / "test"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=programs / "tools")
    assert "Accuracy = " in done.stdout
    assert (programs / "tools" / "test.predict").exists()


@pytest.mark.skipif(shutil.which("svm-subset") is None, reason="LIBSVM's tools are missing")
def test_subset_and_checkdata_of_libsvm_take_our_files(folder, tmp_path):
    (tmp_path / "scaled").write_text(ours("svm-scale", folder / "train")[1])
    command = [sys.executable, shutil.which("svm-checkdata"), tmp_path / "scaled"]
    assert "No error." in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    command = [sys.executable, shutil.which("svm-subset"), tmp_path / "scaled", "50", tmp_path / "some"]
    subprocess.run(command, check=True)
    assert ours("svm-train", "-q", tmp_path / "some", tmp_path / "model") == (0, "", "")


@pytest.mark.skipif(not PROGRAM, reason="SVMARROW_PROGRAM does not name the crate's program")
@pytest.mark.parametrize("svm_type", range(5))
@pytest.mark.parametrize("kernel", [2, 4])
@pytest.mark.parametrize("probability", [0, 1])
def test_the_crate_and_the_package_write_the_same(folder, tmp_path, svm_type, kernel, probability):
    if svm_type == 2 and probability:
        pytest.skip("one-class SVM has no probabilities")
    X, y = load_svmlight(folder / ("numbers" if svm_type > 2 else "train"))
    X = X.toarray() / np.abs(X.toarray()).max(axis=0)
    if kernel == 4:
        X = np.column_stack([np.arange(1, y.size + 1), X @ X.T])
    base = 0 if kernel == 4 else 1
    rows = [
        f"{target:g} " + " ".join(f"{j + base}:{value:.17g}" for j, value in enumerate(row))
        for target, row in zip(y, X, strict=True)
    ]
    (tmp_path / "data").write_text("\n".join(rows) + "\n")
    options = ["-s", svm_type, "-t", kernel, "-b", probability]
    options += ["-n", "0.2", "-c", "3", "-w2", "2", "-e", "1e-4"]
    for cross_validation in ([], ["-v", "4"]):
        found, expected = (
            program("svm-train", *options, *cross_validation, tmp_path / "data", tmp_path / name)
            for program, name in ((ours, "crate"), (package, "package"))
        )
        assert found == expected
    assert (tmp_path / "crate").read_bytes() == (tmp_path / "package").read_bytes()
    for asked in range(probability + 1):
        found, expected = (
            program("svm-predict", "-b", asked, tmp_path / "data", tmp_path / "crate", tmp_path / name)
            for program, name in ((ours, "out"), (package, "expected"))
        )
        assert found == expected
        assert found[0] == 0
        assert (tmp_path / "out").read_bytes() == (tmp_path / "expected").read_bytes()


@pytest.mark.skipif(not PROGRAM, reason="SVMARROW_PROGRAM does not name the crate's program")
def test_the_crate_converts_and_compresses(folder, tmp_path):
    (tmp_path / "scaled").write_text(ours("svm-scale", folder / "train")[1])
    for data, options in (("scaled", []), ("scaled", ["-s", 2]), ("numbers", ["-s", 3])):
        data = (tmp_path if data == "scaled" else folder) / data
        assert ours("svm-train", "-q", *options, data, tmp_path / "model")[0] == 0
        assert ours("convert", tmp_path / "model", tmp_path / "m.safetensors") == (0, "", "")
        assert ours("convert", tmp_path / "m.safetensors", tmp_path / "again") == (0, "", "")
        X, _ = load_svmlight(data)
        loaded = svmarrow.load(tmp_path / "m.safetensors")
        for model in ("model", "again"):
            assert ours("svm-predict", "-q", data, tmp_path / model, tmp_path / "out")[0] == 0
            np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), loaded.predict(X), rtol=1e-9)
        assert ours("compress", "-n", 20, tmp_path / "m.safetensors", tmp_path / "s.safetensors")[0] == 0
        small = svmarrow.load(tmp_path / "s.safetensors")
        assert 0 < small.expansion_.n_vectors <= 20
        assert ours("compress", "-n", 0, tmp_path / "model", tmp_path / "s")[0] == 1
