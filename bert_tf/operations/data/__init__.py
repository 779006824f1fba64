"""Downloads published data sets; checks and audits any data."""

from bert_tf.operations.command import Actions
from bert_tf.operations.data import audit, check, fetch

COMMAND = Actions(
    "Downloads published data sets, checks and audits data (docs/tasks.md).",
    {"fetch": fetch.COMMAND, "check": check.COMMAND, "audit": audit.COMMAND},
    stopped="stopped; run the same command again",
)
