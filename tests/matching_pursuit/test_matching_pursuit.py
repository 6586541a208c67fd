"""Kernel matching pursuit against figures 1 and 3, scikit-learn's OMP, and its own promises."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, OrthogonalMatchingPursuit
from sklearn.preprocessing import PolynomialFeatures

from helpers import reference
from svmarrow import KMPClassifier, KMPRegressor, compress, load
from svmarrow.io import load_libsvm_model, save_libsvm_model

RBF = ("rbf", 0.5, 0.0, 3)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=120)
    return X, y, np.column_stack([y, X[:, 2] ** 2, np.tanh(X[:, 0])])


@pytest.mark.parametrize("variant", ["prefit", "backfit"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_every_step_is_that_of_the_figure(problem, variant, constant, several, weighted, precision):
    X, y, Y = problem
    targets = Y if several else y
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(X)) if weighted else None
    K = reference.kernel(RBF, X, X)
    order, steps = reference.matching_pursuit(K, targets, 15, variant, constant, weights)
    model = KMPRegressor(15, variant=variant, gamma=0.5, fit_intercept=constant, precision=precision)
    model.fit(X, targets, sample_weight=weights)
    assert model.support_.tolist() == order.tolist()
    for size in (1, 7, 15):
        small = model.path_[size]
        expected = steps[size - 1 + constant]
        assert small.expansion_.coefficients == pytest.approx(expected[int(constant) :], abs=1e-7)
        if constant:
            assert small.intercept_ == pytest.approx(expected[0], abs=1e-7)
    assert model.predict(X).shape == targets.shape


def test_back_fitting_is_orthogonal_matching_pursuit(problem):
    X, y, _ = problem
    K = reference.kernel(RBF, X, X)
    # scikit-learn compares products alone, so its columns must have length one for the same choice.
    scaled = K / np.linalg.norm(K, axis=0)
    peer = OrthogonalMatchingPursuit(n_nonzero_coefs=20, fit_intercept=False).fit(scaled, y)
    model = KMPRegressor(20, variant="backfit", gamma=0.5, fit_intercept=False).fit(X, y)
    assert sorted(model.support_) == np.flatnonzero(peer.coef_).tolist()
    assert model.predict(X) == pytest.approx(peer.predict(scaled), abs=1e-8)


@pytest.mark.parametrize("variant", ["prefit", "backfit"])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_residuals_are_orthogonal_to_the_chosen_columns(problem, variant, precision):
    X, _, Y = problem
    model = KMPRegressor(40, variant=variant, gamma=0.5, precision=precision).fit(X, Y)
    D = np.column_stack([np.ones(len(X)), reference.kernel(RBF, X, X[model.support_])])
    residual = Y - model.predict(X)
    cosine = (D.T @ residual) / np.outer(np.linalg.norm(D, axis=0), np.linalg.norm(residual, axis=0))
    assert np.abs(cosine).max() < 1e-10
    assert (np.diff(model.path_.training_loss) < 0).all()


def test_pre_fitting_leaves_the_least_of_all_single_steps(problem):
    """Invariant of pre-fitting: no other function would have left a smaller residual at any step."""
    X, y, _ = problem
    model = KMPRegressor(6, gamma=0.5, fit_intercept=False).fit(X, y)
    K = reference.kernel(RBF, X, X)
    for step in range(6):
        chosen = model.support_[:step].tolist()
        left = [
            np.linalg.norm(y - K[:, [*chosen, p]] @ np.linalg.lstsq(K[:, [*chosen, p]], y)[0])
            for p in range(len(X))
            if p not in chosen
        ]
        assert model.path_.training_loss[step + 1] == pytest.approx(0.5 * min(left) ** 2 / len(X), rel=1e-9)


def test_classifier_joint_over_classes(datasets):
    X, y = datasets["digits"]
    model = KMPClassifier(150, gamma=0.05).fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) > 0.93
    assert model.expansion_.n_outputs == 10
    T = np.where(y[:600, None] == np.arange(10), 1.0, -1.0)
    K = reference.kernel(("rbf", 0.05, 0.0, 3), X[:600], X[:600])
    order, _ = reference.matching_pursuit(K, T, 30, "prefit", constant=True)
    assert model.support_[:30].tolist() == order.tolist()


def test_path(datasets):
    X, y = datasets["moons"]
    model = KMPClassifier(40, gamma=2.0).fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    path = model.path_
    assert list(path.sizes) == [model.n_vectors_ for model in path] == list(range(41))
    assert len(path) == 41
    assert path.order.tolist() == model.support_.tolist()
    assert path.residual_norms is None
    scores = path.scores(X[400:], y[400:])
    assert scores == pytest.approx(1.0 - path.validation_error)
    for size in (0, 3, 40):
        small = path[size]
        assert small.n_vectors_ == size
        assert small.score(X[400:], y[400:]) == pytest.approx(scores[size])
        targets = np.where(y[400:] == "right", 1.0, -1.0)
        loss = 0.5 * ((small.decision_function(X[400:]) - targets) ** 2).mean()
        assert path.validation_loss[size] == pytest.approx(loss)
    best = path.select(X[400:], y[400:])
    assert best.score(X[400:], y[400:]) == scores.max()
    for wrong, error in [(41, IndexError), (-1, IndexError), (2.5, TypeError)]:
        with pytest.raises(error, match="size="):
            path[wrong]


def test_models_are_compressed_and_saved(datasets, tmp_path):
    X, y = datasets["iris"]
    model = KMPClassifier(30, gamma=2.0).fit(X, y)
    small = compress(model, n_vectors=12)
    assert small.score(X, y) > 0.9
    model.save(tmp_path / "m.safetensors")
    assert (load(tmp_path / "m.safetensors").predict(X) == model.predict(X)).all()
    save_libsvm_model(model, tmp_path / "m.libsvm")
    again = load_libsvm_model(tmp_path / "m.libsvm", n_features=4)
    assert (again.predict(X) == model.predict(X)).mean() > 0.99
    regressor = KMPRegressor(10, gamma=2.0).fit(X, X[:, 0])
    save_libsvm_model(regressor, tmp_path / "r.libsvm")
    read = load_libsvm_model(tmp_path / "r.libsvm", n_features=4)
    assert read.predict(X) == pytest.approx(regressor.predict(X))


@pytest.mark.parametrize("kind", ["float32", "csr", "csr32"])
def test_layouts(problem, kind):
    X, y, _ = problem
    X = np.round(X, 2).astype(np.float32)
    plain = KMPRegressor(12, gamma=0.5).fit(X.astype(np.float64), y)
    rows = {"float32": X, "csr": sp.csr_array(X.astype(np.float64)), "csr32": sp.csr_array(X)}[kind]
    model = KMPRegressor(12, gamma=0.5).fit(rows, y)
    assert model.support_.tolist() == plain.support_.tolist()
    assert model.predict(rows) == pytest.approx(plain.predict(X.astype(np.float64)), abs=1e-4)
    assert model.expansion_.vectors.dtype == rows.dtype


def test_degenerate_dictionaries_end_cleanly():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    y = rng.normal(size=30)
    doubled = np.vstack([X, X])
    model = KMPRegressor(60, gamma=1.0, fit_intercept=False).fit(doubled, np.concatenate([y, y]))
    assert model.n_vectors_ <= 30
    assert len(set((model.support_ % 30).tolist())) == model.n_vectors_
    constant = KMPRegressor(5).fit(X, np.full(30, 3.5))
    assert constant.n_vectors_ == 0
    assert constant.predict(X[:2]) == pytest.approx([3.5, 3.5], rel=1e-14)
    zero = KMPRegressor(5, kernel="linear", fit_intercept=False).fit(np.zeros((9, 2)), np.arange(9.0))
    assert zero.n_vectors_ == 0
    assert KMPRegressor(50, candidates=4, random_state=0).fit(X, y).n_vectors_ == 4
    assert KMPRegressor(5, fit_intercept=False).fit(X, np.zeros(30)).n_vectors_ == 0


# Any loss


@pytest.fixture(scope="module")
def two_classes():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 2))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.6 * rng.normal(size=150) > 0, 1.0, -1.0)
    return X, y


def model_of(loss, n, **options):
    cls = KMPRegressor if loss == "huber" else KMPClassifier
    return cls(n, loss=loss, gamma=0.5, fit_intercept=False, **options)


# Squared error sets all coefficients anew at each step of "backfit": tested above.
@pytest.mark.parametrize(
    ("variant", "loss"),
    [
        ("basic", "squared_error"),
        *product(["basic", "backfit"], sorted({*reference.margin_losses()} - {"squared_error"})),
    ],
)
def test_figure_4(two_classes, loss, variant):
    X, y = two_classes
    D = reference.kernel(RBF, X, X)
    every = 3 if variant == "backfit" else None
    # Saturated after the second setting of all coefficients: what follows is rounding.
    n = 5 if loss == "one_minus_tanh" else 9
    order, steps = reference.loss_pursuit(D, y, n, reference.margin_losses()[loss], every)
    with warnings.catch_warnings():
        # A step may return to a function.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = model_of(loss, n, variant=variant, max_iter=n, backfit_every=3).fit(X, y)
    assert model.support_.tolist() == list(dict.fromkeys(order))
    a = np.zeros(len(X))
    a[model.support_] = model.expansion_.coefficients[:, 0]
    value = reference.margin_losses()[loss][0]
    ours, theirs = value(y, D @ a).mean(), value(y, D @ steps[-1]).mean()
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert model.path_.training_loss[-1] == pytest.approx(ours, rel=1e-9)
    assert model.path_.training_loss[1:] == pytest.approx([value(y, D @ s).mean() for s in steps], rel=1e-6)
    assert (np.diff(model.path_.training_loss) <= 1e-12).all()


@pytest.mark.parametrize(
    "loss", ["squared_tanh", "logistic", "exponential", "squared_hinge", "soft_margin", "huber"]
)
def test_after_back_fitting_no_coefficient_lowers_the_loss(two_classes, loss):
    X, y = two_classes
    weights = np.random.default_rng(1).uniform(0.1, 2.0, len(y))
    model = model_of(loss, 12, backfit_every=1).set_params(fit_intercept=True)
    model.fit(X, y, sample_weight=weights)
    D = np.column_stack([np.ones(len(y)), reference.kernel(RBF, X, X[model.support_])])
    f = model.predict(X) if loss == "huber" else model.decision_function(X)
    slope = reference.margin_losses()[loss][1]
    start = D.T @ (weights * slope(y, np.zeros(len(y))))
    assert np.linalg.norm(D.T @ (weights * slope(y, f))) < 1e-5 * np.linalg.norm(start)


def test_basic_pursuit_is_figure_1(problem):
    X, y, Y = problem
    K = reference.kernel(RBF, X, X)
    for targets in (y, Y):
        order, steps = reference.matching_pursuit(K, targets, 40, "basic")
        model = KMPRegressor(40, variant="basic", gamma=0.5, fit_intercept=False).fit(X, targets)
        assert model.support_.tolist() == list(dict.fromkeys(order.tolist()))
        a = np.zeros((len(X), np.atleast_2d(targets.T).shape[0]))
        np.add.at(a, order, np.array(steps))
        assert model.expansion_.coefficients == pytest.approx(a[model.support_], abs=1e-8)
        # Chosen again and again: fewer functions than steps.
        assert model.path_.sizes[-1] < len(model.path_.step_sizes) - 1 == 40
        assert model.path_.step_sizes[model.path_.step_of(5)] == 5


class Quartic:
    """A loss of the user."""

    def value(self, y, f):
        return (f - y) ** 4 + (f - y) ** 2

    def gradient(self, y, f):
        return 4 * (f - y) ** 3 + 2 * (f - y)

    def hessian(self, y, f):
        return 12 * (f - y) ** 2 + 2


@pytest.mark.parametrize(
    ("variant", "loss"),
    [("prefit", "squared_error"), ("backfit", "squared_error"), ("backfit", "huber"), ("basic", "huber")],
)
def test_the_limit_of_steps_is_no_convergence(problem, variant, loss):
    X, y, _ = problem
    limited = KMPRegressor(20, variant=variant, loss=loss, gamma=0.5, max_iter=5)
    with pytest.warns(
        ConvergenceWarning, match=r"ended early \(max_iter\) with \d functions of 20.*raise max_iter"
    ):
        limited.fit(X, y)
    assert limited.path_.stop == "max_iter"
    # The size comes first, or the tolerance.
    assert KMPRegressor(5, variant="backfit", loss=loss, gamma=0.5).fit(X, y).path_.stop == "converged"
    assert limited.set_params(tol=0.9).fit(X, y).path_.stop == "converged"


def test_losses_of_the_user(problem):
    X, y, Y = problem
    D = reference.kernel(RBF, X, X)
    loss = Quartic()
    order, steps = reference.loss_pursuit(D, y, 8, (loss.value, loss.gradient), 4)
    model = KMPRegressor(8, loss=loss, gamma=0.5, fit_intercept=False, max_iter=8, backfit_every=4)
    with warnings.catch_warnings():
        # A step may return to a function.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.support_.tolist() == list(dict.fromkeys(order))
    assert model.predict(X) == pytest.approx(D @ steps[-1], abs=1e-4)
    assert KMPRegressor(8, loss=loss).fit(X, Y, X_val=X[:9], y_val=Y[:9]).predict(X).shape == Y.shape

    class Broken(Quartic):
        def gradient(self, y, f):
            raise KeyError("mine", y.size - f.size)

    class Misshapen(Quartic):
        def hessian(self, y, f):
            return (y + f)[:3]

    with pytest.raises(KeyError, match="mine"):
        KMPRegressor(5, loss=Broken()).fit(X, y)
    with pytest.raises(ValueError, match="hessian of the loss returned shape"):
        KMPRegressor(5, loss=Misshapen()).fit(X, y)


def test_losses_and_variants_are_refused_by_name(problem):
    X, y, _ = problem
    for options, message in [
        ({"loss": "logistic"}, "loss='logistic' is not allowed"),
        ({"loss": "huber", "variant": "prefit"}, "variant='prefit' is not allowed"),
        ({"delta": 0.0}, "delta=0.0"),
        ({"backfit_every": 0}, "backfit_every=0"),
        ({"candidates": 0}, "candidates=0"),
        ({"candidates": np.ones((3, 5))}, "5 columns"),
        ({"functions": 3}, "functions=3"),
        ({"kernel": ["rbf", "precomputed"]}, "alone, not in a list"),
        ({"tol": -1.0}, "tol=-1"),
        ({"max_iter": None}, "max_iter=None .* -1 for no limit"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"random_state": "seed"}, "random_state='seed'"),
    ]:
        with pytest.raises(ValueError, match=message):
            KMPRegressor(5, **options).fit(X, y)


# Dictionaries


def test_several_kernels_and_widths(problem):
    X, y, _ = problem
    gammas = [0.1, 0.5, 3.0]
    specs = [("rbf", g, 0.0, 3) for g in gammas] + [("linear", 1.0, 0.0, 3)]
    D = np.column_stack([reference.kernel(spec, X, X) for spec in specs])
    order, _ = reference.matching_pursuit(D, y, 12, "prefit", constant=True)
    model = KMPRegressor(12, kernel=["rbf", "linear"], gamma=gammas).fit(X, y)
    assert (model.support_kernels_ * len(X) + model.support_).tolist() == order.tolist()
    assert len(model.expansions_) == 4
    total = sum(e.decision_function(X)[:, 0] for e in model.expansions_)
    assert model.predict(X) == pytest.approx(total)
    assert model.expansion_.decision_function(X)[:, 0] == pytest.approx(total)
    assert [one.kernel_spec for one in model.expansion_.parts] == [
        one.kernel_spec for one in model.expansions_ if one.n_vectors
    ]
    assert model.path_.scores(X, y)[-1] == pytest.approx(model.score(X, y))


def test_a_kernel_for_each_class(datasets):
    X, y = datasets["moons"]
    kernels = {"left": {"gamma": 4.0}, "right": {"kernel": "laplacian", "gamma": 1.0}}
    model = KMPClassifier(25, class_kernels=kernels).fit(X, y)
    assert (np.where(model.support_kernels_ == 0, "left", "right") == y[model.support_]).all()
    assert [e.kernel for e in model.expansions_] == ["rbf", "laplacian"]
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="class_kernels="):
        KMPClassifier(5, class_kernels={"up": {}}).fit(X, y)


def test_functions_and_the_constant_as_candidates(problem):
    X, _, _ = problem
    y = 3.0 + 2.0 * X[:, 0] ** 2

    def functions(rows):
        return np.column_stack([rows[:, 0] ** 2, rows[:, 1]])

    model = KMPRegressor(4, functions=functions, fit_intercept="candidate", gamma=0.5).fit(X, y)
    assert model.predict(X) == pytest.approx(y, abs=1e-6)
    assert model.function_coef_[0, 0] == pytest.approx(2.0, abs=1e-6)
    assert model.intercept_ == pytest.approx([3.0], abs=1e-6)
    assert model.path_[2].predict(X) == pytest.approx(y, abs=1e-6)
    with pytest.raises(TypeError, match=r"not one kernel expansion: .*no kernels"):
        model.as_expansion()
    with pytest.raises(ValueError, match="functions returned"):
        KMPRegressor(4, functions=lambda rows: rows[:3]).fit(X, y)


def asymmetric(A, B):
    """Neither symmetric nor positive definite."""
    return np.exp(-np.abs(A @ np.array([[1.0], [2.0], [0.5]]) - 3.0 * B[:, 0]))


@pytest.mark.parametrize("kernel", ["function", "precomputed", "sigmoid"])
def test_kernels_that_are_not_positive_definite(problem, kernel):
    X, y, _ = problem
    D = asymmetric(X, X) if kernel != "sigmoid" else reference.kernel(("sigmoid", 0.5, 0.0, 3), X, X)
    order, steps = reference.matching_pursuit(D, y, 10, "prefit")
    options = {"function": {"kernel": asymmetric}, "sigmoid": {"kernel": "sigmoid", "gamma": 0.5}}
    model = KMPRegressor(len(order), fit_intercept=False, **options.get(kernel, {"kernel": kernel}))
    model.fit(D if kernel == "precomputed" else X, y)
    assert model.support_.tolist() == order.tolist()
    expected = D[:, order] @ steps[-1][:, 0]
    assert model.predict(D if kernel == "precomputed" else X) == pytest.approx(expected, abs=1e-7)


def test_given_points_and_drawn_rows(problem):
    X, y, _ = problem
    points = X[::7] + 0.1
    D = reference.kernel(RBF, X, points)
    order, _ = reference.matching_pursuit(D, y, 8, "prefit")
    model = KMPRegressor(8, candidates=points, gamma=0.5, fit_intercept=False).fit(X, y)
    assert model.support_.tolist() == order.tolist()
    assert np.array_equal(model.expansion_.vectors, points[order])
    drawn = KMPRegressor(8, candidates=0.25, gamma=0.5, random_state=3).fit(X, y)
    again = KMPRegressor(8, candidates=30, gamma=0.5, random_state=3).fit(X, y)
    assert drawn.support_.tolist() == again.support_.tolist()
    assert np.array_equal(drawn.expansion_.vectors, X[drawn.support_])


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
@pytest.mark.parametrize("memory", [{"sample_size": 59}, {"cache_size": 0.01}])
def test_beyond_the_budget_candidates_are_drawn(problem, loss, memory):
    X, y, _ = problem
    full = KMPRegressor(20, loss=loss, gamma=0.5).fit(X, y)
    model = KMPRegressor(20, loss=loss, gamma=0.5, random_state=0, **memory).fit(X, y)
    same = KMPRegressor(20, loss=loss, gamma=0.5, random_state=0, n_jobs=1, **memory).fit(X, y)
    assert model.support_.tolist() == same.support_.tolist()
    assert len(set(model.support_.tolist())) == 20
    assert full.score(X, y) < 1.03 * model.score(X, y)
    # As many as there are: every candidate is looked at.
    every = KMPRegressor(20, loss=loss, gamma=0.5, sample_size=len(X)).fit(X, y)
    assert every.support_.tolist() == full.support_.tolist()


def test_blocks_do_not_change_the_choice():
    """More functions than are active at once: the steps are still those of the figure."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(700, 4))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=700)
    K = reference.kernel(("rbf", 0.6, 0.0, 3), X, X)
    for variant in ("prefit", "backfit"):
        order, _ = reference.matching_pursuit(K, y, 60, variant, constant=True)
        for n_jobs in (1, 2):
            model = KMPRegressor(60, variant=variant, gamma=0.6, n_jobs=n_jobs).fit(X, y)
            assert model.support_.tolist() == order.tolist()


# Stopping


def test_early_stopping_takes_the_best_size(datasets):
    X, y = datasets["moons"]
    model = KMPClassifier(60, gamma=20.0, early_stopping=True, scoring="accuracy", random_state=1).fit(X, y)
    assert model.n_vectors_ == np.argmin(model.path_.validation_error)
    assert (model.path_.validation_error >= model.path_.validation_error[model.n_vectors_]).all()
    given = KMPClassifier(60, gamma=20.0, early_stopping=True, n_iter_no_change=5)
    given.fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    losses = given.path_.validation_loss
    assert given.n_vectors_ == np.argmin(losses)
    assert len(losses) == np.argmin(losses) + 6 < 61
    cross = KMPClassifier(40, gamma=20.0, early_stopping=True, cv=4).fit(X, y)
    assert cross.n_vectors_ == max(1, np.argmin(cross.path_.cv_curve)) == cross.path_.sizes[-1]
    with pytest.raises(ValueError, match="belong together"):
        given.fit(X, y, X_val=X)


def test_time_and_tolerance(problem):
    X, y, _ = problem
    model = KMPRegressor(100, gamma=0.5, tol=0.3, fit_intercept=False).fit(X, y)
    residual = np.linalg.norm(y - model.predict(X)) / np.linalg.norm(y)
    assert (
        residual <= 0.3 < np.linalg.norm(y - model.path_[model.n_vectors_ - 1].predict(X)) / np.linalg.norm(y)
    )
    with pytest.raises(ValueError, match="max_time=0"):
        KMPRegressor(100, max_time=0.0).fit(X, y)


def test_weights_are_repetitions(problem):
    X, y, _ = problem
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weights)
    for options in ({}, {"loss": "huber"}, {"variant": "basic"}):
        one = KMPRegressor(15, **options).fit(X, y, sample_weight=weights)
        two = KMPRegressor(15, **options).fit(X[repeated], y[repeated])
        assert np.array_equal(X[one.support_], X[repeated][two.support_])
        assert one.predict(X) == pytest.approx(two.predict(X), abs=1e-6)
        assert (weights[one.support_] > 0).all()


@pytest.mark.parametrize("variant", ["basic", "backfit"])
@pytest.mark.parametrize("loss", [*reference.margin_losses(), "of the user"])
def test_weights_are_repetitions_for_every_loss(two_classes, loss, variant):
    # Of the losses that are not convex too: steps are the same, not only where they lead.
    X, y = two_classes
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weights)
    cls = KMPRegressor if loss == "huber" else KMPClassifier
    # With a constant 1 - tanh ends where all rows are of the larger class, and is flat there; after
    # all coefficients were set anew twice, what follows is rounding.
    n = 3 if loss == "one_minus_tanh" else 12
    options = {"precision": "double", "backfit_every": 2, "fit_intercept": loss != "one_minus_tanh"}
    model = cls(n, loss=Quartic() if loss == "of the user" else loss, variant=variant, **options)
    one = model.fit(X, y, sample_weight=weights)
    two = clone(model).fit(X[repeated], y[repeated])
    assert np.array_equal(X[one.support_], X[repeated][two.support_])
    assert (weights[one.support_] > 0).all()
    for a, b in zip(one.path_.training_loss, two.path_.training_loss, strict=True):
        assert a == pytest.approx(b, rel=1e-6)
    for size in (1, n // 2, one.n_vectors_):
        f, g = (m.path_[size].expansion_.decision_function(X) for m in (one, two))
        assert f == pytest.approx(g, rel=1e-4, abs=1e-6)


def test_balanced_classes_are_rows_that_were_repeated(two_classes):
    X, y = two_classes
    rows = np.r_[np.flatnonzero(y > 0)[:60], np.flatnonzero(y < 0)[:20]]
    X, y = X[rows], y[rows]
    balanced = KMPClassifier(10, class_weight="balanced").fit(X, y)
    given = KMPClassifier(10, class_weight={-1: 2.0, 1: 2.0 / 3.0}).fit(X, y)
    repeated = KMPClassifier(10).fit(np.r_[X, X[60:], X[60:]], np.r_[y, y[60:], y[60:]])
    # Rows are counted by their weights: these are balanced already.
    weighted = KMPClassifier(10, class_weight="balanced").fit(X, y, np.where(y > 0, 1.0, 3.0))
    for model in (given, repeated, weighted):
        assert balanced.decision_function(X) == pytest.approx(model.decision_function(X), abs=1e-6)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("variant", ["prefit", "backfit"])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("sample_size", [None, 59])
def test_functions_that_share_a_large_part_are_told_apart(precision, variant, kernel, sample_size):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(1990, 2021, 400), rng.normal(size=(400, 2))])
    y = 0.1 * (X[:, 0] - 2005) + X[:, 1] - X[:, 2]
    parameters = {"kernel": kernel, "degree": 2, "coef0": 1.0, "random_state": 0}
    model = KMPRegressor(20, variant=variant, precision=precision, sample_size=sample_size, **parameters)
    assert model.fit(X, y).score(X, y) > 0.999
    assert 3 <= model.n_vectors_ <= 20
    labels = KMPClassifier(20, variant=variant, precision=precision, sample_size=sample_size, **parameters)
    assert labels.fit(X, y > 0).score(X, y > 0) > 0.95
    huber = KMPRegressor(20, loss="huber", delta=0.5, sample_size=sample_size, **parameters)
    assert huber.fit(X, y).score(X, y) > 0.999


def test_the_linear_kernel_ends_at_its_rank():
    X = np.random.default_rng(0).normal(size=(3000, 4))
    y = X @ [1.0, 2.0, 3.0, 4.0]
    for options in ({}, {"precision": "double"}, {"sample_size": 59}):
        model = KMPRegressor(50, kernel="linear", random_state=0, **options).fit(X, y)
        assert model.n_vectors_ <= 4
        assert model.score(X, y) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("seed", range(8))
def test_rounding_is_no_function_outside_the_span(precision, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    X = rng.normal(size=(300, d))
    y = np.sin(X @ rng.normal(size=d)) + 0.1 * rng.normal(size=300)
    for kernel, degree in (("linear", 1), ("poly", 3 if d < 4 else 2)):
        model = KMPRegressor(300, kernel=kernel, degree=degree, coef0=1.0, precision=precision).fit(X, y)
        columns = PolynomialFeatures(degree).fit_transform(X)
        assert model.n_vectors_ < columns.shape[1]
        expected = LinearRegression().fit(columns, y).predict(columns)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-4)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("variant", ["prefit", "backfit", "basic"])
def test_targets_of_any_size_are_fitted(problem, variant, precision):
    X, y, _ = problem
    model = KMPRegressor(10, gamma=0.5, variant=variant, precision=precision)
    expected = model.fit(X, y).predict(X)
    for exponent in (-400, -200, 0, 200, 400):
        size = float(2.0**exponent)
        np.testing.assert_allclose(model.fit(X, size * y).predict(X) / size, expected, atol=1e-5)


@pytest.mark.parametrize("size", [1e-140, 1e150])
def test_targets_whose_squares_cannot_be_summed_are_refused(problem, size):
    X, y, _ = problem
    with pytest.raises(ValueError, match="targets=numbers up to"):
        KMPRegressor(10, gamma=0.5).fit(X, size * y)


@pytest.mark.parametrize(("synonym", "name"), [("log_loss", "logistic"), ("hinge", "soft_margin")])
def test_scikit_learns_names_of_losses(synonym, name):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(X[:, 0] > 0.0, 1, -1)
    models = [KMPClassifier(4, loss=loss).fit(X, y) for loss in (synonym, name)]
    assert np.array_equal(*(model.decision_function(X) for model in models))
