"""Similarity: vectors of texts, learned from pairs with scores or from matching pairs (docs/vectors.md)."""

from bert_tf.extension import Extension, NewKind, NewTask
from bert_tf.extensions.similarity.settings import SimilaritySettings, ZeroShotSettings
from bert_tf.head_spec import CONTRASTIVE, SIMILARITY

STS_B_VECTORS = "STS-B-vectors"

_TASK = f"{__name__}.family:task"
_SCORE, _TEMPERATURE = "highest_score", "temperature"
_TAKES = (
    *("train_file", "dev_file", "test_file", "skip_bad_rows", "problem", "text_a", "text_b", "label_column", "id_column"),
    *("file_format", "has_header"),
)


def _kind(family: str, head: str, problem: NewTask) -> NewKind:
    return NewKind(
        family=f"{__name__}.family:{family}",
        head=f"{__name__}.head:{head}",
        nodes=f"{__name__}.nodes:of_pairs",
        client=f"{__name__}.client:alike",
        prediction=f"{__name__}.predictions:Prediction",
        form=f"{__name__}.form:FORM",
        usage=f"{__name__}.usage:USAGE",
        problem=problem,
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
