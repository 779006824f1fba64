"""Card: writes the model card of a run (docs/card.md); cards of exported folders are made without it."""

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
