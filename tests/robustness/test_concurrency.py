"""Threads, forks, processes and pools inside pools: the answers are those of one fit after the other.

Each way runs in a process of its own (`helpers.concurrency`), which is killed after a time limit.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import svmarrow
from helpers.concurrency import WAYS
from helpers.data import KIND
from helpers.data import STANDARD_IRIS as X
from helpers.estimators import QUICK, target
from helpers.fingerprints import digest
from helpers.interruption import HANG
from svmarrow._support.rows import one_blas_thread, product
from svmarrow.online import KernelPerceptron
from svmarrow.patch import ridge, svm

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = str(Path(svmarrow.__file__).parent)
NAMES = [way.__name__ for way in WAYS if hasattr(os, "fork") or not way.__name__.startswith("fork")]


@pytest.mark.quick_every(5)
@pytest.mark.parametrize("way", NAMES)
def test_concurrent_results_equal_serial_ones(way):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "helpers.concurrency", way],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


# --- the threads of BLAS ---


def blas_threads():
    from threadpoolctl import threadpool_info  # noqa: PLC0415 - the state at this moment

    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_one_thread_at_a_time_and_what_was_there_is_put_back():
    before, seen, ready = blas_threads(), [], threading.Event()

    def other():
        ready.set()
        with one_blas_thread():
            seen.append(blas_threads())

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert ready.wait(HANG)
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
        assert not seen
    thread.join()
    assert set(seen[0]) == {1}
    assert blas_threads() == before


def test_an_exception_puts_it_back():
    before = blas_threads()
    with pytest.raises(ValueError, match="matmul"):
        product(np.ones((2, 3)), np.ones((2, 3)))
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_waits_for_the_lock_and_its_child_can_work():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            inside.set()
            leave.wait(0.2)

    before, thread = blas_threads(), threading.Thread(target=other)
    thread.start()
    assert inside.wait(HANG)
    child = os.fork()
    if child == 0:
        # Without the wait the lock would be taken for ever.
        os._exit(0 if blas_threads() == before and product(np.eye(2), np.eye(2)).sum() == 2.0 else 1)
    leave.set()
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert blas_threads() == before


# --- one estimator, fitted and read at once ---

#: Two fits that have neither classes nor, with the other columns, rows in common.
PAIRS = {
    "other classes": ((X[::2], KIND[::2]), (X[1:90:2], KIND[1:90:2] + 5)),
    "other columns": ((X[::2], KIND[::2]), (np.hstack([X, X])[1:140:2], KIND[1:140:2] + 1)),
}


def reseeded(estimator):
    made = clone(estimator)
    return made.set_params(random_state=0) if "random_state" in made.get_params() else made


def given(estimator, pair, which):
    rows, kinds = PAIRS[pair][which]
    return rows, kinds if target(estimator) is KIND else np.sin(rows[:, 0]) + kinds


def outcome(call):
    """What a call gives or raises."""
    try:
        return digest(call())
    except (ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


def reads(model, rows):
    """Calls that read several attributes of a fit."""
    methods = (
        "predict",
        "decision_function",
        "score_samples",
        "route",
        "apply",
        "outputs",
        "predict_proba",
        "transform",
    )
    found = {name: (lambda name=name: getattr(model, name)(rows)) for name in methods if hasattr(model, name)}
    names = ("dual_coef_", "support_vectors_", "cumulative_error_", "best_params_")
    return found | {
        name: (lambda name=name: getattr(model, name)) for name in names if hasattr(type(model), name)
    }


class Traced:
    """Calls a function at every line, or at every call, of svmarrow that runs in this thread."""

    def __init__(self, function, event):
        self.function, self.event, self.inside = function, event, False

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == self.event and not self.inside:
            self.inside = True
            self.function()
            self.inside = False
        return self if self.event == "line" else None

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self)

    def __exit__(self, *_):
        sys.settrace(self.before)


LEARNERS = {type(estimator).__name__: estimator for estimator in QUICK} | {
    "patched SVC": svm.SVC(probability=True, random_state=0),
    "patched KernelRidge": ridge.KernelRidge(),
    "passes": KernelPerceptron(n_epochs=3),
    "votes": KernelPerceptron(prediction="voted"),
}


@pytest.mark.quick_every(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", LEARNERS)
def test_the_earlier_model_answers_until_the_refit_is_over(name, pair):
    """Whatever of svmarrow a refit calls, the estimator answers at that moment as before."""
    model, rows = reseeded(LEARNERS[name]), X[:7]
    fresh = clone(model).fit(*given(model, pair, 1))
    model.fit(*given(model, pair, 0))
    method = "predict" if hasattr(model, "predict") else "transform"
    expected = outcome(reads(model, rows)[method])
    other, seen, said = outcome(reads(fresh, rows)[method]), [0], set()

    def ask():
        # Every tenth call; the long searches make tens of thousands.
        seen[0] += 1
        if seen[0] % 10 == 0:
            said.add(outcome(reads(model, rows)[method]))

    with Traced(ask, "call"):
        model.fit(*given(model, pair, 1))
    assert said <= {expected, other}
    assert outcome(reads(model, rows)[method]) == other != expected


@pytest.mark.quick_every(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_method_reads_one_model_whenever_the_other_is_published(name, pair):
    """At each line that a method runs, in turn, the other fit is published as a fit in a thread would be."""
    first = reseeded(LEARNERS[name]).fit(*given(LEARNERS[name], pair, 0))
    second = clone(first).fit(*given(first, pair, 1))
    model = clone(first)
    before, after = dict(vars(first)), dict(vars(second))
    for method in reads(model, X[:7]):
        expected = {outcome(reads(each, X[:7])[method]) for each in (first, second)}
        line, lines = 0, 1
        while line < lines:
            model.__dict__, passed = dict(before), [0]

            def publish(at=line, passed=passed):
                if passed[0] == at:
                    model.__dict__ = dict(after)
                passed[0] += 1

            with Traced(publish, "line"):
                found = outcome(reads(model, X[:7])[method])
            assert found in expected, (method, line)
            lines, line = passed[0], line + 1


@pytest.mark.quick_every(5)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LEARNERS)
def test_threads_read_one_of_two_models_while_a_third_fits_them_in_turn(name):
    model, rows, refits = reseeded(LEARNERS[name]), X[:7], 6
    fits = [given(model, pair, which) for pair in PAIRS for which in (0, 1)]
    expected = {
        method: {outcome(reads(clone(model).fit(*fit), rows)[method]) for fit in fits}
        for method in reads(model, rows)
    }
    model.fit(*fits[0])
    wrong, over, interval = [], threading.Event(), sys.getswitchinterval()

    def ask():
        while not over.is_set() and len(wrong) < 3:
            for method, call in reads(model, rows).items():
                found = outcome(call)
                if found not in expected[method]:
                    wrong.append((method, found))

    readers = [threading.Thread(target=ask) for _ in range(2)]
    sys.setswitchinterval(1e-5)
    try:
        for reader in readers:
            reader.start()
        for number in range(refits):
            model.fit(*fits[number % len(fits)])
    finally:
        over.set()
        for reader in readers:
            reader.join()
        sys.setswitchinterval(interval)
    assert wrong == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in LEARNERS if hasattr(LEARNERS[name], "partial_fit")])
def test_the_earlier_model_answers_until_a_piece_is_learnt(name):
    model, rows = reseeded(LEARNERS[name]), X[:7]
    options = {"classes": [0, 1, 2]} if target(model) is KIND else {}
    model.partial_fit(X[::2], target(model)[::2], **options)
    expected, said = outcome(reads(model, rows)["predict"]), []
    piece, labels = X[1::2], target(model)[1::2]
    after = outcome(reads(copy.deepcopy(model).partial_fit(piece, labels), rows)["predict"])
    with Traced(lambda: said.append(outcome(reads(model, rows)["predict"])), "call"):
        model.partial_fit(piece, labels)
    assert set(said) <= {expected, after}
    assert outcome(reads(model, rows)["predict"]) == after


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_process_predicts_although_its_parent_was_packing_the_model():
    """A child has no thread that could end what a thread of its parent had begun."""
    program = """
        import os, signal, threading, time
        import numpy as np
        from svmarrow import KernelExpansion

        random = np.random.default_rng(0)
        vectors = random.normal(size=(40_000, 64)).astype("f4")
        coefficients = random.normal(size=(40_000, 1))
        for gap in (0.001, 0.003, 0.01, 0.03):
            model = KernelExpansion(vectors, coefficients, [0.0], kernel="rbf", gamma=0.01)
            thread = threading.Thread(target=model.decision_function, args=(vectors[:20],))
            thread.start()
            time.sleep(gap)
            child = os.fork()
            if child == 0:
                signal.alarm(100)
                model.decision_function(vectors[:1])
                os._exit(0)
            thread.join()
            print(os.waitpid(child, 0)[1])
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    assert done.stdout.split() == ["0"] * 4
