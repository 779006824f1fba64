"""Serve: answers requests over HTTP: a listening process, worker processes, and a queue between them (docs/serving.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "serve": NewCommand(f"{__name__}.command:COMMAND", "Train, evaluate, predict", "serves a trained model over HTTP")
    }
)
