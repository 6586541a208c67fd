"""SVC: optimal by the oracle, equal to scikit-learn's, the same under every switch."""

from __future__ import annotations

import io
import pickle
import re
import sys
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel
from sklearn.utils.multiclass import _ovr_decision_function

from helpers import reference
from svmarrow import SVC, SVCCV, LowRankSVC, NuSVC
from svmarrow._support import progress as _progress
from svmarrow.models.outputs import class_indices

Peer = sklearn.svm.SVC

KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": "auto", "C": 30.0},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
]
NAMES = ["cancer", "digits", "moons", "iris"]


def spec_of(model):
    return model.expansion_.kernel_spec


def dual_of(model, spec, X, y):
    K = reference.kernel(spec, X, X)
    return sum(
        reference.dual_objective(K[np.ix_(rows, rows)], signs, beta)
        for _, rows, signs, beta in reference.machines(model, y)
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("params", KERNELS, ids=str)
def test_parity_with_scikit_learn(datasets, name, params):
    X, y = datasets[name]
    ours, peer = SVC(**params).fit(X, y), Peer(**params, tol=1e-4).fit(X, y)
    spec = spec_of(ours)
    assert spec[1] == pytest.approx(peer._gamma) or spec[0] == "linear"
    expected = dual_of(peer, spec, X, y)
    assert dual_of(ours, spec, X, y) == pytest.approx(expected, rel=1e-5)
    assert ours.certificate_.dual == pytest.approx(expected, rel=1e-5)
    assert abs(int(ours.n_support_.sum()) - int(peer.n_support_.sum())) <= max(
        2, 0.01 * peer.n_support_.sum()
    )
    assert (ours.predict(X) == peer.predict(X)).mean() >= 0.999
    shape = {"decision_function_shape": "ovo"}
    mine, theirs = (
        ours.set_params(**shape).decision_function(X),
        peer.set_params(**shape).decision_function(X),
    )
    assert mine.shape == theirs.shape
    scale = np.abs(theirs).max()
    assert np.abs(mine - theirs).max() <= 0.01 * scale
    assert ours.dual_coef_.shape[0] == peer.dual_coef_.shape[0]
    assert ours.intercept_ == pytest.approx(peer.intercept_, abs=0.01 * scale)
    if params["kernel"] == "linear":
        assert ours.coef_ == pytest.approx(peer.coef_, abs=0.01 * scale)
        assert not ours.coef_.flags.writeable


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_solution_is_optimal(datasets, name, multi_class, kernel):
    X, y = datasets[name]
    svc = SVC(kernel=kernel, gamma=0.2, C=3.0, multi_class=multi_class).fit(X, y)
    K = reference.kernel(spec_of(svc), X, X)
    outputs = svc.expansion_.decision_function(X)
    for output, rows, signs, beta in reference.machines(svc, y):
        part = K[np.ix_(rows, rows)]
        machine = svc.certificate_.machines[output]
        upper = np.full(len(rows), 3.0)
        assert reference.feasible(signs, upper, beta, 1e-9)
        assert reference.violation(part, signs, upper, beta) <= 1.05e-3 + 1e-4
        f = part @ beta + svc.intercept_[output]
        primal = 0.5 * beta @ part @ beta + 3.0 * np.maximum(0, 1 - signs * f).sum()
        dual = reference.dual_objective(part, signs, beta)
        # The interval has room for kernel values that were rounded to single precision.
        assert dual - 1e-5 * abs(dual) <= machine.dual <= dual
        room = 1e-4 * primal + machine.rounding * upper.sum()
        assert primal - 1e-9 * primal <= machine.primal <= primal + room
        assert machine.gap == pytest.approx(machine.primal - machine.dual)
        assert machine.support == np.count_nonzero(beta)
        assert outputs[rows, output] == pytest.approx(f, abs=1e-6 * max(1.0, np.abs(f).max()))


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 60),
    c=st.sampled_from([0.01, 1.0, 100.0]),
    gamma=st.sampled_from([0.05, 1.0, 20.0]),
    duplicates=st.booleans(),
)
def test_against_the_slow_solver(seed, n, c, gamma, duplicates):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1 if duplicates else 8)
    y = rng.integers(0, 2, size=n)
    y[:2] = [0, 1]
    svc = SVC(C=c, gamma=gamma, tol=1e-5).fit(X, y)
    K, signs, upper = (
        reference.kernel(("rbf", gamma, 0.0, 3), X, X),
        np.where(y == 1, 1.0, -1.0),
        np.full(n, c),
    )
    exact, b = reference.solve(K, signs, upper)
    best = reference.dual_objective(K, signs, exact)
    assert svc.certificate_.dual <= best + 1e-5 * abs(best) + 1e-9
    assert svc.certificate_.dual == pytest.approx(best, rel=1e-4)
    free = (exact * signs > 1e-8 * c) & (exact * signs < c * (1 - 1e-8))
    if free.any():
        assert svc.decision_function(X) == pytest.approx(K @ exact + b, abs=5e-3 * max(1.0, abs(b)))
    machine = svc.certificate_.machines[0]
    if machine.support == machine.bounded:
        # b may lie between the largest value that a row needs at least and the smallest that one allows.
        beta, g = np.zeros(n), K @ exact
        beta[svc.support_] = svc.expansion_.coefficients[:, 0]
        raised, lowered = (
            np.where(signs > 0, beta < upper, beta < 0),
            np.where(signs > 0, beta > 0, beta > -upper),
        )
        room = (signs - g)[lowered].min() - (signs - g)[raised].max()
        assert machine.intercept_range == pytest.approx(max(room, 0.0), abs=2e-3)
    else:
        assert machine.intercept_range == 0.0


SWITCHES = [
    {"shrinking": False},
    {"cache_size": 0.01},
    {"n_jobs": 1},
    {"n_jobs": 3},
    {"data": "float32"},
    {"data": "csr"},
    {"data": "csr64"},
    {"data": "fortran"},
    {"data": "strided"},
]


def as_data(X, kind):
    match kind:
        case "float32":
            return X.astype(np.float32)
        case "csr":
            return sp.csr_array(X)
        case "csr64":
            S = sp.csr_array(X)
            return sp.csr_array(
                (S.data, S.indices.astype(np.int64), S.indptr.astype(np.int64)), shape=S.shape
            )
        case "fortran":
            return np.asfortranarray(X)
        case "strided":
            wide = np.full((2 * X.shape[0], X.shape[1] + 3), np.nan)
            wide[::2, : X.shape[1]] = X
            return wide[::2, : X.shape[1]]
    return X


@pytest.mark.parametrize("name", ["cancer", "digits"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("switch", SWITCHES, ids=str)
def test_switches_change_the_way_not_the_result(datasets, name, multi_class, switch):
    X, y = datasets[name]
    options = {"C": 5.0, "gamma": 0.05, "multi_class": multi_class, "tol": 1e-4}
    plain = SVC(**options).fit(X, y)
    data = as_data(X, switch.get("data"))
    other = SVC(**options | {k: v for k, v in switch.items() if k != "data"}).fit(data, y)
    assert other.certificate_.stop == "converged"
    assert other.certificate_.dual == pytest.approx(plain.certificate_.dual, rel=1e-5)
    # Each machine's own output: votes for classes jump where one is zero.
    outputs = [model.expansion_.decision_function(rows) for model, rows in ((other, data), (plain, X))]
    assert outputs[0] == pytest.approx(outputs[1], abs=5e-3)


def test_threads_give_the_same_bits(datasets):
    X, y = datasets["digits"]
    one, many = (SVC(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 4))
    assert one.expansion_ == many.expansion_
    assert np.array_equal(one.decision_function(X), many.decision_function(X))


def test_bytes_are_numbers(datasets):
    X, y = datasets["digits"]
    raw = (X * 16).astype(np.uint8)
    on_bytes, on_doubles = SVC(gamma=0.002).fit(raw, y), SVC(gamma=0.002).fit(raw.astype(np.float64), y)
    assert on_bytes.support_vectors_.dtype == np.uint8
    assert on_bytes.certificate_.dual == pytest.approx(on_doubles.certificate_.dual, rel=1e-6)
    assert on_bytes.decision_function(raw) == pytest.approx(on_doubles.decision_function(raw), abs=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2", "poly", "matern12", "matern52"])
def test_precomputed_equals_built_in(datasets, kernel):
    X, y = datasets["iris"]
    spec = (kernel, 0.7, 0.5, 2)
    K = reference.kernel(spec, X, X)
    built = SVC(kernel=kernel, gamma=0.7, coef0=0.5, degree=2, C=2.0, tol=1e-5).fit(X, y)
    given_K = SVC(kernel="precomputed", C=2.0, tol=1e-5).fit(K, y)
    assert given_K.support_vectors_.shape == (0, 0)
    assert given_K.decision_function(K[3:40]) == pytest.approx(built.decision_function(X[3:40]), abs=1e-3)


@pytest.mark.parametrize(("name", "function"), [("laplacian", laplacian_kernel), ("chi2", chi2_kernel)])
def test_kernels_that_the_peer_only_has_as_functions(datasets, name, function):
    X, y = datasets["iris"]
    ours = SVC(kernel=name, gamma=0.5).fit(X, y)
    peer = Peer(kernel="precomputed").fit(function(X, gamma=0.5), y)
    assert ours.n_support_.sum() == pytest.approx(peer.n_support_.sum(), abs=2)
    assert np.array_equal(ours.predict(X), peer.predict(function(X, gamma=0.5)))


@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_weights_are_parity_and_repetition(datasets, rng, name):
    X, y = datasets[name]
    weights = rng.integers(0, 4, size=len(y))
    ours = SVC(gamma=0.3, tol=1e-5).fit(X, y, sample_weight=weights)
    repeated = SVC(gamma=0.3, tol=1e-5).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert ours.decision_function(X) == pytest.approx(repeated.decision_function(X), abs=1e-4)
    assert not np.isin(np.flatnonzero(weights == 0), ours.support_).any()
    balanced = {"gamma": 0.3, "class_weight": "balanced", "tol": 1e-4}
    mine, peer = (kind(**balanced).fit(X, y, sample_weight=weights) for kind in (SVC, Peer))
    assert mine.class_weight_ == pytest.approx(peer.class_weight_)
    assert mine.decision_function(X) == pytest.approx(peer.decision_function(X), abs=2e-3)


def test_weight_zero_with_a_precomputed_kernel(datasets):
    X, y = datasets["iris"]
    K = X @ X.T
    weights = np.ones(len(y))
    weights[::3] = 0
    kept = np.flatnonzero(weights)
    whole = SVC(kernel="precomputed", tol=1e-5).fit(K, y, sample_weight=weights)
    part = SVC(kernel="linear", tol=1e-5).fit(X[kept], y[kept])
    assert np.array_equal(whole.support_, kept[part.support_])
    assert whole.decision_function(K) == pytest.approx(part.decision_function(X), abs=1e-4)


def test_decoding_is_that_of_scikit_learn(datasets):
    X, y = datasets["digits"]
    ours, peer = (kind(tol=1e-4).fit(X, y) for kind in (SVC, Peer))
    pairwise = ours.set_params(decision_function_shape="ovo").decision_function(X)
    expected = _ovr_decision_function(pairwise < 0, -pairwise, 10)
    assert ours.set_params(decision_function_shape="ovr").decision_function(X) == pytest.approx(
        expected, abs=1e-12
    )
    peer_values = peer.decision_function(X)
    # A pairwise value within the tolerance of 0 may vote either way.
    assert (np.abs(expected - peer_values) < 1e-2).mean() > 0.999
    assert np.array_equal(ours.predict(X), peer.predict(X))
    ours.set_params(break_ties=True)
    assert np.array_equal(ours.predict(X), ours.classes_[np.argmax(expected, axis=1)])


def test_votes_on_the_line_go_to_the_second_class():
    """LIBSVM's rule for f = 0, in the votes and for two classes."""
    assert class_indices(np.zeros((1, 1)), "binary", 2).tolist() == [1]
    assert class_indices(np.zeros((1, 3)), "ovo", 3).tolist() == [2]
    assert class_indices(np.array([[1.0, -1.0, 1.0]]), "ovo", 3).tolist() == [0]
    assert class_indices(np.zeros((1, 3)), "ovr", 3).tolist() == [0]


def test_one_against_the_rest_is_that_many_binary_machines(datasets):
    X, y = datasets["iris"]
    svc = SVC(multi_class="ovr", gamma=1.0, tol=1e-5).fit(X, y)
    values = svc.decision_function(X)
    assert svc.dual_coef_.shape == (3, len(svc.support_))
    for j in range(3):
        binary = SVC(gamma=1.0, tol=1e-5).fit(X, y == j)
        assert values[:, j] == pytest.approx(binary.decision_function(X), abs=1e-4)
    assert np.array_equal(svc.predict(X), svc.classes_[np.argmax(values, axis=1)])


def test_two_classes_are_one_machine_whatever_the_coding(datasets):
    X, y = datasets["moons"]
    one, other = SVC(multi_class="ovo").fit(X, y), SVC(multi_class="ovr").fit(X, y)
    assert one.expansion_ == other.expansion_
    assert one.decision_function(X).shape == (len(y),)


@pytest.mark.parametrize("budget", [{"max_iter": 3}, {"max_time": 0.0}])
def test_a_fit_that_ends_early_is_usable_and_warns(datasets, budget):
    X, y = datasets["cancer"]
    with pytest.warns(ConvergenceWarning, match=f"{next(iter(budget))}.*gap"):
        svc = SVC(C=1e4, tol=1e-6, **budget).fit(X, y)
    assert svc.certificate_.stop == next(iter(budget))
    assert svc.fit_status_ == 1
    assert np.isfinite(svc.decision_function(X)).all()
    if "max_iter" in budget:
        assert svc.n_iter_.max() <= 3
    signs = np.where(y == 1, 1.0, -1.0)
    beta = np.zeros(len(y))
    beta[svc.support_] = svc.dual_coef_[0]
    assert reference.feasible(signs, np.full(len(y), 1e4), beta, 1e-6)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, r"C=0\.0 is not allowed: it must be a finite number above 0"),
        ({"C": -np.inf}, r"C=-inf is not allowed: it must be a finite number above 0 or inf"),
        ({"C": "1"}, r"C='1'"),
        ({"C": True}, r"C=True"),
        ({"gamma": -1.0}, r"gamma=-1\.0"),
        ({"gamma": np.nan}, r"gamma=nan"),
        ({"gamma": "wide"}, r"gamma='wide' .*'scale', 'auto' or a finite number"),
        ({"kernel": "cosine"}, r"kernel='cosine' .*'rbf'"),
        ({"kernel": np.ndarray}, r"kernel=.* is not allowed.*function"),
        ({"degree": -1}, r"degree=-1"),
        ({"degree": 2.5}, r"degree=2\.5"),
        ({"coef0": np.inf}, r"coef0=inf"),
        ({"tol": 0.0}, r"tol=0\.0"),
        ({"cache_size": 0}, r"cache_size=0"),
        ({"class_weight": "even"}, r"class_weight='even'"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, r"class_weight.*not negative"),
        ({"multi_class": "all"}, r"multi_class='all'"),
        (
            {"multi_class": "ovr", "decision_function_shape": "ovo", "kernel": "linear"},
            r"decision_function_shape='ovo'",
        ),
        ({"break_ties": True, "decision_function_shape": "ovo"}, r"break_ties=True"),
        ({"max_iter": 0}, r"max_iter=0"),
        ({"max_time": -1.0}, r"max_time=-1\.0"),
        ({"n_jobs": 0}, r"n_jobs=0"),
        ({"shrinking": 1}, r"shrinking=1"),
        ({"verbose": "yes"}, r"verbose='yes'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_bad_parameters_are_named(datasets, params, message):
    X, y = datasets["iris"]
    y = y if "multi_class" in params else (y > 0).astype(int)
    with pytest.raises(ValueError, match=message):
        SVC(**params).fit(X, y)


def test_bad_data_is_refused(datasets):
    X, y = datasets["iris"]
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SVC().fit(broken, y)
    with pytest.raises(ValueError, match="1 class"):
        SVC().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC().fit(X, y[:-1])
    with pytest.raises(ValueError, match="0 sample"):
        SVC().fit(X[:0], y[:0])
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\)"):
        SVC().fit(X, y, sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="not negative"):
        SVC().fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match=r"leaves the classes \[1\] of y: at least 2"):
        SVC().fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match="class 2 are all zero"):
        SVC(class_weight={2: 0.0}).fit(X, y)
    with pytest.raises(ValueError, match="class 2 are all zero"):
        SVCCV(Cs=1, gammas=1).fit(X, y, sample_weight=(y < 2).astype(float))
    with pytest.raises(ValueError, match="square"):
        SVC(kernel="precomputed").fit(X, y)
    with pytest.raises(TypeError, match="dense"):
        SVC(kernel="precomputed").fit(sp.csr_array(X @ X.T), y)
    with pytest.raises(ValueError, match="Negative"):
        SVC(kernel="chi2").fit(X - 1, y)
    with pytest.raises(NotFittedError):
        SVC().predict(X)
    fitted = SVC().fit(X, y)
    before = fitted.expansion_
    with pytest.raises(ValueError, match="features"):
        fitted.predict(X[:, :3])
    with pytest.raises(ValueError, match="1 class"):
        fitted.fit(X, np.zeros(len(y)))
    assert fitted.expansion_ is before


def test_attributes_before_fit_are_missing():
    for name in ["support_vectors_", "dual_coef_", "intercept_", "coef_", "n_iter_", "fit_status_"]:
        assert not hasattr(SVC(kernel="linear"), name)


def test_pickle_keeps_every_bit(datasets):
    X, y = datasets["digits"]
    svc = SVC().fit(sp.csr_array(X), y)
    svc.predict(X)
    copy = pickle.loads(pickle.dumps(svc))
    assert copy.expansion_ == svc.expansion_
    assert np.array_equal(copy.decision_function(X), svc.decision_function(X))
    assert copy.certificate_ == svc.certificate_


def test_verbose_tells_on_stderr_only(datasets, capfd, monkeypatch):
    X, y = datasets["digits"]
    SVC().fit(X, y)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(_progress, "_LINE_INTERVAL", 0.0)
    with _progress.progress(verbose=1) as told:
        told.tolerance = 1e-3
        told.callback("fit", 3, 10, 0.5, 1000)
        told.callback("read", 3, None, np.nan, 0)
    out, err = capfd.readouterr()
    assert out == ""
    first, second = (re.sub(r"\d+ s$", "0 s", line) for line in err.splitlines())
    assert first == "training: 30 %, 1,000 steps, violation 0.5 (tolerance 0.001), 0 s"
    assert second == "read: 3, 0 s"
    with pytest.warns(ConvergenceWarning):
        SVC(C=1e6, gamma=1e-3, tol=1e-9, max_time=0.5, verbose=1).fit(*_endless())
    out, err = capfd.readouterr()
    assert out == ""
    assert re.match(r"training: .*\d+ s", err)


def _endless():
    rng = np.random.default_rng(0)
    return rng.normal(size=(6000, 8)), rng.integers(0, 2, size=6000)


def test_one_bar_on_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", _Terminal())
    with _progress.progress(1) as first, _progress.progress(1) as second:
        assert first.callback is not None
        first.callback("fit", 1, None, 0.5, 10)
        second.callback("fit", 1, None, 0.5, 10)
    assert not _progress._Line._terminal.locked()
    # One line that is rewritten, and removed at the end.
    text = sys.stderr.getvalue()
    assert text.startswith("\rtraining: ")
    assert text.endswith("\r")
    assert "\n" not in text


def test_the_remaining_time_is_estimated():
    told = _progress.Progress()
    told._describe("factor", 0, 100, np.nan, 0)
    told._phase_begin -= 10.0
    assert re.match(
        r"factorization: 20 %, \d+ s, about \d+ s left in this phase",
        told._describe("factor", 20, 100, np.nan, 0),
    )
    # Gradients are a step of training, and their totals mean nothing to a user.
    told._describe("fit", 0, 1, 0.5, 1000)
    text = told._describe("gradients", 576, 1126, np.nan, 0)
    assert re.fullmatch(r"training: violation 0\.5, \d+ s", text)
    # Another total is another phase, of which nothing is known yet.
    assert "left" not in told._describe("factor", 30, 200, np.nan, 0)


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("cheap", [0, 10**6], ids=["kept", "computed"])
def test_sizes_of_the_solver_change_the_rounds_and_not_the_solution(all_digits, cheap):
    X, y = all_digits
    shared = {"C": 5.0, "gamma": 0.02, "tol": 1e-5, "multi_class": "ovr"}
    found = {}
    for block in (2, 32, 1024):
        svc = SVC(**shared)
        svc._tuning = {"block": block, "max_block": block, "nested_block": 16, "cheap_kernel": cheap}
        found[block] = svc.fit(X[:600], y[:600])
    usual = SVC(**shared).fit(X[:600], y[:600])
    rounds = [sum(m.rounds for m in model.certificate_.machines) for model in found.values()]
    assert rounds == sorted(rounds, reverse=True)
    assert rounds[0] > 5 * rounds[1] > 5 * rounds[2]
    for model in found.values():
        assert model.certificate_.stop == "converged"
        assert model.certificate_.dual == pytest.approx(usual.certificate_.dual, rel=1e-6)
        np.testing.assert_allclose(model.decision_function(X), usual.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("cheap", [0, 10**6], ids=["kept", "computed"])
def test_without_long_steps_there_are_more_steps_and_the_same_solution(cheap):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] > 0.3 * rng.normal(size=400)
    sizes = {"nested_block": 128, "cheap_kernel": cheap}
    found = {}
    for newton_steps, active_set in product((True, False), repeat=2):
        svc = SVC(C=1e4, gamma=0.3, tol=1e-4)
        svc._tuning = {**sizes, "newton_steps": newton_steps, "active_set": active_set}
        found[newton_steps, active_set] = svc.fit(X, y)
    steps = {key: int(svc.n_iter_[0]) for key, svc in found.items()}
    assert 2 * steps[True, False] < steps[False, False], steps
    assert steps[True, True] < steps[False, False]
    assert len({*steps.values()}) > 2
    duals = [svc.certificate_.dual for svc in found.values()]
    assert duals == pytest.approx([duals[0]] * 4, rel=1e-5)


def test_a_block_of_one_row_is_refused(all_digits):
    svc = SVC()
    svc._tuning = {"block": 1}
    with pytest.raises(ValueError, match="block"):
        svc.fit(*all_digits)


def test_an_intercept_that_the_rows_leave_open_is_certified():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), np.repeat(["left", "right"], 60)
    X[:60] += 0.5
    svc = SVC(C=1e-3, gamma=0.1).fit(X, y)
    (machine,) = svc.certificate_.machines
    assert machine.support == machine.bounded == 120
    assert 1.5 < machine.intercept_range <= 2.0
    # Both ends of the interval cost the same: nothing but the middle speaks for the middle.
    sign = np.where(y == "right", 1.0, -1.0)
    f = svc.decision_function(X)
    losses = [np.maximum(0, 1 - sign * (f + step)).sum() for step in (-0.49, 0.0, 0.49)]
    assert np.ptp(losses) < 1e-3 * losses[1]


@pytest.mark.parametrize(
    "options", [{"C": 10.0}, {"C": 1e-3, "fit_intercept": False}, {"C": 1e-3, "rows": 90}], ids=str
)
def test_an_intercept_that_is_settled_has_no_range(options):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), np.repeat([0, 1], 60)
    X[:60] += 0.5
    rows = options.get("rows", 120)
    given = {name: value for name, value in options.items() if name != "rows"}
    svc = SVC(gamma=0.1, **given).fit(X[:rows], y[:rows])
    assert svc.certificate_.machines[0].intercept_range < 0.1


@pytest.mark.parametrize("absent", [0, 1, 2])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 1: 0.5, 2: 3.0}], ids=str)
@pytest.mark.parametrize("kind", [SVC, NuSVC, LowRankSVC])
def test_a_class_without_weight_is_absent(datasets, kind, class_weight, absent):
    X, y = datasets["iris"]
    names = np.array(["a", "b", "c"])[y]
    if isinstance(class_weight, dict):
        class_weight = {"abc"[c]: weight for c, weight in class_weight.items()}
    kept = y != absent
    own = {NuSVC: {"nu": 0.2}, LowRankSVC: {"n_vectors": 20, "random_state": 0}}.get(kind, {})
    machine = kind(**own, class_weight=class_weight, gamma=0.3)
    fitted = clone(machine).fit(X, names, sample_weight=kept.astype(float))
    if isinstance(class_weight, dict):
        machine.set_params(class_weight={c: class_weight[c] for c in names[kept]})
    alone = machine.fit(X[kept], names[kept])
    assert fitted.classes_.tolist() == alone.classes_.tolist()
    assert np.array_equal(fitted.class_weight_, alone.class_weight_)
    assert np.array_equal(fitted.decision_function(X), alone.decision_function(X))
    assert np.array_equal(fitted.predict(X), alone.predict(X))


@pytest.mark.parametrize("machine", [SVC(), LowRankSVC(20)], ids=str)
def test_bagging_leaves_rare_classes_out(datasets, machine):
    X, y = datasets["iris"]
    rare = np.r_[0:50, 50:100, 100:102]
    bags = BaggingClassifier(machine, n_estimators=8, max_samples=0.5, random_state=0)
    bags.fit(X[rare], y[rare], sample_weight=np.ones(rare.size))
    assert {machine.classes_.size for machine in bags.estimators_} == {2, 3}
    assert bags.score(X[rare], y[rare]) > 0.9


def test_an_infeasible_nu_is_refused_before_kernel_values_are_computed():
    calls = []

    def kernel(A, B):
        calls.append(A.shape)
        return A @ B.T

    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.repeat([0, 1, 2], (30, 6, 4))
    with pytest.raises(
        ValueError, match=r"nu=0\.5 .* at most 0\.235294, twice the share of the smaller class"
    ):
        NuSVC(nu=0.5, kernel=kernel).fit(X, y)
    assert not calls
    with pytest.raises(ValueError, match=r"at most 0\.200000, twice"):
        NuSVC(nu=0.5, kernel=kernel, multi_class="ovr").fit(X, y, sample_weight=np.ones(40))
    assert not calls
    NuSVC(nu=0.2, kernel=kernel).fit(X, y)
    assert calls


def test_bounds_that_cancel_leave_the_intercept_open():
    # Weights 1, 1 and 2 cancel: no vector is between its bounds, but for the rounding of a step.
    X = np.random.default_rng(1593597602).normal(size=(29, 1))[:9]
    y = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])
    w = np.array([0, 1, 1, 0, 1, 1, 2, 1, 2])
    outputs = []
    for order in (np.arange(9), np.random.default_rng(1).permutation(9)):
        svc = SVC(kernel="poly", degree=4).fit(X[order], y[order], sample_weight=w[order])
        (machine,) = svc.certificate_.machines
        assert machine.support == machine.bounded == 3
        assert machine.intercept_range == pytest.approx(0.3028, abs=1e-3)
        outputs.append(svc.decision_function(X))
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-8)
