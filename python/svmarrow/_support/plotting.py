"""Shared code of the plots, which need the extra ``svmarrow[plot]``.

matplotlib is imported when something is drawn, so that importing svmarrow stays fast and needs no display.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes

__all__ = ["finish", "image_axes", "new_axes", "pyplot"]

SIZE = (6.4, 4.0)
"""Width and height of a new figure, in inches."""


def pyplot() -> ModuleType:
    """Imports matplotlib's pyplot; the ImportError names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'svmarrow[plot]'") from error
    return plt


def image_axes() -> Axes:
    """Returns axes on a figure for a file: no window, no entry in pyplot's list of figures."""
    pyplot()
    from matplotlib.figure import Figure

    return Figure(figsize=SIZE, layout="constrained").subplots()


def new_axes(ax: Any = None, size: tuple[float, float] = SIZE) -> Axes:
    """Returns the given axes, else those of a new figure."""
    plt = pyplot()
    axes: Axes = plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax
    return axes


def finish(ax: Any, **legend_options: Any) -> None:
    """Removes the upper and right side of the frame and adds the legend on white."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=True, facecolor="white", edgecolor="none", **legend_options)
