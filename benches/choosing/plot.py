"""Error against prediction time of all estimators, one panel for each kind of problem.

python benches/choosing/plot.py docs/benchmarks/choosing.json docs/benchmarks/choosing.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "site"))

from measured import estimator_name

#: Families by the beginning of a name, with colour and mark.
FAMILIES = (
    (("SVC", "NuSVC", "SVR", "NuSVR"), "support vector machines", "#12355b", "o"),
    (("LowRank", "Linear", "Bagging"), "low rank and linear models", "#3f8f9b", "s"),
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


def points(kind):
    """Returns the largest error of a panel, and each estimator's prediction time and error in its unit."""
    shown = {name: row for name, row in kind["estimators"].items() if "left_out" not in row}
    errors = sorted(row["error"] for row in shown.values())
    # An error far above the others would press them together: it is drawn at the upper edge.
    limit = max(3.0 * errors[0], errors[len(errors) // 2] * 1.5)
    unit = 1 if kind["measure"] == "mse" else 100
    return limit * unit, {
        name: (row["predict_microseconds"], row["error"] * unit) for name, row in shown.items()
    }


def panel(ax, title, kind):
    """Draws all estimators on one data set."""
    limit, shown = points(kind)
    for name, (time, error) in shown.items():
        _, _, colour, mark = FAMILIES[family(name)]
        style = {"color": colour, "marker": mark, "edgecolor": "white", "zorder": 3}
        ax.scatter(time, min(error, limit), 130 if mark == "*" else 60, **style)
    ax.set(xscale="log", yscale="log")
    ax.set_ylim(0.85 * min(error for _, error in shown.values()), limit * 1.1)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 7)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_title(TITLES.get(title, title), fontsize=9.5, loc="left", fontweight="bold", pad=16)
    words = f"{kind['set']}, {kind['rows']:,} samples"
    ax.annotate(words, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", color="#555555")
    ax.set_ylabel("mean squared error" if kind["measure"] == "mse" else "error rate, %")
    ax.grid(color="#e5e5e5", linewidth=0.6)
    ax.margins(x=0.22)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def undominated(shown, limit):
    """Returns the estimators that no faster one beats by a twentieth of the error, the fastest first."""
    found, least = [], float("inf")
    for name, (_, error) in sorted(shown.items(), key=lambda item: item[1]):
        if error < 0.95 * least:
            least = error
            if error <= limit:
                found.append(name)
    return found


#: Offsets of a label from its mark in points, with horizontal and vertical alignment; the first is preferred.
PLACES = (
    (6, 4, "left", "bottom"), (6, -4, "left", "top"), (-6, 4, "right", "bottom"), (-6, -4, "right", "top"),
    (0, 8, "center", "bottom"), (0, -8, "center", "top"), (12, 14, "left", "bottom"),
    (-12, -14, "right", "top"),
)  # fmt: skip


def label(ax, kind):
    """Names the undominated estimators, each where its label covers the fewest marks and other labels."""
    limit, shown = points(kind)
    marks = ax.transData.transform([(time, min(error, limit)) for time, error in shown.values()])
    boxes = []
    for name in undominated(shown, limit):
        tried = []
        for x, y, horizontal, vertical in PLACES:
            text = ax.annotate(
                estimator_name(name), shown[name], (x, y), textcoords="offset points", fontsize=7,
                ha=horizontal, va=vertical, zorder=4,
            )  # fmt: skip
            text.set_in_layout(False)
            box = text.get_window_extent()
            covered = sum(box.padded(3).contains(*mark) for mark in marks)
            covered += 2 * sum(box.overlaps(other) for other in boxes)
            outside = max(0, ax.bbox.x0 - box.x0) + max(0, box.x1 - ax.bbox.x1 - 20)
            tried.append((covered + (10 if outside else 0), len(tried), text, box))
        *_, best, box = min(tried, key=lambda one: one[:2])
        boxes.append(box)
        for *_, text, _ in tried:
            if text is not best:
                text.remove()


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
        FigureCanvasAgg(figure).draw()
        for ax, kind in zip(axes.flat, kinds.values(), strict=False):
            label(ax, kind)
        figure.savefig(sys.argv[2], metadata={"Software": None})


if __name__ == "__main__":
    main()
