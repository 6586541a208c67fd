"""Labels of every type: equal after saving and loading, in ONNX and in C, or refused by name."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

import svmarrow
from helpers.programs import c_program, needs_gcc
from svmarrow import SVC, LowRankSVC, RLSClassifier
from svmarrow.cli.formats import labels_of
from svmarrow.export import to_c, to_onnx

X, KIND = load_iris(return_X_y=True)
X, KIND = X[::3], KIND[::3]
WORDS = np.array(["a", "bb", "c\u00e9"])
LABELS = {
    **{kind: KIND.astype(kind) for kind in ("i1", ">i2", ">i4", ">i8", "u1", ">u2", ">u4", ">u8")},
    **{kind: KIND.astype(kind) for kind in ("f2", ">f2", ">f4", ">f8", "g")},
    "bool": KIND > 0,
    "U": WORDS[KIND],
    ">U": WORDS[KIND].astype(">U7"),
    "strings": WORDS.astype(object)[KIND],
    "strings of NumPy": np.array([np.str_(word) for word in WORDS], dtype=object)[KIND],
    "long strings": np.array(["a" * 100_000, "b", "c" * 3])[KIND],
    "large unsigned": np.array([2**63, 2**63 + 5, 2**64 - 1], dtype=np.uint64)[KIND],
    "ends of 64 bits": np.array([-(2**63), 0, 2**63 - 1])[KIND],
    "surrogates": np.array(["\ud800", "b", "c"], dtype=object)[KIND],
}
#: What files hold no type of.
NOT_STORED = {"g"}
NOT_EXPORTED = {"surrogates"}


@pytest.mark.parametrize("name", LABELS)
def test_labels_come_back_from_a_file(name, tmp_path):
    for estimator in (SVC(), RLSClassifier(), LowRankSVC(5, random_state=0)):
        model = estimator.fit(X, LABELS[name])
        if name in NOT_STORED:
            with pytest.raises(TypeError, match="classes_ of type float128 cannot be stored"):
                model.save(tmp_path / "m")
            continue
        model.save(tmp_path / "m")
        back = svmarrow.load(tmp_path / "m")
        assert back.classes_.tolist() == model.classes_.tolist()
        assert back.classes_.dtype.newbyteorder("=") == model.classes_.dtype.newbyteorder("=")
        assert back.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("name", LABELS)
def test_labels_in_onnx_are_those_of_the_model(name):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = SVC().fit(X, LABELS[name])
    if name in NOT_EXPORTED:
        with pytest.raises(ValueError, match=r"class '\\ud800' cannot be exported"):
            to_onnx(model)
        return
    session = onnxruntime.InferenceSession(to_onnx(model, dtype="float64").SerializeToString())
    assert session.run(["label"], {"X": X})[0].tolist() == model.predict(X).tolist()


@pytest.mark.quick_every(3)
@needs_gcc
@pytest.mark.parametrize("name", LABELS)
def test_labels_in_c_are_those_of_the_model(name, tmp_path):
    model = SVC().fit(X, LABELS[name])
    if name in NOT_EXPORTED:
        with pytest.raises(ValueError, match=r"class '\\ud800' cannot be exported"):
            to_c(model, tmp_path / "m.h", prefix="m")
        return
    to_c(model, tmp_path / "m.h", prefix="m")
    kind = re.search(r"static inline ([a-z *]+?)m_label", (tmp_path / "m.h").read_text())[1].strip()
    form = {
        "long": "ld",
        "long long": "lld",
        "unsigned long long": "llu",
        "double": ".17g",
        "const char *": "s",
    }
    each = f'for (int i = 0; i < M_CLASSES; i++) printf("%{form[kind]}\\n", m_label(i));'
    main = f'#include <stdio.h>\n#include "m.h"\nint main(void) {{ {each} }}\n'
    said = c_program(tmp_path, main).splitlines()
    classes = model.classes_.tolist()
    assert said == [
        f"{label:.17g}" if kind == "double" else str(label if isinstance(label, str) else int(label))
        for label in classes
    ]


def test_arrays_of_any_byte_order_come_back(tmp_path):
    points = X[:5].astype(">f4")
    LowRankSVC(selection=points).fit(X.astype(">f8"), KIND).save(tmp_path / "m")
    back = svmarrow.load(tmp_path / "m")
    assert back.selection.tolist() == points.tolist()
    model = RLSClassifier(alphas=np.array([0.1, 1.0], dtype=">f8")).fit(X, KIND)
    model.save(tmp_path / "m")
    assert svmarrow.load(tmp_path / "m").alphas.tolist() == [0.1, 1.0]


def test_large_whole_labels_of_tables_stay_apart():
    assert labels_of("t", ["9223372036854775808", "9223372036854775813"]).tolist() == [2**63, 2**63 + 5]
    assert labels_of("t", ["-1", "9223372036854775807"]).tolist() == [-1, 2**63 - 1]
    # No type of numbers holds both of these apart.
    large = [str(10**30), str(10**30 + 1)]
    assert labels_of("t", large).tolist() == large
    assert labels_of("t", [str(10**30), "1"]).tolist() == [1e30, 1.0]
