"""Opens exports for comparison with the package: a row for each format that can be executed here, packages imported late."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bert_tf.features.columns import Array

Batch = Mapping[str, Array]  # [B, T] of each of `fields.INPUTS`, and what the head reads besides
Outputs = Mapping[str, Array]  # of the head by name, with padding
Compute = Callable[[Batch], Outputs]

_ALL_THREADS = 0


def _saved_model(folder: Path) -> Compute:
    """A function from ids to the head's outputs, which runs with TensorFlow alone."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (brings operations of the graph)

    from bert_tf.export.saved_model.signatures import IDS, raw
    from bert_tf.runtime.devices import session_config

    session = tf.compat.v1.Session(graph=tf.Graph(), config=session_config())
    with session.graph.as_default():
        signature = tf.compat.v1.saved_model.load(session, ["serve"], str(folder)).signature_def[IDS]
    run = {name: info.name for name, info in signature.outputs.items()}

    def compute(batch: Batch) -> Outputs:
        found = session.run(run, {info.name: batch[name] for name, info in signature.inputs.items()})
        return {**found, **{name: found[raw(name)] for name in found if raw(name) in found}}

    return compute


def _onnx(folder: Path) -> Compute:
    from bert_tf.engines import onnxruntime
    from bert_tf.export.onnx import MODEL

    return onnxruntime.open_file(folder / MODEL, "float32", _ALL_THREADS)


def _openvino(folder: Path) -> Compute:
    from bert_tf.engines import openvino
    from bert_tf.export.openvino import MODEL

    return openvino.open_file(folder / MODEL, "float32", _ALL_THREADS)


OPENERS: Mapping[str, Callable[[Path], Compute]] = {"saved_model": _saved_model, "onnx": _onnx, "openvino": _openvino}
