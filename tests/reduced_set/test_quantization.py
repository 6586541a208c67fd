"""Models in fewer bytes: what is rounded, what it costs, and that files keep it exactly."""

import struct

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as peer
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmarrow
from helpers.model_files import read_parts, write_parts
from svmarrow import SVC, KernelExpansion, compress, compression_path, quantize
from svmarrow.exceptions import FormatError
from svmarrow.export import to_c
from svmarrow.models import ExpansionRegressor
from svmarrow.reduced_set.quantization import byte_coefficients, stored_bytes


@pytest.fixture(scope="module")
def tenths():
    X, y = load_digits(return_X_y=True)
    # Numbers that single precision does not hold.
    X = 0.1 * X + 1e-3 * np.sin(X + np.arange(64))
    return X[:1000], y[:1000], X[1000:], y[1000:]


@pytest.fixture(scope="module", params=["ovr", "ovo"])
def small(request, tenths):
    X, y, _, _ = tenths
    svc = SVC(C=10, gamma=0.1, multi_class=request.param).fit(X, y)
    return compress(svc, n_vectors=100, X=X, y=y, method="backfit")


def test_rounding_is_within_half_a_step():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((200, 5)) * [1e-8, 1.0, 1e8, 3.0, 0.0]
    B[:, 3] = np.abs(B[:, 3])
    B[::7] = 0.0
    found = byte_coefficients(B).values()
    step = (np.maximum(B.max(axis=0), 0) - np.minimum(B.min(axis=0), 0)) / 255
    # The numbers at both ends may have to give up another half of a step for zero to be on the grid.
    assert (np.abs(found - B) <= 1.01 * step).all()
    assert np.median(np.abs(found - B)[:, 1]) < 0.5 * step[1]
    assert (found[B == 0] == 0).all()
    assert all(np.unique(column).size <= 256 for column in found.T)
    assert (byte_coefficients(found).values() == found).all()


def test_what_it_costs_is_measured(small, tenths):
    _, _, X, y = tenths
    made = quantize(small, X=X, y=y)
    result = made.quantization_
    before, after = small.outputs(X), made.outputs(X)
    assert result.largest_difference == np.abs(after - before).max()
    relative = ((after - before) ** 2).mean(axis=0) / before.var(axis=0)
    assert result.relative_difference == pytest.approx(np.sqrt(relative.mean()))
    assert result.disagreement == (made.predict(X) != small.predict(X)).mean()
    assert (result.score_before, result.score_after) == (small.score(X, y), made.score(X, y))
    assert result.disagreement < 0.02
    assert made.expansion_.vectors.dtype == np.float32


def test_files_shrink_and_keep_it_exactly(small, tenths, tmp_path):
    X = tenths[2]
    made = quantize(small, X=X)
    result = made.quantization_
    files = []
    for name, model in [("before", small), ("after", made)]:
        files.append(tmp_path / name)
        model.save(files[-1])
        again = svmarrow.load(files[-1])
        assert again.expansion_ == model.expansion_
        assert (again.outputs(X) == model.outputs(X)).all()
    sizes = [file.stat().st_size for file in files]
    assert sizes[1] < 0.5 * sizes[0]
    # All but the header and the labels of the file.
    stored = [len(read_parts(file)[1]) - small.classes_.nbytes for file in files]
    assert stored == [result.bytes_before, result.bytes_after]
    assert [read_parts(file)[0]["coefficients"]["dtype"] for file in files] == ["F64", "U8"]


@pytest.mark.parametrize(
    ("options", "vectors", "exact"),
    [
        ({"vectors": "same", "coefficients": "same"}, np.float64, True),
        ({"coefficients": "same"}, np.float32, False),
        ({"vectors": "same"}, np.float64, False),
    ],
)
def test_each_part_is_an_option(options, vectors, exact, small, tenths):
    X = tenths[2]
    made = quantize(small, X=X, **options)
    result = made.quantization_
    assert made.expansion_.vectors.dtype == vectors
    assert (result.largest_difference == 0) is exact
    assert (result.bytes_after < result.bytes_before) is not exact


def test_regression_sparse_rows_and_bytes():
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 30), density=0.2, rng=rng, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel()
    made = quantize(peer.SVR(C=10).fit(X, y), X=X, y=y)
    result = made.quantization_
    assert isinstance(made, ExpansionRegressor)
    assert result.disagreement is None
    assert result.score_after == pytest.approx(result.score_before, abs=0.01)
    assert sparse.issparse(made.expansion_.vectors)
    bytes_ = KernelExpansion(rng.integers(0, 255, (20, 4)).astype(np.uint8), np.ones(20), 0.0, gamma=1e-4)
    assert quantize(bytes_).vectors.dtype == np.uint8
    empty = ExpansionRegressor(KernelExpansion(np.empty((0, 3)), np.empty((0, 2)), [1.0, 2.0]), flat=False)
    assert quantize(empty).quantization_.largest_difference == 0.0


def test_refusals(small, tenths):
    y = tenths[3]
    for options, message in [
        ({"vectors": "float16"}, "vectors='float16'"),
        ({"coefficients": 8}, "coefficients=8"),
        ({"y": y}, "y is given without X"),
        ({"dtype": "int8", "vectors": "same"}, "vectors='same' is not allowed"),
        ({"dtype": "int8", "coefficients": "same"}, "coefficients='same' is not allowed"),
    ]:
        with pytest.raises(ValueError, match=message):
            quantize(small, **options)
    with pytest.raises(OverflowError, match="beyond single precision"):
        quantize(KernelExpansion([[1e300]], [1.0], 0.0, kernel="linear"))
    with pytest.raises(ValueError, match="needs X"):
        quantize(KernelExpansion([[0.0], [1.0]], [1.0, 1.0], 0.0, kernel="precomputed"))


def test_broken_files_are_refused(small, tmp_path):
    file = tmp_path / "model"
    quantize(small).save(file)
    header, data = read_parts(file)

    def refuse(changed, message):
        write_parts(file, changed, data)
        with pytest.raises(FormatError, match=message):
            svmarrow.load(file)

    q = small.expansion_.n_outputs
    steps = header["coefficients.steps"]
    renamed = {"other" if key == "coefficients.steps" else key: value for key, value in header.items()}
    refuse(renamed, "expected F64")
    refuse({**header, "__metadata__": {**header["__metadata__"], "version": "4"}}, "version")
    refuse({key: value for key, value in header.items() if key != "coefficients.zeros"}, "tensor")
    refuse({**header, "coefficients.steps": {**steps, "dtype": "I64"}}, "expected F64")
    refuse({**header, "coefficients.zeros": {**header["coefficients.zeros"], "shape": [1, q]}}, "expected 1")
    # A step that is not finite makes coefficients that are not.
    begin = steps["data_offsets"][0]
    data = data[:begin] + struct.pack("<d", np.inf) + data[begin + 8 :]
    refuse(header, "coefficients")


def test_vectors_of_one_byte(tenths, tmp_path):
    X, y, X_test, y_test = tenths
    svc = SVC(C=10, gamma=0.1, multi_class="ovr").fit(X, y)
    small = compress(svc, n_vectors=100, X=X, y=y, method="backfit")
    made = quantize(small, dtype="int8", X=X_test, y=y_test)
    result = made.quantization_
    floats = quantize(small, X=X_test, y=y_test).quantization_
    assert result.bytes_after < 0.4 * floats.bytes_after
    assert result.disagreement < 0.02
    assert result.score_after > result.score_before - 0.01
    Z = made.expansion_.vectors
    assert Z.dtype == np.float32
    assert all(np.unique(column).size <= 256 for column in Z.T)
    made.save(tmp_path / "bytes")
    assert svmarrow.load(tmp_path / "bytes").expansion_ == made.expansion_
    assert abs((tmp_path / "bytes").stat().st_size - result.bytes_after) < 2500


def test_coefficients_are_tuned_after_rounding(tenths):
    """Outputs on other rows are nearer than with the old coefficients on rounded vectors."""
    X, y, X_test, _ = tenths
    small = compress(
        SVC(C=10, gamma=0.1, multi_class="ovr").fit(X, y), n_vectors=60, X=X, y=y, method="backfit"
    )
    full = small.expansion_
    tuned = quantize(small, vectors="uint8", coefficients="same", X=X).expansion_
    kept = tuned.replaced(coefficients=full.coefficients)
    wanted = full.decision_function(X_test)
    off = [np.square(one.decision_function(X_test) - wanted).mean() for one in (tuned, kept)]
    assert off[0] < 0.5 * off[1]
    # Rounding one after the other is no worse than each to the nearest.
    nearest = tuned.replaced(coefficients=byte_coefficients(tuned.coefficients).values())
    both = quantize(small, dtype="int8", X=X).expansion_
    off = [np.square(one.decision_function(X_test) - wanted).mean() for one in (both, nearest)]
    assert off[0] < off[1]


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "laplacian", "chi2", "matern32"])
def test_bytes_for_other_kernels(tenths, kernel):
    X, y, X_test, _ = tenths
    X, X_test = np.abs(X), np.abs(X_test)
    gamma = {"sigmoid": 0.005, "poly": 0.1}.get(kernel, 0.05)
    svc = SVC(kernel=kernel, gamma=gamma, multi_class="ovr").fit(X[:300], y[:300])
    made = quantize(svc, dtype="int8", X=X_test)
    result = made.quantization_
    assert result.disagreement < 0.05
    again = quantize(svc, dtype="int8")
    assert again.quantization_.disagreement is not None
    with pytest.raises(ValueError, match="sparse"):
        quantize(SVC().fit(sparse.csr_array(X[:100]), y[:100]), dtype="int8")


@pytest.mark.parametrize("asked", [{"dtype": "int8"}, {"vectors": "uint8"}])
def test_sparse_vectors_in_bytes_are_refused_in_words_of_both_parameters(asked):
    model = SVC().fit(sparse.csr_array(np.eye(12)), np.arange(12) % 2)
    with pytest.raises(ValueError, match=r"vectors='uint8'.*sparse vectors; dtype='int8' asks for bytes too"):
        quantize(model, **asked)


def test_a_constant_output_does_not_count_in_units_of_its_rounding():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    Y = np.column_stack([np.sin(X[:, 0]), np.full(300, 5.0)])
    model = svmarrow.RLSRegressor(1e-3, fit_intercept=True).fit(X, Y)
    assert quantize(model, X=X, y=Y).quantization_.relative_difference < 0.5


def test_a_number_of_bytes_counts_the_form_that_ships(digits_ovr, pixels):
    X, y, X_test, y_test = pixels
    settings = {"max_bytes": 6000, "method": "backfit", "validation": (X_test, y_test)}
    plain = compress(digits_ovr, X, y, **settings)
    small = compress(digits_ovr, X, y, dtype="int8", **settings)
    assert stored_bytes(small.expansion_) <= 6000
    assert small.expansion_.n_vectors > 3 * plain.expansion_.n_vectors
    # A vector more would not fit into a header of C, but for offsets of columns that are all alike.
    d, q = small.expansion_.vectors.shape[1], small.expansion_.n_outputs
    header = to_c(small, dtype="int8", X=X)
    assert 6000 - d - q - 4 * d < header.flash <= 6000
    assert small.score(X_test, y_test) > plain.score(X_test, y_test)
    assert small.loss_bound_.loss == pytest.approx(
        digits_ovr.score(X_test, y_test) - small.score(X_test, y_test), abs=1e-12
    )


@pytest.mark.parametrize("dtype", ["int8", None])
@pytest.mark.parametrize("steps", [(StandardScaler(),), (StandardScaler(), PCA(20, random_state=0))])
def test_a_number_of_bytes_counts_the_preparation(pixels, dtype, steps):
    X, y, X_test, y_test = pixels
    pipeline = make_pipeline(*steps, SVC(C=10, multi_class="ovr")).fit(X, y)
    small = compress(pipeline, X_test, y_test, max_bytes=9000, dtype=dtype, method="backfit")
    options = {} if dtype is None else {"dtype": dtype, "X": X_test}
    # Selected vectors count with the eight bytes that they have in the model, not four as in C.
    assert (8700 if dtype == "int8" else 4000) < to_c(small, **options).flash <= 9000
    path = compression_path(pipeline, X=X_test, n_vectors=60)
    assert to_c(path.select(max_bytes=9000)).flash <= 9000
    with pytest.raises(
        ValueError, match=r"max_bytes=100 is not allowed: .* one vector of bytes|vectors need"
    ):
        compress(pipeline, X_test, y_test, max_bytes=100, dtype=dtype, method="backfit")


def test_a_full_model_that_fits_is_rounded_as_it_is():
    """Constructed vectors of the exact rank have large coefficients, which lose more by rounding."""
    X = np.abs(np.random.default_rng(0).normal(size=(150, 4)))
    model = SVC(kernel="poly").fit(X, X[:, 0] * X[:, 1] > 0.5)
    small = compress(model, X=X, max_bytes=5000, dtype="int8")
    assert small.expansion_.n_vectors == model.expansion_.n_vectors
    assert stored_bytes(small.expansion_) <= 5000


def test_the_record_stays_with_the_model_that_it_is_about(small, tenths, tmp_path):
    X = tenths[2]
    made = quantize(small, X=X, y=tenths[3])
    assert small.quantization_ is None
    assert str(made.quantization_).startswith(f"{made.quantization_.bytes_after:,} bytes instead of ")
    made.save(tmp_path / "model")
    assert svmarrow.load(tmp_path / "model").quantization_ == made.quantization_
    assert clone(made).quantization_ == made.quantization_
    assert made.set_params(n_jobs=1).quantization_ is not None
    assert made.with_expansion(small.expansion_).quantization_ is None
    assert compress(made, n_vectors=5).quantization_ is None
    assert type(quantize(small.expansion_)) is KernelExpansion
