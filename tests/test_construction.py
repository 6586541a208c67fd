"""Gradient support vectors: the losses, the start, every kernel, determinism, refusals."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from marrow import SVC, GradientSettings, KernelExpansion, ReducedSet, _core, compress


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1000], y[:1000], X[1000:], y[1000:]


@pytest.fixture(scope="module", params=["ovr", "ovo"])
def svc(request, digits):
    X, y, _, _ = digits
    return SVC(C=10, gamma=0.001, multi_class=request.param).fit(X, y)


QUICK = GradientSettings(steps=3000)


def test_made_vectors_beat_chosen_ones(svc, digits):
    X, y, X_test, y_test = digits
    full = svc.score(X_test, y_test)
    chosen = compress(svc, 20, X=X, y=y).score(X_test, y_test)
    made = compress(svc, 20, method="gradient", X=X, y=y, settings=QUICK)
    assert made.expansion_.n_vectors == 20
    assert made.expansion_.vectors.dtype == np.float32
    score = made.score(X_test, y_test)
    assert score > chosen
    assert score > full - 0.04


def test_matching_lowers_the_distance_that_it_names(svc, digits):
    X, y, _, _ = digits
    wanted = svc.expansion_.decision_function(X)

    def distance(steps):
        settings = GradientSettings(loss="matching", steps=steps, noise=0.0)
        small = compress(svc, 30, method="gradient", X=X, y=y, settings=settings)
        return ((small.expansion_.decision_function(X) - wanted) ** 2).mean()

    start, end = distance(0), distance(2000)
    assert end < 0.6 * start


def test_the_start_is_the_least_squares_fit(digits):
    X, y, _, _ = digits
    svc = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X, y)
    wanted = svc.expansion_.decision_function(X)
    small = compress(svc, 30, method="gradient", X=X, settings=GradientSettings(steps=0)).expansion_
    K = np.exp(-0.001 * ((X[:, None, :] - small.vectors[None].astype(float)) ** 2).sum(axis=2))
    columns = np.hstack([K, np.ones((len(X), 1))])
    best = np.linalg.lstsq(columns, wanted, rcond=None)[0]
    least = ((columns @ best - wanted) ** 2).sum()
    assert ((small.decision_function(X) - wanted) ** 2).sum() < 1.001 * least


@pytest.mark.parametrize(
    ("kernel", "gamma"),
    [("linear", 1.0), ("poly", 0.1), ("rbf", 0.5), ("sigmoid", 0.05), ("laplacian", 0.2), ("chi2", 0.5)],
)
def test_every_kernel_moves(kernel, gamma):
    X, y = load_breast_cancer(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    svc = SVC(kernel=kernel, gamma=gamma, coef0=0.5).fit(X[:400], y[:400])
    wanted = svc.decision_function(X[400:])

    def distance(steps):
        settings = GradientSettings(loss="matching", steps=steps)
        small = compress(svc, 4, method="gradient", X=X[:400], y=y[:400], settings=settings)
        return ((small.decision_function(X[400:]) - wanted) ** 2).mean() / wanted.var()

    start, end = distance(0), distance(2000)
    # One linear vector is all a linear machine needs: the start already is the machine.
    assert end < max(0.8 * start, 1e-3)


@pytest.mark.parametrize("loss", ["agreement", "hinge", "squared_hinge"])
def test_labels_alone_train_a_classifier(loss):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    svc = SVC(C=10, gamma=0.01).fit(X[:400], y[:400])
    settings = GradientSettings(loss=loss, label_weight=1.0, steps=1000)
    small = compress(svc, 3, method="gradient", X=X[:400], y=y[:400], settings=settings)
    assert small.score(X[400:], y[400:]) > 0.94


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_seed_gives_the_same_model_whatever_the_threads(layout, dtype, digits):
    X, y, _, _ = digits
    X = layout(X.astype(dtype))
    svc = SVC(C=10, gamma=0.001).fit(X, y)
    options = {"method": "gradient", "X": X, "y": y, "settings": GradientSettings(steps=200)}
    one, two, other = (
        compress(svc, 40, random_state=seed, n_jobs=jobs, **options).expansion_
        for seed, jobs in [(3, 1), (3, 2), (4, 1)]
    )
    assert (one.vectors == two.vectors).all()
    assert (one.coefficients == two.coefficients).all()
    assert not (one.vectors == other.vectors).all()


def test_a_bare_expansion_is_matched(digits):
    X, _, X_test, _ = digits
    rng = np.random.default_rng(0)
    full = KernelExpansion(X[:300], rng.standard_normal((300, 2)), [0.5, -1.0], gamma=0.0005)
    wanted = full.decision_function(X_test)
    small = compress(full, 60, method="gradient", X=X, settings=QUICK)
    assert isinstance(small, KernelExpansion)
    chosen = compress(full, 60)
    errors = [((model.decision_function(X_test) - wanted) ** 2).mean() for model in (small, chosen)]
    assert errors[0] < errors[1]


def test_without_rows_the_models_own_vectors_serve(digits):
    X, y, X_test, y_test = digits
    svc = SVC(C=10, gamma=0.001).fit(X, y)
    small = compress(svc, 30, method="gradient", settings=QUICK)
    assert small.score(X_test, y_test) > 0.9


def test_inside_an_estimator(digits):
    X, y, X_test, y_test = digits
    model = ReducedSet(SVC(C=10, gamma=0.001), 25, method="gradient", settings=QUICK).fit(X, y)
    assert model.n_vectors_ == 25
    assert model.score(X_test, y_test) > 0.93


def test_refusals(svc, digits):
    X, y, _, _ = digits
    for options, message in [
        ({"n_vectors": None}, "give n_vectors"),
        ({"candidates": "rows"}, "candidates='rows' has no meaning"),
        ({"y": y}, "y is given without X"),
        ({"n_vectors": 1001, "X": X}, "n_vectors=1001 is not allowed"),
        ({"X": X, "settings": GradientSettings(loss="hinge")}, "learns from labels"),
        ({"settings": 3}, "settings=3"),
    ]:
        with pytest.raises(ValueError, match=message):
            compress(svc, **{"n_vectors": 5, "method": "gradient", **options})
    with pytest.raises(ValueError, match="of no use for method='pursuit'"):
        compress(svc, 5, settings=QUICK)
    for name, value in [("sharpness", 0.0), ("label_weight", 1.5), ("batch", 0), ("loss", "none")]:
        with pytest.raises(ValueError, match=f"{name}="):
            GradientSettings(**{name: value})
    with pytest.raises(ValueError, match="stay finite"):
        compress(svc, 5, method="gradient", X=X, settings=GradientSettings(steps=50, vector_rate=1e38))


def test_time_ends_a_run_with_a_usable_model(svc, digits):
    X, y, _, _ = digits
    settings = GradientSettings(steps=10**7)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        small = compress(svc, 10, method="gradient", X=X, y=y, settings=settings, max_time=0.1)
    assert small.score(X, y) > 0.5


def test_centres_are_means_of_their_rows(digits):
    X, y, _, _ = digits
    found = _core.centres(X, y.astype(np.int64), 10, 0, 1)
    for label, centre in enumerate(found):
        rows = X[y == label]
        # At most a hundred rows stand for each centre: compare with the standard error of their mean.
        error = rows.std(axis=0) / np.sqrt(100)
        assert (np.abs(centre - rows.mean(axis=0)) <= 4 * error + 1e-6).all()
