"""Exports agree with the model or are refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, OrdinalEncoder, StandardScaler

import svmarrow
from helpers.exports import KERNELS, PIPELINES, some
from helpers.programs import c_program, command, needs_gcc
from svmarrow import SVC, KernelExpansion, as_expansion
from svmarrow.export import register_skl2onnx, to_c, to_onnx
from svmarrow.export.c_kernels import outputs_in_floats
from svmarrow.export.common import kernel_rows, output_spec_of, samples_of, step_in_precision
from svmarrow.least_squares import LowRankRLSClassifier
from svmarrow.models import ExpansionClassifier, ExpansionRegressor

PROGRAM = """#include <stdio.h>
#include "model.h"
int main(void) {
    TYPE x[P_FEATURES], out[P_OUTPUTS];
    int j;
    printf("%d\\n", p_self_test());
    for (;;) {
        for (j = 0; j < P_FEATURES; ++j) {
            double value;
            if (scanf("%lf", &value) != 1) {
                return 0;
            }
            x[j] = (TYPE)value;
        }
        p_outputs(x, out);
        for (j = 0; j < P_OUTPUTS; ++j) {
            printf(" %.17g", (double)out[j]);
        }
        printf("\\n");
    }
}
"""


def run(text, X, folder, kind="float"):
    """The result of the self-test and the outputs of each row, from the compiled program."""
    (folder / "model.h").write_text(text)
    rows = "\n".join(" ".join(map(repr, row)) for row in X.tolist())
    first, *lines = c_program(folder, PROGRAM.replace("TYPE", kind), rows, cpp=True).splitlines()
    return int(first), np.array([[float(cell) for cell in line.split()] for line in lines])


def onnx_results(made, X):
    onnxruntime = pytest.importorskip("onnxruntime")
    return onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"X": X})


@pytest.fixture
def plane(rng):
    """A linear target with noise, of numbers that are exact in single precision."""
    X = rng.uniform(size=(300, 4)).astype(np.float32).astype(np.float64)
    return X, X @ [1.0, 2.0, -1.0, 0.5] + 0.03 * rng.normal(size=300)


@pytest.fixture
def cancelling(plane):
    """A regressor whose large coefficients cancel."""
    X, y = plane
    return svmarrow.RLSRegressor(1e-8, gamma=0.05).fit(X, y)


def refused(model, **parameters):
    with pytest.raises(ValueError, match=r"dtype='float32': .* output \d+ .* % of its spread.*float64"):
        to_c(model, **parameters)
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match=r"dtype='float32': .* of its spread.* use dtype='float64'"):
        to_onnx(model, dtype="float32")


def test_large_coefficients(plane, cancelling):
    X, y = plane
    refused(cancelling)
    refused(cancelling, X=X, y=y)
    refused(svmarrow.RLSClassifier(1e-8, gamma=0.05).fit(X, y > 1.25))
    refused(svmarrow.RLSClassifier(1e-8, gamma=0.05).fit(X, np.digitize(y, [1.0, 1.5])))
    with pytest.raises(ValueError, match=r"dtype='int8': .* of its spread"):
        to_c(cancelling, dtype="int8")
    (found,) = onnx_results(to_onnx(cancelling, dtype="float64"), X)
    assert r2_score(cancelling.predict(X), found) > 1.0 - 1e-9


def test_one_of_several_outputs(plane):
    X, y = plane
    expansion = svmarrow.RLSRegressor(1e-8, gamma=0.05).fit(X, y).expansion_
    both = np.hstack([1e-6 * np.ones_like(expansion.coefficients), expansion.coefficients])
    with pytest.raises(ValueError, match="output 1 by"):
        to_c(expansion.replaced(coefficients=both, intercepts=[0.0, 0.0]))


def test_the_spread_is_that_of_vectors(rng):
    # Without an intercept the outputs are near zero between the vectors.
    X = rng.normal(size=(300, 4))
    y = 2000.0 + rng.normal(size=300)
    refused(svmarrow.RLSRegressor(1e-6).fit(X, y))


def test_outputs_that_differ_by_less_than_their_common_intercept(rng):
    # Samples of unit 1e-6: the largest of three outputs is decided in their ninth digit.
    X, y = 1e-6 * rng.normal(size=(90, 3)), np.repeat([0, 1, 2], 30)
    X[np.arange(90), y] += 3e-6
    model = svmarrow.RLSClassifier(kernel="linear", fit_intercept=True).fit(X, y)
    refused(model)
    to_c(model, dtype="float64")


@pytest.mark.parametrize("decoder", ["loss", "mean_exponential"])
def test_losses_of_a_code_that_differ_by_less_than_their_common_size(rng, decoder):
    # Each machine is -1 but for its seventh digit, and the largest sum of losses decides.
    X, y = 1e-3 * rng.normal(size=(90, 3)), np.repeat([0, 1, 2], 30)
    X[np.arange(90), y] += 3e-3
    machine = svmarrow.SVC(gamma=0.006, class_weight="balanced")
    model = svmarrow.CodedClassifier(machine, code="ovr", decoder=decoder).fit(X, y)
    assert len(np.unique(model.predict(X))) == 3
    refused(model)
    to_c(model, dtype="float64")
    to_c(svmarrow.CodedClassifier(machine, code="ovr", decoder=decoder).fit(1e3 * X, y))


def time_stamps(rng, span):
    """A target that changes within a span of seconds, with its samples."""
    seconds = span * rng.random(200)
    X = np.column_stack([1.7e9 + seconds, rng.random(200)])
    return X, np.sin(6.0 * seconds / span) + X[:, 1]


def test_time_stamps(rng):
    X, y = time_stamps(rng, 1e3)
    model = make_pipeline(StandardScaler(), svmarrow.SVR(C=10.0)).fit(X, y)
    refused(model)
    refused(model, X=X)
    # The offset is as large in samples that are in single precision already.
    refused(model, X=X.astype(np.float32))
    X[:, 0] -= 1.7e9
    to_c(make_pipeline(StandardScaler(), svmarrow.SVR(C=10.0)).fit(X, y))


def test_smaller_differences_warn(rng):
    X, y = time_stamps(rng, 1e4)
    model = make_pipeline(StandardScaler(), svmarrow.SVR(C=10.0)).fit(X, y)
    with pytest.warns(UserWarning, match=r"dtype='float32': .* 5 % is the maximum: use dtype='float64'"):
        to_c(model)
    pytest.importorskip("onnx")
    with pytest.warns(UserWarning, match=r"dtype='float32': .* use dtype='float64'"):
        to_onnx(model, dtype="float32")


def test_vectors_in_order_of_their_classes():
    """Sums that grow by class would lose three digits more."""
    X, y = make_moons(1500, noise=0.4, random_state=0)
    model = svmarrow.SVC(C=100.0).fit(X, y)
    spec = output_spec_of(model)
    outputs = outputs_in_floats(spec).computed(X)[:, 0]
    wanted = model.decision_function(X)
    assert np.sqrt(((outputs - wanted) ** 2).mean()) < 5e-4 * np.sqrt((wanted**2).mean())


def test_large_outputs_with_a_small_spread(plane):
    X, y = plane
    refused(svmarrow.SVR(C=10.0).fit(X, 1e7 + y))


def test_precomputed_kernels_are_compared_on_given_samples(cancelling, plane):
    X, _ = plane
    expansion = cancelling.expansion_
    K = np.exp(-0.05 * ((X[:, np.newaxis] - X) ** 2).sum(axis=-1))
    given = KernelExpansion(
        np.arange(300.0)[:, np.newaxis], expansion.coefficients, expansion.intercepts, kernel="precomputed"
    )
    with pytest.raises(ValueError, match="of its spread"):
        to_c(given, X=K)


def test_models_that_are_not_refused(rng):
    expansion, _ = some(rng, "rbf", 1)
    constant = expansion.replaced(coefficients=np.zeros((9, 1)), intercepts=[0.1])
    to_c(ExpansionRegressor(constant))
    to_c(constant.replaced(intercepts=[0.0]))
    # A class that no sample has: its outputs hardly vary and are far from the boundary.
    rare = expansion.replaced(coefficients=1e-6 * expansion.coefficients, intercepts=[-1.1])
    to_c(ExpansionClassifier(rare, [0, 1], "binary"))


@pytest.mark.parametrize("kernel", KERNELS)
def test_samples_are_near_the_vectors(rng, kernel):
    expansion, _ = some(rng, kernel, 2)
    samples = samples_of(output_spec_of(expansion))
    assert samples.shape == (128, 4)
    outputs = outputs_in_floats(output_spec_of(expansion)).computed(samples)
    wanted = expansion.decision_function(samples)
    assert 0.0 < np.abs(outputs - wanted).max() < 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("steps", PIPELINES, ids=lambda steps: type(steps[-1]).__name__)
def test_samples_of_pipelines(datasets, steps):
    X, y = datasets["cancer"]
    spec = output_spec_of(make_pipeline(*steps, svmarrow.SVC()).fit(1000.0 + X, y))
    rows = kernel_rows(samples_of(spec), spec)
    vectors = np.asarray(spec.expansion.vectors)
    # Every other sample is a vector.
    off = np.abs(rows[::2, np.newaxis] - vectors).max(axis=2).min(axis=1)
    assert np.median(off) < 1e-6 * np.abs(vectors).max()


def test_samples_with_categories(rng):
    X = np.column_stack([rng.normal(size=80), rng.integers(3, size=80), 10.5 * rng.integers(4, size=80)])
    y = np.sin(2.0 * X[:, 0]) + (X[:, 1] == 1.0) - (X[:, 2] == 21.0)
    X[rng.random(X.shape) < 0.05] = np.nan
    parts = ColumnTransformer(
        [
            ("a", SimpleImputer(add_indicator=True), [0]),
            ("b", OneHotEncoder(handle_unknown="ignore"), [1]),
            ("c", OrdinalEncoder(encoded_missing_value=-1.0), [2]),
        ],
        sparse_threshold=0.0,
    )
    spec = output_spec_of(make_pipeline(parts, svmarrow.SVR()).fit(X, y))
    samples = samples_of(spec)
    assert set(samples[::2, 1][~np.isnan(samples[::2, 1])]) == {0.0, 1.0, 2.0}
    assert set(samples[::2, 2][~np.isnan(samples[::2, 2])]) == {0.0, 10.5, 21.0, 31.5}
    single = step_in_precision(spec.preparation, "float32")
    rows = single.rows(samples.astype(np.float32))
    np.testing.assert_allclose(rows, kernel_rows(samples, spec), rtol=1e-6, atol=1e-6)


@needs_gcc
def test_measured_rounding_is_that_of_the_program(plane, tmp_path):
    X, y = plane
    model = svmarrow.RLSRegressor(1e-3, gamma=0.05).fit(X, y)
    wanted = model.predict(X)
    made = to_c(model, prefix="p", X=X, y=wanted)
    _, outputs = run(made.text, X, tmp_path)
    loss = 1.0 - r2_score(wanted, outputs)
    assert made.score_before == 1.0
    assert 0.5 * loss < 1.0 - made.score_after < 2.0 * loss


@needs_gcc
def test_self_test_finds_outputs_that_are_off_by_the_spread(plane, tmp_path):
    X, y = plane
    made = to_c(svmarrow.RLSRegressor(1e-3, gamma=0.05).fit(X, y), prefix="p")
    assert run(made.text, X[:1], tmp_path)[0] == 1
    changed = made.text.replace("out[o] += p_intercepts[o]", "out[o] += 0.5f + p_intercepts[o]")
    assert changed != made.text
    assert run(changed, X[:1], tmp_path)[0] == 0


@needs_gcc
@pytest.mark.filterwarnings("ignore:dtype='float32'")
def test_self_test_allows_the_rounding_that_the_export_warns_of(tmp_path):
    # Samples of which single precision keeps few digits, before a scaler, a normaliser and alone.
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(56, 5))
    y = X @ rng.normal(size=5)
    models = [
        make_pipeline(StandardScaler(), MinMaxScaler(), svmarrow.SVR(kernel="linear")).fit(X + 1e6, y),
        make_pipeline(Normalizer(), svmarrow.SVR(C=1e-3)).fit(X + 1e6, y),
        svmarrow.SVC(C=1e-3).fit(1e-6 * X[:, :1] + 1e6, y > np.median(y)),
    ]
    tested = 0
    for k, model in enumerate(models):
        try:
            made = to_c(model, prefix="p")
        except ValueError:
            continue
        tested += 1
        folder = tmp_path / str(k)
        folder.mkdir()
        assert run(made.text, np.ones((1, model.n_features_in_)), folder)[0] == 1
    assert tested > 0


def test_data_frames_with_gaps(rng):
    pandas = pytest.importorskip("pandas")
    X = rng.integers(4, size=(60, 2)).astype(float)
    y = X[:, 0] == 2.0
    X[::7] = np.nan
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore", sparse_output=False), svmarrow.SVC())
    model.fit(X, y)
    table = pandas.DataFrame(X, columns=["a", "b"]).convert_dtypes()
    assert table.isna().to_numpy().any()
    made = to_c(model, X=table, y=y)
    assert made.disagreement == 0.0
    assert made.score_after == model.score(X, y)


def test_command(cancelling, tmp_path):
    model = tmp_path / "m.safetensors"
    svmarrow.save(cancelling, model)
    for name, parameters in (("m.h", ()), ("m.onnx", ("--dtype", "float32"))):
        if name == "m.onnx":
            pytest.importorskip("onnx")
        said = command("convert", model, "-o", tmp_path / name, *parameters, code=1).output
        assert "dtype='float32'" in said
        assert not (tmp_path / name).exists()
        command("convert", model, "-o", tmp_path / name, "--dtype", "float64")


def test_skl2onnx(cancelling, plane):
    skl2onnx = pytest.importorskip("skl2onnx")
    register_skl2onnx()
    X, _ = plane
    with pytest.raises(ValueError, match="dtype='float32'"):
        skl2onnx.to_onnx(cancelling, X.astype(np.float32)[:1], target_opset=18)
    skl2onnx.to_onnx(cancelling, X[:1], target_opset=18)


def check_double(model, X, folder):
    """C in double precision against the outputs of the model."""
    spec = output_spec_of(model)
    wanted = spec.expansion.decision_function(kernel_rows(X, spec))
    made = to_c(model, prefix="p", dtype="float64")
    passed, outputs = run(made.text, X, folder, "double")
    assert passed == 1
    # Large coefficients that cancel leave about seven digits.
    np.testing.assert_allclose(outputs, wanted, atol=1e-6 * np.abs(wanted).max())
    assert "float " not in made.text
    return made


@needs_gcc
@pytest.mark.parametrize("kernel", KERNELS)
def test_double_precision_of_every_kernel(rng, kernel, tmp_path):
    expansion, X = some(rng, kernel, 2)
    made = check_double(expansion, X, tmp_path)
    assert made.flash == 2 * to_c(expansion).flash
    loss = 1.0 - to_c(expansion, dtype="float64", X=X, y=expansion.decision_function(X)).score_after
    assert loss == pytest.approx(0.0, abs=1e-14)


@needs_gcc
@pytest.mark.parametrize("steps", PIPELINES, ids=lambda steps: type(steps[-1]).__name__)
def test_double_precision_of_pipelines(datasets, steps, tmp_path):
    X, y = datasets["cancer"]
    model = make_pipeline(*steps, svmarrow.SVC()).fit(X + 3.1, y)
    check_double(svmarrow.as_expansion(model).calibrated(X + 3.1, y), X + 3.1, tmp_path)


@needs_gcc
def test_double_precision_where_single_is_refused(cancelling, plane, rng, tmp_path):
    X, y = plane
    check_double(cancelling, X, tmp_path)
    stamps = X + 1.7e9
    check_double(make_pipeline(StandardScaler(), svmarrow.SVR()).fit(stamps, y), stamps, tmp_path)
    categories = np.column_stack([X[:, 0], rng.integers(4, size=300) / 10.0])
    parts = ColumnTransformer([("a", OneHotEncoder(handle_unknown="ignore"), [1])], remainder="passthrough")
    check_double(make_pipeline(parts, svmarrow.SVR()).fit(categories, y), categories, tmp_path)


def test_a_sigmoid_that_is_steep_where_outputs_hardly_differ_is_refused_in_single_precision():
    # Outputs differ by 4e-7, which single precision does not see, and the sigmoid spreads them over (0, 1).
    random = np.random.default_rng(1739200004)
    rows = 1e-3 * random.standard_t(2, size=(40, 40))
    labels = (rows[:, 0] > np.median(rows[:, 0])).astype(int)
    machine = LowRankRLSClassifier(15, gamma=2.2e-4, random_state=0).fit(rows, labels)
    model = CalibratedClassifierCV(FrozenEstimator(machine), method="sigmoid").fit(rows, labels)
    converted = as_expansion(model)
    assert abs(converted.calibration.slopes[0]) > 1e4
    for export in (to_c, to_onnx):
        with pytest.raises(ValueError, match="use dtype='float64'"):
            export(model, dtype="float32")
        export(model, dtype="float64")
    # A usual one is not.
    usual = CalibratedClassifierCV(SVC(), ensemble=False).fit(*load_iris(return_X_y=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_c(usual, dtype="float32")
