"""Counts the work of workloads: runs inside the process that callgrind observes, see `guard.py`.

valgrind --tool=callgrind ... python count.py PROBE RESULTS [NAME ...]
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from workloads import WORKLOADS, planted_search


def certified_work(result: Any) -> dict[str, int]:
    """Returns the counts of the certificate of a fit, if it has one."""
    certificate = getattr(result, "certificate_", None)
    machines = getattr(certificate, "machines", None)
    if certificate is None or machines is None:
        return {}
    return {
        "kernel values": int(certificate.kernel_values),
        "steps": sum(int(machine.iterations) for machine in machines),
        "rounds": sum(int(machine.rounds) for machine in machines),
    }


def main() -> None:
    probe_path, results_path, *names = sys.argv[1:]
    probe = ctypes.CDLL(probe_path)
    warnings.simplefilter("ignore")
    probe.start_instrumentation()
    workloads = {**WORKLOADS, "planted": planted_search}
    results = {}
    for name in names or WORKLOADS:
        run = workloads[name]()
        run()
        gc.collect()
        gc.disable()
        probe.start_count()
        result = run()
        probe.end_count(name.encode())
        gc.enable()
        results[name] = certified_work(result)
    Path(results_path).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
