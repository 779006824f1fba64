"""Span: questions about a text, answered by a part of it (docs/squad.md)."""

from bert_tf.extension import Extension, NewKind, NewTask
from bert_tf.extensions.span.settings import SpanSettings
from bert_tf.head_spec import SPAN

SQUAD, SQUAD2 = "SQuAD", "SQuAD2"

_TASK = f"{__name__}.family:task"
_TAKES = ("train_file", "dev_file", "test_file", "skip_bad_rows", "file_format")

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
            usage=f"{__name__}.usage:USAGE",
            problem=NewTask(_TASK, takes=(*_TAKES, "problem", "id_column")),
        )
    },
)
