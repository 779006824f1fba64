"""How much memory TensorFlow will have for tensors on a GPU; to be asked before it takes any."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from bert_tf.runtime import nvidia
from bert_tf.runtime.diagnosis import HIDING
from bert_tf.runtime.nvidia import Gpu, System
from bert_tf.runtime.settings import DeviceSettings

_MEBIBYTE = 1 << 20
# What TensorFlow leaves to the driver and to libraries, in MiB by compute capability (`MinSystemMemory` of its gpu_device.cc).
_SMALL, _LEFT_ON_SMALL = 2048, 225
_LEFT = ((7, 500), (8, 1050), (9, 1536))  # for capabilities below
_LEFT_ON_NEWEST = 1800


def for_tensors(settings: DeviceSettings, environment: Mapping[str, str]) -> int | None:
    """Returns the bytes for tensors on the smallest of the GPUs that are chosen; None where it is not known.

    Args:
      settings: a limit, and which GPUs.
      environment: CUDA_VISIBLE_DEVICES.
    """
    if settings.gpu_memory_limit_mb is not None:
        return settings.gpu_memory_limit_mb // settings.virtual_devices * _MEBIBYTE
    system = _as_found()
    shown = nvidia.listed(system.offered or system.gpus, environment.get(HIDING))
    rooms = [_room(gpu) for gpu in _chosen(shown, settings)]
    return None if not rooms or None in rooms else min(rooms) * _MEBIBYTE


@functools.lru_cache(maxsize=1)
def _as_found() -> System:
    """Returns the GPUs as they were at first: what this process takes of their memory stays there for its next run."""
    return nvidia.survey()


def _chosen(gpus: Sequence[Gpu], settings: DeviceSettings) -> Sequence[Gpu]:
    if settings.visible_gpus is not None:
        numbers = [int(part) for part in settings.visible_gpus.split(",") if part.strip().isdecimal()]
        gpus = [gpus[number] for number in numbers if number < len(gpus)]
    gpus = gpus[: settings.num_gpus]
    device = re.search(r"gpu:(\d+)$", settings.device or "", re.IGNORECASE)
    only = int(device[1]) if device else 0 if settings.strategy == "one_device" else None
    return gpus if only is None else gpus[only : only + 1]


def _room(gpu: Gpu) -> int | None:
    """Returns MiB."""
    free = gpu.memory_total_mb if gpu.memory_free_mb is None else gpu.memory_free_mb
    if free is None:
        return None
    if free < _SMALL:
        return max(0, free - _LEFT_ON_SMALL)
    major = int((gpu.compute_capability or "8.0").partition(".")[0])
    return free - next((left for below, left in _LEFT if major < below), _LEFT_ON_NEWEST)
