"""What an extension adds to a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bert_tf.estimator.run import Hook
from bert_tf.training.job import Job


class Part:
    """An extension's part in a run, see `bert_tf.extension`; every method has a default that adds nothing."""

    def __init__(self, settings: Any) -> None:
        """`settings`: of the extension's class."""
        self.settings = settings

    def hooks(self, job: Job) -> Sequence[Hook]:
        """Hooks of the training, on the chief."""
        del job
        return ()

    def claimed(self, job: Job) -> None:
        """Called when the output folder is the run's, before the training."""
