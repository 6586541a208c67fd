"""Dates and categories with many values in tables."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.preprocessing import OrdinalEncoder

import svmarrow
from svmarrow import TabularClassifier, TabularRegressor, as_expansion, compress
from svmarrow.tabular._columns import MeanTargets

N = 260
START = pd.Timestamp("2023-01-05")


def table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Samples whose target depends on the season, on weekends and on the hour."""
    rng = np.random.default_rng(seed)
    hours = rng.integers(0, 1000 * 24, n)
    when = pd.Series(START + pd.to_timedelta(hours, unit="h"))
    x = rng.normal(size=n)
    weekend = (when.dt.day_of_week >= 5).to_numpy()
    y = 2.0 * np.sin(2 * np.pi * when.dt.day_of_year / 365.25) + 1.5 * weekend + np.sin(x)
    return pd.DataFrame({"when": when, "x": x}), y.to_numpy()


FRAME, Y = table(N, 0)
GAPS = FRAME.assign(when=FRAME["when"].where(np.arange(N) % 19 > 0))
DAYS = ((GAPS["when"] - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy()


@pytest.fixture(scope="module")
def model() -> TabularRegressor:
    return TabularRegressor(n_samples=120).fit(GAPS, Y)


def test_seasons_and_weekends_are_learned():
    model = TabularRegressor().fit(FRAME, Y)
    new, y = table(400, 1)
    assert model.score(new, y) > 0.9
    assert model.feature_importances_[0] > 0.5
    # Three columns of the date, two of which are cycles with a sine and a cosine, beside the hour's.
    assert model.expansion_.vectors.shape[1] >= 6


def forms() -> dict[str, pd.DataFrame | np.ndarray | list]:
    """The same samples with dates in every form."""
    objects = [None if pd.isna(value) else value.to_pydatetime() for value in GAPS["when"]]
    texts = [None if value is None else value.isoformat(sep=" ") for value in objects]
    utc = GAPS["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    return {
        "datetime64[s]": GAPS.assign(when=GAPS["when"].astype("datetime64[s]")),
        "objects": GAPS.assign(when=pd.Series(objects, dtype=object)),
        "texts": GAPS.assign(when=pd.Series(texts, dtype=object)),
        "time zone": GAPS.assign(when=utc),
        "days": GAPS.assign(when=DAYS),
        "array": np.array([[a, b] for a, b in zip(objects, GAPS["x"], strict=True)], dtype=object),
        "lists": [[a, b] for a, b in zip(texts, GAPS["x"], strict=True)],
    }


@pytest.mark.parametrize("name", list(forms()))
def test_dates_in_every_form(model, name):
    expected, X = model.predict(GAPS), forms()[name]
    for form in (model, as_expansion(model)):
        if name in ("array", "lists"):
            form = svmarrow.models.ExpansionRegressor(
                as_expansion(model).expansion, preparation=as_expansion(model).preparation
            )
        assert np.array_equal(form.predict(X), expected)
    if name not in ("time zone", "days"):
        fitted = TabularRegressor(n_samples=120).fit(X, Y)
        np.testing.assert_array_equal(fitted.predict(X), expected)


def test_frames_of_polars(model):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "when": [None if pd.isna(value) else value.to_pydatetime() for value in GAPS["when"]],
            "x": GAPS["x"].to_list(),
        }
    )
    fitted = TabularRegressor(n_samples=120).fit(frame, Y)
    for form in (model, fitted, as_expansion(model)):
        np.testing.assert_array_equal(form.predict(frame), model.predict(GAPS))
        with pytest.raises(TypeError, match=r"dates .* in column 'x', which the model takes as numbers"):
            form.predict(frame.with_columns(x=pl.col("when")))


def test_days_of_whole_dates():
    dates = FRAME.assign(when=FRAME["when"].dt.date)
    whole = FRAME.assign(when=FRAME["when"].dt.normalize())
    fitted = TabularRegressor(n_samples=120).fit(dates, Y)
    assert np.array_equal(fitted.predict(dates), TabularRegressor(n_samples=120).fit(whole, Y).predict(whole))
    # No cycle of the day.
    with_hours = TabularRegressor(n_samples=120).fit(FRAME, Y)
    assert fitted.expansion_.vectors.shape[1] < with_hours.expansion_.vectors.shape[1]


def test_a_frame_of_dates_alone():
    only = FRAME[["when"]]
    fitted = TabularRegressor(n_samples=120).fit(only, Y)
    assert np.array_equal(as_expansion(fitted).predict(only), fitted.predict(only))
    constant = FRAME.assign(when=START)
    assert np.isfinite(TabularRegressor(n_samples=120).fit(constant, Y).predict(FRAME)).all()


def test_what_is_no_date_is_refused_by_name(model):
    for value in ("yesterday", True, "2026-13-01", np.inf):
        wrong = GAPS.astype({"when": object})
        wrong.loc[3, "when"] = value
        for form in (model, as_expansion(model)):
            with pytest.raises(ValueError, match="in column 'when'"):
                form.predict(wrong)
    for values in ([dt.time(3)] * N, [START] * (N - 1) + ["x"], [START] * (N - 1) + [3.0]):
        with pytest.raises(TypeError, match=r"in column 'when': .* name the column in categories"):
            TabularRegressor().fit(FRAME.assign(when=pd.Series(values, dtype=object)), Y)
    with pytest.raises(TypeError, match=r"dates or times \(timedelta64.*\) in column 'when'"):
        TabularRegressor().fit(FRAME.assign(when=FRAME["when"] - START), Y)
    # Models without a column of dates refuse them.
    plain = TabularRegressor(n_samples=120).fit(FRAME[["x"]], Y)
    for form in (plain, as_expansion(plain)):
        with pytest.raises(TypeError, match=r"dates or times|feature names"):
            form.predict(FRAME[["when"]].rename(columns={"when": "x"}))


def test_files_compiled_and_compressed_models_take_dates(model, tmp_path):
    expected = model.predict(GAPS)
    for form in (model, as_expansion(model)):
        svmarrow.save(form, tmp_path / "model")
        assert np.array_equal(svmarrow.load(tmp_path / "model").predict(GAPS), expected)
    fast = model.compiled()
    samples = [{"when": None if pd.isna(a) else a, "x": b} for a, b in GAPS.itertuples(index=False)]
    np.testing.assert_allclose([fast.predict(row) for row in samples], expected, rtol=0, atol=1e-9)
    texts = {"when": "2024-05-05 06:00", "x": 0.1}
    assert fast.predict(texts) == fast.predict({**texts, "when": pd.Timestamp("2024-05-05 06:00")})
    small = compress(model, GAPS, Y, n_vectors=80)
    assert small.score(GAPS, Y) > 0.8


def test_importances_and_shapley_values_are_those_of_the_columns(model):
    explained = svmarrow.inspection.shapley_values(model, GAPS[:5])
    shares = explained.values  # noqa: PD011 - not of pandas
    assert shares.shape[:2] == (5, 2)
    sums = shares.sum(axis=1).reshape(5) + np.ravel(explained.base_values)
    np.testing.assert_allclose(sums, model.predict(GAPS[:5]), atol=1e-6)


def test_onnx_takes_days(model, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    rows = np.column_stack([DAYS, GAPS["x"]])
    for dtype, atol in (("float64", 1e-9), ("float32", 0.05)):
        path = tmp_path / f"{dtype}.onnx"
        svmarrow.export.to_onnx(model, path, dtype=dtype)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        (outputs,) = session.run(None, {session.get_inputs()[0].name: rows.astype(dtype)})
        np.testing.assert_allclose(outputs.ravel(), model.predict(GAPS), rtol=0, atol=atol)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a C compiler with Unix's options")
def test_c_takes_days(model, tmp_path):
    rows = np.column_stack([DAYS, GAPS["x"]])
    svmarrow.export.to_c(model, tmp_path / "model.h", dtype="float64", prefix="p")
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "model.h"\nint main(void) {\n'
        "    double x[2], out[1];\n"
        '    while (scanf("%lf %lf", x, x + 1) == 2) {\n'
        '        p_outputs(x, out);\n        printf("%.17g\\n", out[0]);\n    }\n    return 0;\n}\n'
    )
    command = ["cc", "-std=c99", "-Wall", "-Werror", "-O1", "-o", "program", "main.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    lines = "\n".join(f"{day!r} {x!r}" for day, x in rows.tolist())
    run = subprocess.run([tmp_path / "program"], input=lines, text=True, capture_output=True, check=True)
    np.testing.assert_allclose(
        np.array(run.stdout.split(), dtype=float), model.predict(GAPS), rtol=0, atol=1e-9
    )


# --- categories with many values ---


def shops(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Samples whose target depends on which of 150 shops they are of."""
    rng = np.random.default_rng(seed)
    effects = np.random.default_rng(7).normal(size=150)
    shop, x = rng.integers(0, 150, n), rng.normal(size=n)
    y = effects[shop] * (1.0 + 0.5 * np.tanh(x)) + 0.2 * rng.normal(size=n)
    return pd.DataFrame({"shop": [f"shop {i}" for i in shop], "x": x}), y


def test_categories_with_many_values_are_learned():
    frame, y = shops(1000, 0)
    new, y_new = shops(500, 1)
    fitted = TabularRegressor().fit(frame, y)
    trees = HistGradientBoostingRegressor(random_state=0, categorical_features="from_dtype")
    kinds = pd.CategoricalDtype([f"shop {i}" for i in range(150)])
    trees.fit(frame.astype({"shop": kinds}), y)
    score = fitted.score(new, y_new)
    assert score > 0.75
    assert score > trees.score(new.astype({"shop": kinds}), y_new) - 0.05
    # A shop that nobody knows has the mean of all.
    unknown = fitted.predict(new.assign(shop="another"))
    assert np.abs(unknown.mean() - y.mean()) < 0.3
    assert np.array_equal(as_expansion(fitted).predict(new), fitted.predict(new))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mean_targets_of_classes(n_classes):
    frame, y = shops(600, 0)
    labels = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    new, y_new = shops(400, 1)
    expected = np.digitize(y_new, np.quantile(y, np.arange(1, n_classes) / n_classes))
    fitted = TabularClassifier(n_samples=300).fit(frame, labels)
    assert fitted.score(new, expected) > {2: 0.8, 3: 0.65}[n_classes]


def test_categories_without_effect_are_not_learned():
    """Columns of a target's own means would look good on training samples alone."""
    frame, _ = shops(600, 0)
    y = np.random.default_rng(3).normal(size=600)
    fitted = TabularRegressor(n_samples=300).fit(frame, y)
    new, _ = shops(400, 1)
    assert fitted.predict(new).std() < 0.4


@pytest.mark.parametrize("unit", [1e-100, 1e-3, 1e6])
def test_mean_targets_do_not_depend_on_the_unit_of_the_target(unit):
    frame, y = shops(300, 0)
    expected = TabularRegressor(n_samples=120).fit(frame, y).predict(frame)
    scaled = TabularRegressor(n_samples=120).fit(frame, unit * y).predict(frame) / unit
    np.testing.assert_allclose(scaled, expected, atol=1e-6)


def test_mean_targets_are_shrunk_weighted_means():
    rng = np.random.default_rng(0)
    column = rng.choice(["a", "b", "c", None], 60).astype(object)[:, np.newaxis]
    y, weights = rng.normal(size=(60, 1)), rng.integers(1, 4, 60).astype(float)
    encode = MeanTargets(weights).fit(column, y)
    repeated = np.repeat(np.arange(60), weights.astype(int))
    table, other = encode.tables_[0], MeanTargets().fit(column[repeated], y[repeated]).tables_[0]
    assert table.categories.tolist() == ["a", "b", "c"]
    assert table.numbers.shape == (4, 1)
    np.testing.assert_allclose(table.unknown, np.average(y, axis=0, weights=weights))
    means = [
        np.average(y[here], axis=0, weights=weights[here])
        for here in (column[:, 0] == value for value in ["a", "b", "c"])
    ]
    low, high = np.minimum(means, table.unknown), np.maximum(means, table.unknown)
    assert ((low <= table.numbers[:3]) & (table.numbers[:3] <= high)).all()
    np.testing.assert_allclose(other.unknown, table.unknown)


def test_mean_targets_approach_the_means_of_many_samples():
    labels = np.tile(np.array(["a", "b"], dtype=object), 500)[:, np.newaxis]
    y = np.where(labels == "a", 1.0, -1.0) + 0.1 * np.random.default_rng(0).normal(size=(1000, 1))
    table = MeanTargets().fit(labels, y).tables_[0]
    np.testing.assert_allclose(table.numbers[:2, 0], [y[::2].mean(), y[1::2].mean()], atol=1e-3)
    assert table.unknown[0] == pytest.approx(y.mean())


# --- a frame with every kind of column, from the fit to a new frame a month later ---

CITIES = np.random.default_rng(5).normal(size=45)


def customers(n: int, seed: int, start: str = "2025-01-01") -> tuple[pd.DataFrame, np.ndarray]:
    """Customers with gaps in every kind of column, and whether each of them stays."""
    rng = np.random.default_rng(seed)
    city = rng.integers(0, 45, n)
    frame = pd.DataFrame(
        {
            "signup": pd.Timestamp(start) + pd.to_timedelta(rng.integers(0, 700 * 24, n), unit="h"),
            "age": pd.array(rng.integers(18, 80, n), dtype="Int64"),
            "income": rng.lognormal(10, 0.5, n),
            "active": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "plan": pd.Categorical(rng.choice(["basic", "plus", "pro"], n)),
            "city": [f"city {i}" for i in city],
            "code": rng.integers(1, 6, n),
        }
    )
    score = 2.0 * (frame["plan"] == "pro") + frame["active"].to_numpy(dtype=float) + CITIES[city]
    y = np.where(score + 0.4 * rng.normal(size=n) > score.mean(), "stays", "leaves")
    for first, (name, gap) in enumerate(
        {"age": pd.NA, "active": pd.NA, "income": np.nan, "signup": pd.NaT, "city": None}.items()
    ):
        frame.loc[first :: 9 + 2 * first, name] = gap
    return frame, y


@pytest.fixture(scope="module")
def service():
    frame, y = customers(600, 0)
    return TabularClassifier(categories=["code"], n_samples=400).fit(frame, y)


def test_a_new_frame_a_month_later(service):
    new, y = customers(300, 1, "2025-02-01")
    assert service.score(new, y) > 0.75
    full, expected = as_expansion(service), service.predict_proba(new)
    assert np.array_equal(full.predict_proba(new), expected)
    types = new.astype({"age": "float64", "active": object, "plan": str, "code": float})
    types["signup"] = new["signup"].astype(str).where(new["signup"].notna(), None)
    for form in (service, full):
        np.testing.assert_array_equal(form.predict_proba(types), expected)
    for form in (service, full):
        with pytest.raises(ValueError, match="must be in the same order"):
            form.predict_proba(new[new.columns[::-1]])
    unknown = new.assign(city="nowhere", plan="ultra", code=77)
    assert np.isfinite(service.predict_proba(unknown)).all()
    with pytest.raises(ValueError, match="not a number in column 'income'"):
        service.predict(new.assign(income="much"))
    with pytest.raises(ValueError, match="columns of text"):
        svmarrow.export.to_onnx(service, "model.onnx")
    with pytest.raises(ValueError, match="encode texts as numbers"):
        svmarrow.export.to_c(service)


def test_the_encoded_frame_is_exported(service, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    frame, y = customers(600, 0)
    new, _ = customers(300, 1, "2025-02-01")
    names = ["plan", "city"]
    encoder = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=np.nan
    ).fit(frame[names])

    def numbers(rows: pd.DataFrame) -> pd.DataFrame:
        days = (rows["signup"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
        rows = rows.assign(signup=days)
        rows[names] = encoder.transform(rows[names])
        return rows.astype(float)

    # Columns of numbers: the same model but for the cycles of the date.
    model = TabularClassifier(categories=[*names, "code"], n_samples=400).fit(numbers(frame), y)
    rows = numbers(new)
    same = model.predict(rows) == service.predict(new)
    assert same.mean() > 0.8
    path = tmp_path / "model.onnx"
    svmarrow.export.to_onnx(model, path, dtype="float64")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    labels, _, probabilities = session.run(None, {session.get_inputs()[0].name: rows.to_numpy()})
    assert (labels == model.predict(rows)).all()
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=1e-9)
    rows.iloc[:5, rows.columns.get_loc("city")] = -1.0
    (labels, _, probabilities) = session.run(None, {session.get_inputs()[0].name: rows.to_numpy()})
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=1e-9)
