"""Gradient support vectors: the losses, the start, every kernel, determinism, refusals."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from helpers import reference
from svmarrow import SVC, SVR, KernelExpansion, OneClassSVM, ReducedSet, _core, compress, compression_path
from svmarrow.models import ExpansionRegressor
from svmarrow.reduced_set import GradientPath, GradientSettings

QUICK = GradientSettings(steps=3000)
make = partial(compress, method="gradient", random_state=0)
grow = partial(compression_path, method="gradient", random_state=0)


def test_made_vectors_beat_chosen_ones(digits_svc, pixels):
    X, y, X_test, y_test = pixels
    full = digits_svc.score(X_test, y_test)
    chosen = compress(digits_svc, n_vectors=20, X=X, y=y, method="backfit").score(X_test, y_test)
    made = make(digits_svc, n_vectors=20, X=X, y=y, settings=QUICK)
    assert made.expansion_.n_vectors == 20
    assert made.expansion_.vectors.dtype == np.float32
    score = made.score(X_test, y_test)
    assert score > chosen
    assert score > full - 0.04


def test_matching_lowers_the_distance_that_it_names(digits_svc, pixels):
    X, y, _, _ = pixels
    wanted = digits_svc.expansion_.decision_function(X)

    def distance(steps):
        settings = GradientSettings(loss="matching", steps=steps, noise=0.0)
        small = make(digits_svc, n_vectors=30, X=X, y=y, settings=settings)
        return ((small.expansion_.decision_function(X) - wanted) ** 2).mean()

    start, end = distance(0), distance(2000)
    assert end < 0.6 * start


def test_the_start_is_the_least_squares_fit(pixels):
    X, y, _, _ = pixels
    svc = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X, y)
    wanted = svc.expansion_.decision_function(X)
    small = make(svc, n_vectors=30, X=X, settings=GradientSettings(steps=0)).expansion_
    K = np.exp(-0.001 * ((X[:, None, :] - small.vectors[None].astype(float)) ** 2).sum(axis=2))
    columns = np.hstack([K, np.ones((len(X), 1))])
    best = np.linalg.lstsq(columns, wanted, rcond=None)[0]
    least = ((columns @ best - wanted) ** 2).sum()
    assert ((small.decision_function(X) - wanted) ** 2).sum() < 1.001 * least


@pytest.mark.parametrize(
    ("kernel", "gamma"),
    [
        ("linear", 1.0),
        ("poly", 0.1),
        ("rbf", 0.5),
        ("sigmoid", 0.05),
        ("laplacian", 0.2),
        ("chi2", 0.5),
        ("matern12", 0.5),
        ("matern32", 0.5),
        ("matern52", 0.5),
    ],
)
def test_every_kernel_moves(kernel, gamma):
    X, y = load_breast_cancer(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    svc = SVC(kernel=kernel, gamma=gamma, coef0=0.5).fit(X[:400], y[:400])
    wanted = svc.decision_function(X[400:])

    def distance(steps):
        settings = GradientSettings(loss="matching", steps=steps)
        small = make(svc, n_vectors=4, X=X[:400], y=y[:400], settings=settings)
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
    small = make(svc, n_vectors=3, X=X[:400], y=y[:400], settings=settings)
    assert small.score(X[400:], y[400:]) > 0.94


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_seed_gives_the_same_model_whatever_the_threads(layout, dtype, pixels):
    X, y, _, _ = pixels
    X = layout(X.astype(dtype))
    svc = SVC(C=10, gamma=0.001).fit(X, y)
    options = {"X": X, "y": y, "settings": GradientSettings(steps=200)}
    one, two, other = (
        make(svc, n_vectors=40, random_state=seed, n_jobs=jobs, **options).expansion_
        for seed, jobs in [(3, 1), (3, 2), (4, 1)]
    )
    assert (one.vectors == two.vectors).all()
    assert (one.coefficients == two.coefficients).all()
    assert not (one.vectors == other.vectors).all()


def test_a_bare_expansion_is_matched(pixels):
    X, _, X_test, _ = pixels
    rng = np.random.default_rng(0)
    full = KernelExpansion(X[:300], rng.standard_normal((300, 2)), [0.5, -1.0], gamma=0.0005)
    wanted = full.decision_function(X_test)
    small = make(full, n_vectors=60, X=X, settings=QUICK)
    assert isinstance(small, KernelExpansion)
    chosen = compress(full, n_vectors=60)
    errors = [((model.decision_function(X_test) - wanted) ** 2).mean() for model in (small, chosen)]
    assert errors[0] < errors[1]


def test_without_rows_the_models_own_vectors_serve(pixels):
    X, y, X_test, y_test = pixels
    svc = SVC(C=10, gamma=0.001).fit(X, y)
    small = make(svc, n_vectors=30, settings=QUICK)
    assert small.score(X_test, y_test) > 0.9


def test_inside_an_estimator(pixels):
    X, y, X_test, y_test = pixels
    svc = SVC(C=10, gamma=0.001)
    model = ReducedSet(svc, 25, method="gradient", settings=QUICK, random_state=0).fit(X, y)
    assert model.n_vectors_ == 25
    assert model.score(X_test, y_test) > 0.93


def test_refusals(digits_svc, pixels):
    X, y, _, _ = pixels
    for options, message in [
        ({"n_vectors": None}, "without samples the loss is not known"),
        ({"y": y}, "y is given without X"),
        ({"X": X, "settings": GradientSettings(loss="hinge")}, "learns from labels"),
        ({"settings": 3}, "settings=3"),
    ]:
        with pytest.raises(ValueError, match=message):
            make(digits_svc, **{"n_vectors": 5, **options})
    for options, message in [
        ({"n_vectors": None}, "give n_vectors, the largest number of them"),
        ({"candidates": "samples"}, "candidates='samples' has no meaning"),
    ]:
        with pytest.raises(ValueError, match=message):
            grow(digits_svc, **{"n_vectors": 5, "X": X, "y": y, **options})
    with pytest.raises(ValueError, match="must be None or a SelectionSettings"):
        compress(digits_svc, n_vectors=5, settings=QUICK)
    with pytest.raises(ValueError, match="must be None or a SelectionSettings"):
        compress(digits_svc, X, y, n_vectors=5, method="backfit", settings=QUICK)
    for name, value in [("sharpness", 0.0), ("label_weight", 1.5), ("batch", 0), ("loss", "none")]:
        with pytest.raises(ValueError, match=f"{name}="):
            GradientSettings(**{name: value})
    with pytest.raises(ValueError, match="stay finite"):
        make(digits_svc, n_vectors=5, X=X, settings=GradientSettings(steps=50, vector_rate=1e38))


def test_time_ends_a_run_with_a_usable_model(digits_svc, pixels):
    X, y, _, _ = pixels
    settings = GradientSettings(steps=10**7, sizes=(10,))
    with pytest.warns(ConvergenceWarning, match="max_time"):
        small = grow(digits_svc, n_vectors=10, X=X, y=y, settings=settings, max_time=0.1)[10]
    assert small.score(X, y) > 0.5


def test_centres_are_means_of_their_rows(pixels):
    X, y, _, _ = pixels
    found = _core.centres(X, y.astype(np.int64), 10, 0, None, 1)
    for label, centre in enumerate(found):
        rows = X[y == label]
        # At most a hundred rows stand for each centre: compare with the standard error of their mean.
        error = rows.std(axis=0) / np.sqrt(100)
        assert (np.abs(centre - rows.mean(axis=0)) <= 4 * error + 1e-6).all()


SPECS = [
    ("linear", 1.0, 0.0, 3),
    ("poly", 0.3, 0.5, 3),
    ("rbf", 0.4, 0.0, 3),
    ("sigmoid", 0.2, 0.1, 3),
    ("laplacian", 0.3, 0.0, 3),
    ("chi2", 0.5, 0.0, 3),
    ("matern12", 0.6, 0.0, 3),
    ("matern32", 0.6, 0.0, 3),
    ("matern52", 0.6, 0.0, 3),
]


@pytest.mark.parametrize("loss", ["matching", "agreement", "hinge", "squared_hinge"])
@pytest.mark.parametrize("spec", SPECS, ids=[spec[0] for spec in SPECS])
def test_the_first_step_goes_against_the_differences_of_the_loss(spec, loss):
    """A first step of Adam has the length of the rate in every coordinate, against the sign of the slope."""
    rng = np.random.default_rng(1)
    X, Z = rng.uniform(0.1, 1.0, (50, 4)), rng.uniform(0.1, 1.0, (20, 4))
    full = KernelExpansion(Z, rng.standard_normal((20, 3)), rng.standard_normal(3), spec[0], *spec[1:])
    labels = np.arange(50) % 3
    start = rng.uniform(0.1, 1.0, (5, 4)).astype(np.float32)
    rate = 1e-3
    settings = {
        "loss": loss,
        "coding": "ovr",
        "sharpness": 1.5,
        "label_weight": 0.0,
        "batch": 50,
        "vector_rate": rate,
        "coefficient_rate": 0.0,
        "noise": 0.0,
        "mixing": 0.0,
        "places": 0,
        "scale_rate": 0.0,
        "start_ridge": 1e-6,
        "held_out": 0,
        "known_outputs": False,
        "seed": 0,
        "starts": [start],
        "max_time": None,
    }

    def run(steps):
        return _core.gradient_vectors(
            full.core_parts,
            X,
            labels,
            {**settings, "steps": steps},
            None,
            1,
        )[0]

    begin, moved = run(0), run(1)
    assert (begin["vectors"] == start).all()
    wanted, signs = full.decision_function(X), np.where(labels[:, None] == np.arange(3), 1.0, -1.0)

    def value(vectors):
        return reference.construction_loss(
            spec, vectors, begin["coefficients"], begin["intercepts"], X, loss, wanted, 1.5, signs
        )

    expected = reference.slope(value, start.astype(np.float64))
    assert moved["losses"][0] == pytest.approx(value(start), rel=1e-3, abs=1e-4)
    clear = np.abs(expected) > 0.02 * np.abs(expected).max()
    assert clear.sum() >= 10
    step = moved["vectors"] - start
    deviation = np.sqrt((X.std(axis=0) ** 2).mean())
    assert step[clear] == pytest.approx(-rate * deviation * np.sign(expected[clear]), rel=0.02)


@pytest.mark.parametrize("start", ["backfit", "prefit", "rank", "centers"])
def test_a_run_starts_at_the_given_vectors(start, digits_svc, pixels):
    X, y, X_test, y_test = pixels
    begin = make(
        digits_svc, n_vectors=20, X=X, y=y, settings=GradientSettings(start=start, steps=0)
    ).expansion_
    if start != "centers":
        chosen = reference.largest(digits_svc, n_vectors=20, method=start).expansion_.vectors
        assert (begin.vectors == chosen.astype(np.float32)).all()
    moved = make(digits_svc, n_vectors=20, X=X, y=y, settings=GradientSettings(start=start, steps=2000))
    assert moved.score(X_test, y_test) > 0.93


def test_a_run_starts_from_given_vectors(digits_svc, pixels):
    X, y, _, _ = pixels
    chosen = reference.path_by("lars", digits_svc, n_vectors=12)[12]
    for start in (chosen, chosen.expansion_, chosen.expansion_.vectors):
        settings = GradientSettings(start=start, steps=0)
        begin = make(digits_svc, n_vectors=12, X=X, y=y, settings=settings).expansion_
        assert (begin.vectors == chosen.expansion_.vectors.astype(np.float32)).all()
        more = make(digits_svc, n_vectors=15, X=X, y=y, settings=settings).expansion_
        assert (more.vectors[:12] == begin.vectors).all()
        assert more.n_vectors == 15
    for name in ("l0", "l1", "lars"):
        with pytest.raises(ValueError, match=f"start='{name}' is not allowed"):
            GradientSettings(start=name)
    with pytest.raises(ValueError, match="start has 3 columns"):
        make(digits_svc, n_vectors=2, settings=GradientSettings(start=np.ones((5, 3))))


def test_one_run_gives_every_size(digits_svc, pixels):
    X, y, X_test, y_test = pixels
    settings = GradientSettings(steps=1500)
    path = grow(digits_svc, n_vectors=40, X=X, y=y, settings=settings)
    assert isinstance(path, GradientPath)
    assert list(path.sizes) == [10, 20, 40]
    assert len(path) == 3
    assert path.order is None
    assert path.residual_norms is None
    assert [model.expansion_.n_vectors for model in path] == [10, 20, 40]
    scores = path.scores(X_test, y_test)
    assert scores == pytest.approx([path[size].score(X_test, y_test) for size in path.sizes])
    assert scores[-1] >= scores[0]
    full = path.full_score(X_test, y_test)
    assert path.select(X_test, y_test, max_loss=full - scores[1]).expansion_.n_vectors <= 20
    with pytest.raises(IndexError, match="it has the sizes 10, 20, 40"):
        path[11]


def test_each_size_of_a_path_is_the_model_made_by_itself(digits_svc, pixels):
    X, y, _, _ = pixels
    path = grow(digits_svc, n_vectors=30, X=X, y=y, settings=GradientSettings(steps=30, sizes=(5, 9)))
    assert list(path.sizes) == [5, 9, 30]
    for size in path.sizes:
        alone = make(digits_svc, n_vectors=size, X=X, y=y, settings=GradientSettings(steps=30))
        assert (alone.expansion_.vectors == path[size].expansion_.vectors).all()
        assert (alone.expansion_.coefficients == path[size].expansion_.coefficients).all()


def test_each_size_takes_the_first_of_the_start(digits_svc, pixels):
    X, y, _, _ = pixels
    settings = GradientSettings(steps=0, sizes=(5, 9, 12), start="backfit")
    path = grow(digits_svc, n_vectors=12, X=X, y=y, settings=settings)
    order = compress(digits_svc, n_vectors=12).expansion_.vectors.astype(np.float32)
    for size in (5, 9, 12):
        assert (path[size].expansion_.vectors == order[:size]).all()


def test_more_vectors_in_one_run_match_better(digits_svc, pixels):
    X, y, _, _ = pixels
    wanted = digits_svc.expansion_.decision_function(X)
    settings = GradientSettings(loss="matching", steps=1500, noise=0.0, sizes=(8, 16, 32))
    path = grow(digits_svc, n_vectors=32, X=X, y=y, settings=settings)
    errors = [((model.expansion_.decision_function(X) - wanted) ** 2).mean() for model in path]
    assert errors[0] > errors[1] > errors[2]


def test_regression_is_matched_or_learns_from_numbers():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (600, 2))
    truth = np.sinc(X[:, 0]) + 0.3 * X[:, 1]
    y = truth + 0.05 * rng.standard_normal(600)
    # A machine that is off by a constant and a slope: labels can mend what imitation cannot.
    svr = SVR(C=10, gamma=0.5, epsilon=0.1).fit(X[:300], 0.8 * y[:300] + 0.2)
    full = svr.predict(X[300:])
    options = {"X": X[:300]}
    imitates = make(svr, n_vectors=15, **options, settings=GradientSettings(steps=3000))
    assert isinstance(imitates, ExpansionRegressor)
    found = imitates.predict(X[300:])
    assert np.mean((found - full) ** 2) < 0.02 * full.var()
    learns = make(
        svr, n_vectors=15, **options, y=y[:300], settings=GradientSettings(steps=3000, label_weight=1.0)
    )
    better = learns.predict(X[300:])
    assert np.mean((better - truth[300:]) ** 2) < 0.3 * np.mean((full - truth[300:]) ** 2)
    # Without a word, 0.3 of them.
    some = make(svr, n_vectors=15, **options, y=y[:300], settings=GradientSettings(steps=0))
    same = GradientSettings(steps=0, label_weight=0.3)
    assert some.expansion_ == make(svr, n_vectors=15, **options, y=y[:300], settings=same).expansion_
    with pytest.raises(ValueError, match="not used with label_weight=0"):
        make(svr, n_vectors=15, **options, y=y[:300], settings=GradientSettings(label_weight=0.0))
    with pytest.raises(ValueError, match="expected one column for each of 1 outputs, and 300 rows"):
        make(svr, n_vectors=15, **options, y=y[:299], settings=GradientSettings(label_weight=0.5))


def test_half_the_numbers_is_half_way():
    """The least squares start for y and f* mixed is the mix of the least squares starts."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (200, 2))
    full = KernelExpansion(X[:50], rng.standard_normal((50, 2)), [0.1, 0.2], gamma=0.7)
    y = rng.standard_normal((200, 2))

    def start(weight):
        settings = GradientSettings(steps=0, label_weight=weight)
        small = make(full, n_vectors=10, X=X, y=y if weight else None, settings=settings)
        return small.decision_function(X)

    assert start(0.5) == pytest.approx(0.5 * (start(0.0) + start(1.0)), abs=1e-4)


def test_one_class_machines_are_matched():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-2, 0.5, (200, 2)), rng.normal(2, 0.5, (200, 2))])
    machine = OneClassSVM(nu=0.2, gamma=0.5).fit(X)
    small = make(machine, n_vectors=6, X=X, settings=GradientSettings(steps=3000))
    grid = rng.uniform(-4, 4, (1000, 2))
    agree = small.predict(grid) == machine.predict(grid)
    assert agree.mean() > 0.97


def test_settings_are_refused_by_name(digits_svc, pixels):
    X, y, _, _ = pixels
    for name, value in [
        ("start", "nowhere"),
        ("start", [[1.0]]),
        ("sizes", (3, 3)),
        ("sizes", ()),
        ("sizes", (0, 2)),
        ("mixing", 1.5),
    ]:
        with pytest.raises(ValueError, match=f"{name}="):
            GradientSettings(**{name: value})
    with pytest.raises(ValueError, match=r"sizes=.*at most 5"):
        grow(digits_svc, n_vectors=5, X=X, settings=GradientSettings(sizes=(2, 6)))
    with pytest.raises(ValueError, match=r"sizes=.*None for one model"):
        make(digits_svc, n_vectors=5, X=X, settings=GradientSettings(sizes=(2, 4)))
    settings = GradientSettings(loss="matching", label_weight=0.5)
    with pytest.raises(ValueError, match=r"label_weight=0\.5 has no meaning for loss='matching'"):
        make(digits_svc, n_vectors=5, X=X, y=y, settings=settings)
    # More vectors than there are rows are as many.
    few = grow(digits_svc, n_vectors=901, X=X[:20], y=y[:20], settings=GradientSettings(steps=0))
    assert few.sizes[-1] == 20


def test_time_ends_a_path_with_the_sizes_that_are_done(digits_svc, pixels):
    X, y, _, _ = pixels
    settings = GradientSettings(sizes=(5, 10), steps=10**7)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        path = grow(digits_svc, n_vectors=10, X=X, y=y, settings=settings, max_time=0.2)
    assert list(path.sizes) == [5]
    assert path[5].score(X, y) > 0.3


def test_odd_models_are_handled():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    with pytest.raises(ValueError, match="constant: there is nothing to compress"):
        make(KernelExpansion(np.empty((0, 3)), np.empty((0, 1)), 1.0), n_vectors=2, X=X)
    quick = GradientSettings(steps=50)
    # Zero coefficients, duplicate vectors, an indefinite kernel, a column without spread.
    flat = np.hstack([X, np.ones((60, 1))])
    for full, rows in [
        (KernelExpansion(X, np.zeros(60), 2.0), X),
        (KernelExpansion(np.tile(X[:2], (20, 1)), rng.standard_normal(40), 0.0), None),
        (KernelExpansion(X, rng.standard_normal(60), 0.0, kernel="sigmoid", gamma=2.0, coef0=-1.0), X),
        (KernelExpansion(flat, rng.standard_normal((60, 2)), [0.0, 1.0]), flat),
    ]:
        small = make(full, n_vectors=5, X=rows, settings=quick)
        assert np.isfinite(small.coefficients).all()
        assert np.isfinite(small.decision_function(full.vectors)).all()
    start = np.tile(X[:1], (5, 1))
    begin = GradientSettings(steps=50, start=start)
    made = make(KernelExpansion(X, rng.standard_normal(60), 0.0), n_vectors=5, X=X, settings=begin)
    assert np.isfinite(made.decision_function(X)).all()
    with pytest.raises(ValueError, match="infinity"):
        make(KernelExpansion([[np.inf]], [1.0], 0.0), n_vectors=1)
