"""Lists devices, and GPUs that TensorFlow cannot use. Never raises on an odd machine."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil
import tensorflow as tf

from bert_tf.runtime import cgroup, diagnosis, nvidia
from bert_tf.runtime.diagnosis import Build, Cause, Facts
from bert_tf.runtime.nvidia import Gpu, System

_CPU_INFO = Path("/proc/cpuinfo")
_BYTES_PER_MIB = 2**20


@dataclasses.dataclass(frozen=True)
class PhysicalDevice:
    """A device that TensorFlow lists; memory in MiB, None if unknown."""

    name: str  # TensorFlow's
    kind: str  # CPU or GPU
    model: str | None = None
    memory_total_mb: int | None = None
    memory_free_mb: int | None = None  # before TensorFlow takes its part
    compute_capability: str | None = None  # of a GPU, as 8.6


@dataclasses.dataclass(frozen=True)
class LogicalDevice:
    """A device that TensorFlow computes on, possibly part of a physical one."""

    name: str
    memory_limit_mb: int | None = None


@dataclasses.dataclass(frozen=True)
class UnusableGpu:
    name: str
    causes: tuple[Cause, ...]


@dataclasses.dataclass(frozen=True)
class Inventory:
    tensorflow: Build
    driver_version: str | None
    cpus_granted: int
    cpus_present: int
    physical_devices: tuple[PhysicalDevice, ...]
    logical_devices: tuple[LogicalDevice, ...]
    unusable_gpus: tuple[UnusableGpu, ...]
    no_gpu: tuple[Cause, ...] = ()  # why no GPU computes; empty if TensorFlow uses one
    driver_status: int | None = None  # cuInit's result, 0 if it works; None if no driver


def take(system: System, environment: Mapping[str, str], *, left_out: bool = False) -> Inventory:
    """Makes TensorFlow create its devices, so they must be set up before; `system` must be surveyed earlier still.

    `left_out` says that flags ask for no GPU, which TensorFlow does not remember on a machine without one.
    """
    paired = _pair(system, environment)
    unusable = _unusable(system, paired, environment)
    return Inventory(
        tensorflow=diagnosis.installed_build(),
        driver_version=system.driver_version,
        cpus_granted=cgroup.granted_cpus(),
        cpus_present=os.cpu_count() or 1,
        physical_devices=tuple(_physical(device, paired) for device in _list(tf.config.list_physical_devices)),
        logical_devices=_logical(),
        unusable_gpus=unusable,
        no_gpu=_no_gpu(system, unusable, environment, left_out=left_out),
        driver_status=nvidia.status(),
    )


def _list(function: Callable[..., Any], *arguments: object) -> Any:
    with contextlib.suppress(RuntimeError, ValueError, tf.errors.OpError):
        return function(*arguments)
    return ()


def _details(device: tf.config.PhysicalDevice) -> dict[str, Any]:
    return dict(_list(tf.config.experimental.get_device_details, device))


def _pair(system: System, environment: Mapping[str, str]) -> dict[str, Gpu]:
    """Maps TensorFlow's GPUs to the system's by order, and by model if models differ."""
    shown = nvidia.listed(system.offered or system.gpus, environment.get(diagnosis.HIDING))
    free = [*shown, *(gpu for gpu in system.gpus if gpu not in shown)]
    paired = {}
    for device in _list(tf.config.list_physical_devices, "GPU"):
        model = _details(device).get("device_name")
        same = [gpu for gpu in free if gpu.model == model]
        if same or free:
            paired[device.name] = (same or free)[0]
            free.remove(paired[device.name])
    return paired


def _physical(device: tf.config.PhysicalDevice, paired: Mapping[str, Gpu]) -> PhysicalDevice:
    if device.device_type == "CPU":
        model = _cpu_model() or platform.processor() or platform.machine() or None
        machine = psutil.virtual_memory()
        limit, free = cgroup.memory() or (machine.total, machine.available)  # a container's grant
        total, free = min(machine.total, limit), min(machine.available, free)
        return PhysicalDevice(device.name, "CPU", model, total // _BYTES_PER_MIB, free // _BYTES_PER_MIB)
    gpu, details = paired.get(device.name, Gpu()), _details(device)
    capability = details.get("compute_capability")
    return PhysicalDevice(
        name=device.name,
        kind=device.device_type,
        model=details.get("device_name") or gpu.model,
        memory_total_mb=gpu.memory_total_mb,
        memory_free_mb=gpu.memory_free_mb,
        compute_capability="{}.{}".format(*capability) if capability else gpu.compute_capability,
    )


def _logical() -> tuple[LogicalDevice, ...]:
    limits = {}
    for kind in ("CPU", "GPU"):
        visible = _list(tf.config.get_visible_devices, kind)
        parts = [part for device in visible for part in _list(tf.config.get_logical_device_configuration, device) or (None,)]
        limits.update({f"{kind}:{number}": part and part.memory_limit for number, part in enumerate(parts)})
    return tuple(
        LogicalDevice(device.name, limits.get(device.name.rpartition("device:")[2]))
        for device in _list(tf.config.list_logical_devices)
    )


def _unusable(system: System, paired: Mapping[str, Gpu], environment: Mapping[str, str]) -> tuple[UnusableGpu, ...]:
    seen = tuple(paired.values())
    unseen = tuple(gpu for gpu in system.gpus if gpu not in seen)
    facts = Facts(system, diagnosis.installed_build(), environment.get(diagnosis.HIDING), sees_another=bool(seen))
    unusable = [UnusableGpu(str(gpu), causes) for gpu, causes in zip(unseen, diagnosis.causes(unseen, facts))]
    visible = {device.name for device in _list(tf.config.get_visible_devices, "GPU")}
    for device in _list(tf.config.list_physical_devices, "GPU"):
        if device.name not in visible:
            name = str(paired.get(device.name, Gpu(model=_details(device).get("device_name"))))
            unusable.append(UnusableGpu(name, (diagnosis.LEFT_OUT,)))
    return tuple(unusable)


def _no_gpu(
    system: System, unusable: Iterable[UnusableGpu], environment: Mapping[str, str], *, left_out: bool
) -> tuple[Cause, ...]:
    if _list(tf.config.get_visible_devices, "GPU"):
        return ()
    causes = [cause for gpu in unusable for cause in gpu.causes]
    if not causes:
        facts = Facts(system, diagnosis.installed_build(), environment.get(diagnosis.HIDING), sees_another=False)
        causes = list(diagnosis.causes_of_none(facts))
    return tuple(dict.fromkeys([*([diagnosis.LEFT_OUT] if left_out else []), *causes]))


def _cpu_model() -> str | None:
    with contextlib.suppress(OSError, ValueError):
        match = re.search(r"^model name\s*:\s*(.+)$", _CPU_INFO.read_text(encoding="utf-8"), re.MULTILINE)
        return match and match.group(1)
    return None
