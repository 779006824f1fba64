"""Computes exported models with ONNX Runtime, without TensorFlow.

Shapes: B rows of a batch, T tokens of the longest, D hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.batch.engine import Batch, Compute, InferenceOptions
from bert_tf.batch.trained import Trained
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.extensions.engines import AUTO, ONNXRUNTIME, onnxruntime_session
from bert_tf.extensions.engines.converted_engine import ConvertedEngine
from bert_tf.extensions.export import onnx_folder
from bert_tf.extensions.export.exported_model import ExportedModel
from bert_tf.extensions.export.onnx_folder import layer_output
from bert_tf.features.batching import Batching
from bert_tf.fields import INPUTS
from bert_tf.head_spec import CLS, MAX, MEAN, VECTORS
from bert_tf.runtime import cgroup
from bert_tf.training.settings import TENSORFLOW, MachineSettings, SpeedSettings

Floats = npt.NDArray[np.float32]

_MASK = INPUTS[1].name


def inference(settings: MachineSettings, batch_size: int | None, precision: str, graph: str) -> InferenceOptions:
    """Raises FlagError if the flags do not suit a model of this precision."""
    if settings.engine not in (TENSORFLOW, ONNXRUNTIME, AUTO):
        raise FlagError(f"--engine={settings.engine}: {graph} is computed by {ONNXRUNTIME}; leave the flag out")
    if settings.precision not in (SpeedSettings.precision, precision):
        raise FlagError(f"--precision={settings.precision}: {graph} was exported in {precision}; leave the flag out")
    if settings.devices.are_chosen and not settings.devices.asks_for_cpu:
        raise FlagError(f"{graph} is computed on the CPU: leave out the flags that choose devices")

    def batching(config: BertConfig, max_seq_length: int) -> Batching:
        del config
        return Batching(longest=max_seq_length)

    return InferenceOptions(
        lambda inference: ConvertedEngine(inference, precision, opened),
        batching,
        f"{ONNXRUNTIME} {precision}",
        settings.devices.intra_op_threads or cgroup.granted_cpus(),
        batch_size,
    )


def opened(model: Trained, threads: int) -> Compute:
    """Opens the graph of the model's head; raises CheckpointError for a model that is not exported."""
    if not isinstance(model, ExportedModel):
        raise CheckpointError(f"{model.prefix}: not an exported model; evaluate checkpoints and exported models apart")
    wanted, scope = model.vectors, model.facts.scope
    with onnx_folder.weights_checked(model.folder, model.facts):
        if wanted is None:
            return of_scope(model.place(onnx_folder.GRAPH), threads, [field.name for field in model.outputs], scope)
        names = [layer_output(number) for number in wanted.layers]
        compute = of_scope(model.place(onnx_folder.ENCODER), threads, names, scope)

    def vectors(batch: Batch) -> Mapping[str, Floats]:
        layers = compute(batch)
        tokens = [layers[name] for name in names]
        if wanted.pooling is not None:
            tokens = [_POOLINGS[wanted.pooling](one, batch[_MASK]) for one in tokens]
        return {VECTORS: np.concatenate(tokens, axis=-1)}

    return vectors


def of_scope(graph: Path, threads: int, outputs: Sequence[str], scope: str) -> Compute:
    """Opens a graph for outputs of one of its models, which have the scope before their names."""
    compute = onnxruntime_session.opened(graph, threads, [f"{scope}{name}" for name in outputs])
    return lambda batch: {name.removeprefix(scope): output for name, output in compute(batch).items()}


def _mean(tokens: Floats, mask: npt.NDArray[Any]) -> Floats:
    real = mask[:, :, None].astype(np.float32)  # [B, T, 1]
    return np.asarray((tokens * real).sum(axis=1) / real.sum(axis=1), np.float32)


# From tokens [B, T, D] and a mask [B, T] to [B, D], ignoring padding.
_POOLINGS: Mapping[str, Callable[[Floats, npt.NDArray[Any]], Floats]] = {
    MEAN: _mean,
    CLS: lambda tokens, _: tokens[:, 0],
    MAX: lambda tokens, mask: np.where(mask[:, :, None] > 0, tokens, -np.inf).max(axis=1),
}
