"""Models of strings and series in files."""

import json

import numpy as np
import pytest

from helpers.model_files import describe, description
from svmarrow import (
    SVC,
    CodedClassifier,
    KernelExpansion,
    KMPClassifier,
    LowRankSVC,
    RLSRegressor,
    as_expansion,
    compress,
    compression_path,
    load,
)
from svmarrow.exceptions import FormatError
from svmarrow.io import info, model_card
from svmarrow.kernels import GlobalAlignment, Subsequence

RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
WORDS = ["".join(RNG.choice(list("ab" if label else "bc"), RNG.integers(4, 9))) for label in Y]
SERIES = [RNG.normal(label, 1.0, size=(RNG.integers(3, 8), 2)) for label in Y]
SAMPLES = {
    "strings": (Subsequence(2), WORDS),
    "bytes": (Subsequence(2), [word.encode() for word in WORDS]),
    "integers": (Subsequence(2), [tuple(map(ord, word)) for word in WORDS]),
    "series": (GlobalAlignment(2.0), SERIES),
    "series in single precision": (GlobalAlignment(2.0, 6.0), [one.astype(np.float32) for one in SERIES]),
    "series of numbers": (GlobalAlignment(2.0), [one[:, 0] for one in SERIES]),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_model_of_objects_comes_back(kind, tmp_path):
    kernel, samples = SAMPLES[kind]
    model = SVC(kernel=kernel).fit(samples, Y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is SVC
    assert again.kernel == kernel
    np.testing.assert_array_equal(again.decision_function(samples), model.decision_function(samples))
    assert again.expansion_ == model.expansion_ or kind == "integers"
    assert [type(a) for a in again.support_vectors_[:1]] == [
        np.ndarray if kind == "integers" else type(model.support_vectors_[0])
    ]


@pytest.mark.parametrize(
    "model",
    [
        RLSRegressor(),
        KMPClassifier(5),
        LowRankSVC(10, random_state=0),
        CodedClassifier(SVC(), "ovr"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_estimators_and_their_models_come_back(model, tmp_path):
    name = "estimator__kernel" if hasattr(model, "estimator") else "kernel"
    fitted = model.set_params(**{name: Subsequence(2)}).fit(WORDS, Y)
    for stored in (
        fitted,
        as_expansion(fitted),
        fitted.expansion_ if hasattr(fitted, "expansion_") else None,
    ):
        if stored is not None and not isinstance(stored, KernelExpansion):
            stored.save(tmp_path / "model")
            np.testing.assert_array_equal(load(tmp_path / "model").predict(WORDS), stored.predict(WORDS))
    small = compress(fitted, n_vectors=4)
    small.save(tmp_path / "model")
    assert load(tmp_path / "model").expansion_ == small.expansion_
    path = compression_path(
        fitted, WORDS, Y if "Classifier" in str(model) or "SVC" in str(model) else Y * 1.0
    )
    path.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model")[3].predict(WORDS), path[3].predict(WORDS))


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    def lengths(A, B):
        return np.multiply.outer([len(a) for a in A], [len(b) for b in B]).astype(float)

    with pytest.raises(TypeError, match="Python function, and files contain no code; pickle can"):
        SVC(kernel=lengths).fit(WORDS, Y).save(tmp_path / "model")
    mixed = [one if i else one.astype(np.float32) for i, one in enumerate(SERIES)]
    with pytest.raises(TypeError, match="arrays of numbers of one type; pickle can"):
        KernelExpansion(mixed, np.ones(60), 0.0, GlobalAlignment()).save(tmp_path / "model")


def test_facts_and_card_name_the_kernel(tmp_path):
    model = SVC(kernel=Subsequence(2)).fit(WORDS, Y)
    model.save(tmp_path / "model")
    facts = info(tmp_path / "model")
    assert facts["kernel"] == "Subsequence(length=2, decay=0.5, n_jobs=None)"
    assert facts["storage"] == "objects"
    assert "Subsequence(length=2" in model_card(model, WORDS, Y)


DAMAGED = {
    "no list of objects": {"vectors": {"objects": {"parts": []}}},
    "no objects": {"vectors": {"array": "coefficients"}},
    "a number as kernel": {"kernel": {"float": "inf"}},
    "an estimator as kernel": {"kernel": {"schema": "svc/1"}},
    "fewer objects": {"vectors": {"objects": {"strings": ["a"]}}},
    "other objects": {"vectors": {"objects": {"strings": ["a", "b", 2]}}},
    "a wrong parameter": {"kernel": {"schema": "subsequence-kernel/1", "length": 0, "decay": 0.5}},
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_description_is_refused(damage, tmp_path):
    path = tmp_path / "model"
    KernelExpansion(SERIES[:3], np.ones(3), 0.0, GlobalAlignment()).save(path)
    describe(path, json.dumps(description(path) | DAMAGED[damage]))
    with pytest.raises(FormatError):
        load(path)


def test_lengths_that_do_not_add_up_are_refused(tmp_path):
    """The lengths are an array of the file, whose bytes may be damaged."""
    path = tmp_path / "model"
    KernelExpansion(SERIES[:3], np.ones(3), 0.0, GlobalAlignment()).save(path)
    data = path.read_bytes()
    lengths = np.array([len(one) for one in SERIES[:3]], dtype="<i8").tobytes()
    assert data.count(lengths) == 1
    for damaged, message in (
        ([-1, 2, 3], "counts"),
        ([2**62] * 3, "do not add up"),
        ([1, 1, 1], "do not add"),
    ):
        path.write_bytes(data.replace(lengths, np.array(damaged, dtype="<i8").tobytes()))
        with pytest.raises(FormatError, match=message):
            load(path)
