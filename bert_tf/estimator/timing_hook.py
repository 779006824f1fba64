"""Times every training step."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.estimator import stamps
from bert_tf.estimator.model_fn import TOKENS
from bert_tf.optimization import replicas
from bert_tf.profiling.diagnosis import Setting
from bert_tf.profiling.step_timer import WARM_UP_STEPS, StepTimer, StepTimes
from bert_tf.profiling.wall_clock import BETWEEN, CLOSING, FIRST_STEPS, STEPS, WALL

tf1 = tf.compat.v1

_STAMPS = (stamps.BATCH, stamps.LAUNCHED, stamps.GRADIENTS, stamps.SUMS)


class StepTimingHook(tf1.train.SessionRunHook):
    """Measures batch_cost from a step's call to its results, and its parts by the graph's stamps; must be the first hook."""

    def __init__(self, timer: StepTimer, setting: Setting) -> None:
        """Gradients are timed only if a GPU may be behind its host or replicas wait for each other."""
        self.timer = timer
        self._watches_gradients = setting.gpu or setting.replicas > 1
        self._waits = not setting.gpu  # which would stall for its host

    def begin(self) -> None:
        (tokens, *_) = replicas.local_tensors(TOKENS)  # equal on all replicas
        moments = stamps.fetched(gradients=self._watches_gradients)
        self._fetched = {TOKENS: tokens, **moments}
        for name in {stamps.GRADIENTS, stamps.SUMS} & moments.keys() if self._waits else ():
            for moment, scope in zip(moments[name], replicas.local_scopes()):
                stamps.wait_at_gate(name, moment, scope)

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        self._step = 0

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs:
        if not self._step:
            WALL.rename(BETWEEN)  # the session is ready
        self._step += 1
        WALL.enter(FIRST_STEPS if self._step <= WARM_UP_STEPS else STEPS)
        self._began, self._called, self._used = time.monotonic(), time.time(), resource.getrusage(resource.RUSAGE_SELF)
        return tf1.train.SessionRunArgs(self._fetched)

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        batch, moments = time.monotonic() - self._began, run_values.results
        before, now = self._used, resource.getrusage(resource.RUSAGE_SELF)
        user, kernel = now.ru_utime - before.ru_utime, now.ru_stime - before.ru_stime
        WALL.leave()
        last = {name: max(values) for name, values in moments.items() if name in _STAMPS}
        times = StepTimes(
            batch=batch,
            reader=min(max(last[stamps.BATCH] - self._called, 0.0), batch),
            communication=_between(last, stamps.GRADIENTS, stamps.SUMS),
            lead=_between(last, stamps.LAUNCHED, stamps.GRADIENTS),
            tokens=int(moments[TOKENS]),
            cpu=user + kernel,
            kernel=kernel,
            page_faults=now.ru_minflt - before.ru_minflt,
        )
        traced = run_values.options.trace_level != tf1.RunOptions.NO_TRACE  # if any hook asked for it
        self.timer.add(times, traced=traced)

    def end(self, session: tf1.Session) -> None:
        """Separates the end of training from its steps in the wall-time account."""
        WALL.rename(CLOSING)


def _between(moments: Mapping[str, float], earlier: str, later: str) -> float:
    return max(moments[later] - moments[earlier], 0.0) if later in moments else 0.0
