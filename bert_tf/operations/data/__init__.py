"""Downloads published data sets; checks any data."""

from bert_tf.operations.command import Actions
from bert_tf.operations.data import check, fetch

COMMAND = Actions(
    "Downloads published data sets, checks data (docs/tasks.md).",
    {"fetch": fetch.COMMAND, "check": check.COMMAND},
    stopped="stopped; run the same command again",
)
