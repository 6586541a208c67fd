"""Who computes while a fit waits: serial time by function, from samples of all threads by Linux perf.

``python benches/peers/timeline.py a9a moons --jobs 2`` fits each workload in a process of its own under
``perf record`` (software clock, so that it works in virtual machines) and divides the time of the fits into
bins of half a millisecond. A thread is busy in a bin if perf found it running, unless it was looking for
work. The output is the share of the processors that was busy, the time in which exactly one thread was
busy, and the functions in which it was then, by their innermost frame of svmarrow.

The serial share s follows from Amdahl's law in the form that needs one run only: with t seconds and c seconds
of computing of p threads, s = (p t / c - 1) / (p - 1). Threads that wait awake do not compute.

Functions have names only if svmarrow was built with ``RUSTFLAGS="-C force-frame-pointers=yes"``.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BIN = 0.0005  # seconds
FREQUENCY = 7999  # samples a second of each thread
WAITING = re.compile(
    r"with_threads_awake|rayon_core::(sleep|registry::WorkerThread|latch|job)|crossbeam|sched_yield|futex|^\[unknown\]"
)

#: A thread, seconds since the start, frames from the innermost outwards.
Sample = tuple[int, float, list[str]]

#: The process that is sampled: it fits once to warm up, then tells the clock around the repetitions.
FITTER = """
import json, sys, time
sys.path.insert(0, {here!r})
import data, svmarrow
name, jobs, repeats, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
workload = next(w for w in data.read_table()["workload"] if w["name"] == name)
problem = data.load(workload, limit or None)
def fit():
    svmarrow.SVC(C=workload["C"], gamma=workload["gamma"], n_jobs=jobs).fit(problem.X, problem.y)
fit()
start = time.clock_gettime(time.CLOCK_MONOTONIC)
for _ in range(repeats):
    fit()
end = time.clock_gettime(time.CLOCK_MONOTONIC)
print(json.dumps(dict(start=start, end=end, seconds=(end - start) / repeats)))
"""


def record(name: str, jobs: int, repeats: int, limit: int) -> tuple[dict[str, float], list[Sample]]:
    """The clock of the fits, and the samples in them: thread, seconds, frames from the innermost outwards."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "perf.data")
        fit = [sys.executable, "-c", FITTER.format(here=str(HERE)), name, str(jobs), str(repeats), str(limit)]
        perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-k", "CLOCK_MONOTONIC"]
        perf += ["--call-graph", "fp", "-o", str(file)]
        done = subprocess.run([*perf, *fit], check=True, capture_output=True, text=True, env=os.environ)
        clock = json.loads(done.stdout.splitlines()[-1])
        script = ["perf", "script", "-i", str(file), "-F", "tid,time,ip,sym", "--ns"]
        text = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    samples = []
    for part in text.split("\n\n"):
        lines = part.strip().splitlines()
        if not lines:
            continue
        head = re.match(r"\s*(\d+)\s+([\d.]+):", lines[0])
        if head is None or not clock["start"] <= float(head[2]) < clock["end"]:
            continue
        frames = [line.split(None, 1)[1] if " " in line.strip() else "" for line in lines[1:]]
        samples.append((int(head[1]), float(head[2]) - clock["start"], frames))
    return clock, samples


def working(frames: list[str]) -> bool:
    """Whether a thread computed, and did not look for a task."""
    known = (
        frame for frame in frames if "svmarrow" in frame or "rayon_core" in frame or "crossbeam" in frame
    )
    return not WAITING.search(next(known, "svmarrow"))


def name_of(frames: list[str]) -> str:
    """The innermost function outside inner loops, behind the step of the fit that called it."""
    ours = [re.sub(r"::h[0-9a-f]{16}.*|svmarrow::", "", frame) for frame in frames if "svmarrow" in frame]
    ours = [
        frame
        for frame in ours
        if "run_avx" not in frame and not frame.startswith(("simd::", "memory::", "<alloc"))
    ]
    steps = [frame for frame in ours if frame.startswith(("svm::", "<svm::")) and "closure" not in frame]
    if not ours:
        return "Python: " + frames[0] if frames else "unknown"
    return f"{steps[0]} > {ours[0]}" if steps and steps[0] != ours[0] else ours[0]


def report(name: str, clock: dict[str, float], samples: list[Sample], jobs: int) -> dict[str, Any]:
    """Prints and returns the times of one workload."""
    bins: dict[int, dict[int, list[str]]] = collections.defaultdict(dict)
    for thread, time, frames in samples:
        if working(frames):
            bins[int(time / BIN)][thread] = frames
    alone = collections.Counter(
        name_of(next(iter(found.values()))) for found in bins.values() if len(found) == 1
    )
    total = int((clock["end"] - clock["start"]) / BIN)
    computed = sum(working(frames) for _, _, frames in samples) / FREQUENCY
    t, c = clock["seconds"], computed * clock["seconds"] / (clock["end"] - clock["start"])
    serial = (jobs * t / c - 1) / (jobs - 1) if jobs > 1 else 1.0
    print(f"{name}: {t:.3f} s, computing {c:.3f} s, busy {c / t / jobs:.2f}, serial share {serial:.2f}")
    functions = {function: count / total for function, count in alone.most_common(14)}
    for function, share in functions.items():
        print(f"   {share:6.1%}  {function}")
    print(f"   {sum(alone.values()) / total:6.1%}  of the time with exactly one busy thread")
    return {"seconds": t, "processor": c, "serial": serial, "alone": functions}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("workload", nargs="+", help="names of workloads.toml")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=0, help="training rows, all of them if 0")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {
        name: report(name, *record(name, options.jobs, options.repeats, options.rows), options.jobs)
        for name in options.workload
    }
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
