"""The choice of kernel, bandwidth and penalty: a few samples search, all samples decide."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from svmarrow import RLSClassifier, RLSRegressor
from svmarrow._support.progress import Steps
from svmarrow.least_squares._base import MIN_STEP_GAIN
from svmarrow.tabular import _choice
from svmarrow.tabular._choice import KERNELS, choose

RNG = np.random.default_rng(4)
X = RNG.normal(size=(160, 4))
WAVE = np.sin(2.0 * X[:, 0]) + np.abs(X[:, 1]) + 0.05 * RNG.normal(size=160)
LABELS = np.digitize(WAVE, [0.3, 1.0])
FEW = np.sort(RNG.permutation(160)[:50])
STARTS = [(0.125, 0.1), (1e-6, 0.003)]


def chosen(y, classify, weights=None, class_weight=None, **changed):
    about = {"n_jobs": 1, **({"class_weight": class_weight} if classify else {})}
    arguments = {
        "searched": FEW,
        "kernels": KERNELS,
        "starts": STARTS,
        "about": about,
        "classify": classify,
        "blocks": None,
    }
    return choose(X, y, weights, **{**arguments, **changed})


@pytest.mark.parametrize("classify", [False, True])
@pytest.mark.parametrize("searched", [FEW, np.arange(160)])
def test_no_step_from_the_choice_lowers_the_error_of_all_samples(classify, searched):
    y = LABELS if classify else WAVE
    choice = chosen(y, classify, searched=searched)
    machine = choice.machine
    kind = RLSClassifier if classify else RLSRegressor

    def error(width, penalty):
        gamma, alpha = width * machine.gamma, penalty * machine.alpha_
        model = kind(kernel=machine.kernel, gamma=gamma, alpha=alpha, fit_intercept=True, leave_one_out=True)
        model.fit(X, y)
        if not classify:
            return np.mean((model.loo_prediction_ - y) ** 2)
        codes = np.where(y[:, np.newaxis] == np.arange(3), 1.0, -1.0)
        return np.mean((model.loo_decision_ - codes) ** 2)

    assert choice.losses.mean() == pytest.approx(error(1.0, 1.0), rel=1e-9)
    for steps in ((2.0, 1.0), (0.5, 1.0), (1.0, 4.0), (1.0, 0.25)):
        assert error(*steps) > (1.0 - MIN_STEP_GAIN) * choice.losses.mean()


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 2.0, 2: 5.0}])
def test_weights_count_in_the_choice(class_weight):
    weights = RNG.integers(1, 4, size=160).astype(float)
    choice = chosen(LABELS, True, weights, class_weight)
    machine = choice.machine
    by_class = compute_sample_weight(class_weight, LABELS) if class_weight != "balanced" else None
    if by_class is None:
        totals = np.bincount(LABELS, weights)
        by_class = (weights.sum() / (3.0 * totals))[LABELS]

    def error(width, penalty):
        model = RLSClassifier(
            kernel=machine.kernel,
            gamma=width * machine.gamma,
            alpha=penalty * machine.alpha_,
            fit_intercept=True,
            leave_one_out=True,
            class_weight=class_weight,
        ).fit(X, LABELS, weights)
        codes = np.where(LABELS[:, np.newaxis] == np.arange(3), 1.0, -1.0)
        losses = ((model.loo_decision_ - codes) ** 2).mean(axis=1)
        return np.average(losses, weights=weights * by_class)

    least = error(1.0, 1.0)
    assert np.average(choice.losses, weights=weights * by_class) == pytest.approx(least, rel=1e-9)
    for steps in ((2.0, 1.0), (0.5, 1.0), (1.0, 4.0), (1.0, 0.25)):
        assert error(*steps) > (1.0 - MIN_STEP_GAIN) * least


def test_several_targets_share_a_choice():
    y = np.column_stack([WAVE, X[:, 2] * X[:, 3]])
    choice = chosen(y, False)
    machine = choice.machine
    model = RLSRegressor(
        kernel=machine.kernel,
        gamma=machine.gamma,
        alpha=machine.alpha_,
        fit_intercept=True,
        leave_one_out=True,
    ).fit(X, y)
    assert choice.losses == pytest.approx(((model.loo_prediction_ - y) ** 2).mean(axis=1), rel=1e-9)


def test_the_better_start_is_taken():
    useless = [(1e-6, 0.003)]
    both = chosen(WAVE, False, starts=[*useless, (0.125, 0.1)], kernels=("rbf",))
    alone = chosen(WAVE, False, starts=[(0.125, 0.1)], kernels=("rbf",))
    assert (both.machine.gamma, both.machine.alpha_) == (alone.machine.gamma, alone.machine.alpha_)


def refusing(refuses):
    fit = _choice._fit

    def fit_or_refuse(kind, rows, y, weights, blocks, about, gamma, alpha):
        if refuses(len(y), about["kernel"]):
            raise np.linalg.LinAlgError("not positive definite")
        return fit(kind, rows, y, weights, blocks, about, gamma, alpha)

    return fit_or_refuse


def test_a_kernel_whose_system_has_no_solution_is_left_out(monkeypatch):
    monkeypatch.setattr(_choice, "_fit", refusing(lambda n, kernel: n == 160 and kernel == "rbf"))
    assert chosen(WAVE, False).machine.kernel != "rbf"
    monkeypatch.undo()
    monkeypatch.setattr(_choice, "_fit", refusing(lambda _, kernel: kernel != "matern12"))
    assert chosen(WAVE, False).machine.kernel == "matern12"
    monkeypatch.undo()
    monkeypatch.setattr(_choice, "_fit", refusing(lambda *_: True))
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        chosen(WAVE, False)


def test_without_time_the_first_fit_is_made():
    choice = chosen(WAVE, False, steps=Steps(None, 0.0))
    assert choice.losses.size == 160
    assert (choice.machine.kernel, choice.machine.gamma, choice.machine.alpha_) == ("rbf", *STARTS[0])


def test_a_refused_search_passes_its_start_on(monkeypatch):
    starts = []
    fit = _choice._fit

    def recorded(kind, rows, y, weights, blocks, about, gamma, alpha):
        starts.append((about["kernel"], gamma, alpha))
        if about["kernel"] == "rbf":
            raise np.linalg.LinAlgError("not positive definite")
        return fit(kind, rows, y, weights, blocks, about, gamma, alpha)

    monkeypatch.setattr(_choice, "_fit", recorded)
    chosen(WAVE, False)
    place = next(place for place, (kernel, *_) in enumerate(starts) if kernel == "matern52")
    assert starts[place] == ("matern52", np.sqrt(STARTS[0][0]), STARTS[0][1])


def test_progress_does_not_run_backwards():
    reports = []
    steps = Steps(lambda phase, done, *_: reports.append((phase, done)), None)
    chosen(WAVE, False, steps=steps)
    done = [number for phase, number in reports if phase == "kernels"]
    assert done == sorted(done)
    assert done[-1] == len(KERNELS) - 1


def test_a_target_that_jumps_along_single_columns_has_the_laplacian_kernel():
    jumps = np.sign(X).sum(axis=1) + 0.05 * RNG.normal(size=160)
    choice = chosen(jumps, False)
    assert choice.machine.kernel == "laplacian"
    smooth = chosen(jumps, False, kernels=KERNELS[:-1])
    assert choice.losses.mean() < 0.3 * smooth.losses.mean()
    assert chosen(WAVE, False, kernels=("laplacian",)).machine.kernel == "laplacian"


def test_the_first_width_of_the_laplacian_kernel_is_that_of_the_same_distances(monkeypatch):
    widths = {}
    fit = _choice._fit

    def recorded(kind, rows, y, weights, blocks, about, gamma, alpha):
        widths.setdefault(about["kernel"], gamma)
        return fit(kind, rows, y, weights, blocks, about, gamma, alpha)

    monkeypatch.setattr(_choice, "_fit", recorded)
    chosen(WAVE, False, kernels=("rbf", "laplacian"))
    differences = np.abs(X[FEW] - np.roll(X[FEW], len(FEW) // 2, axis=0))
    ratio = np.sqrt((differences**2).sum(axis=1)).mean() / differences.sum(axis=1).mean()
    rbf = chosen(WAVE, False, kernels=("rbf",), searched=FEW)
    assert 0.3 < widths["laplacian"] / (np.sqrt(rbf.machine.gamma) * ratio) < 3.0


@pytest.mark.parametrize("classify", [False, True])
def test_blocks_leave_together(classify):
    y = LABELS if classify else WAVE
    blocks = np.arange(160) % 9
    choice = chosen(y, classify, blocks=blocks)
    machine = choice.machine
    kind = RLSClassifier if classify else RLSRegressor
    settings = {"kernel": machine.kernel, "gamma": machine.gamma, "alpha": machine.alpha_}
    losses = np.zeros(160)
    for block in range(9):
        out = blocks == block
        model = kind(**settings, fit_intercept=True).fit(X[~out], y[~out])
        if classify:
            codes = np.where(y[out, np.newaxis] == np.arange(3), 1.0, -1.0)
            losses[out] = ((model.decision_function(X[out]) - codes) ** 2).mean(axis=1)
        else:
            losses[out] = (model.predict(X[out]) - y[out]) ** 2
    assert choice.losses == pytest.approx(losses, rel=1e-5)
