"""Vocabulary: made from a corpus, extended in a model, shown for a text (docs/vocabulary.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "vocabulary": NewCommand(
            f"{__name__}.command:COMMAND",
            "Data and machine",
            "builds a vocabulary from a corpus, adds words to a model, shows how well it fits a text",
        )
    }
)
