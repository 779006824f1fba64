"""seeds.json and seeds.tsv: results of each seed of a series and their spread."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf import atomic, documents, text_table

JSON_NAME, TSV_NAME = "seeds.json", "seeds.tsv"


class Spread(NamedTuple):
    mean: float
    sd: float | None  # sample standard deviation; None for one value
    lowest: float
    highest: float


@dataclasses.dataclass(frozen=True)
class SeedResult:
    """Result of one seed on dev."""

    seed: int
    folder: str  # of the run, relative to the series
    steps: int
    metrics: Mapping[str, float]  # by name, including eval_loss
    collapsed: str | None  # why nothing was learned; None if it was


def spread(values: Sequence[float]) -> Spread:
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), sd, min(values), max(values))


def spreads(results: Sequence[SeedResult]) -> dict[str, Spread]:
    return {metric: spread([result.metrics[metric] for result in results]) for metric in results[0].metrics}


def write(folder: Path, results: Sequence[SeedResult]) -> None:
    contents = {
        "seeds": [dataclasses.asdict(result) for result in results],
        "spread": {metric: found._asdict() for metric, found in spreads(results).items()},
    }
    atomic.write_text(folder / JSON_NAME, documents.to_json(contents, indent=2) + "\n")
    metrics = list(results[0].metrics)
    rows = [["seed", *metrics, "steps", "collapsed"]]
    for r in results:
        why = " ".join((r.collapsed or "").split())  # labels of one's own may hold tabs
        rows.append([str(r.seed), *(str(r.metrics[metric]) for metric in metrics), str(r.steps), why])
    atomic.write_text(folder / TSV_NAME, "".join("\t".join(row) + "\n" for row in rows))


def table(results: Sequence[SeedResult]) -> list[str]:
    found = spreads(results)
    rows = [["seed", *found, "steps", ""]]
    rows += [[str(r.seed), *map(_digits, r.metrics.values()), str(r.steps), _flag(r)] for r in results]
    for field in Spread._fields:
        rows.append([field, *(_digits(getattr(of_metric, field)) for of_metric in found.values()), "", ""])
    collapsed = sum(result.collapsed is not None for result in results)
    return [*text_table.table(rows[0], rows[1:], left=(len(rows[0]) - 1,)), f"{collapsed} of {len(results)} collapsed"]


def _flag(result: SeedResult) -> str:
    return f"collapsed: {result.collapsed}" if result.collapsed else ""


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
