"""A step of pre-training with full rows of random words, traced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.features.columns import Features
from bert_tf.fields import ROW, Field
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.modeling.heads import registry as heads
from bert_tf.profiling.forecast.compute_options import PUBLISHED, ComputeOptions
from bert_tf.profiling.memory import trace_file
from bert_tf.profiling.memory.trace_file import Trace
from tests.profiling import steps
from tests.profiling.published_trace import config_of

tf1 = tf.compat.v1

LAYOUTS = {"--published_layout": PUBLISHED, "default": ComputeOptions(on_gpu=False)}
HEAD = HeadSpec(2, PRETRAINING)


def trace(sizes: Mapping[str, int], layout: str, batch: int, folder: Path | None) -> Trace:
    """Returns what a step puts out.

    Args:
      sizes: of the model and of a row, see `implied_sizes`.
      layout: of `LAYOUTS`.
      batch: rows of the step.
      folder: keeps the trace, and gives one that it has; None for neither.
    """
    kept = None if folder is None else folder / f"{layout.strip('-')}_{batch}.txt"
    if kept is not None and kept.exists():
        return trace_file.read(kept)
    found = _traced(sizes, layout, batch)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        trace_file.write(kept, found)
    return found


def _traced(sizes: Mapping[str, int], layout: str, batch: int) -> Trace:
    config = config_of(sizes)
    rows = features(config.vocab_size, batch, sizes["sequence_length"], sizes["predictions_per_sequence"])
    metadata = tf1.RunMetadata()
    with steps.training(config, rows, batch, LAYOUTS[layout], HEAD) as (session, train_op):
        session.run(train_op)
        session.run(train_op, options=tf1.RunOptions(trace_level=tf1.RunOptions.SOFTWARE_TRACE), run_metadata=metadata)
    return trace_file.from_run_metadata(metadata)


def features(words: int, batch: int, tokens: int, places: int) -> Features:
    """Returns rows without padding, each with as many places as there can be.

    Args:
      words: of the vocabulary.
      batch: rows.
      tokens: of each.
      places: of each.
    """
    random = np.random.default_rng(0)
    _, *slots = heads.of(HEAD).inputs
    (label,) = heads.of(HEAD).targets
    positions = np.sort(random.permuted(np.tile(np.arange(1, tokens - 1), (batch, 1)), axis=1)[:, :places], axis=1)
    fields = (*slots, Field(label, ROW))
    values = (positions.ravel(), random.integers(0, words, batch * places), np.arange(batch) % 2)
    return Features(
        *(random.integers(0, words, batch * tokens).astype(np.int32), np.full(batch, tokens, np.int32)),
        np.full(batch, tokens // 2, np.int32),
        {field.name: value.astype(np.int32) for field, value in zip(fields, values)},
        fields,
        slots=np.full(batch, places, np.int32),
        weights=np.full(batch, places, np.int32),
    )
