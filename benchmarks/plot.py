"""A plot of how cost grows; the only code that needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import BertError
from bert_tf.io import atomic

NAME = "scaling.png"
_FIGURES = {"scaling-batch": "batch_size", "scaling-length": "max_seq_length", "scaling-size": "parameters"}


def require_matplotlib() -> Any:
    """Returns matplotlib.figure; raises BertError if it is not installed."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise BertError("the suite scaling draws with matplotlib, which is missing: pip install matplotlib") from error
    return matplotlib.figure


def draw_scaling(folder: Path, comparisons: Sequence[Mapping[str, Any]]) -> None:
    """Draws milliseconds per example, actual and at the matmul peak, and the share of it; a panel per comparison."""
    drawn = [comparison for comparison in comparisons if comparison["name"] in _FIGURES]
    if not drawn:
        return
    figure = require_matplotlib().Figure(figsize=(5 * len(drawn), 4), layout="constrained")
    for axes, comparison in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn):
        _panel(axes, comparison, _FIGURES[comparison["name"]])
    with atomic.replacing(folder / NAME) as temporary:
        figure.savefig(temporary, format="png", dpi=120)


def _panel(axes: Any, comparison: Mapping[str, Any], key: str) -> None:
    rows = sorted((row for row in comparison["rows"] if "median" in row), key=lambda row: row[key])
    costs = {row[key]: 1000 / row["median"] for row in rows}
    shares = {row[key]: row["share_of_peak"]["median"] for row in rows if "share_of_peak" in row}
    axes.plot(list(costs), list(costs.values()), "o-", color="tab:blue", label="measured")
    axes.set(xlabel=comparison["axis"], ylabel="milliseconds an example", xscale="log", yscale="log")
    axes.set_xticks(list(costs), [f"{grown:,}" for grown in costs], rotation=20)
    axes.set_xticks([], minor=True)
    axes.set_title(comparison["title"].split(",")[0], fontsize="medium")
    if shares:
        axes.plot(
            list(shares), [costs[n] * share for n, share in shares.items()], ":", color="tab:blue", label="at the matmul peak"
        )
        axes.legend(fontsize="small")
        right = axes.twinx()
        right.plot(list(shares), [100 * share for share in shares.values()], "s--", color="tab:orange")
        right.set(ylabel="% of the matmul peak", ylim=(0, 100))
