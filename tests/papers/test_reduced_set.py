"""Selections over the whole kernel matrix: lossless where promised, the papers' problems, their paths."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path
from sklearn.preprocessing import StandardScaler

from helpers.reference import PAPER_METHODS, largest
from helpers.selections import expansion, from_scratch, space
from svmarrow import SVC, KernelExpansion, compress, compression_path
from svmarrow.papers import reduced_set
from svmarrow.papers.reduced_set import PaperSettings
from svmarrow.reduced_set import GradientSettings, SelectionSettings
from svmarrow.reduced_set.selection import as_arguments


@pytest.fixture(scope="module")
def digits_ovr(pixels):
    return SVC(C=10, gamma=0.001, multi_class="ovr").fit(*pixels[:2])


@pytest.fixture(scope="module")
def noisy():
    """The data of TR-132, section 4.1: two clouds in 10 dimensions that overlap much."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = 4 * rng.standard_normal((600, 10)) + np.where(y == 1, 1, -1)[:, None] * (np.arange(10) < 5)
    return X, y


@pytest.mark.parametrize(
    ("method", "settings"),
    [("rank", None), ("l0", PaperSettings(max_change=0.0)), ("backfit", None), ("prefit", None)],
)
def test_a_linear_machine_becomes_ten_vectors_without_loss(method, settings, noisy):
    X, y = noisy
    svc = SVC(kernel="linear", C=1.0).fit(X, y)
    assert svc.expansion_.n_vectors > 200
    path = reduced_set.path(svc, method=method, settings=settings, tol=1e-10)
    small = path[len(path)]
    wanted = svc.decision_function(X)
    if method in ("rank", "l0"):
        assert small.expansion_.n_vectors == 10
        np.testing.assert_allclose(small.decision_function(X), wanted, atol=1e-8 * np.abs(wanted).max())
    else:
        # The pursuits know the residual by subtraction, so they end within the square root of rounding.
        assert small.expansion_.n_vectors <= 10
        np.testing.assert_allclose(small.decision_function(X), wanted, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("method", ["rank", "l0"])
def test_lossless_for_a_polynomial_machine_with_many_outputs(method):
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((80, 3))
    full = KernelExpansion(Z, rng.standard_normal((80, 4)), np.zeros(4), kernel="poly", degree=2, coef0=1.0)
    settings = PaperSettings(max_change=0.0) if method == "l0" else None
    path = reduced_set.path(full, method=method, settings=settings, tol=1e-10)
    # Polynomials of degree 2 in 3 variables have 10 coefficients.
    assert len(path) == 10
    X = rng.standard_normal((50, 3))
    wanted = full.decision_function(X)
    found = path[10].decision_function(X)
    np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.parametrize("method", ["prefit", "rank", "l0", "l1", "lars"])
def test_residuals_fall_and_equal_the_distances(method, digits_ovr):
    path = reduced_set.path(digits_ovr, n_vectors=40, method=method)
    assert len(path) == 40
    assert (np.diff(path.residual_norms) <= 1e-12).all()
    full = digits_ovr.expansion_
    Z = np.asarray(full.vectors)
    K = np.exp(-0.001 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    for size in (1, 17, 40):
        rest = full.coefficients.copy()
        rest[path.order[:size]] -= path[size].expansion_.coefficients
        norm = np.sqrt(max(0.0, (rest * (K @ rest)).sum()))
        assert norm == pytest.approx(path.residual_norms[size], rel=1e-6)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("prefit", None),
        ("l0", None),
        ("l1", PaperSettings(inverse_weights=True)),
        ("lars", PaperSettings(joint=False)),
    ],
)
def test_a_choice_beats_chance(method, settings, digits_ovr):
    rng = np.random.default_rng(0)
    full = digits_ovr.expansion_
    path = reduced_set.path(digits_ovr, n_vectors=60, method=method, settings=settings)
    Z = np.asarray(full.vectors)
    K = np.exp(-0.001 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    wanted = K @ full.coefficients
    chance = []
    for _ in range(5):
        S = rng.choice(len(Z), 60, replace=False)
        B = np.linalg.solve(K[np.ix_(S, S)], wanted[S])
        rest = full.coefficients.copy()
        rest[S] -= B
        chance.append(np.sqrt((rest * (K @ rest)).sum()))
    # LARS looks at one output after the other: a third of all random choices are better.
    assert path.residual_norms[60] < (np.mean(chance) if method == "lars" else min(chance))


def naive_lasso(K, target, half_lambda, sweeps=3000):
    """Coordinate descent for ||w - sum b phi||^2 + 2 half_lambda |b|_1, straight from equation 4."""
    b = np.zeros(len(K))
    for _ in range(sweeps):
        for i in range(len(K)):
            z = target[i] - K[i] @ b + K[i, i] * b[i]
            b[i] = np.sign(z) * max(abs(z) - half_lambda, 0.0) / K[i, i]
    return b


@pytest.mark.parametrize("inverse", [False, True])
def test_the_l1_path_has_the_vectors_of_the_naive_one(inverse):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    svc = SVC(gamma=0.05).fit(X[:150], y[:150])
    alpha = svc.expansion_.coefficients[:, 0]
    Z = np.asarray(svc.expansion_.vectors)
    K = np.exp(-0.05 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    size = np.abs(alpha) if inverse else np.ones_like(alpha)
    settings = PaperSettings(joint=False, inverse_weights=inverse)
    path = largest(svc, n_vectors=10, method="l1", settings=settings)
    assert path.expansion_.n_vectors == 10
    order = reduced_set.path(svc, n_vectors=10, method="l1", settings=settings).order
    # Weights c_i are the unit of b_i: with c_i = 1 / size_i the scaled vectors size_i phi_i have weight 1.
    scaled = K * size[:, None] * size[None]
    target = size * (K @ alpha)
    for share in (0.9, 0.7, 0.5):
        inside = np.flatnonzero(naive_lasso(scaled, target, share * np.abs(target).max(), 300))
        if len(inside) <= 10:
            assert set(inside) <= set(order.tolist())


def test_lossy_l0_keeps_fewer_the_more_may_change(digits_ovr):
    sizes = [
        len(reduced_set.path(digits_ovr, method="l0", settings=PaperSettings(max_change=gamma)))
        for gamma in (1e-4, 1e-2, 1.0)
    ]
    assert sizes[0] > sizes[1] > sizes[2] > 0


@pytest.fixture(scope="module")
def random_expansion():
    """60 vectors in three columns, two outputs, and their kernel matrix."""
    rng = np.random.default_rng(0)
    Z, alpha = rng.standard_normal((60, 3)), rng.standard_normal((60, 2))
    K = np.exp(-0.5 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    return Z, alpha, K


def of(Z, alpha):
    return KernelExpansion(Z, alpha, np.zeros(alpha.shape[1]), kernel="rbf", gamma=0.5)


@pytest.mark.parametrize("method", ["l0", "l1"])
@pytest.mark.parametrize(("outputs", "joint"), [(1, True), (2, True), (2, False)])
def test_the_order_does_not_depend_on_the_size_of_the_coefficients(method, outputs, joint, random_expansion):
    Z, alpha, _ = random_expansion
    settings = PaperSettings(joint=joint)
    first, *others = (
        reduced_set.path(of(Z, c * alpha[:, :outputs]), n_vectors=40, method=method, settings=settings, tol=0)
        for c in (1.0, 500.0, 1e-6)
    )
    assert len(first) == 40
    for other in others:
        np.testing.assert_array_equal(other.order, first.order)


@pytest.mark.parametrize("size", [1.0, 500.0, 1e-6])
def test_a_vector_alone_is_left_until_gamma_is_a_quarter_of_its_squared_length(size):
    """Orthonormal vectors do not see each other: b + gamma / b = alpha has a solution up to alpha^2 / 4."""
    alpha = size * np.array([3.0, -5.0, 1.0, 4.0, -2.0])
    full = KernelExpansion(np.eye(5), alpha[:, None], np.zeros(1), kernel="linear")
    for bound, kept in [(1.1, [1, 3, 0]), (3.0, [1, 3]), (5.0, [1])]:
        path = reduced_set.path(full, method="l0", settings=PaperSettings(max_change=bound * size**2), tol=0)
        assert path.order.tolist() == kept
    with pytest.raises(ValueError, match="small enough for a vector to be left"):
        largest(full, n_vectors=1, method="l0", settings=PaperSettings(max_change=7.0 * size**2))
    path = reduced_set.path(full, method="l0", tol=0)
    assert path.order.tolist() == [1, 3, 0, 4, 2]


def lasso_of(gram, target):
    """scikit-learn's path for features F with F'F = gram and F'y = target: lambda / 2, and coefficients."""
    values, vectors = np.linalg.eigh(gram)
    features = (vectors * np.sqrt(values)).T
    y = (vectors / np.sqrt(values)).T @ target
    alphas, _, coefficients = lars_path(features, y, method="lasso", alpha_min=0)
    return alphas * len(y), coefficients


def assert_is_the_lasso(path, gram, target):
    knots, coefficients = lasso_of(gram, target)
    assert len(path) == len(gram)
    for size in range(1, len(path)):
        at = np.abs(knots - path.penalties[size] / 2).argmin()
        assert abs(knots[at] - path.penalties[size] / 2) < 1e-8 * knots[0]
        found = np.zeros(len(gram))
        found[path.order[:size]] = path[size].coefficients[:, 0]
        np.testing.assert_allclose(found, coefficients[:, at], atol=1e-8 * np.abs(coefficients).max())


def test_the_l1_path_is_that_of_scikit_learn(random_expansion):
    Z, alpha, K = (part[:40] for part in random_expansion)
    K = K[:, :40]
    settings = PaperSettings(refit=False)
    path = reduced_set.path(of(Z, alpha[:, :1]), n_vectors=40, method="l1", settings=settings, tol=0)
    assert_is_the_lasso(path, K, K @ alpha[:, 0])
    assert not path.orthogonal
    for size in (1, 20, 40):
        rest = alpha[:, 0].copy()
        rest[path.order[:size]] -= path[size].coefficients[:, 0]
        assert path.residual_norms[size] == pytest.approx(
            np.sqrt(max(0.0, rest @ K @ rest)), abs=1e-6 * path.residual_norms[0]
        )
    # The sizes of the best coefficients have the same vectors.
    best = reduced_set.path(of(Z, alpha[:, :1]), n_vectors=40, method="l1", tol=0)
    np.testing.assert_array_equal(best.order, path.order)
    assert (best.residual_norms[1:-1] < path.residual_norms[1:-1]).all()


@pytest.mark.parametrize("C", [1.0, 30.0])
def test_lars_is_the_lasso_of_the_machine_trained_again(C, cancer):
    X, y = cancer[0][:120], cancer[1][:120]
    svc = SVC(C=C, gamma=0.1).fit(X, y)
    full = svc.expansion_
    alpha, Z = full.coefficients[:, 0], np.asarray(full.vectors)
    K = np.exp(-0.1 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    # ||w||^2 + 2 C sum of squares, with the C that the coefficients show.
    cost = 2 * np.abs(alpha).max()
    gram = cost * K @ K + K
    target = cost * K @ (np.sign(alpha) - full.intercepts[0])
    path = reduced_set.path(full, n_vectors=len(Z), method="lars", settings=PaperSettings(refit=False), tol=0)
    assert_is_the_lasso(path, gram, target)
    named = PaperSettings(refit=False, cost=float(cost))
    np.testing.assert_array_equal(
        path.order, reduced_set.path(full, n_vectors=len(Z), method="lars", settings=named, tol=0).order
    )


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("method", ["l1", "lars"])
def test_outputs_together_meet_the_conditions_of_their_problem(method, digits_ovr):
    full = digits_ovr.expansion_
    Z, alpha = np.asarray(full.vectors), full.coefficients
    K = np.exp(-0.001 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    gram, target = K, K @ alpha
    if method == "lars":
        cost = 2 * np.abs(alpha).max()
        wanted = np.where(alpha != 0, np.sign(alpha) - full.intercepts, K @ alpha)
        gram, target = cost * K @ K + K, cost * K @ wanted
    together = PaperSettings(joint=True)
    first = reduced_set.path(full, n_vectors=1, method=method, settings=together, tol=0).penalties[0]
    for share in (0.5, 0.1, 0.02) if method == "l1" else (0.8, 0.5):
        settings = PaperSettings(joint=True, refit=False, penalty=float(share * first))
        path = reduced_set.path(full, method=method, settings=settings, tol=0)
        assert path.stop == "converged"
        B = np.zeros_like(alpha)
        B[path.order] = path[len(path)].coefficients
        R, half = target - gram @ B, share * first / 2
        inside = np.abs(B).max(axis=1) > 0
        assert (np.abs(R).sum(axis=1) <= half * 1.0011).all()
        along = (R * B).sum(axis=1)[inside] / np.abs(B[inside]).max(axis=1)
        np.testing.assert_allclose(along, half, rtol=1.1e-3)


@pytest.mark.parametrize("method", ["l1", "lars"])
@pytest.mark.parametrize("joint", [True, False])
def test_own_coefficients_of_unusual_models(method, joint):
    settings = PaperSettings(joint=joint, refit=False)
    one = of(np.ones((1, 3)), np.array([[2.0, -1.0]]))
    assert reduced_set.path(one, method=method, settings=settings).order.tolist() == [0]
    rng = np.random.default_rng(1)
    Z, alpha = rng.standard_normal((12, 3)), rng.standard_normal((12, 2))
    twice = of(np.vstack([Z, Z]), np.vstack([alpha, alpha]))
    path = reduced_set.path(twice, method=method, settings=settings, tol=0)
    assert np.isfinite(path.residual_norms).all()
    assert (np.diff(path.residual_norms[:4]) < 0).all() or method == "lars"
    if not joint:
        # A copy has nothing to add; another output may take the other one.
        alone = of(np.vstack([Z, Z]), np.vstack([alpha, alpha])[:, :1])
        path = reduced_set.path(alone, method=method, settings=settings, tol=0)
        assert len(path) == len({i % 12 for i in path.order}) == 12
    silent = of(Z, np.column_stack([alpha[:, 0], np.zeros(12)]))
    path = reduced_set.path(silent, n_vectors=6, method="l1", settings=settings, tol=0)
    assert (path[6].coefficients[:, 1] == 0).all()
    alone = reduced_set.path(
        of(Z, alpha[:, :1]), n_vectors=6, method="l1", settings=PaperSettings(refit=False), tol=0
    )
    if not joint:
        np.testing.assert_allclose(path[6].coefficients[:, 0], alone[6].coefficients[:, 0], atol=1e-12)
    chunked = PaperSettings(joint=joint, refit=False, chunk=6)
    with pytest.raises(ValueError, match="refit=false"):
        reduced_set.path(silent, n_vectors=3, method=method, settings=chunked)


def test_lars_reaches_all_vectors(digits_ovr, cancer):
    for model in (digits_ovr, SVC(C=10, gamma=0.01).fit(*cancer[:2])):
        count = min(100, model.expansion_.n_vectors)
        path = reduced_set.path(model, n_vectors=count, method="lars", tol=0)
        assert len(path) == count
        # Without settings, each output selects for itself.
        alone = PaperSettings(joint=False)
        alone_path = reduced_set.path(model, n_vectors=count, method="lars", settings=alone, tol=0)
        np.testing.assert_array_equal(path.order, alone_path.order)


def test_refusals(digits_ovr):
    for options, message in [
        ({"method": "l2"}, "method='l2'"),
        ({"method": "l1", "settings": 1}, "settings=1"),
        ({"method": "l1", "candidates": "samples", "X": np.zeros((9, 64))}, "for the pursuits only"),
        ({"method": "prefit", "settings": PaperSettings(cost=2.0)}, r"cost=2\.0 is of no use"),
    ]:
        with pytest.raises(ValueError, match=message):
            largest(digits_ovr, n_vectors=5, **options)
    with pytest.raises(ValueError, match=r"max_change=1000000000\.0 is not allowed"):
        largest(digits_ovr, n_vectors=5, method="l0", settings=PaperSettings(max_change=1e9))
    for name, value in [("cost", 0.0), ("max_change", -1.0), ("joint", 2)]:
        with pytest.raises(ValueError, match=f"{name}="):
            PaperSettings(**{name: value})


def test_basic_steps_of_outputs_apart_stay_apart():
    full = expansion(m=50, q=3)
    path = reduced_set.path(full, n_vectors=12, method="basic", settings=PaperSettings(joint=False), tol=0)
    assert (np.diff(path.residual_norms) <= 1e-12).all()
    assert (path[12].coefficients == 0).any()
    for size in (1, 6, 12):
        assert path.residual_norms[size] == pytest.approx(from_scratch(full, path, size), rel=1e-6)


@pytest.mark.parametrize("method", ["l0", "l1", "lars"])
def test_penalties_of_outputs_apart_give_a_union(method):
    full = expansion(m=40, q=2)
    path = reduced_set.path(full, n_vectors=20, method=method, settings=PaperSettings(joint=False), tol=0)
    assert len(set(path.order.tolist())) == len(path) == 20
    assert (np.diff(path.residual_norms) <= 1e-12).all()


@pytest.mark.parametrize("joint", [True, False])
def test_the_path_over_lambda_reports_where_vectors_enter(joint):
    full = expansion(m=50, q=2)
    path = reduced_set.path(full, n_vectors=20, method="l1", settings=PaperSettings(joint=joint), tol=0)
    assert path.penalties.shape == (20,)
    assert (np.diff(path.penalties) <= 0).all()
    K, aligned, _ = space(full)
    # Nothing is in above the largest dual norm; one level of the path is 7 % below the one before.
    first = 2 * (np.abs(aligned).sum(axis=1) if joint else np.abs(aligned).max(axis=1)).max()
    assert 0.9 * first < path.penalties[0] <= first * (1 + 1e-12)
    for at in (0.5 * first, 0.1 * first):
        settings = PaperSettings(joint=joint, penalty=at)
        kept = set(reduced_set.path(full, method="l1", settings=settings, tol=0).order.tolist())
        B = naive_penalised(K, aligned, at / 2, joint)
        sizes = np.abs(B).max(axis=1)
        assert set(np.flatnonzero(sizes > 1e-6).tolist()) == kept
    with pytest.raises(ValueError, match=r"penalty=1000\.0 is not allowed: it must be small enough"):
        reduced_set.path(full, method="l1", settings=PaperSettings(penalty=1000.0))
    assert reduced_set.path(full, n_vectors=5, method="backfit").penalties is None


def naive_penalised(K, aligned, half, joint, steps=4000):
    """Proximal gradient for tr(B'KB) - 2 tr(B'T) + 2 half sum_i ||B_i||, l1 or largest entry of a row."""
    B, rate = np.zeros_like(aligned), 1 / np.linalg.eigvalsh(K)[-1]
    for _ in range(steps):
        V = B + rate * (aligned - K @ B)
        if joint:
            for i, v in enumerate(V):
                # v minus its projection on the l1 ball of radius rate * half.
                sizes, radius = np.sort(np.abs(v))[::-1], rate * half
                if sizes.sum() <= radius:
                    B[i] = 0
                    continue
                levels = (np.cumsum(sizes) - radius) / np.arange(1, len(v) + 1)
                B[i] = np.clip(v, -levels.max(), levels.max())
        else:
            B = np.sign(V) * np.maximum(np.abs(V) - rate * half, 0)
    return B


@pytest.mark.parametrize("method", ["backfit", "prefit", "rank"])
def test_the_selections_of_the_product_are_the_same_there(method):
    full = expansion()
    ours, theirs = (make(full, n_vectors=9, method=method) for make in (compression_path, reduced_set.path))
    np.testing.assert_array_equal(theirs.order, ours.order)
    np.testing.assert_array_equal(theirs[9].coefficients, ours[9].coefficients)


def test_defaults_of_both_settings_are_the_same_but_for_lars():
    for method in (*PAPER_METHODS, "backfit"):
        expected = as_arguments(SelectionSettings(joint=method != "lars"), method)
        assert as_arguments(PaperSettings(), method) == expected


@pytest.mark.parametrize("method", PAPER_METHODS)
def test_the_product_refuses_the_selections_of_the_papers(method):
    full = expansion()
    for run in (compression_path, compress):
        with pytest.raises(ValueError, match=f"method='{method}' is not allowed: it must be .*'backfit'"):
            run(full, n_vectors=5, method=method)
    with pytest.raises(TypeError, match="penalty"):
        SelectionSettings(penalty=1.0)


def test_the_settings_must_be_those_of_the_papers():
    for settings in (SelectionSettings(), GradientSettings()):
        with pytest.raises(ValueError, match=r"settings=.* must be None or a PaperSettings"):
            reduced_set.path(expansion(), settings=settings)
    with pytest.raises(ValueError, match=r"method='gradient' is not allowed: it must be .*'lars'"):
        reduced_set.path(expansion(), n_vectors=5, method="gradient")
    with pytest.raises(ValueError, match=r"penalty=1\.0 is of no use .* read by 'l1', 'lars'"):
        compression_path(expansion(), settings=PaperSettings(penalty=1.0))


def test_a_warning_names_the_line_of_the_call():
    for run in (compression_path, reduced_set.path):
        with pytest.warns(ConvergenceWarning, match="ended early") as caught:
            stopped_early(run)
        assert caught[0].filename == __file__


def stopped_early(run):
    """A run that ends by its time limit with at least one vector."""
    seconds = 0.05
    while True:
        try:
            return run(expansion(m=1200, q=1), n_vectors=1000, method="rank", tol=0.0, max_time=seconds)
        except ValueError as error:
            if "was over before the first vector" not in str(error):
                raise
            seconds *= 2
