"""The memory of a training step: forecasts; traces of it are an extension's."""

from bert_tf.operations.command import Actions
from bert_tf.operations.memory import plan

COMMAND = Actions("Shows or forecasts what uses the memory of a training step (docs/memory.md).", {"plan": plan.COMMAND})
