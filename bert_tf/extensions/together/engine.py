"""Engines for several models: for those that read the same files, and for rows that some are asked about."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.batch.engine import InferenceOptions
from bert_tf.batch.trained import Trained, refuse_what_is_no_number
from bert_tf.checkpoints import model_formats
from bert_tf.features.columns import Features, Numbers
from bert_tf.tasks.base import Outputs

if TYPE_CHECKING:  # it imports TensorFlow
    from bert_tf.extensions.together.joint import JointForward

TRUNK = "trunk"  # of an exported model, in its record


class SharedEngine:
    """An `Engine` of several models, which are asked one after the other in their order; `joint` is to be closed."""

    def __init__(self, models: Sequence[Trained], inference: InferenceOptions) -> None:
        self._models, self._inference = models, inference
        self.joint = _joint(models, inference)
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


class Together:
    """See `batch.engine.SeveralModels`; rows that are equal, whichever model they are for, are computed once."""

    def __init__(self, models: Sequence[Trained], inference: InferenceOptions) -> None:
        self._models, self._inference = models, inference
        self._joint = _joint(models, inference)

    @staticmethod
    def trunk(trained: Trained) -> str:
        if not trained.has_checkpoint:
            return str(trained.record.get(TRUNK, ""))  # as exported
        from bert_tf.extensions.together import joint

        return joint.trunk(trained)

    def outputs(self, features: Mapping[int, Features]) -> dict[int, Outputs]:
        once, places = distinct(features)
        asked = {}
        for number in features:
            asked[number] = np.zeros(len(once), bool)
            asked[number][places[number]] = True
        model = self._models[0]
        batching = self._inference.batching(model.config, model.max_seq_length)
        of_all = self._joint.outputs_of(once, asked, batch_size=self._inference.batch_size, batching=batching)
        by_model: dict[int, Outputs] = {}
        for number, rows in places.items():
            fields = self._models[number].outputs
            by_model[number] = {field.name: of_all[number][field.name][once.places(field.axis, rows)] for field in fields}
            refuse_what_is_no_number(by_model[number], self._models[number].prefix)
        return by_model

    def close(self) -> None:
        self._joint.close()


def _joint(models: Sequence[Trained], inference: InferenceOptions) -> JointForward:
    """Of checkpoints, or of exported models."""
    exported = model_formats.of(models[0].prefix)
    if exported is not None:
        of_format: JointForward = exported.joint(models, inference)
        return of_format
    from bert_tf.extensions.together import joint

    return joint.of_options(models, inference)


def distinct(features: Mapping[int, Features]) -> tuple[Features, dict[int, Numbers]]:
    """The rows of all models, equal ones once, and where those of each model are among them."""
    numbers: dict[tuple[bytes, int], int] = {}  # by the tokens of a row
    places = {
        model: np.array([numbers.setdefault(row, len(numbers)) for row in _rows(of_model)], np.int64)
        for model, of_model in features.items()
    }
    rows = [np.frombuffer(tokens, np.int32) for tokens, _ in numbers]
    lengths = np.array(list(map(len, rows)), np.int32)
    first_lengths = np.array([first for _, first in numbers], np.int32)
    return Features(np.concatenate(rows), lengths, first_lengths, targets={}, fields=()), places


def _rows(features: Features) -> Iterator[tuple[bytes, int]]:
    ends = np.cumsum(features.lengths, dtype=np.int64)
    for end, length, first in zip(ends, features.lengths, features.first_lengths):
        yield features.token_ids[end - length : end].astype(np.int32).tobytes(), int(first)


def _digest(features: Features) -> str:
    digest = hashlib.sha256()
    for array in (features.token_ids, features.lengths, features.first_lengths):
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()
