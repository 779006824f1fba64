"""Vocabularies of word pieces: made, extended, shown."""

from bert_tf.operations.command import Actions
from bert_tf.operations.vocabulary import extend, make, show

COMMAND = Actions(
    "Builds, extends and describes WordPiece vocabularies (docs/vocabulary.md).",
    {"make": make.COMMAND, "extend": extend.COMMAND, "show": show.COMMAND},
    stopped="stopped; nothing was written",
)
