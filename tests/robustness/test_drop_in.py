"""What a program sees of the replacements: scikit-learn's attributes, tags, warnings and results, no more."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import svm as originals
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.kernel_ridge import KernelRidge as OriginalKernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils import get_tags

import svmarrow
from helpers.programs import python
from svmarrow import RLSRegressor
from svmarrow.exceptions import FallbackWarning
from svmarrow.patch import replacement, ridge, svm

X, Y = load_iris(return_X_y=True)
KINDS = [svm.SVC, svm.NuSVC, svm.SVR, svm.NuSVR, svm.OneClassSVM, ridge.KernelRidge]
MACHINES = KINDS[:5]
#: All that a fitted replacement has and scikit-learn's class has not.
ALLOWED = {kind: {"certificate_", "expansion_"} for kind in MACHINES} | {ridge.KernelRidge: {"expansion_"}}
#: What compression asks for: whether the samples or classes of a fit were weighted.
PRIVATE = {"_weighted"}

by_name = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
machine_by_name = pytest.mark.parametrize("kind", MACHINES, ids=lambda kind: kind.__name__)


@pytest.fixture(autouse=True)
def no_reports():
    """Reasons that no other test has used up."""
    before = set(replacement._REPORTED)
    replacement._REPORTED.clear()
    yield
    replacement._REPORTED.update(before)


def linear(A, B):
    return A @ B.T


def gaussian(A, B):
    return np.exp(-0.1 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def public(names):
    return {name for name in names if name[0] != "_"}


def available(thing):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return {name for name in public(dir(thing)) if hasattr(thing, name)}


# --- a kernel that is a function: the rows are rows, whatever their number ---


@machine_by_name
@pytest.mark.parametrize("rows", [40, 6], ids=["long", "square"])
def test_functions_are_cross_validated_by_rows(kind, rows):
    A, y = make_classification(rows, 6, n_informative=4, random_state=2)
    target = A[:, 0] + A[:, 1] if "SVR" in kind.__name__ else y
    options = {"nu": 0.3} if "Nu" in kind.__name__ or kind is svm.OneClassSVM else {}
    scoring = (lambda model, Z, _: float(model.decision_function(Z).sum())) if kind is MACHINES[4] else None
    found, expected = (
        cross_val_score(
            one(kernel=gaussian, tol=1e-5, **options), A, target, cv=3, scoring=scoring, error_score="raise"
        )
        for one in (kind, kind._original)
    )
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_functions_in_searches():
    search = GridSearchCV(svm.SVC(), {"kernel": [linear, "linear"]}, cv=3, error_score="raise").fit(X, Y)
    first, second = search.cv_results_["mean_test_score"]
    assert first == pytest.approx(second, abs=0.03)


@by_name
@pytest.mark.parametrize(
    "kernel", ["linear", "rbf", "precomputed", linear], ids=lambda of: getattr(of, "__name__", f"{of} kernel")
)
def test_tags_are_the_originals(kind, kernel):
    assert get_tags(kind(kernel=kernel)) == get_tags(kind._original(kernel=kernel))


def test_svmarrows_own_machines_take_rows_for_a_function():
    assert not get_tags(svmarrow.SVC(kernel=linear)).input_tags.pairwise
    predicted = cross_val_predict(svmarrow.SVC(kernel=linear), X, Y, cv=3)
    assert (predicted == Y).mean() > 0.9


# --- what can be seen of a class and its objects ---


@by_name
def test_classes_and_objects_have_the_originals_names(kind):
    original = kind._original
    assert public(dir(kind)) == public(dir(original))
    assert available(kind()) == available(original())
    ours, theirs = kind().fit(X, Y), original().fit(X, Y)
    assert available(ours) - available(theirs) == ALLOWED[kind]
    assert available(theirs) <= available(ours)
    assert vars(ours).keys() - vars(theirs).keys() == ALLOWED[kind] | PRIVATE
    assert vars(theirs).keys() <= vars(ours).keys()
    assert kind().get_params() == original().get_params()
    assert not hasattr(ours, "n_jobs")


@by_name
def test_methods_have_the_originals_signatures_and_documentation(kind):
    for name in public(dir(kind)):
        ours, theirs = getattr(kind, name), getattr(kind._original, name)
        if callable(ours) and not name.startswith("set_"):
            assert inspect.signature(ours) == inspect.signature(theirs), name
            assert inspect.getdoc(ours) == inspect.getdoc(theirs), name


@by_name
@pytest.mark.parametrize("form", ["numbers", "single", "frame", "sparse", "two classes", "precomputed"])
def test_attributes_have_the_originals_types(kind, form):
    rows, options = X, {}
    keep = Y < 2 if form == "two classes" else Y < 3
    if form == "single":
        rows = X.astype(np.float32)
    elif form == "frame":
        rows = pd.DataFrame(X, columns=list("abcd"))
    elif form == "sparse":
        rows = sp.csr_matrix(X)
    elif form == "precomputed":
        rows, options = X @ X.T, {"kernel": "precomputed"}
    rows = rows[keep]
    ours, theirs = kind(**options).fit(rows, Y[keep]), kind._original(**options).fit(rows, Y[keep])
    assert available(ours) - ALLOWED[kind] == available(theirs)
    for name in sorted(public(vars(theirs)) | {"n_support_"} & public(dir(theirs))):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert type(found) is type(expected), name
        assert np.ndim(found) == np.ndim(expected), name
        assert getattr(found, "dtype", None) == getattr(expected, "dtype", None), name
    assert ours.predict(rows).dtype == theirs.predict(rows).dtype


@machine_by_name
def test_a_fit_leaves_what_the_originals_own_methods_predict_with(kind):
    """Private attributes too are the original's: its code on the same object finds svmarrow's model."""
    model = kind().fit(X, Y)
    ours = model.predict(X)
    np.testing.assert_allclose(np.asarray(kind._original.predict(model, X), float), ours, atol=1e-5)


@by_name
def test_a_second_fit_leaves_nothing_of_the_first(kind):
    model = kind().fit(pd.DataFrame(X, columns=list("abcd")), Y)
    assert hasattr(model, "feature_names_in_")
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")
    # What svmarrow refuses, the original fits on the same object.
    weights = np.ones(150)
    alike = {"max_iter": 0} if kind in MACHINES else {"kernel": "cosine"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(**alike).fit(X, Y, weights)
    assert not ALLOWED[kind] & vars(model).keys()
    assert vars(model).keys() == vars(kind._original().fit(X, Y)).keys() | PRIVATE
    back = {"max_iter": -1} if kind in MACHINES else {"kernel": "linear"}
    assert ALLOWED[kind] <= vars(model.set_params(**back).fit(X, Y)).keys()


@by_name
def test_copies_predict_alike(kind):
    model = kind().fit(X, Y)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert vars(again).keys() == vars(model).keys()
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert vars(clone(model)).keys() == vars(kind()).keys()


def test_what_is_documented_of_a_replacement(tmp_path):
    svc = svm.SVC().fit(X, Y)
    assert svc.certificate_.stop == "converged"
    assert svmarrow.as_expansion(svc).expansion_ is svc.expansion_
    assert svmarrow.compress(svc, n_vectors=10).expansion_.n_vectors == 10
    svmarrow.save(svc, tmp_path / "model")
    np.testing.assert_array_equal(svmarrow.load(tmp_path / "model").predict(X), svc.predict(X))


@machine_by_name
@pytest.mark.parametrize("give", [lambda: None, np.random.RandomState], ids=["global", "shared"])
def test_a_generator_that_others_share_is_drawn_from_as_often(kind, give):
    drawn = []
    for one in (kind, kind._original):
        np.random.seed(3)  # noqa: NPY002 - the generator that scikit-learn draws from
        state = give()
        if state is not None:
            state.seed(3)
        model = one()
        if state is not None:
            # Regressors have it as an attribute alone.
            model.random_state = state
        model.fit(X, Y)
        drawn.append((np.random if state is None else state).randint(10**9))
    assert drawn[0] == drawn[1]


# --- warnings ---


@by_name
def test_frames_raise_no_warning_of_names(kind):
    frame = pd.DataFrame(X, columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind().fit(frame, pd.Series(Y.astype(float) if kind in KINDS[2:4] else Y)).predict(frame)


def test_the_regressor_of_frames_raises_no_warning_of_names():
    frame = pd.DataFrame(X, columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RLSRegressor().fit(frame, pd.Series(Y))
        model.predict(frame)
        svmarrow.least_squares.LowRankRLSRegressor(n_vectors=10).fit(frame, pd.Series(Y)).predict(frame)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)
    for original in (OriginalKernelRidge, ridge.KernelRidge):
        with pytest.warns(UserWarning, match="does not have valid feature names, but KernelRidge was fitted"):
            original().fit(frame, Y).predict(X)


def test_a_reason_is_reported_once():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for size in range(50, 150, 10):
            rows = np.arange(150) * 7 % 150 < size
            svm.SVC(max_iter=0).fit(X[rows], Y[rows])
            ridge.KernelRidge(kernel="cosine", gamma=1.0 / size).fit(X[rows], Y[rows])
            ridge.KernelRidge(alpha=np.full(1, 1.0 / size)).fit(X[rows], Y[rows])
    handed = [str(one.message) for one in seen if one.category is FallbackWarning]
    assert len(handed) == 3
    assert [re.sub(r"'s.*", "", text) for text in handed] == ["scikit-learn"] * 3


def test_a_warning_that_is_an_error_stays_one():
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error", FallbackWarning)
            with pytest.raises(FallbackWarning, match="kernel='cosine'"):
                ridge.KernelRidge(kernel="cosine").fit(X, Y)


# --- mistakes: the same exception, in the same words ---

MISTAKES = {
    "columns": lambda kind: kind().fit(X, Y).predict(X[:, :2]),
    "one row": lambda kind: kind().fit(X, Y).predict(X[0]),
    "gap": lambda kind: kind().fit(X, Y).predict(np.full((2, 4), np.nan)),
    "not fitted": lambda kind: kind().predict(X),
    "lengths": lambda kind: kind().fit(X, Y[:7]),
    "gap in training": lambda kind: kind().fit(np.full((150, 4), np.nan), Y),
    "text": lambda kind: kind().fit([["a"], ["b"]], [0, 1]),
    "no square": lambda kind: kind(kernel="precomputed").fit(X, Y),
    "no such kernel": lambda kind: kind(kernel="rfb").fit(X, Y),
    "shape": lambda kind: kind(break_ties=True, decision_function_shape="ovo").fit(X, Y).predict(X),
    "one class": lambda kind: kind().fit(X, np.zeros(150)),
    "numbers as labels": lambda kind: kind().fit(X, X[:, 0]),
    "weights": lambda kind: kind().fit(X, Y, sample_weight=np.ones(7)),
}


@by_name
@pytest.mark.parametrize("mistake", MISTAKES)
def test_errors_have_scikit_learns_messages(kind, mistake):
    outcomes = []
    for one in (kind, kind._original):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                MISTAKES[mistake](one)
            outcomes.append(None)
        except Exception as error:  # noqa: BLE001 - whatever it is
            outcomes.append((type(error), re.sub(r"0x\w+", "", str(error)).replace(kind.__module__, "")))
    theirs = None if outcomes[1] is None else (outcomes[1][0], outcomes[1][1])
    assert outcomes[0] == theirs


# --- small fits run on the thread that calls ---


def test_small_fits_start_no_thread():
    code = """
import threading, time, sys, os
import numpy as np
import svmarrow
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4)); y = (X[:, 0] > 0).astype(int)
def threads():
    return len(os.listdir("/proc/self/task"))
svmarrow.SVC().fit(X, y)
before, seen = threads(), []
kernel = lambda A, B: (seen.append(threads()), A @ B.T)[1]
svmarrow.SVC(kernel=kernel, n_jobs=2).fit(X, y)
assert seen and set(seen) == {before}, (before, seen)
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("threads are counted in /proc")
    python(code)


def test_a_small_fit_that_lasts_long_is_interrupted():
    """A wide kernel, random labels and hardly a limit of C: the fit lasts for seconds."""
    code = """
import _thread, threading, time, warnings
import numpy as np
import svmarrow
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4)); y = rng.integers(0, 2, 300)
timer = threading.Timer(0.05, _thread.interrupt_main)
start = time.monotonic()
svc = svmarrow.SVC(gamma=0.01, C=1e12, tol=1e-12)
try:
    timer.start()
    svc.fit(X, y)
    print("ended", time.monotonic() - start)
except KeyboardInterrupt:
    print("interrupted", hasattr(svc, "expansion_"))
"""
    said = python(code)
    assert said.split() == ["interrupted", "False"], said


def test_bits_do_not_depend_on_threads_around_the_size_where_they_start():
    rng = np.random.default_rng(0)
    for n in (1000, 1300):
        A = rng.normal(size=(n, 4))
        y = (A[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)
        one, two = (svmarrow.SVC(n_jobs=jobs).fit(A, y) for jobs in (1, 2))
        np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
        np.testing.assert_array_equal(one.decision_function(A), two.decision_function(A))


def test_fits_of_several_threads_do_not_disturb_each_other():
    expected = svm.SVC().fit(X, Y).decision_function(X)
    found = []
    workers = [
        threading.Thread(target=lambda: found.append(svm.SVC().fit(X, Y).decision_function(X)))
        for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 8
    for values in found:
        np.testing.assert_array_equal(values, expected)


def test_probabilities_after_the_original_has_fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = svm.SVC(probability=True, max_iter=0, random_state=0).fit(X, Y)
        theirs = originals.SVC(probability=True, max_iter=0, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
