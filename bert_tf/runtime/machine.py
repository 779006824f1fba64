"""The machine of a run: configured devices, and how they share the work."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import tensorflow as tf

from bert_tf.host import HOST
from bert_tf.io.log_form import log
from bert_tf.runtime import build, devices, diagnosis, distribution, inventory, memory, placement
from bert_tf.runtime.placement import DeviceFunction
from bert_tf.runtime.settings import ONE_DEVICE, TF_CONFIG, DeviceSettings

if TYPE_CHECKING:  # only several machines need them
    from bert_tf.runtime.cluster import Cluster
    from bert_tf.runtime.peers import Watch

tf1 = tf.compat.v1

_FIRST_GPU = "/device:GPU:0"


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
    os.environ.setdefault(build.CACHE_SIZE, str(build.ALL_KERNELS))  # before the driver starts
    seen = devices.narrowed(settings, environment)
    usable = devices.configure(seen, environment)
    build.warn(environment)
    name = distribution.choose(settings, usable, machines)
    used, function = _placement(seen)
    return Plan(name, used or (usable[:1] if name == ONE_DEVICE else usable), machines, function)


def set_up(settings: DeviceSettings, *, environment: Mapping[str, str], xla: bool = False) -> Machine:
    """Plans and sets up the machine of a run; DeviceError if settings conflict with it or each other."""
    planned = plan(settings, environment=environment)
    watch = None
    if planned.cluster is None:
        os.environ.pop(TF_CONFIG, None)  # tf.estimator reads it, and requires a chief in it
    else:
        from bert_tf.runtime.peers import Watch, require_free_port

        require_free_port(planned.cluster.own)
        watch = Watch(planned.cluster, log=log.info)
    strategy = distribution.make(planned.strategy, settings, planned.devices)
    config = devices.session_config(settings, xla=xla)
    # TensorFlow puts parts that --place does not name on the first GPU that it sees.
    elsewhere = (_FIRST_GPU,) if settings.place else ()
    of_tensors = memory.for_tensors(config, {*planned.devices, *elsewhere}) if config.gpu_options.visible_device_list else None
    return Machine(config, planned, strategy, watch, of_tensors)


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
    if settings.device and placement.normalized(settings.device) not in machine.plan.devices:
        log.info("only --device=%s is visible, as %s", settings.device, placement.short(machine.plan.devices[0]))
    unused = None if settings.asks_for_cpu else inventory.unused_gpu_warning()
    if unused:
        log.warning(unused)


def _placement(settings: DeviceSettings) -> tuple[tuple[str, ...], DeviceFunction | None]:
    """Devices named by --device and --place and their device function; empty and None without these flags."""
    if not settings.device and not settings.place:
        return (), None
    existing = [device.name for device in tf.config.list_logical_devices()]
    if settings.device:
        return (placement.require_device(settings.device, existing),), placement.whole(settings.device, existing)
    rules = settings.rules
    return tuple(dict.fromkeys(rule.device for rule in rules)), placement.device_function(rules, existing)
