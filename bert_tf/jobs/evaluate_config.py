"""Configuration of an evaluation job, made from settings by name."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from bert_tf.batch.job import EvaluateJob
from bert_tf.errors import FlagError
from bert_tf.jobs.batch_settings import JOB, MACHINE, MODEL, RULES, divided, make_job
from bert_tf.jobs.machine_settings import MachineSettings
from bert_tf.settings import MOST_EXAMPLES, Setting, named

# These hold several names: a text with commas, or a list.
_CHECKPOINTS = Setting(
    "checkpoints", str, None, "with commas: prefixes, folders for their best or newest, FOLDER:all for all steps, patterns"
)
_TASKS = Setting("task_name", str, None, "with commas: tasks whose dev splits to evaluate on")
SETTINGS = (
    _CHECKPOINTS,
    _TASKS,
    Setting("data_dir", str, None, "folder of the task's files; else $GLUE_DIR/TASK, data/TASK, the sample"),
    JOB,
    Setting("output_dir", str, None, "folder of results.tsv and results.json"),
    Setting(
        "zero_shot", bool, False, "without training: cosines of mean vectors against the scores of pairs, of --task_name=STS-B"
    ),
    Setting(
        "eval_batch_size",
        int,
        None,
        "examples at a time on each device; else by length, and a GPU's memory",
        1,
        highest=MOST_EXAMPLES,
    ),
    *RULES,
    *MODEL,
    *MACHINE,
)

DEFAULT_CHECKPOINT = ":default"  # as a name of --checkpoints; what --zero_shot evaluates where none is named
_ZERO_SHOT_DIR = "out/zero-shot"


class EvaluateConfig(NamedTuple):
    job: EvaluateJob
    machine: MachineSettings


def configured(**values: Any) -> EvaluateConfig:
    values = {name: value for name, value in values.items() if value is not None}
    lists = {row.name: _names(row, values.pop(row.name)) for row in (_CHECKPOINTS, _TASKS) if row.name in values}
    keys, machine = divided(named(SETTINGS, values))
    file, folder = keys.pop(JOB.name, None), keys.pop("data_dir", None)
    if keys.get("zero_shot") and not file:
        lists.setdefault(_CHECKPOINTS.name, [DEFAULT_CHECKPOINT])
        keys.setdefault("output_dir", _ZERO_SHOT_DIR)
    if _CHECKPOINTS.name in lists:
        keys["checkpoints"] = lists[_CHECKPOINTS.name]
    if _TASKS.name in lists:
        of_folder = {} if folder is None else {"data_dir": folder}
        keys["tasks"] = [{"name": name, **of_folder} for name in lists[_TASKS.name]]
    elif folder:
        raise FlagError("--data_dir is the folder of a task: name it with --task_name")
    elif not file:
        raise FlagError("--task_name is required, or --job=FILE")
    return EvaluateConfig(make_job(EvaluateJob, file, keys), machine)


def _names(row: Setting, value: Any) -> list[str]:
    if isinstance(value, os.PathLike):
        return [os.fspath(value)]
    names = value.split(",") if isinstance(value, str) else list(value)
    if not names or not all(names):
        raise FlagError(f"--{row.name}={value}: a name is empty; there is a comma too many")
    return [os.fspath(name) for name in names]
