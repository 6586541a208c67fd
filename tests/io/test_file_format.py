"""The page about the file's layout is true: its program reads what `save` writes, without svmarrow."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import svmarrow
from svmarrow import KernelExpansion, compress, quantize

PAGE = Path(__file__).resolve().parents[2] / "docs" / "file-format.md"


@pytest.fixture(scope="module")
def outputs():
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert "svmarrow" not in program
    names = {}
    exec(program, names)
    return names["outputs"]


def names_in(file):
    data = file.read_bytes()
    return set(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]))


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_the_program_reads_every_form(digits, outputs, multi_class, tmp_path):
    X, y, X_test, _ = digits
    X, X_test = X + 0.01 * np.sin(np.arange(64) * X), X_test
    svc = svmarrow.SVC(C=10, gamma=0.05, multi_class=multi_class).fit(X, y)
    small = compress(svc, X, y, n_vectors=40, method="backfit")
    forms = {}
    for name, model in {
        "full": svc,
        "small": small,
        "single": quantize(small, coefficients="same"),
        "codes": quantize(svc, X=X),
        "bytes": quantize(small, dtype="int8", X=X),
    }.items():
        file = tmp_path / f"{name}.safetensors"
        svmarrow.save(model, file)
        again = svmarrow.load(file)
        assert again.expansion_ == model.expansion_
        wanted = model.expansion_.decision_function(X_test)
        np.testing.assert_allclose(outputs(file, X_test), wanted, atol=1e-9 * np.abs(wanted).max() + 1e-9)
        forms[name] = names_in(file), file.stat().st_size
    assert "vectors.step" in forms["bytes"][0]
    assert {"coefficients.steps", "coefficients.zeros"} <= forms["codes"][0]
    assert "coefficients.present" in forms["full"][0]
    assert forms["bytes"][1] < 0.35 * forms["small"][1]


def test_zero_coefficients_take_no_room(datasets, tmp_path):
    """Of a one-vs-one machine of k classes each vector has k - 1 coefficients of k (k - 1) / 2."""
    X, y = datasets["digits"]
    svc = svmarrow.SVC(C=0.7, gamma=0.3).fit(X + 0.01 * np.sin(X), y)
    m, q = svc.expansion_.coefficients.shape
    file = tmp_path / "digits.safetensors"
    svc.as_expansion().save(file)
    sizes = {name: 8 * m * count for name, count in (("dense", q), ("packed", 9))}
    about = file.stat().st_size - svc.expansion_.vectors.nbytes
    assert about < sizes["packed"] + m * q // 8 + 4000 < 0.3 * sizes["dense"] + 4000
    assert svmarrow.load(file).expansion_ == svc.expansion_


def test_sparse_vectors_single_numbers_and_the_edges(outputs, rng, tmp_path):
    file = tmp_path / "one.safetensors"
    for Z, B in (
        (np.zeros((1, 1)), [[0.0]]),
        (rng.normal(size=(9, 3)), np.zeros((9, 9))),
        (rng.integers(0, 9, size=(30, 5)).astype(float), np.eye(30)),
        (rng.integers(0, 9, size=(30, 5)).astype(np.float32) / 8 - 3, rng.normal(size=(30, 2))),
        (rng.integers(0, 255, size=(30, 5)).astype(np.uint8), rng.integers(0, 5, size=(30, 3)) * 0.25),
    ):
        expansion = KernelExpansion(Z, B, np.arange(len(B[0])), gamma=0.1)
        expansion.save(file)
        assert svmarrow.load(file) == expansion
        X = rng.normal(size=(4, Z.shape[1]))
        wanted = expansion.decision_function(X)
        np.testing.assert_allclose(outputs(file, X), wanted, atol=1e-9 * (1 + np.abs(wanted).max()))
