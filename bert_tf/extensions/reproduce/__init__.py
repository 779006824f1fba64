"""Reproduce: repeats a published run and compares its figures with one's own (docs/reproduce.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "reproduce": NewCommand(
            f"{__name__}.command:COMMAND", "Compare", "repeats a published run and compares its figures with yours"
        )
    }
)
