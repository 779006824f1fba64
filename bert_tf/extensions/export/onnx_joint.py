"""Several models of one exported folder, computed at once by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from bert_tf.batch.engine import InferenceOptions, computed
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError
from bert_tf.extensions.engines import onnxruntime_session
from bert_tf.extensions.engines.converted_engine import batching_of
from bert_tf.extensions.export import onnx_folder
from bert_tf.extensions.export.exported_model import ExportedModel
from bert_tf.features.batching import Batching
from bert_tf.features.columns import Features
from bert_tf.fields import Field
from bert_tf.tasks.base import Outputs

if TYPE_CHECKING:  # it imports TensorFlow
    from bert_tf.extensions.together.joint import Asked


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
        self._fields = [_scoped(one) for one in self._models]
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


def _scoped(model: ExportedModel) -> list[Field]:
    """The outputs of a model by their names in the graph."""
    return [field._replace(name=f"{model.facts.scope}{field.name}") for field in model.outputs]
