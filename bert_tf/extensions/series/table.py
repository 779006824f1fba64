"""Results of runs that differ in a seed or a fold only: their files, their spread, and their table."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from bert_tf.io import atomic, documents, text_table


class RunResult(Protocol):
    """Result of a run of a series: a dataclass whose first field numbers the runs."""

    @property
    def folder(self) -> str:
        """Folder of the run, relative to the series."""

    @property
    def steps(self) -> int:
        """Steps trained."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metrics by name, including eval_loss."""

    @property
    def collapsed(self) -> str | None:
        """Why nothing was learned; None if it was."""


class Spread(NamedTuple):
    mean: float
    sd: float | None  # sample standard deviation; None for one value
    lowest: float
    highest: float


def spread(values: Sequence[float]) -> Spread:
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), sd, min(values), max(values))


def spreads(results: Sequence[RunResult]) -> dict[str, Spread]:
    """By metric; a run may lack some, as a fold whose questions all have answers."""
    metrics = dict.fromkeys(metric for result in results for metric in result.metrics)
    return {metric: spread([result.metrics[metric] for result in results if metric in result.metrics]) for metric in metrics}


def write(folder: Path, results: Sequence[RunResult], **more: Any) -> None:
    """Writes seeds.json and seeds.tsv, or files called by the first field of other results; `more` goes into the former."""
    name = _name(results)
    by_metric = spreads(results)
    contents = {
        f"{name}s": [dataclasses.asdict(cast(Any, result)) for result in results],
        "spread": {metric: of_metric._asdict() for metric, of_metric in by_metric.items()},
        **more,
    }
    atomic.write_text(folder / f"{name}s.json", documents.to_json(contents, indent=2) + "\n")
    rows = [[name, *by_metric, "steps", "collapsed"]]
    for r in results:
        why = " ".join((r.collapsed or "").split())  # custom labels may contain tabs
        rows.append([str(getattr(r, name)), *(str(r.metrics.get(metric, "-")) for metric in by_metric), str(r.steps), why])
    atomic.write_text(folder / f"{name}s.tsv", "".join("\t".join(row) + "\n" for row in rows))


def _name(results: Sequence[RunResult]) -> str:
    return dataclasses.fields(cast(Any, results[0]))[0].name


def summary(results: Sequence[RunResult]) -> list[str]:
    """Lines of a table of all results and their spread."""
    by_metric = spreads(results)
    rows = [[_name(results), *by_metric, "steps", ""]]
    for r in results:
        why = f"collapsed: {r.collapsed}" if r.collapsed else ""
        rows.append(
            [str(getattr(r, _name(results))), *(_digits(r.metrics.get(metric)) for metric in by_metric), str(r.steps), why]
        )
    for field in Spread._fields:
        rows.append([field, *(_digits(getattr(of_metric, field)) for of_metric in by_metric.values()), "", ""])
    collapsed = sum(result.collapsed is not None for result in results)
    return [*text_table.table(rows[0], rows[1:], left=(len(rows[0]) - 1,)), f"{collapsed} of {len(results)} collapsed"]


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
