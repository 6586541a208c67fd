"""Every public operation with too little memory: it ends well or with MemoryError, the process lives on.

    python benches/robustness/memory_limits.py --output memory_limits.json
    python benches/robustness/memory_limits.py SVC compress --jobs 2
    python benches/robustness/memory_limits.py --drawn 2000 --busy 1.0 --output memory_limits_drawn.json

Linux alone. The data are made first; then the address space is limited to some megabytes above what is in use
(20, 40, 80, 160 and 300), each limit in a process of its own, and the operation is started. Work that goes on
for some processor seconds is ended by Ctrl-C. Afterwards, under the same limit, the process must still train,
predict and compress something small, to the same bits (where the operation left no room even for that, once
there is more). Stacks of threads count too: see --jobs.

With --drawn, random fits, predictions and files of 1,000 to 2 million rows instead
(tests/helpers/memory_limits.py): one or two threads, one or four Python threads that call at once, limits
between 8 and 600 MB.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reports import arguments, chosen, keep

if TYPE_CHECKING:
    import argparse

LIMITS = (20, 40, 80, 160, 300)
FEW = (20, 80, 300)


def drawn(given: argparse.Namespace) -> None:
    """Random runs; the report is written again after every hundred."""
    from helpers.memory_limits import GOOD, draw, run

    counts, bad = Counter(), {}
    for number in range(given.first, given.first + given.drawn):
        one = draw(number)
        answer = run(one, given.busy)
        ends = sorted({ended.split(":")[0] for ended in answer["ended"]})
        counts["MemoryError" if "MemoryError" in ends else ends[0]] += 1
        if not set(ends) <= GOOD:
            bad[number] = {**one._asdict(), **answer}
            print(bad[number], flush=True)
        done = number + 1 - given.first
        if done % 100 == 0 or done == given.drawn:
            keep(given.output, {"runs": done, "ends": dict(counts), "faults": bad})
            print(f"{done} runs, {len(bad)} with faults: {dict(counts)}", flush=True)


def main() -> None:
    given = arguments(__doc__, busy=6.0, limits=5, drawn=0, first=0)
    if given.drawn:
        drawn(given)
        return
    from helpers.worker import Worker, lacks

    results, counts, bad = {}, Counter(), 0
    with Worker() as worker:
        for one in chosen(given):
            asked = {"limits": LIMITS if given.limits == 5 else FEW, "busy": given.busy, "n_jobs": given.jobs}
            answer = worker.ask("memory", name=one.name, **asked)
            tries = answer.get("tries", [{"limit": 0, "faults": [], "ended": str(answer)[-300:]}])
            results[one.name] = tries
            for of in tries:
                of["lacks"] = lacks(of)
                bad += bool(of["lacks"])
                counts[of["ended"].split(":")[0]] += 1
            ends = ", ".join(f"{of['limit']} MB {of['ended'].split(':')[0]}" for of in tries)
            faults = sorted({fault for of in tries for fault in of["lacks"]})
            print(f"{one.name:60} {ends}", *faults, sep="\n    ", flush=True)
    keep(given.output, results)
    print(f"{sum(counts.values())} runs, {bad} with faults: {dict(counts)}")


if __name__ == "__main__":
    main()
