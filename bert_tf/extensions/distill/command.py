"""Distill: trains a small model to imitate a trained one."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import run_layout
from bert_tf.errors import FlagError
from bert_tf.extensions.distill import NAME, RECIPE, SECTION
from bert_tf.head_spec import PRETRAINING
from bert_tf.io import documents, files
from bert_tf.library.fine_tuning import train
from bert_tf.library.keywords import takes
from bert_tf.operations import fine_tune
from bert_tf.settings import Setting, checked, named, setting_names, settings_of
from bert_tf.tasks import settings as tasks
from bert_tf.tasks.names import no_labels
from bert_tf.tasks.registry import canonical_name, names_with_labels, refuse_unlabelled, reject_unrelated_settings
from bert_tf.tasks.settings import CustomSettings, TaskSettings
from bert_tf.training import run_spec
from bert_tf.training.run_spec import DRIVERS, OF_PREDICTION, Program, RunSpec
from bert_tf.training.settings import DataSettings, TextSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.library.model import Model
    from bert_tf.tasks.base import Task

OF_ALL_TASKS = ("task_name", *setting_names(TextSettings))  # settings that a student takes from its teacher
_HELP = {
    "task_name": f"task of the data: {', '.join(names_with_labels())}",
    "data_dir": "folder of the task's files; default: the teacher's",
    "init_checkpoint": "checkpoint or folder that the student starts from; default: layers of the teacher",
}


def _sections() -> dict[str, list[Setting]]:
    taken = run_spec.sections(NAME)
    helped = {title: [row._replace(help=_HELP.get(row.name, row.help)) for row in rows] for title, rows in taken.items()}
    return {SECTION: helped.pop(SECTION), **helped}


SECTIONS = _sections()
SETTINGS = tuple(row for rows in SECTIONS.values() for row in rows)
DISTILL = Program(NAME, frozenset(row.name for row in SETTINGS), RECIPE, run_spec.OF_FAMILIES, recipe_of="distillation")

_OF_ROWS = {row.name: row for row in SETTINGS if row.of_rows}  # which of the teacher's data it was trained on
_OF_TEACHER = {**{row.name: row for row in settings_of(DataSettings, TaskSettings)}, **_OF_ROWS}
_BOOLEANS = {"True": True, "False": False}


@takes(row for row in SETTINGS if row.name not in ("teacher", *DRIVERS))
def distill(
    teacher: str | os.PathLike[str],
    task: Task | None = None,
    *,
    output_dir: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Model:
    """Trains a student of a trained model; as `python -m bert_tf distill`.

    The student learns from the softened outputs of the teacher (Hinton et al., 2015), and from the token vectors that enter its
    last layer; on request from labels, and from attention relations there (Wang et al., 2021, MiniLMv2). Task, data and text
    preparation are those of the teacher unless settings name others. Repeating the call resumes a stopped training.

        small = bert_tf.distill("out/mrpc", student_layers=3, output_dir="out/mrpc-3")

    Args:
      teacher: folder of a run (its best or newest checkpoint), or a checkpoint.
      task: for a teacher trained on rows in memory: an object such as a `SentenceTask`, with the same labels.
      output_dir: for checkpoints and results; by default out/TASK, with `seeds` out/TASK-seeds.
      **settings: the command's flags, by name.

    Returns:
      The trained student.

    Raises:
      BertError: invalid settings or input; the message is one line.
      KeyboardInterrupt: Ctrl-C; a checkpoint was saved first.
    """
    done = train(configured(task, **{**settings, "teacher": teacher, "output_dir": output_dir}), task)
    from bert_tf.library.loading import load_trained

    return load_trained(done.output_dir, done.run.spec, done.run.task, done.run.data.data_dir)


def configured(task: Task | None = None, /, **values: Any) -> RunSpec:
    """Task, data and text preparation are the teacher's, unless values name others."""
    settings = named(SETTINGS, values)  # reports a mistyped name before files are read
    if "teacher" not in settings:
        raise FlagError("TEACHER is required: the folder of a trained model, as in distill out/mrpc")
    teacher = settings["teacher"]
    record = _record(Path(teacher))
    if _trained(record).get("kind") == PRETRAINING:
        raise FlagError(f"{teacher}: {no_labels()}")
    names_no_data = task is None and settings.keys().isdisjoint(("task_name", "data_dir", "train_file"))
    if names_no_data and record.get("command") == "":  # another data set would take the place of its own
        raise FlagError(
            f"{teacher}: its record names no data (a fold, sweep --hold_out, or rows in memory);"
            " give --data_dir or --train_file, or in Python the task"
        )
    return made(_settings_of(record), settings, task)


def made(of_teacher: Mapping[str, Any], settings: dict[str, Any], task: Task | None) -> RunSpec:
    if task is not None:
        run_spec.refuse_for_objects(settings)
        of_teacher = {**{name: of_teacher[name] for name in OF_ALL_TASKS if name in of_teacher}, "task_name": task.name}
    else:
        of_teacher = _without_other_data(of_teacher, settings)
    asked, settings = settings.keys(), {**of_teacher, **settings}
    if "task_name" not in settings:
        raise FlagError(
            f"{settings['teacher']}: no run_config.json there names its task; is it a trained model? Then add --task_name"
        )
    if "init_checkpoint" in settings and settings.keys() & {"student_layers", "teacher_layers"}:
        raise FlagError(
            "--init_checkpoint and --student_layers exclude each other: the student is a model, or layers of the teacher"
        )
    if settings.keys() >= {"student_layers", "teacher_layers"}:
        raise FlagError("--student_layers and --teacher_layers exclude each other")
    if task is not None:
        return run_spec.made(settings, task.name, DISTILL)
    name = canonical_name(settings["task_name"])
    refuse_unlabelled(name)
    reject_unrelated_settings(name, settings, settings.get("problem"))
    spec = run_spec.made(settings, name, DISTILL)
    return spec if spec.actions.do_predict else dataclasses.replace(spec, given=spec.given - (OF_PREDICTION - asked))


def _without_other_data(of_teacher: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The teacher's settings without its data where flags name others: columns and rules stay unless the task is another."""
    task, problem = of_teacher.get("task_name"), of_teacher.get("problem", CustomSettings.problem)
    asked = settings.get("task_name", task)
    is_same = asked == task or (task is not None and canonical_name(asked) == task)
    if not is_same or settings.get("problem", problem) != problem:
        return {name: of_teacher[name] for name in OF_ALL_TASKS if name in of_teacher}
    paths = {"data_dir", *tasks.path_names()}
    others = paths & settings.keys()
    dropped = paths if "data_dir" in others else {"data_dir"} if others else set()
    if others & {"data_dir", "train_file"}:
        dropped = dropped | _OF_ROWS.keys()
    return {name: value for name, value in of_teacher.items() if name not in dropped}


def _settings_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Task, data and text preparation of a teacher, from its run record; damage is reported when it is loaded."""
    trained = _trained(record)
    settings = {name: trained[name] for name in OF_ALL_TASKS if name in trained}
    for name, value in run_layout.recorded_flags(record).items():
        row = _OF_TEACHER.get(name)
        if row is not None:
            settings[name] = checked(row, _typed(row, value))
    return settings


def _typed(row: Setting, value: str) -> Any:
    try:
        return _BOOLEANS.get(value, value) if row.kind is bool else row.kind(value)
    except ValueError:
        return value  # of a damaged record; `checked` names it


def _trained(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings that decided the result; empty in a damaged record."""
    values = record.get(run_layout.DETERMINING)
    return values if isinstance(values, dict) else {}


def _record(teacher: Path) -> dict[str, Any]:
    """Reads run_config.json without TensorFlow, whose import waits for the log to be set up."""
    folder = teacher if teacher.is_dir() else teacher.parent
    try:
        record = documents.parse_json(files.read_text(folder / run_layout.RECORD), has_paths=True)
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


COMMAND = fine_tune.command(
    DISTILL,
    "Distils a trained model into a smaller one (docs/distillation.md).",
    "python -m bert_tf distill out/mrpc --student_layers=3 --output_dir=out/mrpc-3",
    "student_layers unlabelled num_train_epochs init_checkpoint output_dir",
    "Task, data and text preparation are the teacher's unless flags name others.",
    SECTIONS,
    configured,
    dict.fromkeys(OF_ALL_TASKS, "the teacher's"),
)
