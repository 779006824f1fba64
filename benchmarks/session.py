"""A whole benchmark: the comparisons asked for, one after the other, and the report after each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from benchmarks import machine, plot, report, results
from benchmarks.comparisons import Comparison
from benchmarks.stage import Bench


def run(comparisons: Sequence[Comparison], bench: Bench, output_dir: Path, *, command: str, data: str) -> Mapping[str, Any]:
    """Carries out comparisons; an interrupted run leaves what it has measured, and keeps what earlier ones left.

    Args:
      comparisons: rows of the table.
      bench: how to measure.
      output_dir: takes results.json, results.md and scaling.png.
      command: the exact command line, for the report.
      data: where the texts are from, for the report.

    Returns:
      The contents of results.json.

    Raises:
      BertError: something that the user can fix.
    """
    if any(comparison.suite == "scaling" for comparison in comparisons):
        plot.require_matplotlib()  # before minutes are spent
    measured = {"command": command, "date": machine.now(), "commit": machine.commit()}
    found: dict[str, Any] = {
        **measured,
        "machine": machine.describe(),
        "versions": machine.versions(),
        "settings": {"rounds": bench.rounds, "steps": bench.steps, "threads": bench.threads, "data": data},
        "finished": False,
        "requirements": results.judge([]),
        "comparisons": [],
    }
    asked = {comparison.name for comparison in comparisons}
    by_name = {name: earlier for name, earlier in _earlier(output_dir, found["machine"]).items() if name not in asked}
    for name, why in bench.environments.missing.items():
        logging.warning("%s is left out: %s", name, why)
    for number, comparison in enumerate(comparisons, start=1):
        logging.info("***** %d of %d: %s *****", number, len(comparisons), comparison.title)
        by_name[comparison.name] = {**results.compare(comparison, bench), "measured": measured}
        found["comparisons"] = list(by_name.values())
        found["requirements"] = results.judge(found["comparisons"])
        found["finished"] = number == len(comparisons)
        report.write(output_dir, found)
        plot.draw_scaling(output_dir, found["comparisons"])
    return found


def _earlier(output_dir: Path, here: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the comparisons by name that an earlier run on this machine left in the folder."""
    earlier = report.read(output_dir)
    if earlier is None or earlier["machine"] != here:
        return {}
    measured = {key: earlier[key] for key in ("command", "date", "commit")}
    return {comparison["name"]: {"measured": measured, **comparison} for comparison in earlier["comparisons"]}
