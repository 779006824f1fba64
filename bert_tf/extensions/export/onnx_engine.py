"""Computes exported models with ONNX Runtime, without TensorFlow: one, or several of one folder at once.

Shapes: B rows of a batch, T tokens of the longest, D hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from bert_tf.batch.engine import Batch, Compute, InferenceOptions, computed
from bert_tf.batch.trained import Trained
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.extensions.engines import AUTO, ONNXRUNTIME, onnxruntime_session
from bert_tf.extensions.engines.converted_engine import ConvertedEngine, batching_of
from bert_tf.extensions.export import onnx_folder
from bert_tf.extensions.export.exported_model import ExportedModel
from bert_tf.extensions.export.onnx_folder import layer_output
from bert_tf.features.batching import Batching
from bert_tf.features.columns import Features
from bert_tf.fields import INPUTS
from bert_tf.head_spec import CLS, MAX, MEAN, VECTORS
from bert_tf.runtime import cgroup
from bert_tf.tasks.base import Outputs
from bert_tf.training.settings import TENSORFLOW, MachineSettings, SpeedSettings

if TYPE_CHECKING:  # it imports TensorFlow
    from bert_tf.extensions.together.joint import Asked

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


class JointSession:
    """As `together.joint.JointForward`."""

    def __init__(self, models: Sequence[Trained], inference: InferenceOptions) -> None:
        """Loads the weights; CheckpointError if the models are not of one folder."""
        self._models = [cast(ExportedModel, one) for one in models]
        first = self._models[0]
        self._graph = first.place(onnx_folder.GRAPH)
        for other in self._models[1:]:
            if other.place(onnx_folder.GRAPH) != self._graph:
                raise CheckpointError(
                    f"{other.folder} was exported apart from {first.folder}, so they share no layers; use each by itself,"
                    " or export their runs together (python -m bert_tf export RUN1 RUN2 --format=onnx)"
                )
        self._precision = first.facts.precision
        self._fields = [  # outputs by their names in the graph
            [field._replace(name=f"{one.facts.scope}{field.name}") for field in one.outputs] for one in self._models
        ]
        with onnx_folder.weights_checked(first.folder, first.facts):
            self._compute = onnxruntime_session.opened_for_outputs(self._graph, inference.threads)
        self.steps = [one.step for one in self._models]

    def outputs(self, features: Features, *, batch_size: int | None, batching: Batching) -> list[Outputs]:
        every = dict.fromkeys(range(len(self._models)), np.ones(len(features), bool))
        return self.outputs_of(features, every, batch_size=batch_size, batching=batching)

    def outputs_of(self, features: Features, asked: Asked, *, batch_size: int | None, batching: Batching) -> list[Outputs]:
        """Of the rows that are asked of each model; those of other rows are undefined.

        Rows that are asked of the same models are computed together.
        """
        results: list[Outputs] = [{field.name: features.empty(field) for field in one.outputs} for one in self._models]
        numbers = list(asked)
        sets, of_rows = np.unique(np.stack([asked[number] for number in numbers], axis=1), axis=0, return_inverse=True)
        for place, is_asked in enumerate(sets):
            rows = np.flatnonzero(of_rows.ravel() == place)
            models = [number for number, one in zip(numbers, is_asked) if one]
            if models:
                some = features if len(rows) == len(features) else features.taken(rows)
                outputs = self._outputs(some, models, batch_size, batching)
                for number in models:
                    for field, scoped in zip(self._models[number].outputs, self._fields[number]):
                        results[number][field.name][features.places(field.axis, rows)] = outputs[scoped.name]
        return results

    def _outputs(self, features: Features, models: Sequence[int], batch_size: int | None, batching: Batching) -> Outputs:
        fields = [field for number in models for field in self._fields[number]]
        return computed(
            fields,
            features,
            lambda batch: self._compute(batch, [field.name for field in fields]),
            batch_size=batch_size,
            batching=batching_of(batching, self._precision, rows=len(features)),
        )

    def close(self) -> None:
        del self._compute
