"""Tags: a tag for each word, such as entities or parts of speech (docs/tagging.md)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.extension import Extension, NewKind, NewTask, Usage
from bert_tf.head_spec import TAGS
from bert_tf.settings import setting

CONLL2003 = "CoNLL2003"

_TASK = f"{__name__}.family:task"
_TAKES = ("train_file", "dev_file", "test_file", "skip_bad_rows")


@dataclasses.dataclass(frozen=True)
class TagSettings:
    """Columns of words and tags in column files, and decoding."""

    TITLE: ClassVar[str] = "Tags (--task_name=CoNLL2003)"

    word_column: int = setting(1, "word column, counted from 1; -1 is the last", column_of="rows")
    tag_column: int = setting(-1, "tag column, counted from 1; -1 is the last", column_of="labels")
    raw_text: bool = setting(
        False, "text to predict is plain, one sentence per line, split at blanks and punctuation", column_of="rows"
    )
    constrained_decoding: bool = setting(False, "most probable legal tag sequence of a sentence (Viterbi)", decodes=True)


USAGE = Usage(
    {"text": "Ada built the mill in 1871."},
    "model.predict([{row}])[0].entities",
    options=', aggregation_strategy="simple"',
    call_options="",
)

EXTENSION = Extension(
    tasks={CONLL2003: NewTask(_TASK, takes=_TAKES)},
    of_tasks=TagSettings,
    kinds={
        TAGS: NewKind(
            family=f"{__name__}.family:TagFamily",
            head=f"{__name__}.head:TagHead",
            nodes=f"{__name__}.nodes:of_tags",
            client=f"{__name__}.client:tagged",
            prediction=f"{__name__}.predictions:TagPrediction",
            form=f"{__name__}.form:FORM",
            row=f"{__name__}.columns:row_of",
            usage=f"{__name__}:USAGE",
            problem=NewTask(_TASK, takes=(*_TAKES, "problem", "labels", "file_format")),
        )
    },
)
