"""What an extension adds to a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf.estimator.run import Hook
from bert_tf.modeling.heads.base import Head
from bert_tf.tasks.base import Family
from bert_tf.training.job import Job


class Part:
    """An extension's part in a run, see `bert_tf.extension`; every method has a default that adds nothing."""

    def __init__(self, settings: Any) -> None:
        """`settings`: of the extension's class."""
        self.settings = settings

    def recipe(self, family: Family) -> Mapping[str, float | str] | None:
        """Values of settings that nobody gave, instead of the recipe that the run would have; None leaves that."""
        del family
        return None

    def check(self, job: Job) -> None:
        """Raises FlagError, or warns, when the data are read."""

    def head(self) -> Callable[[Head], Head] | None:
        """What wraps the head in training, to change its loss; only one part of a run may, and none in distillation."""

    def hooks(self, job: Job) -> Sequence[Hook]:
        """Hooks of the training, on the chief."""
        del job
        return ()

    def claimed(self, job: Job) -> None:
        """Called when the output folder is the run's, before the training."""
