"""Too little memory ends in a MemoryError, not in an abort; benches/robustness/memory_limits.py tries all."""

from __future__ import annotations

import sys

import pytest

from helpers.memory_limits import GOOD, KINDS, alternate, draw, run
from helpers.programs import python
from helpers.worker import Worker, lacks

QUICK = [
    "SVC.fit", "SVC linear.fit", "SVC linear sparse.fit", "SVC function.fit", "SVR.fit", "RLSClassifier.fit",
    "LowRankSVC random.fit",
    "LowRankRLSClassifier subset_of_regressors.fit", "KMPRegressor prefit.fit", "KMPClassifier.fit",
    "KernelPerceptron projectron.fit", "PerceptronTreeClassifier wpq.fit", "CodedClassifier rls.fit",
    "compress pursuit",
    "compress rank", "compress l0", "compress lars", "ExactCascade.from_path", "make_code dense",
    "KernelExpansion.decision_function many outputs", "load", "load_svmlight", "load_libsvm_model",
    "svm_train", "svm-train -v",
]  # fmt: skip
#: Whose small blocks and whose threads once ended the process, or raised what does not say memory.
THREADED = [
    "PerceptronTreeClassifier.from_expansion bal-opts 100",
    "CodedClassifier low rank.fit", "KernelExpansion.decision_function sparse",
]  # fmt: skip


@pytest.fixture(scope="module")
def worker():
    with Worker() as started:
        yield started


ENFORCED = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not enforce a limit of the address space"
)


@pytest.mark.quick_every(7)
@ENFORCED
@pytest.mark.parametrize(
    ("name", "n_jobs"),
    [(name, 1 + place % 2) for place, name in enumerate(QUICK)] + [(name, 2) for name in THREADED],
)
def test_memory_is_short(worker, name, n_jobs):
    answer = worker.ask("memory", name=name, limits=[20, 80], busy=0.5, n_jobs=n_jobs)
    assert [lacks(tried) for tried in answer["tries"]] == [[], []]


@pytest.mark.quick_every(9)
@ENFORCED
@pytest.mark.parametrize("number", range(3 * len(KINDS)))
def test_drawn_runs_end_well(number):
    drawn = draw(number)._replace(rows=draw(number).rows // 20 + 1000)
    ended = run(drawn, 0.3)
    assert {end.split(":")[0] for end in ended["ended"]} <= GOOD, (drawn, ended)


@ENFORCED
@pytest.mark.parametrize("megabytes", [28, 30, 32, 34])
def test_machines_solved_apart_report_the_refusal(megabytes):
    """Machines without a cache choose their blocks on their own; none may continue with a refused one."""
    drawn = draw(332)._replace(megabytes=megabytes)
    assert (drawn.kind, drawn.callers) == ("SVC of five classes", 4)
    ended = run(drawn, 0.5)
    assert {end.split(":")[0] for end in ended["ended"]} <= GOOD, ended


@pytest.mark.exhaustive
@ENFORCED
def test_rows_in_the_millions_are_refused_or_trained():
    drawn = draw(0)
    assert drawn.kind == "SVC"
    for megabytes, callers in [(90, 1), (130, 4), (300, 1)]:
        asked = drawn._replace(
            rows=1_000_000, columns=2, single=True, megabytes=megabytes, n_jobs=2, callers=callers
        )
        ended = run(asked, 0.3)
        assert {end.split(":")[0] for end in ended["ended"]} <= GOOD, (asked, ended)


@ENFORCED
def test_refused_allocations_harm_no_later_ones():
    """Concurrent calls are refused memory and then get it; results are the same as without a limit."""
    ended = alternate(rounds=6, callers=4)
    ends = ended["ended"]
    assert len(ends) == 6 * 4 * 3, ended
    assert {end.split(": ")[1] for end in ends} <= {"done", "MemoryError"}, ended
    assert all(end.endswith("done") for end in ends if end.startswith("free")), ended
    assert "limited large: MemoryError" in ends
    assert "limited small: done" in ends


#: A machine whose kernel rows are cached, and whose working sets are nearly all rows.
CACHED = """
    import hashlib, resource, sys
    import numpy as np
    from svmarrow import SVC

    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 100)).astype("f")
    y = (X[:, 0] * X[:, 1] + random.normal(size=3000) > 0).astype(int)
    machine = SVC(C=10.0, gamma=0.01, n_jobs=1).fit(X[:300], y[:300])
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    if int(sys.argv[1]) > 0:
        resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]) * 2**20,) * 2)
    try:
        print(hashlib.sha256(machine.fit(X, y).expansion_.coefficients.tobytes()).hexdigest())
    except MemoryError:
        print("refused")
"""


@pytest.mark.quick_every(3)
@ENFORCED
def test_a_cache_that_memory_limits_changes_no_bit():
    expected = python(CACHED, 0)
    # A new thread's heap may take 64 MB of the largest limit; all of the smaller ones are refused.
    assert {python(CACHED, megabytes) for megabytes in (*range(26, 36, 2), 220)} == {expected, "refused\n"}
