"""The trained model to evaluate where nothing is trained: that of the output folder, or that of --init_checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bert_tf import run_layout
from bert_tf.batch.trained import PRETRAINED, digest
from bert_tf.checkpoints.names import has_task_head
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.errors import BertError, CheckpointError, FlagError
from bert_tf.estimator import best, run, run_folder
from bert_tf.jobs import sources
from bert_tf.jobs.fine_tune_config import FineTuneConfig
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks.base import Task
from bert_tf.tasks.registry import get_task


class Found(NamedTuple):
    """A trained model, as it is named.

    Attributes:
      checkpoint: the name that TensorFlow knows it by.
      folder: with the record of its run, where there is one.
    """

    checkpoint: str
    folder: Path


def find(settings: FineTuneConfig, environment: Mapping[str, str], task: Task | None = None) -> Found:
    """Returns the model of the run in the output folder; where that has none, or it is named, that of --init_checkpoint.

    The published script's commands name the pretrained checkpoint in evaluation too: beside a run it changes nothing. Where the
    head of the task has no variables, as that of vectors, a pretrained model can be used as it is.

    Args:
      settings: name them.
      environment: of the process; where a converted checkpoint is kept.
      task: in the place of the task of the settings.

    Raises:
      CheckpointError: there is none, or it has no task head.
      FlagError: the output folder holds another run than the one that is named.
    """
    if best.of_run(settings.output.folder) is None and not _is_learned(task or _task(settings)):
        checkpoint = sources.find_model(settings.model, environment=environment).checkpoint
        return Found(checkpoint, Path(checkpoint).parent)
    return _trained(settings, environment)


def _task(settings: FineTuneConfig) -> Task:
    return get_task(settings.data.task_name or "", settings.of_task)


def _is_learned(task: Task) -> bool:
    """Whether the head of a task has variables; a family that cannot be told yet, as the labels are in a file, has such."""
    try:
        return bool(heads.of(task.family.head).variables(BertConfig(vocab_size=1)))
    except BertError:
        return True


def _trained(settings: FineTuneConfig, environment: Mapping[str, str]) -> Found:
    output_dir = settings.output.folder
    if "init_checkpoint" not in settings.given:
        return Found(run.require_checkpoint(output_dir), output_dir)
    named, own = sources.checkpoint_of(settings.model.init_checkpoint or "", environment=environment), best.of_run(output_dir)
    if own is None or named.resolve().parent in run_layout.own_folders(output_dir):
        _refuse_without_head(named)
        return Found(str(named), named.parent)
    if _is_trained(named) and digest(str(named)) != run_folder.trained(output_dir).get("checkpoint_sha256"):
        raise FlagError(
            f"--init_checkpoint={settings.model.init_checkpoint}: --output_dir={output_dir} holds another run, {own};"
            " name a new --output_dir for the results of this checkpoint, or leave out --init_checkpoint"
        )
    return Found(own, output_dir)


def _refuse_without_head(prefix: Path) -> None:
    if not _has_head(prefix):
        raise CheckpointError(
            f"{prefix}: {PRETRAINED}; train it first (--do_train),"
            " or name a trained checkpoint with --init_checkpoint, or its folder with --output_dir"
        )


def _has_head(prefix: Path) -> bool:
    """Whether a checkpoint has the head of a task: a run's has, even where that owns no variables."""
    return "kind" in run_folder.trained(prefix.parent) or has_task_head(CheckpointReader(prefix).shapes)


def _is_trained(prefix: Path) -> bool:
    try:
        return _has_head(prefix)
    except CheckpointError:  # it was moved since the training
        return False
