"""Pretrain: masked words and next sentences of unlabelled text, in one or two phases (docs/pretraining.md)."""

from bert_tf.extension import Extension, NewCommand, NewKind, NewTask, Usage
from bert_tf.extensions.pretrain.settings import PretrainingSettings
from bert_tf.head_spec import PRETRAINING

COMMAND, TASK = "pretrain", "Pretraining"

USAGE = Usage(
    {"text": "It rained all [MASK]."},
    "model.fill_mask([{row}])[0][0].words",
    "python -m bert_tf fill-mask {place} --text={row}",
    command="fill-mask",
    call_options="",
)

EXTENSION = Extension(
    part=f"{__name__}.part:Pretraining",
    commands={
        COMMAND: NewCommand(
            f"{__name__}.command:COMMAND",
            "Train, evaluate, predict",
            "pre-trains on unlabelled text: masked words, next sentences",
            computes=True,
        ),
        "pretraining-data": NewCommand(
            f"{__name__}.data_command:COMMAND", "Data and machine", "makes masked pre-training rows from your own text"
        ),
    },
    tasks={TASK: NewTask(f"{__name__}.family:task", COMMAND)},
    of_tasks=PretrainingSettings,
    kinds={
        PRETRAINING: NewKind(
            f"{__name__}.family:PretrainingFamily", f"{__name__}.head:PretrainingHead", usage=f"{__name__}:USAGE"
        )
    },
)
