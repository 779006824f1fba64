"""Runs a SavedModel with TensorFlow alone."""

from __future__ import annotations

import os
from pathlib import Path

import tensorflow as tf
import tensorflow_text  # noqa: F401  (brings operations of the graph)

from bert_tf.export.opening import Batch, Compute, Outputs
from bert_tf.export.saved_model.signatures import IDS, raw
from bert_tf.runtime.devices import session_config

tf1 = tf.compat.v1


def open_folder(folder: Path) -> Compute:
    """Returns a function from ids to the head's outputs."""
    session = tf1.Session(graph=tf.Graph(), config=session_config())
    with session.graph.as_default():
        signature = tf1.saved_model.load(session, ["serve"], os.fspath(folder)).signature_def[IDS]
    run = {name: info.name for name, info in signature.outputs.items()}

    def compute(batch: Batch) -> Outputs:
        found = session.run(run, {info.name: batch[name] for name, info in signature.inputs.items()})
        return {**found, **{name: found[raw(name)] for name in found if raw(name) in found}}

    return compute
