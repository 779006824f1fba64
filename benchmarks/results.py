"""From samples to rows and verdicts: plain values that go to JSON as they are."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import flops, ratios, sizes
from benchmarks.comparisons import COMPARISONS, SUITES, Comparison, Contender, Requirement
from benchmarks.procedures import PROCEDURES, Measured
from benchmarks.stage import Bench, Stage

MEASURED = "measured"


def compare(comparison: Comparison, bench: Bench) -> dict[str, Any]:
    """Carries out a comparison.

    Returns:
      One row a contender, and what the rows share.
    """
    suite = SUITES[comparison.suite]
    stage = Stage(comparison, bench)
    contenders = stage.present()
    measured = PROCEDURES[suite.procedure](stage, contenders)
    baseline = next((name for name in comparison.baselines if name in measured.samples), None)
    return {
        "name": comparison.name,
        "title": comparison.title,
        "suite": comparison.suite,
        "unit": suite.unit,
        "size": comparison.size,
        "texts": comparison.texts,
        "axis": comparison.axis,
        "peak_gflops": ratios.spread(measured.peak)._asdict() if measured.peak else None,
        "baseline": baseline,
        "rows": [_row(stage, contender, measured, baseline) for contender in comparison.contenders],
    }


def _row(stage: Stage, contender: Contender, measured: Measured, baseline: str | None) -> dict[str, Any]:
    comparison, name = stage.comparison, contender.name
    config = stage.bench.materials.config(contender.size or comparison.size)
    row: dict[str, Any] = {
        "contender": name,
        "library": contender.library,
        "versions": dict(stage.versions.get(name, {})),
        "batch_size": measured.batch_sizes.get(name) or contender.batch_size or comparison.batch_size,
        "max_seq_length": contender.max_seq_length or comparison.max_seq_length,
        "parameters": sizes.parameters(config),
        "status": stage.notes.get(name, MEASURED),
    }
    commands = measured.commands.get(name, ())
    samples = measured.samples.get(name)
    if name in stage.notes or not samples:
        return row
    row.update(samples=samples, **ratios.spread(samples)._asdict())
    if commands:
        row["accuracy"] = statistics.median(done.accuracy for done in commands)
        row["parts"] = _medians([done.parts for done in commands])
    if baseline is not None and stage.suite.procedure != "curves":
        row["ratio"] = ratios.ratio(samples, measured.samples[baseline])._asdict()
    if stage.suite.worker == "train" and stage.suite.procedure == "rounds":
        lengths = stage.bench.materials.lengths(comparison.texts, row["max_seq_length"])
        needed = flops.training(lengths, config, num_labels=stage.bench.materials.num_labels) / len(lengths)
        row["flops_per_example"] = needed
        if measured.peak:
            row["share_of_peak"] = ratios.ratio(
                [rate * needed for rate in samples], [1e9 * peak for peak in measured.peak]
            )._asdict()
    return row


def _medians(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns the median of each part, in the order of the first command."""
    return {name: statistics.median(found.get(name, 0.0) for found in parts) for name in parts[0]}


def judge(comparisons: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns a verdict on every requirement of the table; `held` is None where nothing was measured."""
    results = {result["name"]: result for result in comparisons}
    return [_verdict(requirement, results.get(row.name)) for row in COMPARISONS for requirement in row.requirements]


def _verdict(requirement: Requirement, result: Mapping[str, Any] | None) -> dict[str, Any]:
    verdict: dict[str, Any] = {
        "what": requirement.what,
        "required": f"{'at least' if requirement.at_least else 'at most'} {requirement.bound:g}",
        "held": None,
    }
    if result is None:
        return {**verdict, "note": "not asked for"}
    rows = {row["contender"]: row for row in result["rows"]}
    names = [name for name in (requirement.contender, requirement.against) if name]
    for row in (rows[name] for name in names):
        if row["status"] != MEASURED:
            return {**verdict, "note": f"{row['contender']}: {row['status']}"}
    found = _KINDS[requirement.kind](requirement, rows)
    if found is None:
        return {**verdict, "note": "the other side of it was not measured"}
    held = found.median >= requirement.bound if requirement.at_least else found.median <= requirement.bound
    return {**verdict, **found._asdict(), "held": held}


def _ratio(requirement: Requirement, rows: Mapping[str, Mapping[str, Any]]) -> ratios.Spread | None:
    return ratios.ratio(rows[requirement.contender]["samples"], rows[requirement.against]["samples"])


def _share(requirement: Requirement, rows: Mapping[str, Mapping[str, Any]]) -> ratios.Spread | None:
    share = rows[requirement.contender].get("share_of_peak")
    return share and ratios.Spread(**share)


def _difference(requirement: Requirement, rows: Mapping[str, Mapping[str, Any]]) -> ratios.Spread | None:
    """Largest difference between the losses of a step; it stands for all three figures."""
    mine = rows[requirement.contender]["samples"]
    others = [row["samples"] for name, row in rows.items() if name != requirement.contender and "samples" in row]
    if not others:
        return None
    largest = max(abs(a - b) for other in others for a, b in zip(mine, other))
    return ratios.Spread(largest, largest, largest)


_KINDS: Mapping[str, Callable[[Requirement, Mapping[str, Mapping[str, Any]]], ratios.Spread | None]] = {
    "ratio": _ratio,
    "share": _share,
    "difference": _difference,
}
