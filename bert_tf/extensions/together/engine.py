"""One engine for several models: what is computed for all of them at once is kept until each has asked for it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from bert_tf.batch.engine import InferenceOptions
from bert_tf.batch.trained import Trained, refuse_what_is_no_number
from bert_tf.extensions.together.joint import JointForward
from bert_tf.features.columns import Features
from bert_tf.modeling.execution import Execution
from bert_tf.runtime.devices import session_config
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import Outputs


class SharedEngine:
    """An `Engine` of several models, which are asked one after the other in their order; `joint` is to be closed."""

    def __init__(self, models: Sequence[Trained], inference: InferenceOptions) -> None:
        self._models, self._inference = models, inference
        self.joint = JointForward(models, inference.machine or Machine(session_config()), inference.execution or Execution())
        self._kept: list[dict[str, Outputs]] = [{} for _ in models]  # by digest of features
        self._number = 0

    def load(self, trained: Trained) -> int:
        self._number = next(number for number, one in enumerate(self._models) if one.prefix == trained.prefix)
        return self.joint.steps[self._number]

    def outputs(self, features: Features) -> Outputs:
        key = _digest(features)
        if key not in self._kept[self._number]:
            model = self._models[self._number]
            batching = self._inference.batching(model.config, model.max_seq_length)
            every = self.joint.outputs(features, batch_size=self._inference.batch_size, batching=batching)
            for number in range(self._number, len(self._models)):  # those before have asked for all
                refuse_what_is_no_number(every[number], self._models[number].prefix)
                self._kept[number][key] = every[number]
        return self._kept[self._number].pop(key)

    def close(self) -> None:
        """Another model may still be computed."""


@contextlib.contextmanager
def shared(models: Sequence[Trained], inference: InferenceOptions) -> Iterator[InferenceOptions]:
    """Yields options of an engine that computes the models at once."""
    engine = SharedEngine(models, inference)
    with contextlib.closing(engine.joint):
        yield dataclasses.replace(inference, make=lambda _: engine)


def _digest(features: Features) -> str:
    digest = hashlib.sha256()
    for array in (features.token_ids, features.lengths, features.first_lengths):
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()
