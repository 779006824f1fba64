"""Checkpoints: inspected, compared, averaged, rewritten."""

from bert_tf.operations.checkpoint import average, diff, inspect, rewrite
from bert_tf.operations.command import Actions

COMMAND = Actions(
    "Inspects, compares, averages and converts checkpoints (docs/checkpoints.md).\n"
    "A CHECKPOINT is a prefix, a run (for its best or newest) or a Hugging Face folder.",
    {"inspect": inspect.COMMAND, "diff": diff.COMMAND, "average": average.COMMAND, **rewrite.COMMANDS},
    stopped="stopped; nothing was written",
)
