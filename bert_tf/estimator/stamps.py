"""Timestamps of a training step, taken by the graph itself.

A stamp is an operation without cost that runs on the host after others. What else follows these may run before it, all of it
where the session has a single thread: at a gate, what follows waits for the stamp where a hook wants that. That an operation
of a GPU has run says only that it was launched; that it is done, a value shows that the host has received from it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import tensorflow as tf

from bert_tf.host import HOST
from bert_tf.optimization import replicas
from bert_tf.optimization.gradients import on_own_devices
from bert_tf.runtime import determinism

# Tensors that hooks fetch by name; each a scalar float64, seconds since 1970.
BATCH = "watch/time/batch"  # the batch is there, in the memory of the host; its reader says when, see `inputs.pipeline.READY`
COPIED = "watch/time/copied"  # it is where it is computed; only where `mark_copied` was called
FORWARD = "watch/time/forward"  # the loss is there; not where micro-batches take turns
LAUNCHED = "watch/time/launched"  # the host has launched all gradients
GRADIENTS = "watch/time/gradients"  # the gradients of this replica are there
SUMS = "watch/time/sums"  # those of all replicas are, where there are several

RECEIVED = "/received"  # what follows the name of a stamp in that of the value that the host waits for

_GATE = "/gate"  # what follows the name of a stamp in that of its gate


def mark(name: str, after: Sequence[tf.Tensor] = ()) -> None:
    """Adds the moment when the operations of some tensors have run, those of a GPU have been launched.

    Args:
      name: of the moment.
      after: the tensors.
    """
    with tf.device(HOST), tf.control_dependencies(list(after)):
        if determinism.is_demanded():  # it refuses tf.timestamp; Python's clock takes a few microseconds more
            tf.numpy_function(time.time, [], tf.float64, name=name)
        else:
            tf.timestamp(name=name)


def mark_ready(moment: tf.Tensor) -> None:
    """Adds the moment when a batch was put together, which its reader says."""
    with tf.device(HOST):
        tf.identity(moment, name=BATCH)


def mark_launched(name: str, after: Sequence[tf.Tensor]) -> None:
    """Adds the moment when the host has launched the operations of some tensors.

    To wait for an operation of another device is to wait for its result. What tells that it was launched is an integer, which
    a GPU keeps in the memory of the host.

    Args:
      name: of the moment.
      after: the tensors.
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
    """Adds the moment when a number and some other tensors are there.

    A device computes in the order of launching: what it sends is there when all is that was launched before. It has to be
    fetched as well, or the graph is optimized to do without.

    Args:
      name: of the moment.
      number: a tensor that is fetched too.
      after: the others.
    """
    with tf.device(number.device), tf.control_dependencies(list(after)):
        sent = tf.math.is_finite(number)  # any operation would do that cannot be left out
    with tf.device(HOST):
        received = tf.identity(sent, name=name + RECEIVED)
    mark(name, [received])


def gate(name: str, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns tensors behind the gate of a stamp; it is open, and costs nothing, until a hook lets it wait.

    Args:
      name: of the stamp.
      tensors: what has to pass it.
    """
    with tf.control_dependencies([tf.no_op(name=name + _GATE)]):
        return on_own_devices(tf.identity, tensors)


def wait_at_gate(name: str, event: tf.Tensor, scope: str = "") -> None:
    """Lets what is behind a gate wait for an event; not on a GPU, which would stand still for its host.

    Args:
      name: of the stamp.
      event: what follows the stamp, or is it.
      scope: of the replica.
    """
    opened = event.graph.get_operation_by_name(scope + name + _GATE)
    if "GPU" not in opened.device:
        opened._add_control_input(event.op)


def mark_copied(graph: tf.Graph) -> None:
    """Adds the moment when all parts of a batch are on the devices of the operations that read them.

    A device gets a tensor once, whoever reads it there, so the readers that are added here have nothing copied again.

    Args:
      graph: of training, complete: what is added to it earlier would change the numbers of operations, and with them the seeds
        of the weights that are drawn.
    """
    opened = graph.get_operation_by_name(BATCH + _GATE)
    features = [tensor for op in graph.get_operations() if opened in op.control_inputs for tensor in op.outputs]
    arrived = []
    for tensor in features:
        readers = tensor.consumers()
        if readers:
            with tf.device(readers[0].device):  # an int32 that is passed on as it is would stay with the host
                arrived.append(tf.reduce_sum(tf.cast(tensor, tf.float32)))
    with tf.device(HOST):
        received = tf.add_n(arrived, name=COPIED + RECEIVED)
    mark(COPIED, [received])


def fetched(*, gradients: bool) -> dict[str, list[tf.Tensor]]:
    """Returns the stamps of the replicas of this process, and what has to be fetched with them, by name.

    Args:
      gradients: whether those of the gradients are wanted, and of their sums where there are several replicas.
    """
    several = tf.distribute.get_strategy().num_replicas_in_sync > 1
    done = [GRADIENTS, *([SUMS] if several else [])] if gradients else []
    names = [BATCH, *([LAUNCHED] if gradients else []), *done, *(name + RECEIVED for name in done)]
    return {name: replicas.local_tensors(name) for name in names}
