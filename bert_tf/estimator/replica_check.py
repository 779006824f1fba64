"""Stops a run whose replicas have come to differ: from there on it would train several models, and save one."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from bert_tf.errors import TrainingError
from bert_tf.optimization import replicas

tf1 = tf.compat.v1

_DIFFERING = "watch/differing"


def watch_variables() -> None:
    """Adds the comparison to a training graph, in each replica."""
    tf.identity(replicas.differing(tf1.trainable_variables()), name=_DIFFERING)


class ReplicaCheckHook(tf1.train.SessionRunHook):
    """Compares the weights of the replicas between steps."""

    def __init__(self, every_n_steps: int, start_step: int) -> None:
        """Prepares the hook.

        Args:
          every_n_steps: how often.
          start_step: steps taken before this run.
        """
        self._every = every_n_steps
        self._step = start_step

    def begin(self) -> None:
        """Finds the comparison."""
        self._differing = replicas.local_tensors(_DIFFERING)
        self._names = [variable.name.rpartition(":")[0] for variable in tf1.trainable_variables()]

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        """Compares where it is time; on all machines at the same step, since they compare together.

        Raises:
          TrainingError: the replicas differ.
        """
        del run_values
        self._step += 1
        if self._step % self._every:
            return
        differing = np.any(run_context.session.run(self._differing), axis=0)  # [V]
        names = [name for name, differs in zip(self._names, differing) if differs]
        if names:
            raise TrainingError(
                f"step {self._step}: the replicas have different weights ({len(names)} variables, the first is {names[0]}):"
                " a device or its connection computes wrongly; the last checkpoint before it can be continued from"
            )
