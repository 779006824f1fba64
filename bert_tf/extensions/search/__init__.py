"""Search: the nearest texts by cosine in vectors written by `encode` (docs/vectors.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "search": NewCommand(
            f"{__name__}.command:COMMAND", "Vectors of texts", "finds the nearest texts by cosine in vectors written by encode"
        )
    }
)
