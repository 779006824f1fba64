"""Published data sets, and checks of any."""

from bert_tf.operations.command import Actions
from bert_tf.operations.data import check, fetch

COMMAND = Actions(
    "Downloads published data sets and checks data:",
    {"fetch": fetch.COMMAND, "check": check.COMMAND},
    stopped="stopped; run the same command again",
)
