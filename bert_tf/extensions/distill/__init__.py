"""Distill: a small model that learns from the outputs of a trained one.

Settings and recipe were measured in docs/distillation.md.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence

from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.config import MOST_LAYERS
from bert_tf.errors import FlagError
from bert_tf.extension import Extension, NewCommand, Settings
from bert_tf.io import files
from bert_tf.settings import learned_setting, setting

FILE = "teacher.json"
NAME, SECTION = "distill", "Teacher and student"
TEACHER = "teacher"  # part of the wall time

FEW_TEXTS = 5000  # training rows below which a student needs more texts
RECOMBINED = 5  # pairs made for each row
RECIPE: Mapping[str, float | str] = {"learning_rate": 4e-4, "num_train_epochs": 8.0, "adam_bias_correction": True}
RECIPE_OF_PAIRS: Mapping[str, float | str] = {"train_batch_size": 8, "num_train_epochs": 4.0}  # with recombined pairs

_Chosen = tuple[float, tuple[int, ...]]  # the sum of distances from wanted layers, and layers


@dataclasses.dataclass(frozen=True)
class DistillSettings(Settings):
    teacher: str | None = setting(
        None,
        "folder of the teacher's run, or its checkpoint",
        positional=True,
        required=True,
        refuse_missing=refuse_missing_model,
    )
    student_layers: int | None = setting(
        None, "layers of the student; default: half of the teacher's", lowest=1, highest=MOST_LAYERS
    )
    teacher_layers: str | None = learned_setting(
        None, "layers of the teacher that the student starts from, such as 0,2,5; default: evenly spaced, with the last"
    )
    unlabelled: str | None = setting(
        None,
        "file of more texts to learn from, as predict reads it; labels are not used",
        path=True,
        refuse_missing=files.refuse_missing,
    )
    recombine: int | None = learned_setting(
        None,
        "for tasks on pairs: pairs of the training texts in other combinations to learn from, for each row;"
        f" default: {RECOMBINED} for fewer than {FEW_TEXTS:,} rows without --unlabelled, else 0",
        lowest=0,
        highest=100,
        added_later=True,
    )
    distill_temperature: float = learned_setting(2.0, "temperature of the teacher's probabilities", lowest=0.1)
    output_weight: float = learned_setting(1.0, "weight of the teacher's outputs in the loss", lowest=0.0)
    label_weight: float = learned_setting(0.0, "weight of the labels", lowest=0.0)
    state_weight: float = learned_setting(30.0, "weight of the token vectors before the last layer; 0: off", lowest=0.0)
    relation_weight: float = learned_setting(
        0.0, "weight of the attention relations of the last layer (MiniLMv2); 0: off", lowest=0.0
    )

    @property
    def compares_states(self) -> bool:
        """Whether vectors within the encoder are compared, which dropout would make differ."""
        return self.state_weight > 0 or self.relation_weight > 0

    def layers(self, of_teacher: int, kind_of: Callable[[int], object] = lambda _: None) -> tuple[int, ...]:
        """Layers of the teacher that the student starts from, in order; each keeps its kind, see `BertConfig.kind_of_layer`."""
        if self.teacher_layers is not None:
            asked = _layer_numbers(self.teacher_layers, of_teacher)
            fitting = _of_their_kinds(asked, of_teacher, kind_of)
            if asked != fitting:
                change = "layers of the student would have another window, or lack a LayerNorm"
                raise FlagError(f"--teacher_layers={self.teacher_layers}: {change}; give {','.join(map(str, fitting))}")
            return asked
        count = self.student_layers or -(-of_teacher // 2)
        if count > of_teacher:
            raise FlagError(f"--student_layers={count}: the teacher has {of_teacher} layers")
        even = tuple(of_teacher * (number + 1) // count - 1 for number in range(count))
        return _of_their_kinds(even, of_teacher, kind_of)


def _layer_numbers(text: str, layers: int) -> tuple[int, ...]:
    """Parses --teacher_layers, such as 0,2,5."""
    parts = [part.strip() for part in text.split(",")]
    numbers = [int(part) if re.fullmatch(r"\d{1,4}", part, re.ASCII) else layers for part in parts]
    if max(numbers) >= layers or sorted(set(numbers)) != numbers:
        raise FlagError(f"--teacher_layers={text}: give numbers from 0 to {layers - 1} in rising order, as 0,{layers - 1}")
    return tuple(numbers)


def _of_their_kinds(wanted: Sequence[int], of_teacher: int, kind_of: Callable[[int], object]) -> tuple[int, ...]:
    """The layers nearest to the wanted ones, in rising order, of which each has the kind of its number in the student."""
    nearest: dict[int, _Chosen] = {-1: (0, ())}  # by the last layer
    for number, near in enumerate(wanted):
        longer: dict[int, _Chosen] = {}
        below: _Chosen = (math.inf, ())
        for layer in range(of_teacher):
            below = min(below, nearest.get(layer - 1, below))
            if kind_of(layer) == kind_of(number):
                longer[layer] = below[0] + abs(layer - near), (*below[1], layer)
        nearest = longer
    return min(nearest.values())[1]


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
