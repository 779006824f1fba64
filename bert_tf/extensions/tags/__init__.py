"""Tags: a tag for each word, such as entities or parts of speech (docs/tagging.md)."""

from bert_tf.extension import Extension, NewKind, NewTask
from bert_tf.extensions.tags.settings import TagSettings
from bert_tf.head_spec import TAGS

CONLL2003 = "CoNLL2003"

_TASK = f"{__name__}.family:task"
_TAKES = ("train_file", "dev_file", "test_file", "skip_bad_rows")

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
            usage=f"{__name__}.usage:USAGE",
            problem=NewTask(_TASK, takes=(*_TAKES, "problem", "labels", "file_format")),
        )
    },
)
