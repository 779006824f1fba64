"""Similarity: vectors of texts, learned from pairs with scores or from matching pairs (docs/vectors.md)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.extension import Extension, NewKind, NewTask, Usage
from bert_tf.head_spec import CONTRASTIVE, SIMILARITY
from bert_tf.settings import setting

STS_B_VECTORS = "STS-B-vectors"

_TASK = f"{__name__}.family:task"
_SCORE, _TEMPERATURE = "highest_score", "temperature"
_TAKES = (
    *("train_file", "dev_file", "test_file", "skip_bad_rows", "problem", "text_a", "text_b", "label_column", "id_column"),
    *("file_format", "has_header"),
)


@dataclasses.dataclass(frozen=True)
class SimilaritySettings:
    """Scale of scores, and temperature for pairs without scores."""

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


def _kind(family: str, head: str, problem: NewTask) -> NewKind:
    return NewKind(
        family=f"{__name__}.family:{family}",
        head=f"{__name__}.head:{head}",
        nodes=f"{__name__}.nodes:of_pairs",
        client=f"{__name__}.client:alike",
        prediction=f"{__name__}.predictions:Prediction",
        form=f"{__name__}.form:FORM",
        usage=f"{__name__}:USAGE",
        problem=problem,
    )


USAGE = Usage(
    {"text_a": "The parcel arrived late.", "text_b": "The delivery took longer than promised."},
    "model.predict([{row}])[0].cosine",
)

EXTENSION = Extension(
    tasks={STS_B_VECTORS: NewTask(_TASK, takes=("skip_bad_rows",), without=(_SCORE, _TEMPERATURE), folder="STS-B")},
    of_tasks=SimilaritySettings,
    kinds={
        SIMILARITY: _kind("SimilarityFamily", "CosineHead", NewTask(_TASK, takes=_TAKES, without=(_TEMPERATURE,))),
        CONTRASTIVE: _kind("ContrastiveFamily", "ContrastiveHead", NewTask(_TASK, takes=_TAKES)),
    },
    evaluating=ZeroShotSettings,
    evaluator=f"{__name__}.zero_shot:ZeroShot",
)
