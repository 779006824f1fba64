"""Settings of sentence-embedding tasks."""

from __future__ import annotations

import dataclasses

from bert_tf.settings import setting


@dataclasses.dataclass(frozen=True)
class SimilaritySettings:
    """Scale of scores, and the temperature for pairs without scores."""

    highest_score: float = setting(
        1.0, "with --problem=similarity, the score of pairs that say the same; 0 is the lowest", lowest=1e-3
    )
    temperature: float = setting(0.05, "with --problem=contrastive, what cosines are divided by in the loss", lowest=1e-3)
