"""Tables as they are: categories, gaps, and what the fitted model is."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_friedman1, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import log_loss, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import svmarrow
from svmarrow import RLSRegressor, TabularClassifier, TabularRegressor, as_expansion, compress
from svmarrow.tabular import _choice, estimators

RNG = np.random.default_rng(0)
N = 160


def table():
    """A frame with a number, gaps, a category of text, one of numbers, a boolean, and noise."""
    frame = pd.DataFrame(
        {
            "size": RNG.normal(size=N),
            "age": RNG.normal(size=N),
            "kind": RNG.choice(["a", "b", "c"], size=N),
            "code": pd.Categorical(RNG.integers(0, 3, size=N)),
            "flag": RNG.random(N) < 0.5,
            "noise": RNG.normal(size=N),
        }
    )
    y = np.sin(2.0 * frame["size"]) + (frame["kind"] == "b") - 0.5 * frame["flag"] + frame["age"].fillna(0.0)
    frame.loc[::9, "age"] = np.nan
    frame.loc[3::11, "kind"] = None
    return frame, y.to_numpy()


FRAME, Y = table()
SIDE = np.where(np.median(Y) < Y, "high", "low")
X_SMALL = RNG.normal(size=(N, 2))


def test_a_table_is_taken_as_it_is():
    model = TabularRegressor().fit(FRAME[:120], Y[:120])
    assert model.score(FRAME[120:], Y[120:]) > 0.7
    assert model.feature_names_in_.tolist() == list(FRAME.columns)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[5] < 0.1
    classifier = TabularClassifier().fit(FRAME[:120], SIDE[:120])
    assert classifier.score(FRAME[120:], SIDE[120:]) > 0.75
    assert set(classifier.predict(FRAME)) == {"high", "low"}


@pytest.mark.parametrize("kind", [TabularClassifier, TabularRegressor])
def test_the_model_is_one_expansion_that_travels(kind, tmp_path):
    y = SIDE if kind is TabularClassifier else Y
    frame = FRAME.drop(columns="code")
    fitted = kind(n_samples=100).fit(frame, y)
    model = as_expansion(fitted)
    assert np.array_equal(model.predict(frame), fitted.predict(frame))
    svmarrow.save(fitted, tmp_path / "model")
    again = svmarrow.load(tmp_path / "model")
    assert type(again) is kind
    assert np.array_equal(again.predict(frame), fitted.predict(frame))
    small = compress(fitted, n_vectors=60)
    assert small.expansion_.n_vectors <= 60
    close = np.mean(small.predict(frame) == fitted.predict(frame)) if y is SIDE else None
    assert close is None or close > 0.9


def test_new_categories_and_gaps_at_prediction():
    model = TabularRegressor(n_samples=100).fit(FRAME, Y)
    other = FRAME.copy()
    other.loc[0, "kind"], other.loc[1, "size"] = "never seen", np.nan
    assert np.isfinite(model.predict(other)).all()
    assert np.array_equal(model.predict(other)[2:], model.predict(FRAME)[2:])


def test_columns_are_checked():
    model = TabularRegressor(n_samples=50).fit(FRAME, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME[FRAME.columns[::-1]])
    wrong = FRAME.copy()
    wrong["size"] = "large"
    with pytest.raises(ValueError, match="not a number in column 'size'"):
        model.predict(wrong)
    for categories in (["absent"], [17], 3):
        with pytest.raises(ValueError, match="categories="):
            TabularRegressor(categories=categories).fit(FRAME, Y)
    with pytest.raises(ValueError, match="nothing but gaps"):
        TabularRegressor().fit(np.full((30, 2), np.nan), Y[:30])


def test_dates_may_be_categories():
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=i % 40) for i in range(N)]
    frame = FRAME.assign(day=pd.Series(days, dtype=object))
    # A user may want one indicator for each day.
    named = TabularRegressor(categories=["day"], n_samples=50).fit(frame, Y)
    assert named.expansion_.vectors.shape[1] > 30


def test_errors_name_the_column():
    frame = FRAME[["kind", "size", "noise"]]
    model = TabularRegressor(n_samples=80).fit(frame, Y)
    wrong = frame.astype({"noise": object})
    for value, message in (
        ("much", "not a number in column 'noise'"),
        (np.inf, "infinity in column 'noise'"),
    ):
        wrong.loc[5, "noise"] = value
        for form in (model, as_expansion(model)):
            with pytest.raises(ValueError, match=message):
                form.predict(wrong)


def test_numbers_stay_numbers_beside_text():
    numbers, kinds = X_SMALL[:, 0].tolist(), FRAME["flag"].map({True: "yes", False: "no"}).tolist()
    frame = pd.DataFrame({"x": numbers, "kind": kinds})
    y = np.sin(2.0 * frame["x"]) + (frame["kind"] == "yes")
    wanted = TabularRegressor(n_samples=80).fit(frame, y).predict(frame)
    rows = [list(row) for row in zip(numbers, kinds, strict=True)]
    model = TabularRegressor(n_samples=80).fit(rows, y)
    assert np.array_equal(model.predict(rows), wanted)
    decimals = frame.assign(x=[Decimal(value) for value in numbers])
    assert np.array_equal(TabularRegressor(n_samples=80).fit(decimals, y).predict(decimals), wanted)
    with pytest.raises(ValueError, match="array of text with numbers in column 0"):
        TabularRegressor(n_samples=80).fit(np.array(rows), y)
    assert TabularRegressor(n_samples=80).fit(np.array(rows)[:, 1:], y).predict([["yes"]]).shape == (1,)


def test_named_columns_of_numbers_are_categories():
    kinds = RNG.integers(0, 6, size=N)
    y = np.array([0.0, 5.0, -3.0, 4.0, -6.0, 1.0])[kinds] + 0.1 * RNG.normal(size=N)
    X = np.column_stack([kinds, RNG.normal(size=N)])
    as_category = TabularRegressor(categories=[0], n_samples=100).fit(X, y)
    assert as_category.expansion_.vectors.shape[1] > 6
    by_name = TabularRegressor(categories=["k"], n_samples=100).fit(pd.DataFrame(X, columns=["k", "x"]), y)
    assert np.array_equal(by_name.expansion_.coefficients, as_category.expansion_.coefficients)
    assert as_category.score(X, y) > 0.95


def test_columns_of_gaps_count_for_nothing():
    X, y = make_friedman1(80, random_state=0)
    holes = np.column_stack([X[:, :3], np.full(80, np.nan)])
    with_holes, plain = (TabularRegressor(n_samples=80).fit(rows, y) for rows in (holes, X[:, :3]))
    assert np.array_equal(with_holes.predict(holes), plain.predict(X[:, :3]))
    assert with_holes.feature_importances_[3] == 0.0


@pytest.mark.parametrize(
    "gaps",
    [
        pd.Series([None] * N, dtype=object),
        pd.Series([pd.NA] * N, dtype="string"),
        pd.Categorical([None] * N, categories=["a"]),
    ],
)
def test_columns_without_a_value_take_any_at_prediction(gaps):
    frame = FRAME[["size", "age"]]
    plain = TabularRegressor(n_samples=80).fit(frame, Y)
    model = TabularRegressor(n_samples=80).fit(frame.assign(empty=gaps), Y)
    for value in ("text", 3.5, None):
        assert np.array_equal(model.predict(frame.assign(empty=value)), plain.predict(frame))


def test_whole_numbers_of_text_columns_have_no_point():
    codes = RNG.choice(["1", "2", "x"], size=N)
    y = (codes == "1") + 0.1 * RNG.normal(size=N)
    model = TabularRegressor(n_samples=80).fit(pd.DataFrame({"code": codes}), y)
    wanted = model.predict(pd.DataFrame({"code": ["1", "2"]}))
    # A missing value makes floats of the integers.
    found = model.predict(pd.DataFrame({"code": [1, 2, None]}))
    assert np.array_equal(found[:2], wanted)
    assert abs(wanted[0] - wanted[1]) > 0.5


@pytest.mark.parametrize(
    "labels",
    [
        [None, *SIDE[1:]],
        np.array([np.nan, *SIDE[1:]], dtype=object),
        pd.Series([pd.NA, *SIDE[1:]], dtype="string"),
        pd.Series([None, *SIDE[1:]], dtype="category"),
        pd.Series([pd.NA, *(Y[1:] > 0)], dtype="boolean"),
        np.r_[np.nan, (Y[1:] > 0)],
    ],
)
def test_missing_labels_are_refused(labels):
    with pytest.raises(ValueError, match=r"y contains .* at sample 0: a label must not be missing"):
        TabularClassifier().fit(FRAME, labels)


@pytest.mark.parametrize("kind", ["Int64", "boolean", "Float64", "string", "category"])
def test_labels_of_nullable_types(kind):
    values = SIDE if kind in ("string", "category") else (Y > 0).astype(int)
    model = TabularClassifier(n_samples=80).fit(FRAME, pd.Series(values).astype(kind))
    assert np.array_equal(
        model.predict(FRAME), TabularClassifier(n_samples=80).fit(FRAME, values).predict(FRAME)
    )


def test_nullable_columns_are_those_of_numpy():
    frame = FRAME[["size", "age", "kind", "flag"]]
    nullable = frame.astype({"size": "Float64", "age": "Float64", "kind": "string", "flag": "boolean"})
    wanted, found = (TabularRegressor(n_samples=80).fit(rows, Y) for rows in (frame, nullable))
    assert np.array_equal(found.predict(nullable), wanted.predict(frame))


@pytest.mark.parametrize("dtype", ["Int64", "Float32", "boolean"])
def test_nullable_columns_beside_categories(dtype):
    numbers = RNG.integers(0, 2, N)
    kinds = pd.Categorical(RNG.choice(["x", "y"], N))
    plain = pd.DataFrame({"number": numbers.astype(float), "kind": kinds})
    nullable = pd.DataFrame({"number": pd.array(numbers, dtype="Int64").astype(dtype), "kind": kinds})
    for rows in (plain, nullable):
        rows.loc[:5, "number"] = None
    wanted, found = (TabularRegressor(n_samples=80).fit(rows, Y) for rows in (plain, nullable))
    assert np.array_equal(found.predict(nullable), wanted.predict(plain))


def test_many_classes_and_classes_of_one_sample():
    y = np.r_[np.arange(200), RNG.integers(0, 200, size=200)]
    X = RNG.normal(size=(200, 3))[y] + 0.01 * RNG.normal(size=(400, 3))
    model = TabularClassifier(n_samples=100).fit(X, y)
    assert model.predict_proba(X[:2]).sum(axis=1) == pytest.approx(np.ones(2))
    assert model.score(X, y) > 0.9
    alone = TabularClassifier().fit(X[:8], list("abcdefgh"))
    assert alone.predict(X[:8]).tolist() == list("abcdefgh")


def test_many_classes_do_not_warn():
    # Among the few samples that search most classes have one sample.
    y = np.repeat(np.arange(260), 3)
    X = RNG.normal(size=(260, 3))[y] + 0.01 * RNG.normal(size=(780, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TabularClassifier(n_samples=780).fit(X, y)
    assert model.score(X, y) > 0.9


def test_a_single_class_with_weight():
    # No tree splits on targets that do not vary.
    X = RNG.normal(size=(N, 3))
    labels = np.where(X[:, 0] > 0.0, "a", "b")
    model = TabularClassifier(class_weight={"a": 3.0, "b": 0.0}).fit(X, labels)
    assert set(model.predict(X)) == {"a"}


def test_samples_of_weight_zero_take_no_part():
    weights = np.ones(N)
    weights[::4] = 0.0
    labels = np.where(weights > 0.0, SIDE, "absent")
    model = TabularClassifier(n_samples=80).fit(FRAME, labels, weights)
    without = TabularClassifier(n_samples=80).fit(FRAME[weights > 0.0], SIDE[weights > 0.0])
    assert model.classes_.tolist() == ["high", "low"]
    assert np.array_equal(model.predict_proba(FRAME), without.predict_proba(FRAME))


def test_probabilities_are_calibrated():
    X, y = make_moons(600, noise=0.35, random_state=0)
    model = TabularClassifier(n_samples=200).fit(X[:200], y[:200])
    probabilities = model.predict_proba(X[200:])
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(400))
    assert log_loss(y[200:], probabilities) < 0.4
    assert as_expansion(model).predict_proba(X[200:]) == pytest.approx(probabilities)


@pytest.mark.quick_every(10)
@pytest.mark.parametrize("seed", range(3, 43))
def test_probabilities_do_not_contradict_scores_where_the_signal_is_weak(seed):
    # Leave-one-out outputs without a signal are larger for the other class.
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(60, 3)), random.random(60) < 0.5
    model = TabularClassifier().fit(X, y)
    rows = random.normal(size=(500, 3))
    second = model.predict_proba(rows)[np.argsort(model.decision_function(rows)), 1]
    assert (np.diff(second) >= 0.0).all()
    if np.ptp(second) == 0.0:
        # The shares of the classes.
        assert second[0] == pytest.approx(y.mean(), abs=0.02)
    three = TabularClassifier().fit(X, random.integers(0, 3, 60))
    assert (three.model_.calibration.slopes >= 0.0).all()


def test_class_weights_move_the_boundary():
    X, y = make_moons(200, noise=0.5, random_state=0)
    counts = [
        np.sum(TabularClassifier(class_weight=weight, n_samples=100).fit(X, y).predict(X) == 1)
        for weight in (None, {1: 10.0})
    ]
    assert counts[1] > counts[0]


def test_the_kernel_is_the_one_of_the_least_error():
    X, y = make_friedman1(120, noise=0.1, random_state=0)
    model = TabularRegressor().fit(X, y)
    assert model.kernel_ in _choice.KERNELS
    assert model.loo_error_ < 0.2 * y.var()
    rough = np.sign(X[:, 0] - 0.5) + np.abs(X[:, 1] - 0.5)
    assert TabularRegressor().fit(X, rough).kernel_ != "rbf"


def test_more_samples_than_the_choice_takes(monkeypatch):
    X, y = make_friedman1(300, noise=0.1, random_state=0)
    for name in ("exact", "low rank"):
        monkeypatch.setattr(estimators, "MAX_CHOSEN", 100)
        monkeypatch.setattr(_choice, "MAX_EXACT", 1000 if name == "exact" else 200)
        monkeypatch.setattr(_choice, "N_VECTORS", 150)
        model = TabularRegressor(n_samples=100).fit(X[:250], y[:250])
        assert model.expansion_.n_vectors == (250 if name == "exact" else 150)
        assert model.score(X[250:], y[250:]) > 0.85
    # Nine samples of the third class: the draw may leave them out, the choice may not.
    labels = np.r_[np.arange(241) % 2, np.full(9, 2)]
    assert TabularClassifier(n_samples=100).fit(X[:250], labels).predict_proba(X).shape == (300, 3)


@pytest.mark.parametrize("kind", ["number", "numbers", "two classes", "classes"])
def test_conjugate_gradients_end_near_the_factorization(kind, monkeypatch):
    """With a mean far from 0, weights, and the least number of samples lowered."""
    X, target = make_friedman1(700, noise=2.0, random_state=0)
    y = {
        "number": 1e3 + target,
        "numbers": np.column_stack([1e3 + target, target[::-1] - 50.0]),
        "two classes": np.where(target > 20.0, "much", "little"),
        "classes": np.digitize(target, [10.0, 15.0, 20.0]),
    }[kind]
    classify = "class" in kind
    weights = 1.0 + np.arange(600) % 3
    monkeypatch.setattr(estimators, "MAX_CHOSEN", 300)
    fits, original = [], _choice._iterated

    def watched(*arguments):
        fits.append(original(*arguments))
        return fits[-1]

    monkeypatch.setattr(_choice, "_iterated", watched)
    monkeypatch.setattr(_choice, "FACTOR_COST", 100.0)
    models = []
    for least in (300, 10_000):
        monkeypatch.setattr(_choice, "MIN_ITERATED", least)
        model = TabularClassifier if classify else TabularRegressor
        models.append(model(n_samples=200).fit(X[:600], y[:600], weights))
    iterated, factored = models
    assert [fit is not None for fit in fits] == [True]
    assert (iterated.kernel_, iterated.alpha_) == (factored.kernel_, factored.alpha_)
    assert iterated.expansion_ != factored.expansion_
    assert iterated.expansion_.vectors.dtype == factored.expansion_.vectors.dtype
    values = [model.model_.expansion_.decision_function(model.model_.preparation.rows(X)) for model in models]
    spread = 1.0 if classify else np.asarray(y).reshape(700, -1).std(axis=0)
    assert np.abs(values[0] - values[1]).max() <= 0.01 * np.max(spread)
    assert np.abs(values[0] - values[1]).max() > 0.0
    if not classify:
        assert np.sqrt(np.mean((values[0] - values[1]) ** 2 / spread**2)) < 2.0 * _choice.ITERATED_SHARE


def test_small_penalties_wide_tables_and_slow_iterations_are_factored(monkeypatch):
    X, y = make_friedman1(500, noise=2.0, random_state=0)
    monkeypatch.setattr(estimators, "MAX_CHOSEN", 200)
    expected = TabularRegressor(n_samples=200).fit(X, y)
    monkeypatch.setattr(_choice, "MIN_ITERATED", 300)
    # By the real costs 500 samples of ten columns are factored.
    assert TabularRegressor(n_samples=200).fit(X, y).expansion_ == expected.expansion_
    monkeypatch.setattr(_choice, "FACTOR_COST", 100.0)
    monkeypatch.setattr(_choice, "MAX_ITERATIONS", 1)
    assert TabularRegressor(n_samples=200).fit(X, y).expansion_ == expected.expansion_
    monkeypatch.setattr(_choice, "MAX_ITERATIONS", 40)
    assert TabularRegressor(n_samples=200).fit(X, y).expansion_ != expected.expansion_
    monkeypatch.setattr(_choice, "MIN_ITERATED_ALPHA", 1e6)
    assert TabularRegressor(n_samples=200).fit(X, y).expansion_ == expected.expansion_
    # A target that is its mean has no error to share.
    level = np.full(500, 3.0)
    monkeypatch.setattr(_choice, "MIN_ITERATED_ALPHA", 0.0)
    np.testing.assert_allclose(TabularRegressor(n_samples=200).fit(X, level).predict(X), level)


def test_numbers_beyond_the_training_range_are_those_of_its_ends():
    X, y = make_friedman1(100, random_state=0)
    model = TabularRegressor(n_samples=100).fit(X, y)
    far = X.copy()
    far[:, 3] = 1e6
    ends = X.copy()
    ends[:, 3] = X[:, 3].max()
    assert model.predict(far) == pytest.approx(model.predict(ends))


def test_several_targets():
    X, y = make_friedman1(100, random_state=0)
    both = TabularRegressor(n_samples=100).fit(X, np.column_stack([y, -y]))
    assert both.predict(X).shape == (100, 2)
    assert both.predict(X)[:, 0] == pytest.approx(-both.predict(X)[:, 1], abs=1e-6)


def test_importances_select_features():
    X, y = make_friedman1(150, random_state=0)
    kept = SelectFromModel(TabularRegressor(), max_features=5, threshold=-np.inf).fit(X, y)
    assert kept.get_support().tolist() == [True] * 5 + [False] * 5


def test_the_same_bits_for_any_number_of_threads():
    one, two = (TabularRegressor(n_samples=100, n_jobs=n).fit(FRAME, Y).predict(FRAME) for n in (1, 2))
    assert np.array_equal(one, two)


def test_it_is_least_squares_on_the_scaled_columns():
    X, y = make_friedman1(100, random_state=0)
    model = TabularRegressor().fit(X, y)
    rows = as_expansion(model).preparation.rows(X)
    again = RLSRegressor(model.alpha_, kernel=model.kernel_, gamma=model.gamma_, fit_intercept=True)
    assert again.fit(rows, y).predict(rows) == pytest.approx(model.predict(X), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("kind", [TabularClassifier, TabularRegressor])
def test_a_search_whose_time_is_over_keeps_the_best_so_far(kind):
    y = SIDE if kind is TabularClassifier else Y
    with pytest.warns(ConvergenceWarning, match="max_time=0 ended the search"):
        early = kind(max_time=0).fit(FRAME, y)
    assert (early.stop_, early.kernel_, early.shape_) == ("max_time", "rbf", "standard")
    assert early.score(FRAME, y) > 0.7
    with_time, without = kind(max_time=1e6).fit(FRAME, y), kind().fit(FRAME, y)
    assert with_time.stop_ == without.stop_ == "finished"
    assert np.array_equal(with_time.predict(FRAME), without.predict(FRAME))


def test_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setattr("svmarrow._support.progress._LINE_INTERVAL", 0.0)
    TabularRegressor(verbose=True).fit(FRAME, Y)
    shown = capsys.readouterr().err
    assert "learning scales: 0 %" in shown
    assert "choosing the kernel: 20 %" in shown


def test_constant_targets():
    X, _ = make_friedman1(60, random_state=0)
    assert TabularRegressor().fit(X, np.full(60, 3.7)).predict(X) == pytest.approx(np.full(60, 3.7))


@pytest.mark.parametrize("n", [300, pytest.param(2500, marks=pytest.mark.exhaustive)])
def test_targets_count_alike_whatever_their_units(n):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    Y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1] * X[:, 2], np.full(n, 3.0)])
    Y[:, :2] += 0.1 * random.normal(size=(n, 2))
    w = random.uniform(0.5, 2.0, n)
    units = np.array([2.0**-30, 2.0**20, 1.0])
    one = TabularRegressor(random_state=0).fit(X, Y, sample_weight=w)
    other = TabularRegressor(random_state=0).fit(X, Y * units, sample_weight=w)
    assert (one.kernel_, one.gamma_, one.alpha_, one.shape_) == pytest.approx(
        (other.kernel_, other.gamma_, other.alpha_, other.shape_)
    )
    np.testing.assert_allclose(other.predict(X) / units, one.predict(X), rtol=1e-6, atol=1e-6)
    # The errors of the targets, each in its own units.
    fitted = np.mean(np.average((Y - one.predict(X)) ** 2, axis=0, weights=w))
    assert fitted < one.loo_error_ < 3.0 * fitted
    alone = TabularRegressor(random_state=0).fit(X, Y[:, :1], sample_weight=w)
    assert r2_score(Y[:, 0], one.predict(X)[:, 0]) > 0.9 * alone.score(X, Y[:, :1])


def small_and_full(frame, y):
    """Returns every form of one classifier of a table, by name."""
    full = TabularClassifier(n_samples=100).fit(frame, y)
    small = compress(full, frame, y, n_vectors=80)
    return full, {"expansion": as_expansion(full), "compressed": small}


@pytest.mark.parametrize("text", [True, False], ids=["with text", "numbers"])
def test_every_form_of_a_model_takes_nullable_columns(text):
    frame = FRAME[["size", "kind"] if text else ["size"]].copy()
    frame["count"] = pd.array(RNG.integers(0, 9, N), dtype="Int64")
    frame["member"] = pd.array(RNG.random(N) < 0.5, dtype="boolean")
    frame.loc[::7, "count"] = pd.NA
    frame.loc[::5, "member"] = pd.NA
    plain = frame.astype({"count": "float64", "member": "float64"})
    full, forms = small_and_full(frame, SIDE)
    assert np.array_equal(forms["expansion"].decision_function(frame), full.decision_function(frame))
    for model in forms.values():
        assert np.array_equal(model.decision_function(frame), model.decision_function(plain))
        compiled, rows = model.compiled(), frame.astype(object).to_numpy().tolist()
        assert [compiled.predict(row) for row in rows[:8]] == model.predict(frame[:8]).tolist()


def test_every_form_of_a_model_takes_values_of_text_columns_as_text():
    frame = FRAME[["size"]].assign(mixed=np.array([3, "x", 2.0, True], dtype=object)[np.arange(N) % 4])
    full, forms = small_and_full(frame, SIDE)
    assert np.array_equal(forms["expansion"].decision_function(frame), full.decision_function(frame))
    text = frame.assign(mixed=frame["mixed"].map({3: "3", "x": "x", 2.0: "2", True: "True"}))
    for model in (full, *forms.values()):
        assert np.array_equal(model.decision_function(text), model.decision_function(frame))


def test_every_form_of_a_model_takes_values_of_number_categories_as_numbers():
    frame = pd.DataFrame({"size": FRAME["size"], "code": np.arange(N) % 4})
    full, forms = small_and_full(frame, SIDE)
    text = frame.assign(code=frame["code"].astype(str))
    for model in (full, *forms.values()):
        assert np.array_equal(model.decision_function(text), model.decision_function(frame))
        with pytest.raises(ValueError, match="column 'code'"):
            model.decision_function(frame.assign(code="hello"))


def test_a_pipeline_of_an_ordinal_encoder_with_missing_categories_is_saved(tmp_path):
    frame = FRAME[["size", "kind"]]
    encoder = make_column_transformer((OrdinalEncoder(), ["kind"]), remainder="passthrough")
    pipeline = make_pipeline(encoder, TabularClassifier(categories=[0], n_samples=80)).fit(frame, SIDE)
    svmarrow.save(as_expansion(pipeline), tmp_path / "model")
    again = svmarrow.load(tmp_path / "model")
    assert np.array_equal(again.decision_function(frame), pipeline.decision_function(frame))


@pytest.mark.parametrize("kind", [TabularClassifier, TabularRegressor])
def test_a_fit_to_all_samples_whose_time_is_over_keeps_the_choice(kind, monkeypatch):
    monkeypatch.setattr(estimators, "MAX_CHOSEN", 60)
    original = estimators.final_machine

    def late(choice, X, y, weights, seed, steps):
        steps._deadline = 0.0
        return original(choice, X, y, weights, seed, steps)

    monkeypatch.setattr(estimators, "final_machine", late)
    with pytest.warns(ConvergenceWarning, match="ended the fit to all samples: .* 60 drawn samples"):
        model = kind(n_samples=40, max_time=1e6).fit(X_SMALL, SIDE if kind is TabularClassifier else Y)
    assert (model.stop_, model.expansion_.n_vectors) == ("max_time", 60)


def test_a_fit_to_all_samples_without_time_for_an_exact_one_is_of_low_rank(monkeypatch):
    monkeypatch.setattr(estimators, "MAX_CHOSEN", 60)
    monkeypatch.setattr(_choice, "N_VECTORS", 20)
    original = estimators.final_machine

    def slow(choice, *arguments):
        return original(choice._replace(seconds=1e9), *arguments)

    monkeypatch.setattr(estimators, "final_machine", slow)
    with pytest.warns(ConvergenceWarning, match="ended the exact fit to all samples: .* low rank"):
        model = TabularRegressor(n_samples=40, max_time=1e6).fit(X_SMALL, Y)
    assert (model.stop_, model.expansion_.n_vectors) == ("max_time", 20)


def test_few_samples_are_drawn_if_the_time_is_over(monkeypatch):
    monkeypatch.setattr(estimators, "FEW_CHOSEN", 50)
    with pytest.warns(ConvergenceWarning, match="ended the fit to all samples: .* 50 drawn samples"):
        model = TabularRegressor(max_time=0).fit(X_SMALL, Y)
    assert (model.stop_, model.expansion_.n_vectors) == ("max_time", 50)


@pytest.mark.parametrize("kernel", ["rbf", "matern32"])
def test_the_kernel_may_be_given(kernel):
    model = TabularRegressor(kernel=kernel, n_samples=80).fit(FRAME, Y)
    assert model.kernel_ == kernel
    if kernel == "rbf":
        explained = svmarrow.inspection.shapley_values(model, FRAME[:3])
        assert explained.values.shape[:2] == (3, FRAME.shape[1])  # noqa: PD011 - not of pandas
    else:
        with pytest.raises(ValueError, match="TabularClassifier and TabularRegressor take kernel='rbf'"):
            svmarrow.inspection.shapley_values(model, FRAME[:3])
    with pytest.raises(ValueError, match="kernel='linear' is not allowed"):
        TabularRegressor(kernel="linear").fit(FRAME, Y)


def test_numbers_as_text_are_reported():
    texts = FRAME["size"].astype(str).where(np.arange(N) % 40 > 0, " ")
    with pytest.warns(UserWarning, match=r"numbers as text in column 'size' .*to_numeric"):
        TabularRegressor(n_samples=50).fit(FRAME.assign(size=texts), Y)
    # Named columns and few values are categories, as are names with numbers in them.
    TabularRegressor(categories=["size"], n_samples=50).fit(FRAME.assign(size=texts), Y)
    few = FRAME.assign(size=pd.Series(np.arange(N) % 5).astype(str))
    TabularRegressor(n_samples=50).fit(few, Y)
    names = FRAME.assign(size=[f"id {i}" for i in range(N)])
    TabularRegressor(n_samples=50).fit(names, Y)
