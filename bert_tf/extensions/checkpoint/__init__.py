"""Checkpoint: inspects, compares, strips, converts and renames checkpoints (docs/checkpoints.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "checkpoint": NewCommand(
            f"{__name__}.command:COMMAND", "Look at runs", "inspects, compares, strips, converts and renames checkpoints"
        )
    }
)
