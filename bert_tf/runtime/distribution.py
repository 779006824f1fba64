"""Distribution strategy: its choice, conflicts with it, and TensorFlow's server for several machines."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from bert_tf.errors import DeviceError
from bert_tf.host import HOST
from bert_tf.runtime.settings import ONE_DEVICE, DeviceSettings

if TYPE_CHECKING:
    from bert_tf.runtime.cluster import Cluster

tf1 = tf.compat.v1

MIRRORED, MULTI_WORKER, CENTRAL_STORAGE = "mirrored", "multi_worker", "central_storage"

_CROSS_DEVICE_OPS = {
    "nccl": tf.distribute.NcclAllReduce,
    "hierarchical": tf.distribute.HierarchicalCopyAllReduce,
    "reduce_to_one": tf.distribute.ReductionToOneDevice,
}


_RULES = (  # flags that only some strategies support
    ("device", (ONE_DEVICE,), "one device holds the whole model"),
    ("place", (ONE_DEVICE,), "parts of one model are spread over devices"),
    ("cross_device_ops", (MIRRORED,), "it sets how replicas of one machine are summed"),
    ("all_reduce_alg", (MULTI_WORKER,), "it sets how machines are summed"),
    ("check_replicas_every_n_steps", (MIRRORED, MULTI_WORKER), "elsewhere there is one copy of the weights"),
)


def choose(settings: DeviceSettings, devices: Sequence[str], cluster: Cluster | None) -> str:
    """Name of the strategy: the requested one, else one that suits the devices; DeviceError if flags conflict."""
    name = settings.strategy or _default(settings, devices, cluster)
    for flag, strategies, reason in _RULES:
        value = getattr(settings, flag)
        if value and name not in strategies:
            raise DeviceError(f"--{flag}={value} goes with --strategy={' and '.join(strategies)} ({reason}), not with {name}")
    if settings.device and settings.place:
        raise DeviceError("--device puts the whole model on one device, --place its parts: use one of them")
    if name == MULTI_WORKER and cluster is None:
        raise DeviceError("--strategy=multi_worker: TF_CONFIG in the environment names no other machine (docs/multi_worker.md)")
    if name == MULTI_WORKER and devices[0].startswith("/device:CPU") and settings.virtual_devices > 1:
        raise DeviceError("--virtual_devices: the CPU of a machine is one replica of --strategy=multi_worker")
    if name != MULTI_WORKER and cluster is not None:
        raise DeviceError(
            f"--strategy={name}: TF_CONFIG names {len(cluster.workers)} machines, each of which would train alone;"
            " unset it, or use --strategy=multi_worker"
        )
    _refuse_reductions(settings, devices)
    return name


def _default(settings: DeviceSettings, devices: Sequence[str], cluster: Cluster | None) -> str:
    if cluster is not None:
        return MULTI_WORKER
    return MIRRORED if len(devices) > 1 and not settings.device and not settings.place else ONE_DEVICE


def _refuse_reductions(settings: DeviceSettings, devices: Sequence[str]) -> None:
    on_cpu = devices[0].startswith("/device:CPU")
    for flag in ("cross_device_ops", "all_reduce_alg"):
        if getattr(settings, flag) == "nccl" and (on_cpu or settings.virtual_devices > 1):
            reason = "there is no GPU to compute on" if on_cpu else "it cannot serve two devices on one GPU"
            raise DeviceError(f"--{flag}=nccl: NCCL works between GPUs, but {reason}")
    # TensorFlow 2.15 halves the replicas (`aggregate_gradients_using_hierarchical_copy` in cross_device_utils.py): with an odd
    # number it silently leaves one out, a different one for each variable.
    if settings.cross_device_ops == "hierarchical" and len(devices) > 1 and len(devices) % 2:
        raise DeviceError(
            f"--cross_device_ops=hierarchical: sums two halves of the replicas, but there are {len(devices)};"
            " use an even number, or omit the flag"
        )


def make(name: str, settings: DeviceSettings, devices: Sequence[str]) -> tf.distribute.Strategy | None:
    """Strategy for a name from `choose`; None if one device needs none."""
    if name == MULTI_WORKER:
        # In eager mode the strategy starts TensorFlow's server, with heartbeats: a machine that pauses for ten seconds is lost
        # for good, although it is still running, and sessions are recreated forever.
        tf1.disable_eager_execution()
        implementation = tf.distribute.experimental.CommunicationImplementation((settings.all_reduce_alg or "auto").upper())
        options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    if name == ONE_DEVICE or len(devices) == 1:  # one replica needs no strategy
        return None
    if name == CENTRAL_STORAGE:
        return tf.distribute.experimental.CentralStorageStrategy(list(devices), HOST)
    # NCCL requires whole GPUs; TensorFlow's default hangs on several logical CPUs under tf.estimator.
    whole_gpus = devices[0].startswith("/device:GPU") and settings.virtual_devices == 1
    reduction = settings.cross_device_ops or ("nccl" if whole_gpus else "reduce_to_one")
    return tf.distribute.MirroredStrategy(list(devices), cross_device_ops=_CROSS_DEVICE_OPS[reduction]())


def server_address(strategy: tf.distribute.Strategy, config: tf1.ConfigProto) -> str:
    """Starts the server if needed; returns the address for sessions, empty for a single-machine strategy."""
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.cluster_spec().jobs:
        return ""
    shared = tf1.ConfigProto()
    shared.CopyFrom(config)
    del shared.device_filters[:]  # for sessions only; a server serves all machines
    cluster = resolver.cluster_spec().as_cluster_def().SerializeToString()
    return _start(cluster, resolver.task_type, resolver.task_id, shared.SerializeToString()).target


@functools.cache
def _start(cluster: bytes, task_type: str, task_id: int, config: bytes) -> tf.distribute.Server:
    machines = tf.train.ClusterDef.FromString(cluster)
    return tf.distribute.Server(machines, task_type, task_id, config=tf1.ConfigProto.FromString(config))
