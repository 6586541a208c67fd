"""A search finds what separate fits find: scores, choice, and what it leaves behind when it ends early."""

from __future__ import annotations

import _thread
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    make_classification,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

import svmarrow
from svmarrow import SVC, SVCCV, SVR, SVRCV
from svmarrow.model_selection import GridScoresDisplay, QuantileSVRCV
from svmarrow.model_selection._scoring import survivors

IRIS, KIND = load_iris(return_X_y=True)
IRIS = StandardScaler().fit_transform(IRIS)
WORDS = np.array(["setosa", "versicolor", "virginica"])[KIND]
MOONS, SIDE = make_moons(400, noise=0.35, random_state=0)
WEIGHTS = np.random.default_rng(0).uniform(0.0, 3.0, KIND.size) * (np.arange(KIND.size) % 7 > 0)


def scores_of(search):
    """Scores (n_gammas, n_Cs, n_folds) out of `cv_results_`."""
    results = search.cv_results_
    folds = [results[f"split{fold}_test_score"] for fold in range(search.n_splits_)]
    return np.stack(folds, axis=-1).reshape(search.Cs_.size, -1, len(folds)).swapaxes(0, 1)


def cosine(A, B):
    return (A @ B.T) / np.linalg.norm(A, axis=1)[:, None] / np.linalg.norm(B, axis=1)


def peer(search, machine, X, y, **params):
    """GridSearchCV over the same grid and folds."""
    grid = {"C": list(search.Cs_)}
    if search.gammas_ is not None:
        grid["gamma"] = list(search.gammas_)
    found = GridSearchCV(machine, grid, cv=search.cv, scoring=search.scoring, refit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return found.fit(X, y, **params)


def assert_alike(search, machine, X, y, *, rows=1, **params):
    """Scores of every fold differ by at most some of its rows, and the choice is as good."""
    found = peer(search, machine, X, y, **params)
    ours, theirs = search.cv_results_, found.cv_results_
    assert ours["params"] == [dict(point) for point in theirs["params"]]
    smallest = len(y) // (search.n_splits_ + 1)
    for fold in range(search.n_splits_):
        a, b = (results[f"split{fold}_test_score"] for results in (ours, theirs))
        np.testing.assert_allclose(a, b, atol=rows / smallest + 1e-12, rtol=0)
    best = theirs["mean_test_score"].max()
    chosen = theirs["mean_test_score"][search.best_index_]
    assert chosen >= best - theirs["std_test_score"][search.best_index_] / np.sqrt(search.n_splits_) - 1e-12


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"multi_class": "ovr"},
        {"loss": "squared_hinge"},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
        {"class_weight": {0: 5.0, 2: 0.2}},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"kernel": "laplacian"},
        {"kernel": "matern32"},
        {"kernel": "linear"},
        {"kernel": cosine},
        {"break_ties": True},
        {"cache_size": 0.01},
        {"cache_size": 0.01, "multi_class": "ovr", "kernel": "linear"},
    ],
    ids=lambda options: " ".join(f"{k}={getattr(v, '__name__', v)}" for k, v in options.items()) or "plain",
)
def test_scores_are_those_of_separate_fits(options):
    # Without a name the weights of the classes are in the score too, which GridSearchCV does not do.
    scoring = "accuracy" if "class_weight" in options else None
    search = SVCCV(Cs=4, gammas=3, scoring=scoring, **options).fit(IRIS, KIND)
    assert_alike(search, SVC(**options), IRIS, KIND)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_any_kind(dtype, sparse):
    X, y = make_classification(300, 40, n_informative=10, random_state=1)
    X = np.where(np.abs(X) > 0.7, X, 0.0).astype(dtype)
    X = sp.csr_array(X) if sparse else X
    search = SVCCV(Cs=4, gammas=3).fit(X, y)
    assert_alike(search, SVC(), X, y)
    assert search.predict(X).shape == y.shape


def test_one_column_and_strings():
    search = SVCCV(Cs=3, gammas=3, cv=3).fit(IRIS[:, :1], WORDS)
    assert_alike(search, SVC(), IRIS[:, :1], WORDS)
    assert set(search.predict(IRIS[:, :1])) <= set(WORDS)


@pytest.mark.parametrize("options", [{}, {"multi_class": "ovr"}], ids=str)
def test_large_machines_go_through_rounds(options):
    """More variables than a block: the outer tier, with and without a matrix of all values."""
    X, y = make_moons(2400, noise=0.3, random_state=3)
    if options:
        y = y + 2 * (X[:, 0] > 1.2)
    plain = SVCCV(Cs=[0.3, 10.0, 300.0], gammas=[0.5, 50.0], cv=3, **options).fit(X, y)
    assert_alike(plain, SVC(**options), X, y, rows=3)
    poor = SVCCV(Cs=[0.3, 10.0, 300.0], gammas=[0.5, 50.0], cv=3, cache_size=1, **options).fit(X, y)
    np.testing.assert_allclose(scores_of(plain), scores_of(poor), atol=4 / 800)


def test_precomputed_kernels():
    K = np.exp(-0.3 * ((IRIS[:, None] - IRIS) ** 2).sum(-1))
    search = SVCCV(Cs=[0.1, 1.0, 10.0], kernel="precomputed").fit(K, KIND)
    rows = SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.3]).fit(IRIS, KIND)
    np.testing.assert_allclose(scores_of(search), scores_of(rows), atol=1 / 30)
    assert search.gammas_ is None
    assert list(search.best_params_) == ["C"]


@pytest.mark.parametrize(
    "cv",
    [
        3,
        KFold(4, shuffle=True, random_state=0),
        ShuffleSplit(3, test_size=0.4, random_state=0),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
        PredefinedSplit(np.where(np.arange(150) % 3, -1, 0)),
    ],
    ids=str,
)
def test_folds_of_any_splitter(cv):
    search = SVCCV(Cs=3, gammas=2, cv=cv).fit(IRIS, KIND)
    assert_alike(search, SVC(), IRIS, KIND, rows=2)


def test_rows_that_a_fold_names_twice():
    random = np.random.default_rng(0)
    cv = [(random.integers(0, 150, 150), np.arange(k, 150, 3)) for k in range(3)]
    search = SVCCV(Cs=4, gammas=3, cv=cv).fit(IRIS, KIND)
    assert_alike(search, SVC(), IRIS, KIND, rows=2)


def test_weights_are_those_of_every_fit():
    search = SVCCV(Cs=4, gammas=3, class_weight="balanced").fit(IRIS, KIND, WEIGHTS)
    if parse_version(sklearn.__version__) >= parse_version("1.9"):  # older searches score without weights
        assert_alike(search, SVC(class_weight="balanced"), IRIS, KIND, sample_weight=WEIGHTS)
    best = SVC(**search.best_params_, class_weight="balanced").fit(IRIS, KIND, WEIGHTS)
    np.testing.assert_array_equal(search.decision_function(IRIS), best.decision_function(IRIS))


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss"])
def test_scorers(scoring):
    if scoring == "neg_log_loss":
        with pytest.raises(AttributeError, match="predict_proba"):
            SVCCV(Cs=2, gammas=2, scoring=scoring).fit(IRIS, KIND)
        return
    search = SVCCV(Cs=4, gammas=3, scoring=scoring).fit(IRIS, KIND)
    assert_alike(search, SVC(), IRIS, KIND, rows=1.5)


def test_scorers_of_decisions_and_of_the_caller():
    search = SVCCV(Cs=4, gammas=3, scoring="roc_auc").fit(MOONS, SIDE)
    assert_alike(search, SVC(), MOONS, SIDE, rows=0.3)

    def hits(estimator, X, y):
        return float((estimator.predict(X) == y).sum())

    plain = SVCCV(Cs=4, gammas=3).fit(MOONS, SIDE)
    own = SVCCV(Cs=4, gammas=3, scoring=hits).fit(MOONS, SIDE)
    np.testing.assert_allclose(scores_of(own) / 80, scores_of(plain))

    def elsewhere(estimator, X, y):
        return float(estimator.predict(X[:3]).sum())

    with pytest.raises(ValueError, match="held-out samples of the fold"):
        SVCCV(Cs=2, gammas=2, scoring=elsewhere).fit(MOONS, SIDE)


@pytest.mark.parametrize(
    ("search", "scoring", "y"),
    [
        (SVCCV, "roc_auc", SIDE),
        (SVCCV, None, SIDE),
        (SVRCV, "neg_mean_absolute_error", MOONS[:, 1]),
        (QuantileSVRCV, "r2", MOONS[:, 1]),
        (QuantileSVRCV, None, MOONS[:, 1]),
    ],
)
def test_the_score_is_the_one_that_chose(search, scoring, y):
    X, weights = MOONS[:, :1] if y is not SIDE else MOONS, 1.0 + np.arange(100.0) % 3.0
    model = search(Cs=[0.1, 1.0], gammas=[1.0], cv=3, scoring=scoring).fit(X[:300], y[:300])
    expected = GridSearchCV(model.best_estimator_, {"C": [1.0]}, cv=3, scoring=scoring).fit(X[:300], y[:300])
    scorer = expected.scorer_ if scoring else type(model.best_estimator_).score
    assert model.score(X[300:], y[300:]) == pytest.approx(scorer(model.best_estimator_, X[300:], y[300:]))
    assert model.score(X[300:], y[300:]) == model.scorer_(model, X[300:], y[300:])
    weighted = scorer(model.best_estimator_, X[300:], y[300:], sample_weight=weights)
    assert model.score(X[300:], y[300:], sample_weight=weights) == pytest.approx(weighted)


def test_a_scorer_may_call_the_score_of_its_model():
    model = SVCCV(Cs=[1.0], gammas=[1.0], cv=3, scoring=lambda model, X, y: -model.score(X, y))
    model.fit(MOONS[:300], SIDE[:300])
    assert model.score(MOONS, SIDE) == -np.mean(model.predict(MOONS) == SIDE)


def test_groups_and_routing():
    groups = np.arange(KIND.size) % 10
    search = SVCCV(Cs=3, gammas=3, cv=GroupKFold(5)).fit(IRIS, KIND, groups=groups)
    assert_alike(search, SVC(), IRIS, KIND, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(get_scorer("accuracy")._score_func).set_score_request(sample_weight=True)
        weights = np.where(KIND == 0, 1.0, 9.0)
        routed = SVCCV(Cs=3, gammas=3, cv=GroupKFold(5), scoring=scorer)
        routed.fit(IRIS, KIND, sample_weight=weights, groups=groups)
        machine = SVC().set_fit_request(sample_weight=True)
        assert_alike(routed, machine, IRIS, KIND, rows=3, sample_weight=weights, groups=groups)


def test_folds_without_a_class():
    """A fold that lacks a class is judged as a fit without it is."""
    order = np.argsort(KIND, kind="stable")
    for multi_class in ("ovo", "ovr"):
        search = SVCCV(Cs=3, gammas=2, cv=KFold(3), multi_class=multi_class)
        search.fit(IRIS[order], KIND[order])
        assert_alike(search, SVC(multi_class=multi_class), IRIS[order], KIND[order])
    with pytest.warns(FitFailedWarning, match="2 of 2 folds"), pytest.raises(ValueError, match="scored"):
        SVCCV(Cs=2, gammas=2, cv=KFold(2)).fit(MOONS[np.argsort(SIDE)], np.sort(SIDE))


def test_regression():
    X, y = load_diabetes(return_X_y=True)
    # Fits to folds end at ten times this share of the standard deviation of y.
    accurate = SVRCV(Cs=4, gammas=3, epsilon=5.0, tol=1e-5).fit(X, y)
    found = peer(accurate, SVR(epsilon=5.0), X, y)
    theirs = found.cv_results_["mean_test_score"]
    assert accurate.fold_tol_ == pytest.approx(1e-4 * y.std())
    np.testing.assert_allclose(accurate.cv_results_["mean_test_score"], theirs, atol=2e-4)
    assert accurate.best_index_ == found.best_index_
    np.testing.assert_array_equal(accurate.predict(X), accurate.best_estimator_.predict(X))
    # The default changes scores by far less than their standard errors.
    search = SVRCV(Cs=4, gammas=3, epsilon=5.0).fit(X, y)
    errors = found.cv_results_["std_test_score"] / np.sqrt(search.n_splits_)
    assert (np.abs(search.cv_results_["mean_test_score"] - theirs) < 0.05 * errors).all()
    absolute = SVRCV(Cs=4, gammas=3, epsilon=5.0, tol=1e-5, scoring="neg_mean_absolute_error").fit(X, y)
    found = peer(absolute, SVR(epsilon=5.0), X, y)
    np.testing.assert_allclose(
        absolute.cv_results_["mean_test_score"], found.cv_results_["mean_test_score"], rtol=1e-4
    )


def test_c_beyond_which_nothing_changes():
    """Separable rows: the fits behind the settled one are not made again, and are the same."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    search = SVCCV(Cs=[1.0, 100.0, 1e3, 1e6], gammas=[1.0], cv=3).fit(X, y)
    assert search.cv_results_["mean_fit_time"][-1] == 0.0
    np.testing.assert_array_equal(scores_of(search)[0, -1], scores_of(search)[0, -2])
    assert_alike(search, SVC(), X, y)


def test_results_have_the_form_of_grid_search():
    search = SVCCV(Cs=3, gammas=2, cv=4).fit(IRIS, KIND)
    found = peer(search, SVC(), IRIS, KIND)
    ours, theirs = search.cv_results_, found.cv_results_
    assert set(theirs) <= set(ours)
    np.testing.assert_array_equal(ours["param_gamma"].data, np.array(theirs["param_gamma"], dtype=float))
    by_hand = scores_of(search).mean(axis=2)
    np.testing.assert_allclose(ours["mean_test_score"].reshape(3, 2).T, by_hand)
    assert ours["rank_test_score"][search.best_index_] == 1
    assert search.best_score_ == ours["mean_test_score"].max()
    assert search.best_params_ == ours["params"][search.best_index_]


def test_bits_do_not_depend_on_threads():
    X, y = make_moons(2200, noise=0.3, random_state=5)
    for rows, labels in [(X, y), (IRIS, KIND)]:
        one, many = (SVCCV(Cs=3, gammas=3, cv=3, n_jobs=jobs).fit(rows, labels) for jobs in (1, 5))
        np.testing.assert_array_equal(scores_of(one), scores_of(many))
        np.testing.assert_array_equal(one.expansion_.coefficients, many.expansion_.coefficients)


def test_caches_that_bound_working_sets_do_not_depend_on_threads():
    """Kernel rows of 80 features are cached, and one fold has no matrix."""
    X, y = make_classification(1700, 80, n_informative=10, flip_y=0.05, random_state=1)
    fold = [(np.arange(1550), np.arange(1550, 1700))]

    def squares(y_true, outputs):
        return -np.mean((y_true - outputs) ** 2)

    options = {"Cs": [1.0], "gammas": [0.02], "cv": fold, "cache_size": 2.0, "refit": False}
    scoring = make_scorer(squares, response_method="decision_function")
    one, two = (scores_of(SVCCV(scoring=scoring, n_jobs=jobs, **options).fit(X, y)) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_bits_do_not_depend_on_what_is_left_in_memory():
    """A thread goes from gamma to gamma with the memory of its blocks."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:1000] / 16, y[:1000]
    both = SVRCV(Cs=2, gammas=[0.01, 0.1], cv=3, n_jobs=1).fit(X, y)
    for scores, gamma in zip(scores_of(both), [0.01, 0.1], strict=True):
        alone = SVRCV(Cs=2, gammas=[gamma], cv=3, n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(scores_of(alone)[0], scores)


@pytest.mark.parametrize("tol", [0.05, 0.1, 0.3])
def test_scores_of_a_large_tolerance_are_those_of_solutions(tol):
    """At thirty times these tolerances, machines with zero coefficients would be solved."""
    accurate, coarse = (SVCCV(Cs=3, gammas=3, tol=t).fit(MOONS, SIDE) for t in (1e-4, tol))
    assert coarse.fold_tol_ == max(tol, 0.1)
    np.testing.assert_allclose(scores_of(coarse).mean(axis=2), scores_of(accurate).mean(axis=2), atol=0.03)


def test_racing_drops_points_and_finds_as_good_a_one():
    X, y = make_moons(1500, noise=0.35, random_state=0)
    full = SVCCV(Cs=6, gammas=6).fit(X, y)
    racing = SVCCV(Cs=6, gammas=6, search="racing").fit(X, y)
    tried = ~np.isnan(scores_of(racing))
    assert tried[:, :, 0].all()
    assert tried.sum() < 0.9 * tried.size
    # A chain without the dropped points starts elsewhere, so a sample within the tolerance may change sides.
    np.testing.assert_allclose(scores_of(racing)[tried], scores_of(full)[tried], atol=1.01 / 300)
    means = scores_of(full).mean(axis=2)
    g, c = (
        int(np.argmin(abs(full.gammas_ - racing.best_params_["gamma"]))),
        int(np.argmin(abs(full.Cs_ - racing.best_params_["C"]))),
    )
    error = scores_of(full)[g, c].std() / np.sqrt(5)
    assert means[g, c] >= means.max() - error
    results = racing.cv_results_
    whole = results["n_test_scores"] == 5
    assert results["rank_test_score"][whole].max() <= results["rank_test_score"][~whole].min()
    assert racing.best_score_ == results["mean_test_score"][whole].max()


@pytest.mark.parametrize("scoring", [None, "f1_macro"])
def test_a_race_over_many_rows_begins_with_some_of_them(scoring):
    X, y = make_moons(2100, noise=0.3, random_state=0)
    y = np.array(["a", "b", "c"])[y + (X[:, 0] > 1.0)]
    grid = {"Cs": [0.01, 1.0, 30.0], "gammas": [1e-3, 1.0, 30.0], "cv": 3, "scoring": scoring}
    full, racing = (SVCCV(**grid, search=search).fit(X, y) for search in ("full", "racing"))
    tried = ~np.isnan(scores_of(racing))
    # Three scores are too few to tell points apart, two thousand rows are not.
    assert tried[:, :, 0].all() == (scoring is not None)
    np.testing.assert_allclose(scores_of(racing)[tried], scores_of(full)[tried], atol=2 / 700)
    best = np.unravel_index(int(scores_of(full).mean(axis=2).argmax()), (3, 3))
    assert racing.best_score_ >= full.best_score_ - scores_of(full)[best].std()
    results = racing.cv_results_
    assert np.isnan(results["mean_test_score"]).sum() == (results["n_test_scores"] == 0).sum()


def test_a_race_over_numbers():
    X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    y = np.sin(X[:, 0]) + np.random.default_rng(1).normal(0.0, 0.1, 2000)
    grid = {"Cs": [0.01, 1.0], "gammas": [1e-3, 1.0], "cv": 3}
    full, racing = (SVRCV(**grid, search=search).fit(X, y) for search in ("full", "racing"))
    tried = ~np.isnan(scores_of(racing))
    assert not tried[:, :, 0].all()
    np.testing.assert_allclose(scores_of(racing)[tried], scores_of(full)[tried], atol=2e-4)
    assert racing.best_params_ == full.best_params_


def test_racing_keeps_the_best_with_its_confidence():
    """Points of known error rates on drawn rows, many times over."""
    random = np.random.default_rng(0)
    lost, beaten, left, alpha, folds, runs = 0, 0, 0, 0.2, 5, 200
    rates = np.r_[0.10, np.full(6, 0.11), np.full(5, 0.25)][np.newaxis]
    for _ in range(runs):
        right = random.random((1, 12, folds * 60)) >= rates[..., np.newaxis]
        racing = np.ones((1, 12), dtype=bool)
        for fold in range(1, folds):
            racing = survivors(racing, right[:, :, : fold * 60], alpha / (folds - 1), folds * 60)
        means = right.mean(axis=2)
        best = means.max()
        beaten += best - means[racing].max() > np.sqrt(best * (1.0 - best) / (folds * 60))
        left += int(racing.sum())
        # Where the truth is asked for it is the truly best that stays.
        lost += not survivors(np.ones((1, 12), dtype=bool), right, alpha, None)[0, 0]
    assert beaten / runs < alpha
    assert lost / runs < alpha
    assert left / runs < 4


def test_a_point_that_errs_as_the_best_or_cannot_be_scored_stays():
    values = np.zeros((1, 4, 40))
    values[0, :3, ::4] = -1.0
    values[0, 2, ::2] = -1.0
    values[0, 3] = np.nan
    kept = survivors(np.ones((1, 4), dtype=bool), values, 0.05, 200)
    np.testing.assert_array_equal(kept, [[True, True, False, True]])
    np.testing.assert_array_equal(survivors(kept, values, 0.05, 200), kept)


def test_max_time_refits_with_the_best_so_far():
    X, y = make_moons(600, noise=0.3, random_state=0)
    waits = []

    def slowly(estimator, rows, labels):
        waits.append(rows.shape)
        if len(waits) == 9:
            threading.Event().wait(3.0)
        return float((estimator.predict(rows) == labels).mean())

    # However slow the machine, eight small fits come before the wait, which is longer than what is left.
    search = SVCCV(scoring=slowly, max_time=2.5, n_jobs=1)
    with pytest.warns(ConvergenceWarning, match="the best point so far is chosen"):
        search.fit(X, y)
    assert search.stop_ == "max_time"
    assert np.isnan(scores_of(search)).any()
    assert not np.isnan(scores_of(search)).all()
    assert search.score(X, y) > 0.6
    with pytest.raises(ValueError, match="long enough for one point"):
        SVCCV(max_time=0.0).fit(X, y)


def test_an_interrupt_keeps_what_is_scored():
    X, y = make_moons(3000, noise=0.3, random_state=0)
    scored = []

    def accuracy(estimator, rows, labels):
        value = float((estimator.predict(rows) == labels).mean())
        scored.append(value)
        if len(scored) == 20:
            _thread.interrupt_main()
        return value

    search = SVCCV(Cs=2, gammas=2, cv=2, scoring=accuracy).fit(IRIS, KIND)
    scored.clear()
    with pytest.raises(KeyboardInterrupt):
        search.set_params(Cs=10, gammas=10, cv=5).fit(X, y)
    assert search.stop_ == "interrupted"
    found = scores_of(search)[~np.isnan(scores_of(search))]
    assert 20 <= found.size < scores_of(search).size
    assert sorted(found) == sorted(scored[: found.size])
    results = search.cv_results_
    most = results["n_test_scores"] == results["n_test_scores"].max()
    assert search.best_score_ == results["mean_test_score"][most].max()
    with pytest.raises(NotFittedError):
        search.predict(X)


def test_what_a_scorer_raises_leaves_the_search_as_it_was():
    search = SVCCV(Cs=2, gammas=2).fit(IRIS, KIND)
    before = search.best_params_

    def broken(estimator, X, y):
        raise RuntimeError("no score today")

    with pytest.raises(RuntimeError, match="no score today"):
        search.set_params(scoring=broken).fit(MOONS, SIDE)
    assert before == search.best_params_
    assert search.predict(IRIS[:1]).shape == (1,)


def test_without_a_refit_there_is_no_prediction():
    search = SVCCV(Cs=2, gammas=2, refit=False).fit(IRIS, KIND)
    assert search.best_score_ > 0.9
    assert not hasattr(search, "estimator_")
    with pytest.raises(NotFittedError):
        search.predict(IRIS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"Cs": 0},
        {"Cs": []},
        {"Cs": [1.0, 1.0]},
        {"Cs": [-1.0]},
        {"Cs": "many"},
        {"gammas": [np.nan]},
        {"gammas": 2.5},
        {"search": "random"},
        {"significance": 1.0},
        {"refit": None},
    ],
    ids=str,
)
def test_wrong_parameters_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SVCCV(**wrong).fit(IRIS, KIND)


def test_ranges_follow_the_rows():
    narrow, wide = (SVCCV(Cs=3, gammas=3, cv=2).fit(scale * IRIS, KIND) for scale in (1.0, 100.0))
    np.testing.assert_allclose(narrow.gammas_, 1e4 * wide.gammas_)
    np.testing.assert_allclose(narrow.Cs_, [0.1, 10.0, 1000.0])
    narrow, wide = (SVCCV(Cs=3, kernel="linear", cv=2).fit(scale * IRIS, KIND) for scale in (1.0, 100.0))
    np.testing.assert_allclose(narrow.Cs_, 1e4 * wide.Cs_)
    np.testing.assert_allclose(scores_of(narrow), scores_of(wide), atol=1 / 75)
    low, high = (SVRCV(Cs=3, gammas=2, cv=2).fit(IRIS, scale * IRIS[:, 0]) for scale in (1.0, 10.0))
    np.testing.assert_allclose(10.0 * low.Cs_, high.Cs_)
    np.testing.assert_allclose(SVCCV(Cs=1, gammas=[3.0, 1.0], cv=2).fit(IRIS, KIND).gammas_, [1.0, 3.0])


@pytest.mark.parametrize("search", ["full", "racing"])
def test_a_scaler_sees_the_training_samples_of_a_fold(search):
    X = IRIS.copy()
    X[::50] *= 1e3
    folds = StratifiedKFold(3)
    scaled = SVCCV(Cs=[1.0, 100.0], gammas=[0.1, 1.0], cv=folds, search=search)
    scaled._scaler = StandardScaler()
    scaled.fit(X, KIND)
    for g, gamma in enumerate(scaled.gammas_):
        for c, C in enumerate(scaled.Cs_):
            pipeline = make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))
            wanted = cross_val_score(pipeline, X, KIND, cv=folds)
            fitted = ~np.isnan(scores_of(scaled)[g, c])
            assert fitted.any()
            np.testing.assert_allclose(scores_of(scaled)[g, c][fitted], wanted[fitted], atol=0.021)
    whole = StandardScaler().fit(X)
    assert np.array_equal(scaled._scaler.mean_, whole.mean_)
    rows = whole.transform(X)
    alone = SVC(**scaled.best_params_).fit(rows, KIND)
    assert np.array_equal(scaled.best_estimator_.predict(rows), alone.predict(rows))


@pytest.mark.parametrize("exponent", [-12, 12])
@pytest.mark.parametrize("search", ["full", "racing"])
def test_a_search_does_not_depend_on_the_unit_of_the_target(search, exponent):
    # Fits whose tolerance does not follow the target end early, or take a hundred times the steps.
    X = np.linspace(1.0, 15.0, 80)[:, np.newaxis]
    y, unit = X[:, 0] ** 2, 2.0**exponent
    grid = {"Cs": 4, "gammas": 3, "search": search, "cv": KFold(4, shuffle=True, random_state=0)}
    one = SVRCV(**grid, epsilon=0.5).fit(X, y)
    other = SVRCV(**grid, epsilon=0.5 * unit, refit=False).fit(X, y * unit)
    np.testing.assert_allclose(scores_of(other), scores_of(one), rtol=1e-9)
    assert other.best_params_["C"] == pytest.approx(one.best_params_["C"] * unit)
    assert other.best_params_["gamma"] == one.best_params_["gamma"]
    # The fit to all samples is that of SVR.
    alone = SVR(**one.best_params_, epsilon=0.5).fit(X, y)
    assert np.array_equal(one.predict(X), alone.predict(X))


def test_it_stands_in_a_pipeline_and_can_be_saved(tmp_path):
    pipeline = make_pipeline(StandardScaler(), SVCCV(Cs=3, gammas=3, cv=StratifiedKFold(3).n_splits))
    assert pipeline.fit(IRIS, WORDS).score(IRIS, WORDS) > 0.95
    search = pipeline[-1]
    svmarrow.save(search, tmp_path / "search.safetensors")
    again = svmarrow.load(tmp_path / "search.safetensors")
    np.testing.assert_array_equal(scores_of(again), scores_of(search))
    np.testing.assert_array_equal(again.decision_function(IRIS), search.decision_function(IRIS))
    assert again.best_params_ == search.best_params_


def test_the_map_shows_the_grid():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    search = SVCCV(Cs=4, gammas=3, cv=2).fit(IRIS, KIND)
    display = search.plot()
    assert display.mesh_.get_array().shape == (3, 4)
    np.testing.assert_allclose(display.mesh_.get_array(), scores_of(search).mean(axis=2))
    assert display.line_ is None
    assert display.ax_.get_xscale() == "log"
    curve = SVCCV(Cs=4, kernel="linear", cv=2).fit(IRIS, KIND).plot()
    assert curve.mesh_ is None
    assert curve.line_.get_xdata().size == 4
    with pytest.raises(ValueError, match="scores have shape"):
        GridScoresDisplay([[1.0, 2.0]], Cs=[1.0])


def test_progress_tells_the_best_so_far(capsys):
    X, y = make_moons(2500, noise=0.3, random_state=0)
    SVCCV(verbose=True, refit=False).fit(X, y)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("search: ")]
    assert not told or " %, " in told[-1]


def test_concurrent_searches():
    results = {}

    def fit(name):
        results[name] = scores_of(SVCCV(Cs=3, gammas=3).fit(IRIS, KIND))

    workers = [threading.Thread(target=fit, args=(name,)) for name in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for name in range(1, 4):
        np.testing.assert_array_equal(results[name], results[0])
