"""Fine-tuning as a call."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any, overload

from bert_tf import progress, run_layout
from bert_tf.errors import DataError, FlagError
from bert_tf.jobs import fine_tune as job
from bert_tf.jobs import seeds as seeds_job
from bert_tf.jobs.fine_tune_config import SETTINGS, FineTuneConfig, configured
from bert_tf.jobs.settings import ActionSettings
from bert_tf.library.keywords import seeds_text, takes
from bert_tf.library.loading import load
from bert_tf.library.model import Model
from bert_tf.library.seed_runs import SeedRuns
from bert_tf.profiling.timing.wall_clock import WALL
from bert_tf.settings import settings_of
from bert_tf.tasks import families
from bert_tf.tasks.base import DEV, Task

TURN = threading.Lock()  # of what trains: where wall time goes is kept once a process
_ACTIONS = frozenset(row.name for row in settings_of(ActionSettings))


@overload
def fine_tune(
    task: str | Task | None = None, *, output_dir: str | os.PathLike[str] | None = None, seeds: None = None, **settings: Any
) -> Model: ...


@overload
def fine_tune(
    task: str | Task | None = None,
    *,
    output_dir: str | os.PathLike[str] | None = None,
    seeds: str | Iterable[int],
    **settings: Any,
) -> SeedRuns: ...


@takes(row for row in SETTINGS if row.name != "task_name")
def fine_tune(
    task: str | Task | None = None,
    *,
    output_dir: str | os.PathLike[str] | None = None,
    seeds: str | Iterable[int] | None = None,
    **settings: Any,
) -> Model | SeedRuns:
    """Trains a model and evaluates it if there is evaluation data; as `run_classifier.py`.

    The folder receives the command's files, `report.html` included. Repeating the call resumes a stopped training.
    Threads take turns; Ctrl-C reaches only the main thread.

    Args:
      task: a name such as MRPC, or an object such as a `SentenceTask`.
      output_dir: for checkpoints and results; by default out/TASK.
      seeds: several, as "1-3", [1, 2] or range(1, 4): one run for each, in sequence.
      **settings: the command's flags, by name: `num_train_epochs=3`, `learning_rate=2e-5`,
        `init_checkpoint="uncased_L-12_H-768_A-12"`.

    Returns:
      The trained model, the best one if the run was evaluated during training. With `seeds`, all runs.

    Raises:
      BertError: invalid settings or input, such as an unknown setting; the message is one line.
      KeyboardInterrupt: Ctrl-C; a checkpoint was saved first.
    """
    own = None if task is None or isinstance(task, str) else _checked(task)
    given = {**settings, "output_dir": output_dir, "seeds": seeds_text(seeds)}
    if own is not None and not _ACTIONS & given.keys():
        given.update(do_train=True, do_eval=_has_dev(own))
    if isinstance(task, str):
        given["task_name"] = task
    config = configured(own, **given)
    with TURN:
        WALL.restart()
        if config.train.seed_numbers:
            return _seed_runs(config, own)
        done = job.fine_tune(config, environment=os.environ, task=own)
    if done.stopped_by is not None:
        raise KeyboardInterrupt(f"training was stopped at step {done.step}; the same call continues there")
    progress.say(f"the run is in {done.output_dir}, its page in {done.output_dir / run_layout.PAGE}")
    return load(done.output_dir, task=done.job.task, data_dir=done.job.data.folder)


def _seed_runs(config: FineTuneConfig, own: Task | None) -> SeedRuns:
    series = seeds_job.fine_tune_seeds(config, environment=os.environ, task=own)
    if series.stopped_by is not None:
        raise KeyboardInterrupt(f"training was stopped after {len(series.results)} seeds; the same call continues there")
    folder = config.output.folder
    progress.say(f"the runs are in {folder}, their page in {folder / run_layout.PAGE}")
    trained = series.first.job if series.first else None
    return SeedRuns(folder, series.results, trained.task if trained else own, trained.data.folder if trained else None)


def _checked(task: Task) -> Task:
    if not hasattr(task, "family"):
        kind = type(task).__name__
        raise FlagError(f"task is a {kind}: give a name, as MRPC, or a task; rows in memory are SentenceTask(train=rows)")
    if not families.is_known(task.family.kind):  # else the trained model could not be loaded
        raise FlagError(
            f"{task.name}: no family of the kind {task.family.kind!r} is known; register it (tasks.families.register)"
        )
    return task


def _has_dev(task: Task) -> bool:
    try:
        return bool(task.splits("", DEV))
    except DataError:
        return False
