"""What the learners say they take: no less than they do, not many times more, and no start beyond it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from helpers.programs import python
from helpers.public import IMPORTS, PUBLIC
from svmarrow import _core
from svmarrow.online import _stream

#: What is fitted, on how many rows and columns.
CASES = {
    "RLSRegressor(alpha=1.0)": (3500, 20),
    "RLSRegressor(alpha=1.0, leave_one_out=True)": (3000, 20),
    "RLSClassifier(alphas=[0.1, 1.0])": (2500, 20),
    # Four factors at the same time.
    "RLSRegressor(alphas=[0.1, 0.3, 1.0, 3.0, 10.0])": (2000, 20),
    "RLSRegressor(solver='cg', max_iter=4, gamma=0.01)": (20_000, 10),
    "LowRankRLSRegressor(1500)": (6000, 10),
    "LowRankRLSRegressor(2500, solver='cg', max_iter=4)": (6000, 10),
    "LowRankRLSClassifier(1200, selection='pivoted_cholesky', leave_one_out=True)": (5000, 10),
    "LinearRLSRegressor(solver='primal')": (2500, 1500),
    "LinearRLSClassifier(solver='dual')": (3000, 100),
    "LinearRLSRegressor(solver='cg', max_iter=4)": (2000, 3000),
    "LowRankSVC(500, C=10.0)": (6000, 10),
    "ExactCascade(SVC(C=10.0, cache_size=20), 1500)": (3000, 40),
    "CalibratedCascade(SVC(C=10.0, cache_size=20), 1500)": (3000, 40),
    "CalibratedCascade(RLSClassifier(), 500)": (3000, 40),
    "ReducedSet(RLSClassifier(), 500)": (3000, 40),
    "CodedClassifier(RLSClassifier())": (4000, 20),
    "CodedClassifier(RLSClassifier(), shared=False)": (4000, 20),
    "CodedClassifier(SVC(C=1.0, gamma=0.5), 'ovo')": (12_000, 200),
    # Rows so far from each other that nearly each is a mistake.
    "KernelPerceptron(gamma=30.0)": (3000, 1600),
    "KernelPerceptron(policy='stop', budget=1800, gamma=30.0)": (3200, 2500),
    "KernelPerceptron(policy='forgetron', budget=1800, gamma=30.0)": (3200, 2500),
    "KernelPerceptron(policy='tightest', budget=2500, gamma=30.0)": (2600, 50),
    "KernelPerceptron(policy='projectron', gamma=30.0)": (3000, 40),
    "KernelPerceptron(policy='projectron++', gamma=30.0, n_epochs=2)": (2500, 40),
    "PerceptronTreeClassifier(budget=100, gamma=30.0, random_state=0)": (2000, 1500),
    "PerceptronTreeClassifier(budget=100, gamma=30.0, split='ent-rnds', random_state=0)": (2000, 1500),
    "PerceptronTreeClassifier(budget=100, gamma=30.0, prediction='averaged', random_state=0)": (2000, 1500),
    "PerceptronTreeClassifier(budget=100, gamma=30.0, split='zpq', sample_size=60)": (
        5000,
        500,
    ),
}
#: Fits that caches make smaller, and whose full model's size shows when it is there.
SHRINKING = {
    "ExactCascade(SVC(C=10.0, cache_size=20), 1500)",
    "CalibratedCascade(SVC(C=10.0, cache_size=20), 1500)",
    "CodedClassifier(SVC(C=1.0, gamma=0.5), 'ovo')",
}

_MEASURED = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
{imports}
def peak():
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
def resident():
    status = open("/proc/self/status").read()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024
n, d = {size}
random = np.random.default_rng(0)
X = random.standard_normal((n, d))
y = np.sign(X[:, 0] * X[:, 1] + 0.3 * random.standard_normal(n))
model = {model}
model.__class__(**model.get_params(deep=False)).fit(X[:40], y[:40])
before = resident()
model.fit(X, y)
print(peak() - before, model.estimate_memory(X, y).total)
"""


@pytest.mark.quick_every(9)
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from Linux's /proc")
@pytest.mark.parametrize("model", CASES)
def test_the_estimate_is_no_less_than_the_peak_and_not_many_times_more(model: str) -> None:
    program = _MEASURED.format(imports=IMPORTS, model=model, size=CASES[model])
    measured, estimate = (int(number) for number in python(program).split())
    # What the interpreter itself takes in passing is not the estimate's.
    assert measured - 4e6 < estimate < 3 * measured, f"{estimate / 1e6:.0f} MB for {measured / 1e6:.0f}"


@pytest.mark.quick_every(5)
@pytest.mark.parametrize("model", sorted(CASES.keys() - SHRINKING))
def test_what_takes_more_than_there_is_is_refused_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    n, d = CASES[model]
    X = np.random.default_rng(0).standard_normal((n, d))
    y = np.sign(X[:, 0])
    estimator = eval(model, dict(PUBLIC))
    needed = estimator.estimate_memory(X, y).total
    assert needed > 64e6, "too small to be looked at"
    monkeypatch.setattr(_core, "available_memory", lambda: 1_000_000)
    name = model.partition("(")[0]
    with pytest.raises(
        MemoryError, match=rf"^{name}.fit needs about \d+\.\d+ GB in addition to the data, and 0.00 GB"
    ):
        estimator.fit(X, y)
    assert not hasattr(estimator, "expansion_")
    assert not hasattr(estimator, "model_")


@pytest.mark.parametrize(
    "model",
    [
        "KernelPerceptron(gamma=0.1)",
        "KernelPerceptron(policy='projectron', gamma=0.1)",
        "PerceptronTreeClassifier(budget=20, gamma=0.1, random_state=0)",
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_stream_that_may_outgrow_memory_is_learnt_in_parts(
    monkeypatch: pytest.MonkeyPatch, model: str, sparse: bool
) -> None:
    """As many rows as fit if all are mistakes, again and again; the model is that of one piece."""
    random = np.random.default_rng(0)
    X = random.standard_normal((600, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    rows = sp.csr_array(X) if sparse else X
    whole = eval(model, dict(PUBLIC)).fit(rows, y)
    needed = whole.estimate_memory(rows, y).total
    parts = []

    def counted(name: str) -> None:
        found = getattr(_core, name)

        def call(*arguments: Any) -> Any:
            parts.append(len(arguments[1]))
            return found(*arguments)

        monkeypatch.setattr(_core, name, call)

    counted("perceptron_tree_stream" if "Tree" in model else "perceptron_stream")
    monkeypatch.setattr(_stream, "MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr(_stream, "MIN_PART_ROWS", 8)
    monkeypatch.setattr(_core, "available_memory", lambda: int(0.7 * needed))
    cut = eval(model, dict(PUBLIC)).fit(rows, y)
    assert len(parts) > cut.n_epochs
    assert sum(parts) == 600 * cut.n_epochs
    assert np.array_equal(cut.mistake_indices_, whole.mistake_indices_)
    assert np.array_equal(cut.decision_function(rows), whole.decision_function(rows))
