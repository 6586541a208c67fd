"""What a disk can do to a file that is being saved: the old one stays whole."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import svmarrow
from helpers.programs import python
from helpers.scripts import robustness_script
from svmarrow import KernelExpansion
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
}


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
