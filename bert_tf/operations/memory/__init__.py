"""The memory of a training step: traces of it, and forecasts."""

from bert_tf.operations.command import Actions
from bert_tf.operations.memory import plan, trace

COMMAND = Actions(
    "Shows or forecasts what uses the memory of a training step (docs/memory.md).", {**trace.COMMANDS, "plan": plan.COMMAND}
)
