"""Stops a run whose replicas have diverged: it would train several models and save one."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from bert_tf.errors import TrainingError
from bert_tf.optimization import replicas

tf1 = tf.compat.v1

_DIFFERING = "watch/differing"


def watch_variables() -> None:
    """Adds the comparison to each replica of a training graph."""
    tf.identity(replicas.differing(tf1.trainable_variables()), name=_DIFFERING)


class ReplicaCheckHook(tf1.train.SessionRunHook):
    """Compares the replicas' weights between steps."""

    def __init__(self, every_n_steps: int, start_step: int) -> None:
        self._every = every_n_steps
        self._step = start_step

    def begin(self) -> None:
        self._differing = replicas.local_tensors(_DIFFERING)
        self._names = [variable.name.rpartition(":")[0] for variable in tf1.trainable_variables()]

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        """Raises TrainingError if replicas differ; all machines compare at the same step, because they do so collectively."""
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
