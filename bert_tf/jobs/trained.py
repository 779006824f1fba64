"""Finds the model to evaluate without training: of the output folder, or of --init_checkpoint."""

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
from bert_tf.estimator import kept, run, run_folder
from bert_tf.jobs import sources
from bert_tf.jobs.fine_tune_config import FineTuneConfig
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks.base import Task
from bert_tf.tasks.registry import get_task


class Found(NamedTuple):
    checkpoint: str  # TensorFlow's prefix
    folder: Path  # with the run's record, if there is one


def find(settings: FineTuneConfig, environment: Mapping[str, str], task: Task | None = None) -> Found:
    """Finds the model of the run in the output folder; without one, or if named, that of --init_checkpoint.

    The published script's commands name the pretrained checkpoint in evaluation too: with a run it has no effect. If
    the task's head has no variables, as for vectors, a pretrained model suffices. FlagError if the output folder holds
    another run than the named one.
    """
    if kept.best_or_newest(settings.output.folder) is None and not _is_learned(task or _task(settings)):
        checkpoint = sources.find_model(settings.model, environment=environment).checkpoint
        return Found(checkpoint, Path(checkpoint).parent)
    return _trained(settings, environment)


def _task(settings: FineTuneConfig) -> Task:
    return get_task(settings.data.task_name or "", settings.of_task)


def _is_learned(task: Task) -> bool:
    """Whether a task's head has variables; assumed if the family is unknown until labels are read from a file."""
    try:
        return bool(heads.of(task.family.head).variables(BertConfig(vocab_size=1)))
    except BertError:
        return True


def _trained(settings: FineTuneConfig, environment: Mapping[str, str]) -> Found:
    output_dir = settings.output.folder
    if "init_checkpoint" not in settings.given:
        return Found(run.require_checkpoint(output_dir), output_dir)
    named = sources.checkpoint_of(settings.model.init_checkpoint or "", environment=environment)
    own = kept.best_or_newest(output_dir)
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
    """Whether a checkpoint has a task head: a run's always has, even one without variables."""
    return "kind" in run_folder.trained(prefix.parent) or has_task_head(CheckpointReader(prefix).shapes)


def _is_trained(prefix: Path) -> bool:
    try:
        return _has_head(prefix)
    except CheckpointError:  # it was moved since the training
        return False
