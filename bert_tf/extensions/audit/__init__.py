"""Audit: probable mistakes in labelled data, as a table to correct and a page to browse (docs/tasks.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(commands={"data audit": NewCommand(f"{__name__}.command:COMMAND")})
