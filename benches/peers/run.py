"""Run marrow and its peers side by side: same data, same problem, objective checked before a time.

    python benches/peers/run.py                     the first suite, three repeats, medians
    python benches/peers/run.py --suite svm --json out.json --markdown
    python benches/peers/run.py --workloads usps,a9a --engines sklearn,marrow-f32
    python benches/peers/run.py --suite compress
    python benches/peers/run.py --quick             a few hundred rows, to see that all of it runs

Exit status 1 where marrow does not run, its solution differs from LIBSVM's or a compression misses its
limit; a peer that is not installed, or data that are not here, are named and skipped. The method is in
benches/README.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import compress
import data
import numpy as np
import report
from engines import ENGINES, REFERENCE
from objective import Dual, dual_objective
from worker import UNAVAILABLE

HERE = Path(__file__).resolve().parent
# A solution whose dual objective differs by more, relative to LIBSVM's, solved another problem: no time is
# shown.
OBJECTIVE_TOLERANCE = 1e-4
# Single-precision sums of alpha leave about 1e-5; more than this is a solution outside the feasible set.
FEASIBILITY_TOLERANCE = 1e-3
# `--quick`: training rows and repeats.
QUICK_ROWS = 600
SUITES = ("first", "svm", "compress")


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


class Comparison:
    """All engines on one workload: runs them in turn, judges every solution, keeps what may be shown."""

    def __init__(self, workload: dict[str, Any], options: argparse.Namespace) -> None:
        self.workload = workload
        self.options = options
        self.limit = QUICK_ROWS if options.quick else None
        self.problem = data.load(workload, self.limit)
        self.cells = {name: report.Cell(workload["name"], name) for name in options.engines}
        self.judged: dict[bytes, Dual] = {}
        self.reference: Dual | None = None
        self.reference_predicted: np.ndarray | None = None

    def run(self) -> list[report.Cell]:
        """Every engine once, then every engine again, so that a slow minute of the machine hits them all."""
        for repeat in range(self.options.repeat):
            for name, cell in self.cells.items():
                if repeat == 0 or cell.fit_seconds:
                    self.once(name, cell)
        return list(self.cells.values())

    def once(self, name: str, cell: report.Cell) -> None:
        """One engine, one process."""
        with tempfile.TemporaryDirectory() as scratch:
            output = Path(scratch) / "result.npz"
            spec = {
                "engine": name,
                "workload": self.workload,
                "limit": self.limit,
                "threads": self.options.threads,
                "output": str(output),
            }
            command = [sys.executable, str(HERE / "worker.py"), json.dumps(spec)]
            try:
                done = subprocess.run(
                    command, stderr=subprocess.PIPE, text=True, timeout=self.options.timeout, check=False
                )
            except subprocess.TimeoutExpired:
                cell.note = f"over {self.options.timeout:g} s"
                say(f"  {name}: {cell.note}")
                return
            if done.returncode != 0:
                reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
                cell.note = "not here" if done.returncode == UNAVAILABLE else "failed"
                say(f"  {name}: {cell.note}: {reason}")
                if cell.note == "failed":
                    say(done.stderr)
                return
            with np.load(output, allow_pickle=False) as z:
                self.judge(name, cell, {key: z[key] for key in z.files})

    def judge(self, name: str, cell: report.Cell, result: dict[str, np.ndarray]) -> None:
        """Check the solution, and only then take its times."""
        measured = json.loads(str(result["measured"]))
        cell.version, cell.vectors = measured["version"], len(result["support"])
        cell.warnings = sorted({*cell.warnings, *measured["warnings"]})
        if self.reference_predicted is None and name == REFERENCE:
            self.reference_predicted = result["predicted"]
        if self.reference_predicted is not None:
            cell.agreement = float(np.mean(result["predicted"] == self.reference_predicted))
        cell.error = float(np.mean(result["predicted"] != self.problem.y_test))
        verdict = ""
        if not self.options.no_objective:
            dual = self.dual(result)
            if name == REFERENCE and self.reference is None:
                self.reference = dual
            verdict = self.compare(cell, dual)
        cell.fit_seconds.append(measured["fit_seconds"])
        cell.predict_seconds.append(measured["predict_seconds"])
        cell.peak_bytes.append(measured["peak_bytes"])
        times = (
            f"fit {cell.fit_seconds[-1]:.3f} s, predict {cell.predict_seconds[-1]:.4f} s"
            if cell.trusted
            else "no time is shown"
        )
        say(f"  {name}: {cell.vectors} vectors, agreement {cell.agreement:.2%}{verdict}; {times}")

    def dual(self, result: dict[str, np.ndarray]) -> Dual:
        """The common objective; equal solutions of two repeats are judged once."""
        key = result["support"].tobytes() + result["dual_coef"].tobytes()
        if key not in self.judged:
            self.judged[key] = dual_objective(
                self.problem.X,
                self.problem.y,
                result["support"],
                result["dual_coef"],
                C=self.workload["C"],
                gamma=self.workload["gamma"],
            )
        return self.judged[key]

    def compare(self, cell: report.Cell, dual: Dual) -> str:
        """Set the cell's verdict; the worst repeat counts."""
        if self.reference is None:
            return ", objective not checked: no reference"
        difference = (dual.value - self.reference.value) / abs(self.reference.value)
        if not cell.checked or abs(difference) > abs(cell.objective or 0.0):
            cell.objective = difference
        cell.checked = True
        cell.infeasibility = max(dual.infeasibility, cell.infeasibility or 0.0)
        same = abs(cell.objective or 0.0) <= OBJECTIVE_TOLERANCE
        cell.trusted = same and cell.infeasibility <= FEASIBILITY_TOLERANCE
        return f", objective {difference:+.1e}, infeasibility {dual.infeasibility:.0e}"


def choose(options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The workloads and compressions that are asked for and whose rows are here."""
    workloads, compressions = data.read_workloads()
    if options.workloads:
        known = {entry["name"] for entry in workloads}
        unknown = [name for name in options.workloads if name not in known]
        if unknown:
            raise SystemExit(f"--workloads {','.join(unknown)}: it must be among {', '.join(sorted(known))}")
        chosen = [entry for entry in workloads if entry["name"] in options.workloads]
    else:
        chosen = [entry for entry in workloads if entry["suite"] in options.suite]
    shrink = []
    if "compress" in options.suite:
        shrink = [entry for entry in compressions if entry.get("quick", False) == options.quick]
    for entry in [*chosen, *shrink]:
        if not data.available(entry):
            where = f"no {entry['file']}.npz in {data.folder()}"
            say(f"SKIPPED {entry['name']}: {where} (MARROW_DATA names another folder)")
    chosen, shrink = ([entry for entry in group if data.available(entry)] for group in (chosen, shrink))
    if options.quick and not options.workloads:
        # Bundled rows first: `--quick` always has something to run.
        chosen = [entry for entry in workloads if entry["suite"] == "quick"] + chosen
    return chosen, shrink


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""

    def names(text: str) -> list[str]:
        return [part for part in text.split(",") if part]

    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    add = parser.add_argument
    add(
        "--suite", type=names, help=f"some of {','.join(SUITES)} (default: first; with --quick also compress)"
    )
    add("--workloads", type=names, default=[], help="names, instead of a suite")
    add("--engines", type=names, default=list(ENGINES), help=f"some of {','.join(ENGINES)}")
    add("--repeat", type=int, help="runs of each engine, the median is reported (default: 3)")
    add("--quick", action="store_true", help=f"{QUICK_ROWS} rows, one repeat")
    add("--threads", type=int, help="processors that every engine may use (default: all)")
    add("--timeout", type=float, help="seconds after which a run is given up (default: none)")
    add("--no-objective", action="store_true", help="skip the check (m^2 kernel values a solution)")
    add("--json", type=Path, metavar="FILE", help="write everything measured")
    add("--markdown", action="store_true", help="tables as Markdown")
    options = parser.parse_args(arguments)
    for name in options.engines:
        if name not in ENGINES:
            parser.error(f"--engines {name}: it must be among {', '.join(ENGINES)}")
    if options.suite is None:
        options.suite = ["first", "compress"] if options.quick else ["first"]
        if options.workloads:
            options.suite = []
    for name in options.suite:
        if name not in SUITES:
            parser.error(f"--suite {name}: it must be among {', '.join(SUITES)}")
    options.repeat = options.repeat or (1 if options.quick else 3)
    if options.repeat < 1:
        parser.error(f"--repeat {options.repeat}: it must be at least 1")
    if options.threads is not None and options.threads < 1:
        parser.error(f"--threads {options.threads}: it must be at least 1")
    if not options.no_objective:
        # The reference runs first and is always there: without it nothing can be checked.
        options.engines = [REFERENCE, *(name for name in options.engines if name != REFERENCE)]
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; the exit status."""
    options = parse(arguments)
    workloads, compressions = choose(options)
    cells: list[report.Cell] = []
    results: list[dict[str, Any]] = []
    failures: list[str] = []
    for workload in workloads:
        say(f"{workload['name']}: C={workload['C']:g}, gamma={workload['gamma']:g}")
        found = Comparison(workload, options).run()
        for cell in found:
            ours = cell.engine.startswith("marrow")
            if ours and (cell.note or not cell.trusted):
                failures.append(f"{cell.workload}: {cell.engine} {cell.note or 'differs from LIBSVM'}")
            for warning in cell.warnings:
                say(f"  {cell.engine} warned: {warning}")
        cells += found
    for workload in compressions:
        say(f"compress {workload['name']}")
        result = compress.run(workload)
        results.append(result)
        failures += compress.missed(result)
    if cells:
        print(report.table(report.HEADINGS, report.comparison(cells), markdown=options.markdown))
        print(f"\nMedians of {options.repeat}; equal tolerance and cache; 'times as fast': {REFERENCE} = 1.")
        print(report.versions(cells))
    if results:
        rows = [row for result in results for row in compress.lines(result)]
        print("\n" + report.table(compress.HEADINGS, rows, markdown=options.markdown))
    machine = report.machine()
    count = options.threads or machine["processors"]
    print(f"{machine['processor']}, {count} processors, {machine['system']}")
    if options.json:
        everything = {
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": machine,
            "threads": options.threads,
            "repeat": options.repeat,
            "quick": options.quick,
            "comparison": report.as_json(cells),
            "compress": results,
        }
        options.json.write_text(json.dumps(everything, indent=1) + "\n")
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
