"""Writes a SavedModel with the building blocks of Estimator's own export."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from bert_tf import documents, run_layout
from bert_tf.export import graph
from bert_tf.export.exported import Exported
from bert_tf.export.saved_model import signatures, warmup
from bert_tf.export.saved_model.signature import Signature
from bert_tf.head_spec import MULTI_LABEL
from bert_tf.tasks.base import Family
from bert_tf.tasks.sentence.scores import THRESHOLD

tf1 = tf.compat.v1

_SERVE, _METHOD = "serve", "tensorflow/serving/predict"  # as TensorFlow Serving wants them
_GRADIENT = "_gradient_op_type"  # names a function of the process that built the graph
_DECISIONS = "decisions.json"
_FOLDER = "assets"


class _Built(NamedTuple):
    signatures: Mapping[str, Signature]
    assets: Mapping[str, tf.Tensor]


def write(exported: Exported, folder: Path) -> None:
    """Writes a model deterministically into an empty folder; raises CheckpointError for unusable weights."""
    files = _asset_texts(exported)
    with graph.loaded(exported.trained, lambda: _Built(signatures.build(exported), _asset_tensors(files))) as (session, built):
        builder = tf1.saved_model.Builder(os.fspath(folder))
        builder.add_meta_graph_and_variables(
            session,
            [_SERVE],
            signature_def_map=_definitions(built.signatures),
            saver=tf1.train.Saver(tf1.trainable_variables()),
            clear_devices=True,
            strip_default_attrs=True,
        )
        builder.save()
    _complete(folder / "saved_model.pb", files, built.assets)
    warmup.write(folder, exported, built.signatures)


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
    _write_assets(files, tensors, path.parent, meta_graph)
    path.write_bytes(model.SerializeToString(deterministic=True))


def _asset_texts(exported: Exported) -> dict[str, str]:
    decisions = documents.to_json(_decisions(exported.family), ensure_ascii=False, indent=2) + "\n"
    return {run_layout.VOCABULARY: exported.trained.vocabulary.to_text(), _DECISIONS: decisions}


def _decisions(family: Family) -> dict[str, Any]:
    rules: dict[str, Any] = dataclasses.asdict(family) if dataclasses.is_dataclass(family) else {}  # type: ignore[call-overload]
    threshold = {"threshold": THRESHOLD} if family.kind == MULTI_LABEL else {}
    return {"kind": family.kind, "labels": list(family.labels), **family.record(), **rules, **threshold}


def _asset_tensors(files: Mapping[str, str]) -> dict[str, tf.Tensor]:
    """A tensor of each file name in the default graph; on loading it is replaced with the file's path."""
    return {name: tf.constant(name, name=f"asset_{number}") for number, name in enumerate(files)}


def _write_assets(files: Mapping[str, str], tensors: Mapping[str, tf.Tensor], folder: Path, meta_graph: Any) -> None:
    """Writes the files and registers them in `meta_graph`; `tensors` come from `named`."""
    (folder / _FOLDER).mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / _FOLDER / name).write_bytes(text.encode())
        meta_graph.asset_file_def.add(filename=name, tensor_info={"name": tensors[name].name})
