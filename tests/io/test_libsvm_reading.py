"""LIBSVM's files as ``svm-predict`` reads them: the same values, or a refusal of what it misreads."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from helpers.programs import command
from svmarrow.exceptions import FormatError
from svmarrow.io import info, load_libsvm_model, load_svmlight

HEAD = "svm_type epsilon_svr\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 3\nrho 0.1\nSV\n"
VECTORS = "1 1:0.5 3:1 \n-0.5 2:1 \n-0.5 1:1 2:.25 \n"
MODEL = HEAD + VECTORS
DATA = "1 1:0.5 2:1\n-1 1:2\n1 2:-1 3:.2\n-1 1:1 2:1\n1\n"
KERNEL_HEAD = HEAD.replace("rbf", "precomputed")
KERNEL = KERNEL_HEAD + "1 0:1 \n-.5 0:2 \n-.5 0:3 \n"
KERNEL_DATA = "1 0:1 1:1 2:.5 3:.25\n-1 0:2 1:.5 2:1 3:0\n1 0:9 1:.75 2:.3 3:.1\n"
#: What svm-predict 3.24 writes for MODEL and DATA, and for KERNEL and KERNEL_DATA.
ANSWERS = [
    -0.50644081547259934,
    -0.23806566066892859,
    0.08625616780194395,
    -0.4560326634924706,
    -0.1619387378984997,
]
KERNEL_ANSWERS = [0.525, -0.1, 0.45]

needs_svm_predict = pytest.mark.skipif(
    shutil.which("svm-predict") is None, reason="needs svm-predict (package libsvm-tools)"
)


def svm_predict(folder, model, data):
    """What svm-predict answers; None where it refuses."""
    for name, text in (("m", model), ("d", data)):
        (folder / name).write_bytes(text.encode())
    done = subprocess.run(
        ["svm-predict", "-q", folder / "d", folder / "m", folder / "o"],
        capture_output=True,
        check=False,
    )
    return None if done.returncode else np.loadtxt(folder / "o", ndmin=1)


def ours(folder, model, data):
    """What the command answers."""
    for name, text in (("m", model), ("d.svm", data)):
        (folder / name).write_bytes(text.encode())
    command("predict", folder / "m", folder / "d.svm", "-o", folder / "ours")
    return np.loadtxt(folder / "ours", ndmin=1)


#: Files that are read: model, data.
READ = {
    "as svm-train writes": (MODEL, DATA),
    "no trailing blanks": (MODEL.replace(" \n", "\n"), DATA),
    "more blanks": (MODEL.replace("\n", "  \t\n"), DATA.replace("\n", " \t\n")),
    "leading blanks": (HEAD + " " + VECTORS, " " + DATA),
    "tabs": (MODEL.replace(" ", "\t"), DATA.replace(" ", "\t")),
    "carriage returns": (MODEL.replace("\n", "\r\n"), DATA.replace("\n", "\r\n").replace("\n1\r", "\n1 \r")),
    "blank after the colon": (MODEL.replace("1:0.5", "1: 0.5"), DATA.replace("1:0.5", "1: \t0.5")),
    "signs and zeros": (MODEL.replace("3:1", "+03:+1"), DATA.replace("1:0.5", "01:+.5")),
    "data without a line feed at the end": (MODEL, DATA.removesuffix("\n")),
    "blank lines behind the vectors": (MODEL + "\n \n", DATA),
    "header in another order": (MODEL.replace("nr_class 2\ntotal_sv 3\n", "total_sv 3\nnr_class 2\n"), DATA),
}


@pytest.mark.parametrize("case", READ)
def test_what_is_read(case, tmp_path):
    model, data = READ[case]
    np.testing.assert_allclose(ours(tmp_path, model, data), ANSWERS, rtol=1e-12)


@needs_svm_predict
@pytest.mark.parametrize("case", READ)
def test_svm_predict_reads_it_alike(case, tmp_path):
    np.testing.assert_allclose(svm_predict(tmp_path, *READ[case]), ANSWERS, rtol=1e-12)


#: Vectors and rows that are empty, and columns that count from 0 in the model, in the data or in both.
OTHERS = {
    "vectors without features": (HEAD + "1 \n-0.5\n-0.5 1:1 \n", DATA),
    "zero in the model": (HEAD + VECTORS.replace("1:0.5", "0:.5 1:.5"), DATA),
    "zero in the data": (MODEL, DATA.replace("1 1:0.5", "1 0:3 1:0.5")),
    "zero in both": (HEAD + VECTORS.replace("1:0.5", "0:.5"), DATA.replace("1 1:0.5", "1 0:3")),
    "more columns in the data": (MODEL, DATA.replace("2:1\n", "2:1 7:.5\n", 1)),
    "zero and more columns": (
        MODEL.replace("1 1:0.5", "1 0:.25 1:.5"),
        DATA.replace("2:1\n", "2:1 7:.5\n", 1),
    ),
    "precomputed": (KERNEL, KERNEL_DATA),
    "precomputed with a blank": (KERNEL.replace("0:1", "0: 1"), KERNEL_DATA),
    "precomputed, a row twice": (KERNEL.replace("0:2", "0:1"), KERNEL_DATA),
    "precomputed, the last rows are no vectors": (
        KERNEL.replace("0:3", "0:1"),
        KERNEL_DATA,
    ),
}


@needs_svm_predict
@pytest.mark.parametrize("case", OTHERS)
def test_the_answers_of_svm_predict(case, tmp_path):
    model, data = OTHERS[case]
    np.testing.assert_allclose(ours(tmp_path, model, data), svm_predict(tmp_path, model, data), rtol=1e-9)


def test_entries_may_be_in_any_order(tmp_path):
    expected = ours(tmp_path, MODEL, DATA)
    model, data = (text.replace("1:0.5 3:1", "3:1 1:0.5") for text in (MODEL, DATA))
    assert model != MODEL
    np.testing.assert_array_equal(ours(tmp_path, model, data), expected)


def test_a_precomputed_kernel_in_pieces(tmp_path):
    np.testing.assert_allclose(ours(tmp_path, KERNEL, KERNEL_DATA), KERNEL_ANSWERS, rtol=1e-12)
    (tmp_path / "bad.svm").write_text(KERNEL_DATA.replace(" 2:.3", ""))
    said = command("predict", tmp_path / "m", tmp_path / "bad.svm", "--piece", 2, code=1).output
    assert "row 3 does not hold all values of the precomputed kernel" in said


@pytest.mark.parametrize(
    "data",
    [
        re.sub(r" 0:\d", "", KERNEL_DATA),
        KERNEL_DATA.replace(" 2:.5", ""),
        KERNEL_DATA.replace(" 3:0", ""),
        KERNEL_DATA + "1\n",
    ],
    ids=["no number of the row", "a value left out", "the last left out", "an empty row"],
)
def test_rows_that_svm_predict_takes_for_others_are_refused(data, tmp_path):
    (tmp_path / "m").write_text(KERNEL)
    (tmp_path / "d.svm").write_text(data)
    said = command("predict", tmp_path / "m", tmp_path / "d.svm", code=1).output
    assert "does not hold all values of the precomputed kernel" in " ".join(said.split())


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        (MODEL.replace("3:1", "1:1"), 8, "index 1 appears twice"),
        (MODEL.replace("3:1", "3"), 8, "no colon"),
        (MODEL.replace("3:1", "3:1x"), 8, "not a number"),
        (MODEL.replace("3:1", "3: 2:1"), 8, "not a number"),
        (MODEL.replace("3:1", "3:"), 8, "not a number"),
        (MODEL.replace("3:1", "3:0x1p-1"), 8, '"0x1p-1" is not a number, in "3:0x1p-1"'),
        (MODEL.replace("-0.5 2", "-0X.8 2"), 9, 'coefficient "-0X.8" is not a number'),
        (MODEL.replace("gamma 0.5", "gamma 0x1p-1"), 3, 'gamma: "0x1p-1" is not a number'),
        (MODEL.replace("3:1", "3:1e999"), 8, '"1e999" is not a finite number, in "3:1e999"'),
        (MODEL.replace("\n-0.5 2", "\n\n-0.5 2"), 9, "blank line among the support vectors"),
        (MODEL.replace("SV\n", "SV\n \n"), 8, "blank line among the support vectors"),
        (MODEL + "1 1:1\n", 11, "more support vectors than total_sv=3"),
        (MODEL + "the end\n", 11, "more support vectors than total_sv=3"),
        (MODEL.removesuffix("\n"), 10, "the file ends within this line"),
        (MODEL.replace("3:1", "3:1 0:1"), 8, "zero_based=True"),
        (MODEL.replace("1:0.5", "0:0.5"), 8, "zero_based=True"),
        (KERNEL.replace("0:1 ", ""), 8, "0:number"),
        (KERNEL.replace("0:1 ", "0:1 1:2 "), 8, "0:number"),
        (KERNEL.replace("0:1 ", "1:1 "), 8, "0:number"),
        (KERNEL.replace("0:1 ", "0:0 "), 8, "0:number"),
        (KERNEL.replace("0:1 ", "0:1.5 "), 8, "0:number"),
    ],
)
def test_models_that_svm_predict_takes_for_others_are_refused(text, line, part, tmp_path):
    path = tmp_path / "m"
    path.write_text(text)
    with pytest.raises(FormatError, match=re.escape(f"m:{line}: ")) as raised:
        load_libsvm_model(path)
    assert part in str(raised.value)


def test_columns_that_count_from_zero_are_asked_for(tmp_path):
    path, rows = tmp_path / "m", tmp_path / "d"
    path.write_text(HEAD + VECTORS.replace("1:0.5", "0:.5"))
    rows.write_text(DATA)
    for base in (True, "auto"):
        model = load_libsvm_model(path, zero_based=base)
        assert model.n_features_in_ == 4
    X, _ = load_svmlight(rows, zero_based=True)
    assert model.expansion_.vectors[[0]].indices.tolist() == [0, 3]
    assert X[[0]].indices.tolist() == [1, 2]
    assert info(path)["n_features"] == 4
    path.write_text(MODEL)
    assert load_libsvm_model(path, zero_based="auto").n_features_in_ == 3
    assert load_libsvm_model(path, zero_based=True).n_features_in_ == 4
    with pytest.raises(FormatError, match="index 3 is beyond the 3 features"):
        load_libsvm_model(path, 3, zero_based=True)
    with pytest.raises(ValueError, match="zero_based='no' is not allowed"):
        load_libsvm_model(path, zero_based="no")
    path.write_text(KERNEL)
    with pytest.raises(ValueError, match="zero_based=True is not allowed for the precomputed kernel"):
        load_libsvm_model(path, zero_based=True)
