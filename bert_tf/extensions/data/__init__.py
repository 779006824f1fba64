"""Data: downloads published data sets, checks any data (docs/tasks.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "data": NewCommand(
            f"{__name__}.command:COMMAND", "Data and machine", "downloads published data sets; checks your own data"
        )
    }
)
