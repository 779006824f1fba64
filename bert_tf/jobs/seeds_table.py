"""seeds.json and seeds.tsv: what the seeds of a series reached, and how that spreads."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf import atomic, documents, text_table

JSON_NAME, TSV_NAME = "seeds.json", "seeds.tsv"


class Spread(NamedTuple):
    """How the values of several seeds lie.

    Attributes:
      sd: standard deviation of the sample they are; None of one value.
    """

    mean: float
    sd: float | None
    lowest: float
    highest: float


@dataclasses.dataclass(frozen=True)
class SeedResult:
    """What one seed reached on dev.

    Attributes:
      folder: of the run, below that of the series.
      steps: of training.
      metrics: by name, eval_loss among them.
      collapsed: why nothing was learned; None where something was.
    """

    seed: int
    folder: str
    steps: int
    metrics: Mapping[str, float]
    collapsed: str | None


def spread(values: Sequence[float]) -> Spread:
    """Returns mean, standard deviation, lowest and highest."""
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), sd, min(values), max(values))


def spreads(results: Sequence[SeedResult]) -> dict[str, Spread]:
    """Returns how each metric spreads over the seeds."""
    return {metric: spread([result.metrics[metric] for result in results]) for metric in results[0].metrics}


def write(folder: Path, results: Sequence[SeedResult]) -> None:
    """Writes seeds.json and seeds.tsv, each whole or not at all.

    Args:
      folder: of both files.
      results: of each seed.

    Raises:
      OutputError: the folder cannot be written.
    """
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
    """Returns lines for people: a row for each seed, then how they spread, and how many collapsed."""
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
