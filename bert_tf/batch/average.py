"""Averages the outputs of several models of one task, such as those of folds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import run_layout
from bert_tf.batch.engine import Engine, InferenceOptions
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError
from bert_tf.features.columns import Features
from bert_tf.head_spec import CONTRASTIVE, SIMILARITY, VECTORS
from bert_tf.io.log_form import log
from bert_tf.tasks.base import Outputs
from bert_tf.tasks.decision import DECISION

_OWN = ("checkpoint_sha256", DECISION)  # settings that may differ between models


class AverageEngine:
    """Mean of the head outputs of several checkpoints, all in memory; see `engine.Engine`."""

    def __init__(self, models: Sequence[Trained], inference: InferenceOptions) -> None:
        self._models = models
        self._engines: list[Engine] = [inference.engine() for _ in models]

    def load(self, trained: Trained) -> int:
        del trained  # the first of the models
        return max(engine.load(model) for engine, model in zip(self._engines, self._models))

    def outputs(self, features: Features) -> Outputs:
        each = [engine.outputs(features) for engine in self._engines]
        stacked = {name: np.stack([outputs[name] for outputs in each]) for name in each[0]}
        return {name: np.asarray(arrays.mean(axis=0, dtype=np.float64), np.float32) for name, arrays in stacked.items()}

    def close(self) -> None:
        for engine in self._engines:
            engine.close()


def averaging(models: Sequence[Trained], inference: InferenceOptions) -> InferenceOptions:
    """Options of an engine that averages the models, which must be `comparable`."""
    return dataclasses.replace(inference, make=lambda _: AverageEngine(models, inference))


def comparable(models: Sequence[Trained]) -> list[Trained]:
    """The models without their decision rules; CheckpointError unless their outputs mean the same."""
    plain = [model.undecided for model in models]
    decided = next((model for model in models if DECISION in model.record), None)
    if decided is not None:
        log.warning("%s: its %s is not followed: predictions are those of the mean", decided.prefix, run_layout.DECISION)
    first, *others = plain
    if first.head.kind in (SIMILARITY, CONTRASTIVE, VECTORS):
        raise CheckpointError(f"{first.prefix}: vectors of different models cannot be averaged")
    for other in others:
        differing = [name for name, value in _meaning(first).items() if _meaning(other).get(name) != value]
        if differing:
            raise CheckpointError(
                f"{other.prefix}: its {differing[0]} differs from that of {first.prefix}; average models of one task"
            )
    return plain


def _meaning(model: Trained) -> dict[str, Any]:
    """Settings that must be equal for outputs to be averaged."""
    shared = {name: value for name, value in model.settings.items() if name not in _OWN}
    return {**shared, "head": model.head, "labels": model.record.get("labels")}
