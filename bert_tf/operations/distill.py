"""Distill: trains a small model to imitate a trained one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import run_layout
from bert_tf.io import documents, files
from bert_tf.library.keywords import takes
from bert_tf.operations import fine_tune
from bert_tf.settings import Setting, checked, named, settings_of
from bert_tf.tasks.settings import TaskSettings
from bert_tf.training.fine_tune_config import (
    DISTILL,
    DISTILL_SECTIONS,
    DISTILL_SETTINGS,
    DRIVERS,
    OF_ALL_TASKS,
    FineTuneConfig,
    configured_distillation,
)
from bert_tf.training.settings import DataSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.library.model import Model
    from bert_tf.tasks.base import Task

_OF_TEACHER = {row.name: row for row in settings_of(DataSettings, TaskSettings)}
_BOOLEANS = {"True": True, "False": False}


@takes(row for row in DISTILL_SETTINGS if row.name not in ("teacher", *DRIVERS))
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
      output_dir: for checkpoints and results; by default out/TASK.
      **settings: the command's flags, by name.

    Returns:
      The trained student.

    Raises:
      BertError: invalid settings or input; the message is one line.
      KeyboardInterrupt: Ctrl-C; a checkpoint was saved first.
    """
    done = fine_tune.train(configured(task, **{**settings, "teacher": teacher, "output_dir": output_dir}), task)
    from bert_tf.library.loading import load

    return load(done.output_dir, task=done.job.task, data_dir=done.job.data.data_dir)


def configured(task: Task | None = None, /, **values: Any) -> FineTuneConfig:
    given = named(DISTILL_SETTINGS, values)  # reports a mistyped name before files are read
    return configured_distillation(_settings_of(given.get("teacher")), task, **given)


def _settings_of(teacher: str | None) -> dict[str, Any]:
    """Task, data and text preparation of a teacher, from its run record; damage is reported when it is loaded."""
    record = _record(Path(teacher or ""))
    trained = record.get(run_layout.DETERMINING)
    found = {name: trained[name] for name in OF_ALL_TASKS if name in trained} if isinstance(trained, dict) else {}
    for name, value in run_layout.recorded_flags(record).items():
        row = _OF_TEACHER.get(name)
        if row is not None:
            found[name] = checked(row, _typed(row, value))
    return found


def _typed(row: Setting, value: str) -> Any:
    try:
        return _BOOLEANS.get(value, value) if row.kind is bool else row.kind(value)
    except ValueError:
        return value  # of a damaged record; `checked` names it


def _record(teacher: Path) -> dict[str, Any]:
    """Reads run_config.json without TensorFlow, whose import waits for the log to be set up."""
    folder = teacher if teacher.is_dir() else teacher.parent
    try:
        found = documents.parse_json(files.read_text(folder / run_layout.RECORD))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


COMMAND = fine_tune.command(
    DISTILL,
    "Distils a trained model into a smaller one (docs/distillation.md).",
    "python -m bert_tf distill out/mrpc --student_layers=3 --output_dir=out/mrpc-3",
    "student_layers unlabelled num_train_epochs init_checkpoint output_dir",
    "Task, data and text preparation are the teacher's unless flags name others.",
    DISTILL_SECTIONS,
    configured,
    dict.fromkeys(OF_ALL_TASKS, "the teacher's"),
)
