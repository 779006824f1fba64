"""A model of a folder that `export --format=onnx` wrote: ONNX Runtime computes it, and nothing imports TensorFlow."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.batch.trained import Trained
from bert_tf.checkpoints import exported
from bert_tf.checkpoints.exported import Export
from bert_tf.errors import CheckpointError
from bert_tf.fields import ROW, TOKEN, Field
from bert_tf.head_spec import MEAN, VECTORS, HeadSpec
from bert_tf.tasks import families
from bert_tf.tasks.base import Family
from bert_tf.tasks.decision import DECISION


@dataclasses.dataclass(frozen=True)
class ExportedModel(Trained):
    """`prefix` is the graph."""

    export: Export | None = None

    @property
    def undecided(self) -> Trained:
        """Raises CheckpointError if the graph divides its logits by temperatures."""
        if any(temperature != 1.0 for temperature in self.record.get(DECISION, {}).get("temperatures", ())):
            raise CheckpointError(f"{self.prefix}: its graph has the temperatures of a calibrated model; name the run instead")
        return super().undecided

    @property
    def facts(self) -> Export:
        if self.export is None:
            raise ValueError("an exported model has a record")
        return self.export

    @functools.cached_property
    def head(self) -> HeadSpec:
        return self.given_head or families.of_record(self.record).head

    @functools.cached_property
    def step(self) -> int:
        return self.facts.step

    @property
    def outputs(self) -> Sequence[Field]:
        vectors = self.vectors
        if vectors is None:
            return self.facts.outputs
        return [Field(VECTORS, TOKEN if vectors.pooling is None else ROW, np.float32, vectors.width)]

    @property
    def vectors(self) -> VectorsOfLayers | None:
        """What is computed from the encoder's layers, if it is not the trained head."""
        if self.given_head is None:
            return None
        options = {"layers": (-1,), "pooling": MEAN, **dict(self.head.options)}  # of the family similarity
        layers = tuple(number % self.config.num_hidden_layers for number in options["layers"])
        return VectorsOfLayers(layers, options["pooling"], len(layers) * self.config.hidden_size)

    @property
    def weight_bytes(self) -> int:
        return (self.folder / exported.WEIGHTS).stat().st_size

    def _refuse_head(self, family: Family) -> None:
        if (family.head.kind, family.head.num_labels) != (self.head.kind, self.head.num_labels):
            raise CheckpointError(f"{self.prefix}: its graph is of the kind {self.head.kind}; export a run of the other task")


class VectorsOfLayers(NamedTuple):
    layers: tuple[int, ...]  # from 0
    pooling: str | None  # of head_spec.POOLINGS; None keeps the vectors of tokens
    width: int
