"""Too little memory ends in a MemoryError, not in an abort; benches/robustness/memory_limits.py tries all."""

from __future__ import annotations

import sys

import pytest

from robustness.worker import Worker, lacks

QUICK = [
    "SVC.fit", "SVC linear.fit", "SVC linear sparse.fit", "SVC function.fit", "SVR.fit", "RLSClassifier.fit",
    "LowRankSVC random.fit",
    "LowRankRLSClassifier rectangle.fit", "KMPRegressor prefit.fit", "KMPClassifier.fit",
    "KernelPerceptron projectron.fit", "PerceptronTreeClassifier wpq.fit", "CodedClassifier rls.fit",
    "compress pursuit",
    "compress rank", "compress l0", "compress lars", "ExactCascade.from_path", "make_code dense",
    "KernelExpansion.decision_function many outputs", "load", "load_svmlight", "load_libsvm_model",
]  # fmt: skip
#: Whose small blocks and whose threads once ended the process, or raised what does not say memory.
THREADED = [
    "PerceptronTreeClassifier.from_expansion bal-opts 100", "BaggedKernelRegressor.fit",
    "CodedClassifier low rank.fit", "KernelExpansion.decision_function sparse",
]  # fmt: skip


@pytest.fixture(scope="module")
def worker():
    with Worker() as started:
        yield started


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not hold to a limit of the address space"
)
@pytest.mark.parametrize(
    ("name", "n_jobs"),
    [(name, 1 + place % 2) for place, name in enumerate(QUICK)] + [(name, 2) for name in THREADED],
)
def test_memory_is_short(worker, name, n_jobs):
    answer = worker.ask("memory", name=name, limits=[20, 80], busy=0.5, n_jobs=n_jobs)
    assert [lacks(tried) for tried in answer["tries"]] == [[], []]
