"""A whole benchmark: comparisons in sequence; samples become rows, plain values that are written to JSON as they are."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from benchmarks import figures, plot, records, report
from benchmarks.comparisons import COMPARISONS, SUITES, Comparison, Contender
from benchmarks.procedures import PROCEDURES, Samples
from benchmarks.report import MEASURED
from benchmarks.stage import Bench, Stage
from bert_tf.io import atomic


def run(comparisons: Sequence[Comparison], bench: Bench, output_dir: Path, *, command: str, data: str) -> Mapping[str, Any]:
    """Runs comparisons and returns the record; an interrupted run keeps its figures and those of earlier runs.

    Writes to output_dir this CPU model's record in results/, results.md of all records, and scaling.png.
    """
    if any(comparison.suite == "scaling" for comparison in comparisons):
        plot.require_matplotlib()  # before minutes are spent
    settings = {"rounds": bench.rounds, "steps": bench.steps, "threads": bench.threads, "data": data}
    machine, versions = records.machine(), records.versions()
    measured = {"command": command, **records.when(), "machine": machine, "versions": versions, "settings": settings}
    record = records.read(output_dir, records.cpu())
    by_name = {comparison["name"]: comparison for comparison in record["comparisons"]}
    wanted = {contender.library for comparison in comparisons for contender in comparison.contenders}
    for name, why in bench.environments.missing.items():
        if name in wanted:
            logging.warning("%s is left out: %s", name, why)
    for number, comparison in enumerate(comparisons, start=1):
        logging.info("***** %d of %d: %s *****", number, len(comparisons), comparison.title)
        by_name[comparison.name] = {**compare(comparison, bench), "measured": measured}
        record["comparisons"] = [by_name[name] for name in _in_order(by_name)]
        record["finished"] = number == len(comparisons)
        records.write(output_dir, record)
        atomic.write_text(output_dir / report.NAME, report.to_markdown(records.read_all(output_dir)))
        if comparison.suite == "scaling":  # else matplotlib may be missing, and the picture is there
            plot.draw_scaling(output_dir, record["comparisons"])
    return record


def _in_order(names: Collection[str]) -> list[str]:
    """Returns names in the table's order; comparisons that it no longer has come last."""
    known = [row.name for row in COMPARISONS if row.name in names]
    return [*known, *(name for name in names if name not in known)]


def compare(comparison: Comparison, bench: Bench) -> dict[str, Any]:
    """Runs a comparison; returns a row per contender and their shared facts."""
    suite = SUITES[comparison.suite]
    stage = Stage(comparison, bench)
    samples = PROCEDURES[suite.procedure](stage, stage.present())
    baseline = next((name for name in comparison.baselines if name in samples), None)
    return {
        **{name: getattr(comparison, name) for name in ("name", "title", "suite", "size", "texts", "axis")},
        "unit": suite.unit,
        "peak_gflops": {precision: figures.spread(peaks)._asdict() for precision, peaks in stage.peaks.items()},
        "baseline": baseline,
        "rows": [_row(stage, contender, samples, baseline) for contender in comparison.contenders],
    }


def _row(stage: Stage, contender: Contender, measured: Samples, baseline: str | None) -> dict[str, Any]:
    comparison, name = stage.comparison, contender.name
    row: dict[str, Any] = {
        "contender": name,
        "library": contender.library,
        "versions": dict(stage.versions.get(name, {})),
        "batch_size": comparison.batch_size_of(contender, stage.batch_sizes.get(name)),
        "max_seq_length": contender.max_seq_length or comparison.max_seq_length,
        "parameters": figures.parameters(stage.bench.materials.config(contender.size or comparison.size)),
        "status": stage.notes.get(name, MEASURED),
    }
    samples = measured.get(name)
    if name in stage.notes or not samples:
        return row
    if name in stage.cosines:
        row["cosine"] = stage.cosines[name]
    row.update(samples=samples, **figures.spread(samples)._asdict())
    commands = stage.finished.get(name)
    if commands:
        row["accuracy"] = statistics.median(done.accuracy for done in commands)
        parts = [done.parts for done in commands]
        row["parts"] = {name: statistics.median(found.get(name, 0.0) for found in parts) for name in parts[0]}
    if baseline is not None and stage.suite.procedure != "curves":
        row["ratio"] = figures.ratio(samples, measured[baseline])._asdict()
    if stage.suite.worker in figures.OPERATIONS and stage.suite.procedure == "rounds":
        row["flops_per_example"] = needed = _flops(stage, contender)
        if contender.precision in stage.peaks:
            rates, peaks = [rate * needed for rate in samples], [1e9 * peak for peak in stage.peaks[contender.precision]]
            row["share_of_peak"] = figures.ratio(rates, peaks)._asdict()
    return row


def _flops(stage: Stage, contender: Contender) -> float:
    comparison, materials = stage.comparison, stage.bench.materials
    features = materials.features(comparison.texts, contender.max_seq_length or comparison.max_seq_length)
    head, config = materials.task(comparison.texts).family.head, materials.config(contender.size or comparison.size)
    masks = 0.0 if features.slots is None else float(features.slots.sum())
    return figures.OPERATIONS[stage.suite.worker](features.lengths, config, head, masks) / features.units
