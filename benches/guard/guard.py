"""The guard of cost: the work of fixed small workloads, compared with the committed counts.

    python benches/guard/guard.py                     fails if a count has grown by more than 3 %
    python benches/guard/guard.py --update "REASON"   writes the counts of this tree

Two kinds of counts, both independent of the clock and of other processes:

- machine instructions of the extension module, counted by callgrind on one thread and one instruction set
  (AVX2). Those of Python, NumPy and the C library are left out, so that their new versions change nothing;
- the kernel values, steps and rounds of certificates.

Instructions depend on the compiler: with another version of rustc than that of the committed counts only the
work of certificates is compared. A change that makes a workload more expensive changes `counts.json` in the
same commit, with a reason; the file keeps all reasons.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
COUNTS = HERE / "counts.json"
#: Maximum growth of a count.
MAX_GROWTH = 0.03
#: Growth of a small count that is not reported: the cost of a call.
MIN_COUNT = 1000
MODULE = "_core.abi3.so"

Counts = dict[str, dict[str, int]]


def missing_tool() -> str | None:
    """Returns the name of a tool that is needed and not installed."""
    for tool in ("valgrind", "gcc"):
        if shutil.which(tool) is None:
            return tool
    return None if Path("/usr/include/valgrind/callgrind.h").exists() else "valgrind's headers"


def rustc_version() -> str:
    return subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[
        1
    ]


def instructions(lines: Iterator[str], module: str = MODULE) -> int:
    """Returns the instructions of one object file in the lines of a callgrind file.

    A cost line belongs to the object of the last ``ob=`` line; the next after ``calls=`` is the callee's.
    """
    names: dict[str, str] = {}
    is_module, is_callee, total = False, False, 0
    for line in lines:
        if line.startswith("ob="):
            number, _, name = line[3:].strip().partition(" ")
            is_module = names.setdefault(number, name).endswith(module)
        elif line.startswith("cob="):
            number, _, name = line[4:].strip().partition(" ")
            names.setdefault(number, name)
        elif line.startswith("calls="):
            is_callee = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            if is_module and not is_callee:
                total += int(line.split()[1])
            is_callee = False
    return total


def count(names: list[str]) -> Counts:
    """Returns the counts of workloads, counted by as many processes as there are cores."""
    processes = min(os.cpu_count() or 1, len(names))
    with ThreadPoolExecutor(processes) as pool:
        parts = list(pool.map(count_in_turn, (names[start::processes] for start in range(processes))))
    return {name: counts for part in parts for name, counts in part.items()}


def count_in_turn(names: list[str]) -> Counts:
    """Returns the counts of workloads, counted by one process."""
    with tempfile.TemporaryDirectory() as folder:
        probe, results = Path(folder) / "probe.so", Path(folder) / "results.json"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", probe, HERE / "probe.c"], check=True)
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=no", "-q"]
        command += [f"--callgrind-out-file={folder}/out", sys.executable, HERE / "count.py", probe, results]
        environment = {
            **os.environ,
            "SVMARROW_SIMD": "avx2",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
        }
        subprocess.run([*command, *names], check=True, env=environment)
        counts: Counts = json.loads(results.read_text())
        for dump in Path(folder).glob("out.*"):
            with dump.open() as lines:
                text = list(lines)
            named = [re.match(r"desc: Trigger: Client Request: (.*)", line) for line in text[:40]]
            for match in filter(None, named):
                counts[match[1]]["instructions"] = instructions(iter(text))
        return counts


def growth(before: Counts, after: Counts, kinds: set[str]) -> list[str]:
    """Returns a line for each count that has grown too much, and for each workload without a count."""
    lines = [f"{name}: no committed counts" for name in after if name not in before]
    for name, counts in before.items():
        if name not in after:
            lines.append(f"{name}: committed, but no workload any more")
            continue
        for kind, old in counts.items():
            new = after[name].get(kind, 0)
            if kind in kinds and new > old * (1.0 + MAX_GROWTH) and new - old > MIN_COUNT:
                lines.append(f"{name}: {kind} {old:,} -> {new:,} ({new / old - 1.0:+.1%})")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", metavar="REASON", help="write the counts of this tree")
    arguments = parser.parse_args()
    tool = missing_tool()
    if tool is not None:
        print(f"SKIPPED: {tool} is not installed, so no work is counted")
        return 0
    after, compiler = count(list(WORKLOADS)), rustc_version()
    committed = json.loads(COUNTS.read_text()) if COUNTS.exists() else {"reasons": [], "counts": {}}
    if arguments.update is not None:
        reasons = [*committed["reasons"], arguments.update]
        content = {"rustc": compiler, "reasons": reasons, "counts": after}
        COUNTS.write_text(json.dumps(content, indent=1) + "\n")
        return 0
    kinds = {"kernel values", "steps", "rounds"}
    if committed["rustc"] == compiler:
        kinds.add("instructions")
    else:
        print(f"instructions were counted with rustc {committed['rustc']}, not {compiler}: not compared")
    grown = growth(committed["counts"], after, kinds)
    print(*grown, sep="\n")
    print(f"{len(after)} workloads guarded, {len(grown)} grown")
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main())
