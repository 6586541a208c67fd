"""Runs many programs and prints the failures by kind.

python tests/robustness/programs/run.py --programs 100000 --seed 0 --jobs 2
"""

from __future__ import annotations

import argparse
import concurrent.futures
import concurrent.futures.process
import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(Path(__file__).parents[2]))

from robustness.programs.known import name_of  # noqa: E402
from robustness.programs.runner import Failure, Program, run, shrink  # noqa: E402

#: Programs of a round.
ROUND = 200
#: Seconds of the processor after which a program is reported as slow.
SLOW = 20.0
#: Seconds of the processor after which a program is interrupted, as by Ctrl-C.
LIMIT = 200.0


def outcome(seed: int) -> dict:
    """The verdict on a seed as a dict."""
    try:
        program = Program.of(seed)
        with processor_limit(LIMIT):
            result = run(program)
    except KeyboardInterrupt as error:
        failure = Failure(
            "the program does not end", "".join(traceback.format_exception(error)), str(program.call)
        )
        return verdict(seed, failure.kind, failure.message, name_of(failure, program))
    except Exception as error:  # noqa: BLE001 - a fault of the generator does not end the run
        return verdict(seed, "generator", "".join(traceback.format_exception(error)))
    return {
        "seed": seed,
        "estimator": str(program.call),
        "steps": list(program.steps),
        "fitted": result.fitted,
        "seconds": round(result.seconds, 3),
        "failures": [
            [failure.kind, failure.message, failure.step, name_of(failure, program)]
            for failure in result.failures
        ],
        "refusals": result.refusals,
    }


@contextlib.contextmanager
def processor_limit(seconds: float) -> Iterator[None]:
    """Raises KeyboardInterrupt after so many seconds of the processor, whatever the load of the machine."""
    signal.signal(signal.SIGPROF, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def outcomes(seeds: Iterable[int], jobs: int) -> Iterator[dict]:
    """The verdicts on seeds as they arrive; a program that ends its process is a failure."""
    left = list(seeds)
    while left:
        alone = False
        with executor(jobs) as pool:
            tasks = {}
            try:
                for start in range(0, len(left), ROUND):
                    tasks = {pool.submit(outcome, seed): seed for seed in left[start : start + ROUND]}
                    for task in concurrent.futures.as_completed(list(tasks)):
                        yield task.result()
                        del tasks[task]
            except concurrent.futures.process.BrokenProcessPool:
                alone = True
        left = left[start + ROUND :]
        if alone:
            for seed in tasks.values():
                with executor(1) as pool:
                    try:
                        yield pool.submit(outcome, seed).result()
                    except concurrent.futures.process.BrokenProcessPool:
                        yield verdict(seed, "the process ended", "a crash, or no memory")


def executor(jobs: int) -> concurrent.futures.ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return concurrent.futures.ProcessPoolExecutor(jobs, context)


def verdict(seed: int, kind: str, message: str, fault: str | None = None) -> dict:
    """The verdict on a seed without a result."""
    failures = [[kind, message, "", fault]]
    return {"seed": seed, "fitted": False, "seconds": 0.0, "refusals": [], "failures": failures}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--log", type=Path, help="write one line of JSON for each program")
    parser.add_argument("--scripts", type=int, default=1, help="scripts to print for each kind of failure")
    options = parser.parse_args()
    start, kinds, examples, slow, fitted, refusals = time.perf_counter(), Counter(), {}, [], 0, Counter()
    known = Counter()
    log = options.log.open("a") if options.log else None
    for done in outcomes(range(options.seed, options.seed + options.programs), options.jobs):
        fitted += done["fitted"]
        if done["seconds"] > SLOW:
            slow.append(done["seed"])
        refusals.update(text.partition(":")[0] for text in done["refusals"])
        for kind, message, _, fault in done["failures"]:
            if fault is not None:
                known[fault] += 1
                continue
            kinds[kind] += 1
            examples.setdefault(kind, []).append((done["seed"], message))
        if log:
            log.write(json.dumps(done, default=str) + "\n")
            log.flush()
    for kind, count in kinds.most_common():
        seed, message = min(examples[kind])
        print(f"\n=== {count} x {kind}\nseeds {sorted(s for s, _ in examples[kind])[:8]}\n{message}")
        for seed, _ in sorted(examples[kind])[
            : options.scripts if kind not in ("generator", "the process ended") else 0
        ]:
            print("\n" + shrink(Program.of(seed), kind).source)
    seconds = time.perf_counter() - start
    print(f"\n{options.programs} programs from seed {options.seed}, {fitted} fitted, {seconds:.0f} s")
    print(f"{sum(kinds.values())} failures of {len(kinds)} kinds")
    print("open faults:", dict(known))
    print("refusals:", dict(refusals.most_common()))
    if slow:
        print(f"slower than {SLOW:g} s: seeds {slow}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
