"""Shapley values against their definition over all coalitions, and against predictions."""

from __future__ import annotations

import importlib.util
import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from svmarrow import SVC, SVR, CodedClassifier, KernelExpansion, OneClassSVM, RLSRegressor, compress
from svmarrow.inspection import ShapleyValues, shapley_values

mpl.use("Agg")


def of_all_coalitions(worth, d):
    """Shapley values of a game of d players whose coalitions are arrays of booleans."""
    values = {mask: worth(np.array([mask >> j & 1 for j in range(d)], dtype=bool)) for mask in range(1 << d)}
    found = []
    for j in range(d):
        terms = []
        for mask in range(1 << d):
            if not mask >> j & 1:
                size = mask.bit_count()
                weight = math.factorial(size) * math.factorial(d - size - 1) / math.factorial(d)
                terms.append(weight * (values[mask | 1 << j] - values[mask]))
        found.append(sum(terms))
    return np.array(found)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return np.abs(X[:200, :6] * 10), y[:200]


MODELS = [
    SVR(C=100),
    SVR(kernel="laplacian", C=10, gamma=0.3),
    SVR(kernel="chi2", C=10, gamma=1.0),
    SVR(kernel="linear", C=10),
    RLSRegressor(alpha=0.1),
    make_pipeline(StandardScaler(), SVR(C=10)),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_are_those_of_all_coalitions(model, dtype, diabetes):
    X, y = diabetes
    model.fit(X, y)
    background = X[::20].astype(dtype)
    found = shapley_values(model, X[:3].astype(dtype), background)
    tolerance = 1e-10 if dtype == np.float64 else 1e-3
    for x, values in zip(X[:3].astype(dtype), found.values, strict=True):
        expected = of_all_coalitions(lambda S, x=x: model.predict(np.where(S, x, background)).mean(), 6)
        np.testing.assert_allclose(values, expected, atol=tolerance * np.abs(y).max())
    assert found.additivity_error.max() < 1e-8
    assert found.base_values == pytest.approx(model.predict(background).mean(), abs=tolerance * 100)


def test_the_product_kernel_game_leaves_factors_out(diabetes):
    X, y = diabetes
    svr = SVR(C=100).fit(X, y)
    f = svr.expansion_
    found = shapley_values(svr, X[:2], X[:1], game="kernel")
    for x, values in zip(X[:2], found.values, strict=True):

        def worth(S, x=x):
            distances = ((x - f.vectors)[:, S] ** 2).sum(axis=1)
            return (np.exp(-f.gamma * distances) @ f.coefficients)[0]

        np.testing.assert_allclose(values, of_all_coalitions(worth, 6), atol=1e-9)
    assert found.base_values == pytest.approx(f.coefficients.sum() + f.intercepts[0])


def test_groups_are_one_player_and_one_hot_columns_belong_to_their_category(diabetes):
    X, y = diabetes
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    frame["kind"] = np.array(["red", "green", "blue"])[np.arange(len(X)) % 3]
    encode = make_column_transformer((StandardScaler(), ["a", "b", "c"]), (OneHotEncoder(), ["kind"]))
    model = make_pipeline(encode, SVR(C=10)).fit(frame, y)
    background = frame.iloc[::25]
    found = shapley_values(model, frame.iloc[:2], background, groups={"a and c": ["a", "c"]})
    assert found.feature_names == ["a and c", "b", "kind"]
    members = [["a", "c"], ["b"], ["kind"]]
    for row in range(2):

        def worth(S, row=row):
            mixed = background.copy()
            for player in np.flatnonzero(S):
                for column in members[player]:
                    mixed[column] = frame[column].iloc[row]
            return model.predict(mixed).mean()

        np.testing.assert_allclose(found.values[row], of_all_coalitions(worth, 3), atol=1e-9)


def test_groups_of_a_frame_are_given_by_names(diabetes):
    X, y = diabetes
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = make_pipeline(StandardScaler(), SVR(C=10)).fit(frame, y)
    found = shapley_values(model, frame[:4], frame[::20], groups={"a and c": ["a", "c"]})
    assert found.feature_names == ["a and c", "b", "d", "e", "f"]
    same = shapley_values(model, frame[:4], frame[::20], groups={"a and c": [0, 2]})
    np.testing.assert_array_equal(same.values, found.values)
    np.testing.assert_array_equal(same.data, found.data)
    turned = frame[list("fedcba")]
    with pytest.raises(ValueError, match="must be in the same order"):
        shapley_values(model, turned[:4], turned[::20])
    np.testing.assert_array_equal(found.data[:, 1:], X[:4][:, [1, 3, 4, 5]])


def test_every_binary_machine_and_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    for model, n_outputs in [
        (SVC(decision_function_shape="ovo").fit(X, y), 3),
        (OneVsRestClassifier(SVC(gamma=0.5)).fit(X, y), 3),
        (SVC().fit(X[:100], y[:100]), 1),
        (OneClassSVM().fit(X), 1),
    ]:
        found = shapley_values(model, X[:40:3], X[::5])
        assert len(found.output_names) == n_outputs
        sums = found.base_values + found.values.sum(axis=1)
        np.testing.assert_allclose(sums, model.decision_function(X[:40:3]), atol=1e-8)


def test_votes_other_kernels_and_mixed_columns_are_refused_by_name(diabetes):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"output='decision_function' is not allowed.*OneVsRestClassifier"):
        shapley_values(SVC().fit(X, y), X, X)
    assert shapley_values(SVC().fit(X, y), X[:2], X[:5], output="machines").values.shape == (2, 4, 3)
    with pytest.raises(ValueError, match=r"kernel='poly' is not allowed.*distil\(model, X, y\)"):
        shapley_values(SVC(kernel="poly").fit(X[:100], y[:100]), X, X)
    with pytest.raises(ValueError, match=r"game='kernel'"):
        shapley_values(SVC(kernel="linear").fit(X[:100], y[:100]), X, X, game="kernel")
    with pytest.raises(ValueError, match="mixes columns"):
        shapley_values(make_pipeline(PCA(2), SVC()).fit(X[:100], y[:100]), X, X)
    svc = SVC().fit(X[:100], y[:100])
    for groups in [
        *({"a": [0, 1], "b": [1]}, {"a": [4]}, {"a": ["width"]}, {"a": []}, {"a": "x1"}, {"a": 1}),
        [[0, 1]],
    ]:
        with pytest.raises(ValueError, match="groups="):
            shapley_values(svc, X, X, groups=groups)
    with pytest.raises(ValueError, match=r"columns|features"):
        shapley_values(svc, X[:, :3], X)


def test_threads_and_order_change_nothing_and_many_columns_add_up():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(90, 60)), rng.normal(size=(30, 60))
    expansion = KernelExpansion(Z, rng.normal(size=(90, 2)), [0.5, -1.0], gamma=0.05)
    one = shapley_values(expansion, X, Z[:33], n_jobs=1)
    two = shapley_values(expansion, X, Z[:33], n_jobs=2)
    assert (one.values == two.values).all()
    sums = one.base_values + one.values.sum(axis=1)
    np.testing.assert_allclose(sums, expansion.decision_function(X), atol=1e-9)
    order = rng.permutation(60)
    turned = KernelExpansion(Z[:, order], expansion.coefficients, [0.5, -1.0], gamma=0.05)
    found = shapley_values(turned, X[:, order], Z[:33][:, order])
    np.testing.assert_allclose(found.values, one.values[:, order], atol=1e-10)


def test_factors_of_any_size_give_finite_values():
    Z = np.array([[0.0, 0.0], [1.0, 300.0]])
    for gamma in (0.0, 1e-300, 1.0, 1e300):
        expansion = KernelExpansion(Z, [1.0, -1.0], 0.0, gamma=gamma)
        found = shapley_values(expansion, [[0.0, 0.0], [1e200, -1e200]], [[1.0, 300.0], [0.5, 1e6]])
        assert np.isfinite(found.values).all()
        assert found.additivity_error.max() < 1e-12


def test_pictures_and_a_small_model(diabetes):
    X, y = diabetes
    small = compress(SVR(C=100).fit(X, y), n_vectors=20)
    found = shapley_values(small, X, X[::20])
    assert isinstance(found, ShapleyValues)
    largest = int(found.importances.argmax())
    for kind in ("bar", "beeswarm"):
        ax = found.plot(kind, max_display=3).ax_
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels[0] == f"x{largest}"
        assert labels[3:] == ["and 3 more"]
        assert len(found.plot(kind).ax_.get_yticks()) == 6
    with pytest.raises(ValueError, match="output="):
        found.plot(output=1)


def test_text_and_missing_values_leave_the_other_points_their_colours(rng):
    frame = pd.DataFrame({"age": rng.normal(size=40), "kind": rng.choice(["a", "b"], 40)})
    frame["count"] = pd.array(rng.integers(0, 5, 40), dtype="Int64")
    frame.loc[:9, "count"] = pd.NA
    y = frame["age"] + (frame["kind"] == "a")
    parts = make_column_transformer((OneHotEncoder(), ["kind"]), (SimpleImputer(), ["age", "count"]))
    found = shapley_values(make_pipeline(parts, SVR()).fit(frame, y), frame, frame[:20])
    known = ~np.isnan(found.data)
    assert known.sum(axis=0).tolist() == [40, 0, 30]
    coloured = [
        len(points.get_offsets()) for points in found.plot().ax_.collections if points.get_array() is not None
    ]
    assert sorted(coloured) == [30, 40]


def test_a_class_is_chosen_by_its_label():
    X, y = load_iris(return_X_y=True)
    names = np.array(["stayed", "left", "other"])[y]
    two = SVC().fit(X[:100], names[:100])
    second = shapley_values(two, X[:5], X[::20])
    left = shapley_values(two, X[:5], X[::20], label="left")
    assert (second.output_names, left.output_names) == (["stayed"], ["left"])
    assert np.array_equal(left.values, -second.values)
    assert left.base_values == -second.base_values
    three = OneVsRestClassifier(SVC()).fit(X, names)
    every = shapley_values(three, X[:5], X[::20])
    other = shapley_values(three, X[:5], X[::20], label="other")
    assert np.array_equal(other.values, every.values[:, :, every.output_names.index("other")])
    with pytest.raises(ValueError, match="label='gone' is not allowed: it must be one of 'left', 'stayed'"):
        shapley_values(two, X[:5], X[::20], label="gone")
    machines = CodedClassifier(SVC(), code=np.array([[1, -1, 1], [-1, 1, -1]])).fit(X[:100], names[:100])
    with pytest.raises(ValueError, match="outputs that are not decision values"):
        shapley_values(machines, X[:5], X[::20], label="left", output="machines")


def test_the_background_of_a_model_that_has_its_samples(diabetes):
    X, y = diabetes
    for model in (RLSRegressor(alpha=0.1), make_pipeline(StandardScaler(), RLSRegressor(alpha=0.1))):
        # 80 samples are all drawn.
        found = shapley_values(model.fit(X[:80], y[:80]), X[:3])
        expected = shapley_values(model, X[:3], X[:80])
        np.testing.assert_allclose(found.values, expected.values, atol=1e-9 * np.abs(expected.values).max())
    with pytest.raises(ValueError, match="background=None is not allowed for SVR"):
        shapley_values(SVR().fit(X, y), X[:3])


@pytest.mark.skipif(importlib.util.find_spec("shap") is not None, reason="shap is installed")
def test_without_shap_the_extra_is_named(diabetes):
    X, y = diabetes
    with pytest.raises(ImportError, match=r"svmarrow\[explain\]"):
        shapley_values(SVR().fit(X, y), X[:2], X[:5]).to_shap()
