"""Timestamps of a training step, taken by the graph itself, and the hook that reads them.

A stamp is a free operation on the host that runs after others. Operations that follow those may still run before
it, all of them if the session has a single thread; a gate makes them wait for the stamp if a hook asks for it. A
GPU operation that has run was only launched; it is known to be done when the host has received a value from it.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from bert_tf.graphs import HOST
from bert_tf.optimization import replicas
from bert_tf.optimization.gradients import on_own_devices
from bert_tf.profiling.diagnosis import Setting
from bert_tf.profiling.step_timer import WARM_UP_STEPS, StepTimer, StepTimes
from bert_tf.profiling.wall_clock import BETWEEN, CLOSING, FIRST_STEPS, STEPS, WALL
from bert_tf.runtime import devices

tf1 = tf.compat.v1

TOKENS = "watch/tokens"  # scalar int32: real tokens of a training step over all replicas

# Tensors that hooks fetch by name; each a scalar float64, seconds since 1970.
BATCH = "watch/time/batch"  # the batch is in host memory; its reader reports when, see `pipeline.READY`
FORWARD = "watch/time/forward"  # the loss is computed; not with micro-batches
LAUNCHED = "watch/time/launched"  # the host has launched all gradients
GRADIENTS = "watch/time/gradients"  # this replica's gradients are computed
SUMS = "watch/time/sums"  # gradients are summed over replicas, if several
_OF_A_STEP = (BATCH, LAUNCHED, GRADIENTS, SUMS)

RECEIVED = "/received"  # suffix of a stamp's name: the value that the host waits for

GATE = "/gate"  # suffix of a stamp's name: its gate


def mark(name: str, after: Sequence[tf.Tensor] = ()) -> None:
    """Adds the moment when the operations of `after` have run; on a GPU: have been launched."""
    with tf.device(HOST), tf.control_dependencies(list(after)):
        if devices.demands_determinism():  # tf.timestamp is not allowed then; Python's clock takes a few microseconds more
            tf.numpy_function(time.time, [], tf.float64, name=name)
        else:
            tf.timestamp(name=name)


def mark_ready(moment: tf.Tensor) -> None:
    """Adds the moment, reported by the reader, when a batch was assembled."""
    with tf.device(HOST):
        tf.identity(moment, name=BATCH)


def mark_launched(after: Sequence[tf.Tensor]) -> None:
    """Adds the moment when the host has launched the operations of `after`.

    Waiting for an operation of another device means waiting for its result. The sign of the launch is an integer, which
    a GPU keeps in host memory.
    """
    by_device: dict[str, list[tf.Tensor]] = {}
    for tensor in after:
        by_device.setdefault(tensor.device, []).append(tensor)
    launched = []
    for device, tensors in by_device.items():
        with tf.device(device), tf.control_dependencies(tensors):
            launched.append(tf.constant(0))
    with tf.device(HOST):
        told = tf.identity_n(launched)
    mark(LAUNCHED, told)


def mark_done(name: str, number: tf.Tensor, after: Sequence[tf.Tensor]) -> None:
    """Adds the moment when `number` and the tensors of `after` are computed.

    A device computes in launch order, so a value it sends implies that everything launched before is done. The value
    must also be fetched, or graph optimization removes it.
    """
    with tf.device(number.device), tf.control_dependencies(list(after)):
        sent = tf.math.is_finite(number)  # any operation would do that cannot be optimized away
    with tf.device(HOST):
        received = tf.identity(sent, name=name + RECEIVED)
    mark(name, [received])


def gate(name: str, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the tensors behind a stamp's gate, which is open and free until a hook makes it wait."""
    with tf.control_dependencies([tf.no_op(name=name + GATE)]):
        return on_own_devices(tf.identity, tensors)


def wait_at_gate(name: str, event: tf.Tensor, scope: str = "") -> None:
    """Makes a gate wait for `event`, which follows or is the stamp; not on a GPU, which would stall for its host."""
    opened = event.graph.get_operation_by_name(scope + name + GATE)
    if "GPU" not in opened.device:
        opened._add_control_input(event.op)


def fetched(*, gradients: bool) -> dict[str, list[tf.Tensor]]:
    """Returns the stamps of this process's replicas by name, with the tensors that must be fetched with them.

    With `gradients` also those of the gradients and, for several replicas, of their sums.
    """
    several = tf.distribute.get_strategy().num_replicas_in_sync > 1
    done = [GRADIENTS, *([SUMS] if several else [])] if gradients else []
    names = [BATCH, *([LAUNCHED] if gradients else []), *done, *(name + RECEIVED for name in done)]
    return {name: replicas.local_tensors(name) for name in names}


class StepTimingHook(tf1.train.SessionRunHook):
    """Measures batch_cost from a step's call to its results, and its parts by the graph's stamps; must be the first hook."""

    def __init__(self, timer: StepTimer, setting: Setting) -> None:
        """Gradients are timed only if a GPU may be behind its host or replicas wait for each other."""
        self.timer = timer
        self._watches_gradients = setting.gpu or setting.replicas > 1
        self._waits = not setting.gpu  # which would stall for its host

    def begin(self) -> None:
        (tokens, *_) = replicas.local_tensors(TOKENS)  # equal on all replicas
        moments = fetched(gradients=self._watches_gradients)
        self._fetched = {TOKENS: tokens, **moments}
        for name in {GRADIENTS, SUMS} & moments.keys() if self._waits else ():
            for moment, scope in zip(moments[name], replicas.local_scopes()):
                wait_at_gate(name, moment, scope)

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
        last = {name: max(values) for name, values in moments.items() if name in _OF_A_STEP}
        times = StepTimes(
            batch=batch,
            reader=min(max(last[BATCH] - self._called, 0.0), batch),
            communication=_between(last, GRADIENTS, SUMS),
            lead=_between(last, LAUNCHED, GRADIENTS),
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
