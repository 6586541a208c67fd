"""What a disk can do to a file that is being saved: the old one stays whole."""

from __future__ import annotations

import os
import stat
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import svmarrow
from helpers.programs import python
from helpers.scripts import robustness_script
from svmarrow import KernelExpansion
from svmarrow._support.system import new_file
from svmarrow.export import to_c, to_onnx
from svmarrow.io import load_svmlight, save_libsvm_model, save_svmlight

posix = pytest.mark.skipif(os.name == "nt", reason="limits and signals of POSIX")


def model(rows, value):
    return KernelExpansion(
        np.full((rows, 20), value), np.full((rows, 1), value), np.zeros(1), "rbf", gamma=1.0
    )


WRITERS = {
    "model": lambda path, rows: model(rows, 0.5).save(path),
    "LIBSVM model": lambda path, rows: save_libsvm_model(
        svmarrow.models.ExpansionRegressor(model(rows, 0.5)), path
    ),
    "svmlight": lambda path, rows: save_svmlight(np.full((rows, 20), 0.5), np.ones(rows), path),
    "C": lambda path, rows: to_c(svmarrow.models.ExpansionRegressor(model(rows, 0.5)), path),
}
if find_spec("onnx"):
    WRITERS["ONNX"] = lambda path, rows: to_onnx(svmarrow.models.ExpansionRegressor(model(rows, 0.5)), path)


@posix
def test_a_saver_that_is_killed_leaves_the_old_or_the_new_file():
    outcomes = robustness_script("kills").run(kills=3)
    assert outcomes["broken"] == 0
    assert sum(outcomes.values()) == 3


@posix
def test_a_full_disk_leaves_the_old_file_and_names_it(tmp_path):
    old = {}
    for kind, write in WRITERS.items():
        write(tmp_path / kind, 3)
        old[kind] = (tmp_path / kind).read_bytes()
    program = f"""
import errno, resource, signal, sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[1])!r}]
from test_disk import WRITERS
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
for kind, write in WRITERS.items():
    try:
        write({str(tmp_path)!r} + "/" + kind, 3000)
    except OSError as error:
        print(error.errno == errno.EFBIG, error.filename)
"""
    assert python(program).splitlines() == [f"True {tmp_path / kind}" for kind in WRITERS]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == old


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full device is Linux's")
@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_device_is_named(kind):
    with pytest.raises(OSError, match="No space left on device") as raised:
        WRITERS[kind]("/dev/full", 3000)
    assert raised.value.filename == "/dev/full"


@pytest.mark.parametrize("kind", WRITERS)
def test_places_that_cannot_be_written_are_named(kind, tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        WRITERS[kind](tmp_path / "absent" / "file", 3)
    assert raised.value.filename == str(tmp_path / "absent" / "file")
    with pytest.raises((IsADirectoryError, PermissionError)) as raised:
        WRITERS[kind](tmp_path, 3)
    assert raised.value.filename == str(tmp_path)


@posix
@pytest.mark.skipif(os.name != "nt" and os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("kind", WRITERS)
def test_a_read_only_folder_is_named(kind, tmp_path):
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.parent.chmod(0o555)
    try:
        with pytest.raises(PermissionError) as raised:
            WRITERS[kind](path, 3)
    finally:
        path.parent.chmod(0o755)
    assert raised.value.filename == str(path)


def test_readers_keep_nothing_of_a_file_that_is_cut_afterwards(tmp_path):
    """They do not map it: what was read stays."""
    path = tmp_path / "model"
    model(3000, 0.5).save(path)
    read = svmarrow.load(path)
    os.truncate(path, 100)
    assert (read.vectors == 0.5).all()
    save_svmlight(np.full((3000, 20), 0.5), np.ones(3000), path)
    rows, targets = load_svmlight(path)
    os.truncate(path, 0)
    assert rows.sum() == 3000 * 10
    assert targets.sum() == 3000


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000])
def test_files_have_the_permissions_of_the_umask_which_is_never_changed(tmp_path, mask):
    masks = []
    previous = os.umask(mask)
    try:
        plain = tmp_path / "plain"
        plain.touch()
        watched = os.umask
        os.umask = lambda value: masks.append(value) or watched(value)
        try:
            WRITERS["C"](tmp_path / "new", 3)
        finally:
            os.umask = watched
        (tmp_path / "kept").touch()
        (tmp_path / "kept").chmod(0o604)
        WRITERS["C"](tmp_path / "kept", 3)
    finally:
        os.umask(previous)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"plain": 0o666 & ~mask, "new": 0o666 & ~mask, "kept": 0o604}
    assert masks == []


def test_an_error_that_names_another_file_keeps_its_name(tmp_path):
    (tmp_path / "out").write_text("old")

    def copy(source):
        with new_file(tmp_path / "out") as file:
            file.write(b"new")
            file.write(source.read_bytes())

    with pytest.raises(FileNotFoundError) as raised:
        copy(tmp_path / "absent")
    assert raised.value.filename == str(tmp_path / "absent")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "old"
