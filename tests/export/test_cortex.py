"""Exported headers on an emulated Cortex-M4: the labels, and no more flash than was said."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import svmarrow
from svmarrow.export import to_c

FILE = Path(__file__).resolve().parents[2] / "benches" / "peers" / "cortex.py"
spec = importlib.util.spec_from_file_location("cortex", FILE)
cortex = importlib.util.module_from_spec(spec)
sys.modules["cortex"] = cortex
spec.loader.exec_module(cortex)

pytestmark = pytest.mark.skipif(bool(cortex.missing()), reason=f"not here: {', '.join(cortex.missing())}")


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_labels_flash_and_instructions(digits, multi_class, dtype, tmp_path):
    X, y, X_test, _ = digits
    svc = svmarrow.SVC(C=10, gamma=0.05, multi_class=multi_class).fit(X, y)
    small = svmarrow.compress(svc, X, y, n_vectors=20, method="backfit")
    X_test = X_test[:40].astype(np.float32).astype(np.float64)
    made = to_c(small, prefix="p", dtype=dtype, X=X, y=y)
    found = cortex.run(made.text, X_test, tmp_path)
    different = small.classes_[found.numbers] != small.predict(X_test)
    assert different.mean() <= (0.0 if dtype == "float32" else 0.05)
    assert made.flash < found.flash < made.flash + 4000
    # A handful of instructions for each multiplication.
    assert made.multiplications < found.instructions < 12 * made.multiplications + 30_000
