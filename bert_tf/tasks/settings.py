"""Settings of all tasks in groups: custom data, and those of families."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.settings import group, replaced, setting, settings_of
from bert_tf.tasks.custom import FILES, NAME, SKIP, CustomSettings
from bert_tf.tasks.pretraining import settings as pretraining
from bert_tf.tasks.pretraining.settings import PretrainingSettings


@dataclasses.dataclass(frozen=True)
class SpanSettings:
    """Settings of windows and of answer decoding."""

    predict_file: str | None = setting(None, "--dev_file and --test_file in one, as published")
    doc_stride: int = setting(128, "word pieces from one window of a long paragraph to the next", lowest=1)
    max_query_length: int = setting(64, "longest question in word pieces; what is beyond is cut off", lowest=1)
    n_best_size: int = setting(20, "answers to each question that nbest_predictions.json lists", lowest=1)
    max_answer_length: int = setting(30, "longest answer in word pieces", lowest=1)
    version_2_with_negative: bool = setting(False, "some questions have no answer; SQuAD2 has it on")
    null_score_diff_threshold: float = setting(0.0, "no answer where its score is above the best by more than this")


@dataclasses.dataclass(frozen=True)
class TagSettings:
    """Columns of words and tags in column files, and decoding."""

    word_column: int = setting(1, "column of the words, counted from 1; -1 is the last")
    tag_column: int = setting(-1, "column of the tags, counted from 1; -1 is the last")
    raw_text: bool = setting(False, "lines to predict are plain texts, split into words at blanks and punctuation")
    constrained_decoding: bool = setting(False, "the most probable tags of a sentence that are legal together, by Viterbi")


@dataclasses.dataclass(frozen=True)
class SimilaritySettings:
    """Scale of scores, and the temperature for pairs without scores."""

    highest_score: float = setting(
        1.0, "with --problem=similarity, the score of pairs that say the same; 0 is the lowest", lowest=1e-3
    )
    temperature: float = setting(0.05, "with --problem=contrastive, what cosines are divided by in the loss", lowest=1e-3)


@dataclasses.dataclass(frozen=True)
class TaskSettings:
    """Settings of tasks; `registry.settings_of_task` lists those a task accepts."""

    custom: CustomSettings = group(CustomSettings, f"Your own data (--task_name={NAME})")
    span: SpanSettings = group(SpanSettings, "Extractive question answering (--task_name=SQuAD, SQuAD2)")
    tags: TagSettings = group(TagSettings, "Tags (--task_name=CoNLL2003)")
    similarity: SimilaritySettings = group(
        SimilaritySettings, "Vectors (--task_name=custom --problem=similarity or contrastive)"
    )
    pretraining: PretrainingSettings = group(PretrainingSettings)


GROUPS: Mapping[str, type] = {
    "custom": CustomSettings,
    "span": SpanSettings,
    "tags": TagSettings,
    "similarity": SimilaritySettings,
    "pretraining": PretrainingSettings,
}
NAMES = tuple(row.name for row in settings_of(TaskSettings))
PATHS = (*FILES, "predict_file", *pretraining.PATHS)
KEPT = tuple(name for name in NAMES if name not in (*PATHS, SKIP, "labels"))  # of its training, a model is used with those


def of_record(record: Mapping[str, Any]) -> TaskSettings:
    """Returns the settings that a model was trained with; without files."""
    return of_values({name: record[name] for name in KEPT if name in record})


def of_values(values: Mapping[str, Any]) -> TaskSettings:
    """Groups settings by name, ignoring other names."""
    return replaced(TaskSettings(), values)
