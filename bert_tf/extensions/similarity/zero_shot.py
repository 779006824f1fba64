"""Evaluation without a trained head: cosines of mean vectors against the scores of pairs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from bert_tf.batch.job import ModelOverrides
from bert_tf.errors import FlagError
from bert_tf.extensions.evaluate.command import Evaluator, TaskEntry
from bert_tf.head_spec import REGRESSION
from bert_tf.tasks.registry import canonical_name
from bert_tf.tasks.settings import CUSTOM

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.batch.checkpoints import Named
    from bert_tf.batch.trained import Trained
    from bert_tf.tasks.base import Task

DEFAULT_CHECKPOINT = ":default"  # name in --checkpoints, and its default
SUFFIX = "-zero-shot"


class ZeroShot(Evaluator):
    """Evaluates pretrained models, the default one too, on a task of pairs with scores."""

    defaults: ClassVar[Mapping[str, Any]] = {"checkpoints": (DEFAULT_CHECKPOINT,), "output_dir": "out/zero-shot"}

    def checkpoint(self, name: str, overrides: ModelOverrides) -> str:
        from bert_tf.checkpoints import huggingface, prefixes
        from bert_tf.training import sources

        if name == DEFAULT_CHECKPOINT:
            return sources.find(None, overrides, environment=os.environ, needs_head=False).prefix
        if huggingface.is_huggingface_folder(name) or prefixes.as_hub_name(name) is not None:
            return str(sources.checkpoint_of(name, environment=os.environ))
        return name

    def load(self, prefix: str, overrides: ModelOverrides) -> Trained:
        from bert_tf.batch import loading
        from bert_tf.extensions.similarity.family import SimilarityFamily

        model = loading.load_encoder(prefix, overrides)
        model.warn_of_means("--zero_shot")
        return dataclasses.replace(model, given_head=SimilarityFamily().head)

    def task(self, entry: TaskEntry, named: Sequence[Named]) -> Task:
        """Also custom pairs with scores, if the file is the user's own."""
        del named  # they were not trained on it
        if canonical_name(entry.name) != CUSTOM or entry.file is None:
            return super().task(entry, ())
        from bert_tf.batch.inputs import own_task

        return own_task({"kind": REGRESSION, "labels": ()}, entry.columns, dev_file=entry.file)

    def evaluated(self, task: Task) -> Task:
        return zero_shot(task)


class ZeroShotTask:
    """A task of pairs with scores, for a model not trained on it; its name separates results from those of trained models."""

    def __init__(self, task: Task, highest_score: float) -> None:
        """`highest_score` is the score at cosine 1, for the loss."""
        from bert_tf.extensions.similarity.family import ZeroShotFamily

        self._task, self.name, self.family = task, f"{task.name}{SUFFIX}", ZeroShotFamily(highest_score)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also while it is unpickled
            raise AttributeError(name)
        return getattr(self._task, name)

    def submission(self, split: str) -> None:
        """None: no server accepts cosines."""


def zero_shot(task: Task) -> Task:
    """Wraps a task for models not trained on it; raises `FlagError` if it has no pairs with scores."""
    if task.family.kind != REGRESSION:
        raise FlagError(f"--zero_shot compares cosines with scores; {task.name} has none (STS-B has)")
    from bert_tf.tasks.glue import GlueTask

    bounds = task.bounds if isinstance(task, GlueTask) else None
    return cast("Task", ZeroShotTask(task, bounds[1] if bounds else 1.0))
