"""Figures on the pages, made from the committed JSON of `docs/benchmarks`: one function for each marked part.

A page has `<!-- made: NAME -->...<!-- end -->`; what stands between is the text of the function NAME.
`python docs/site/renew.py` writes it there, and a test compares.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import textwrap
from functools import cache
from pathlib import Path
from statistics import geometric_mean, linear_regression, mean, median, stdev
from typing import TYPE_CHECKING, Any

from scipy.stats import rankdata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(r"(<!-- made: ([\w-]+) -->)(.*?)(<!-- end -->)", re.DOTALL)
PARTS: dict[str, Callable[[], str]] = {}


def part(function: Callable[[], str]) -> Callable[[], str]:
    """A function whose name with dashes can be asked for on a page."""
    PARTS[function.__name__.replace("_", "-")] = function
    return function


@cache
def load(name: str) -> Any:
    """A file of `docs/benchmarks`, read once."""
    return json.loads((ROOT / "docs" / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, with the lines around it that a block needs."""
    lines = ["| " + " | ".join(line) + " |" for line in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n" + re.sub(r"\|(?:  \|)+", lambda empty: empty[0].replace("  ", " "), "\n".join(lines)) + "\n"


def seconds(value: float | None) -> str:
    """Two digits or so, as the tables have them."""
    if value is None:
        return ""
    if value >= 9.95:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.0995 else f"{value:.3f}"


def percent(share: float) -> str:
    """A share as percent, two digits after the point."""
    return f"{100 * share:.2f} %"


#: Number of commands of a file that its source names; the file has all of them.
MOST_COMMANDS = 2


def provenance(name: str) -> str:
    """Returns command, commit, machine and date of a file, if it has them."""
    found = load(name)
    about = found.get("about", found)
    machine = about.get("machine", "")
    if isinstance(machine, dict):
        processor = f"{machine['processors']} cores of {machine['processor']}"
    else:
        cores = f"{about['cores']} cores, {machine}" if "cores" in about else machine
        processor = about.get("processor") or cores
    runs = [run for run in about.get("runs", ()) if "commit" in run] or [about]
    commits = list(dict.fromkeys(run["commit"][:7] for run in runs if "commit" in run))
    dates = sorted({str(run.get("date", ""))[:10] for run in runs})
    commands = [f"`{run['command']}`" for run in runs if "command" in run]
    more = len(commands) - MOST_COMMANDS
    parts = [
        ", ".join(commands[:MOST_COMMANDS]) + (f" and {more} more runs" if more > 0 else ""),
        f"commit{'s' * (len(commits) > 1)} {', '.join(commits)}" if commits else "",
        processor,
        " to ".join(dict.fromkeys((dates[0], dates[-1]))),
    ]
    return f"{'; '.join(filter(None, parts))}. All runs: [{name}.json](benchmarks/{name}.json)."


# Support vector machines beside their peers --------------------------------------------------------------

LIBSVM, INTEL, OURS = "sklearn", "intelex-f32", "svmarrow-f32"


def _times(what: str) -> dict[str, dict[str, float]]:
    """Workload and engine to the median of its seconds, where the solution is right."""
    found: dict[str, dict[str, float]] = {}
    for cell in load("svm")["comparison"]:
        own = found.setdefault(cell["workload"], {})
        if cell[what] and cell["trusted"]:
            own[cell["engine"]] = median(cell[what])
    return found


def _mean(what: str) -> str:
    """Geometric mean of the best peer's time over ours, where every peer that ran was right."""
    wrong = {cell["workload"] for cell in load("svm")["comparison"] if not cell["trusted"]}
    ratios = [
        min(times[engine] for engine in (LIBSVM, INTEL) if engine in times) / times[OURS]
        for workload, times in _times(what).items()
        if workload not in wrong
    ]
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.1f}"


@part
def svm_fit() -> str:
    return _mean("fit_seconds")


@part
def svm_predict() -> str:
    return _mean("predict_seconds")


@part
def svm_table() -> str:
    fit, predict, bound = _times("fit_seconds"), _times("predict_seconds"), _times("bound_seconds")
    wrong = {(c["workload"], c["engine"]) for c in load("svm")["comparison"] if not c["trusted"]}

    def cells(times: dict[str, dict[str, float]], workload: str) -> list[str]:
        shown = [
            "wrong" if (workload, engine) in wrong else seconds(times[workload].get(engine))
            for engine in (LIBSVM, INTEL)
        ]
        return [*shown, f"**{seconds(times[workload][OURS])}**"]

    rows = [
        [name, *cells(fit, name), f"{fit[name][OURS] / bound[name][OURS]:.1f}", *cells(predict, name)]
        for name in fit
    ]
    head = ["workload", "fit LIBSVM", "intelex", "svmarrow", "over bound"]
    return table([*head, "predict LIBSVM", "intelex", "svmarrow"], rows)


# One program, unmodified ---------------------------------------------------------------------------------


def _program(library: str) -> str:
    ratios = [
        found["libraries"][library]["seconds"]["all"] / found["libraries"]["svmarrow"]["seconds"]["all"]
        for found in load("dropin")["dropin"]
    ]
    return f"{min(ratios):.1f} to {max(ratios):.1f}"


@part
def dropin_sklearn() -> str:
    return _program("scikit-learn")


@part
def dropin_intelex() -> str:
    return _program("scikit-learn-intelex")


@part
def dropin_table() -> str:
    rows = []
    for found in load("dropin")["dropin"]:
        for library, run in found["libraries"].items():
            steps = [seconds(time) for time in run["seconds"].values()]
            rows.append([found["workload"], library, *steps, percent(run["error"]), f"{run['log_loss']:.3f}"])
    steps = list(load("dropin")["dropin"][0]["libraries"]["svmarrow"]["seconds"])
    return table(["data set", "library", *steps, "error", "log loss"], rows)


# Probabilities, searches ---------------------------------------------------------------------------------


@part
def probability_table() -> str:
    groups: dict[tuple[str, str], list[Any]] = {}
    for run in load("probability")["runs"]:
        groups.setdefault((run["set"], run["who"]), []).append(run)

    def mean(runs: list[Any], what: str) -> float:
        return sum(run[what] for run in runs) / len(runs)

    return table(
        [
            "data set",
            "classifier",
            "log loss",
            "`predict` differs from the most probable class",
            "fit, s",
            "predict, s",
        ],
        (
            [
                name,
                who,
                f"{mean(runs, 'log_loss'):.3f}",
                percent(mean(runs, "disagree")),
                seconds(mean(runs, "fit_seconds")),
                seconds(mean(runs, "predict_proba_seconds")),
            ]
            for (name, who), runs in groups.items()
        ),
    )


@part
def tuning_table() -> str:
    return _searches(load("tuning")["tuning"])


def _ratio_of_searches(engine: str) -> str:
    """Returns the ratio of liquidSVM's time to that of a search; a run that was ended counts as the limit."""
    ratios = []
    for found in load("tuning")["tuning"]:
        ours, theirs = (
            [run.get("seconds", run.get("limit")) for run in found["engines"][name]]
            for name in (engine, "liquidSVM")
        )
        ratios.append(median(theirs) / median(ours))
    return f"{geometric_mean(ratios):.1f} (at least {min(ratios):.1f})"


@part
def tuning_full() -> str:
    return _ratio_of_searches("SVCCV full")


@part
def tuning_racing() -> str:
    return _ratio_of_searches("SVCCV racing")


@part
def path_table() -> str:
    """Searches along C alone."""
    return _searches(load("path")["path"])


def _searches(results: Iterable[dict[str, Any]]) -> str:
    rows = []
    for found in results:
        for engine, runs in found["engines"].items():
            row = [f"{found['set']} ({found['rows']:,})", engine.removesuffix(" path")]
            done = [run for run in runs if "failed" not in run]
            if done:
                busy, wall = (
                    seconds(median(run[key] for run in done)) for key in ("processor_seconds", "seconds")
                )
                rows.append([*row, wall, busy, f"{done[0]['error']:.2f} %"])
            else:
                rows.append([*row, runs[-1]["failed"], "", ""])
    return table(["data set (samples)", "search", "seconds", "processor seconds", "test error"], rows)


@part
def tuning_growth() -> str:
    rows = [
        [
            f"{found['rows']:,}",
            f"{found['points']} x {found['points']}",
            "" if found["budget"] is None else f"{found['budget']} MB",
            found["engine"],
            seconds(found["processor_seconds"]),
            f"{found['megabytes']:.0f} MB",
        ]
        for found in load("tuning").get("tuning_growth", [])
    ]
    return table(["samples", "grid", "budget", "search", "processor seconds", "memory"], rows)


# What ships ----------------------------------------------------------------------------------------------

#: Row of the file, words, and which of its times is meant.
SHIPPED = (
    ("scikit-learn SVC", "scikit-learn's SVC, `predict` for each sample", "single"),
    ("svmarrow, full", "svmarrow, {full:,} vectors, `compiled()`", "single"),
    ("svmarrow, compressed", "{small:,} constructed vectors, `compiled()`", "single"),
    ("onnxruntime, compressed", "the same model in onnxruntime", "single"),
    ("svmarrow, int8", "quantized to int8, `compiled()`", "single"),
    ("C, int8", "quantized to int8, in C", "single"),
)


def _kilobytes(count: int) -> str:
    return f"{count / 1000:.0f}" if count >= 100_000 else f"{count / 1000:.1f}".removesuffix(".0")


def _microseconds(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


@part
def ship_table() -> str:
    found = load("ship")["sets"]["satimage"]
    full, small = found["vectors"]
    rows = []
    for name, words, which in SHIPPED:
        row = found["rows"][name]
        words = words.format(full=full, small=small)
        rows.append([words, _kilobytes(row["bytes"]), _microseconds(row[which]), percent(row["error"])])
    return table(["", "kB", "µs per sample", "error"], rows)


@part
def ship_all_table() -> str:
    rows = []
    for name, found in load("ship")["sets"].items():
        for form, row in found["rows"].items():
            if "error" in row:
                flash = row.get("cortex", {}).get("flash")
                single = _microseconds(row["single"])
                kilobytes = _kilobytes(row["bytes"])
                rows.append(
                    [name, form, kilobytes, single, percent(row["error"]), _kilobytes(flash) if flash else ""]
                )
    return table(["data set", "model", "kB", "µs per sample", "error", "flash on a Cortex-M4, kB"], rows)


@part
def growth_table() -> str:
    """Seconds by training rows, and the exponent of each engine over its own sizes."""
    words = {LIBSVM: "LIBSVM", INTEL: "intelex", OURS: "svmarrow"}
    sizes = sorted({int(size) for series in load("growth")["growth"] for size in series["seconds"]})
    rows = []
    for series in load("growth")["growth"]:
        found = {int(size): time for size, time in series["seconds"].items()}
        times = [seconds(found.get(size)) for size in sizes]
        rows.append([series["workload"], words[series["engine"]], *times, f"{_exponent(found):.2f}"])
    return table(["workload", "engine", *(f"{size:,}" for size in sizes), "exponent"], rows)


def _exponent(found: dict[int, float]) -> float:
    """The p of seconds = a n^p by least squares of logarithms."""
    return linear_regression([math.log(n) for n in found], [math.log(time) for time in found.values()]).slope


@part
def threads_table() -> str:
    """Seconds by number of threads, the gain of most threads, and what Amdahl's law gives for 16."""
    rows, counts = [], sorted(map(int, load("threads")["threads"][0]["seconds"]))
    words = {INTEL: "intelex", OURS: "svmarrow"}
    for record in load("threads")["threads"]:
        if record["note"]:
            rows.append([record["workload"], words[record["engine"]], "wrong"])
            continue
        times = [median(record["seconds"][str(count)]) for count in counts]
        numbers = [f"{record[what]:.2f}" for what in ("speed_up", "serial_share", "model")]
        rows.append([record["workload"], words[record["engine"]], *map(seconds, times), *numbers])
    head = [*(f"threads: {count}" for count in counts), "times as fast", "serial share", "16 threads, model"]
    return table(["workload", "engine", *head], [[*row, *[""] * (len(head) + 2 - len(row))] for row in rows])


@part
def threads_model() -> str:
    """Returns the speedup over the peer with 16 threads, by the model."""
    times: dict[str, dict[str, float]] = {}
    for record in load("threads")["threads"]:
        if not record["note"]:
            own = times.setdefault(record["workload"], {})
            own[record["engine"]] = median(record["seconds"]["1"]) / record["model"]
    ratios = [own[INTEL] / own[OURS] for own in times.values() if INTEL in own]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{min(ratios):.1f} to {max(ratios):.1f} times as fast, {mean:.1f} in the geometric mean"


@part
def small_table() -> str:
    """Returns milliseconds of fits of few samples, and the ratio to scikit-learn's."""
    rows = []
    for record in load("small")["small"]:
        peer, ours, patch = (record["seconds"][name] for name in ("sklearn", "svmarrow", "patch"))
        times = [f"{1e3 * time:.2f}" for time in (peer, ours, patch)]
        rows.append([record["set"], f"{record['samples']:,}", *times, f"{peer / ours:.2f}"])
    head = ["scikit-learn, ms", "`svmarrow.SVC`, ms", "drop-in `SVC`, ms", "times as fast"]
    return table(["data set", "samples", *head], rows)


@part
def cores_table() -> str:
    """Seconds of every family by number of processors, and the gain of all of them."""
    found = load("cores")["cores"]
    counts = sorted(map(int, next(iter(found.values()))["seconds"]))
    rows = []
    for name, one in found.items():
        times = [one["seconds"][str(count)] for count in counts]
        rows.append([name, *map(seconds, times), f"{times[0] / times[-1]:.1f}"])
    head = [f"{count} cores" if count > 1 else "1 core" for count in counts]
    return table(["workload", *head, "times as fast"], rows)


@part
def cores_bits() -> str:
    """Returns how many workloads have the same bits with every number of processors."""
    found = load("cores")["cores"].values()
    same = sum(len(set(one["digests"])) == 1 for one in found)
    return f"{same} of {len(found)}"


# Beyond one machine --------------------------------------------------------------------------------------


@part
def text_table() -> str:
    """Seconds of text models beside LIBSVM and LIBLINEAR."""
    head = ["model", "fit", "first prediction", "prediction", "test error"]
    rows = [
        [
            name,
            *(seconds(row[what]) for what in ("fit", "first prediction", "prediction")),
            percent(row["error"]),
        ]
        for name, row in load("text")["medians"].items()
    ]
    return table(head, rows)


@part
def stream_table() -> str:
    words = {
        "low rank": "`LowRankRLSClassifier.partial_fit`",
        "low rank, logistic": "`LowRankRLSRegressor.partial_fit`, logistic loss",
        "nystroem + sgd": "`Nystroem` + `SGDClassifier` of scikit-learn",
        "exact on 20,000 rows": "`SVC` on the first 20,000 samples, exact",
    }
    return table(
        ["learner", "processor seconds", "peak memory, MB", "error on 100,000 other samples"],
        (
            [
                words[name],
                f"{row['processor']:.0f}",
                f"{row['peak_megabytes']:.0f}",
                percent(row["error"]),
            ]
            for name, row in load("stream")["found"].items()
        ),
    )


@part
def dask_table() -> str:
    rows = []
    for run in load("dask")["runs"]:
        local = run["local"]
        for fit in run["partitions"]:
            moved = (
                sum(r["sent"] + r["received"] for r in fit["rounds"]) if "bytes" not in fit else fit["bytes"]
            )
            rows.append(
                [
                    re.sub(r"\d+", lambda number: f"{int(number[0]):,}", run["name"]),
                    str(fit["workers"]),
                    f"{local['processor']:.2f}",
                    f"{fit['processor_workers']:.2f}",
                    f"{fit['processor_driver']:.2f}",
                    f"{100 * fit['share_of_driver']:.0f} %",
                    str(len(fit["rounds"])),
                    f"{fit['support']:,}",
                    f"{moved / 1e6:.1f}",
                    f"{abs(fit['dual'] - local['dual']) / local['dual']:.0e}",
                ]
            )
    head = [
        "samples",
        "workers",
        "one machine",
        "all workers",
        "driver",
        "driver's share",
        "rounds",
        "vectors",
    ]
    return table([*head, "MB sent", "difference"], rows)


@part
def stream_rows() -> str:
    about = load("stream")["about"]
    return f"{about['rows'] / 1e6:.0f} million samples, {about['points']} vectors"


@part
def dask_fits() -> str:
    """Returns the fitted data sets and parameters."""
    found = load("dask")
    kinds: dict[str, Any] = {}
    for run in found["runs"]:
        name = run["name"].split()[0] + (" with noise .2" if run["name"].startswith("moons") else "")
        kinds.setdefault(name, run["options"])
    sets = (f"{name} (C {each['C']:g}, gamma {each['gamma']:g})" for name, each in kinds.items())
    return f"{' and '.join(sets)}, {found['about']['partitions']} partitions"


@part
def dask_model() -> str:
    """The constants of the cost model."""
    model = load("dask")["model"]
    words = {"worker": "a worker", "driver": "the driver", "begin": "the machine of a partition"}
    rows = [
        [words[name], f"{1e9 * model[name]['pair']:.2f}", f"{1e9 * model[name]['column']:.3f}"]
        for name in words
    ]
    return table(["nanoseconds", "for a pair of samples", "plus for each feature and output"], rows)


@part
def dask_means() -> str:
    """Returns the number of rounds and the fractions that the cost model assumes."""
    model = load("dask")["model"]
    return (
        f"{model['rounds']:.1f} rounds, {100 * model['changed']:.0f} % of the vectors evaluated again after "
        f"the first, at most {model['held']:.1f} times as many samples on the driver as vectors"
    )


def _count(value: float) -> str:
    """One digit and its power, as a number with commas."""
    power = 10 ** math.floor(math.log10(value))
    return f"{round(value / power) * power:,}"


@part
def dask_carried() -> str:
    def hours(value: float) -> str:
        return f"{value:.3f}" if value < 10 else f"{value:.0f}"

    rows = [
        [
            f"{line['support']:,.0f}",
            *(hours(line[f"hours_{part}"]) for part in ("begin", "workers", "driver", "wire")),
            hours(line["hours"]),
            f"{line['gigabytes_of_the_driver']:.2g}",
            hours(line["hours_low_rank"]),
        ]
        for line in load("dask")["carried"]
    ]
    head = ["support vectors", "fits of partitions", "workers", "driver", "network", "total"]
    return table([*head, "driver's GB", "low rank"], rows)


@part
def dask_crossings() -> str:
    """Returns the sizes at which another method is faster."""
    found = load("dask")
    crossings, rows = found["crossings"], found["carried"][0]["rows"]
    low, driver = crossings["low_rank"], crossings["driver"]
    return (
        f"a low-rank model with {crossings['points']:,} vectors is faster from about {_count(low)} "
        f"support vectors, one sample in {_count(rows / low)}; from about {_count(driver)} on, the driver "
        "takes longer than the workers"
    )


# What one call loses ------------------------------------------------------------------------------------


@part
def promises_sentence() -> str:
    runs = load("promises")["runs"]
    sets = len({run["set"] for run in runs})
    kept = sum(run["holds"] for run in runs)
    return f"on {sets} data sets, the bound held on the test samples in {kept} of {len(runs)} runs"


@part
def promises_excess() -> str:
    found = load("promises")
    after, before = (found[name]["default"] for name in ("summary", "summary of the measured loss"))
    mean, worst = f"{100 * after['mean excess']:.3f}", f"{100 * after['worst excess']:.2f}"
    mean_before, worst_before = (f"{100 * before[key]:.2f}" for key in ("mean excess", "worst excess"))
    share, share_before = (f"{one['median share']:.2f}" for one in (after, before))
    return (
        f"On {after['runs']} data sets the loss on unseen samples exceeds 0.3 percentage points by {mean} on "
        f"average and by at most {worst}, with a median of {share} of the vectors. A choice by the measured "
        f"loss alone exceeds them by {mean_before} on average and by at most {worst_before}, with "
        f"{share_before} of the vectors."
    )


# Tables ---------------------------------------------------------------------------------------------------


OUR_TABLES, BOOSTING, XRFM = "svmarrow.Tabular*", "HistGradientBoosting", "xrfm"


CATBOOST, LIGHTGBM, XGBOOST = "CatBoost", "LightGBM", "XGBoost"
BOOSTED_TREES = (BOOSTING, CATBOOST, LIGHTGBM, XGBOOST)
NEO, REALMLP = "Neo LS-SVM", "RealMLP"
TREES = (*BOOSTED_TREES, "random forest", "extra trees")
PLAIN, PROCESS = "least squares", "Gaussian process"
#: Columns of the tables; a narrow page shows the first ones.
TABLE_ENGINES = (
    OUR_TABLES,
    CATBOOST,
    BOOSTING,
    LIGHTGBM,
    XGBOOST,
    REALMLP,
    XRFM,
    NEO,
    "random forest",
    "extra trees",
    PLAIN,
    "SVM",
)
#: Heads of the columns; spaces, so that those of eight fit the width of a page.
TABLE_HEADS = {OUR_TABLES: "`Tabular*`", BOOSTING: "Hist Gradient Boosting"}


def _tables(n: int) -> list[dict[str, Any]]:
    return [found for found in load("tabular")["tabular"] if found["samples"] == n]


def _sizes() -> list[int]:
    """Returns the numbers of training samples, ascending."""
    return sorted({found["samples"] for found in load("tabular")["tabular"]})


def _errors(n: int) -> dict[str, dict[str, list[float]]]:
    """Returns the errors on the splits of each set by engine; xrfm is in a file of its own."""
    found = {
        one["set"]: {engine: cell["error"] for engine, cell in one["engines"].items()} for one in _tables(n)
    }
    for one in load("tabular_xrfm")["tabular"]:
        if one["samples"] == n:
            found[one["set"]][XRFM] = one["engines"][XRFM]["error"]
    return found


def _ratio(cell: dict[str, list[float]], peer: str) -> float:
    """Returns the mean error of ours over that of a peer, on the splits that both have."""
    pairs = list(zip(cell[OUR_TABLES], cell[peer], strict=False))
    ours, other = (mean(values) for values in zip(*pairs, strict=True))
    return ours / other if other else math.inf if ours else 1.0


def _is_clear(cell: dict[str, list[float]], peer: str) -> bool:
    """Returns whether ours is behind by more than a standard error of the paired differences.

    A single split has no standard error: any difference counts.
    """
    apart = [a - b for a, b in zip(cell[OUR_TABLES], cell[peer], strict=False)]
    return mean(apart) > (stdev(apart) / math.sqrt(len(apart)) if len(apart) > 1 else 0.0)


def _splits(n: int) -> str:
    counts = [len(cell[OUR_TABLES]) for cell in _errors(n).values()]
    return " to ".join(dict.fromkeys(str(count) for count in (min(counts), max(counts))))


def _time(cell: dict[str, Any]) -> list[float]:
    return [value for value in cell["seconds"] if value is not None]


def _median_time(n: int, engine: str) -> float | None:
    """Returns the median over sets of an engine's seconds; None if it has no times."""
    times = [_time(found["engines"][engine]) for found in _tables(n) if engine in found["engines"]]
    timed = [median(values) for values in times if values]
    return median(timed) if timed else None


def _tabular_table(n: int) -> str:
    errors = _errors(n)
    engines = [engine for engine in TABLE_ENGINES if any(engine in cell for cell in errors.values())]
    rows = []
    for found in _tables(n):
        means = {engine: mean(values) for engine, values in errors[found["set"]].items()}
        digits = 1 if found["classify"] else 3
        texts = {engine: f"{value:.{digits}f}" for engine, value in means.items()}
        least = texts[min(means, key=means.__getitem__)]
        marked = [f"**{text}**" if text == least else text for text in map(texts.get, engines)]
        splits = str(len(errors[found["set"]][OUR_TABLES]))
        rows.append(
            [found["set"], f"{found['training samples']:,}", splits, *(text or "" for text in marked)]
        )
    times = [None if engine == XRFM else _median_time(n, engine) for engine in engines]
    if any(times):
        rows.append(["median training time, s", "", "", *map(seconds, times)])
    return table(["data set", "samples", "splits", *(TABLE_HEADS.get(name, name) for name in engines)], rows)


@part
def tabular_table() -> str:
    return _tabular_table(1000)


@part
def tabular_large_table() -> str:
    return _tabular_table(5000)


@part
def tabular_largest_table() -> str:
    return _tabular_table(20_000)


@part
def tabular_sizes() -> str:
    """Returns the comparison at each number of training samples."""
    rows = []
    for n in _sizes():
        errors = _errors(n)
        ratios = {name: _ratio(cell, PLAIN) for name, cell in errors.items() if PLAIN in cell}
        worst = max(ratios, key=ratios.__getitem__, default="")
        peers = []
        for peer in BOOSTED_TREES:
            ratios_to_peer = [_ratio(cell, peer) for cell in errors.values() if peer in cell]
            ahead = sum(ratio < 1.0 for ratio in ratios_to_peer)
            peers.append(
                f"{ahead} of {len(ratios_to_peer)}, {median(ratios_to_peer):.3f}" if ratios_to_peer else ""
            )
        rows.append(
            [
                f"{n:,}",
                str(len(errors)),
                _splits(n),
                *peers,
                *(
                    [f"{median(ratios.values()):.3f}", f"{ratios[worst]:.3f} ({worst})"]
                    if ratios
                    else ["", ""]
                ),
            ]
        )
    head = ["training samples, up to", "data sets", "splits"]
    head += [f"ahead of {peer}, median ratio to it" for peer in BOOSTED_TREES]
    head += ["median ratio to least squares", "largest"]
    return table(head, rows)


@part
def tabular_ranks() -> str:
    """Returns mean ranks, wins and normalized errors of the models that were measured on every set."""
    rows = []
    for n in _sizes():
        errors = _errors(n)
        engines = [engine for engine in TABLE_ENGINES if all(engine in cell for cell in errors.values())]
        means = [[mean(cell[engine]) for engine in engines] for cell in errors.values()]
        ranks = [rankdata(values) for values in means]
        normalized = []
        for values in means:
            best, middle = min(values), median(values)
            spread = middle - best
            normalized.append([min(1.0, (value - best) / spread) if spread else 0.0 for value in values])
        order = sorted(range(len(engines)), key=lambda number: mean(each[number] for each in ranks))
        for number in order:
            time = None if engines[number] == XRFM else _median_time(n, engines[number])
            rows.append(
                [
                    f"{n:,}" if number == order[0] else "",
                    f"{len(errors)}" if number == order[0] else "",
                    "`Tabular*`" if engines[number] == OUR_TABLES else engines[number],
                    f"{mean(each[number] for each in ranks):.1f}",
                    f"{sum(each[number] == 1.0 for each in ranks)}",
                    f"{mean(each[number] for each in normalized):.2f}",
                    seconds(time),
                ]
            )
    head = ["samples, up to", "sets", "model", "mean rank", "first", "normalized error", "median time, s"]
    return table(head, rows)


@part
def tabular_memory() -> str:
    """Returns the megabytes that a fit and the predictions of each model add."""
    found = load("tabular_memory")["memory"]
    engines = [engine for engine in TABLE_ENGINES if any(engine in one["megabytes"] for one in found)]
    rows = []
    for one in found:
        cells = [one["megabytes"].get(engine) for engine in engines]
        rows.append(
            [one["set"], f"{one['samples']:,}", *("" if cell is None else f"{cell:,.0f}" for cell in cells)]
        )
    return table(["data set", "samples", *(TABLE_HEADS.get(name, name) for name in engines)], rows)


@part
def tabular_targets() -> str:
    errors = _errors(1000)

    def against(peer: str) -> str:
        measured = [name for name, cell in errors.items() if peer in cell]
        lost = [name for name in measured if _ratio(errors[name], peer) > 1.0]
        clearly = [name for name in lost if _is_clear(errors[name], peer)]
        return (
            f"{len(measured) - len(lost)} of {len(measured)} data sets (the exceptions: "
            f"{', '.join(lost) or 'none'}; by more than a standard error of the paired differences: "
            f"{', '.join(clearly) or 'none'})"
        )

    ratios = {name: _ratio(cell, PLAIN) for name, cell in errors.items()}
    worst = max(ratios, key=ratios.__getitem__)
    ours = {found["set"]: _time(found["engines"][OUR_TABLES]) for found in _tables(1000)}
    slower = geometric_mean(
        mean(ours[found["set"]]) / mean(_time(found["engines"][XRFM]))
        for found in load("tabular_xrfm")["tabular"]
    )
    peers = (*BOOSTED_TREES, NEO, REALMLP)
    return (
        f"At up to 1,000 samples `Tabular*` has a smaller mean error than "
        f"{', than '.join(f'{peer} on {against(peer)}' for peer in peers)}, and than xrfm on "
        f"{against(XRFM)}. In a run of its own, a fit of xrfm, which by default chooses neither bandwidth "
        f"nor penalty, took "
        f"1/{slower:.0f} of the time of `Tabular*` in the geometric mean. The median of the ratios of the "
        f"errors of `Tabular*` to those of least squares on standardized features is "
        f"{median(ratios.values()):.3f}, the largest {ratios[worst]:.3f} ({worst})."
    )


@part
def tabular_trees() -> str:
    """Returns where the best measured tree ensemble has a smaller error, at each large size."""
    texts = []
    for n in (size for size in _sizes() if size >= 1000):
        errors, lost = _errors(n), []
        for name, cell in errors.items():
            measured = [tree for tree in TREES if tree in cell]
            best = min(measured, key=lambda tree, cell=cell: mean(cell[tree]))
            if _ratio(cell, best) > 1.0:
                lost.append(f"{name} ({best})")
        found = {tree for cell in errors.values() for tree in TREES if tree in cell}
        texts.append(
            f"At up to {n:,} training samples (splits: {_splits(n)}) the best of {len(found)} tree ensembles "
            f"has a smaller mean error on {len(lost)} of {len(errors)} data sets: "
            f"{', '.join(lost) or 'none'}."
        )
    ours, *trees = (_median_time(1000, engine) for engine in (OUR_TABLES, *TREES))
    trees = sorted(filter(None, trees))
    return (
        f"{' '.join(texts)} A fit at 1,000 samples takes {ours:.1f} s in the median, "
        f"one of trees {trees[0]:.1f} to {trees[-1]:.1f} s."
    )


@part
def tabular_overtaken() -> str:
    """Returns the data sets on which boosting is behind at a size and ahead at the next."""
    texts, sizes = [], [size for size in _sizes() if size >= 1000]
    for n, larger in itertools.pairwise(sizes):
        before, after = _errors(n), _errors(larger)
        names = [name for name in after if name in before and _ratio(before[name], BOOSTING) <= 1.0]
        lost = [name for name in names if _ratio(after[name], BOOSTING) > 1.0]
        texts.append(
            f"From {n:,} to {larger:,} samples HistGradientBoosting overtakes `Tabular*` on {len(lost)} of "
            f"{len(names)} data sets: {', '.join(lost) or 'none'}."
        )
    return " ".join(texts)


@part
def tabular_process() -> str:
    """Returns the comparison with a Gaussian process."""
    errors = {name: cell for name, cell in _errors(500).items() if PROCESS in cell}
    ratios = {name: _ratio(cell, PROCESS) for name, cell in errors.items()}
    ahead = [name for name, ratio in ratios.items() if ratio < 1.0]
    n = min(len(cell[PROCESS]) for cell in errors.values())
    return (
        f"at up to 500 samples, on {len(errors)} regression data sets (splits: {n}), `Tabular*` has a "
        f"smaller error on {len(ahead)} ({', '.join(ahead) or 'none'}); the ratio of its error to that of "
        f"the process has a median of {median(ratios.values()):.3f}, from {min(ratios.values()):.3f} to "
        f"{max(ratios.values()):.3f}"
    )


# Choosing ------------------------------------------------------------------------------------------------


def _mixed(found: dict[str, Any], measure: str = "error") -> dict[str, float]:
    """Returns the mean of a measure over the splits by engine; engines without it are left out."""
    return {
        engine: mean(run[measure] for run in runs)
        for engine, runs in found["engines"].items()
        if all(measure in run for run in runs)
    }


@part
def mixed_table() -> str:
    """Errors on real tables, the least of each in bold, and log losses of labels in brackets."""
    rows = []
    tables = load("mixed_tables")["tables"]
    for found in tables:
        errors, losses = _mixed(found), _mixed(found, "log loss")
        digits = 1 if found["label"] else 3
        least = f"{min(errors.values()):.{digits}f}"
        cells = []
        for engine, error in errors.items():
            text = f"{error:.{digits}f}"
            text = f"**{text}**" if text == least else text
            cells.append(f"{text} ({losses[engine]:.3f})" if engine in losses else text)
        splits = str(len(next(iter(found["engines"].values()))))
        rows.append([found["table"].replace("_", " "), f"{found['training samples']:,}", splits, *cells])
    engines = list(tables[0]["engines"])
    times = [
        seconds(median(mean(run["seconds"] for run in found["engines"][engine]) for found in tables))
        for engine in engines
    ]
    rows.append(["median training time, s", "", "", *times])
    return table(["table", "samples", "splits", *(f"`{n[9:]}`" if "." in n else n for n in engines)], rows)


@part
def mixed_sentence() -> str:
    """Returns on how many real tables ours has a smaller error than each peer."""
    tables = load("mixed_tables")["tables"]
    ours, *peers = tables[0]["engines"]
    texts = []
    for peer in peers:
        behind = [
            found["table"].replace("_", " ") for found in tables if _mixed(found)[peer] < _mixed(found)[ours]
        ]
        exceptions = f" (the exceptions: {', '.join(behind)})" if behind else ""
        texts.append(f"than {peer} on {len(tables) - len(behind)} of {len(tables)}{exceptions}")
    return f"`Tabular*` has a smaller mean error {' and '.join(texts)}."


@part
def pursuit_sizes() -> str:
    """Returns how rules that choose the size of a matching pursuit compare with the best size."""
    runs = load("pursuit_sizes")["runs"]
    texts = []
    for rule in ("generalized cross-validation", "five folds", "a tenth held out"):
        ratios = [run["rules"][rule]["error"] / run["rules"]["best"]["error"] for run in runs]
        texts.append(f"{100 * (geometric_mean(ratios) - 1):.0f} % with {rule}")
    sets = len({run["set"] for run in runs})
    return f"on {sets} data sets the error is above that of the best size by {', '.join(texts)}"


def _about(kind: dict[str, Any]) -> str:
    of = "regression" if kind["measure"] == "mse" else f"{kind['classes']} classes"
    chosen = f"C = {kind['C']:.3g}" + ("" if kind["gamma"] is None else f", gamma = {kind['gamma']:.2g}")
    shape = f"{kind['rows']:,} samples, {kind['columns']:,} features, {of}"
    return f"{kind['set']}: {shape}; {kind['kernel']} kernel, {chosen}"


#: The kinds of problem in the file, and their titles.
KINDS = {
    "few rows, overlapping": "Small data set, overlapping classes",
    "images, ten classes": "Images, ten classes",
    "many classes": "Many classes",
    "many rows, two classes": "Many samples, two classes",
    "text, sparse": "Sparse text",
    "a number to predict": "Regression",
}


def _constructed(name: str, vectors: int) -> str:
    """Returns the mean test error of constructed models over seeds and precisions."""
    runs = [
        error
        for key, seeds in load("compressed_svm")["targets"].items()
        if key.startswith(f"{name} {vectors}, ")
        for error in seeds.values()
    ]
    return f"{sum(runs) / len(runs):.2f} %"


@part
def constructed_letter() -> str:
    return _constructed("letter", 200)


@part
def constructed_errors() -> str:
    return ", ".join(
        f"{name} {_constructed(name, vectors)} with {vectors}{' vectors' if name == 'letter' else ''}"
        for name, vectors in (("letter", 200), ("a9a", 10), ("mnist", 300))
    )


#: Names in the file that differ from those of the present classes and parameters.
ESTIMATOR_NAMES = {
    "ReducedSet, 100 made": "ReducedSet, 100 constructed",
    "SVC, one against the rest": "SVC, one-vs-rest",
    "Stoptron, 500": "KernelPerceptron, stop, 500",
    "BudgetPerceptron, 500": "KernelPerceptron, oldest, 500",
    "Forgetron, 500": "KernelPerceptron, forgetron, 500",
    "Projectron": "KernelPerceptron, projectron",
    "ProjectronPlusPlus": "KernelPerceptron, projectron++",
    "KernelPerceptron": "KernelPerceptron, averaged",
}


def estimator_name(name: str) -> str:
    """Returns the present name of an estimator of `choosing.json`."""
    return ESTIMATOR_NAMES.get(name, name)


@part
def choosing_tables() -> str:
    parts = []
    for title, kind in load("choosing")["kinds"].items():
        rows, omitted = [], {}
        for name, found in kind["estimators"].items():
            if "left_out" in found:
                omitted.setdefault(found["left_out"], []).append(name)
                continue
            error = f"{found['error']:.4f}" if kind["measure"] == "mse" else percent(found["error"])
            vectors = "" if found["vectors"] is None else f"{found['vectors']:,}"
            fit, predict = seconds(found["fit_seconds"]), _microseconds(found["predict_microseconds"])
            rows.append([estimator_name(name), error, fit, predict, _kilobytes(found["bytes"]), vectors])
        error = "mean squared error" if kind["measure"] == "mse" else "error"
        head = ["estimator", error, "fit, s", "prediction, µs per sample", "kB", "vectors"]
        notes = "".join(f" Omitted ({why}): {', '.join(names)}." for why, names in omitted.items())
        parts.append(f"\n### {KINDS[title]}\n\n{_about(kind)}.{notes}\n{table(head, rows)}")
    return "".join(parts)


# Instructions of the hot loops ----------------------------------------------------------------------------


@part
def instructions_table() -> str:
    def cell(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    rows = [
        [row["loop"], row["precision"], cell(row["before"]), f"**{cell(row['instructions_per_result'])}**"]
        for row in load("instructions")["loops"]
    ]
    return table(["loop", "precision", "portable vectors", "NEON"], rows)


# Lines that tests reach ------------------------------------------------------------------------------------


@part
def coverage_of_lines() -> str:
    found = load("coverage")

    def share(name: str) -> str:
        lines, reached = (found[name][key] for key in ("lines", "reached"))
        return f"{100 * reached / lines:.1f} % of {lines:,} lines"

    return (
        f"The tests reach {share('core')} of the core, {share('binding')} of its Python binding, and "
        f"{share('package')} with statements of the package."
    )


def _provenance(name: str) -> None:
    PARTS[f"from-{name}"] = lambda: provenance(name)


for _name in (
    "svm",
    "growth",
    "small",
    "threads",
    "cores",
    "text",
    "dropin",
    "probability",
    "trees",
    "tuning",
    "path",
    "ship",
    "dask",
    "stream",
    "promises",
    "choosing",
    "tabular",
    "tabular_xrfm",
    "tabular_memory",
    "mixed_tables",
    "instructions",
    "coverage",
):
    _provenance(_name)


def renewed(text: str) -> str:
    """Returns a page with its marked parts generated again."""
    return MARK.sub(lambda found: found[1] + PARTS[found[2]]() + found[4], text)


# The browser ---------------------------------------------------------------------------------------------


@part
def browser_size() -> str:
    sizes = [load("browser")[name]["compressed"] for name in ("module", "script")]
    return f"{sum(sizes) / 1000:.0f} kB compressed"


@part
def browser_sample() -> str:
    times = [found["runs"]["node"]["predict_us"] for found in load("browser")["workloads"]]
    return f"{min(times):.2g} to {max(times):.2g} µs"


@part
def browser_table() -> str:
    rows = []
    for found in load("browser")["workloads"]:
        runs = found["runs"]
        row = [found["name"], "{:,} x {}".format(*found["shape"]), f"{found['n_vectors']:,}"]
        for what in ("fit_ms", "predict_us"):
            times = [runs[who][what] for who in ("node", "scalar", "avx2")]
            row += [f"{time:.0f}" if time >= 10 else f"{time:.2g}" for time in times]
        rows.append(row)
    whose = ["Node.js", "Python, scalar", "Python, AVX2"]
    fit = [f"fit, ms: {whose[0]}", *whose[1:]]
    predict = [f"predict, µs a sample: {whose[0]}", *whose[1:]]
    return table(["model", "samples", "vectors", *fit, *predict], rows)


@part
def from_browser() -> str:
    return provenance("browser").replace("](benchmarks/", "](../benchmarks/")


# Machines on objects --------------------------------------------------------------------------------------


@part
def objects_table() -> str:
    found, words = load("objects")["series"], load("objects")["strings"]
    peer = found["tslearn"]
    seconds = found["kernel values of the fit"] / 1e3 / 60.0
    rows = [
        [
            f"`SVC`, {found['series']:,} series",
            f"{found['kernel values of the fit'] / 1e6:.1f} of {found['series'] ** 2 / 1e6:.1f} million",
            f"{found['seconds']:.1f} s; {seconds:.0f} min at 1 ms a kernel value",
            f"{found['error %']:.1f} % with {found['vectors']:,} vectors",
        ],
        [
            "compressed to 5 %",
            f"{found['kernel values of the compression'] / 1e6:.1f} million",
            f"{found['seconds of the compression']:.1f} s",
            f"{found['error of the compressed %']:.1f} % with {found['compressed to']} vectors",
        ],
        [
            f"`SVC`, {peer['series']} series; tslearn's `TimeSeriesSVC`",
            "",
            f"{peer['seconds of svmarrow']:.2f} s; {peer['seconds']:.0f} s",
            f"{100 * peer['equal predictions']:.0f} % of the predictions are equal",
        ],
        [
            f"`LowRankRLSRegressor`, {words['strings']:,} strings",
            f"{words['kernel values'] / 1e6:.1f} million",
            f"{words['seconds']:.1f} s, {words['MB']:.0f} MB",
            f"R^2 {words['leave-one-out R^2']:.2f} with {words['vectors']} vectors",
        ],
    ]
    return table(["machine", "kernel values", "time", "result"], rows)


@part
def from_objects() -> str:
    return provenance("objects").replace("](benchmarks/", "](../benchmarks/")


def pages() -> list[Path]:
    """All pages with marked parts."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        path for path in found if "made" not in path.parts and MARK.search(path.read_text(encoding="utf-8"))
    ]


@part
def diagnosis() -> str:
    """How often the findings of one fit are right."""
    found = load("diagnosis")
    rules = found["rules"].values()
    fits, right = (sum(rule[name] for rule in rules) for name in ("fits", "right"))
    followed, better = (sum(rule[name] for rule in rules) for name in ("followed", "better"))
    silent, near = found["silent"], found["silent within a point"]
    text = (
        f"On {len(found['sets'])} data sets with {fits + silent:,} pairs of gamma and C, `diagnose` found "
        f"something on {fits:,} fits. The test error of {right:,} of them was more than one point above the "
        f"lowest, and its advice lowered the error by more than one point on {better:,} of {followed:,}. "
        f"Where it finds nothing, the parameters need not be good: the error of {near:,} of {silent:,} such "
        "fits was within one point of the lowest."
    )
    return "\n" + "\n".join(textwrap.wrap(text, 140)) + "\n"


#: Ways to answer with few kernel values and what the table calls them.
FEW = {
    "tree": "tree",
    "compress": "`compress`",
    "max_evaluations": "`max_evaluations`",
    "retrained": "`LowRankSVC`",
    "pursuit": "pursuit",
    "five widths": "pursuit, five widths",
}


@part
def few_kernel_values() -> str:
    """Errors of all ways at 50 and 200 kernel values, the least of each size in bold."""
    rows = []
    for name, runs in load("trees")["sets"].items():
        for size in (50, 200):
            errors = [mean(run["error"] for run in runs["reduced"][f"{way}, {size}"]) for way in FEW]
            least = min(errors)
            cells = [f"**{error:.2f}**" if error == least else f"{error:.2f}" for error in errors]
            full = f"{mean(run['error'] for run in runs['full']):.2f}"
            rows.append([f"{name} ({mean(runs['vectors']):,.0f})", str(size), full, *cells])
    return table(["set (vectors)", "values", "machine", *FEW.values()], rows)


@part
def few_costs() -> str:
    """Microseconds and kilobytes of trees and of single expansions."""
    rows = []
    for name, runs in load("trees")["sets"].items():
        for size in (50, 200):
            cells = []
            for way in ("tree", "compress"):
                found = runs["reduced"][f"{way}, {size}"]
                cells += [f"{mean(run['microseconds'] for run in found):.2f}"]
                cells += [f"{mean(run['kilobytes'] for run in found):,.0f}"]
            full = runs["full"]
            whole = [
                f"{mean(run['microseconds'] for run in full):.2f}",
                f"{mean(run['kilobytes'] for run in full):,.0f}",
            ]
            rows.append([name, str(size), *whole, *cells])
    head = ["set", "values", "machine, µs", "kB", "tree, µs", "kB", "`compress`, µs", "kB"]
    return table(head, rows)


@part
def few_widths() -> str:
    """On how many sets a pursuit of five widths is close to the compressed machine."""
    sets = load("trees")["sets"]
    texts = []
    for size in (50, 200):
        near = [
            name
            for name, runs in sets.items()
            if mean(run["error"] for run in runs["reduced"][f"five widths, {size}"])
            <= mean(run["error"] for run in runs["reduced"][f"compress, {size}"]) + 0.5
        ]
        texts.append(f"on {len(near)} with {size} vectors")
    where = f"{texts[0]} and {texts[1]}, of {len(sets)} sets."
    return f"the error is at most half a point above that of `compress` {where}"
