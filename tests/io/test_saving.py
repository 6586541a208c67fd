"""Whatever can be fitted can be saved: every public class comes back to the last bit."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import svm as peer
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import svmarrow
from helpers.comparison import assert_same, assert_same_model, fitted_attributes
from helpers.data import IRIS, KIND, SIDE, TWO
from helpers.estimators import EXAMPLES, example, machine
from helpers.public import PUBLIC
from svmarrow import (
    SVC,
    CodedClassifier,
    KMPRegressor,
    ReducedSet,
    compression_path,
)
from svmarrow._support.schemas import SCHEMAS, _hint, _is_of, check_types, kinds, schema_of
from svmarrow.multiclass import Code


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_fitted_object_comes_back(name, tmp_path):
    model, X = example(name), EXAMPLES[name][1]
    assert type(model).__name__ == name.split()[0]
    before = fitted_attributes(model)
    svmarrow.save(model, tmp_path / "model")
    assert_same(before, fitted_attributes(model))
    again = svmarrow.load(tmp_path / "model")
    assert_same_model(again, model, X)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_path_is_saved_without_its_training_rows(tmp_path):
    """Thresholds of all sizes are chosen when it is saved, to rounding as each would be alone."""
    X, y = np.tile(IRIS, (9, 1)), np.tile(KIND, 9)
    compression_path(machine(), X=X, y=y).save(tmp_path / "tuned")
    compression_path(machine()).save(tmp_path / "plain")
    again, fresh = svmarrow.load(tmp_path / "tuned"), compression_path(machine(), X=X, y=y)
    assert repr(again) == repr(fresh)
    for size in reversed(fresh.sizes):
        ours, theirs = again[size].expansion, fresh[size].expansion
        np.testing.assert_allclose(ours.intercepts, theirs.intercepts, rtol=0, atol=1e-12)
        assert_same(ours.coefficients, theirs.coefficients)
    assert (tmp_path / "tuned").stat().st_size < (tmp_path / "plain").stat().st_size + X.nbytes / 2


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_pickles_and_clones_too(name, tmp_path):
    model, X = example(name), EXAMPLES[name][1]
    assert_same_model(pickle.loads(pickle.dumps(model)), model, X)
    model.save(tmp_path / "model")
    assert_same_model(pickle.loads(pickle.dumps(svmarrow.load(tmp_path / "model"))), model, X)
    if isinstance(model, BaseEstimator):
        assert_same(clone(svmarrow.load(tmp_path / "model")).get_params(), clone(model).get_params())


#: Functions chosen among all rows; sums that are not kept; one output a pair has no mistakes of its own.
CANNOT_LEARN_ON = {"LowRankRLSRegressor", "LowRankRLSRegressor cg", "PerceptronTreeClassifier of pairs"}


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in EXAMPLES
        if hasattr(PUBLIC[name.split()[0]], "partial_fit") and name not in CANNOT_LEARN_ON
    ],
)
def test_a_loaded_stream_continues_bit_for_bit(name, tmp_path):
    stream, X = example(name), EXAMPLES[name][1]
    stream.save(tmp_path / "model")
    on, off = pickle.loads(pickle.dumps(stream)), svmarrow.load(tmp_path / "model")
    rows = X if not isinstance(X, pd.DataFrame) else X.iloc
    for part in (slice(0, 40), slice(40, 80)):
        y = (
            stream.predict(X)[::-1]
            if not hasattr(stream, "classes_")
            else stream.classes_[KIND % stream.classes_.size]
        )
        on.partial_fit(rows[part], y[part])
        off.partial_fit(rows[part], y[part])
    assert_same_model(off, on, X)


# --- every public class ---


def public_classes():
    """Public classes; files of what Dask has fitted hold the plain classes, see tests/dask."""
    return {thing for thing in PUBLIC.values() if inspect.isclass(thing)}


def not_savable(classes):
    """Classes of what is fitted, or made of it, that cannot be saved."""
    methods = ("fit", "predict", "decision_function", "select")
    fitted = {kind for kind in classes if any(hasattr(kind, method) for method in methods)}
    return {kind for kind in fitted if not hasattr(kind, "save") or schema_of(kind) is None}


def test_every_public_class_can_be_saved_and_has_an_example():
    classes = public_classes()
    assert len(classes) > 30
    assert not_savable(classes) == set()
    fitted = {kind.__name__ for kind in classes if hasattr(kind, "save")}
    assert fitted == {name.split()[0] for name in EXAMPLES}


def test_a_class_that_registers_nothing_is_noticed():
    class Forgotten(SVC):
        pass

    class Alone:
        def select(self):
            pass

    assert not_savable({SVC, Forgotten, Alone, Code}) == {Forgotten, Alone}


# --- what is refused ---


def _mine(X, Z):
    return X @ Z.T


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SVC(kernel=_mine).fit(TWO, SIDE), "kernel=.*Python function.*pickle"),
        (lambda: KMPRegressor(n_vectors=2, kernel=[_mine, "rbf"]).fit(TWO, SIDE), "kernel.*Python function"),
        (lambda: KMPRegressor(n_vectors=2, functions=np.sin).fit(TWO, SIDE), "functions=.*Python function"),
        (lambda: KMPRegressor(n_vectors=2, cv=KFold(3)).fit(TWO, SIDE), "cv=KFold.*pickle"),
        (lambda: ReducedSet(peer.SVC(), 4).fit(TWO, SIDE), r"estimator=SVC.*as_expansion\(model\)"),
        (
            lambda: CodedClassifier(LogisticRegression(), decoder="logistic").fit(IRIS, KIND),
            "estimator=Logistic",
        ),
        (lambda: type("Mine", (SVC,), {})().fit(TWO, SIDE), "type Mine.*as_expansion"),
        (lambda: SVC(C=1.0, gamma=1.0).fit(TWO, SIDE).set_params(n_jobs=0), "n_jobs=0"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(make, message, tmp_path):
    model = make()
    with pytest.raises((TypeError, ValueError), match=message):
        svmarrow.save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_machine_inside_can_be_saved_as_an_expansion(tmp_path):
    model = ReducedSet(peer.SVC(), 4).fit(TWO, SIDE)
    svmarrow.save(svmarrow.as_expansion(model), tmp_path / "model")
    assert_same(svmarrow.load(tmp_path / "model").predict(TWO), model.predict(TWO))


def test_every_attribute_that_a_file_may_set_has_a_type_that_is_checked():
    for schema in SCHEMAS.values():
        names = {*schema.attributes.values(), *(schema.arguments if is_dataclass(schema.kind) else ())}
        for base in schema.kind.__mro__:
            for name in names & inspect.get_annotations(base).keys():
                hint = _hint(base, name, inspect.get_annotations(base)[name], kinds())
                assert _is_of(object(), hint) == (hint is Any), (schema.kind, name)


def test_a_declaration_that_is_not_known_is_refused():
    class Own:
        size: int
        shape: "Unheard"  # noqa: F821, UP037 - the name of no type

        def __init__(self, size, shape):
            self.size, self.shape = size, shape

    check_types(Own(3, None), ["size"], kinds())
    for size in ("3", True, 3.0):
        with pytest.raises(ValueError, match=r"size is .* expected"):
            check_types(Own(size, None), ["size"], kinds())
    with pytest.raises(TypeError, match=r"Own.shape is declared as .*Unheard.*, which cannot be checked"):
        check_types(Own(3, None), ["shape"], kinds())
