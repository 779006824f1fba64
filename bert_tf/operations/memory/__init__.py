"""The memory of a training step: traces of it, and forecasts."""

from bert_tf.operations.command import Actions
from bert_tf.operations.memory import plan, trace

COMMAND = Actions("Tells what the memory of a training step goes to, or will:", {**trace.COMMANDS, "plan": plan.COMMAND})
