"""The bound of the loss, the safe loss, the search for a size, what `compress` gives by default."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from sklearn import svm as peer
from sklearn.datasets import load_digits

import svmarrow
from svmarrow import (
    SVC,
    SVR,
    KernelExpansion,
    OneClassSVM,
    RLSRegressor,
    as_expansion,
    compress,
    compression_path,
)
from svmarrow.models import LossBound
from svmarrow.reduced_set import GradientSettings
from svmarrow.reduced_set.compression import COST_PER_VECTOR, MAX_OPERATIONS, plan_construction
from svmarrow.reduced_set.holdout import (
    HoldoutEvaluator,
    SizeSearch,
    cost_of_change,
    isotonic,
    paired_bound,
    ratio_bound,
    sizes_to_search,
)

FEW = GradientSettings(steps=300)


@pytest.fixture(scope="module")
def rings():
    """Two noisy rings: train, learn and judge, test."""
    random = np.random.default_rng(0)
    n = 3000
    angle, ring = random.uniform(0, 2 * np.pi, n), random.integers(0, 2, n)
    radius = 1.0 + ring + 0.35 * random.standard_normal(n)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return (X[:800], ring[:800]), (X[800:2000], ring[800:2000]), (X[2000:], ring[2000:])


def test_the_bound_is_the_edge_of_the_score_test():
    z = 1.6448536269514722
    for b, c, n in ((0, 0, 1000), (5, 0, 1000), (10, 8, 2000), (0, 20, 500), (40, 3, 100)):
        D = paired_bound(b, c, n, 0.05)
        # The likeliest share q of rows that only the small model gets right, where the loss is D: by search.
        q = np.linspace(max(0.0, -D), (1 - D) / 2, 2_000_001)[1:-1]
        likely = b * np.log(q + D) + c * np.log(q) + (n - b - c) * np.log(1 - 2 * q - D)
        share = q[np.argmax(likely)] if c else max(0.0, -D)
        statistic = (b - c - n * D) / np.sqrt(n * (2 * share + D - D * D))
        assert statistic == pytest.approx(-z, abs=2e-3)
    assert paired_bound(0, 0, 1000, 0.05) == pytest.approx(z**2 / (1000 + z**2), abs=1e-6)
    assert paired_bound(7, 0, 7, 0.05) == 1.0


@pytest.mark.parametrize(("n", "b", "c"), [(300, 0.01, 0.005), (2000, 0.005, 0.004), (1000, 0.003, 0.0)])
def test_the_bound_holds_with_its_confidence(n, b, c):
    drawn = np.random.default_rng(0).multinomial(n, [b, c, 1 - b - c], size=2000)
    holds = np.mean([paired_bound(int(one), int(other), n, 0.05) >= b - c for one, other, _ in drawn])
    assert 0.94 < holds < 0.99


def test_the_bound_of_numbers_holds_with_its_confidence():
    random = np.random.default_rng(1)
    full = RLSRegressor(alpha=1.0).fit(random.normal(size=(60, 2)), random.normal(size=60))
    small = compress(full, n_vectors=6)
    held = []
    for _ in range(100):
        X = random.normal(size=(150, 2))
        evaluator = HoldoutEvaluator(small, X, full.predict(X) + 0.3 * random.normal(size=150))
        # The loss of the model against itself moved by a constant is known but for the sample.
        other = evaluator.sample_scores(small.outputs(X)[None] + 0.2, slice(0, 150))[0]
        held.append((evaluator.loss(other), evaluator.bound(other, 0.1)))
    true = np.mean([loss for loss, _ in held])
    assert 0.8 < np.mean([bound >= true for _, bound in held]) < 0.98


def test_the_bound_of_numbers_holds_where_few_rows_carry_the_loss():
    random = np.random.default_rng(0)
    shares = random.exponential(size=200_000)
    # As uneven as the errors of a made model on kin8nm: kurtosis 180, a tenth of them below 0.
    lost = np.exp(1.2 * random.standard_normal(200_000)) - 0.2
    true = lost.sum() / shares.sum()
    drawn = [random.integers(0, lost.size, 300) for _ in range(2000)]
    for error, most in ((0.05, 0.06), (0.01, 0.02)):
        assert np.mean([ratio_bound(lost[at, None], shares[at, None], error) < true for at in drawn]) <= most
    same = np.zeros((50, 1))
    assert ratio_bound(same, shares[:50, None], 0.01) == 0.0


def test_losses_out_of_order_are_averaged():
    losses = np.random.default_rng(0).normal(np.linspace(0, 3, 40), 1.0)
    np.testing.assert_allclose(isotonic(losses.tolist()), isotonic_regression(losses).x)


class Known:
    """An evaluator whose sample scores are the safe loss and a lower bound of the loss."""

    def safe_loss(self, scores):
        return scores[0]

    def lower_bound(self, scores, _):
        return scores[1]


def test_a_search_is_not_stopped_by_one_unlucky_size():
    levels = [
        (9, [0.0, -0.001]),
        (7, [0.004, 0.002]),
        (5, [0.001, 0.000]),
        (3, [0.009, 0.002]),
        # By itself good enough, but size 3 says that this is luck.
        (2, [0.003, -0.002]),
        (1, [0.9, 0.8]),
        (0, [0.0, 0.0]),
    ]
    search, looked = SizeSearch(0.003), []
    search.search((one for one in levels if looked.append(one[0]) is None), Known())
    assert search.smallest == 5
    assert looked == [9, 7, 5, 3, 2, 1]
    assert sizes_to_search(range(1, 31)) == [30, 27, 24, 21, 18, 16, 14, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]


def test_sizes_between_two_are_measured_in_their_order():
    search = SizeSearch(0.003)
    search.search([(20, [0.001, -0.1]), (12, [0.002, -0.1]), (7, [0.02, 0.01])], Known())
    assert (search.smallest, search.next_between) == (12, 9)
    search.add(9, 0.004)
    assert (search.smallest, search.next_between) == (12, 10)
    search.add(10, 0.003)
    assert (search.smallest, search.next_between) == (10, None)
    # A lucky size below two that fail is averaged with them.
    search.add(8, 0.0025)
    assert search.smallest == 10


@pytest.mark.parametrize("weighted", [False, True])
def test_a_change_costs_what_labels_say_of_its_margin(weighted):
    random = np.random.default_rng(0)
    margins = random.exponential(size=4000)
    right = (random.random(4000) < 1.0 / (1.0 + np.exp(-0.2 - 1.5 * margins))).astype(float)
    weights = np.where(random.random(4000) < 0.2, 3.0, 0.5) if weighted else None
    cost = cost_of_change(margins, right, weights)
    wanted = 2.0 / (1.0 + np.exp(-0.2 - 1.5 * margins)) - 1.0
    np.testing.assert_allclose(cost, wanted, atol=0.08)
    # A model that knows nothing loses nothing, one that is always right loses each answer that changes.
    assert cost_of_change(margins, (random.random(4000) < 0.5).astype(float), weights).mean() < 0.1
    assert cost_of_change(margins, np.ones(4000), weights).min() > 0.9
    assert np.isfinite(cost_of_change(np.zeros(9), np.ones(9), None)).all()


def test_the_safe_loss_adds_a_standard_error(rings):
    (X, y), (other, labels), _ = rings
    svc = SVC(C=10, gamma=2.0).fit(X, y)
    agreement = HoldoutEvaluator(as_expansion(svc), other, None)
    for changed in (0, 4, 100):
        scores = agreement.full.copy()
        scores[:changed] = 0.0
        wanted = (changed + np.sqrt(changed + 1)) / 1200
        assert agreement.safe_loss(scores) == pytest.approx(wanted)
    known = HoldoutEvaluator(as_expansion(svc), other, labels)
    small = compression_path(svc, n_vectors=40)[40]
    scores = known.scores_of(small)
    # Labels make changes near the boundary cheap, but never a gain.
    assert known.loss(scores) <= known.safe_loss(scores) < agreement.safe_loss(agreement.scores_of(small))
    lucky = known.full.copy()
    lucky[known.full == 0.0] = 1.0
    assert known.loss(lucky) < 0.0 < known.safe_loss(lucky)
    assert known.safe_loss(np.full(1200, -np.inf)) == np.inf


@pytest.mark.parametrize("seed", range(4))
def test_few_samples_do_not_choose_a_lucky_size(seed):
    """The digits of the README: before, 11 to 13 vectors stayed and .02 to .03 of accuracy were lost."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(y.size)
    train, new, test = np.split(order, [718, 1365])
    svc = SVC(C=10, gamma=0.02).fit(X[train] / 16, y[train])
    settings = GradientSettings(steps=300)
    small = compress(svc, X[new] / 16, y[new], settings=settings, random_state=0)
    score, full = (model.score(X[test] / 16, y[test]) for model in (small, svc))
    assert score > full - 0.01
    assert small.expansion_.n_vectors < 0.9 * svc.expansion_.n_vectors


def test_one_call_bounds_the_loss_on_other_samples(rings, tmp_path):
    (X, y), (learn, labels), (other, truth) = rings
    svc = SVC(C=10, gamma=2.0).fit(X, y)
    small = compress(svc, learn, labels, settings=FEW, random_state=0)
    bound = small.loss_bound_
    assert small.expansion_.n_vectors <= svc.expansion_.n_vectors / 2
    assert (bound.n_samples, bound.measure, bound.max_loss) == (600, "accuracy", 0.003)
    assert bound.loss <= 0.003 < bound.upper < 0.05
    assert bound.guaranteed is False
    assert str(bound).endswith("these samples cannot guarantee 0.30 points.")
    assert svc.score(other, truth) - small.score(other, truth) <= bound.upper
    again = compress(svc, learn, labels, settings=FEW, random_state=0, n_jobs=1)
    assert again.expansion_ == small.expansion_
    small.save(tmp_path / "small")
    assert svmarrow.load(tmp_path / "small").loss_bound_ == bound
    # The bound itself keeps to the goal with more vectors.
    path = compression_path(svc)
    strict = path.select(learn, labels, max_loss=0.02, strict=True)
    assert strict.loss_bound_.guaranteed
    assert strict.loss_bound_.upper <= 0.02
    # Few samples cannot show a small loss: the full model remains, and is another object.
    few = learn[:60], labels[:60]
    full = compress(svc, X, y, validation=few, settings=FEW, random_state=0)
    assert full.expansion_ == svc.expansion_
    assert full.loss_bound_.loss == 0.0
    whole = as_expansion(svc)
    assert compress(whole, X, y, validation=few, settings=FEW, random_state=0) is not whole
    assert whole.loss_bound_ is None
    with pytest.raises(ValueError, match="max_loss=0 is not reached: 3 vectors"):
        compression_path(svc, n_vectors=3).select(learn, labels, max_loss=0.0)


def test_the_work_is_planned(rings):
    (X, y), _, _ = rings
    expansion = SVC(C=10, gamma=2.0).fit(X, y).expansion_
    settings = GradientSettings()
    sizes, steps = plan_construction(expansion, 600, settings)
    assert sizes[0] == expansion.n_vectors // 2
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == 1
    cost = settings.batch * (2 * 2 + 3 + COST_PER_VECTOR)
    assert sum(sizes) * steps * cost <= MAX_OPERATIONS
    wide = KernelExpansion(np.zeros((900, 60_000)), np.ones(900), 0.0)
    assert plan_construction(wide, 600, settings)[0] == []
    assert plan_construction(expansion, 600, FEW)[1] == 300


def test_without_labels_the_bound_is_of_agreement(rings):
    (X, y), (learn, _), (other, _) = rings
    svc = SVC(C=10, gamma=2.0).fit(X, y)
    small = compress(svc, learn, min_agreement=0.98, settings=FEW, random_state=0)
    assert small.loss_bound_.measure == "agreement"
    assert (small.predict(other) != svc.predict(other)).mean() <= small.loss_bound_.upper
    assert compress(svc, learn, settings=FEW, random_state=0).loss_bound_.max_loss == pytest.approx(0.01)


def test_a_size_gets_the_best_of_its_models(rings):
    (X, y), (learn, labels), _ = rings
    svc = peer.SVC(C=10, gamma=2.0).fit(X, y)
    small = compress(svc, X, y, n_vectors=12, validation=(learn, labels), settings=FEW, random_state=0)
    assert small.expansion_.n_vectors == 12
    assert small.loss_bound_.max_loss is None
    for options in ({"method": "backfit"}, {"method": "gradient", "settings": FEW, "random_state": 0}):
        single = compress(svc, X, y, n_vectors=12, validation=(learn, labels), **options)
        assert small.loss_bound_.loss <= single.loss_bound_.loss + 1e-12
    limited = compress(svc, learn, labels, max_bytes=700, settings=FEW, random_state=0)
    assert limited.expansion_.nbytes <= 700
    assert compress(svc, n_vectors=5).loss_bound_ == LossBound(None, None, 0.95, 0, "accuracy")
    assert compress(svc, X, y, n_vectors=5, method="backfit").loss_bound_.upper is None


def test_numbers_and_detectors_have_a_bound_too(diabetes):
    X, y = diabetes
    svr = SVR(C=100, gamma=0.02).fit(X[:200], y[:200])
    path = compression_path(svr, X[:200], y[:200])
    # Rows set the mean of the outputs: to that of y, or of the full model's.
    assert path[5].predict(X[:200]).mean() == pytest.approx(y[:200].mean())
    own = compression_path(svr, X[:200])
    assert own[5].predict(X[:200]).mean() == pytest.approx(svr.predict(X[:200]).mean())
    small = compress(svr, X[200:], y[200:], max_loss=0.02, settings=FEW, random_state=0)
    assert small.loss_bound_.measure == "r2"
    assert small.expansion_.n_vectors < svr.expansion_.n_vectors
    detector = OneClassSVM(nu=0.2, gamma=0.1).fit(X[:200])
    few = compress(detector, X[200:], min_agreement=0.9, settings=FEW, random_state=0)
    assert few.loss_bound_.loss <= 0.1
    inside = detector.predict(X[200:])
    assert compress(detector, X[200:], inside, n_vectors=8, method="backfit").score_samples(X).shape == (
        len(X),
    )
    with pytest.raises(ValueError, match="1 or -1"):
        compress(detector, X[200:], np.zeros(len(X) - 200), n_vectors=8, method="backfit")


def written(bound):
    """The sentences of a bound."""
    return str(bound).split(". ")


def test_a_bound_is_written_in_sentences():
    rows = "on 323 held-out samples"
    other = "The loss on other samples is at most"
    assert written(LossBound(-0.0031, 0.034, 0.95, 323, "accuracy", 0.003)) == [
        f"Accuracy +0.31 points {rows}",
        f"{other} 3.40 points with 95 % confidence; these samples cannot guarantee 0.30 points.",
    ]
    assert written(LossBound(0.01, 0.02, 0.9, 323, "balanced_accuracy")) == [
        f"Balanced accuracy -1.00 points {rows}",
        f"{other} 2.00 points with 90 % confidence.",
    ]
    assert written(LossBound(0.01, 0.02, 0.95, 323, "neg_mean_squared_error", 0.05)) == [
        f"Mean squared error +0.0100 {rows}",
        f"{other} 0.0200 with 95 % confidence.",
    ]
    assert written(LossBound(0.01, 0.02, 0.95, 323, "r2", None, 0.987, 0.95)) == [
        f"R^2 -0.0100 {rows}",
        f"{other} 0.0200 with 95 % confidence",
        "Agreement with the teacher: 0.9870 on these samples, at least 0.9500 on others.",
    ]
    assert written(LossBound(None, None, 0.95, 0, "accuracy", 0.003)) == [
        "No samples were held out, so there is no bound of the loss."
    ]


@pytest.mark.parametrize(("upper", "least"), [(0.02, "98.00 %"), (1.2, "0.00 %")])
def test_a_bound_of_the_agreement_is_written_as_agreement(upper, least):
    (text,) = written(LossBound(0.01, upper, 0.95, 200, "agreement", 0.01))
    assert "agree with the full model's for 99.00 % of 200 held-out samples" in text
    assert f"for at least {least} of other samples" in text
    assert text.endswith("these samples cannot guarantee 99.00 %.")
