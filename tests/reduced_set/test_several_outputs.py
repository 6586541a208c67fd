"""Regressors of several outputs: each counts on its own scale, as in scikit-learn's ``score``."""

import numpy as np
import pytest
from sklearn.metrics import mean_squared_error, r2_score

from helpers.reference import path_by
from svmarrow import RLSRegressor, TabularRegressor, as_expansion, compress, compression_path, quantize
from svmarrow.papers.reduced_set import PaperSettings
from svmarrow.reduced_set import GradientSettings, SelectionSettings
from svmarrow.reduced_set.holdout import HoldoutEvaluator, ratio_bound

FEW = GradientSettings(steps=500)


def targets(X, scales=(1.0, 1e6), seed=0):
    noise = 0.1 * np.random.default_rng(seed).normal(size=(len(X), 2))
    return (np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + noise) * scales


@pytest.fixture(scope="module")
def samples():
    """Train, held out, new."""
    return np.random.default_rng(0).normal(size=(3, 300, 3))


@pytest.fixture(scope="module")
def full(samples):
    return RLSRegressor(alpha=0.1, gamma=0.2).fit(samples[0], targets(samples[0]))


@pytest.fixture(scope="module", params=[False, True], ids=["equal", "weighted"])
def weights(request):
    return np.random.default_rng(1).integers(0, 4, 300).astype(float) if request.param else None


def test_the_loss_is_that_of_the_score(full, samples, weights):
    X, V, _ = samples
    y = targets(V, seed=1)
    held_out = (V, y) if weights is None else (V, y, weights)
    small = compress(full, X, n_vectors=20, method="backfit", validation=held_out)
    wanted = full.score(V, y, weights) - small.score(V, y, weights)
    assert small.loss_bound_.loss == pytest.approx(wanted, rel=1e-9)
    assert small.loss_bound_.measure == "r2"
    agreement = compress(
        full, X, n_vectors=20, method="backfit", validation=(held_out[0], None, *held_out[2:])
    ).loss_bound_
    share = r2_score(full.predict(V), small.predict(V), sample_weight=weights)
    assert 1.0 - agreement.loss == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize(
    ("scoring", "metric"),
    [("r2", r2_score), ("neg_mean_squared_error", lambda *a, **k: -mean_squared_error(*a, **k))],
)
def test_scores_of_a_path_are_the_means_of_the_outputs(full, samples, weights, scoring, metric):
    X, V, _ = samples
    y = targets(V, seed=1)
    path = compression_path(full, X, n_vectors=30)
    options = {"scoring": scoring, "sample_weight": weights}
    wanted = [metric(y, path[size].predict(V), sample_weight=weights) for size in (5, 30)]
    np.testing.assert_allclose(path.scores(V, y, (5, 30), **options), wanted, rtol=1e-9)
    of_full = metric(y, full.predict(V), sample_weight=weights)
    assert path.full_score(V, y, **options) == pytest.approx(of_full, rel=1e-9)
    bound = path.select(V, y, max_bytes=path.nbytes(20), **options).loss_bound_
    best = max(metric(y, path[size].predict(V), sample_weight=weights) for size in range(1, 21))
    assert bound.loss == pytest.approx(of_full - best, rel=1e-6)


def test_the_goal_is_reached_in_each_output(full, samples):
    X, V, new = samples
    held_out = V, targets(V, seed=1)
    small = compress(full, X, targets(X), max_loss=0.02, validation=held_out, settings=FEW, random_state=0)
    assert small.expansion_.n_vectors < 100
    assert small.loss_bound_.loss <= 0.02
    y = targets(new, seed=2)
    assert full.score(new, y) - small.score(new, y) <= small.loss_bound_.upper
    agreeing = compress(full, X, min_agreement=0.98, validation=(V, None), settings=FEW, random_state=0)
    assert agreeing.expansion_.n_vectors < 150
    assert min(r2_score(full.predict(new), agreeing.predict(new), multioutput="raw_values")) > 0.95
    assert agreeing.loss_bound_.loss <= 0.02


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("backfit", None),
        ("basic", None),
        ("backfit", SelectionSettings(criterion="predictions")),
        ("l1", None),
        ("l1", PaperSettings(refit=False)),
        ("gradient", FEW),
    ],
)
def test_units_do_not_matter(samples, method, settings):
    X, V, _ = samples
    found = []
    for scales in ((1.0, 1.0), (2.0**-10, 2.0**30)):
        model = RLSRegressor(alpha=0.1, gamma=0.2).fit(X[:80], targets(X[:80]) / (1.0, 1e6) * scales)
        path = path_by(method, model, X, n_vectors=20, settings=settings, random_state=0)
        found.append(path[20].predict(V) / scales)
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)


def test_units_do_not_matter_for_targets_that_vectors_learn_from(samples):
    X, V, _ = samples
    found = []
    for scales in ((1.0, 1.0), (2.0**-10, 2.0**30)):
        y = targets(X) / (1.0, 1e6) * scales
        model = RLSRegressor(alpha=0.1, gamma=0.2).fit(X, y)
        small = compress(model, X, y, n_vectors=20, method="gradient", settings=FEW, random_state=0)
        found.append(small.predict(V) / scales)
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)


@pytest.mark.parametrize("value", [0.0, 3.5])
def test_a_constant_output_is_right_or_wrong(samples, value, weights):
    X, V, _ = samples
    y, held_out = targets(X), targets(V, seed=1)
    y, held_out = (np.column_stack([one, np.full(300, value)]) for one in (y, held_out))
    model = RLSRegressor(alpha=0.1, gamma=0.2).fit(X, y)
    small = compress(model, X, y, max_loss=0.02, validation=(V, held_out), settings=FEW, random_state=0)
    assert small.loss_bound_.loss == pytest.approx(model.score(V, held_out) - small.score(V, held_out))
    assert small.loss_bound_.loss <= 0.02
    assert small.expansion_.n_vectors < 150
    evaluator = HoldoutEvaluator(as_expansion(model), V, held_out, sample_weight=weights)
    # A target that is predicted exactly by one of both models.
    exact = model.predict(V)
    exact[:, 2] = value
    scores = evaluator.scores_of_sizes(lambda *_: exact[None], [1], 1)[0]
    wanted = model.score(V, held_out, weights) - r2_score(held_out, exact, sample_weight=weights)
    assert evaluator.loss(scores) == pytest.approx(wanted)
    assert evaluator.loss(scores) == (0.0 if value == 0.0 else pytest.approx(-1 / 3))
    assert evaluator.bound(scores, 0.05) == pytest.approx(evaluator.loss(scores))


def test_the_bound_of_several_outputs_holds_with_its_confidence():
    random = np.random.default_rng(0)
    shares = random.exponential(size=(100_000, 3)) * [1.0, 1e6, 1e-6]
    lost = shares * [0.0, 0.3, -0.1] + 0.1 * random.normal(size=(100_000, 3)) * [1.0, 1e6, 1e-6]
    true = (lost.sum(axis=0) / shares.sum(axis=0)).mean()
    drawn = [random.integers(0, len(lost), 300) for _ in range(2000)]
    assert 0.02 < np.mean([ratio_bound(lost[at], shares[at], 0.05) < true for at in drawn]) < 0.06


def test_a_quantized_model_differs_in_units_of_each_output(full, samples):
    made = quantize(full, X=samples[1], y=targets(samples[1]))
    result = made.quantization_
    before, after = full.predict(samples[1]), made.predict(samples[1])
    relative = ((after - before) ** 2).mean(axis=0) / before.var(axis=0)
    assert result.relative_difference == pytest.approx(np.sqrt(relative.mean()))
    assert result.score_after == pytest.approx(made.score(samples[1], targets(samples[1])))


def test_a_tabular_regressor_loses_no_small_target(samples):
    X, V, _ = samples
    y = targets(V, seed=1)
    model = TabularRegressor().fit(X, targets(X))
    small = compress(model, X, targets(X), max_loss=0.03, validation=(V, y), settings=FEW, random_state=0)
    assert small.expansion_.n_vectors < 150
    loss = model.score(V, y) - small.score(V, y)
    assert small.loss_bound_.loss == pytest.approx(loss)
    assert loss <= 0.03
