"""Line charts as SVG in a data address, drawn by matplotlib.

A picture in an address of its own brings neither styles nor names into the page, and has a text for those who cannot see it.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Dark enough on white, and told apart without red and green.
COLOURS = ("#0b62a4", "#c8500a", "#1a7f5a", "#8a3fa0", "#8a6400", "#0a7a8c", "#b0265e", "#495057")
DASHES = ("solid", "dashed", "dotted")
MOST_LINES = len(COLOURS) * len(DASHES)  # beyond which two would look the same

_SIZE = (4.6, 2.6)  # inches; as wide as a telephone shows, so that letters keep their size there
_POINTS = 6000  # of a chart, all lines together
_INK, _GRID, _DARK = "#4a5158", "#e3e6e9", "#1c2126"
_ALPHA = 0.75  # style.css has it too, for the key
_ROOM, _ROOM_FOR_TEXT = 1.08, 1.12  # above a line, and above a point with a text
_PATH, _DIGITS = re.compile(rb' d="[^"]*"'), re.compile(rb"(\.\d\d)\d+")  # hundredths of a point are beyond any screen
_RC = {
    "svg.fonttype": "none",  # letters stay letters: smaller, and sharp
    "svg.hashsalt": "bert_tf",  # the same picture on every call
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial"],
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": _GRID,
    "axes.axisbelow": True,
    "text.parse_math": False,
}


@dataclasses.dataclass(frozen=True)
class Curve:
    """A line of a chart.

    Attributes:
      x: where its points are.
      y: what they are.
      place: of its colour and dashes among those of the chart.
      faint: whether it lies behind the others.
      marks: whether points are marked.
    """

    x: Sequence[float]
    y: Sequence[float]
    place: int = 0
    faint: bool = False
    marks: bool = False


def lines(curves: Sequence[Curve], *, from_zero: bool = False, x_label: str = "step") -> str:
    """Returns the address of a chart.

    Args:
      curves: at least one, each with at least one point.
      from_zero: whether the vertical axis begins at 0; else where the values do.
      x_label: below the horizontal axis.
    """
    budget = max(_POINTS // len(curves), 50)

    def draw(axes: Any) -> None:
        for curve in curves:
            x, y = thinned(curve.x, curve.y, budget)
            style = {"color": colour(curve.place), "linestyle": dash(curve.place), "linewidth": 1.7}
            if curve.faint:
                style.update(linewidth=0.9, alpha=0.3)
            marked = curve.marks or len(x) == 1
            axes.plot(x, y, marker="o" if marked else None, markersize=4, **style)
        axes.set_xlabel(x_label)
        if from_zero:  # room above a line that hardly changes too
            axes.set_ylim(0, max(axes.get_ylim()[1], _ROOM * max(max(curve.y) for curve in curves)))

    return _picture(draw)


def stacked(
    x: Sequence[float],
    layers: Mapping[str, Sequence[float]],
    *,
    x_label: str,
    colours: Sequence[str] = COLOURS,
    marked: tuple[float, float, str] | None = None,
) -> str:
    """Returns the address of a chart of layers that lie on each other, the first at the bottom, from 0.

    Args:
      x: where the points are.
      layers: by name.
      x_label: below the horizontal axis.
      colours: of the layers in their order.
      marked: x and y of a point, and what stands beside it.
    """

    def draw(axes: Any) -> None:
        thin = [thinned(x, layer, _POINTS // len(layers)) for layer in layers.values()]
        axes.stackplot(thin[0][0], [values for _, values in thin], colors=colours[: len(layers)], alpha=_ALPHA, linewidth=0)
        axes.set_xlabel(x_label)
        axes.set_ylim(bottom=0)
        if marked:
            _mark(axes, *marked)

    return _picture(draw)


def _mark(axes: Any, x: float, y: float, text: str) -> None:
    low, high = axes.get_xlim()
    to_left = x > (low + high) / 2
    axes.plot(x, y, "o", color=_DARK, markersize=5)
    place = {"textcoords": "offset points", "ha": "right" if to_left else "left"}
    axes.annotate(text, (x, y), (-7 if to_left else 7, 5), color=_DARK, **place)
    axes.set_ylim(top=_ROOM_FOR_TEXT * axes.get_ylim()[1])


def colour(place: int) -> str:
    """Returns the colour of a line or layer by its place in the chart."""
    return COLOURS[place % len(COLOURS)]


def dash(place: int) -> str:
    """Returns how a line is broken, once there are more than colours."""
    return DASHES[place // len(COLOURS) % len(DASHES)]


def thinned(x: Sequence[float], y: Sequence[float], most: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns points as they are, or the means of so many neighbours that `most` are left."""
    group = -(-len(x) // most)
    starts = np.arange(0, len(x), group)
    counts = np.diff(starts, append=len(x))
    return tuple(np.add.reduceat(np.asarray(values, np.float64), starts) / counts for values in (x, y))  # type: ignore[return-value]


def running_mean(values: Sequence[float], window: int) -> np.ndarray:
    """Returns the mean of each value and of those before it, `window` together; at the beginning of as many as there are."""
    sums = np.cumsum(np.asarray(values, np.float64))
    sums[window:] -= sums[:-window].copy()
    return sums / np.minimum(np.arange(1, len(sums) + 1), window)


def _picture(draw: Any) -> str:
    import matplotlib.figure
    from matplotlib import rc_context, ticker

    with rc_context(_RC):
        figure = matplotlib.figure.Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        draw(axes)
        axes.margins(x=0.02)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: tick(value)))
        axes.tick_params(length=3)
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    small = _PATH.sub(lambda path: _DIGITS.sub(rb"\1", path[0]), stream.getvalue())
    return f"data:image/svg+xml;base64,{base64.b64encode(small).decode()}"


def tick(value: float) -> str:
    """Returns a number beside an axis."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    if abs(value) >= 10_000:
        return f"{value / 1e3:g}k"
    return f"{value:.4g}"
