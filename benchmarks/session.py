"""A whole benchmark: the requested comparisons in sequence, with the report after each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from benchmarks import machine, plot, records, report, results
from benchmarks.comparisons import COMPARISONS, Comparison
from benchmarks.stage import Bench


def run(comparisons: Sequence[Comparison], bench: Bench, output_dir: Path, *, command: str, data: str) -> Mapping[str, Any]:
    """Runs comparisons and returns the record; an interrupted run keeps its figures and those of earlier runs.

    Writes to output_dir this CPU model's record in results/, results.md of all records, and scaling.png.
    """
    if any(comparison.suite == "scaling" for comparison in comparisons):
        plot.require_matplotlib()  # before minutes are spent
    measured = {
        "command": command,
        "date": machine.now(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "versions": machine.versions(),
        "settings": {"rounds": bench.rounds, "steps": bench.steps, "threads": bench.threads, "data": data},
    }
    record = records.read(output_dir, machine.cpu())
    by_name = {comparison["name"]: comparison for comparison in record["comparisons"]}
    wanted = {contender.library for comparison in comparisons for contender in comparison.contenders}
    for name, why in bench.environments.missing.items():
        if name in wanted:
            logging.warning("%s is left out: %s", name, why)
    for number, comparison in enumerate(comparisons, start=1):
        logging.info("***** %d of %d: %s *****", number, len(comparisons), comparison.title)
        by_name[comparison.name] = {**results.compare(comparison, bench), "measured": measured}
        record["comparisons"] = [by_name[name] for name in _in_order(by_name)]
        record["finished"] = number == len(comparisons)
        records.write(output_dir, record)
        report.write(output_dir, records.read_all(output_dir))
        if comparison.suite == "scaling":  # else matplotlib may be missing, and the picture is there
            plot.draw_scaling(output_dir, record["comparisons"])
    return record


def _in_order(names: Collection[str]) -> list[str]:
    """Returns names in the table's order; comparisons that it no longer has come last."""
    known = [row.name for row in COMPARISONS if row.name in names]
    return [*known, *(name for name in names if name not in known)]
