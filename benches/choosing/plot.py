"""Error against prediction time of all estimators, one panel for each kind of problem.

python benches/choosing/plot.py docs/benchmarks/choosing.json docs/benchmarks/choosing.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

#: Families by the beginning of a name, with colour and mark.
FAMILIES = (
    (("SVC", "NuSVC", "SVR", "NuSVR"), "support vector machines", "#12355b", "o"),
    (("LowRank", "Linear", "Bagging"), "low rank, linear, bagged", "#3f8f9b", "s"),
    (("RLS",), "least squares, exact", "#8a4f7d", "D"),
    (("KMP", "ReducedSet"), "compressed and sparse models", "#c1272d", "*"),
    (("Exact", "Calibrated"), "cascades", "#e3a531", "^"),
    (("Coded",), "output codes", "#5b8c2a", "P"),
    ((), "online learning", "#999999", "v"),
)


def family(name):
    return next(i for i, (heads, *_) in enumerate(FAMILIES) if not heads or name.startswith(heads))


#: The kinds of problem in the file, and the titles of their panels.
TITLES = {
    "few rows, overlapping": "Small, overlapping classes",
    "images, ten classes": "Images, ten classes",
    "many classes": "Many classes",
    "many rows, two classes": "Many samples, two classes",
    "text, sparse": "Sparse text",
    "a number to predict": "Regression",
}


def panel(ax, title, kind):
    numbers = kind["measure"] == "mse"
    shown = {name: row for name, row in kind["estimators"].items() if "left_out" not in row}
    errors = sorted(row["error"] for row in shown.values())
    # What errs much more than most would press the others together: it stands at the upper edge.
    least, limit = errors[0], max(3.0 * errors[0], errors[len(errors) // 2] * 1.5)
    for name, row in shown.items():
        _, _, colour, mark = FAMILIES[family(name)]
        error = min(row["error"], limit) * (1 if numbers else 100)
        size = 130 if mark == "*" else 60
        style = {"color": colour, "marker": mark, "edgecolor": "white", "zorder": 3}
        ax.scatter(row["predict_microseconds"], error, size, **style)
    best = sorted(shown.items(), key=lambda item: item[1]["error"])
    fastest = None
    for name, row in sorted(best, key=lambda item: item[1]["predict_microseconds"]):
        # Named are those that nothing else beats in both, a twentieth of the error at least.
        if fastest is None or row["error"] < 0.95 * fastest:
            fastest = row["error"]
            if row["error"] <= limit:
                place = row["predict_microseconds"], row["error"] * (1 if numbers else 100)
                ax.annotate(
                    name.replace(" made", " constructed").replace("one against the rest", "one-vs-rest"),
                    place, (5, 5), textcoords="offset points", fontsize=7,
                )  # fmt: skip
    ax.set(xscale="log", yscale="log")
    ax.set_ylim(0.85 * least * (1 if numbers else 100), limit * (1 if numbers else 100) * 1.1)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 7)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_title(TITLES.get(title, title), fontsize=9.5, loc="left", fontweight="bold", pad=16)
    words = f"{kind['set']}, {kind['rows']:,} samples"
    ax.annotate(words, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", color="#555555")
    ax.set_ylabel("mean squared error" if numbers else "error rate, %")
    ax.grid(color="#e5e5e5", linewidth=0.6)
    ax.margins(x=0.22)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def main():
    kinds = json.loads(Path(sys.argv[1]).read_text())["kinds"]
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 8.5}):
        figure = Figure(figsize=(11.5, 7.2), dpi=110, facecolor="white", layout="constrained")
        axes = figure.subplots(2, 3)
        for ax in axes.flat[len(kinds) :]:
            ax.remove()
        for ax, (title, kind) in zip(axes.flat, kinds.items(), strict=False):
            panel(ax, title, kind)
        for ax in axes[1]:
            ax.set_xlabel("prediction time on one thread, µs per sample")
        marks = [
            axes[0, 0].scatter([], [], 60, color=colour, marker=mark, label=words)
            for _, words, colour, mark in FAMILIES
        ]
        below = {"loc": "outside lower center", "ncols": 4, "frameon": False}
        figure.legend(handles=marks, fontsize=8.5, **below)
        figure.savefig(sys.argv[2], metadata={"Software": None})


if __name__ == "__main__":
    main()
