"""Logs the speed of training in the published script's format."""

from __future__ import annotations

import time

import tensorflow as tf

from bert_tf.log_form import published

tf1 = tf.compat.v1


class RatesHook(tf1.train.SessionRunHook):
    """Logs global_step/sec and examples/sec in the published format."""

    def __init__(self, batch_size: float, *, every_n_steps: int = 1) -> None:
        """`batch_size` is the examples per step, their mean if steps differ."""
        self._batch_size = batch_size
        self._every = every_n_steps

    def after_create_session(self, session: tf1.Session, coord: object) -> None:
        del session, coord
        self._steps, self._since = 0, time.perf_counter()

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        del run_context, run_values
        self._steps += 1
        if self._steps % self._every:
            return
        now = time.perf_counter()
        rate = self._every / (now - self._since)
        self._since = now
        published.info("global_step/sec: %g", rate)
        published.info("examples/sec: %g", rate * self._batch_size)
