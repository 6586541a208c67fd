"""Damaged files: a part of the cases of benches/robustness/files.py, and what was once believed."""

from __future__ import annotations

import io
import sys
import zipfile
from functools import reduce

import numpy as np
import pytest

import svmarrow
from helpers.model_files import change_description, describe, description
from helpers.programs import python
from helpers.scripts import robustness_script
from svmarrow import SVC, KernelExpansion, PerceptronTreeClassifier
from svmarrow.cli.data import DataOptions, read_data
from svmarrow.exceptions import FormatError
from svmarrow.io import load_svmlight
from svmarrow.least_squares import LowRankRLSClassifier

files = robustness_script("files")
KINDS = {kind.name: kind for kind in files.kinds()}


@pytest.mark.quick_every(7)
@pytest.mark.parametrize("name", KINDS)
def test_damage_is_refused_or_harmless(name):
    outcomes, faults = files.run(KINDS[name], cases=40 if name.startswith("model") else 400)
    assert faults == []
    assert outcomes["refused"] > 0


# --- what was believed ---


IRIS, KIND = files.IRIS, files.KIND


@pytest.mark.parametrize(
    ("make", "place", "value"),
    [
        (lambda: LowRankRLSClassifier(9, random_state=0).fit(IRIS, KIND), "sums_/dict", []),
        (lambda: LowRankRLSClassifier(9, random_state=0).fit(IRIS, KIND), "points_", []),
        (lambda: LowRankRLSClassifier(9, random_state=0).fit(IRIS, KIND), "n_seen_", 7),
        (lambda: PerceptronTreeClassifier(random_state=0).fit(IRIS, KIND), "mistakes_", -1),
        (lambda: PerceptronTreeClassifier(random_state=0).fit(IRIS, KIND), "n_seen_", 2**70),
    ],
)
def test_attributes_that_break_the_next_call_are_refused(make, place, value, tmp_path):
    path = tmp_path / "model"
    make().save(path)
    assert reduce(dict.get, place.split("/"), description(path)) is not None
    change_description(path, {place: value})
    with pytest.raises(FormatError):
        svmarrow.load(path)


@pytest.mark.parametrize(("name", "value"), [("n_jobs", 0), ("loss", {}), ("verbose", []), ("max_iter", -7)])
def test_parameters_of_the_wrong_kind_are_refused(name, value, tmp_path):
    path = tmp_path / "model"
    SVC(n_jobs=1).fit(IRIS, KIND).save(path)
    assert name in description(path)
    change_description(path, {name: value})
    with pytest.raises(FormatError, match=f"{name}=|is not a part of a model"):
        svmarrow.load(path)


def test_threads_of_a_stranger_cost_nothing(tmp_path):
    path = tmp_path / "model"
    SVC().fit(IRIS, KIND).save(path)
    change_description(path, {"n_jobs": 2**62})
    model = svmarrow.load(path)
    assert (model.predict(IRIS) == SVC().fit(IRIS, KIND).predict(IRIS)).all()


def test_names_of_columns_are_strings(tmp_path):
    expansion = KernelExpansion(np.eye(2), np.ones((2, 1)), np.zeros(1), "linear")
    with pytest.raises(ValueError, match="feature_names="):
        svmarrow.models.ExpansionDetector(expansion, feature_names=["a", {}]).save(tmp_path / "model")


def test_a_description_of_empty_lists_is_refused_before_it_takes_memory(tmp_path):
    path = tmp_path / "model"
    KernelExpansion(np.eye(2), np.ones((2, 1)), np.zeros(1), "linear").save(path)
    describe(path, "[" + "[]," * 1_000_000 + "[]]")
    with pytest.raises(FormatError, match="description"):
        svmarrow.load(path)


@pytest.mark.parametrize("text", ["1 1099511627776:1\n", "1 2147483648:1\n"])
def test_columns_beyond_32_bits_are_refused(text, tmp_path):
    path = tmp_path / "data"
    path.write_text(text)
    with pytest.raises(FormatError, match="2147483647"):
        load_svmlight(path)


def sparse_archive(shape):
    archive = io.BytesIO()
    np.savez(archive, data=[1.0], indices=[0], indptr=[0, 1], shape=shape, y=[0])
    return archive.getvalue()


def lying_archive(shape):
    """An array of one number that says it has more."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        member = io.BytesIO()
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        file.writestr("X.npy", member.getvalue() + bytes(8))
    return archive.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (sparse_archive([1, 2**40]), "2147483647"),
        (lying_archive((2**40, 1)), "cut off"),
        (lying_archive((2**62, 4)), "cut off"),
    ],
)
def test_archives_that_lie_about_sizes_are_refused(data, message, tmp_path):
    path = tmp_path / "data.npz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read_data(path, DataOptions())


# --- memory ---

#: The address space of the process is bounded some megabytes above what it takes before it reads.
LIMITED = """
import resource, sys
import svmarrow
from svmarrow.io import load_libsvm_model, load_svmlight, save_svmlight, save_libsvm_model
path, room = sys.argv[1], int(sys.argv[2])
with open("/proc/self/statm") as file:
    held = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + room, held + room))
try:
    {call}
except MemoryError as error:
    print("MemoryError", error)
else:
    print("done")
"""


@pytest.mark.quick_every(5)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space are Linux's")
@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("svmlight", "load_svmlight(path)"),
        ("libsvm", "load_libsvm_model(path)"),
        ("model", "svmarrow.load(path)"),
        ("line", "load_svmlight(path)"),
    ],
)
def test_a_large_file_without_memory_is_a_memory_error(kind, call, tmp_path):
    path = tmp_path / "file"
    rows = "".join(f"1 {column}:0.5 9:1\n" for column in range(1, 9)) * 100_000
    if kind == "libsvm":
        count = rows.count("\n")
        head = f"svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv {count}\nrho 0\nSV\n"
        path.write_text(head + rows)
    elif kind == "model":
        KernelExpansion(np.ones((10**6, 2)), np.ones((10**6, 1)), np.zeros(1), "linear").save(path)
    elif kind == "line":
        path.write_text(" " * (1 << 26))
    else:
        path.write_text(rows)
    program = LIMITED.replace("{call}", call)
    rooms = (12 << 20, 40 << 20, 4 << 30)
    told = [python(program, path, room, OPENBLAS_NUM_THREADS="1").split()[0] for room in rooms]
    assert told[0] == "MemoryError"
    assert told[-1] == "done"
