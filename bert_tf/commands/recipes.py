"""Hyper-parameters for the default checkpoint, where the user gives none.

The published defaults suit BERT-Base and Large. The default checkpoint has 22 M parameters; its figures on MRPC (README,
"Measured") are for small batches, and without bias correction it hardly trains at a rate of 1e-4. The bundled sample has few
examples: it wants more epochs, and what keeps a model from learning them by heart, so that seeds differ less. Its values were
chosen by mean and spread over ten seeds (benchmarks/accuracy.md). A checkpoint that the user names gets the published defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from bert_tf.commands.classifier_flags import Settings

_ON_TASK_DATA = {"learning_rate": 5e-5, "train_batch_size": 12, "adam_bias_correction": True}
_ON_SAMPLE = {
    **_ON_TASK_DATA,
    "learning_rate": 8e-5,
    "train_batch_size": 8,
    "num_train_epochs": 6.0,
    "max_seq_length": 64,
    "freeze": "embeddings,0-1",
    "label_smoothing": 0.1,
}


def apply(settings: Settings, *, default_checkpoint: bool, sample_data: bool) -> tuple[Settings, dict[str, float | str]]:
    """Fills in what the command line leaves open.

    Returns:
      The settings, and the values that came from the recipe.
    """
    recipe = (_ON_SAMPLE if sample_data else _ON_TASK_DATA) if default_checkpoint else {}
    decided = settings.given | ({"num_train_epochs"} if settings.train.num_train_steps else set())
    chosen = {name: value for name, value in recipe.items() if name not in decided}
    return with_values(settings, chosen), chosen


def with_values(settings: Settings, values: Mapping[str, float | str]) -> Settings:
    """Returns the settings with some flags changed, whichever part they belong to."""
    parts = {}
    for name in ("data", "custom", "model", "train", "speed", "devices", "job"):
        part = getattr(settings, name)
        fields = {field.name for field in dataclasses.fields(part)}
        parts[name] = dataclasses.replace(part, **{key: value for key, value in values.items() if key in fields})
    return dataclasses.replace(settings, **parts)
