"""Ctrl-C at random moments of every public operation: how long each goes on working, and what it leaves.

    python benches/robustness/interrupts.py --output interrupts.json
    python benches/robustness/interrupts.py SVC compress --tries 30

An operation runs in a process of its own, at a size at which it takes seconds, again and again until the
signal comes; moments are drawn with fixed seeds. Told are units of work between the signal and the
exception, see tests/helpers/interruption.py: a unit is about
a second of a processor of 2020. Faults are another exception than KeyboardInterrupt, an object or a file that
is not as it was where that is promised, an object that does not answer, and a process that no longer
calculates the same.
"""

from __future__ import annotations

import statistics

from reports import arguments, chosen, keep


def main() -> None:
    given = arguments(__doc__, tries=30, longest=12.0)
    from helpers.worker import Worker

    results = {}
    print(f"{'operation':60} {'tries':>5} {'median':>7} {'worst':>7}  faults", flush=True)
    with Worker() as worker:
        for one in chosen(given):
            answer = worker.ask(
                "interrupts", name=one.name, tries=given.tries, longest=given.longest, n_jobs=given.jobs
            )
            if "tries" not in answer:
                results[one.name] = answer
                print(f"{one.name:60} {str(answer)[-400:]}", flush=True)
                continue
            units = [of["units"] for of in answer["tries"]]
            faults = sorted({fault for of in answer["tries"] for fault in of["faults"]})
            results[one.name] = {
                "tries": len(units),
                "median": statistics.median(units),
                "worst": max(units),
                "faults": faults,
            }
            print(
                f"{one.name:60} {len(units):5} {statistics.median(units):7.3f} "
                f"{max(units):7.3f}  {'; '.join(faults)}",
                flush=True,
            )
    keep(given.output, results)
    good = [of for of in results.values() if not of.get("faults", True) and of["worst"] < 1.0]
    print(f"{len(good)} of {len(results)} operations end within a unit and leave everything as it should be")


if __name__ == "__main__":
    main()
