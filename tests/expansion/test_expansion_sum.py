"""Sums of expansions with different kernels: what they answer, hold, keep in files, and refuse."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import VotingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmarrow
from helpers import reference
from helpers.programs import c_program, needs_gcc
from svmarrow import (
    SVR,
    CodedClassifier,
    KernelExpansion,
    KMPClassifier,
    KMPRegressor,
    OneClassSVM,
    RLSRegressor,
    compress,
    compression_path,
    quantize,
)
from svmarrow.expansion.composites import average, merge, sum_of
from svmarrow.export import to_c, to_onnx
from svmarrow.inspection import shapley_values
from svmarrow.models import ExpansionDetector, ExpansionRegressor, ExpansionSum, ExpansionTree

DIGITS, Y = load_digits(return_X_y=True)
X = DIGITS / 16.0
ROWS, NUMBERS = load_diabetes(return_X_y=True)
ROWS = ROWS / ROWS.std(axis=0)
SPECS = [("rbf", 0.3, 0.0, 3), ("rbf", 0.02, 0.0, 3), ("poly", 0.1, 1.0, 2), ("linear", 1.0, 0.0, 3)]


def part(spec, seed=0, q=2, m=7, rows=ROWS):
    random = np.random.default_rng(seed)
    vectors = rows[random.permutation(len(rows))[:m]]
    return KernelExpansion(vectors, random.normal(size=(m, q)), random.normal(size=q), *spec)


@pytest.fixture(scope="module")
def several():
    return ExpansionSum([part(spec, seed) for seed, spec in enumerate(SPECS)])


@pytest.fixture(scope="module")
def classifier():
    return KMPClassifier(n_vectors=60, gamma=[0.05, 0.3, 1.5]).fit(X[:900], Y[:900])


@pytest.fixture(scope="module")
def regressor():
    kernels = ["rbf", "linear", "laplacian"]
    return KMPRegressor(n_vectors=25, kernel=kernels, gamma=[0.01, 0.1]).fit(ROWS, NUMBERS)


@pytest.mark.parametrize("form", ["float64", "float32", "csr", "strided"])
def test_outputs_are_sums_of_formulas(several, form):
    rows = {
        "float64": ROWS,
        "float32": ROWS.astype(np.float32),
        "csr": sp.csr_array(ROWS),
        "strided": np.repeat(ROWS, 2, axis=0)[::2],
    }[form]
    exact = np.asarray(rows.toarray() if form == "csr" else rows, dtype=np.float64)
    expected = sum(
        reference.kernel(one.kernel_spec, exact, one.vectors) @ one.coefficients + one.intercepts
        for one in several.parts
    )
    found = several.decision_function(rows)
    assert found.shape == (len(ROWS), 2)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_what_a_sum_has(several):
    parts = [part(spec, seed) for seed, spec in enumerate(SPECS)]
    assert (several.n_vectors, several.n_outputs, several.kernel) == (28, 2, "sum")
    np.testing.assert_array_equal(several.vectors, np.vstack([one.vectors for one in parts]))
    np.testing.assert_array_equal(several.coefficients, np.vstack([one.coefficients for one in parts]))
    np.testing.assert_allclose(several.intercepts, sum(one.intercepts for one in parts))
    # The vectors are in memory once.
    assert all(np.shares_memory(one.vectors, several.vectors) for one in several.parts)
    assert several.nbytes == sum(one.nbytes for one in parts)
    twice = several.replaced(coefficients=2.0 * several.coefficients, intercepts=2.0 * several.intercepts)
    np.testing.assert_allclose(
        twice.decision_function(ROWS), 2.0 * several.decision_function(ROWS), rtol=1e-12
    )
    assert twice != several
    assert several == ExpansionSum(several.parts) == pickle.loads(pickle.dumps(several))


def test_kernel_values_and_selections(several):
    places = np.array([27, 3, 8, 0, 20])
    values = several._kernel_values(ROWS, places)
    numbers = [(p, i) for p, one in enumerate(several.parts) for i in range(one.n_vectors)]
    for column, place in enumerate(places):
        p, i = numbers[place]
        one = several.parts[p]
        expected = reference.kernel(one.kernel_spec, ROWS, one.vectors[i : i + 1])[:, 0]
        np.testing.assert_allclose(values[:, column], expected, rtol=1e-12)
    coefficients = np.arange(10.0).reshape(5, 2)
    chosen = several._selected(places, coefficients).replaced(intercepts=np.zeros(2))
    expected = values @ coefficients
    np.testing.assert_allclose(
        chosen.decision_function(ROWS), expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max()
    )
    of_one = several._selected(np.array([2, 1]), coefficients[:2])
    assert type(of_one) is KernelExpansion
    assert of_one.kernel_spec == SPECS[0]


def test_parts_of_one_kernel_are_joined():
    a, b, c = part(SPECS[0], 0), part(SPECS[0], 1), part(SPECS[1], 2)
    joined = sum_of([a, b])
    assert type(joined) is KernelExpansion
    assert joined.n_vectors == 14
    expected = a.decision_function(ROWS) + b.decision_function(ROWS)
    np.testing.assert_allclose(joined.decision_function(ROWS), expected, rtol=1e-12, atol=1e-12)
    assert [one.n_vectors for one in sum_of([a, c, b]).parts] == [14, 7]
    empty = c.replaced(vectors=c.vectors[:0], coefficients=c.coefficients[:0])
    np.testing.assert_allclose(sum_of([a, empty]).intercepts, a.intercepts + c.intercepts)
    np.testing.assert_allclose(sum_of([empty, empty]).intercepts, 2 * c.intercepts)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (lambda a, _: [a], "at least two"),
        (lambda a, _: [a, a], "different kernels"),
        (lambda a, _: [a, part(SPECS[1], q=3)], "equally many"),
        (lambda a, b: [a, b.replaced(vectors=b.vectors[:, :4])], "equally many"),
        (lambda a, b: [a, b.replaced(kernel=reference.kernel)], "computed from rows"),
        (lambda a, b: [a, b.replaced(vectors=np.arange(7.0)[:, None], kernel="precomputed")], "from rows"),
        (lambda a, b: [a, ExpansionSum([a, b])], "one kernel each"),
        (lambda a, _: [a, "rbf"], "one kernel each"),
    ],
)
def test_what_is_no_sum_is_refused(parts, why):
    with pytest.raises(ValueError, match=why):
        ExpansionSum(parts(part(SPECS[0]), part(SPECS[1])))


def test_what_needs_one_kernel_is_refused(several, classifier, regressor):
    model = svmarrow.as_expansion(classifier)
    with pytest.raises(TypeError, match="vectors of a sum"):
        several.replaced(vectors=several.vectors)
    with pytest.raises(TypeError, match="several kernels"):
        _ = several.kernel_spec
    with pytest.raises(ValueError, match="kernel='sum'"):
        ExpansionTree.of(model.expansion_, X, 10)
    for options, why in (
        ({"max_evaluations": 10}, "max_evaluations=10"),
        ({"max_bytes": 9000}, "max_bytes=9000"),
        ({"n_vectors": 10, "dtype": "int8"}, "dtype='int8'"),
        ({"n_vectors": 10, "method": "gradient"}, "method='gradient'"),
    ):
        with pytest.raises(ValueError, match=why):
            compress(model, X, Y, **options)
    with pytest.raises(ValueError, match="candidates='samples'"):
        compression_path(model, X, n_vectors=5, candidates="samples")
    with pytest.raises(ValueError, match="dtype='int8'"):
        to_c(model, dtype="int8")
    with pytest.raises(TypeError, match="several kernels"):
        svmarrow.io.save_libsvm_model(regressor, "unwritten.model")


@pytest.mark.parametrize("kind", ["classifier", "regressor", "pipeline", "weights", "detector"])
def test_models_of_all_kinds_hold_a_sum(kind, classifier, regressor, tmp_path):
    rows = X if kind in ("classifier", "pipeline", "weights") else ROWS
    widths = KMPClassifier(n_vectors=30, gamma=[0.002, 0.02])
    full = {
        "classifier": lambda: classifier,
        "regressor": lambda: regressor,
        "pipeline": lambda: make_pipeline(StandardScaler(), widths).fit(X[:900], Y[:900] > 4),
        "weights": lambda: clone(widths).fit(X[:900], Y[:900], sample_weight=np.arange(1.0, 901.0)),
        "detector": lambda: ExpansionDetector(
            sum_of([OneClassSVM(gamma=gamma).fit(ROWS).expansion_ for gamma in (0.01, 0.3)])
        ),
    }[kind]()
    model = svmarrow.as_expansion(full)
    assert isinstance(model.expansion_, ExpansionSum)
    np.testing.assert_array_equal(model.predict(rows), full.predict(rows))
    for copied in (clone(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copied.predict(rows), model.predict(rows))
    svmarrow.save(model, tmp_path / "model.safetensors")
    loaded = svmarrow.load(tmp_path / "model.safetensors")
    assert loaded.expansion_ == model.expansion_
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    about = svmarrow.io.info(tmp_path / "model.safetensors")
    assert about["kernel"] == "sum"
    assert len(about["parts"]) == len(model.expansion_.parts)
    one_by_one = [model.compiled().predict(row) for row in rows[:40].tolist()]
    found, expected = np.array(one_by_one), model.predict(rows[:40])
    if kind == "regressor":
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    else:
        np.testing.assert_array_equal(found, expected)


def test_samples_in_single_precision_keep_their_digits(regressor):
    single = ROWS.astype(np.float32)
    model = svmarrow.as_expansion(regressor)
    expected = model.predict(single.astype(np.float64))
    np.testing.assert_allclose(model.predict(single), expected, rtol=1e-12)
    np.testing.assert_allclose(regressor.predict(single), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("of", ["classifier", "regressor", "all kernels"])
def test_onnx_says_what_the_sum_says(of, dtype, classifier, regressor):
    onnxruntime = pytest.importorskip("onnxruntime")
    rows = X if of == "classifier" else np.abs(ROWS)
    model = {
        "classifier": lambda: svmarrow.as_expansion(classifier),
        "regressor": lambda: svmarrow.as_expansion(regressor),
        "all kernels": lambda: ExpansionRegressor(
            ExpansionSum([part(spec, seed, 1, rows=rows) for seed, spec in enumerate(_every_kernel())])
        ),
    }[of]()
    session = onnxruntime.InferenceSession(
        to_onnx(model, dtype=dtype).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    results = session.run(None, {"X": rows.astype(dtype)})
    relative = 2e-3 if dtype == "float32" else 1e-9
    if of == "classifier":
        assert np.mean(results[0] == model.predict(rows)) > 0.999
        expected, found = model.decision_function(rows), results[1]
    else:
        expected, found = model.predict(rows), np.reshape(results[0], -1)
    assert np.abs(found - expected).max() < relative * expected.std()


def _every_kernel():
    names = ("rbf", "laplacian", "chi2", "matern12", "matern32", "matern52")
    return [(name, 0.2, 0.0, 3) for name in names] + SPECS[2:] + [("sigmoid", 0.01, 0.1, 3)]


PROGRAM = """#include <stdio.h>
#include "model.h"
int main(void) {
    static NUMBER x[P_FEATURES];
    NUMBER out[P_OUTPUTS];
    int j;
    if (!p_self_test()) {
        return 3;
    }
    for (;;) {
        for (j = 0; j < P_FEATURES; ++j) {
            double value;
            if (scanf("%lf", &value) != 1) {
                return 0;
            }
            x[j] = (NUMBER)value;
        }
        p_outputs(x, out);
        for (j = 0; j < P_OUTPUTS; ++j) {
            printf(" %.17g", (double)out[j]);
        }
        printf("\\n");
    }
}
"""


@needs_gcc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("of", ["classifier", "all kernels"])
def test_c_says_what_the_sum_says(of, dtype, classifier, tmp_path):
    rows = X[:60] if of == "classifier" else np.abs(ROWS)[:60]
    model = svmarrow.as_expansion(classifier)
    if of == "all kernels":
        expansions = [part(spec, seed, 3, rows=rows) for seed, spec in enumerate(_every_kernel())]
        model = ExpansionSum(expansions)
    header = to_c(model, prefix="p", dtype=dtype)
    (tmp_path / "model.h").write_text(header.text)
    source = PROGRAM.replace("NUMBER", "float" if dtype == "float32" else "double")
    text = "\n".join(" ".join(f"{value:.17g}" for value in row) for row in rows)
    lines = c_program(tmp_path, source, text, cpp=True).splitlines()
    found = np.array([line.split() for line in lines], dtype=float)
    expected = model.decision_function(rows)
    relative = 2e-3 if dtype == "float32" else 1e-9
    assert np.abs(found - expected).max() < relative * np.abs(expected).std()


@pytest.mark.parametrize("method", ["auto", "backfit", "prefit"])
def test_a_sum_is_compressed_by_what_it_predicts(method, classifier):
    model = svmarrow.as_expansion(classifier)
    small = compress(model, X[:900], Y[:900], n_vectors=30, method=method, random_state=0)
    assert small.expansion_.n_vectors == 30
    assert isinstance(small.expansion_, ExpansionSum)
    # More labels are those of the model than with as many random vectors, fitted to it on the same samples.
    full, new = model.expansion_, X[900:]
    agreement = np.mean(small.predict(new) == model.predict(new))
    others = []
    for seed in range(9):
        places = np.random.default_rng(seed).permutation(60)[:30]
        values = np.column_stack([full._kernel_values(X[:900], places), np.ones(900)])
        weights = np.linalg.lstsq(values, full.decision_function(X[:900]), rcond=None)[0]
        drawn = np.column_stack([full._kernel_values(new, places), np.ones(len(new))]) @ weights
        others.append(np.mean(drawn.argmax(axis=1) == model.predict(new)))
    assert agreement > np.mean(others) + 0.01


def test_all_sizes_of_a_sum_are_least_squares_on_the_samples(regressor, tmp_path):
    model = svmarrow.as_expansion(regressor)
    path = compression_path(model, ROWS, n_vectors=12)
    outputs = model.expansion_.decision_function(ROWS)[:, 0]
    for size in (1, 5, 12):
        values = model.expansion_._kernel_values(ROWS, path.order[:size])
        target = outputs - model.expansion_.intercepts[0]
        best = np.linalg.lstsq(values, target, rcond=None)[0]
        found = path[size].predict(ROWS)
        # Thresholds are the means of the outputs.
        expected = values @ best + np.mean(outputs - values @ best)
        np.testing.assert_allclose(found, expected, atol=1e-6 * outputs.std())
    assert (np.diff(path.residual_norms) <= 1e-9 * path.residual_norms[0]).all()
    svmarrow.save(path, tmp_path / "path.safetensors")
    loaded = svmarrow.load(tmp_path / "path.safetensors")
    np.testing.assert_array_equal(loaded[5].predict(ROWS), path[5].predict(ROWS))


def test_no_sample_that_is_held_out_chooses_vectors(classifier):
    model = svmarrow.as_expansion(classifier)
    others = X[900:1200], Y[900:1200]
    small = compress(model, X[:300], Y[:300], n_vectors=20, validation=others, random_state=0)
    moved = compress(model, X[:300], Y[:300], n_vectors=20, validation=(X[1200:1500], Y[1200:1500]))
    assert small.expansion_ == moved.expansion_


def test_rounding_a_sum(classifier):
    for dtype, most in (("float32", 1e-5), ("int8", 0.1)):
        options = {"dtype": dtype} if dtype == "int8" else {"vectors": dtype, "coefficients": "same"}
        made = quantize(classifier, X=X[:600], y=Y[:600], **options)
        result = made.quantization_
        assert isinstance(made.expansion_, ExpansionSum)
        assert result.bytes_after <= result.bytes_before
        assert result.relative_difference < most


def test_shapley_values_add_up():
    kernels = ["rbf", "linear", "laplacian"]
    model = KMPRegressor(n_vectors=20, kernel=kernels, gamma=[0.01, 0.1]).fit(ROWS, NUMBERS)
    assert len(model.expansion_.parts) > 2
    found = shapley_values(model, ROWS[:15], ROWS[::20])
    total = sum(shapley_values(one, ROWS[:15], ROWS[::20]).values for one in model.expansion_.parts)
    np.testing.assert_allclose(found.values, total, atol=1e-9)
    outputs = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(outputs, model.predict(ROWS[:15]), rtol=1e-9)
    with pytest.raises(ValueError, match="kernel='matern32'"):
        shapley_values(sum_of([part(SPECS[0]), part(("matern32", 1.0, 0.0, 3))]), ROWS[:2], ROWS[:3])


def test_importances_of_a_sum_are_of_the_summed_gradients():
    model = KMPRegressor(n_vectors=15, kernel=["rbf", "linear"], gamma=[0.01, 0.1]).fit(ROWS, NUMBERS)
    expansion, step = model.expansion_, 1e-5
    slopes = np.empty_like(expansion.vectors)
    for j in range(ROWS.shape[1]):
        moved = np.zeros(ROWS.shape[1])
        moved[j] = step
        ends = [expansion.decision_function(expansion.vectors + sign * moved)[:, 0] for sign in (1.0, -1.0)]
        slopes[:, j] = (ends[0] - ends[1]) / (2.0 * step)
    sizes = (slopes**2).mean(axis=0) * expansion.vectors.var(axis=0)
    np.testing.assert_allclose(model.feature_importances_, sizes / sizes.sum(), atol=1e-6)


def test_outputs_side_by_side_and_averages():
    parts = [part(SPECS[0], 0), part(SPECS[1], 1, q=1), ExpansionSum([part(SPECS[0], 0), part(SPECS[2], 2)])]
    merged = merge(parts)
    assert [one.n_vectors for one in merged.parts] == [7, 7, 7]
    expected = np.hstack([one.decision_function(ROWS) for one in parts])
    np.testing.assert_allclose(merged.decision_function(ROWS), expected, rtol=1e-11, atol=1e-11)
    mean = average([parts[0], parts[2]], [3.0, 1.0])
    expected = 0.75 * parts[0].decision_function(ROWS) + 0.25 * parts[2].decision_function(ROWS)
    np.testing.assert_allclose(mean.decision_function(ROWS), expected, rtol=1e-11, atol=1e-11)
    with pytest.raises(ValueError, match="2 and 1 outputs"):
        average(parts)
    narrow = parts[1].replaced(vectors=parts[1].vectors[:, :4])
    with pytest.raises(ValueError, match=r"different numbers of columns: \[4, 10\]"):
        merge([parts[0], narrow])
    gram = KernelExpansion(np.arange(3.0)[:, None], np.ones(3), 0.0, kernel="precomputed")
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        merge([gram, part(SPECS[0], rows=ROWS[:, :1])])


def test_an_ensemble_of_several_kernels_is_a_sum():
    named = [("a", SVR(gamma=0.01, C=100.0)), ("b", RLSRegressor(0.1, kernel="poly", degree=2, gamma=0.1))]
    model = VotingRegressor(named, weights=[1.0, 2.0]).fit(ROWS, NUMBERS)
    ours = svmarrow.as_expansion(model)
    assert [one.kernel for one in ours.expansion_.parts] == ["rbf", "poly"]
    np.testing.assert_allclose(ours.predict(ROWS), model.predict(ROWS), rtol=1e-9)


def test_codes_of_machines_of_several_kernels():
    model = CodedClassifier(KMPClassifier(n_vectors=10, gamma=[0.02, 0.3]), code="ovo").fit(X[:400], Y[:400])
    outputs = np.column_stack([one.decision_function(X) for one in model.estimators_])
    assert isinstance(model.expansion_, ExpansionSum)
    np.testing.assert_allclose(np.abs(model.outputs(X)), np.abs(outputs), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(svmarrow.as_expansion(model).predict(X), model.predict(X))


def test_the_file_of_one_kernel_has_one_main_expansion():
    one = KMPRegressor(n_vectors=5, gamma=0.1).fit(ROWS, NUMBERS)
    assert one.expansion_ is one.expansions_[0]
