"""Writes a SavedModel with the building blocks of Estimator's own export."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from bert_tf.batch import graph
from bert_tf.batch.engine import Batch, Compute
from bert_tf.extensions.export.job import ExportJob, rule
from bert_tf.extensions.export.saved_model import signatures
from bert_tf.extensions.export.saved_model.signatures import Signature
from bert_tf.fields import INPUTS
from bert_tf.head_spec import MULTI_LABEL
from bert_tf.io import documents
from bert_tf.runtime.devices import session_config
from bert_tf.tasks.base import Family
from bert_tf.tasks.decision import DECISION
from bert_tf.tasks.sentence.scores import THRESHOLD

tf1 = tf.compat.v1

_SERVE, _METHOD = "serve", "tensorflow/serving/predict"  # as TensorFlow Serving requires
_GRADIENT = "_gradient_op_type"  # names a function of the process that built the graph

# Warm-up requests that TensorFlow Serving runs on loading a model, so that the first client does not wait: records of
# `tensorflow.serving.PredictionLog`, written without its package because little of it is needed. Field numbers are those of
# prediction_log.proto, predict.proto and model.proto of TensorFlow Serving.
_REQUESTS_FILE = "tf_serving_warmup_requests"
_PREDICT_LOG, _REQUEST = 6, 1  # of PredictionLog, of PredictLog
_MODEL, _INPUTS, _SIGNATURE = 1, 2, 3  # the first two of PredictRequest, the last of ModelSpec
_KEY, _VALUE = 1, 2  # of an entry of a map
_WORD, _OPTIONS = "text ", 2
_IDS, _MASK, _ = (field.name for field in INPUTS)


def write(exported: ExportJob, folder: Path) -> None:
    """Writes a model deterministically into an empty folder; raises CheckpointError for unusable weights."""
    decisions = documents.to_json(_decisions(exported.family), ensure_ascii=False, indent=2) + "\n"
    files = {**exported.trained.vocabulary.files(), "decisions.json": decisions}

    def build() -> tuple[dict[str, Signature], dict[str, tf.Tensor]]:
        built = signatures.build(exported)
        # On loading, a tensor of each file name is replaced with the file's path.
        return built, {name: tf.constant(name, name=f"asset_{number}") for number, name in enumerate(files)}

    with graph.loaded(exported.trained, build) as (session, (built, assets)):
        builder = tf1.saved_model.Builder(os.fspath(folder))
        builder.add_meta_graph_and_variables(
            session,
            [_SERVE],
            signature_def_map=_definitions(built),
            saver=tf1.train.Saver(tf1.trainable_variables()),
            clear_devices=True,
            strip_default_attrs=True,
        )
        builder.save()
    _complete(folder / "saved_model.pb", files, assets)
    _write_requests(folder, exported, built)


def _definitions(built: Mapping[str, Signature]) -> dict[str, Any]:
    return {
        name: tf1.saved_model.build_signature_def(
            {key: tf1.saved_model.build_tensor_info(tensor) for key, tensor in signature.inputs.items()},
            {key: tf1.saved_model.build_tensor_info(tensor) for key, tensor in signature.outputs.items()},
            _METHOD,
        )
        for name, signature in built.items()
    }


def _complete(path: Path, files: Mapping[str, str], tensors: Mapping[str, tf.Tensor]) -> None:
    """Adds the assets to a graph and removes what depends on this process."""
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    (meta_graph,) = model.meta_graphs
    for node in meta_graph.graph_def.node:
        node.attr.pop(_GRADIENT, None)
    assets = path.parent / "assets"
    assets.mkdir(exist_ok=True)
    for name, text in files.items():
        (assets / name).write_bytes(text.encode())
        meta_graph.asset_file_def.add(filename=name, tensor_info={"name": tensors[name].name})
    path.write_bytes(model.SerializeToString(deterministic=True))


def _decisions(family: Family) -> dict[str, Any]:
    rules: dict[str, Any] = dataclasses.asdict(family) if dataclasses.is_dataclass(family) else {}
    rules.pop(DECISION, None)
    chosen = rule(family)
    threshold = {"threshold": THRESHOLD} if family.kind == MULTI_LABEL and "thresholds" not in chosen.get(DECISION, {}) else {}
    return {"kind": family.kind, "labels": list(family.labels), **family.record(), **rules, **chosen, **threshold}


def _write_requests(folder: Path, exported: ExportJob, built: Mapping[str, Signature]) -> None:
    """Writes two requests per signature: a short text and one that is truncated."""
    place = folder / "assets.extra" / _REQUESTS_FILE
    place.parent.mkdir()
    with tf.io.TFRecordWriter(str(place)) as writer:
        for tokens in (4, exported.trained.max_seq_length):
            for name, signature in sorted(built.items()):
                writer.write(
                    _log(name, {key: _request_value(key, tensor, tokens) for key, tensor in sorted(signature.inputs.items())})
                )


def _request_value(name: str, tensor: tf.Tensor, tokens: int) -> Any:
    """An input value of one example with `tokens` tokens."""
    if name == "examples":
        ids = tf.train.Feature(int64_list=tf.train.Int64List(value=[0] * tokens))
        return [tf.train.Example(features=tf.train.Features(feature={_IDS: ids})).SerializeToString(deterministic=True)]
    if tensor.dtype == tf.string:
        text = (_WORD * tokens).encode()
        return [text] if tensor.shape.rank == 1 else [[text] * _OPTIONS]
    shape = [tokens if size is None else size for size in tensor.shape.as_list()[1:]]
    return np.full([1, *shape], name == _MASK, tensor.dtype.as_numpy_dtype)


def _log(signature: str, inputs: Mapping[str, Any]) -> bytes:
    model = _field(_SIGNATURE, signature.encode())
    entries = (
        _field(_KEY, name.encode()) + _field(_VALUE, tf.make_tensor_proto(value).SerializeToString(deterministic=True))
        for name, value in inputs.items()
    )
    request = _field(_MODEL, model) + b"".join(_field(_INPUTS, entry) for entry in entries)
    return _field(_PREDICT_LOG, _field(_REQUEST, request))


def _field(number: int, value: bytes) -> bytes:
    """A length-delimited field in the protocol buffers wire format."""
    return bytes([number << 3 | 2, *_varint(len(value))]) + value


def _varint(number: int) -> Iterator[int]:
    while number > 0x7F:
        yield number & 0x7F | 0x80
        number >>= 7
    yield number


def open_folder(folder: Path) -> Compute:
    """A function from ids to the head's outputs, which runs with TensorFlow alone."""
    import tensorflow_text  # noqa: F401  (brings operations of the graph)

    session = tf1.Session(graph=tf.Graph(), config=session_config())
    with session.graph.as_default():
        signature = tf1.saved_model.load(session, [_SERVE], str(folder)).signature_def[signatures.IDS]
    run = {name: info.name for name, info in signature.outputs.items()}

    def compute(batch: Batch) -> dict[str, Any]:
        outputs = session.run(run, {info.name: batch[name] for name, info in signature.inputs.items()})
        return {**outputs, **{name: outputs[signatures.raw(name)] for name in outputs if signatures.raw(name) in outputs}}

    return compute
