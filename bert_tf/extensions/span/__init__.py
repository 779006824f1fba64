"""Span: questions about a text, answered by a part of it (docs/squad.md)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.extension import Extension, NewKind, NewTask, Usage
from bert_tf.head_spec import SPAN
from bert_tf.io import files
from bert_tf.settings import setting

SQUAD, SQUAD2 = "SQuAD", "SQuAD2"

_TASK = f"{__name__}.family:task"
_TAKES = ("train_file", "dev_file", "test_file", "skip_bad_rows", "file_format")


@dataclasses.dataclass(frozen=True)
class SpanSettings:
    """Settings of windows and of answer decoding, as published (google-research/bert run_squad.py)."""

    TITLE: ClassVar[str] = "Extractive question answering (--task_name=SQuAD, SQuAD2)"

    predict_file: str | None = setting(
        None,
        "sets both --dev_file and --test_file, as in the published script",
        path=True,
        refuse_missing=files.refuse_missing,
    )
    doc_stride: int = setting(128, "stride between windows of a long paragraph in word pieces", lowest=1)
    max_query_length: int = setting(64, "maximum question length in word pieces", lowest=1)
    n_best_size: int = setting(20, "answers per question in nbest_predictions.json", lowest=1, decodes=True)
    max_answer_length: int = setting(30, "maximum answer length in word pieces", lowest=1, decodes=True)
    version_2_with_negative: bool = setting(False, "some questions have no answer; on for SQuAD2")
    null_score_diff_threshold: float = setting(
        0.0, "predict no answer if its score exceeds the best answer's by more than this", decodes=True
    )


USAGE = Usage(
    {"question": "Who built the mill?", "context": "Ada built the mill in 1871."},
    named=True,
    transformers="""\
import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForQuestionAnswering.from_pretrained(".")
inputs = tokenizer({question}, {context}, truncation="only_second", return_tensors="pt")
with torch.no_grad():
    outputs = model(**inputs)
start, end = int(outputs.start_logits.argmax()), int(outputs.end_logits.argmax())
tokenizer.decode(inputs["input_ids"][0, start : end + 1])""",  # transformers 5 has no pipeline for it
)

EXTENSION = Extension(
    tasks=dict.fromkeys((SQUAD, SQUAD2), NewTask(_TASK, takes=_TAKES)),
    of_tasks=SpanSettings,
    kinds={
        SPAN: NewKind(
            family=f"{__name__}.family:SpanFamily",
            head=f"{__name__}.head:SpanHead",
            nodes=f"{__name__}.nodes:of_spans",
            client=f"{__name__}.client:answered",
            prediction=f"{__name__}.predictions:Prediction",
            form=f"{__name__}.form:FORM",
            row=f"{__name__}.reader:row_of",
            usage=f"{__name__}:USAGE",
            problem=NewTask(_TASK, takes=(*_TAKES, "problem", "id_column")),
        )
    },
)
