"""What drawings share: matplotlib where it is there, axes, the last touches. The extra is ``svmarrow[plot]``.

matplotlib is imported when something is drawn, never before: importing svmarrow stays fast and needs no
display.
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
    """Matplotlib's pyplot; an ImportError that names the extra where there is none."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'svmarrow[plot]'") from error
    return plt


def image_axes() -> Axes:
    """Axes on a figure that is for a file alone: no window, no entry in pyplot's list of figures."""
    pyplot()
    from matplotlib.figure import Figure

    return Figure(figsize=SIZE, layout="constrained").subplots()


def new_axes(ax: Any = None, size: tuple[float, float] = SIZE) -> Axes:
    """The axes given, else those of a new figure."""
    plt = pyplot()
    axes: Axes = plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax
    return axes


def finish(ax: Any, **legend_options: Any) -> None:
    """Take away the frame's upper and right side and show the legend on white."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=True, facecolor="white", edgecolor="none", **legend_options)
