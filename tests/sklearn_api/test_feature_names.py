"""One rule of columns: estimators, their models and what is made of them compare names as scikit-learn does.

The oracle is scikit-learn's own ``SVC`` on the same frame, with its errors and its warning.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import svm as reference_svm
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import svmarrow
from helpers.data import KIND
from helpers.data import STANDARD_IRIS as X
from helpers.estimators import QUICK, name_of, target
from svmarrow import SVC, OneClassSVM, TabularClassifier, as_expansion, compress, quantize

NAMES = ["a", "b", "c", "d"]
FRAME = pd.DataFrame(X, columns=NAMES)
#: Classes that have no expansion, or whose models `compress` does not take without weights of their targets.
NOT_CONVERTED = {"PerceptronTreeClassifier", "ExactCascade", "CalibratedCascade", "LearnedScaler"}
NOT_COMPRESSED = {"QuantileSVR"}


def variants(frame):
    """Returns rows with other columns than those of the fit, by what differs."""
    first = frame.columns[0]
    return {
        "order": frame[frame.columns[::-1]],
        "missing column": frame.drop(columns=first),
        "additional column": frame.assign(more=1.0),
        "renamed column": frame.rename(columns={first: "other"}),
        "column twice": pd.concat([frame[[first]], frame], axis=1),
        "numbers as names": frame.set_axis(range(len(frame.columns)), axis=1),
        "array": frame.to_numpy(),
        "wide array": np.ones((3, len(frame.columns) + 1)),
        "list of short rows": [[1.0] * (len(frame.columns) - 1)],
    }


def answer(model, rows):
    """Returns the error or the warnings of a prediction, without the name of the class."""
    predict = model.predict if hasattr(model, "predict") else model.transform
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            predict(rows)
        except ValueError as error:
            return re.sub(r"(but|is) \w+ (was|is)", r"\1 MODEL \2", str(error))
    return [re.sub(r"but \w+ was", "but MODEL was", str(warning.message)) for warning in raised]


def check_columns(models, frame, expected):
    answers = {
        form: {variant: answer(model, rows) for variant, rows in variants(frame).items()}
        for form, model in models.items()
    }
    assert answers == dict.fromkeys(models, expected)


def saved(model, path):
    svmarrow.save(model, path)
    return svmarrow.load(path)


def forms(model, rows, y, path):
    """Returns everything that can be made of a fitted estimator and predicts, by name."""
    models = {"fitted": model, "loaded": saved(model, path)}
    if name_of(model) in NOT_CONVERTED:
        return models
    converted = as_expansion(model)
    models |= {"model": converted, "loaded model": saved(converted, path), "quantized": quantize(converted)}
    if name_of(model) not in NOT_COMPRESSED:
        models["compressed"] = compress(model, rows, y, n_vectors=8, random_state=0)
        models["loaded compressed"] = saved(models["compressed"], path)
    if hasattr(converted, "calibrated"):
        models["calibrated"] = converted.calibrated(rows, y)
    return models


@pytest.fixture(scope="module")
def reference():
    model = reference_svm.SVC().fit(FRAME, KIND)
    return {variant: answer(model, rows) for variant, rows in variants(FRAME).items()}


def test_the_reference_compares_names_in_their_order(reference):
    assert "must be in the same order" in reference["order"]
    assert "yet now missing:\n- a" in reference["missing column"]
    assert "unseen at fit time:\n- more" in reference["additional column"]
    assert "5 features, but MODEL is expecting 4" in reference["wide array"]
    assert len(reference["array"]) == len(reference["numbers as names"]) == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", QUICK, ids=name_of)
def test_estimators_and_their_models_compare_names_as_scikit_learn(estimator, reference, tmp_path):
    y = target(estimator)
    model = clone(estimator).fit(FRAME, y)
    check_columns(forms(model, FRAME, y, tmp_path / "model"), FRAME, reference)


def test_models_behind_steps_compare_names(reference, tmp_path):
    for machine in (SVC(), OneClassSVM(nu=0.3)):
        pipeline = make_pipeline(StandardScaler(), machine).fit(FRAME, KIND)
        full = as_expansion(pipeline)
        small = compress(pipeline, FRAME, n_vectors=5)
        models = {"full": full, "loaded": saved(full, tmp_path / "model"), "compressed": small}
        check_columns(models, FRAME, reference)


def test_a_tree_of_local_expansions_compares_names(reference):
    model = compress(SVC(C=10.0).fit(FRAME, KIND), FRAME, KIND, max_evaluations=6, random_state=0)
    check_columns({"tree": model}, FRAME, reference)


def test_models_of_column_transformers_are_stricter_than_the_pipeline():
    """`ColumnTransformer` selects columns by their names; a model reads them by their places."""
    table = FRAME.assign(kind=np.where(X[:, 0] > 0.0, "wide", "narrow"))
    steps = ColumnTransformer([("numbers", StandardScaler(), NAMES), ("kinds", OneHotEncoder(), ["kind"])])
    pipeline = make_pipeline(steps, SVC()).fit(table, KIND)
    model, reversed_table = as_expansion(pipeline), table[table.columns[::-1]]
    np.testing.assert_array_equal(pipeline.predict(reversed_table), pipeline.predict(table))
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(reversed_table)
    ordered = reversed_table[model.feature_names_in_]
    np.testing.assert_array_equal(model.predict(ordered), pipeline.predict(table))


def test_tables_with_text_compare_names_as_their_models(tmp_path):
    table = FRAME.assign(kind=np.where(X[:, 0] > 0.0, "wide", "narrow"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TabularClassifier(n_samples=50).fit(table, KIND)
        models = forms(model, table, KIND, tmp_path / "model")
    names = {variant: rows for variant, rows in variants(table).items() if isinstance(rows, pd.DataFrame)}
    for variant, rows in names.items():
        assert len({str(answer(form, rows)) for form in models.values()}) == 1, variant
    assert "must be in the same order" in answer(model, names["order"])
    assert answer(model, table) == []


def test_samples_of_compiled_models_are_read_by_name():
    """A dict has no order; further keys are ignored, so that a record of a database can be passed."""
    fast = SVC().fit(FRAME, KIND).compiled()
    expected = fast.predict(X[0].tolist())
    record = dict(zip(NAMES, X[0].tolist(), strict=True))
    assert fast.predict(dict(reversed(record.items())) | {"more": "text"}) == expected
    assert fast.predict(FRAME[NAMES[::-1]].iloc[0]) == expected
