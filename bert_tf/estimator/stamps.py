"""Timestamps of a training step, taken by the graph itself.

A stamp is a free operation on the host that runs after others. Operations that follow those may still run before
it, all of them if the session has a single thread; a gate makes them wait for the stamp if a hook asks for it. A
GPU operation that has run was only launched; it is known to be done when the host has received a value from it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import tensorflow as tf

from bert_tf.host import HOST
from bert_tf.optimization import replicas
from bert_tf.optimization.gradients import on_own_devices
from bert_tf.runtime import devices

# Tensors that hooks fetch by name; each a scalar float64, seconds since 1970.
BATCH = "watch/time/batch"  # the batch is in host memory; its reader reports when, see `inputs.pipeline.READY`
FORWARD = "watch/time/forward"  # the loss is computed; not with micro-batches
LAUNCHED = "watch/time/launched"  # the host has launched all gradients
GRADIENTS = "watch/time/gradients"  # this replica's gradients are computed
SUMS = "watch/time/sums"  # gradients are summed over replicas, if several

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


def mark_launched(name: str, after: Sequence[tf.Tensor]) -> None:
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
    mark(name, told)


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
