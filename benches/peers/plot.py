"""The comparison as a picture: times of the peers as multiples of svmarrow's, on a log scale.

    python benches/peers/plot.py out.json peers.png     from a file that `run.py --json` wrote

A group of bars is a workload, a bar a peer; the line at 1 is svmarrow, whose own seconds stand beside it.
Sized to be read at 800 pixels of width.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from cells import Cell, geometric_mean
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

if TYPE_CHECKING:
    from collections.abc import Sequence

PIXELS, DPI = 800, 100
#: Our engine in the picture: the first of these that ran.
OURS = ("svmarrow-f32", "svmarrow-f64")
#: The peers from top to bottom of a group: name, words, colour (told apart by lightness too).
PEERS = (
    ("sklearn", "scikit-learn (LIBSVM)", "#12355b"),
    ("intelex-f64", "scikit-learn-intelex, float64", "#3f8f9b"),
    ("intelex-f32", "scikit-learn-intelex, float32", "#9fd0c7"),
    ("thundersvm", "ThunderSVM", "#e3b261"),
)
TICKS = (0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)
OWN_COLOUR = "#c1272d"
BAR, GAP = 0.155, 0.19  # inches: a bar, the space between groups
MEAN = "fastest (mean)"
#: Key of the bar of `MEAN`.
BEST = "fastest"
#: Colour of that bar.
MEAN_COLOUR = "#6b6b6b"


def multiples(cells: Sequence[Cell], ours: str, what: str) -> dict[str, dict[str, float]]:
    """Seconds of each peer over ours, by workload; last the geometric mean of the fastest peers.

    A workload on which a peer's solution differs does not count in the mean.
    """
    found: dict[str, dict[str, float]] = {}
    own = {cell.workload: cell.seconds(what) for cell in cells if cell.engine == ours}
    for cell in cells:
        reference, seconds = own.get(cell.workload), cell.seconds(what)
        if cell.peer and reference is not None and seconds is not None:
            found.setdefault(cell.workload, {})[cell.engine] = seconds / reference
    wrong = {cell.workload for cell in cells if not cell.trusted}
    fastest = [min(group.values()) for workload, group in found.items() if workload not in wrong]
    if len(fastest) > 1:
        found[MEAN] = {BEST: geometric_mean(fastest)}
    return found


def seconds_text(seconds: float) -> str:
    """Two significant digits, in seconds or milliseconds."""
    return f"{seconds:.2g} s" if 0.0995 <= seconds < 9.95 else _outside(seconds)


def _outside(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1.0 else f"{1e3 * seconds:.2g} ms"


def draw(cells: Sequence[Cell], path: Path) -> None:
    """Draw fit and prediction side by side.

    Raises
    ------
    ValueError
        No workload has a time of svmarrow's and one of a peer's.
    """
    ours = next((name for name in OURS if any(c.engine == name and c.fit_seconds for c in cells)), OURS[0])
    panels = {
        title: (what, multiples(cells, ours, what))
        for title, what in (("fit", "fit_seconds"), ("predict", "predict_seconds"))
    }
    fits = panels["fit"][1]
    if not fits:
        raise ValueError(f"no workload has times of {ours} and of a peer: there is nothing to draw")
    present = [peer for peer in PEERS if any(peer[0] in group for group in fits.values())]
    values = [v for _, groups in panels.values() for group in groups.values() for v in group.values()]
    # Room for the numbers at the ends of the bars and for svmarrow's seconds at the left.
    limits = (min(1.0, *values) / (2.3 if min(values) >= 1.0 else 3.5), max(2.0, *values) * 2.1)
    # From the top down, in inches.
    tops, height = {}, 0.0
    for name in fits:
        tops[name] = height
        height += BAR * len(present) + GAP
    above, below = 0.95, 0.62
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 9}):
        figure = Figure(figsize=(PIXELS / DPI, height + above + below), dpi=DPI, facecolor="white")
        whole = figure.get_figheight()
        axes = figure.subplots(1, 2, sharex=True, sharey=True)
        figure.subplots_adjust(
            left=0.135, right=0.985, top=1 - above / whole, bottom=below / whole, wspace=0.06
        )
        for ax, (title, (what, groups)) in zip(axes, panels.items(), strict=True):
            own = {cell.workload: cell.seconds(what) for cell in cells if cell.engine == ours}
            _panel(ax, title, groups, own, present, tops, height, limits)
        axes[0].set_yticks(
            [tops[name] + BAR * len(present) / 2 for name in fits], [name.replace(" ", "\n") for name in fits]
        )
        for label, name in zip(axes[0].get_yticklabels(), fits, strict=True):
            label.set_fontweight("bold" if name == MEAN else "normal")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="upper left",
            bbox_to_anchor=(0.125, 1 - 0.33 / whole),
            ncols=len(labels),
            frameon=False,
            handlelength=1.0,
            columnspacing=1.4,
            fontsize=9,
        )
        figure.text(
            0.135,
            1 - 0.16 / whole,
            "Time of other implementations relative to svmarrow",
            fontsize=12,
            fontweight="bold",
            va="center",
        )
        figure.text(
            0.56,
            0.13 / whole,
            f"log scale; svmarrow in {ours[-3:].replace('f', 'float')}, its time in red; "
            "last row: geometric mean over the fastest implementation of each data set",
            ha="center",
            va="center",
            color="#555555",
            fontsize=8,
        )
        # No date and no version inside: the same figures give the same file.
        figure.savefig(path, dpi=DPI, metadata={"Software": None})


def _panel(
    ax: Any,
    title: str,
    groups: dict[str, dict[str, float]],
    own: dict[str, float | None],
    peers: Sequence[tuple[str, str, str]],
    tops: dict[str, float],
    height: float,
    limits: tuple[float, float],
) -> None:
    ax.set_xscale("log")
    ax.set_xlim(*limits)
    ax.set_ylim(height - GAP / 2, -GAP / 2)
    ax.axvline(1.0, color=OWN_COLOUR, linewidth=1.4, zorder=3)
    for i, (engine, words, colour) in enumerate(peers):
        drawn = [
            (tops[name] + BAR * (i + 0.5), group[engine]) for name, group in groups.items() if engine in group
        ]
        centres, lengths = [y for y, _ in drawn], [value - 1.0 for _, value in drawn]
        ax.barh(centres, lengths, BAR * 0.88, left=1.0, color=colour, label=words, zorder=2)
        for y, value in drawn:
            number = f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
            _say(ax, number, value, y, colour="#333333", right=value >= 1.0)
    if MEAN in groups:
        y, value = tops[MEAN] + BAR * len(peers) / 2, groups[MEAN][BEST]
        ax.barh([y], [value - 1.0], BAR * 0.88, left=1.0, color=MEAN_COLOUR, zorder=2)
        _say(ax, f"{value:.1f}", value, y, colour="#333333", right=value >= 1.0)
    for name in groups:
        seconds = own.get(name)
        if seconds is not None:
            _say(ax, seconds_text(seconds), limits[0], tops[name] + BAR * len(peers) / 2, colour=OWN_COLOUR)
        for i, (engine, _, _) in enumerate(peers):
            if engine not in groups[name] and name != MEAN:
                _say(ax, "no time", 1.0, tops[name] + BAR * (i + 0.5), colour="#777777")
    ax.set_title(title, loc="left", fontsize=10, fontweight="bold", pad=4)
    ax.xaxis.set_major_locator(FixedLocator([t for t in TICKS if limits[0] <= t <= limits[1]]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(axis="x", color="#e2e2e2", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", length=3, color="#999999")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color("#999999")


def _say(ax: Any, text: str, x: float, y: float, *, colour: str, right: bool = True) -> None:
    """Small print beside a point."""
    ax.annotate(
        text,
        (x, y),
        (3 if right else -3, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="center",
        fontsize=8,
        color=colour,
    )


def main() -> int:
    """Draw from a file."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    cells = [Cell(**entry) for entry in json.loads(Path(sys.argv[1]).read_text())["comparison"]]
    draw(cells, Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
