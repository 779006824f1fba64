"""quality.json and quality.md: results of both sides by seed, their differences, and the requirements."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import records
from benchmarks.comparisons import OWN
from benchmarks.quality.runs import PEER, Reached, Series
from benchmarks.report import table
from bert_tf.io import atomic, documents
from bert_tf.metrics import intervals

JSON_NAME, MARKDOWN_NAME = "quality.json", "quality.md"

# By how much the mean of ours may be under that of the peer; None for a standard deviation of one training.
MAY_BE_UNDER: Mapping[str, float | None] = {"SQuAD": 0.01, "CoNLL2003": 0.005, "SWAG": None}

_PATHS = ("data_dir", "init_checkpoint", "bert_config_file", "vocab_file")
_FIRST_STEPS = (1, 10, 50)  # of which the largest difference of losses is given


def in_words(found: Reached) -> str:
    return ", ".join([*(f"{name} {value:.4f}" for name, value in found.metrics.items()), f"{found.seconds:.0f} s"])


def entry(series: Series, seeds: Sequence[int], *, command: str) -> dict[str, Any]:
    metric = series.task.family.metrics[0]
    pairs = [(series.reached(OWN, seed), series.reached(PEER, seed)) for seed in seeds]
    return {
        "task": series.task.name,
        "curves": series.curves,
        "measured": {"command": command, **records.when(), **records.machine()},
        "settings": {name: value for name, value in series.settings.items() if name not in _PATHS},
        "threads": series.threads,
        "metric": metric,
        "examples": len(series.examples),
        "rows": [
            {"seed": seed, OWN: _side(ours, metric), PEER: _side(theirs, metric)} for seed, (ours, theirs) in zip(seeds, pairs)
        ],
        "interval_of_difference": _interval(pairs, series.examples),
        "losses_apart": _losses_apart(pairs) if series.curves else {},
    }


def _side(found: Reached, metric: str) -> dict[str, Any]:
    return {"value": found.metrics[metric], "interval": found.intervals.get(metric), "seconds": found.seconds}


def _interval(pairs: Sequence[tuple[Reached, Reached]], examples: Sequence[Any]) -> tuple[float, float] | None:
    """Returns the 95 % interval of the mean difference over examples; those about one text are drawn together."""
    apart = [np.subtract(ours.each, theirs.each) for ours, theirs in pairs]
    numbers: dict[object, int] = {}
    group_of = [numbers.setdefault(getattr(example, "context", "") or example.guid, len(numbers)) for example in examples]
    return intervals.of_mean(np.mean(apart, axis=0), np.array(group_of)) if len(apart[0]) else None


def _losses_apart(pairs: Sequence[tuple[Reached, Reached]]) -> dict[str, float]:
    """Returns the largest loss difference by number of steps: the first ones, and all."""
    apart = np.max([np.abs(np.subtract(ours.losses, theirs.losses)) for ours, theirs in pairs], axis=0)
    return {str(steps): float(apart[:steps].max()) for steps in (*_FIRST_STEPS, len(apart)) if steps <= len(apart)}


def write(folder: Path, found: Mapping[str, Any]) -> None:
    """Writes both files, keeping the entries of other series."""
    by_series = {(entry["task"], entry["curves"]): entry for entry in (*read(folder), found)}
    entries = list(by_series.values())
    atomic.write_text(folder / JSON_NAME, documents.to_json(entries, indent=2) + "\n")
    atomic.write_text(folder / MARKDOWN_NAME, to_markdown(entries))


def read(folder: Path) -> list[dict[str, Any]]:
    try:
        entries: list[dict[str, Any]] = json.loads((folder / JSON_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return entries


def to_markdown(entries: Sequence[Mapping[str, Any]]) -> str:
    head = (
        "# Quality beside transformers\n\n"
        "Both sides start from the same weights (including the new head), and use the same batches in the same order and the\n"
        "same learning rates; each draws its own dropout. Both train on our features, and our families turn the logits of\n"
        "both into metrics (`benchmarks/quality`). Values are on dev, with 95 % intervals; seconds are those of the steps."
    )
    return "\n\n".join([head, *map(_section, entries)]) + "\n"


def _section(found: Mapping[str, Any]) -> str:
    rows, measured = found["rows"], found["measured"]
    ours, theirs = (statistics.mean(row[side]["value"] for row in rows) for side in (OWN, PEER))
    settings = ", ".join(f"{name} {value}" for name, value in found["settings"].items())
    title = f"## {found['task']}{', without dropout' if found['curves'] else ''}: {found['metric']}"
    where = f"{measured['date']}, commit {measured['commit']}, {measured['cpu']}, {found['threads']} threads"
    head = ["seed", OWN, PEER, "difference", f"{OWN}, s", f"{PEER}, s"]
    mean = ["mean", f"{ours:.4f}", f"{theirs:.4f}", f"{ours - theirs:+.4f}", "", ""]
    said = [f"{found['examples']} examples; {settings}.", *_said(found, ours - theirs)]
    return "\n\n".join([title, f"    {measured['command']}", where, table(head, [*map(_cells, rows), mean]), " ".join(said)])


def _cells(row: Mapping[str, Any]) -> list[str]:
    sides = [row[side] for side in (OWN, PEER)]
    apart = sides[0]["value"] - sides[1]["value"]
    return [str(row["seed"]), *map(_value, sides), f"{apart:+.4f}", *(f"{side['seconds']:.0f}" for side in sides)]


def _value(side: Mapping[str, Any]) -> str:
    ends = f" ({side['interval'][0]:.4f} to {side['interval'][1]:.4f})" if side["interval"] else ""
    return f"{side['value']:.4f}{ends}"


def _said(found: Mapping[str, Any], difference: float) -> list[str]:
    lines = []
    ends = found["interval_of_difference"]
    if ends:
        lines.append(f"Difference by examples: {difference:+.4f} ({ends[0]:+.4f} to {ends[1]:+.4f}).")
    for steps, apart in found["losses_apart"].items():
        lines.append(f"Losses of the first {steps} steps differ by {apart:.2g} at most.")
    return lines if found["curves"] else [*lines, _verdict(found, difference)]


def _verdict(found: Mapping[str, Any], difference: float) -> str:
    allowed = MAY_BE_UNDER[found["task"]]
    if allowed is None:
        values = [[row[side]["value"] for row in found["rows"]] for side in (OWN, PEER)]
        if len(values[0]) < 2:
            return "Required: within a standard deviation of the seeds, which one seed does not have."
        allowed = max(map(statistics.stdev, values))
    held = "held" if difference >= -allowed else "**missed**"
    return f"Required: not more than {allowed:.4f} under: {held}."
