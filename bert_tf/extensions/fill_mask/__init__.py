"""Fill-mask: predicts the words of [MASK] in a text, or in the texts of a file (docs/fill_mask.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    session=f"{__name__}.filler:of_model",
    commands={
        "fill-mask": NewCommand(
            f"{__name__}.command:COMMAND",
            "Train, evaluate, predict",
            "fills in masked words in a text, files or pipes",
            computes=True,
        )
    },
)
