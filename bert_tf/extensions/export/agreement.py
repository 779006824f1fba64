"""Compares a graph for other software with the package's own computation, before it is written."""

from __future__ import annotations

import numpy as np

from bert_tf.batch import graph
from bert_tf.batch.engine import Batch, Compute
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError
from bert_tf.fields import INPUTS, TOKEN
from bert_tf.io.log_form import log

_MOST = 1e-4  # relative to the largest output: more than rounding explains
_ROWS, _TOKENS = 8, 32


def require_agreement(trained: Trained, compute: Compute) -> None:
    """Compares outputs on random rows in float32 and logs the largest difference; raises CheckpointError."""
    batch = _rows(trained)

    def build() -> tuple[graph.Tensors, graph.Tensors]:
        inputs = graph.inputs(trained)
        return inputs, graph.compute(trained, inputs, graph.PLAIN).logits

    with graph.loaded(trained, build) as (session, (inputs, logits)):
        expected = session.run(dict(logits), {inputs[name]: values for name, values in batch.items()})
    outputs = compute(batch)
    for field in trained.outputs:  # vectors of padding mean nothing: in a window without real tokens they may be any
        real = batch["input_mask"] > 0 if field.axis == TOKEN else slice(None)
        name, wanted = field.name, expected[field.name][real]
        difference = float(np.abs(outputs[name][real] - wanted).max())
        largest = float(np.abs(wanted[np.abs(wanted) < np.float32(1e29)]).max(initial=1.0))  # span padding is not a real value
        if not difference <= _MOST * largest:
            raise CheckpointError(f"{trained.prefix}: {name} differ from TensorFlow's by {difference:.1e}; nothing is exported")
        log.info("%s differ from TensorFlow's by %.1e at most, on %d random rows", name, difference, _ROWS)


def _rows(trained: Trained) -> Batch:
    rng = np.random.default_rng(0)
    tokens = min(_TOKENS, trained.max_seq_length)
    lengths = np.concatenate([[tokens], rng.integers(1, tokens + 1, _ROWS - 1)])[:, None]
    mask = np.arange(tokens) < lengths
    ids = rng.integers(0, trained.config.vocab_size, mask.shape) * mask
    segments = mask & (np.arange(tokens) >= (lengths + 1) // 2)
    names = [field.name for field in INPUTS]
    return {name: array.astype(np.int32) for name, array in zip(names, (ids, mask, segments))}
