"""Codes and decoders, against naive oracles."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn.svm
from hypothesis import given
from hypothesis import strategies as st

from helpers import reference
from helpers.codes import LOSSES, NAMES, codes
from svmarrow import (
    SVC,
    CodedClassifier,
)
from svmarrow.models.outputs import code_class_indices, code_scores
from svmarrow.multiclass import (
    Code,
    make_code,
)

Peer = sklearn.svm.SVC


# Codes


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [2, 3, 4, 6, 10])
def test_named_codes(name, n):
    code = make_code(name, n, random_state=0, n_draws=200)
    columns = {
        "ovr": n,
        "ovo": n * (n - 1) // 2,
        "complete": 2 ** (n - 1) - 1,
        "dense": min(int(np.ceil(10 * np.log2(n))), 2 ** (n - 1) - 1),
        "sparse": int(np.ceil(15 * np.log2(n))),
        "bch": 63,
    }
    assert code.n_columns == (1 if n == 2 else columns[name])
    assert code.has_zeros == (name in ("ovo", "sparse") and n > 2)
    assert (code.row_distance, code.column_distance) == pytest.approx(
        reference.code_distances(code.matrix), nan_ok=True
    )
    for column in code.matrix.T:
        assert {-1, 1} <= set(column.tolist())
    if name in ("dense", "complete") and n > 2:
        assert code.column_distance > 0
    if name == "bch" and n > 2:
        assert code.row_distance >= 31
    assert code == make_code(name, n, random_state=0, n_draws=200, n_jobs=1)
    assert code == pickle.loads(pickle.dumps(code))


def test_more_draws_are_no_worse_and_seeds_matter():
    few, many = (make_code("dense", 12, random_state=0, n_draws=draws).row_distance for draws in (5, 5000))
    assert many > few
    assert make_code("sparse", 12, random_state=1) != make_code("sparse", 12, random_state=2)
    assert make_code("sparse", 12, random_state=1) == make_code("sparse", 12, random_state=1)
    assert len({make_code("sparse", 12, n_draws=100) for _ in range(3)}) == 3


@pytest.mark.parametrize("n", [3, 6, 10])
def test_shares_of_sparse_codes(n):
    """A share throws draws away in which a class is used less; the thesis asks for one machine."""
    used = {}
    for share in (0.0, 0.2, 0.4):
        made = [make_code("sparse", n, random_state=seed, n_draws=20, min_use=share) for seed in range(30)]
        used[share] = [int(np.count_nonzero(code.matrix, axis=1).min()) for code in made]
        assert min(used[share]) >= max(1, share * made[0].n_columns)
    assert make_code("sparse", n, random_state=0, min_use=0.4) == make_code("sparse", n, random_state=0)
    assert min(used[0.0]) < min(used[0.4])
    # Of equal draws the thesis's rule keeps the first, others that whose least used class is used most.
    assert np.mean(used[0.0]) < np.mean(used[0.2])
    of_two = make_code("sparse", 2, min_use=0.0)
    assert of_two == make_code("ovr", 2)


@pytest.mark.parametrize("share", [-0.1, 1.5, np.nan])
def test_shares_outside_their_range(share):
    with pytest.raises(ValueError, match=r"min_use=.* between 0 and 1"):
        make_code("sparse", 6, min_use=share)


def test_a_share_that_no_draw_reaches():
    with pytest.raises(ValueError, match="each used by 36 of 39 machines"):
        make_code("sparse", 6, random_state=0, n_draws=100, min_use=0.9)


def test_complete_code_has_every_partition_once():
    matrix = make_code("complete", 6).matrix
    upright = {tuple((column * column[0]).tolist()) for column in matrix.T}
    assert len(upright) == matrix.shape[1] == 31


def test_bch_for_many_classes():
    for n, least in ((100, 31), (128, 31), (129, 27), (1000, 27)):
        code = make_code("bch", n, random_state=0, n_draws=3)
        assert code.matrix.shape == (n, 63)
        assert code.row_distance >= least


@given(code=codes())
def test_distances_and_distinct_columns(code):
    assert (code.row_distance, code.column_distance) == pytest.approx(
        reference.code_distances(code.matrix), nan_ok=True
    )
    chosen, which, signs = code.distinct_columns()
    assert (code.matrix[:, chosen][:, which] * signs == code.matrix).all()
    if code.n_columns > 1 and not code.has_zeros:
        assert (code.column_distance > 0) == (chosen.size == code.n_columns)
    differing = [(code.matrix[a] != code.matrix[b]).sum() for a in range(code.n_classes) for b in range(a)]
    assert code.largest_difference == max(differing)


@pytest.mark.parametrize(
    ("matrix", "word"),
    [
        ([[1, -1], [1, -1], [-1, 1]], "equal rows 0 and 1"),
        ([[1, 1], [-1, 1], [0, 1]], "column 1 without -1"),
        ([[1, 0], [0, 0], [-1, 1]], "row 1 of zeros"),
        ([[2, 0], [-1, 1]], "-1, 0 and 1"),
        ([[0.5, 1], [-1, -1]], "-1, 0 and 1"),
        ([1, -1], "matrix"),
    ],
)
def test_what_is_no_code_is_refused(matrix, word):
    if word == "row 1 of zeros":
        matrix = [[1, 1], [0, 0], [-1, -1]]
    with pytest.raises(ValueError, match=word):
        Code(matrix)


def test_refused_codes_of_classifiers(datasets):
    X, y = datasets["iris"]
    for code, word in [
        ("one-vs-all", "'ovr'"),
        (Code([[1], [-1]]), "2 rows for 3 classes"),
        ([[1, -1], [1, -1], [-1, 1]], "equal rows"),
    ]:
        with pytest.raises(ValueError, match=word):
            CodedClassifier(SVC(), code).fit(X, y)
    with pytest.raises(ValueError, match="complete"):
        make_code("complete", 16)
    with pytest.raises(ValueError, match=r"decoder='dag' .* must be used with code='ovo', .* decoder='loss'"):
        CodedClassifier(SVC(), "dense", "dag").fit(X, y)
    with pytest.raises(ValueError, match="decoder"):
        CodedClassifier(SVC(), "dense", "closest").fit(X, y)
    with pytest.raises(ValueError, match="1 class"):
        CodedClassifier(SVC()).fit(X, np.zeros(len(X)))


# Decoders


@given(code=codes(), seed=st.integers(0, 10_000), n=st.integers(1, 20))
def test_decoders_equal_their_sums(code, seed, n):
    outputs = np.random.default_rng(seed).normal(size=(n, code.n_columns)).round(1)
    for decoder in [*LOSSES, *(f"mean_{loss}" for loss in LOSSES), "hamming", "votes"]:
        expected = reference.code_scores(outputs, code.matrix, decoder)
        found = code_scores(outputs, code.matrix, decoder)
        assert found == pytest.approx(expected, abs=1e-9 * (1 + np.abs(expected).max()))
        winners = code_class_indices(outputs, code.matrix, decoder)
        best = expected.max(axis=1)
        assert (expected[np.arange(n), winners] >= best - 1e-9 * (1 + np.abs(best))).all()
        if decoder in ("hamming", "votes"):
            assert (winners == np.argmax(expected, axis=1)).all()


@given(n_classes=st.integers(2, 7), seed=st.integers(0, 1000))
def test_the_dag_is_a_knock_out(n_classes, seed):
    code = make_code("ovo", n_classes)
    outputs = np.random.default_rng(seed).normal(size=(30, code.n_columns))
    found = code_class_indices(outputs, code.matrix, "dag")
    signs = outputs if n_classes > 2 else -outputs
    assert (found == reference.knock_out(signs, n_classes)).all()
    scores = code_scores(outputs, code.matrix, "dag")
    assert (np.argmax(scores, axis=1) == found).all()
    assert (np.sort(scores, axis=1) == np.arange(n_classes)).all()


def test_every_clean_code_word_is_decoded_to_its_class():
    for name in NAMES:
        code = make_code(name, 8, random_state=0, n_draws=50)
        for decoder in ["hamming", "votes", *LOSSES]:
            found = code_class_indices(code.matrix.astype(np.float64), code.matrix, decoder)
            if decoder == "votes" and code.has_zeros and name == "sparse":
                continue  # classes that take part in more machines get more votes
            assert (found == np.arange(8)).all(), (name, decoder)


def test_a_code_corrects_as_many_errors_as_its_distance_promises(rng):
    code = make_code("bch", 20, random_state=0, n_draws=20)
    words = np.repeat(code.matrix, 20, axis=0).astype(np.float64)
    for word in words:
        flipped = rng.choice(63, size=int((code.row_distance - 1) // 2), replace=False)
        word[flipped] *= -1
    assert (code_class_indices(words, code.matrix, "hamming") == np.repeat(np.arange(20), 20)).all()


@given(code=codes(), seed=st.integers(0, 1000), loss=st.sampled_from(LOSSES))
def test_the_mean_loss_decides_as_the_total_where_rows_have_as_many_zeros(code, seed, loss):
    outputs = np.random.default_rng(seed).normal(size=(20, code.n_columns))
    machines = np.count_nonzero(code.matrix, axis=1)
    total = code_scores(outputs, code.matrix, loss)
    mean = code_scores(outputs, code.matrix, f"mean_{loss}")
    zero = float(reference.LOSSES[loss](0.0))
    expected = (total + (code.n_columns - machines) * zero) / machines
    assert mean == pytest.approx(expected, abs=1e-9 * (1 + np.abs(expected).max()))


def test_thousands_of_rows_on_threads(rng):
    code = make_code("dense", 10, random_state=0)
    outputs = rng.normal(size=(70_000, code.n_columns))
    one, two = (code_class_indices(outputs, code.matrix, "hinge", jobs) for jobs in (1, 2))
    assert (one == two).all()
    margins = outputs[:2000, None, :] * code.matrix
    few = np.maximum(0, 1 - margins).sum(axis=2).argmin(axis=1)
    assert (one[:2000] == few).all()
