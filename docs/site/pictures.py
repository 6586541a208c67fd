"""Pictures of guide pages from committed JSON: ``python docs/site/pictures.py NAME FILE.json FILE.png``.

NAME is "dropin" (one program under three libraries), "text" (fits and predictions of documents), "libsvm"
(differences of decision values from those of LIBSVM), "distillation" (losses and sizes of students) or
"trees" (errors of few kernel values for an answer).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

#: Colours of the peers and of svmarrow.
PEERS, OURS = ("#12355b", "#9ecfc6"), "#c1272d"
#: Columns of the pictures, in inches.
WIDTH = 8.0


def bars(ax: Axes, groups: Sequence[str], series: dict[str, Sequence[float]], colours: Sequence[str]) -> None:
    """Horizontal bars on a logarithmic axis of seconds, each with its value."""
    height = 0.8 / len(series)
    for k, ((name, values), colour) in enumerate(zip(series.items(), colours, strict=True)):
        at = np.arange(len(groups)) + k * height
        drawn = ax.barh(at, values, height, color=colour, label=name)
        ax.bar_label(drawn, [f"{value:.2g} s" for value in values], padding=3, fontsize=7.5)
    ax.set_yticks(np.arange(len(groups)) + 0.4 - height / 2, groups)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.margins(x=0.15)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} s"))


def dropin(found: dict[str, Any], figure: Figure) -> None:
    """Seconds of the whole program by data set and library."""
    results = found["dropin"]
    libraries = ("scikit-learn", "scikit-learn-intelex", "svmarrow")
    series = {name: [result["libraries"][name]["seconds"]["all"] for result in results] for name in libraries}
    ax = figure.subplots()
    bars(ax, [result["workload"] for result in results], series, (*PEERS, OURS))
    ax.set_xlabel("search for C and gamma, fit with probabilities, prediction")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)


def text(found: dict[str, Any], figure: Figure) -> None:
    """Seconds of a fit and of the first prediction by model."""
    medians = found["medians"]
    for ax, what in zip(figure.subplots(1, 2, sharey=True), ("fit", "first prediction"), strict=True):
        values = [row[what] for row in medians.values()]
        bars(ax, list(medians), {what: values}, (PEERS[0],))
        for bar, name in zip(ax.patches, medians, strict=True):
            bar.set_facecolor(OURS if name.startswith("svmarrow") else PEERS[0])
        ax.set_title(what, loc="left", fontsize=9)


def libsvm(found: dict[str, Any], figure: Figure) -> None:
    """Share of the models whose decision values differ by at most so much."""
    differences = np.sort([max(run["decision"], 1e-17) for run in found["runs"]])
    ax = figure.subplots()
    ax.step(differences, np.arange(1, len(differences) + 1) / len(differences), where="post", color=OURS)
    ax.axvline(1e-10, color=PEERS[0], linewidth=1.0, linestyle="--")
    ax.set(xscale="log", ylim=(0, 1.02), ylabel="share of the models")
    ax.set_xlabel("largest difference of decision values from LIBSVM's (dashed: 1e-10)")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))


def distillation(found: dict[str, Any], figure: Figure) -> None:
    """Loss of the student against the size of its file relative to the teacher's, for every run."""
    ax = figure.subplots()
    ax.axhline(0.0, color="#777777", linewidth=1.0)
    teachers = dict.fromkeys(run["teacher"] for run in found["runs"])
    for teacher, colour, mark in zip(teachers, (*PEERS, OURS), ("^", "s", "o"), strict=True):
        runs = [run for run in found["runs"] if run["teacher"] == teacher]
        sizes = [run["teacher_kB"] / run["kB"] for run in runs]
        losses = [100.0 * run["loss"] for run in runs]
        style = {"color": colour, "marker": mark, "edgecolor": "#333333", "linewidth": 0.4}
        ax.scatter(sizes, losses, 22, label=teacher, **style)
    ax.set(xscale="log", xlabel="bytes of the teacher for a byte of the student")
    ax.set_ylabel("loss of score on new samples, points")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    figure.legend(loc="outside upper center", ncols=3, frameon=False)


#: Colors and marks of the ways to answer with few kernel values.
WAYS = {
    "tree": ("tree of local expansions", "#2a7f62", "^"),
    "compress": ("compress", OURS, "o"),
    "pursuit": ("matching pursuit", PEERS[0], "s"),
    "five widths": ("matching pursuit, five widths", "#7f8fa6", "D"),
}


def trees(found: dict[str, Any], figure: Figure) -> None:
    """Error over the kernel values of an answer, one panel for each set."""
    sets = found["sets"]
    for ax, (name, runs) in zip(figure.subplots(2, 5).ravel(), sets.items(), strict=False):
        full = np.mean([run["error"] for run in runs["full"]])
        ax.axhline(full, color="#777777", linewidth=1.0, linestyle="--")
        for way, (label, color, mark) in WAYS.items():
            sizes = [
                int(key.rpartition(", ")[2]) for key in runs["reduced"] if key.rpartition(", ")[0] == way
            ]
            means = [np.mean([run["error"] for run in runs["reduced"][f"{way}, {size}"]]) for size in sizes]
            ax.plot(sizes, means, color=color, marker=mark, markersize=4, linewidth=1.2, label=label)
        ax.set_title(f"{name} ({np.mean(runs['vectors']):,.0f})", loc="left", fontsize=8)
        ax.set_xscale("log")
        ax.margins(x=0.12, y=0.12)
        ax.set_xticks([50, 200], ["50", "200"])
        ax.minorticks_off()
    figure.supxlabel(
        "kernel values for an answer (dashed: the whole machine, in brackets: its vectors)", fontsize=8.5
    )
    figure.supylabel("test error, %", fontsize=8.5)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)


#: The function and the height of each picture.
PICTURES: dict[str, tuple[Callable[[dict[str, Any], Figure], None], float]] = {
    "dropin": (dropin, 3.4),
    "text": (text, 2.6),
    "libsvm": (libsvm, 2.8),
    "distillation": (distillation, 3.4),
    "trees": (trees, 4.6),
}


def main() -> None:
    """Draws one picture."""
    name, source, target = sys.argv[1:]
    draw, height = PICTURES[name]
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 8.5}):
        figure = Figure(figsize=(WIDTH, height), dpi=110, facecolor="white", layout="constrained")
        draw(json.loads(Path(source).read_text(encoding="utf-8")), figure)
        for ax in figure.axes:
            ax.grid(axis="x", color="#e5e5e5", linewidth=0.6)
            ax.set_axisbelow(True)
            ax.spines[["top", "right"]].set_visible(False)
        figure.savefig(target, metadata={"Software": None})


if __name__ == "__main__":
    main()
