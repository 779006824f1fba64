"""Samples become rows and verdicts: plain values, written to JSON as they are."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from benchmarks import flops, ratios, sizes
from benchmarks.comparisons import COMPARISONS, SUITES, Comparison, Contender, Requirement
from benchmarks.procedures import PROCEDURES, Measured
from benchmarks.stage import Bench, Stage
from bert_tf.head_spec import SPAN, TAGS

MEASURED = "measured"
TRAINING = "training against transformers, dynamic padding"

Rows = Mapping[str, Mapping[str, Any]]  # of a comparison, by contender
Results = Mapping[str, Mapping[str, Any]]  # comparisons by name


def compare(comparison: Comparison, bench: Bench) -> dict[str, Any]:
    """Runs a comparison; returns a row per contender and their shared facts."""
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
        head = stage.bench.materials.task(comparison.texts).family.head
        of_tokens = head.kind in (SPAN, TAGS)
        needed = flops.training(lengths, config, num_labels=head.num_labels, of_tokens=of_tokens) / len(lengths)
        row["flops_per_example"] = needed
        if measured.peak:
            row["share_of_peak"] = ratios.ratio(
                [rate * needed for rate in samples], [1e9 * peak for peak in measured.peak]
            )._asdict()
    return row


def _medians(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: statistics.median(found.get(name, 0.0) for found in parts) for name in parts[0]}


def judge(comparisons: Sequence[Mapping[str, Any]], told: Mapping[str, float] = MappingProxyType({})) -> list[dict[str, Any]]:
    """Returns a verdict per requirement; `held` is None if not measured.

    `told` has figures from elsewhere, by requirement, for what was not measured here.
    """
    results = {result["name"]: result for result in comparisons}
    verdicts = []
    for row in COMPARISONS:
        for requirement in row.requirements:
            verdict = _verdict(requirement, row.name, results)
            if verdict["held"] is None and requirement.what in told:
                verdict = _judged(requirement, ratios.spread([told[requirement.what]]))
            verdicts.append(verdict)
    return verdicts


def _judged(requirement: Requirement, found: ratios.Spread) -> dict[str, Any]:
    held = found.median >= requirement.bound if requirement.at_least else found.median <= requirement.bound
    return {**_asked(requirement), **found._asdict(), "held": held}


def _asked(requirement: Requirement) -> dict[str, Any]:
    words = "at least" if requirement.at_least else "at most"
    return {"what": requirement.what, "required": f"{words} {requirement.bound:.3g}", "held": None}


def _verdict(requirement: Requirement, name: str, results: Results) -> dict[str, Any]:
    verdict = _asked(requirement)
    if name not in results:
        return {**verdict, "note": "not asked for"}
    rows = {row["contender"]: row for row in results[name]["rows"]}
    for name in filter(None, (requirement.contender, requirement.against)):
        status = rows[name]["status"] if name in rows else "not measured"  # an older record may lack a contender
        if status != MEASURED:
            return {**verdict, "note": f"{name}: {status}"}
    found = _KINDS[requirement.kind](requirement, rows, results)
    if found is None:
        return {**verdict, "note": "the other side of it was not measured"}
    return _judged(requirement, found)


def _ratio(requirement: Requirement, rows: Rows, results: Results) -> ratios.Spread:
    del results
    return ratios.ratio(rows[requirement.contender]["samples"], rows[requirement.against]["samples"])


def _beside(requirement: Requirement, rows: Rows, results: Results) -> ratios.Spread | None:
    """Median ratio as a share of the same contenders' ratio in another comparison; used for all three figures."""
    other = {row["contender"]: row for row in results.get(requirement.beside, {}).get("rows", ())}
    if any("samples" not in other.get(name, {}) for name in (requirement.contender, requirement.against)):
        return None
    here, there = (_ratio(requirement, found, results) for found in (rows, other))
    share = here.median / there.median
    return ratios.Spread(share, share, share)


def _share(requirement: Requirement, rows: Rows, results: Results) -> ratios.Spread | None:
    del results
    share = rows[requirement.contender].get("share_of_peak")
    return share and ratios.Spread(**share)


def _difference(requirement: Requirement, rows: Rows, results: Results) -> ratios.Spread | None:
    """Largest difference between the losses of a step; used for all three figures."""
    del results
    mine = rows[requirement.contender]["samples"]
    others = [row["samples"] for name, row in rows.items() if name != requirement.contender and "samples" in row]
    if not others:
        return None
    largest = max(abs(a - b) for other in others for a, b in zip(mine, other))
    return ratios.Spread(largest, largest, largest)


_KINDS: Mapping[str, Callable[[Requirement, Rows, Results], ratios.Spread | None]] = {
    "ratio": _ratio,
    "beside": _beside,
    "share": _share,
    "difference": _difference,
}
