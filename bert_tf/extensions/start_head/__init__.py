"""A training that begins with the head of a trained model instead of a new one (docs/planning.md)."""

from __future__ import annotations

import dataclasses

from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.extension import Extension, Settings
from bert_tf.settings import training_setting


@dataclasses.dataclass(frozen=True)
class StartHeadSettings(Settings):
    start_head: str | None = training_setting(
        None,
        "trained model with labels of this task, as --init_checkpoint: begin with its pooler and output layer, not a new head",
        refuse_missing=refuse_missing_model,
    )


EXTENSION = Extension(settings=StartHeadSettings, programs=("fine-tune",), part=f"{__name__}.part:StartHead")
