"""Compressions, pursuits and trees where memory is short: an estimate, a refusal, or the work."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification

from helpers.programs import python
from helpers.reference import largest
from svmarrow import KernelExpansion, KMPRegressor, _core, compress
from svmarrow.matching_pursuit._dictionary import dictionary_bytes
from svmarrow.papers.reduced_set import PaperSettings
from svmarrow.reduced_set import GradientSettings, estimate_memory
from svmarrow.reduced_set.paths import bytes_of_work


def machine(m: int, d: int = 20, q: int = 1) -> KernelExpansion:
    random = np.random.default_rng(0)
    Z, B = random.standard_normal((m, d)), random.standard_normal((m, q))
    return KernelExpansion(Z, B, np.zeros(q), gamma=1 / d)


_LIMITED = """
import resource, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
import svmarrow
from svmarrow import KMPRegressor, KernelExpansion, PerceptronTreeClassifier
from svmarrow.reduced_set import GradientSettings
from svmarrow import compress, compression_path
from svmarrow.online import KernelPerceptron
from svmarrow.papers.reduced_set import PaperSettings, path
random = np.random.default_rng(0)
def machine(m, d=20, q=1):
    Z, B = random.standard_normal((m, d)), random.standard_normal((m, q))
    return KernelExpansion(Z, B, np.zeros(q), gamma=1 / d)
{setup}
used = int(open("/proc/self/status").read().split("VmSize:")[1].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + {room} * 2**20,) * 2)
try:
    {work}
except MemoryError as error:
    print("refused", error)
else:
    print("done")
"""

_WORK = {
    "l1": ("m = machine(3000)", "path(m, n_vectors=100, method='l1', n_jobs=1)"),
    "lars": ("m = machine(2500)", "path(m, n_vectors=100, method='lars', n_jobs=1)"),
    "rank": ("m = machine(3000)", "compress(m, n_vectors=500, method='rank', n_jobs=1)"),
    "l0": (
        "m = machine(1500)",
        "path(m, n_vectors=50, method='l0', n_jobs=1, settings=PaperSettings(max_change=1))",
    ),
    "pursuit": ("m = machine(20000, 4)", "compress(m, n_vectors=400, n_jobs=1)"),
    "gradient": (
        "m = machine(6000)\\ns = GradientSettings(start=m, steps=1)",
        "compress(m, n_vectors=2000, method='gradient', settings=s, n_jobs=1)",
    ),
    "kmp": (
        "X = random.standard_normal((6000, 3))\\ny = X[:, 0]",
        "KMPRegressor(20, cache_size=300, n_jobs=1).fit(X, y)",
    ),
    "scores": (
        "p = compression_path(machine(1500, 4), n_vectors=600)\\nX = random.standard_normal((20000, 4))",
        "p._untuned(X, range(1, 601))",
    ),
    "tree": (
        "X = random.standard_normal((4000, 3))\\ny = random.integers(0, 2, 4000)",
        "PerceptronTreeClassifier(budget=1500, sample_size=1500, split='zpq', n_jobs=1).fit(X, y)",
    ),
    "projectron": (
        "X = random.standard_normal((3500, 10))\\ny = random.integers(0, 2, 3500)",
        "KernelPerceptron(policy='projectron', eta=0.0, gamma=1.0).fit(X, y)",
    ),
}


@pytest.mark.quick_every(5)
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is Linux's")
@pytest.mark.parametrize("name", _WORK)
def test_where_the_system_has_no_room_there_is_an_answer_or_a_memory_error(name: str) -> None:
    setup, work = (text.replace("\\n", "\n") for text in _WORK[name])
    program = _LIMITED.format(setup=setup, work=work, room=30)
    said = python(program)
    assert said.startswith(("done", "refused")), said


def test_what_takes_more_than_there_is_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    full = machine(4000)
    monkeypatch.setattr(_core, "available_memory", lambda: 100_000_000)
    for method in ("rank", "l0", "l1", "lars"):
        with pytest.raises(MemoryError, match=rf"'{method}' needs about .* keep fewer vectors"):
            largest(full, n_vectors=100, method=method)
    # What the message advises works.
    settings = PaperSettings(chunk=1000)
    assert largest(full, n_vectors=100, method="l1", settings=settings).n_vectors == 100
    with pytest.raises(MemoryError, match=r"compress\(method='gradient'\) needs about"):
        compress(full, n_vectors=3000, method="gradient", settings=GradientSettings(start=full))
    X = np.random.default_rng(0).standard_normal((6000, 2))
    with pytest.raises(MemoryError, match=r"KMPRegressor.fit needs about .* lower cache_size"):
        KMPRegressor(20, cache_size=1000).fit(X, X[:, 0])
    # By default the dictionary is no larger than a share of what is free: functions are drawn.
    assert KMPRegressor(5, random_state=0).fit(X, X[:, 0]).expansion_.n_vectors == 5


def test_estimates_grow_with_what_is_kept() -> None:
    full = machine(3000)
    of = {m: estimate_memory(full, 100, method=m).total for m in ("backfit", "rank", "gradient")}
    parts = full.n_outputs, full.vectors, 100, None
    of |= {m: bytes_of_work(*parts, m) for m in ("l1", "lars", "l0")}
    assert of["backfit"] < of["rank"] <= of["l1"] * 1.1 < of["lars"] < of["l0"]
    assert estimate_memory(full, 1000, method="gradient").total > of["gradient"]
    assert of["lars"] > 2 * 8 * 3000**2
    assert bytes_of_work(*parts, "lars", settings=PaperSettings(chunk=500)) < of["lars"] / 10
    with pytest.raises(ValueError, match="method='lars' is not allowed"):
        estimate_memory(full, 100, method="lars")
    X, y = make_classification(2000, random_state=0)
    kmp = KMPRegressor(10, cache_size=1000)
    assert 4 * 2000**2 < kmp.estimate_memory(X).total < 8 * 2000**2
    assert kmp.set_params(sample_size=59).estimate_memory(X, y).total < 2000**2


def test_a_large_dictionary_is_not_kept_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 2 GB functions are drawn, however much memory the machine has."""
    monkeypatch.setattr(_core, "available_memory", lambda: 10**12)
    assert dictionary_bytes(None) == 2_000_000_000
    assert dictionary_bytes(20_000.0) == 20_000 * 2**20
