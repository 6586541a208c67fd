"""A refit keeps nothing of the fit before: it equals the fit of a fresh estimator, and so do its files.

The chains of fits change what a fit can depend on: classes, columns, their names, precision, layout, weights,
and parameters that decide which attributes there are.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

import svmarrow
from helpers.comparison import assert_same, fitted_attributes, predictions, state_of
from helpers.data import KIND, TARGET
from helpers.data import STANDARD_IRIS as X
from helpers.estimators import EXAMPLES, EXPANSION_MODELS, QUICK, name_of, target
from helpers.fingerprints import digest
from svmarrow import (
    SVC,
    SVCCV,
    SVRCV,
    CodedClassifier,
    KMPClassifier,
    KMPRegressor,
    LowRankSVC,
    NuSVC,
    OneClassSVM,
    PerceptronTreeClassifier,
    ReducedSet,
    RLSClassifier,
    RLSRegressor,
)
from svmarrow._support.parameters import fitted_attribute_names, snapshot
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.least_squares import LinearRLSRegressor, LowRankRLSClassifier
from svmarrow.online import KernelPerceptron
from svmarrow.patch import ridge, svm
from svmarrow.reduced_set import GradientSettings
from svmarrow.svm import QuantileSVR

pytestmark = pytest.mark.filterwarnings("ignore")

#: Rows in another order, so that every part has all classes.
ORDER = np.random.default_rng(0).permutation(150)
FIRST, SECOND = ORDER[:90], ORDER[60:]
#: Attributes that hold seconds, which no two fits have in common.
SECONDS = {"_fit_times", "_score_times"}


def seeded(estimator):
    made = clone(estimator)
    return made.set_params(random_state=0) if "random_state" in made.get_params() else made


def labels(estimator, rows):
    return target(estimator)[rows]


#: What the rows of a fit may be: (X, y, weights) for an estimator.
FORMS = {
    "rows": lambda e: (X[FIRST], labels(e, FIRST)),
    "other rows": lambda e: (X[SECOND], labels(e, SECOND)),
    "two classes": lambda e: (
        X[FIRST],
        np.where(labels(e, FIRST) > 1, "yes", "no") if _sorts(e) else TARGET[FIRST],
    ),
    "more columns": lambda e: (np.hstack([X, X[:, :3] ** 2])[FIRST], labels(e, FIRST)),
    "one column": lambda e: (X[FIRST][:, 2:3], labels(e, FIRST)),
    "single precision": lambda e: (X[FIRST].astype(np.float32), labels(e, FIRST)),
    "bytes": lambda e: (np.round(20 * X[FIRST] + 90).astype(np.uint8), labels(e, FIRST)),
    "sparse": lambda e: (sparse.csr_array(X[FIRST] * (X[FIRST] > 0.2)), labels(e, FIRST)),
    "names": lambda e: (pd.DataFrame(X[FIRST], columns=list("abcd")), labels(e, FIRST)),
    "weights": lambda e: (X[FIRST], labels(e, FIRST), np.arange(90.0) % 4),
    "targets": lambda _: (X[FIRST], np.column_stack([TARGET, X[:, 1]])[FIRST]),
}


def _sorts(estimator):
    return target(estimator) is KIND


def forms(estimator):
    """The forms that an estimator takes."""
    tags = get_tags(estimator)
    weighs = "sample_weight" in type(estimator).fit.__annotations__
    left_out = {
        "sparse": not tags.input_tags.sparse,
        "weights": not weighs,
        "targets": not tags.target_tags.multi_output,
    }
    return [name for name in FORMS if not left_out.get(name, False)]


def assert_equal(ours, theirs, where):
    """The same to the last bit, but for seconds."""
    assert ours.keys() == theirs.keys(), where
    for name in ours.keys() - SECONDS:
        try:
            assert digest(ours[name]) == digest(theirs[name]), f"{where}: {name}"
        except TypeError:
            assert_same(ours[name], theirs[name], f"{where}: {name}")


def undeclared(model):
    """Attributes that a fit has set and no class declares: they would survive a refit."""
    return vars(model).keys() - vars(clone(model)).keys() - fitted_attribute_names(type(model))


def assert_fresh(model, fresh, rows, where):
    """The model is the fresh one: what it has, by name and by value, and what it says."""
    assert vars(model).keys() == vars(fresh).keys(), where
    assert undeclared(model) == set(), where
    assert_equal(state_of(model), state_of(fresh), where)
    assert_equal(fitted_attributes(model), fitted_attributes(fresh), where)
    assert_equal(predictions(model, rows), predictions(fresh, rows), where)


def assert_loads(model, rows, path, where):
    model.save(path)
    again = svmarrow.load(path)
    assert_same(predictions(again, rows), predictions(model, rows), where)


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("estimator", QUICK, ids=name_of)
def test_a_refit_on_rows_of_another_form(estimator, tmp_path):
    model, there = seeded(estimator), forms(estimator)
    fresh = {}
    for form in there:
        fresh[form] = seeded(estimator)
        fresh[form].fit(*FORMS[form](estimator))
    for form in (there[0], *(each for other in there[1:] for each in (other, there[0])), *there[::2]):
        given = FORMS[form](estimator)
        model.fit(*given)
        assert_fresh(model, fresh[form], given[0], form)
        assert_loads(model, given[0], tmp_path / "model", form)


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("estimator", QUICK, ids=name_of)
def test_ten_fits_take_the_memory_of_one(estimator):
    model = seeded(estimator)
    sizes = []
    for _ in range(10):
        model.fit(X[FIRST], labels(model, FIRST))
        sizes.append(len(pickle.dumps(model)))
    assert len(set(sizes)) == 1, sizes


GRAM = X[FIRST] @ X[FIRST].T


def linear(A, B):
    return A @ B.T


def squares(X):
    return np.asarray(X)[:, :2] ** 2


#: Chains of parameters that change which attributes a fit leaves.
SETTINGS = {
    "SVC": (
        SVC(),
        [{}, {"kernel": "linear"}, {"kernel": "precomputed"}, {"fit_intercept": False}, {"kernel": linear}],
    ),
    "SVC code": (SVC(), [{}, {"multi_class": "ovr"}, {"loss": "squared_hinge"}, {"max_iter": 1}]),
    "NuSVC": (NuSVC(nu=0.2), [{}, {"multi_class": "ovr"}, {"kernel": "linear"}]),
    "OneClassSVM": (OneClassSVM(), [{}, {"kernel": "linear"}, {"kernel": "precomputed"}]),
    "SVCCV": (
        SVCCV(Cs=2, gammas=2, cv=3),
        [{}, {"refit": False}, {"kernel": "linear"}, {"search": "racing", "multi_class": "ovr"}],
    ),
    "SVRCV": (SVRCV(Cs=2, gammas=2, cv=3), [{}, {"refit": False}, {"kernel": "linear"}]),
    "LowRankSVC": (
        LowRankSVC(8, random_state=0),
        [{}, {"selection": "greedy_trace"}, {"selection": X[:5]}, {"multi_class": "ovr"}],
    ),
    "RLSClassifier": (
        RLSClassifier(),
        [{}, {"leave_one_out": False}, {"alphas": (0.1, 1.0)}, {"solver": "cg", "leave_one_out": False}],
    ),
    "RLSRegressor": (
        RLSRegressor(),
        [{}, {"fit_intercept": True}, {"alphas": (0.1, 1.0)}, {"solver": "cg", "leave_one_out": False}],
    ),
    "LinearRLSRegressor": (
        LinearRLSRegressor(),
        [{"leave_one_out": True}, {"solver": "cg"}, {"solver": "dual"}, {"solver": "primal"}],
    ),
    "LowRankRLSClassifier": (
        LowRankRLSClassifier(8, random_state=0),
        [
            {"leave_one_out": True},
            {"selection": "pivoted_cholesky"},
            {"selection": X[:5]},
            {"method": "nystrom", "selection": "greedy_trace"},
            {"method": "subset"},
        ],
    ),
    "KMPClassifier": (
        KMPClassifier(n_vectors=4, random_state=0),
        [
            {},
            {"kernel": ["rbf", "linear"]},
            {"early_stopping": True},
            {"loss": "logistic"},
            {"functions": squares},
        ],
    ),
    "KMPRegressor": (
        KMPRegressor(n_vectors=4, random_state=0),
        [{}, {"early_stopping": True, "cv": 3}, {"fit_intercept": "candidate"}, {"kernel": "precomputed"}],
    ),
    "KernelPerceptron": (KernelPerceptron(), [{}, {"prediction": "averaged"}, {"prediction": "voted"}]),
    "PerceptronTreeClassifier": (
        PerceptronTreeClassifier(budget=6, random_state=0),
        [{}, {"prediction": "averaged"}, {"split": "zpq", "n_epochs": 2}],
    ),
    "CodedClassifier": (
        CodedClassifier(SVC(), random_state=0),
        [
            {},
            {"code": "ovo", "shared": False},
            {"estimator": RLSClassifier(), "code": "ovr"},
            {"estimator": KMPClassifier(n_vectors=3, random_state=0), "code": "ovr"},
        ],
    ),
    "ReducedSet": (
        ReducedSet(SVC(), 4, random_state=0),
        [{}, {"method": "gradient", "settings": GradientSettings(steps=5)}, {"n_vectors": 1000}],
    ),
    "ExactCascade": (
        ExactCascade(SVC(gamma=0.1)),
        [{}, {"stages": [2, 4]}, {"estimator__C": 1e-9}, {"n_vectors": 3}],
    ),
    "CalibratedCascade": (
        CalibratedCascade(SVC(), 4, random_state=0),
        [{}, {"epsilon": 0.4, "validation_fraction": 0.5}, {"n_vectors": [2, 6], "epsilon": 0.4}],
    ),
    "patched SVC": (
        svm.SVC(random_state=0),
        [{}, {"probability": True}, {"kernel": linear}, {"kernel": "precomputed"}, {"C": np.float64(2)}],
    ),
    "patched KernelRidge": (ridge.KernelRidge(), [{}, {"kernel": "cosine"}, {"kernel": "rbf", "gamma": 0.3}]),
}


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_refit_with_parameters_that_leave_other_attributes(name, tmp_path):
    estimator, settings = SETTINGS[name]

    def fit(model, parameters):
        model.set_params(**clone(estimator).set_params(**parameters).get_params(deep=False))
        kernel = getattr(model, "kernel", "")
        rows = GRAM if isinstance(kernel, str) and kernel == "precomputed" else X[FIRST]
        model.fit(rows, labels(model, FIRST))
        return rows

    for first in settings:
        for second in settings:
            model, fresh = clone(estimator), clone(estimator)
            fit(model, first)
            rows = fit(model, second)
            fit(fresh, second)
            assert vars(model).keys() == vars(fresh).keys(), (first, second)
            # Without a refit there is no model; scikit-learn's own is the same up to the threads of BLAS.
            is_ours = getattr(model, "_is_ours", lambda: True)
            if "refit" not in second and is_ours():
                assert_fresh(model, fresh, rows, f"{first} then {second}")


@pytest.mark.parametrize(
    "estimator",
    [SVC(), NuSVC(nu=0.2), svmarrow.SVR(), svmarrow.NuSVR(), QuantileSVR([0.1, 0.5]), OneClassSVM()],
)
def test_a_warm_start_leaves_the_attributes_of_the_last_fit_alone(estimator, tmp_path):
    model, there = clone(estimator).set_params(warm_start=True), forms(estimator)
    for form in (*there, *there[::-2]):
        given = FORMS[form](estimator)
        fresh = clone(model).fit(*given)
        assert vars(model.fit(*given)).keys() == vars(fresh).keys(), form
        assert model.n_features_in_ == given[0].shape[1]
        assert_loads(model, given[0], tmp_path / "model", form)
        assert len(pickle.dumps(model.fit(*given))) == len(pickle.dumps(model.fit(*given)))


def test_a_warm_start_of_a_code_leaves_the_last_model_as_it_was():
    model = CodedClassifier(SVC(warm_start=True, max_iter=5), code="ovo").fit(X[FIRST], KIND[FIRST])
    before = snapshot(model)
    machine = copy.deepcopy(state_of(before._machines.machine))
    model.set_params(estimator__C=100.0).fit(X[SECOND], KIND[SECOND])
    assert_same(state_of(before._machines.machine), machine)


# --- what an earlier model is made of ---

PIECES = {
    name: model
    for name, model in ((type(each).__name__, each) for each in QUICK)
    if hasattr(model, "partial_fit")
}


@pytest.mark.parametrize("estimator", QUICK, ids=name_of)
def test_a_refit_changes_no_part_of_the_earlier_model_in_place(estimator):
    model = seeded(estimator).fit(X[FIRST], labels(estimator, FIRST))
    earlier, kept = snapshot(model), copy.deepcopy(state_of(model))
    model.fit(X[SECOND], labels(estimator, SECOND))
    assert_same(state_of(earlier), kept)


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_changes_no_part_of_the_earlier_model_in_place(name):
    model, classes = seeded(PIECES[name]), {} if not _sorts(PIECES[name]) else {"classes": [0, 1, 2]}
    model.partial_fit(X[FIRST], labels(model, FIRST), **classes)
    earlier, kept = snapshot(model), copy.deepcopy(state_of(model))
    said = predictions(earlier, X)
    model.partial_fit(X[SECOND], labels(model, SECOND))
    assert_same(state_of(earlier), kept)
    assert_same(predictions(earlier, X), said)


def test_every_attribute_of_a_fit_is_declared():
    found = {}
    for name in EXAMPLES:
        model = EXAMPLES[name][0]()
        if (
            isinstance(model, BaseEstimator)
            and type(model).__name__ not in EXPANSION_MODELS
            and undeclared(model)
        ):
            found[name] = undeclared(model)
    assert found == {}


def test_what_a_subclass_of_the_user_keeps_survives_a_refit():
    class Scaled(SVC):
        def fit(self, X, y):
            self.scale_ = np.abs(X).max()
            self.fits = getattr(self, "fits", 0) + 1
            return super().fit(X / self.scale_, y)

        def predict(self, X):
            return super().predict(X / self.scale_)

    model = Scaled().fit(X[FIRST], KIND[FIRST]).fit(7.0 * X[SECOND], KIND[SECOND])
    assert model.fits == 2
    assert model.scale_ == 7.0 * np.abs(X[SECOND]).max()
    plain = SVC().fit(X[SECOND] / np.abs(X[SECOND]).max(), KIND[SECOND])
    assert (model.predict(7.0 * X) == plain.predict(X / np.abs(X[SECOND]).max())).all()
