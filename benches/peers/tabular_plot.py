"""Errors of tables relative to those of HistGradientBoosting, one line for each data set.

python benches/peers/tabular_plot.py docs/benchmarks/tabular.json docs/benchmarks/tabular.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

import tabular

#: Number of training samples of the picture.
SIZE = 1000
#: Engine, colour and mark.
STYLES = (
    (tabular.PLAIN, "#8a4f7d", "D"),
    ("extra trees", "#e3a531", "v"),
    (tabular.LIGHTGBM, "#5b8c2a", "^"),
    (tabular.XGBOOST, "#2f7f9f", "s"),
    (tabular.CATBOOST, "#222222", "P"),
    (tabular.OURS, "#c1272d", "o"),
)
#: Larger and smaller ratios stand at the edges.
LIMITS = (0.25, 2.5)


def ratios(result: dict[str, Any]) -> dict[str, float]:
    """Returns the mean error of each engine over that of HistGradientBoosting."""
    means = {engine: float(np.mean(cell["error"])) for engine, cell in result["engines"].items()}
    return {engine: mean / means[tabular.BOOSTING] for engine, mean in means.items()}


def draw(results: list[dict[str, Any]], path: str) -> None:
    """Draws the results of one number of samples, the best of ours at the top."""
    found = sorted(((one["set"], ratios(one)) for one in results), key=lambda pair: -pair[1][tabular.OURS])
    height = np.arange(len(found))
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 8.5}):
        figure = Figure(
            figsize=(8.0, 0.22 * len(found) + 1.4), dpi=110, facecolor="white", layout="constrained"
        )
        ax = figure.subplots()
        ax.axvline(1.0, color="#12355b", linewidth=1.2, zorder=1)
        for engine, colour, mark in STYLES:
            values = np.clip([ratio[engine] for _, ratio in found], *LIMITS)
            size = 45 if engine == tabular.OURS else 22
            style = {"color": colour, "marker": mark, "edgecolor": "white", "linewidth": 0.5, "zorder": 3}
            ax.scatter(values, height, size, label=engine, **style)
        ax.set(xscale="log", xlim=(LIMITS[0] / 1.06, LIMITS[1] * 1.06))
        ax.set_xticks([0.25, 0.5, 0.75, 1.0, 1.5, 2.5])
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_yticks(height, [name for name, _ in found])
        ax.set_ylim(-0.7, len(found) - 0.3)
        ax.set_xlabel("error relative to HistGradientBoosting (left of the line: more accurate)")
        ax.grid(color="#e5e5e5", linewidth=0.6)
        ax.set_axisbelow(True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        figure.legend(loc="outside lower center", ncols=len(STYLES), frameon=False)
        figure.savefig(path, metadata={"Software": None})


if __name__ == "__main__":
    every = json.loads(Path(sys.argv[1]).read_text())["tabular"]
    draw([one for one in every if one["samples"] == SIZE], sys.argv[2])
