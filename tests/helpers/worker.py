"""A process that is interrupted, short of time or of memory while it works, and tells what became of it.

One process serves many requests, since importing takes longer than most of them; each is a line of JSON, and
so is its answer. A process that dies or hangs is replaced by a new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg import blas
from sklearn.exceptions import NotFittedError

from helpers.interruption import HANG, stopped, unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from helpers.operations import Run

__all__ = ["Worker", "lacks"]

#: Processor seconds after which a process is given up that should have ended.
GIVEN_UP = 60


class Worker:
    """The process, from outside."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: str, seconds: float = HANG, **arguments: Any) -> dict[str, Any]:
        """The answer; ``{"died": status, "said": stderr}`` where there is none."""
        if self._process is None:
            here = str(Path(__file__).resolve().parents[1])
            path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
            self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
            self._process = subprocess.Popen(
                [sys.executable, "-m", "helpers.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                text=True,
                env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"},
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps({"request": request, **arguments}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        status = process.wait()
        self._said.seek(0)
        said = self._said.read()[-2000:]
        self.close()
        return {"died": status, "said": said}

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout, self._said):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()  # type: ignore[union-attr]
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _prepared(arguments: dict[str, Any], folder: str, **more: Any) -> tuple[Any, Run]:
    from helpers.operations import OPERATIONS, Settings  # noqa: PLC0415 - seconds that the outside does not need

    one = OPERATIONS[arguments["name"]]
    n = arguments.get("n") or one.long
    return one, one.prepare(Settings(n, Path(folder), arguments.get("n_jobs", 1), **more))


def _small() -> str:
    """A little of everything, which a sane process does to the same bits at any time."""
    from helpers.operations.kinds import data  # noqa: PLC0415
    from svmarrow import SVC, RLSRegressor, compress  # noqa: PLC0415

    X, y = data("plain two", 60)
    svc = SVC(n_jobs=1, cache_size=1).fit(X, y)
    values = [svc.decision_function(X), RLSRegressor(n_jobs=1).fit(X, y).predict(X)]
    values.append(compress(svc, n_vectors=5, n_jobs=1).decision_function(X))
    return hashlib.sha256(b"".join(of.tobytes() for of in values)).hexdigest()


def _files(folder: str) -> list[tuple[str, int, int]]:
    """Name, size and checksum of every file; what a reader must not touch and a writer replaces whole."""
    found = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
    return [(path.name, path.stat().st_size, zlib.crc32(path.read_bytes())) for path in found]


#: Thresholds of the sizes of a path, which are set when a size is first asked for.
MADE_WHEN_ASKED = {"_shifts"}


def _faults(
    run: Run, current: list[Any], files: list[Any], folder: str, sane: str, writes: bool
) -> list[str]:
    """What is not as it should be after an operation that did not end."""
    found = []
    for thing, before in current:
        if pickle.dumps(thing) == before:
            continue
        if run.untouched:
            old, new = pickle.loads(before).__dict__, thing.__dict__
            changed = {k for k in old | new if pickle.dumps(old.get(k)) != pickle.dumps(new.get(k))}
            if changed - MADE_WHEN_ASKED or not changed:
                found.append(f"the object is not as it was: {', '.join(sorted(changed)) or 'its parts'}")
        else:
            found += _usable(run, thing)
    # A new file may be there, whole: the signal came when it was done. Half a file has a name with a dot.
    after, names = _files(folder), {name for name, *_ in files}
    half = [name for name, *_ in after if name.startswith(".")]
    there = [file for file in after if file[0] in names]
    changed = [new[0] for new, old in zip(there, files, strict=False) if new != old]
    # A writer that was done before the signal may have told the seconds that it took.
    if half or len(there) != len(files) or (changed and not (writes and _whole(folder, changed))):
        found.append(f"files are not as they were: {[name for name, *_ in after]}")
    try:
        if _small() != sane:
            found.append("the process calculates otherwise")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        found.append(f"the process is not sane: {error!r}")
    return found


def _whole(folder: str, names: list[str]) -> bool:
    """Whether all of these are model files that can be read."""
    from svmarrow import load  # noqa: PLC0415 - seconds that the outside does not need

    try:
        return all(load(next(Path(folder).rglob(name))) is not None for name in names)
    except (OSError, ValueError):
        return False


def _usable(run: Run, thing: Any) -> list[str]:
    columns = getattr(thing, "n_features_in_", run.rows.shape[1])
    rows = run.rows if columns == run.rows.shape[1] else np.zeros((5, columns))
    try:
        thing.predict(rows)
    except NotFittedError:
        pass
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        return [f"the object neither answers nor is as it was: {error!r}"]
    return []


def interrupts(arguments: dict[str, Any]) -> dict[str, Any]:
    """Ctrl-C at random moments: processor seconds and units up to each exception, and every fault.

    The work is done again and again until the signal comes, so it cannot end before.
    """
    sane = _small()
    with tempfile.TemporaryDirectory() as folder:
        one, run = _prepared(arguments, folder)
        if one.writes:
            run.work(run.fresh(0))
        files, tries = _files(folder), []
        random = np.random.default_rng(zlib.crc32(one.name.encode()))
        moments = random.uniform(0.0, arguments["longest"], arguments["tries"])
        for turn, busy in enumerate(moments, arguments.get("turn", 0)):
            current: list[tuple[Any, bytes]] = []

            def work(turn: int = turn, current: list[tuple[Any, bytes]] = current) -> None:
                while True:
                    current.clear()
                    thing = run.fresh(turn)
                    current.append((thing, pickle.dumps(thing)))
                    run.work(thing)

            ended = stopped(work, float(busy))
            assert ended is not None
            raised, worked = ended
            faults = _faults(run, current, files, folder, sane, one.writes)
            # Between two calls of a command the signal is this loop's own.
            if raised[0] not in (one.raises, "KeyboardInterrupt"):
                faults.append(f"raised {raised}")
            tries.append(
                {"moment": float(busy), "seconds": worked, "units": worked / unit(20), "faults": faults}
            )
    return {"tries": tries}


def limited(arguments: dict[str, Any]) -> dict[str, Any]:
    """An operation with ``max_time``: processor seconds and units beyond it, and what came out."""
    limit = arguments["max_time"]
    with tempfile.TemporaryDirectory() as folder:
        _, run = _prepared(arguments, folder, max_time=limit)
        thing = run.fresh(0)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            start = time.process_time()
            try:
                made = run.work(thing)
                ended, faults = "returned", _usable(run, thing) if run.rows is not None else []
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                made, ended, faults = None, f"{type(error).__name__}: {error}"[:200], []
            worked = time.process_time() - start - limit
        del made
        names = sorted({of.category.__name__ for of in told})
    return {"units": worked / unit(10), "seconds": worked, "ended": ended, "warned": names, "faults": faults}


def memory(arguments: dict[str, Any]) -> dict[str, Any]:
    """An operation under several limits of the address space, each in a process of its own.

    ``limits`` are megabytes above what is there when the data are made. Work that goes on for ``busy``
    processor seconds is ended by Ctrl-C.
    """

    def prepared(tell: Callable[[Any], None]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            _, run = _prepared(arguments, folder)
            results = []
            for limit in arguments["limits"]:
                answer = _forked(lambda tell, limit=limit: tell(_within(run, limit, arguments["busy"])))
                results.append({"limit": limit, **answer})
            tell({"tries": results})

    return _forked(prepared)


def lacks(tried: dict[str, Any]) -> list[str]:
    """What is wrong with a run under a limit."""
    ended = tried["ended"]
    # 130 is a command's word for Ctrl-C, 1 its word for an error that it has told.
    good = ended in ("done", "went on", "SystemExit: 1", "SystemExit: 130") or ended.startswith("MemoryError")
    return ([] if good else [f"{ended} {tried.get('said', '')}".strip()]) + tried["faults"]


def _within(run: Run, megabytes: int, busy: float) -> dict[str, Any]:
    import resource  # noqa: PLC0415 - not everywhere

    sane = _small()
    thing = run.fresh(0)
    resource.setrlimit(resource.RLIMIT_CPU, (int(busy) + GIVEN_UP, int(busy) + GIVEN_UP))
    ended = ""

    # OpenBLAS takes its buffers at the first product; a process that has no room for them it ends, or keeps
    # busy for ever.
    square = np.ones((300, 300))
    blas.dgemm(1.0, square @ square, square)

    def work() -> None:
        nonlocal ended
        in_use = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (in_use + megabytes * 2**20, resource.RLIM_INFINITY))
        try:
            run.work(thing)
            ended = "done"
        except SystemExit as error:
            ended = f"SystemExit: {error.code}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            ended = f"{type(error).__name__}: {error}"[:300]

    if stopped(work, busy) is not None:
        ended = "went on"
    try:
        try:
            now = _small()
        except MemoryError:
            # What the operation made may fill the room that there was: then it works once there is more.
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            now = _small()
        faults = [] if now == sane else ["the process calculates otherwise"]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        faults = [f"the process is not sane: {error!r}"[:300]]
    return {"ended": ended, "faults": faults}


def _forked(body: Callable[[Callable[[Any], None]], None]) -> dict[str, Any]:
    """What a child process tells, or the signal that ended it and its last words."""
    reading, writing = os.pipe()
    said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - shared with the child
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            os.dup2(said.fileno(), 2)
            body(lambda value: _send(writing, value))
            status = 0
        except BaseException:  # noqa: BLE001 - whatever it is, it is told
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(writing)
    timer = threading.Timer(HANG, os.kill, (child, signal.SIGKILL))
    timer.start()
    parts = []
    while part := os.read(reading, 2**16):
        parts.append(part)
    os.close(reading)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    timer.cancel()
    with said:
        if status == 0:
            answer: dict[str, Any] = json.loads(b"".join(parts))
            return answer
        said.seek(0)
        # Where the memory was asked for, without the other frames.
        words = [line.strip() for line in said if "svmarrow" in line or "memory" in line or "Error" in line]
    text = " ".join(words)[-400:]
    name = signal.Signals(-status).name if status < 0 else f"exit {status}"
    return {"ended": name, "said": text, "faults": []}


def _send(to: int, value: Any) -> None:
    data = json.dumps(value).encode()
    while data:
        data = data[os.write(to, data) :]


def main() -> None:
    """Serves requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What operations print is no answer.
    serve = {"interrupts": interrupts, "limited": limited, "memory": memory}
    for line in sys.stdin:
        arguments = json.loads(line)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = serve[arguments.pop("request")](arguments)
        except Exception:  # noqa: BLE001 - whatever it is, it is told
            answer = {"error": traceback.format_exc()[-1500:]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
