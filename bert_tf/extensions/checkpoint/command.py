"""Checkpoints: inspected, compared, rewritten."""

from bert_tf.extensions.checkpoint import diff, inspect, rewrite
from bert_tf.operations.command import Actions

COMMAND = Actions(
    "Inspects, compares and converts checkpoints (docs/checkpoints.md).\n"
    "A CHECKPOINT is a prefix, a run (for its best or newest) or a Hugging Face folder.",
    {"inspect": inspect.COMMAND, "diff": diff.COMMAND, **rewrite.COMMANDS},
    stopped="stopped; nothing was written",
)
