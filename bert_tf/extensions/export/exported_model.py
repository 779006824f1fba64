"""A model of a folder that `export --format=onnx` wrote: ONNX Runtime computes it, and nothing imports TensorFlow."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_tf.batch import loading
from bert_tf.batch.job import ModelFiles, ModelOverrides
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError, FlagError, OutputError
from bert_tf.estimator import run_folder
from bert_tf.extensions.export import onnx_folder
from bert_tf.extensions.export.onnx_folder import Export
from bert_tf.fields import ROW, TOKEN, Field
from bert_tf.head_spec import MEAN, VECTORS, HeadSpec
from bert_tf.settings import setting_names
from bert_tf.tasks import families
from bert_tf.tasks.base import Family
from bert_tf.tasks.decision import DECISION, Decision, is_decision

_NO_DECISION: Mapping[str, Any] = {"temperatures": []}


@dataclasses.dataclass(frozen=True)
class ExportedModel(Trained):
    """`prefix` is the graph, or the record of one of several models."""

    has_checkpoint = False
    export: Export | None = None

    @property
    def files(self) -> Mapping[str, Path]:
        inner = f"{self.folder.name}/" if self.facts.scope else ""
        own = {f"{inner}{path.name}": path for path in self.folder.iterdir() if path.is_file()}
        return {**own, **{name: self.place(name) for name in onnx_folder.OF_GRAPHS}}

    @property
    def undecided(self) -> Trained:
        """Raises CheckpointError if the graph divides its logits by temperatures."""
        if any(temperature != 1.0 for temperature in self.record.get(DECISION, {}).get("temperatures", ())):
            raise CheckpointError(f"{self.prefix}: its graph has the temperatures of a calibrated model; name the run instead")
        return super().undecided

    @property
    def fitted_on(self) -> Mapping[str, Any]:
        return self.record.get(DECISION, {}).get("fitted_on") or {}

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
        return self.place(onnx_folder.WEIGHTS).stat().st_size

    def place(self, name: str) -> Path:
        """A file of the folder, which may be of several models."""
        return self.facts.place(self.folder, name)

    def _refuse_head(self, family: Family) -> None:
        if (family.head.kind, family.head.num_labels) != (self.head.kind, self.head.num_labels):
            raise CheckpointError(f"{self.prefix}: its graph is of the kind {self.head.kind}; export a run of the other task")


def load(prefix: str, overrides: ModelOverrides) -> ExportedModel:
    """Describes the model of a graph, see `batch.loading.load_encoder`."""
    export = onnx_folder.read_export(prefix)
    folder = Path(prefix).parent
    path = folder / onnx_folder.RECORD
    replaced = [name for name in setting_names(ModelFiles) if getattr(overrides, name) is not None]
    if replaced:
        raise FlagError(f"--{replaced[0]}: {folder} is an exported model, which has its own; leave it out")
    record = export.model
    run_folder.refuse_damaged(path, record, export.learned_sha256, remedy=onnx_folder.AGAIN)
    if not is_decision(record.get(DECISION, _NO_DECISION)):
        raise OutputError(f"{path}: damaged: {DECISION} is no decision rule; {onnx_folder.AGAIN}")
    if "kind" in record and not Decision.from_record(record).fits(record["kind"], len(record["labels"])):
        raise OutputError(f"{path}: damaged: {DECISION} is the rule of another model; {onnx_folder.AGAIN}")
    return ExportedModel(**vars(loading.described(prefix, folder, record, path, overrides)), export=export)


class VectorsOfLayers(NamedTuple):
    layers: tuple[int, ...]  # from 0
    pooling: str | None  # of head_spec.POOLINGS; None keeps the vectors of tokens
    width: int
