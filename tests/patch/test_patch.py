"""svmarrow's classes in the place of scikit-learn's: manners, what is handed over, the command."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import sklearn.kernel_ridge
import sklearn.svm
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import svmarrow
from helpers.programs import python
from svmarrow.exceptions import FallbackWarning
from svmarrow.patch import replacement
from svmarrow.patch.replacement import REPLACED

X, Y = load_iris(return_X_y=True)
NAMES = list(REPLACED)


@pytest.fixture
def patched():
    """Every name, patched; put back afterwards. Warnings are new to each test."""
    replacement._REPORTED.clear()
    svmarrow.patch_sklearn()
    yield {name: getattr(sys.modules[REPLACED[name][0]], name) for name in NAMES}
    svmarrow.unpatch_sklearn()


@pytest.mark.parametrize("name", NAMES)
def test_signature_parameters_and_documentation_are_the_originals(patched, name):
    kind = patched[name]
    original = kind._original
    assert original.__module__.startswith("sklearn.")
    assert inspect.signature(kind) == inspect.signature(original)
    assert inspect.signature(kind.fit).parameters.keys() == inspect.signature(original.fit).parameters.keys()
    assert kind.__doc__ == original.__doc__
    assert kind().get_params() == original().get_params()
    assert repr(kind()) == repr(original())
    assert kind._parameter_constraints == original._parameter_constraints
    with pytest.raises(TypeError, match="unexpected keyword"):
        kind(bogus=1)


@pytest.mark.parametrize("name", NAMES)
def test_a_replacement_is_of_the_originals_class_and_has_its_attributes(patched, name):
    kind = patched[name]
    estimator, original = kind().fit(X, Y), kind._original().fit(X, Y)
    assert isinstance(estimator, BaseEstimator)
    assert isinstance(estimator, kind._original)
    assert get_tags(estimator) == get_tags(original)
    public = [key for key in dir(original) if key[-1] == "_" and key[0] != "_" and not key.startswith("prob")]
    for key in public:
        theirs = getattr(original, key, None)
        if theirs is not None:
            ours = getattr(estimator, key)
            assert np.shape(ours) == np.shape(theirs) or key.startswith(("support", "dual")), key
            assert np.asarray(ours).dtype.kind == np.asarray(theirs).dtype.kind, key
    assert (estimator.predict(X) == original.predict(X)).mean() > 0.98 or np.allclose(
        estimator.predict(X), original.predict(X), atol=0.01
    )
    assert name in estimator._repr_html_()


@pytest.mark.parametrize("name", NAMES)
def test_clones_and_pickles(patched, name):
    estimator = patched[name]().fit(X, Y)
    again = pickle.loads(pickle.dumps(estimator))
    assert type(clone(estimator)) is type(again) is patched[name]
    np.testing.assert_array_equal(again.predict(X), estimator.predict(X))
    svmarrow.unpatch_sklearn()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimator)).predict(X), estimator.predict(X))


def test_patching_and_back():
    originals = {name: getattr(sys.modules[REPLACED[name][0]], name) for name in NAMES}
    svmarrow.patch_sklearn("SVR")
    assert sklearn.svm.SVR.__module__ == "svmarrow.patch.svm"
    assert sklearn.svm.SVC is originals["SVC"]
    svmarrow.patch_sklearn(["SVC", "SVR"])
    svmarrow.unpatch_sklearn("SVR")
    assert sklearn.svm.SVR is originals["SVR"]
    assert issubclass(sklearn.svm.SVC, originals["SVC"])
    assert sklearn.svm.SVC is not originals["SVC"]
    svmarrow.unpatch_sklearn()
    svmarrow.unpatch_sklearn()
    assert originals == {name: getattr(sys.modules[REPLACED[name][0]], name) for name in NAMES}
    for function in (svmarrow.patch_sklearn, svmarrow.unpatch_sklearn):
        with pytest.raises(ValueError, match="'LinearSVC' must be one of SVC"):
            function(["SVC", "LinearSVC"])
    assert sklearn.svm.SVC is originals["SVC"]


@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM", "KernelRidge"])
def test_scikit_learns_contract(patched, name):
    equivalence = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    reason = "equal to the solver's tolerance, not to seven digits"
    check_estimator(
        patched[name](),
        expected_failed_checks={} if name == "KernelRidge" else dict.fromkeys(equivalence, reason),
        on_skip=None,
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grids_pipelines_and_subclasses(patched):
    class Own(sklearn.svm.SVC):
        def __init__(self, C=1.0, more=None):
            super().__init__(C=C)
            self.more = more

    assert Own(C=2.0, more=3).fit(X, Y).score(X, Y) > 0.95
    # scikit-learn's SVC keeps the label of a class without weight, and predicts the labels of others for it.
    heavy = Own(more=3).fit(X, Y, np.where(Y == 0, 0.0, 1.0))
    assert heavy.classes_.tolist() == [1, 2]
    assert heavy.score(X[50:], Y[50:]) > 0.9
    early = Own(more=3)
    early.max_iter = 0
    with pytest.warns(FallbackWarning):
        assert not hasattr(early.fit(X, Y), "certificate_")
    search = GridSearchCV(make_pipeline(StandardScaler(), sklearn.svm.SVC()), {"svc__C": [1.0, 10.0]}, cv=3)
    assert search.fit(X, Y).score(X, Y) > 0.95


def test_weights_are_routed(patched):
    with config_context(enable_metadata_routing=True):
        svc = sklearn.svm.SVC(gamma=0.5).set_fit_request(sample_weight=True)
        weights = np.where(np.arange(150) % 2, 1.0, 0.0)
        scaler = StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False)
        routed = make_pipeline(scaler, svc).fit(X, Y, sample_weight=weights)
        alone = sklearn.svm.SVC(gamma=0.5).fit(X[1::2], Y[1::2])
    np.testing.assert_array_equal(routed.decision_function(X), alone.decision_function(X))


def test_other_processes_need_no_patch(patched):
    scores = cross_val_score(sklearn.svm.SVC(), X, Y, cv=3, n_jobs=2)
    np.testing.assert_array_equal(scores, cross_val_score(sklearn.svm.SVC(), X, Y, cv=3))


# --- what is handed over ---


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_original_fits_what_svmarrow_refuses_with_a_warning(patched):
    svc = sklearn.svm.SVC(max_iter=0)
    with pytest.warns(FallbackWarning, match="max_iter=0 is not allowed") as told:
        svc.fit(X, Y)
    assert [one.category for one in told].count(FallbackWarning) == 1
    with pytest.warns(ConvergenceWarning):
        original = svc._original(max_iter=0).fit(X, Y)
    for name in ("support_", "dual_coef_", "intercept_", "n_support_", "n_iter_", "classes_"):
        np.testing.assert_array_equal(getattr(svc, name), getattr(original, name))
    np.testing.assert_array_equal(svc.decision_function(X), original.decision_function(X))
    again = pickle.loads(pickle.dumps(svc))
    np.testing.assert_array_equal(again.predict(X), original.predict(X))
    assert not hasattr(svc, "certificate_")
    assert svc.set_params(max_iter=-1).fit(X, Y).certificate_.stop == "converged"
    assert svc.score(X, Y) > 0.95


def test_a_ridge_with_a_kernel_of_scikit_learns_own(patched):
    with pytest.warns(FallbackWarning, match="kernel='cosine' is not allowed"):
        ridge = sklearn.kernel_ridge.KernelRidge(kernel="cosine").fit(X, Y)
    np.testing.assert_array_equal(ridge.predict(X), ridge._original(kernel="cosine").fit(X, Y).predict(X))


@pytest.mark.parametrize(
    ("parameters", "fit", "error", "words"),
    [
        ({"C": -1.0}, {}, ValueError, "The 'C' parameter of SVC must be"),
        ({"kernel": "laplacian"}, {}, ValueError, "The 'kernel' parameter of SVC must be"),
        ({"kernel": "matern32"}, {}, ValueError, "The 'kernel' parameter of SVC must be"),
        ({}, {"sample_weight": np.zeros(150)}, ValueError, "all samples have zero or negative weights"),
        ({}, {"y": np.ones(150)}, ValueError, "The number of classes has to be greater than one"),
    ],
)
def test_what_both_refuse_is_refused_in_scikit_learns_words(patched, parameters, fit, error, words):
    with pytest.raises(error, match=words):
        sklearn.svm.SVC(**parameters).fit(X, **{"y": Y} | fit)


def test_infeasible_nu(patched):
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        sklearn.svm.NuSVC(nu=0.9).fit(X[:60], Y[:60])


@pytest.mark.parametrize("labels", [Y, Y > 0], ids=["three", "two"])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0}, {0: 0.0}, {1: -1.0}])
def test_nu_machines_ignore_weights_of_classes(patched, labels, class_weight):
    labels, own = labels[20:].astype(int), np.random.default_rng(0).uniform(0.5, 2.0, 130)
    parameters = {"nu": 0.2, "gamma": 0.5, "tol": 1e-6}
    nu_svc = sklearn.svm.NuSVC
    for weights in (None, own):
        theirs = nu_svc._original(class_weight=class_weight, **parameters).fit(X[20:], labels, weights)
        ours = nu_svc(class_weight=class_weight, **parameters).fit(X[20:], labels, weights)
        plain = nu_svc(**parameters).fit(X[20:], labels, weights)
        assert ours._is_ours()
        np.testing.assert_array_equal(ours.class_weight_, theirs.class_weight_)
        np.testing.assert_array_equal(ours.decision_function(X), plain.decision_function(X))
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
        assert svmarrow.as_expansion(ours).weighted == (weights is not None)
    options = parameters | {"probability": True, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        ours, plain = (
            nu_svc(class_weight=one, **options).fit(X[20:], labels) for one in (class_weight, None)
        )
    np.testing.assert_array_equal(ours.predict_proba(X), plain.predict_proba(X))
    coded = [
        svmarrow.CodedClassifier(nu_svc(class_weight=one, **parameters)).fit(X[20:], labels)
        for one in (class_weight, None)
    ]
    np.testing.assert_array_equal(*(each.decision_function(X) for each in coded))


def test_the_own_nu_machine_applies_weights_of_classes():
    found = [svmarrow.NuSVC(nu=0.2, class_weight=one).fit(X, Y > 0) for one in (None, {0: 5.0})]
    assert np.abs(np.subtract(*(each.decision_function(X) for each in found))).max() > 0.01


def test_nu_machines_refuse_weights_of_unknown_classes(patched):
    with pytest.raises(ValueError, match=r"The classes, \[0, 1, 2\], are not in class_weight"):
        sklearn.svm.NuSVC(class_weight={7: 1.0}, nu=0.2).fit(X, Y)
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        sklearn.svm.NuSVC(nu=0.9, class_weight={0: 5.0}).fit(X[:60], Y[:60])


# --- the ways of scikit-learn's classes ---


def test_negative_weights_leave_rows_out(patched):
    weights = np.ones(150)
    weights[::3] = -0.5
    some = weights > 0
    left = sklearn.svm.SVC(gamma=0.5).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(
        left.decision_function(X), sklearn.svm.SVC(gamma=0.5).fit(X[some], Y[some]).decision_function(X)
    )
    with pytest.raises(ValueError, match="it counts rows, 0 leaves one out"):
        svmarrow.SVC().fit(X, Y, sample_weight=weights)


def test_dense_machines_take_no_sparse_rows(patched):
    with pytest.raises(ValueError, match="cannot use sparse input in 'SVC' trained on dense data"):
        sklearn.svm.SVC().fit(X, Y).predict(sparse.csr_matrix(X))
    sparsely = sklearn.svm.SVC(kernel="linear").fit(sparse.csr_matrix(X), Y)
    assert sparse.issparse(sparsely.dual_coef_)
    assert sparse.issparse(sparsely.coef_)
    assert sparse.issparse(sparsely.support_vectors_)
    np.testing.assert_array_equal(sparsely.predict(X), sklearn.svm.SVC(kernel="linear").fit(X, Y).predict(X))


def test_kernel_functions_get_what_fit_and_predict_get(patched):
    seen = []

    def words_in_common(A, B):
        seen.append((A, B))
        return [[float(len(set(a.split()) & set(b.split()))) for b in B] for a in A]

    texts, kinds = ["a b", "a", "c d", "d"], [0, 0, 1, 1]
    svc = sklearn.svm.SVC(kernel=words_in_common, C=10.0).fit(texts, kinds)
    assert svc.predict(["b a", "c"]).tolist() == [0, 1]
    assert all(B is texts for _, B in seen)


def test_early_ends_warn_in_scikit_learns_words(patched):
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=3\)"):
        svr = sklearn.svm.SVR(max_iter=3, C=100.0).fit(X, y)
    assert svr.fit_status_ == 1
    assert svr.n_iter_ == 3


def test_what_can_be_done_with_a_replacement(patched, tmp_path):
    svc = sklearn.svm.SVC().fit(X, Y)
    assert svmarrow.compress(svc, n_vectors=10).expansion_.n_vectors == 10
    np.testing.assert_array_equal(svmarrow.as_expansion(svc).predict(X), svc.predict(X))
    svmarrow.save(svc, tmp_path / "model")
    np.testing.assert_array_equal(svmarrow.load(tmp_path / "model").predict(X), svc.predict(X))


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "rbf", "laplacian", "precomputed"])
@pytest.mark.parametrize("columns", [1, 2])
def test_kernel_ridge(patched, kernel, columns):
    rows = X @ X.T if kernel == "precomputed" else X
    targets = Y.astype(float) if columns == 1 else np.column_stack([Y, X[:, 0]])
    weights = np.linspace(0.5, 2.0, 150)
    kind = patched["KernelRidge"]
    ours = kind(kernel=kernel).fit(rows, targets, sample_weight=weights)
    theirs = kind._original(kernel=kernel).fit(rows, targets, sample_weight=weights)
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    np.testing.assert_allclose(ours.predict(rows), theirs.predict(rows), atol=1e-6)


# --- programs that keep their imports ---

PROGRAM = """
import sys
from sklearn.svm import SVC
print(sys.argv[1:], SVC.__module__, __name__)
"""


@pytest.mark.parametrize("how", ["script", "module"])
def test_programs_run_patched(tmp_path, how):
    (tmp_path / "program.py").write_text(PROGRAM)
    program = ["-m", "program"] if how == "module" else [str(tmp_path / "program.py")]
    done = subprocess.run(
        [sys.executable, "-m", "svmarrow.patch", *program, "--flag", "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "['--flag', 'x'] svmarrow.patch.svm __main__"


def test_the_command_prints_its_usage():
    done = subprocess.run(
        [sys.executable, "-m", "svmarrow.patch"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "usage: python -m svmarrow.patch" in done.stderr


def test_importing_svmarrow_loads_neither_scikit_learns_machines_nor_dask():
    unused = {"sklearn.svm", "dask", "distributed"}
    assert python(f"import svmarrow, sys; print({unused} & sys.modules.keys())") == "set()\n"


def test_no_warning_where_nothing_is_handed_over(patched):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in NAMES:
            patched[name]().fit(X, Y)
