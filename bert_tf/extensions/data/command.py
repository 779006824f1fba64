"""Downloads published data sets; checks any data."""

from bert_tf.extensions.data import check, fetch
from bert_tf.operations.command import Actions

COMMAND = Actions(
    "Downloads published data sets, checks data (docs/tasks.md).",
    {"fetch": fetch.COMMAND, "check": check.COMMAND},
    stopped="stopped; run the same command again",
)
