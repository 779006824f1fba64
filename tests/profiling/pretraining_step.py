"""A step of pre-training with full rows of random words, traced."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.profiling.forecast.compute_options import PUBLISHED, ComputeOptions
from bert_tf.profiling.memory import trace_file
from bert_tf.profiling.memory.trace_file import Trace
from tests.profiling import steps
from tests.profiling.published_trace import config_of

LAYOUTS = {"--published_layout": PUBLISHED, "default": ComputeOptions(on_gpu=False)}


def trace(sizes: Mapping[str, int], layout: str, batch: int, folder: Path | None) -> Trace:
    """Returns what a step puts out."""
    kept = None if folder is None else folder / f"{layout.strip('-')}_{batch}.txt"
    if kept is not None and kept.exists():
        return trace_file.read(kept)
    options = dataclasses.replace(LAYOUTS[layout], places=sizes["predictions_per_sequence"])
    (metadata,), _ = steps.traced(config_of(sizes), sizes["sequence_length"], batch, options, head=HeadSpec(2, PRETRAINING))
    found = trace_file.from_run_metadata(metadata)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        trace_file.write(kept, found)
    return found
