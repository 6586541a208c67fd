"""Run svmarrow and its peers side by side: same data, same problem, objective checked before a time.

    python benches/peers/run.py                     the first suite, three repeats, medians
    python benches/peers/run.py --suite svm --json out.json --plot peers.png --markdown
    python benches/peers/run.py --suite growth,threads,latency,small
    python benches/peers/run.py --workloads usps,a9a --engines sklearn,svmarrow-f32
    python benches/peers/run.py --suite svm --skip sklearn:mnist
    python benches/peers/run.py --suite compress
    python benches/peers/run.py --suite dropin      one scikit-learn program under three libraries
    python benches/peers/run.py --suite tuning      C and gamma chosen: SVCCV, GridSearchCV, liquidSVM
    python benches/peers/run.py --suite path        C chosen at one gamma: SVCCV, GridSearchCV, TorchKM
    python benches/peers/run.py --suite tabular     tables: Tabular* and tree ensembles
    python benches/peers/run.py --suite tabular --repeat 5 --json out.json --resume    two more splits
    python benches/peers/run.py --quick             a few hundred rows, to see that all of it runs

Exit status 1 where svmarrow does not run, its solution differs from its peers' or a compression misses its
limit; a peer that is not installed, or data that are not here, are named and skipped. A missed target of
speed is a line of the result, not a failure. The method is in benches/README.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import compress
import data
import dropin
import growth
import latency
import report
import small
import speedup
import targets
import tuning
from cells import LEFT_OUT, Cell
from comparison import Comparison
from engines import ENGINES
from process import HERE, Settings, say

import tabular

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# `--quick`: training rows and repeats.
QUICK_ROWS = 600
COMPARISONS = ("first", "svm")
SUITES = (
    *COMPARISONS,
    "compress",
    "growth",
    "threads",
    "latency",
    "small",
    "dropin",
    "tuning",
    "path",
    "tabular",
)
# Joins every comparison that is checked: the others are judged by it.
REFERENCE = "sklearn"


class Session:
    """One command: runs its suites, prints their tables, keeps everything for a file."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.table = data.read_table()
        for entry in self.table["workload"]:
            entry["cache_megabytes"] = options.cache or entry["cache_megabytes"]
        self.settings = Settings(
            repeat=options.repeat,
            threads=options.threads,
            timeout=options.timeout,
            check=not options.no_objective,
            limit=QUICK_ROWS if options.quick else None,
        )
        self.cells: list[Cell] = []
        self.failures: list[str] = []
        self.record: dict[str, Any] = {
            "commit": report.commit(),
            "command": " ".join(["python", "benches/peers/run.py", *sys.argv[1:]]),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": report.machine(),
            "threads": options.threads,
            "repeat": options.repeat,
            "quick": options.quick,
        }

    def keep(self, suite: str, found: Any) -> None:
        """Write what is known so far: a long run that is ended leaves its file."""
        self.record[suite] = found
        if self.options.json:
            part = self.options.json.with_name(self.options.json.name + ".part")
            part.write_text(json.dumps(self.record, indent=1) + "\n")
            part.replace(self.options.json)

    def show(self, headings: list[str], rows: list[list[str]], *notes: object) -> None:
        """A table on standard output, its notes, an empty line."""
        print(report.table(headings, rows, markdown=self.options.markdown))
        lines = [*([""] if self.options.markdown and notes else []), *notes, ""]
        print(*lines, sep="\n", flush=True)

    def judge(self, verdicts: list[targets.Verdict]) -> list[targets.Verdict]:
        """Targets are for whole sets: not for a few hundred rows."""
        return [] if self.options.quick else verdicts

    def named(self, names: list[str]) -> list[dict[str, Any]]:
        """Workloads by name, those whose rows are here; `--workloads` narrows the choice."""
        chosen = [
            entry
            for entry in self.table["workload"]
            if entry["name"] in names
            and (not self.options.workloads or entry["name"] in self.options.workloads)
        ]
        return present(chosen)

    def skipped(self, workload: str) -> list[str]:
        """Engines that `--skip` leaves out of a workload."""
        return [engine for engine, name in self.options.skip if name == workload]

    def compare(self) -> None:
        """The suites `first` and `svm`, or the named workloads."""
        options, entries = self.options, self.table["workload"]
        if options.workloads:
            names = options.workloads
        else:
            names = [entry["name"] for entry in entries if set(entry["suites"]) & set(options.suite)]
        workloads = self.named(names)
        if options.quick and not options.workloads:
            # Bundled rows first: `--quick` always has something to run.
            workloads = [entry for entry in entries if "quick" in entry["suites"]] + workloads
        asked = {*(options.engines or ENGINES), *([REFERENCE] if self.settings.check else [])}
        engines = [name for name in ENGINES if name in asked]
        for workload in workloads:
            say(f"{workload['name']}: C={workload['C']:g}, gamma={workload['gamma']:g}")
            left_out = self.skipped(workload["name"])
            found = Comparison(workload, engines, self.settings, left_out).run()
            self.blame(found)
            self.cells += found
            self.keep("comparison", [asdict(cell) for cell in self.cells])
        if not self.cells:
            return
        self.show(
            report.HEADINGS,
            report.comparison(self.cells),
            f"Medians of {options.repeat}; equal tolerance and cache; 'times as fast': the best peer = 1.",
            report.versions(self.cells),
            *self.judge(targets.of_comparison(self.cells)),
        )
        if options.plot:
            import plot

            try:
                plot.draw(self.cells, options.plot)
            except ValueError as error:
                self.failures.append(f"--plot {options.plot}: {error}")

    def blame(self, cells: list[Cell], where: str = "") -> None:
        """Note what of ours did not run or differs, say what engines warned of."""
        for cell in cells:
            if cell.ours and cell.note != LEFT_OUT and (cell.note or not cell.trusted):
                why = cell.note or "differs from the reference"
                self.failures.append(f"{cell.workload}{where}: {cell.engine} {why}")
            for warning in cell.warnings:
                say(f"  {cell.engine} warned: {warning}")

    def compress(self) -> None:
        """Test error at several sizes."""
        entries = [
            entry for entry in self.table["compress"] if entry.get("quick", False) == self.options.quick
        ]
        results = []
        for workload in present(entries):
            say(f"compress {workload['name']}")
            results.append(compress.run(workload))
            self.failures += compress.missed(results[-1])
            self.keep("compress", results)
        if results:
            self.show(compress.HEADINGS, [row for result in results for row in compress.lines(result)])

    def growth(self) -> None:
        """Fit time against rows."""
        table, options = self.table["growth"], self.options
        sizes = table["quick_sizes"] if options.quick else table["sizes"]
        asked = options.engines or table["engines"]
        engines = [name for name in ENGINES if name in asked]
        settings = replace(self.settings, timeout=options.timeout or table["timeout"])
        everything = []
        for workload in self.named(table["workloads"]):
            left_out = self.skipped(workload["name"])
            kept = [name for name in engines if name not in left_out]
            group = growth.run(workload, kept, sizes, settings, table["test"])
            for series in group:
                for size, cell in series.cells.items():
                    self.blame([cell], f" ({size:,} rows)")
            everything.append(group)
            self.keep("growth", [asdict(series) for group in everything for series in group])
        if everything:
            self.show(
                growth.headings(sizes),
                [row for group in everything for row in growth.lines(group, sizes)],
                f"Fit seconds, medians of {options.repeat}, by training rows; seconds = a rows^exponent.",
                *(line for group in everything for line in growth.left_out(group)),
            )

    def threads(self) -> None:
        """Fit time against threads."""
        table, options = self.table["threads"], self.options
        asked = [name for name in options.engines or [] if name != REFERENCE] or table["engines"]
        numbers = speedup.counts(min(options.threads or report.processors(), report.processors()))
        results = []
        for workload in self.named(table["workloads"]):
            for engine in asked:
                say(f"threads {workload['name']}: {engine}")
                results.append(speedup.run(workload, engine, numbers, self.settings))
                if results[-1].note and engine.startswith("svmarrow"):
                    self.failures.append(f"{workload['name']}: {engine} {results[-1].note}")
                self.keep("threads", [result.record() for result in results])
        if results:
            self.show(
                speedup.HEADINGS,
                [row for result in results for row in speedup.lines(result)],
                f"Medians of {options.repeat}; objective: relative to one thread's; model: Amdahl's law.",
                *self.judge(targets.of_threads(results)),
            )

    def latency(self) -> None:
        """One row at a time."""
        table, results = self.table["latency"], self.in_process("latency")
        if results is None:
            return
        self.show(
            latency.headings(table),
            latency.lines(results),
            f"An RBF machine of {table['vectors']} vectors, {table['features']} features; medians of "
            f"{latency.REPEATS} runs of timeit.",
            *self.judge(targets.of_latency(results)),
        )

    def small(self) -> None:
        """Fits of few samples."""
        results = self.in_process("small")
        if results is not None:
            self.show(small.HEADINGS, small.lines(results), "Medians of fits in turn, in milliseconds.")

    def in_process(self, suite: str) -> Any:
        """The result of the script of a suite with its table, in a process of its own; None if it fails."""
        say(suite)
        options = self.options
        spec = {"table": self.table[suite], "threads": options.threads, "quick": options.quick}
        command = [sys.executable, str(HERE / f"{suite}.py"), json.dumps(spec)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            self.failures.append(f"{suite}: see the message above")
            return None
        results = json.loads(done.stdout)
        self.keep(suite, results)
        return results

    def dropin(self) -> None:
        """A program that knows scikit-learn alone."""
        table, options = self.table["dropin"], self.options
        rows = table["quick_rows"] if options.quick else table["rows"]
        results = []
        for workload in self.named(table["quick_workloads"] if options.quick else table["workloads"]):
            say(f"dropin {workload['name']}")
            results.append(dropin.run(workload, rows, options.repeat, options.threads))
            self.failures += dropin.faults(results[-1])
            self.keep("dropin", results)
        if results:
            self.show(
                dropin.HEADINGS,
                [row for result in results for row in dropin.lines(result)],
                f"Medians of {options.repeat}; nine points, five folds; the program: benches/peers/user.py.",
            )

    def tuning(self) -> None:
        """Searches for C and gamma."""
        options = self.options
        searches = self.searches(tuning.SETS, tuning.QUICK, tuning.ENGINES, "tuning")
        if searches:
            told = [*tuning.ratios(searches), *tuning.ratios(searches, "processor_seconds")]
            rows = [row for result in searches for row in tuning.lines(result)]
            self.show(tuning.HEADINGS, rows, f"Medians of {options.repeat}.\n" + "\n".join(told))
        say(f"tuning {tuning.GROWTH_SET}: growth")
        found = tuning.growth(tuning.QUICK_GROWTH if options.quick else tuning.GROWTH, options.threads)
        self.failures += [f"tuning growth: {one['failed']}" for one in found if "failed" in one]
        self.keep("tuning_growth", found)
        self.show(tuning.GROWTH_HEADINGS, tuning.growth_lines(found))

    def path(self) -> None:
        """Searches along C alone."""
        engines = tuning.PATH_ENGINES
        results = self.searches(tuning.PATH_SETS, tuning.QUICK[:1], engines, "path")
        if results:
            told = tuning.ratios(results, own=engines[:1], others=engines[1:])
            rows = [row for result in results for row in tuning.lines(result)]
            self.show(tuning.HEADINGS, rows, *told)

    def searches(
        self, sets: Iterable[str], quick: Iterable[str], engines: Sequence[str], record: str
    ) -> list[dict[str, Any]]:
        """Runs of some searches on the sets that are here; those of svmarrow must not fail."""
        options, results = self.options, []
        names = [name for name in sets if not options.workloads or name in options.workloads]
        for name in quick if options.quick else names:
            say(f"{record} {name}")
            limit = options.timeout or tuning.LIMIT
            result = tuning.run(name, options.repeat, options.threads, limit, engines)
            if result is None:
                say(f"SKIPPED {name}: its file is not there (SVMARROW_DATA names another folder)")
                continue
            results.append(result)
            ours = [run for engine, runs in result["engines"].items() if "SVCCV" in engine for run in runs]
            self.failures += [f"{record} {name}: {run['failed']}" for run in ours if "failed" in run]
            self.keep(record, results)
        return results

    def tabular(self) -> None:
        """Tables, by the number of training samples; `--repeat` is the number of splits."""
        options, runs, results = self.options, [], []
        if options.resume:
            runs, results = tabular.earlier(json.loads(options.json.read_text()))
        keys = ("commit", "command", "date", "machine")
        self.record["runs"] = [*runs, {key: self.record[key] for key in keys}]
        known = {(result["samples"], result["set"]): result for result in results}
        names = [name for name in tabular.SETS if not options.workloads or name in options.workloads]
        present = [name for name in names if tabular.rows_of(name) is not None]
        for name in sorted({*names} - {*present}):
            say(f"SKIPPED {name}: its file is not there (SVMARROW_DATA names another folder)")
        engines = options.engines or tabular.DEFAULT_ENGINES
        # All sets of a split before the next split: a run that is ended has as many sets as it can.
        for n in (120,) if options.quick else options.sizes:
            for split in range(options.repeat):
                for name in [*tabular.QUICK] if options.quick else present:
                    result = known.setdefault((n, name), tabular.start(name, n))
                    say(f"tabular {name}: {n} samples, split {split + 1}")
                    if tabular.extend(result, split, engines, run=len(runs), timed=not options.no_times):
                        results = [one for one in known.values() if one["engines"]]
                        self.keep("tabular", results)
        if results:
            head, rows = tabular.headings(results), [*tabular.lines(results)]
            self.show(head, rows, "Mean errors (seconds).", *tabular.summary(results))

    def run(self) -> int:
        """Every suite that is asked for; the exit status."""
        options = self.options
        if set(options.suite) & set(COMPARISONS) or (options.workloads and not options.suite):
            self.compare()
        for suite in SUITES[len(COMPARISONS) :]:
            if suite in options.suite:
                getattr(self, suite)()
        machine = self.record["machine"]
        count = options.threads or machine["processors"]
        print(f"{machine['processor']}, {count} processors, {machine['system']}")
        for failure in self.failures:
            print(f"FAILED {failure}", file=sys.stderr)
        return 1 if self.failures else 0


def present(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those whose rows are here; the others are named."""
    for entry in entries:
        if not data.available(entry):
            where = f"no {entry['file']}.npz in {data.folder()}"
            say(f"SKIPPED {entry['name']}: {where} (SVMARROW_DATA names another folder)")
    return [entry for entry in entries if data.available(entry)]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""

    def names(text: str) -> list[str]:
        return [part for part in text.split(",") if part]

    def sizes(text: str) -> list[int]:
        found = [int(part) for part in names(text)]
        if min(found, default=0) < 10:
            raise argparse.ArgumentTypeError(f"{text!r}: it must be numbers of at least 10")
        return found

    def pairs(text: str) -> list[tuple[str, str]]:
        found = []
        for part in names(text):
            engine, colon, workload = part.partition(":")
            if not colon or engine not in ENGINES or workload not in known:
                raise argparse.ArgumentTypeError(f"{part!r}: it must be ENGINE:WORKLOAD of known names")
            found.append((engine, workload))
        return found

    known = [*(entry["name"] for entry in data.read_table()["workload"]), *tuning.SETS, *tabular.SETS]
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    add = parser.add_argument
    add(
        "--suite",
        type=names,
        help=f"some of {','.join(SUITES)} (default: first; with --quick more)",
    )
    add("--workloads", type=names, default=[], help="names, instead of a suite or to narrow it")
    add("--engines", type=names, help=f"some of {','.join(ENGINES)} (default: the suite's)")
    add(
        "--skip",
        type=pairs,
        action="extend",
        default=[],
        metavar="E:W",
        help="pairs to leave out, such as sklearn:mnist",
    )
    add("--repeat", type=int, help="runs of each engine, the median is reported (default: 3)")
    add("--quick", action="store_true", help=f"{QUICK_ROWS} rows, one repeat")
    add("--threads", type=int, help="processors that every engine may use (default: all)")
    add("--cache", type=int, metavar="MB", help="cache of every engine (default: the workload's, 4000)")
    add("--timeout", type=float, help="seconds after which a run is given up (default: none; growth: 600)")
    add("--sizes", type=sizes, default=tabular.SIZES, help="training samples of the suite tabular")
    add("--resume", action="store_true", help="continue the file of --json (suite tabular)")
    add("--no-times", action="store_true", help="errors alone in the suite tabular, for a busy machine")
    add("--no-objective", action="store_true", help="skip the check (m^2 kernel values a solution)")
    add("--json", type=Path, metavar="FILE", help="write everything measured")
    add("--plot", type=Path, metavar="FILE.png", help="draw the comparison")
    add("--markdown", action="store_true", help="tables as Markdown")
    options = parser.parse_args(arguments)
    engines = [*ENGINES, *tabular.ENGINES]
    for name in options.engines or []:
        if name not in engines:
            parser.error(f"--engines {name}: it must be among {', '.join(engines)}")
    for name in options.workloads:
        if name not in known:
            parser.error(f"--workloads {name}: it must be among {', '.join(known)}")
    if options.suite is None:
        options.suite = ["first", "compress", "dropin"] if options.quick else ["first"]
        if options.workloads:
            options.suite = []
    for name in options.suite:
        if name not in SUITES:
            parser.error(f"--suite {name}: it must be among {', '.join(SUITES)}")
    if options.resume and (options.suite != ["tabular"] or not options.json or not options.json.is_file()):
        parser.error("--resume needs --suite tabular and the file of an earlier run as --json")
    options.repeat = (1 if options.quick else 3) if options.repeat is None else options.repeat
    for name in ("repeat", "threads", "cache"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} {value}: it must be at least 1")
    if options.plot:
        try:
            import plot  # noqa: F401
        except ModuleNotFoundError as error:
            # Before a run of an hour, not after it.
            parser.error(f"--plot needs {error.name}: pip install '.[bench,plot]'")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; the exit status."""
    return Session(parse(arguments)).run()


if __name__ == "__main__":
    sys.exit(main())
