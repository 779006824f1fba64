"""Report: the HTML page of a run again, or of several side by side (docs/commands.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "report": NewCommand(
            f"{__name__}.command:COMMAND", "Look at runs", "writes the HTML report of a run, or of several side by side"
        )
    }
)
