"""Few labels: a recipe for 8 to 64 examples per class, with a contrastive loss (docs/few_labels.md)."""

from __future__ import annotations

import dataclasses

from bert_tf.extension import Extension, Settings
from bert_tf.settings import learned_setting, training_setting


@dataclasses.dataclass(frozen=True)
class FewLabelSettings(Settings):
    few_labels: bool = training_setting(False, "recipe for 8 to 64 examples per class (docs/few_labels.md)", resolved=True)
    contrastive_weight: float = learned_setting(
        0.0,
        "share of the loss that moves texts of a class together and others apart (Gunel et al., 2021), below 1",
        lowest=0.0,
        below=1.0,
        added_later=True,
    )


EXTENSION = Extension(settings=FewLabelSettings, programs=("fine-tune",), part=f"{__name__}.part:FewLabels")
