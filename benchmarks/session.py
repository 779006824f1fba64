"""A whole benchmark: the comparisons asked for, one after the other, and the report after each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from benchmarks import machine, plot, records, report, results
from benchmarks.comparisons import COMPARISONS, Comparison
from benchmarks.stage import Bench


def run(comparisons: Sequence[Comparison], bench: Bench, output_dir: Path, *, command: str, data: str) -> Mapping[str, Any]:
    """Carries out comparisons; an interrupted run leaves what it has measured, and keeps what earlier ones left.

    Args:
      comparisons: rows of the table.
      bench: how to measure.
      output_dir: takes the record of this CPU model in results/, results.md of all records, and scaling.png.
      command: the exact command line, for the report.
      data: where the texts are from, for the report.

    Returns:
      The record.

    Raises:
      BertError: something that the user can fix.
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
    """Returns names in the order of the table; others, of comparisons that it no longer has, at the end."""
    known = [row.name for row in COMPARISONS if row.name in names]
    return [*known, *(name for name in names if name not in known)]
