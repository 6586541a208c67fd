"""Ctrl-C and ``max_time`` during all kinds of work. benches/robustness/interrupts.py runs every operation.

Operations are repeated until the signal comes, so that none can end before, and latencies are units of
work, see tests/helpers/interruption.py.
"""

from __future__ import annotations

import pytest

from helpers.interruption import posix
from helpers.worker import Worker

#: One of each loop that asks the monitor; the scripts take all.
QUICK = [
    "SVC.fit", "SVC small cache.fit", "SVC wide.fit", "SVC linear.fit", "SVC function.fit",
    "SVC precomputed.fit", "SVC one-vs-one.fit", "SVC warm start.fit", "NuSVC.fit", "SVR.fit",
    "OneClassSVM.fit", "LowRankSVC pivoted_cholesky.fit", "LowRankSVC kmeans.fit", "RLSClassifier.fit",
    "RLSClassifier leave-one-out.fit", "RLSRegressor cg.fit", "RLSRegressor penalties.fit",
    "RLSRegressor spectrum.fit", "LinearRLSRegressor primal.fit", "LinearRLSRegressor cg.fit",
    "LowRankRLSClassifier subset_of_regressors.fit", "LowRankRLSRegressor greedy_trace.fit",
    "LowRankRLSRegressor.partial_fit", "KMPRegressor prefit.fit", "KMPRegressor huber.fit",
    "KMPRegressor own loss.fit", "KMPRegressor drawn.fit", "KMPClassifier logistic.fit",
    "KernelPerceptron voted.fit", "KernelPerceptron tightest.partial_fit",
    "KernelPerceptron projectron.fit", "PerceptronTreeClassifier wpq.fit",
    "PerceptronTreeClassifier one leaf.partial_fit", "CodedClassifier svc.fit", "CodedClassifier rls.fit",
    "ReducedSet.fit", "ExactCascade.fit", "compress pursuit", "compress basic by predictions",
    "compress prefit drawn", "compress pursuit chunks", "compress rank", "compress l0",
    "compress l1 ten classes", "compress lars", "compress gradient", "compress gradient from pursuit",
    "compression_path", "CompressionPath.scores", "CompressionPath one size, one-vs-rest",
    "ExactCascade.from_path", "ExactCascade.route", "PerceptronTreeClassifier.from_expansion zpq 50",
    "KernelExpansion.decision_function many outputs", "KernelExpansion.decision_function sparse",
    "GlobalAlignment", "Subsequence",
    "KernelExpansion.decision_function function", "PerceptronTreeClassifier.apply", "MatchingPath.scores",
    "make_code dense", "Code", "ExpansionClassifier.decode hamming", "rifkin.leave_one_out", "save",
    "load", "load_libsvm_model", "save_svmlight", "load_svmlight", "svmarrow train", "svmarrow predict",
    "svm_train", "svm-train -v",
]  # fmt: skip


@pytest.fixture(scope="module")
def worker():
    with Worker() as started:
        yield started


@pytest.mark.quick_every(7)
@posix
@pytest.mark.parametrize("name", QUICK)
def test_ctrl_c(worker, name):
    answer = worker.ask("interrupts", name=name, tries=1, longest=0.8, turn=QUICK.index(name) % 2)
    assert "tries" in answer, answer
    (tried,) = answer["tries"]
    assert tried["faults"] == []
    assert tried["units"] < 1.0


#: Solvers that keep what the time has left.
TIMED = [
    *("TabularClassifier.fit", "TabularRegressor.fit", "TabularClassifier large.fit"),
    *("SVCCV.fit", "SVCCV blocks.fit", "SVRCV.fit", "QuantileSVRCV.fit"),
    *("SVC.fit", "SVC one-vs-rest.fit", "SVR.fit", "LowRankSVC random.fit", "RLSRegressor cg.fit"),
    *(
        "KMPRegressor prefit.fit",
        "KMPClassifier logistic.fit",
        "compress pursuit",
        "compress l1",
        "compress gradient",
    ),
]


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("name", TIMED)
def test_max_time(worker, name):
    """Within a unit after the limit there is a model."""
    answer = worker.ask("limited", name=name, max_time=0.5)
    assert answer["units"] < 1.0
    assert answer["faults"] == []
    # On a slow machine even the first vector, or the first point of a grid, may take longer.
    too_short = ("was over before", "long enough for one point")
    assert answer["ended"] == "returned" or any(text in answer["ended"] for text in too_short)
    assert set(answer["warned"]) <= {"ConvergenceWarning"}
