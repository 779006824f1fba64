"""Distill: a small model that learns from the outputs of a trained one (docs/distillation.md)."""

from bert_tf.extension import Extension, NewCommand
from bert_tf.extensions.distill.settings import DistillSettings

FILE = "teacher.json"
NAME, SECTION = "distill", "Teacher and student"
TEACHER = "teacher"  # part of the wall time

EXTENSION = Extension(
    settings=DistillSettings,
    section=SECTION,
    programs=(NAME,),
    part=f"{__name__}.part:Distillation",
    panel=f"{__name__}.panel:of_runs",
    commands={
        NAME: NewCommand(
            f"{__name__}.command:COMMAND",
            "Train, evaluate, predict",
            "distils a trained model into a smaller one",
            computes=True,
        )
    },
    times={TEACHER: ("outputs of the teacher", "features")},
    files={(FILE,): "sizes of teacher and student, metrics of the teacher (docs/distillation.md)"},
)
