"""Every selection: the pursuits by their definition, residuals, degenerate models, chunks, memory."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from helpers.reference import PAPER_METHODS, greedy, largest, path_by
from helpers.selections import expansion, from_scratch, space
from svmarrow import SVC, KernelExpansion, ReducedSet, compress, compression_path
from svmarrow.cascade import ExactCascade
from svmarrow.papers.reduced_set import PaperSettings
from svmarrow.reduced_set import SelectionSettings

METHODS = ("backfit", "prefit", "rank", *PAPER_METHODS)
PURSUITS = ("backfit", "prefit", "basic")


def rows(n=40, d=3):
    return np.random.default_rng(9).normal(size=(n, d))


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("criterion", ["norm", "predictions"])
@pytest.mark.parametrize("rule", PURSUITS)
def test_a_pursuit_is_the_greedy_one(rule, criterion, q):
    full = expansion(q=q)
    X = rows() if criterion == "predictions" else None
    path = path_by(rule, full, n_vectors=12, X=X, tol=0, settings=PaperSettings(criterion=criterion))
    assert path.orthogonal == (criterion == "norm" and rule != "basic")
    inner, aligned, norm2 = space(full, X)
    assert path.residual_norms[0] == pytest.approx(np.sqrt(norm2), rel=1e-9)
    steps = greedy(inner, aligned, norm2, rule, 12 if rule != "basic" else 400)
    # A size lasts until the next new vector.
    by_size = {len(chosen): (chosen, B, rest) for chosen, B, rest in steps}
    for size in range(1, 13):
        chosen, B, rest = by_size[size]
        assert path.order[:size].tolist() == chosen
        np.testing.assert_allclose(path[size].coefficients, B, rtol=1e-5, atol=1e-6)
        assert path.residual_norms[size] == pytest.approx(rest, rel=1e-5, abs=1e-7)
    X_test = rows(17)
    for size, outputs in zip((1, 5, 12), path._outputs(X_test, [1, 5, 12]), strict=True):
        np.testing.assert_allclose(outputs, path[size].decision_function(X_test), atol=1e-9)


@pytest.mark.parametrize("criterion", ["norm", "predictions"])
@pytest.mark.parametrize("rule", PURSUITS)
def test_a_sample_of_all_candidates_is_the_whole_search(rule, criterion):
    full = expansion(m=40)
    options = {
        "n_vectors": 10,
        "tol": 0,
        "X": rows() if criterion == "predictions" else None,
    }
    whole = path_by(rule, full, settings=PaperSettings(criterion=criterion), **options)
    sampled = path_by(rule, full, settings=PaperSettings(criterion=criterion, sample=40), **options)
    np.testing.assert_array_equal(sampled.order, whole.order)
    np.testing.assert_allclose(sampled.residual_norms, whole.residual_norms, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(sampled[10].coefficients, whole[10].coefficients, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("criterion", ["norm", "predictions"])
@pytest.mark.parametrize("rule", PURSUITS)
def test_a_sampled_pursuit_follows_its_seed_alone(rule, criterion):
    full = expansion(m=200)
    X = rows() if criterion == "predictions" else None
    settings = PaperSettings(sample=5, criterion=criterion)

    def run(**options):
        return path_by(rule, full, n_vectors=15, settings=settings, tol=0, X=X, **options)

    first, again, other = run(random_state=1, n_jobs=1), run(random_state=1, n_jobs=2), run(random_state=2)
    np.testing.assert_array_equal(first.order, again.order)
    np.testing.assert_array_equal(first.residual_norms, again.residual_norms)
    assert first.order.tolist() != other.order.tolist()
    assert (np.diff(first.residual_norms) <= 1e-12).all()
    for size in (1, 8, 15):
        assert first.residual_norms[size] == pytest.approx(from_scratch(full, first, size, X), rel=1e-6)
    # Even one candidate a step reaches the end.
    everything = compression_path(
        expansion(m=30), n_vectors=30, settings=SelectionSettings(sample=1), random_state=0, tol=0
    )
    assert everything.residual_norms[-1] < 1e-5 * everything.residual_norms[0]


def test_outputs_apart_choose_as_they_would_alone():
    full = expansion(m=50, q=3)
    settings = SelectionSettings(joint=False)
    alone = [
        compression_path(
            KernelExpansion(full.vectors, full.coefficients[:, [j]], 0.0, kernel="rbf", gamma=0.3),
            n_vectors=15,
            tol=0,
        )
        for j in range(3)
    ]
    path = compression_path(full, n_vectors=15, settings=settings, tol=0)
    prefixes = [set(one.order[:k].tolist()) for one in alone for k in range(16)]
    union = set(path.order.tolist())
    assert len(path) == 15
    # The union is made of beginnings of the three orders.
    covered = set().union(*(p for p in prefixes if p <= union))
    assert covered == union
    joint = compression_path(full, n_vectors=15, tol=0)
    assert path.residual_norms[15] >= joint.residual_norms[15]
    for size in (1, 7, 15):
        assert path.residual_norms[size] == pytest.approx(from_scratch(full, path, size), rel=1e-6)


VARIANTS = [
    *((method, PaperSettings()) for method in METHODS),
    *((method, PaperSettings(chunk=40)) for method in METHODS),
    ("backfit", PaperSettings(sample=7)),
    ("prefit", PaperSettings(joint=False)),
    ("l0", PaperSettings(max_change=1e-3)),
    ("l1", PaperSettings(penalty=0.5)),
    ("l1", PaperSettings(inverse_weights=True)),
    ("lars", PaperSettings(joint=False, cost=0.1)),
]


def label(value):
    return (
        value
        if isinstance(value, str)
        else "-".join(f"{k}={v}" for k, v in vars(value).items() if v != getattr(PaperSettings(), k))
    )


@pytest.mark.parametrize(("method", "settings"), VARIANTS, ids=label)
def test_residuals_fall_and_are_those_from_scratch(method, settings):
    full = expansion(m=150, q=3)
    path = path_by(method, full, n_vectors=20, settings=settings, tol=0)
    assert path.exact
    assert 0 < len(path) <= 20
    assert (np.diff(path.residual_norms) <= 1e-12).all()
    assert path.residual_norms[0] == pytest.approx(np.sqrt(space(full)[2]), rel=1e-9)
    for size in range(1, len(path) + 1):
        assert path.residual_norms[size] == pytest.approx(from_scratch(full, path, size), rel=1e-6)


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"kernel": "poly", "degree": 2, "coef0": 1.0}])
@pytest.mark.parametrize("chunk", [None, 40])
@pytest.mark.parametrize(("method", "joint"), [("rank", None), ("l0", True), ("l0", False)])
def test_lossless_means_lossless(method, joint, chunk, options):
    full = expansion(m=120, q=2, **options)
    settings = PaperSettings(chunk=chunk, joint=joint, max_change=0.0 if method == "l0" else None)
    path = path_by(method, full, settings=settings, tol=0, n_vectors=20)
    X = rows()
    wanted = full.decision_function(X)
    found = path[len(path)].decision_function(X)
    np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())
    assert len(path) == (3 if options["kernel"] == "linear" else 10)


@pytest.mark.parametrize("method", METHODS)
def test_degenerate_models_are_handled_or_refused(method):
    full = expansion(m=20, q=2)

    def with_parts(vectors=full.vectors, coefficients=full.coefficients):
        q = np.shape(coefficients)[1]
        return KernelExpansion(vectors, coefficients, np.zeros(q), kernel="rbf", gamma=0.3)

    # More than there are means all.
    most = len(path_by(method, full, n_vectors=20, tol=0))
    assert largest(full, n_vectors=21, method=method, tol=0).n_vectors <= 20
    assert len(path_by(method, full, n_vectors=21, tol=0)) == most
    empty = with_parts(np.zeros((0, 3)), np.zeros((0, 2)))
    for model in (empty, with_parts(coefficients=np.zeros((20, 2)))):
        with pytest.raises(ValueError, match="is constant: there is nothing to compress"):
            path_by(method, model)
    for bad in (np.nan, np.inf):
        coefficients = full.coefficients.copy()
        coefficients[3, 1] = bad
        with pytest.raises(ValueError, match="finite"):
            largest(with_parts(coefficients=coefficients), n_vectors=3, method=method)
    # An output and some vectors without a part in the model.
    coefficients = full.coefficients.copy()
    coefficients[:, 1] = 0
    coefficients[:10] = 0
    path = path_by(method, with_parts(coefficients=coefficients), n_vectors=20, tol=0)
    assert (np.abs(path[len(path)].coefficients[:, 1]) < 1e-9).all()
    # Every vector twice.
    twice = with_parts(np.vstack([full.vectors, full.vectors]), np.vstack([full.coefficients] * 2))
    path = path_by(method, twice)
    assert len(path) <= (20 if method != "basic" else 40)
    if method != "basic":
        assert len(set((path.order % 20).tolist())) == len(path)
    assert path.residual_norms[-1] < 0.1 * path.residual_norms[0]
    # A vector at the origin has no length for a linear kernel.
    Z = full.vectors.copy()
    Z[4] = 0
    linear = KernelExpansion(Z, full.coefficients, np.zeros(2), kernel="linear")
    path = path_by(method, linear)
    assert 4 not in path.order.tolist()
    assert len(path) <= 3 if method != "basic" else 20


@pytest.mark.parametrize("method", METHODS)
def test_an_indefinite_kernel_is_refused_and_predictions_take_it(method):
    full = expansion(m=60, q=1, kernel="sigmoid", gamma=1.0, coef0=-2.0)
    with pytest.raises(ValueError, match="kernel=sigmoid is not allowed: it must be positive semidefinite"):
        path_by(method, full, n_vectors=60, tol=0)
    if method in PURSUITS:
        X = rows(80)
        settings = PaperSettings(criterion="predictions")
        path = path_by(method, full, n_vectors=30, X=X, settings=settings)
        assert (np.diff(path.residual_norms) <= 1e-12).all()
        rest = path[30].decision_function(X) - full.decision_function(X)
        assert np.sqrt((rest**2).mean()) == pytest.approx(path.residual_norms[30], rel=1e-5, abs=1e-9)


def test_matching_predictions_matches_predictions_better():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    svc = SVC(C=10, gamma=0.05).fit(X[:400], y[:400])
    wanted = svc.decision_function(X[:400])

    def error(**options):
        small = compress(svc, n_vectors=15, X=X[:400], y=y[:400], method="backfit", **options)
        shift = small.expansion_.intercepts - svc.expansion_.intercepts
        return np.sqrt(((small.decision_function(X[:400]) - shift - wanted) ** 2).mean())

    settings = SelectionSettings(criterion="predictions")
    assert error(settings=settings) < 0.8 * error()
    # Without rows the model's own vectors are compared; with rows and no labels nothing is tuned.
    own = compress(svc, n_vectors=15, settings=settings)
    assert own.expansion_.intercepts == svc.expansion_.intercepts
    loose = compress(svc, n_vectors=15, X=X[:400], settings=settings, method="backfit")
    assert loose.expansion_.intercepts == svc.expansion_.intercepts
    reduced = ReducedSet(SVC(C=10, gamma=0.05), n_vectors=15, tune_threshold=False, settings=settings)
    np.testing.assert_allclose(
        reduced.fit(X[:400], y[:400]).decision_function(X[:50]), loose.decision_function(X[:50])
    )


@pytest.mark.parametrize("method", METHODS)
def test_chunks_keep_up_with_the_whole(method):
    full = expansion(m=600, q=2, d=2)
    joint = None if method == "rank" else True
    whole = path_by(method, full, n_vectors=15, tol=0, settings=PaperSettings(joint=joint))
    parts = path_by(method, full, n_vectors=15, tol=0, settings=PaperSettings(joint=joint, chunk=100))
    if method != "rank":  # a basis is not chosen for the model's sake
        assert parts.residual_norms[15] < 1.5 * whole.residual_norms[15]
    one = path_by(method, full, n_vectors=15, tol=0, settings=PaperSettings(joint=joint, chunk=600))
    np.testing.assert_array_equal(one.order, whole.order)


@pytest.mark.quick_every(3)
@pytest.mark.parametrize(
    ("method", "m", "loss"),
    [
        ("backfit", 200_000, 0.05),
        ("basic", 200_000, 0.05),
        ("rank", 200_000, 0.9),
        ("l1", 70_000, 0.1),
        ("lars", 70_000, 0.5),
    ],
)
def test_two_hundred_thousand_vectors(method, m, loss):
    """The kernel matrix of so many takes 320 GB."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(m, 2)).astype(np.float32)
    B = 0.01 * rng.normal(size=(m, 1)) + 0.01 * np.sin(Z[:, :1])
    full = KernelExpansion(Z, B, 0.0, kernel="rbf", gamma=0.5)
    path = path_by(method, full, n_vectors=30, settings=PaperSettings(chunk=256))
    assert not path.exact
    X = rng.normal(size=(300, 2)).astype(np.float32)
    wanted = full.decision_function(X)
    error = np.sqrt(((path[len(path)].decision_function(X) - wanted) ** 2).mean() / (wanted**2).mean())
    assert error < loss
    assert (np.diff(path.residual_norms) <= 0).all()


def test_what_does_not_fit_is_reduced_in_chunks_or_refused():
    full = expansion(m=5000, d=2, q=1)
    tight = PaperSettings(max_memory=150.0)
    path = path_by("l1", full, n_vectors=10, settings=tight)
    chunked = path_by("l1", full, n_vectors=10, settings=PaperSettings(chunk=4096))
    np.testing.assert_array_equal(path.order, chunked.order)
    with pytest.raises(
        ValueError, match=r"max_memory=1 MB is not allowed: it must be at least \d+ MB to choose 10"
    ):
        path_by("l1", full, n_vectors=10, settings=PaperSettings(max_memory=1.0))
    with pytest.raises(ValueError, match="chunk=15 is not allowed: it must be at least 20"):
        compression_path(full, n_vectors=10, settings=SelectionSettings(chunk=15))
    with pytest.raises(ValueError, match="chunk=100 is not allowed: it must be None where the candidates"):
        largest(
            full,
            n_vectors=3,
            candidates="samples",
            X=rows(150, 2),
            settings=SelectionSettings(chunk=100),
            method="backfit",
        )


def test_settings_that_a_method_does_not_read_are_refused():
    full = expansion()
    for method, name, value in [
        ("backfit", "max_change", 0.1),
        ("rank", "joint", False),
        ("l0", "sample", 5),
        ("l1", "criterion", "predictions"),
        ("basic", "penalty", 1.0),
        ("lars", "rank_tolerance", 0.1),
        ("prefit", "inverse_weights", True),
    ]:
        with pytest.raises(ValueError, match=f"{name}=.* is of no use for method='{method}'"):
            largest(full, n_vectors=3, method=method, settings=PaperSettings(**{name: value}))
    for method, name, value, readers in [
        ("rank", "joint", False, "'backfit', 'prefit'"),
        ("prefit", "rank_tolerance", 0.1, "'rank'"),
    ]:
        with pytest.raises(ValueError, match=f"is of no use for method='{method}': it is read by {readers}$"):
            largest(full, n_vectors=3, method=method, settings=SelectionSettings(**{name: value}))
    for name, value in [
        ("sample", 0),
        ("chunk", 3),
        ("max_memory", 0),
        ("criterion", "both"),
        ("penalty", -1),
    ]:
        with pytest.raises(ValueError, match=f"{name}="):
            PaperSettings(**{name: value})


def test_a_time_limit_is_kept_while_norms_are_found():
    full = expansion(m=30_000, d=30, q=1)
    with pytest.raises(ValueError, match=r"max_time=0\.01 was over before the first vector"):
        compression_path(full, n_vectors=5, max_time=0.01)


@pytest.mark.parametrize(
    ("method", "settings"), [("basic", None), ("backfit", SelectionSettings(criterion="predictions"))]
)
def test_a_certified_cascade_refuses_what_is_no_projection(method, settings):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    svc = SVC(C=10, gamma=0.05).fit(X[:200], y[:200])
    path = path_by(method, svc, n_vectors=10, settings=settings)
    with pytest.raises(ValueError, match="must be orthogonal projections of the model"):
        ExactCascade.from_path(path)
