"""The machine of a run: configured devices, and the distribution strategy by which they share the work."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from bert_tf.errors import DeviceError
from bert_tf.graphs import HOST
from bert_tf.io.log_form import log
from bert_tf.runtime import devices, diagnosis, memory
from bert_tf.runtime.settings import ONE_DEVICE, TF_CONFIG, DeviceSettings

if TYPE_CHECKING:  # only several machines and placed models need them
    from bert_tf.runtime.cluster import Cluster
    from bert_tf.runtime.peers import Watch
    from bert_tf.runtime.placement import DeviceFunction

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


@dataclasses.dataclass(frozen=True)
class Plan:
    strategy: str = ONE_DEVICE  # one of settings.STRATEGIES
    devices: tuple[str, ...] = (HOST,)  # logical devices of this process
    cluster: Cluster | None = None  # None for a single machine
    device_function: DeviceFunction | None = None  # places operations; None leaves it to TensorFlow

    @property
    def replicas(self) -> int:
        """Number of replicas in a step; assumes equal machines."""
        local = 1 if self.strategy == ONE_DEVICE else len(self.devices)
        return local * (len(self.cluster.workers) if self.cluster else 1)

    @property
    def towers(self) -> tuple[str | DeviceFunction | None, ...]:
        """For `tf.device`: each device of this process with a whole model, for evaluation and prediction."""
        is_single = self.strategy == ONE_DEVICE or len(self.devices) == 1
        return (self.device_function,) if is_single else self.devices


@dataclasses.dataclass(frozen=True)
class Machine:
    """Configured devices."""

    session_config: tf1.ConfigProto  # of every session
    plan: Plan = dataclasses.field(default_factory=Plan)
    strategy: tf.distribute.Strategy | None = None  # None for one device
    watch: Watch | None = None  # of the other machines in training; None if single
    gpu_memory: int | None = None  # bytes for tensors on the smallest GPU used, or None
    native_kernels: bool = False  # loaded and used

    @property
    def replicas(self) -> int:
        return self.strategy.num_replicas_in_sync if self.strategy else 1

    @property
    def is_chief(self) -> bool:
        return self.plan.cluster is None or self.plan.cluster.is_chief

    @property
    def sees_gpu(self) -> bool:
        """Whether any GPU computes, even only unplaced operations; idle GPUs are hidden."""
        return bool(self.session_config.gpu_options.visible_device_list)


def plan(settings: DeviceSettings, *, environment: Mapping[str, str]) -> Plan:
    """Sets up the devices of this process and decides how to use them; once, before TensorFlow computes."""
    machines = None
    if TF_CONFIG in environment:
        from bert_tf.runtime import cluster

        machines = cluster.read_cluster(environment)
    if settings.keep_memory:
        memory.keep(environment)
    os.environ.setdefault(diagnosis.CACHE_SIZE, str(diagnosis.ALL_KERNELS))  # before the driver starts
    seen = devices.narrowed(settings, environment)
    usable = devices.configure(seen, environment)
    diagnosis.warn_of_compilation(environment)
    name = choose_strategy(settings, usable, machines)
    used, function = _placement(seen)
    return Plan(name, used or (usable[:1] if name == ONE_DEVICE else usable), machines, function)


def set_up(settings: DeviceSettings, *, environment: Mapping[str, str], xla: bool = False) -> Machine:
    """Plans and sets up the machine of a run; DeviceError if settings conflict with it or each other."""
    planned = plan(settings, environment=environment)
    watch = None
    if planned.cluster is None:
        if TF_CONFIG in environment:  # of one machine; inference leaves that of a later training
            os.environ.pop(TF_CONFIG, None)  # tf.estimator reads it, and requires a chief in it
    else:
        from bert_tf.runtime.peers import Watch, require_free_port

        require_free_port(planned.cluster.own)
        watch = Watch(planned.cluster, log=log.info)
    strategy = make_strategy(planned.strategy, settings, planned.devices)
    config = devices.session_config(settings, xla=xla)
    # TensorFlow puts parts that --place does not name on the first GPU that it sees.
    elsewhere = ("/device:GPU:0",) if settings.place else ()
    of_tensors = memory.for_tensors(config, {*planned.devices, *elsewhere}) if config.gpu_options.visible_device_list else None
    return Machine(config, planned, strategy, watch, of_tensors)


def without_devices() -> Machine:
    """A machine to check a run with, on which nothing is computed: its GPUs are left to other processes."""
    return Machine(tf1.ConfigProto())


def describe(machine: Machine, settings: DeviceSettings, environment: Mapping[str, str]) -> None:
    """Logs which devices compute, environment variables that affect them, and a GPU that is idle by mistake."""
    for variable in (diagnosis.HIDING, devices.FORCED_GROWTH):
        if variable in environment:
            log.info("%s=%s (environment)", variable, environment[variable])
    ignored = devices.ignored_growth(environment)
    if ignored:
        log.warning(ignored)
    each = f" on each of {len(machine.plan.cluster.workers)} machines" if machine.plan.cluster else ""
    counted = f"{machine.replicas} replica{'' if machine.replicas == 1 else 's'}"
    log.info("strategy %s: %s, %s%s", machine.plan.strategy, counted, ", ".join(machine.plan.devices), each)
    if machine.gpu_memory is not None:
        log.info("memory for tensors on each GPU: %d MiB", machine.gpu_memory >> 20)
    if settings.device_name and settings.device_name not in machine.plan.devices:
        from bert_tf.runtime import placement

        log.info("only --device=%s is visible, as %s", settings.device, placement.short(machine.plan.devices[0]))
    unused = None if settings.asks_for_cpu else diagnosis.unused_gpu_warning()
    if unused:
        log.warning(unused)


def _placement(settings: DeviceSettings) -> tuple[tuple[str, ...], DeviceFunction | None]:
    """Devices named by --device and --place and their device function; empty and None without these flags."""
    if not settings.device and not settings.place:
        return (), None
    from bert_tf.runtime import placement

    existing = [device.name for device in tf.config.list_logical_devices()]
    if settings.device:
        return (placement.require_device(settings.device, existing),), placement.whole(settings.device, existing)
    rules = settings.rules
    return tuple(dict.fromkeys(rule.device for rule in rules)), placement.device_function(rules, existing)


def choose_strategy(settings: DeviceSettings, devices: Sequence[str], cluster: Cluster | None) -> str:
    """Name of the strategy: the requested one, else one that suits the devices; DeviceError if flags conflict."""
    several = len(devices) > 1 and not settings.device and not settings.place
    name = settings.strategy or (MULTI_WORKER if cluster is not None else MIRRORED if several else ONE_DEVICE)
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


def make_strategy(name: str, settings: DeviceSettings, devices: Sequence[str]) -> tf.distribute.Strategy | None:
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
    return _start_server(cluster, resolver.task_type, resolver.task_id, shared.SerializeToString()).target


@functools.cache
def _start_server(cluster: bytes, task_type: str, task_id: int, config: bytes) -> tf.distribute.Server:
    machines = tf.train.ClusterDef.FromString(cluster)
    return tf.distribute.Server(machines, task_type, task_id, config=tf1.ConfigProto.FromString(config))
