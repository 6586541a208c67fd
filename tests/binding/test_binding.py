"""The extension module: views not copies, Ctrl-C, threads, panics, and arrays made to hurt."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

from helpers.interruption import HANG, posix, stops_at_once
from helpers.programs import python
from svmarrow import SVC, KernelExpansion, _core
from svmarrow._support import rows
from svmarrow._support.rows import as_rows, canonical, core_rows
from svmarrow.reduced_set import SelectionSettings
from svmarrow.reduced_set.selection import as_arguments

RBF = ("rbf", 0.5, 0.0, 3)
TASK = {"n_classes": 2, "coding": "ovo", "loss": "hinge", "nu": None, "fit_intercept": True}
SOLVER = {
    "tol": 1e-3,
    "cache_bytes": 2**24,
    "shrinking": True,
    "max_iter": None,
    "max_time": None,
    "progress": None,
    "n_jobs": 1,
    "start": None,
    "keep_interrupted": False,
}


def expansion(d=4, m=3):
    return _core.Expansion(np.ones((m, d)), np.ones((m, 1)), np.zeros(1), RBF)


def fit(X, y, upper=None):
    upper = np.ones(len(y)) if upper is None else upper
    task = TASK | {"labels": np.asarray(y, dtype=np.int64), "upper": upper}
    return _core.fit_svc(X, RBF, task, SOLVER)


# Views


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_layouts_that_are_taken_as_they_are(rng, dtype):
    base = (rng.random((20, 9)) * 100).astype(dtype)
    f = KernelExpansion(base[:3, :4], np.ones(3), 0.0, gamma=1e-4)
    for view in (base[:, :4], base[::3, 2:6], base[5:, 5:], base[4:5, 1:5], base[:0, :4]):
        if len(view):
            assert as_rows(view) is view
        taken = _core.Expansion(f.vectors, f.coefficients, f.intercepts, f.kernel_spec).decision(view, 1)
        assert np.array_equal(taken, f._evaluate(np.ascontiguousarray(view), 1))


@pytest.mark.parametrize(
    "spoil",
    [
        np.asfortranarray,
        lambda X: X[::-1],
        lambda X: X[:, ::-1],
        lambda X: X[:, ::2],
        lambda X: X.astype(">f8"),
        lambda X: X.astype(np.int16),
        lambda X: X.astype(np.float16),
        lambda X: X.tolist(),
        lambda X: np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape),
        lambda X: np.broadcast_to(X[0], X.shape),
        lambda X: np.ma.masked_array(X),
        lambda X: X.view(np.int64).view(np.float64)[:, :3],
    ],
)
def test_other_layouts_are_converted(rng, spoil):
    X = (rng.random((12, 6)) * 50).round()
    spoiled = spoil(X)
    plain = np.array(spoiled, dtype=np.float64, order="C")
    f = KernelExpansion(plain[:4], np.arange(4.0), 0.0, gamma=1e-3)
    assert f.decision_function(spoiled) == pytest.approx(f.decision_function(plain), abs=1e-6)


def test_read_only_and_mapped(rng, tmp_path):
    X = rng.random((50, 4))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert as_rows(mapped) is mapped
    y = (X[:, 0] > 0.5).astype(int)
    assert SVC().fit(mapped, y).expansion_ == SVC().fit(X, y).expansion_


@pytest.mark.parametrize("kind", ["dense", "float32", "strided", "csr"])
def test_fit_takes_no_copy_of_the_data(rng, kind):
    """NumPy reports its allocations to tracemalloc: fit and predict must stay far below the size of X."""
    X = rng.random((4000, 400))
    match kind:
        case "float32":
            X = X.astype(np.float32)
        case "strided":
            X = X[::2, :300]
        case "csr":
            X = sp.csr_array(X)
    y = np.arange(X.shape[0]) % 2
    size = X.data.nbytes if kind == "csr" else X.nbytes
    with pytest.warns(UserWarning, match="max_iter"):
        svc = SVC(max_iter=1, cache_size=20, gamma=0.1).fit(X, y)
    tracemalloc.start()
    svc.gamma = "scale"
    with pytest.warns(UserWarning, match="max_iter"):
        svc.fit(X, y)
    svc.predict(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Checks for NaN and the variance go block by block or make one array of booleans, an eighth of the
    # doubles.
    assert peak < 0.75 * size


def test_core_rows_shares_memory(rng):
    S = sp.random_array((20, 10), density=0.3, format="csr", rng=rng)
    data, indices, indptr, shape = core_rows(canonical(S))
    assert data is S.data
    assert indices is S.indices
    assert indptr is S.indptr
    assert shape == (20, 10)


def test_results_are_moved_not_copied():
    f = expansion()
    values = f.decision(np.ones((5, 4)), 1)
    assert values.flags.c_contiguous
    assert values.flags.writeable
    assert len(f) == 3
    assert f.outputs == 1


# Arrays made to hurt


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (np.ones(4), ValueError),
        (np.ones((2, 2, 2)), ValueError),
        (np.ones((4, 2)).T, ValueError),
        (np.ones((2, 8))[:, ::2], ValueError),
        (np.ones((4, 4))[::-1], ValueError),
        (np.ones((2, 4), dtype=np.int64), TypeError),
        (np.ones((2, 4), dtype=">f8"), TypeError),
        (np.ones((2, 4), dtype=object), TypeError),
        (np.ones((2, 4), dtype=complex), TypeError),
        (np.lib.stride_tricks.as_strided(np.ones(8), (1000, 4), (8, 8)), ValueError),
        (np.lib.stride_tricks.as_strided(np.ones(8), (1000, 4), (800, 8)), ValueError),
        ([[1.0, 1.0, 1.0, 1.0]], TypeError),
        (None, TypeError),
        ((), ValueError),
    ],
)
def test_the_extension_refuses_what_it_cannot_view(rows, error):
    with pytest.raises(error):
        expansion().decision(rows, 1)


def csr(data=(1.0, 2.0), indices=(0, 3), indptr=(0, 1, 2), shape=(2, 4), kind=np.int32):
    return (
        np.array(data, dtype=np.float64),
        np.array(indices, dtype=kind),
        np.array(indptr, dtype=np.int64),
        shape,
    )


def test_sparse_of_mixed_index_widths():
    for kind in (np.int32, np.int64):
        assert expansion().decision(csr(kind=kind), 1).shape == (2, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"indices": (0, 4)},
        {"indices": (0, -1)},
        {"indices": (0, 2**31 - 1)},
        {"indices": (0, 2**62), "kind": np.int64},
        {"indptr": (0, 1, 3)},
        {"indptr": (0, 5, 2)},
        {"indptr": (1, 1, 2)},
        {"indptr": (0, -1, 2)},
        {"indptr": (0, 2**62, 2)},
        {"indptr": ()},
        {"indptr": (0, 1)},
        {"indptr": (0, 2, 2), "indices": (3, 0)},
        {"indptr": (0, 2, 2), "indices": (1, 1)},
        {"data": (1.0,)},
        {"shape": (3, 4)},
        {"shape": (2, 5)},
        {"shape": (2, 0)},
    ],
    ids=str,
)
def test_hostile_sparse_structure(change):
    with pytest.raises(ValueError, match=r"sparse|columns"):
        expansion().decision(csr(**change), 1)


@pytest.mark.parametrize("shape", [(-1, 4), (2, 2**70), ("2", 4), (2,), 2])
def test_hostile_sparse_shape(shape):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        expansion().decision(csr(shape=shape), 1)


def test_sparse_disorder_is_put_right_in_a_copy():
    data, indices, indptr = np.array([2.0, 1.0, 3.0, 4.0]), np.array([3, 0, 1, 1]), np.array([0, 2, 4])
    X = sp.csr_array((data, indices, indptr), shape=(2, 4))
    f = KernelExpansion(np.eye(4), np.arange(1.0, 5.0), 0.0, kernel="linear")
    assert f.decision_function(X)[:, 0].tolist() == [9.0, 14.0]
    assert X.indices.tolist() == [3, 0, 1, 1]


def test_hostile_sparse_matrix_through_the_estimator():
    X = sp.csr_array(np.eye(4))
    X.indices[2] = 1000
    for act in (lambda: SVC().fit(X, [0, 1, 0, 1]), lambda: KernelExpansion(X, np.ones(4), 0.0)):
        with pytest.raises(ValueError, match=r"indices|column"):
            act()
    Y = sp.csr_array(np.eye(4))
    Y.indptr[1] = -(2**30)
    with pytest.raises(ValueError, match=r"indptr|index pointer"):
        SVC().fit(Y, [0, 1, 0, 1])
    lying = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    lying.has_sorted_indices = True
    lying.has_canonical_format = True
    with pytest.raises(ValueError, match="increasing"):
        KernelExpansion([[1.0, 1.0]], [1.0], 0.0).decision_function(lying)


@pytest.mark.parametrize(
    "act",
    [
        lambda: fit(np.ones((3, 2)), [0, 1]),
        lambda: fit(np.ones((2, 2)), [0, 2]),
        lambda: fit(np.ones((2, 2)), [0, -1]),
        lambda: fit(np.ones((2, 2)), [0, 0]),
        lambda: fit(np.ones((2, 2)), [0, 1], np.array([1.0, 0.0])),
        lambda: fit(np.ones((2, 2)), [0, 1], np.array([1.0, np.nan])),
        lambda: fit(np.ones((2, 2)), [0, 1], np.ones(3)),
        lambda: fit(np.ones((0, 2)), []),
        lambda: _core.Expansion(np.ones((3, 2)), np.ones((2, 1)), np.zeros(1), RBF),
        lambda: _core.Expansion(np.ones((3, 2)), np.ones((3, 2)), np.zeros(1), RBF),
        lambda: _core.Expansion(np.ones((3, 2)), np.ones((1, 3)).T, np.zeros(1)[:0], RBF),
        lambda: _core.Expansion(np.ones((3, 2)), np.asfortranarray(np.ones((3, 2))), np.zeros(2), RBF),
        lambda: _core.Expansion(np.ones((3, 2)), np.ones((3, 1)), np.array([np.inf]), RBF),
        lambda: _core.Expansion(np.ones((3, 2)), np.ones((3, 1)), np.zeros(1), ("rbf", -1.0, 0.0, 3)),
        lambda: _core.Expansion(np.ones((3, 2)), np.ones((3, 1)), np.zeros(1), ("poly", 1.0, 0.0, -3)),
        lambda: _core.Expansion(np.ones((3, 2)), np.ones((3, 1)), np.zeros(1), ("none", 1.0, 0.0, 3)),
        lambda: expansion().decision(np.ones((2, 5)), 1),
        lambda: _core.gram(np.ones((2, 5)), np.ones((2, 4)), RBF, 1),
        lambda: pursuit(9, 0.0, None, None, 1),
        lambda: pursuit(2, 0.0, -1.0, None, 1),
        lambda: pursuit(2, 0.0, None, None, 1, method="best"),
        lambda: pursuit(2, 0.0, None, None, 1, rows=np.ones((4, 3))),
        lambda: pursuit(2, 0.0, None, None, 1, rows=np.ones((0, 2))),
        lambda: pursuit(2, 0.0, None, None, 1, sample=0),
        lambda: pursuit(2, 0.0, None, None, 1, chunk=2),
        lambda: pursuit(2, 0.0, None, None, 1, max_memory=1e-6),
        lambda: _core.path_coefficients((None, np.ones((2, 1)), None), 1),
        lambda: _core.path_coefficients(
            (np.eye(2), np.ones((2, 1)), (np.array([0, 1]), np.array([1, 2]))), 1
        ),
        lambda: _core.path_coefficients((None, np.ones((2, 1)), (np.array([0, 2]), np.array([1, 2]))), 1),
        lambda: _core.path_coefficients((None, np.ones((2, 1)), (np.array([0, 1]), np.array([2, 3]))), 1),
        lambda: _core.path_coefficients((np.ones((2, 2)), np.ones((2, 1)), None), 3),
        lambda: _core.path_coefficients((np.ones((2, 3)), np.ones((2, 1)), None), 1),
        lambda: _core.path_decisions(
            (np.eye(2), np.ones((2, 1)), None),
            (np.ones((2, 2)), np.zeros(1), RBF),
            np.ones((4, 2)),
            np.array([2, 1]),
            1,
        ),
        lambda: _core.path_decisions(
            (np.eye(2), np.ones((2, 1)), None),
            (np.ones((2, 2)), np.zeros(1), RBF),
            np.ones((4, 3)),
            np.array([1]),
            1,
        ),
        lambda: _core.threshold_binary(np.ones(2), np.ones(3, dtype=bool)),
        lambda: _core.threshold_binary(np.array([np.nan]), np.ones(1, dtype=bool)),
        lambda: _core.threshold_joint(np.ones((2, 2)), np.array([0, 2])),
        lambda: _core.threshold_joint(np.ones((2, 2)), np.array([0])),
    ],
)
def test_contradictions_are_value_errors(act):
    with pytest.raises(ValueError, match=r"\w"):
        act()


def pursuit(max_vectors, tolerance, max_time, progress, n_jobs, method="pursuit", rows=None, **settings):
    """A pursuit of five vectors."""
    target = (np.arange(10.0).reshape(5, 2), np.ones((5, 1)), np.zeros(1), RBF)
    given = as_arguments(SelectionSettings(), "backfit") | settings
    given |= {"method": method, "max_vectors": max_vectors, "tolerance": tolerance}
    given |= {"seed": 0, "max_time": max_time}
    return _core.pursuit(target, None, rows, given, progress, n_jobs)


# Threads, signals, progress


def endless(max_time, progress=None):
    """A fit that takes minutes where nothing stops it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 8)), rng.integers(0, 2, size=6000)
    kernel = ("rbf", 0.05, 0.0, 3)
    upper = np.full(len(y), 1e6)
    solver = {"tol": 1e-9, "cache_bytes": 2**28, "max_time": max_time, "progress": progress}
    return _core.fit_svc(X, kernel, TASK | {"labels": y, "upper": upper}, SOLVER | solver)


@pytest.mark.quick_every(3)
@posix
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_a_fit(n_jobs):
    fitted = stops_at_once(f"""
        from svmarrow import SVC
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(20000, 8)), rng.integers(0, 2, size=20000)
        svc = SVC(C=1e6, gamma=0.05, tol=1e-9, n_jobs={n_jobs})
        work = lambda: svc.fit(X, y)
        after = lambda: hasattr(svc, "expansion_")
        """)
    assert not fitted


def test_progress_is_reported_and_its_exception_stops_the_fit():
    told = []

    def callback(phase, done, total, gap, steps):
        told.append((phase, done, total, gap, steps))
        if len(told) == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        endless(60.0, callback)
    assert len(told) == 2
    assert told[0][0] == "fit"
    assert told[1][4] >= told[0][4]


def test_other_threads_run_during_a_fit():
    # A fit that kept the interpreter would leave one or two, however long it takes.
    for seconds in (0.2, 2.0, 20.0):
        fit, ticks = ThreadPoolExecutor(1).submit(endless, seconds), 0
        while not fit.done():
            time.sleep(0.001)
            ticks += 1
        assert fit.result()["certificates"][0]["stop"] == "max_time"
        if ticks > 50:
            return
    pytest.fail(f"{ticks} ticks of another thread during a fit of {seconds} seconds")


def test_many_threads_share_one_expansion(rng):
    f = KernelExpansion(rng.random((200, 10)), rng.normal(size=(200, 3)), np.zeros(3))
    X = rng.random((500, 10))
    alone = f.decision_function(X)
    results = joblib.Parallel(n_jobs=8, backend="threading")(
        joblib.delayed(f.decision_function)(X) for _ in range(64)
    )
    assert all(np.array_equal(result, alone) for result in results)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_after_use(rng):
    X, y = rng.random((300, 4)), np.arange(300) % 2
    SVC(n_jobs=2).fit(X, y).predict(X)
    child = os.fork()
    if child == 0:
        try:
            SVC(n_jobs=2).fit(X, y).predict(X)
        except BaseException:  # noqa: BLE001
            os._exit(1)
        os._exit(0)
    deadline = time.monotonic() + HANG
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the forked child hangs")


def test_number_of_threads(monkeypatch):
    cores = joblib.cpu_count()
    monkeypatch.setattr(rows, "_OMP_THREADS", None)
    assert rows.threads(None) == cores
    assert rows.threads(3) == 3
    assert rows.threads(-1) == cores
    assert rows.threads(-1000) == 1
    assert rows.threads(-(2**62)) == 1
    # No more than could work; a thousand threads take seconds to start.
    assert rows.threads(1000) == rows.threads(2**62) == max(16, 2 * cores)
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises(ValueError, match="n_jobs"):
            rows.threads(wrong)
    inner = joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(rows.threads)(None) for _ in range(2)
    )
    assert inner == [1, 1]


@pytest.mark.quick_every(5)
@pytest.mark.parametrize(("told", "threads"), [("1,2", "1"), ("many", "all"), ("", "all"), ("0", "all")])
def test_threads_of_openmp(told, threads):
    """The variable counts as it is when the process starts; what sets it later does not mean this process."""
    program = """
import os, joblib
from svmarrow._support.rows import threads
os.environ["OMP_NUM_THREADS"] = "1"
print("all" if threads(None) == joblib.cpu_count() else threads(None))
"""
    if told == "1,2" and joblib.cpu_count() == 1:
        threads = "all"
    assert python(program, OMP_NUM_THREADS=told).split() == [threads]


def test_many_threads_are_not_started():
    X, y = np.eye(400), np.repeat([-1.0, 1.0], 200)
    svc = SVC(n_jobs=2**62, gamma=0.1).fit(X, y)
    np.testing.assert_array_equal(svc.dual_coef_, SVC(n_jobs=1, gamma=0.1).fit(X, y).dual_coef_)


def test_many_outputs_are_work():
    """Other threads run while the outputs of thousands of machines are computed.

    The interpreter does not switch by itself, so the other thread runs only if the work releases it.
    """
    m, outputs = 500, 5000
    rng = np.random.default_rng(0)
    many = _core.Expansion(rng.random((m, 2)), rng.random((m, outputs)), np.zeros(outputs), RBF)
    row, interval = rng.random((1, 2)), sys.getswitchinterval()

    def runs_beside(work):
        gate, ran = threading.Lock(), []
        gate.acquire()

        def wait():
            gate.acquire()
            ran.append(True)

        other = threading.Thread(target=wait)
        other.start()
        gate.release()
        work()
        found = bool(ran)
        other.join()
        return found

    sys.setswitchinterval(60.0)
    try:
        assert any(runs_beside(lambda: many.decision(row, 1)) for _ in range(100))
    finally:
        sys.setswitchinterval(interval)


def test_a_map_to_no_columns_gives_the_outputs_of_no_columns():
    none = _core.Expansion(np.empty((2, 0)), np.ones((2, 1)), np.array([0.5]), RBF)
    before = (np.zeros(3), np.ones(3), np.empty((3, 0)), None)
    single = _core.Single(none, 3, before, "flat", "flat", None, [])
    assert single.predict([1.0, 2.0, 3.0]) == 2.5
