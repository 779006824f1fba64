"""Fine-tuning as a call."""

from __future__ import annotations

import os
from typing import Any

from bert_tf.errors import DataError
from bert_tf.jobs import fine_tune as job
from bert_tf.jobs.fine_tune_config import configured
from bert_tf.jobs.settings import ActionSettings
from bert_tf.library.loading import load
from bert_tf.library.model import Model
from bert_tf.profiling.timing.wall_clock import WALL
from bert_tf.settings import settings_of
from bert_tf.tasks.base import DEV, Task

_ACTIONS = frozenset(row.name for row in settings_of(ActionSettings))


def fine_tune(task: str | Task, *, output_dir: str | os.PathLike[str] | None = None, **settings: Any) -> Model:
    """Trains a model, and evaluates it where there is data for that; does what `run_classifier.py` does.

    The folder holds what the command leaves, `report.html` included. The same call again goes on where training was stopped.

    Args:
      task: a name, as MRPC; or an object, as `SentenceTask`.
      output_dir: where checkpoints and results go; out/TASK where it is not given.
      **settings: those of the command, by the names of its flags: `num_train_epochs=3`, `learning_rate=2e-5`,
        `init_checkpoint="uncased_L-12_H-768_A-12"`.

    Returns:
      The trained model; of a run that was evaluated while it trained, the best.

    Raises:
      BertError: something that the caller can fix, as a setting that is unknown; one line.
      KeyboardInterrupt: Ctrl-C; a checkpoint was saved first.
    """
    own = None if isinstance(task, str) else task
    given = {**settings, **({} if output_dir is None else {"output_dir": os.fspath(output_dir)})}
    if own is not None and not _ACTIONS & given.keys():
        given.update(do_train=True, do_eval=_has_dev(own))
    named = {"task_name": task} if own is None else {}
    WALL.restart()
    done = job.fine_tune(configured(own, **named, **given), environment=os.environ, task=own)
    if done.stopped_by is not None:
        raise KeyboardInterrupt(f"training was stopped at step {done.step}; the same call continues there")
    return load(done.output_dir, task=done.job.task, data_dir=done.job.data.folder)


def _has_dev(task: Task) -> bool:
    try:
        return bool(task.splits("", DEV))
    except DataError:
        return False
