"""Settings of similarity: the scale of scores, and the temperature for pairs without scores."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.settings import setting


@dataclasses.dataclass(frozen=True)
class SimilaritySettings:
    TITLE: ClassVar[str] = "Vectors (--task_name=custom --problem=similarity or contrastive)"

    highest_score: float = setting(
        1.0, "highest score of a pair with --problem=similarity; 0 is the lowest", lowest=1e-3, decodes=True
    )
    temperature: float = setting(0.05, "temperature of the loss with --problem=contrastive", lowest=1e-3)


@dataclasses.dataclass(frozen=True)
class ZeroShotSettings:
    zero_shot: bool = setting(
        False, "no trained head: compares cosines of mean vectors with the scores of pairs (--task_name=STS-B)"
    )
