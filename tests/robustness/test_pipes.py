"""Named pipes: what comes through one is the file's, and waiting for the other end obeys Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import svmarrow
from helpers.interruption import HANG, posix
from helpers.programs import command
from svmarrow import SVC
from svmarrow.io import load_libsvm_model, load_svmlight, save_libsvm_model, save_svmlight

pytestmark = posix
X = np.random.default_rng(0).standard_normal((300, 5))
Y = (X[:, 0] > 0).astype(int)

#: Programs that wait for the other end of the pipe p; m is a model and d its rows.
WAITING = {
    "load_svmlight": "svmarrow.io.load_svmlight(p)",
    "load_libsvm_model": "svmarrow.io.load_libsvm_model(p)",
    "save": "svmarrow.save(svmarrow.load(m), p)",
    "save_svmlight": "svmarrow.io.save_svmlight([[1.0]], [1.0], p)",
    "save_libsvm_model": "svmarrow.io.save_libsvm_model(svmarrow.load(m), p)",
    "to_onnx": "svmarrow.export.to_onnx(svmarrow.load(m), p)",
    "to_c": "svmarrow.export.to_c(svmarrow.load(m), p)",
    "predict rows": "run('predict', m, p)",
    "predict output": "run('predict', m, d, '-o', p)",
    "train rows": "run('train', p, '-o', m)",
    "train low rank": "run('train', p, '--low-rank', '10', '-o', m)",
    "train output": "run('train', d, '-o', p)",
}
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import svmarrow, svmarrow.export, svmarrow.io
from svmarrow.cli.app import app
p, m, d = sys.argv[1:]
def run(*arguments):
    app(arguments)
print("ready", flush=True)
{work}
"""


@pytest.fixture
def files(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    svmarrow.save(SVC().fit(X, Y), tmp_path / "m.safetensors")
    save_svmlight(X, Y, tmp_path / "d.svm")
    return pipe, tmp_path / "m.safetensors", tmp_path / "d.svm"


@pytest.mark.quick_every(5)
@pytest.mark.parametrize("name", WAITING)
def test_waiting_for_the_other_end_obeys_ctrl_c(name, files):
    program = PROGRAM.format(work=WAITING[name])
    with subprocess.Popen(
        [sys.executable, "-c", program, *map(str, files)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG)
    assert process.returncode in (-signal.SIGINT, 130), errors


def through(pipe, write):
    """Starts a thread that writes to the pipe."""
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def test_what_is_read_from_a_pipe_is_the_file(files):
    pipe, model, rows = files

    def loaded(read, path):
        thread = through(pipe, lambda: pipe.write_bytes(path.read_bytes()))
        found = read(pipe)
        thread.join(HANG)
        return found

    np.testing.assert_array_equal(loaded(load_svmlight, rows)[0].toarray(), X)
    expected = svmarrow.load(model).decision_function(X)
    text = model.with_suffix(".model")
    save_libsvm_model(svmarrow.load(model), text)
    np.testing.assert_allclose(loaded(load_libsvm_model, text).decision_function(X), expected)


def test_what_is_written_to_a_pipe_is_the_file(files, tmp_path):
    pipe, model, rows = files
    for write, path in [
        (lambda: svmarrow.save(svmarrow.load(model), pipe), model),
        (lambda: save_svmlight(X, Y, pipe), rows),
    ]:
        thread = through(pipe, write)
        found = pipe.read_bytes()
        thread.join(HANG)
        assert found == path.read_bytes()
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.svm", "m.safetensors", "pipe"]


@pytest.mark.parametrize("kind", ["svmlight", "csv"])
def test_the_command_reads_rows_from_a_pipe(kind, files, tmp_path):
    pipe, model, rows = files
    content = rows.read_bytes()
    if kind == "csv":
        lines = [",".join([*map(repr, x.tolist()), str(y)]) for x, y in zip(X, Y, strict=True)]
        content = ("\n".join(lines) + "\n").encode()
    expected = svmarrow.load(model).predict(X)
    for arguments in (
        ["predict", model, pipe, "--format", kind, "-o", tmp_path / "labels"],
        ["train", pipe, "--format", kind, "-o", tmp_path / "again.safetensors"],
        ["train", pipe, "--format", kind, "--low-rank", "20", "-o", tmp_path / "low.safetensors"],
    ):
        thread = through(pipe, lambda: pipe.write_bytes(content))
        command(*arguments)
        thread.join(HANG)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "labels"), expected)
    again = svmarrow.load(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(again.predict(X), expected)
    assert svmarrow.load(tmp_path / "low.safetensors").score(X, Y) > 0.8


def test_errors_name_the_pipe(files):
    pipe, model, _ = files
    thread = through(pipe, lambda: pipe.write_bytes(b"1 1:x\n"))
    said = command("predict", model, pipe, code=1).output
    thread.join(HANG)
    assert f"{pipe}:1: " in "".join(said.splitlines())


def test_a_model_that_must_be_read_twice_is_no_pipe(files):
    pipe, _, rows = files
    said = command("predict", pipe, rows, code=1).output
    assert "is a pipe: a model must be a file" in " ".join(said.split())
    for read in (svmarrow.load, svmarrow.io.info):
        with pytest.raises(ValueError, match="is a pipe: a model must be a file"):
            read(pipe)
