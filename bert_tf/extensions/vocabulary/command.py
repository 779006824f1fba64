"""Vocabularies of word pieces: made, extended, shown."""

from bert_tf.extensions.vocabulary import extend, make, show
from bert_tf.operations.command import Actions

COMMAND = Actions(
    "Builds, extends and describes WordPiece vocabularies (docs/vocabulary.md).",
    {"make": make.COMMAND, "extend": extend.COMMAND, "show": show.COMMAND},
    stopped="stopped; nothing was written",
)
