"""Every public operation with too little memory: it ends well or with MemoryError, the process lives on.

    python benches/robustness/memory_limits.py --output memory_limits.json
    python benches/robustness/memory_limits.py SVC compress --jobs 2

Linux alone. The data are made first; then the address space is limited to some megabytes above what is in use
(20, 40, 80, 160 and 300), each limit in a process of its own, and the operation is started. Work that goes on
for some processor seconds is ended by Ctrl-C. Afterwards, under the same limit, the process must still train,
predict and compress something small, to the same bits (where the operation left no room even for that, once
there is more). Stacks of threads count too: see --jobs.
"""

from __future__ import annotations

from collections import Counter

from reports import arguments, chosen, keep

LIMITS = (20, 40, 80, 160, 300)
FEW = (20, 80, 300)


def main() -> None:
    given = arguments(__doc__, busy=6.0, limits=5)
    from robustness.worker import Worker, lacks

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
