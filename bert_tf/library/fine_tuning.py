"""Trains a model in this process: `bert_tf.fine_tune`."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from bert_tf import extension, run_layout
from bert_tf.errors import DataError, FlagError
from bert_tf.extension import Driven, Driver
from bert_tf.io import log_form, progress
from bert_tf.library.keywords import takes
from bert_tf.profiling.wall_clock import TURN, WALL
from bert_tf.settings import settings_of
from bert_tf.training.run_spec import DRIVERS, SETTINGS, RunSpec, configured
from bert_tf.training.settings import ActionSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.tasks.base import Task
    from bert_tf.training.fine_tune import FineTuned

_ACTIONS = frozenset(row.name for row in settings_of(ActionSettings))


@takes(row for row in SETTINGS if row.name != "task_name")
def fine_tune(
    task: str | Task | None = None,
    *,
    output_dir: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Any:  # see __init__.pyi
    """Trains a model and evaluates it; as `python -m bert_tf fine-tune`.

    A task object without rows for dev is not evaluated; a task by name needs `do_train=True` for training alone.
    The folder receives the command's files, `report.html` included. Repeating the call resumes a stopped training.
    Threads take turns; Ctrl-C reaches only the main thread.

    Args:
      task: a name such as MRPC, or an object such as a `SentenceTask`.
      output_dir: for checkpoints and results; by default out/TASK, with `seeds` or `folds` out/TASK-seeds or out/TASK-folds.
      **settings: the command's flags, by name: `num_train_epochs=3`, `learning_rate=2e-5`,
        `init_checkpoint="uncased_L-12_H-768_A-12"`.

    Returns:
      The trained model, the best one if the run was evaluated during training. With a setting that asks for several runs,
      all of them.

    Raises:
      BertError: invalid settings or input, such as an unknown setting; the message is one line.
      KeyboardInterrupt: Ctrl-C; a checkpoint was saved first.
    """
    task_object = None if task is None or isinstance(task, str) else _checked(task)
    values = {**settings, "output_dir": output_dir}
    if task_object is not None and not _ACTIONS & values.keys():
        needs_dev = all(driver.needs_dev for name, driver in DRIVERS.items() if values.get(name) is not None)
        values.update(do_train=True, do_eval=not needs_dev or _has_dev(task_object))
    if isinstance(task, str):
        values["task_name"] = task
    config = configured(task_object, **values)
    for name, driver in config.drivers.items():
        return _several_runs(config, name, driver, task_object)
    trained = train(config, task_object)
    from bert_tf.library.loading import load_trained

    return load_trained(trained.output_dir, trained.run.spec, trained.run.task, trained.run.data.data_dir)


def train(config: RunSpec, task: Task | None = None) -> FineTuned:
    """Trains one run in this process; raises KeyboardInterrupt if it was stopped."""
    for name, driver in config.drivers.items():
        raise FlagError(f"{name}: make one call per {driver.run}, each with its own output_dir")
    from bert_tf.training import fine_tune as job

    with TURN, _log(config):
        WALL.restart()
        trained = job.fine_tune(config, environment=os.environ, task=task)
    if trained.stopped_by is not None:
        raise KeyboardInterrupt(f"training was stopped at step {trained.step}; the same call continues there")
    page = trained.output_dir / run_layout.PAGE
    progress.say(f"the run is in {trained.output_dir}" + (f", its report in {page}" if page.is_file() else ""))
    return trained


def _log(config: RunSpec) -> AbstractContextManager[None]:
    output = config.output
    if output.verbosity > 0:
        raise FlagError(f"--verbosity={output.verbosity}: only commands show TensorFlow's messages; in a program, give 0 or -1")
    return log_form.chosen(output.log_form, output.verbosity if "verbosity" in config.given else None)


def _several_runs(config: RunSpec, name: str, driver: Driver, task: Task | None) -> Any:
    with TURN, _log(config):
        WALL.restart()
        driven: Driven = extension.load(driver.function)(config, environment=os.environ, task=task)
    if driven.stopped_by is not None:
        raise KeyboardInterrupt(f"training was stopped after {driven.runs} {name}; the same call continues there")
    progress.say(driven.where)
    return driven.result


def _checked(task: Task) -> Task:
    if not hasattr(task, "family"):
        kind = type(task).__name__
        raise FlagError(f"task is a {kind}: give a name, as MRPC, or a task; rows in memory are SentenceTask(train=rows)")
    from bert_tf.tasks import families

    if not families.is_known(task.family.kind):  # else the trained model could not be loaded
        raise FlagError(
            f"{task.name}: no family of the kind {task.family.kind!r} is known; register it (tasks.families.register)"
        )
    return task


def _has_dev(task: Task) -> bool:
    from bert_tf.tasks.base import DEV

    try:
        return bool(task.splits("", DEV))
    except DataError:
        return False
