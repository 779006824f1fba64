"""Card: writes the model card of a run, and that of an exported folder (docs/card.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "card": NewCommand(
            f"{__name__}.command:COMMAND",
            "Use elsewhere",
            "writes the model card of a run: data, metrics, limits, how to use it",
            computes=True,
        )
    }
)
