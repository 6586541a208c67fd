"""C headers compile without a warning, as C99 and as C++11, and say what the model says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import svm as peer
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import svmarrow
from helpers.exports import KERNELS, PIPELINES, some
from helpers.programs import c_program, c_rows, needs_gcc
from svmarrow import KernelExpansion
from svmarrow._support.decoding import DECODERS
from svmarrow.export import to_c
from svmarrow.models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.multiclass import make_code

#: Reads rows of numbers, writes class, outputs, label.
PROGRAM = """#include <stdio.h>
#include "model.h"
int main(void) {
    static float x[P_FEATURES];
    float out[P_OUTPUTS];
    int j;
    if (!p_self_test()) {
        return 3;
    }
    for (;;) {
        for (j = 0; j < P_FEATURES; ++j) {
            if (scanf("%f", &x[j]) != 1) {
                return 0;
            }
        }
        p_outputs(x, out);
        PREDICT
        for (j = 0; j < P_OUTPUTS; ++j) {
            printf(" %.9g", (double)out[j]);
        }
        printf("\\n");
    }
}
"""
CLASS = 'printf("%d", p_predict(x));'

pytestmark = needs_gcc


def run(made, X, folder, predict=CLASS, *, cpp=False):
    """First column and outputs of each row, from the compiled program."""
    (folder / "model.h").write_text(made.text)
    said = c_program(folder, PROGRAM.replace("PREDICT", predict), c_rows(X), cpp=cpp)
    lines = [line.split() for line in said.splitlines()]
    assert len(lines) == len(X)
    q = len(lines[0]) - (1 if predict else 0)
    outputs = np.array([[float(cell) for cell in line[-q:]] for line in lines])
    return [line[0] for line in lines], outputs


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_machines_of_every_kernel(datasets, kernel, multi_class, dtype, tmp_path):
    X, y = datasets["iris"]
    model = svmarrow.SVC(kernel=kernel, multi_class=multi_class, **KERNELS[kernel]).fit(X[::2], y[::2])
    made = to_c(model, prefix="p", dtype=dtype, X=X, y=y)
    found, outputs = run(made, X, tmp_path, cpp=True)
    labels = np.array(found, dtype=int)
    wanted = model.expansion_.decision_function(X)
    scale = np.abs(wanted).max()
    if dtype == "float32":
        assert np.abs(outputs - wanted).max() < 1e-5 * scale
        assert (labels == model.predict(X)).all()
        assert made.disagreement == 0.0
    else:
        assert np.sqrt(((outputs - wanted) ** 2).mean()) < 0.03 * scale
        # What was measured at export is what the program does, but for a tie within rounding.
        assert abs((labels != model.predict(X)).mean() - made.disagreement) <= 1 / len(y)
        assert made.disagreement <= 0.04
        assert abs((labels == y).mean() - made.score_after) <= 1 / len(y)


@pytest.mark.parametrize("decoder", [name for name in DECODERS if not name.endswith("logistic")])
@pytest.mark.parametrize("code", ["ovr", "sparse", "ovo"])
def test_every_code_and_decoder(rng, code, decoder, tmp_path):
    for n_classes in (2, 4):
        matrix = make_code(code, n_classes, random_state=0)
        if decoder == "dag" and code != "ovo" and n_classes > 2:
            continue
        expansion, X = some(rng, "rbf", matrix.n_columns)
        model = ExpansionClassifier(expansion, range(n_classes), "code", code=matrix, decoder=decoder)
        found, _ = run(to_c(model, prefix="p"), X, tmp_path)
        assert (np.array(found, dtype=int) == model.predict(X)).mean() >= 0.99


@pytest.mark.parametrize("break_ties", [False, True])
def test_votes_as_scikit_learn_counts_them(datasets, break_ties, tmp_path):
    X, y = datasets["digits"]
    model = peer.SVC(gamma=0.5, break_ties=break_ties).fit(X[:300], y[:300])
    found, _ = run(to_c(model, prefix="p"), X[300:], tmp_path)
    assert (np.array(found, dtype=int) == model.predict(X[300:])).all()


def test_numbers_detectors_and_constants(datasets, rng, tmp_path):
    X, _ = datasets["moons"]
    for dtype in ("float32", "int8"):
        # The outputs of support vectors are zero but for rounding: others are compared.
        model, others = svmarrow.OneClassSVM(nu=0.2).fit(X[::2]), X[1::2]
        made = to_c(model, prefix="p", dtype=dtype, X=others)
        found, _ = run(made, others, tmp_path)
        assert abs((np.array(found, dtype=int) != model.predict(others)).mean() - made.disagreement) < 0.01
        assert made.disagreement < 0.02
    expansion, X = some(rng, "rbf", 1)
    number = 'printf("%.9g", (double)p_predict(x));'
    found, _ = run(to_c(ExpansionRegressor(expansion), prefix="p"), X, tmp_path, number)
    wanted = ExpansionRegressor(expansion).predict(X)
    assert np.abs(np.array(found, dtype=float) - wanted).max() < 1e-5
    expansion, X = some(rng, "poly", 3)
    made = to_c(expansion, prefix="p", X=X, y=expansion.decision_function(X))
    assert made.score_before == 1.0
    assert made.score_after == pytest.approx(1.0)
    _, outputs = run(made, X, tmp_path, "")
    assert np.abs(outputs - expansion.decision_function(X)).max() < 1e-4
    constant = KernelExpansion(np.empty((0, 2)), np.empty((0, 1)), [0.25])
    _, outputs = run(to_c(constant, prefix="p"), X[:, :2], tmp_path, "")
    assert (outputs == 0.25).all()
    with pytest.raises(ValueError, match="nothing to round"):
        to_c(constant, dtype="int8")


def test_precomputed_kernels(datasets, tmp_path):
    X, y = datasets["iris"]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1))
    model = svmarrow.SVC(kernel="precomputed", multi_class="ovr").fit(K[::2, ::2], y[::2])
    found, _ = run(to_c(model, prefix="p"), K[:, ::2], tmp_path)
    assert (np.array(found, dtype=int) == model.predict(K[:, ::2])).all()


def test_bytes_are_close_far_away_and_with_many_columns(rng, tmp_path):
    """Offsets per column, wide types where sums are long, rows far outside of the vectors."""
    for d, m, gamma in ((3, 400, 0.5), (40, 6, 0.02)):
        Z = rng.normal(size=(m, d)) + 30.0 * np.arange(d)
        expansion = KernelExpansion(Z, rng.normal(size=(m, 2)), [0.5, -0.5], gamma=gamma)
        X = np.vstack([Z + 0.1 * rng.normal(size=Z.shape), Z + 1e4, -Z])
        made = to_c(expansion, prefix="p", dtype="int8", X=X)
        assert made.exponentials == 0
        assert "math.h" not in made.text
        _, outputs = run(made, X, tmp_path, "")
        wanted = expansion.decision_function(X)
        assert np.sqrt(((outputs - wanted) ** 2).mean()) < 0.02 * wanted.std()
        # Beyond the reach of the kernel only the intercepts are left.
        assert np.abs(outputs[m : 2 * m] - expansion.intercepts).max() < 0.02


def test_labels_of_every_kind(rng, tmp_path):
    expansion, X = some(rng, "rbf", 3)
    for labels, kind, wanted in (
        (["naïve ??/", 'quo"te', "back\\slash"], 'printf("%s\\t", p_label(p_predict(x)));', str),
        ([-5, 7, 2**40], 'printf("%lld", (long long)p_label(p_predict(x)));', int),
        ([0.5, 1.5, -2.25], 'printf("%.17g", p_label(p_predict(x)));', float),
    ):
        model = ExpansionClassifier(expansion, labels, "ovr")
        to_c(model, tmp_path / "model.h", prefix="p")
        lines = c_program(tmp_path, PROGRAM.replace("PREDICT", kind), c_rows(X)).splitlines()
        cells = [line.split("\t" if wanted is str else " ")[0] for line in lines]
        assert [wanted(cell) for cell in cells] == model.predict(X).tolist()


def test_two_models_in_one_program(rng, tmp_path):
    a, _ = some(rng, "rbf", 1)
    b, _ = some(rng, "linear", 1)
    to_c(ExpansionClassifier(a, [0, 1], "binary"), tmp_path / "a.h", prefix="a")
    to_c(ExpansionClassifier(b, [0, 1], "binary"), tmp_path / "b.h", prefix="b", dtype="int8")
    main = "int main(void) { return a_self_test() + b_self_test() != 2; }"
    c_program(tmp_path, f'#include "a.h"\n#include "b.h"\n{main}\n')


def test_a_self_test_that_fails(rng, tmp_path):
    expansion, _ = some(rng, "rbf", 1)
    made = to_c(expansion, prefix="p")
    first = made.text.index("p_vectors[9][4] = {\n    {") + len("p_vectors[9][4] = {\n    {")
    broken = made.text[:first] + "9.5f, " + made.text[first:].split(", ", 1)[1]
    (tmp_path / "p.h").write_text(broken)
    c_program(tmp_path, '#include "p.h"\nint main(void) { return p_self_test(); }\n')


def test_a_self_test_of_outputs_that_are_near_zero(tmp_path):
    X = np.random.default_rng(0).uniform(size=(20, 4))
    expansion = KernelExpansion(X[:1], [1e-3], [-1e-3], kernel="rbf", gamma=0.5)
    (tmp_path / "p.h").write_text(to_c(ExpansionDetector(expansion), prefix="p").text)
    c_program(tmp_path, '#include "p.h"\nint main(void) { return !p_self_test(); }\n')


def test_what_cannot_be_written_is_refused(rng, tmp_path):
    expansion, X = some(rng, "rbf", 3)
    for prefix in ("", "9lives", "a-b", "ü", None):
        with pytest.raises(ValueError, match="prefix"):
            to_c(expansion, prefix=prefix)
    with pytest.raises(ValueError, match="dtype='int4'"):
        to_c(expansion, dtype="int4")
    with pytest.raises(ValueError, match="y is given without X"):
        to_c(expansion, y=[1])
    with pytest.raises(ValueError, match="columns"):
        to_c(expansion, X=X[:, :2])
    logistic = ExpansionClassifier(
        expansion, [0, 1, 2], "code", code=make_code("ovr", 3), decoder="mean_logistic"
    )
    with pytest.raises(ValueError, match="logarithms"):
        to_c(logistic)
    with pytest.raises(ValueError, match="single precision"):
        to_c(expansion.replaced(coefficients=1e300 * expansion.coefficients))
    with pytest.raises(OSError, match="no"):
        to_c(expansion, tmp_path / "no" / "p.h")


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("steps", PIPELINES, ids=lambda steps: type(steps[-1]).__name__)
def test_pipelines(datasets, steps, dtype, tmp_path):
    X, y = datasets["cancer"]
    X = (X + 3.0).astype(np.float32).astype(np.float64)
    model = make_pipeline(*steps, svmarrow.SVC()).fit(X, y)
    made = to_c(model, prefix="p", dtype=dtype, X=X)
    found, outputs = run(made, X, tmp_path, cpp=True)
    wanted = model.decision_function(X)
    assert (np.array(found, dtype=int) != model.predict(X)).mean() <= made.disagreement + 0.002
    if dtype == "float32":
        assert np.abs(outputs[:, 0] - wanted).max() < 1e-4 * np.abs(wanted).max()
    else:
        assert made.disagreement < 0.03


def test_gaps_and_parts(datasets, rng, tmp_path):
    X, y = datasets["cancer"]
    X = X.astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.05] = np.nan
    parts = ColumnTransformer(
        [
            ("a", SimpleImputer(add_indicator=True), [3, 0, 7]),
            ("b", StandardScaler(), [1]),
            ("c", "drop", [2]),
        ]
    )
    first = make_pipeline(SimpleImputer(strategy="median"), parts, svmarrow.SVC(gamma=0.05)).fit(X, y)
    found, _ = run(to_c(first, prefix="p"), X, tmp_path)
    assert (np.array(found, dtype=int) == first.predict(X)).all()


def coded(rng, n):
    """Numbers, two columns of category codes, and gaps in all of them."""
    X = np.column_stack([rng.normal(size=n), rng.integers(3, size=n), 10.5 * rng.integers(4, size=n)])
    y = (np.sin(2.0 * X[:, 0]) + (X[:, 1] == 1.0) - (X[:, 2] == 21.0) > 0.2).astype(int)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X.astype(np.float32).astype(np.float64), y


@pytest.mark.parametrize("unknown", ["ignore", "infrequent_if_exist"])
def test_categories_of_numbers(rng, unknown, tmp_path):
    X, y = coded(rng, 120)
    encoder = OneHotEncoder(handle_unknown=unknown, sparse_output=False, min_frequency=12)
    parts = ColumnTransformer([("a", SimpleImputer(), [0]), ("b", encoder, [1, 2])])
    model = make_pipeline(parts, svmarrow.SVC()).fit(X, y)
    rows = np.vstack([X, [[0.5, 7.0, 21.0], [0.5, 1.0, -1.0], [np.nan, np.nan, np.nan]]])
    found, outputs = run(to_c(model, prefix="p"), rows, tmp_path, cpp=True)
    wanted = model.decision_function(rows)
    assert np.abs(outputs[:, 0] - wanted).max() < 1e-5 * np.abs(wanted).max()
    assert (np.array(found, dtype=int) == model.predict(rows)).all()


def test_categories_that_become_missing_values(rng, tmp_path):
    X, y = coded(rng, 120)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    model = make_pipeline(encoder, SimpleImputer(add_indicator=True), svmarrow.SVC()).fit(X[:, 1:], y)
    rows = np.vstack([X[:, 1:], [[7.0, 21.0], [1.0, -1.0], [np.nan, np.nan]]])
    found, _ = run(to_c(model, prefix="p"), rows, tmp_path, cpp=True)
    assert (np.array(found, dtype=int) == model.predict(rows)).all()


def test_a_compressed_table(rng, tmp_path):
    X, y = coded(rng, 160)
    table = svmarrow.TabularClassifier(categories=[1, 2], n_samples=60).fit(X[:100], y[:100])
    small = svmarrow.compress(table, n_vectors=30)
    svmarrow.save(small, tmp_path / "small")
    again = svmarrow.load(tmp_path / "small")
    found, outputs = run(to_c(again, prefix="p"), X, tmp_path)
    wanted = small.decision_function(X)
    assert np.abs(outputs[:, 0] - wanted).max() < 1e-3 * np.abs(wanted).max()
    assert (np.array(found, dtype=int) == small.predict(X)).all()


def test_categories_that_are_refused(rng):
    X, y = coded(rng, 60)

    def fitted(encoder, rows):
        return make_pipeline(encoder, svmarrow.SVC()).fit(rows, y)

    with pytest.raises(ValueError, match=r"column 0 .* refuses unknown categories"):
        to_c(fitted(OneHotEncoder(sparse_output=False), X[:, 1:]))
    lenient = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    with pytest.raises(ValueError, match=r"column 0 .* not exact in single precision"):
        to_c(fitted(lenient, X[:, 1:] + 0.1))
    with pytest.raises(ValueError, match="encode texts as numbers"):
        to_c(fitted(lenient, np.where(X[:, 1:] > 0.0, "a", "b")))
