"""The model card: task, results, data and training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import bert_tf
from bert_tf import documents, run_layout
from bert_tf.checkpoints.huggingface_classes import Architecture
from bert_tf.export.exported import Exported
from bert_tf.export.huggingface import long_texts
from bert_tf.head_spec import PRETRAINING

_ELSEWHERE = ("task_name", "kind", "labels", "bert_config")  # of the record, the rest changed what was learned
_DIGESTS = {
    "train_examples_sha256": "training examples",
    "phase2_examples_sha256": "training examples of the second phase",
    "checkpoint_sha256": "checkpoint that training began with",
    "vocabulary_sha256": "vocabulary",
}


def text(exported: Exported, architecture: Architecture) -> str:
    labels = ", ".join(" ".join(label.split()) for label in exported.family.labels)  # a line break would end the line
    library = "sentence-transformers" if architecture.makes_vectors else "transformers"
    learned = "pre-trained" if exported.family.kind == PRETRAINING else "fine-tuned"
    lines = [
        *("---", f"library_name: {library}", f"pipeline_tag: {architecture.pipeline}", "tags:", "- bert", "---", ""),
        *(f"# BERT for {exported.task.name}", ""),
        f"`{architecture.name}`, {learned} with bert_tf {bert_tf.__version__}; step {exported.step}.",
        f"Kind: {exported.family.kind}." + (f" Labels: {labels}." if labels else ""),
        *_section("Metrics", _metrics(exported)),
        *_section("Long texts", long_texts.lines(exported)),
        *_section("Data", _digests(exported)),
        *_section("Training", _settings(exported)),
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, lines: Iterator[str]) -> list[str]:
    found = list(lines)
    return ["", f"## {title}", "", *found] if found else []


def _metrics(exported: Exported) -> Iterator[str]:
    """Table rows of the run's results at this step."""
    results = _results(exported)
    if results.get("global_step") != exported.step:
        return
    of_splits = results["splits"].items()
    rows = [_row(split, name, found) for split, found in of_splits for name in exported.family.metrics]
    if any(rows):
        yield from ("| split | metric | value | 95 % interval | examples |", "|---|---|---|---|---|", *filter(None, rows))


def _row(split: str, name: str, found: Any) -> str | None:
    """None if the metric is missing, undefined, or written by another program."""
    try:
        ends = found.get("intervals_95", {}).get(name)
        within = "" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}"
        return f"| {split} | {name} | {found[name]:.4f} | {within} | {found.get('examples', '')} |"
    except (AttributeError, LookupError, TypeError, ValueError):
        return None


def _results(exported: Exported) -> Mapping[str, Any]:
    """Content of the run's `eval_results.json`; empty if it is missing or written by another program."""
    try:
        found = documents.json_value(documents.read_text(exported.trained.folder / run_layout.RESULTS))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("splits"), dict) else {}


def _digests(exported: Exported) -> Iterator[str]:
    record = {**exported.trained.record, "vocabulary_sha256": exported.trained.vocabulary.fingerprint}
    for name, words in _DIGESTS.items():
        if record.get(name):
            yield f"- {words}: sha256 `{record[name]}`"


def _settings(exported: Exported) -> Iterator[str]:
    for name, value in exported.trained.record.items():
        if name not in _ELSEWHERE and not name.endswith("_sha256") and value not in (None, []):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"- {name}: {' '.join(shown.split())}"
