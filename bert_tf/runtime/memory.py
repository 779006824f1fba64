"""Memory of this process: in use, in MiB, for tensors on its GPUs, and kept for the next step when it is freed.

TensorFlow frees the tensors of a step. Where it does not use oneDNN (CPUs without AVX512_VNNI), its allocator is that of glibc,
which gives large blocks back to the kernel, and the kernel zeroes new pages for the next step: up to half of the time
(docs/notes/speed.md).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Collection, Mapping

import psutil
import tensorflow as tf

from bert_tf.io.log_form import log
from bert_tf.runtime.settings import TF_CONFIG

ALLOCATOR = "TF_CPU_ALLOCATOR_USE_BFC"  # read when the process first computes; best fit with coalescing, as on GPUs
TUNABLES = "GLIBC_TUNABLES"

# Of mallopt (glibc's malloc.h): number, name in the environment and in GLIBC_TUNABLES, value in bytes.
_OPTIONS = (
    (-3, "MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold", 1 << 30),
    (-1, "MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold", (1 << 31) - 1),
    (-2, "MALLOC_TOP_PAD_", "glibc.malloc.top_pad", 1 << 26),  # the size of a thread's heap, which then stays
)
mallopt: Callable[[int, int], int] | None = (  # None with other C libraries
    getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
)
_LARGEST_OF_OLD = 1 << 25  # glibc before 2.35 refuses a higher MALLOC_MMAP_THRESHOLD_


def keep(environment: Mapping[str, str]) -> None:
    """Keeps memory for the rest of this process; variables that the user set stay. Call before TensorFlow computes."""
    os.environ.setdefault(ALLOCATOR, "true")
    if mallopt is None:
        return
    for number, variable, tunable, value in _OPTIONS:
        is_free = variable not in environment and tunable not in environment.get(TUNABLES, "")
        if is_free and not mallopt(number, value):
            mallopt(number, _LARGEST_OF_OLD)


tf1 = tf.compat.v1

HOST, GPU, GPU_PEAK = "host_memory_mb", "gpu_memory_mb", "gpu_memory_peak_mb"

_MEBIBYTE = 1 << 20


class MemoryUse:
    """Memory known to the operating system and, for visible GPUs, to TensorFlow; cheap enough for every training report."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._gpus = _gpus()

    def measure(self) -> dict[str, float]:
        """Memory by name, unknown values omitted: HOST; GPU and GPU_PEAK of tensors on the fullest GPU."""
        return {HOST: self._process.memory_info().rss / _MEBIBYTE, **self._on_gpus()}

    def _on_gpus(self) -> dict[str, float]:
        if not self._gpus:
            return {}
        try:
            infos = [tf.config.experimental.get_memory_info(name) for name in self._gpus]
        except (RuntimeError, ValueError, tf.errors.OpError) as error:
            log.debug("GPU memory is unknown: %s", error)
            self._gpus = ()
            return {}
        return {name: max(info[key] for info in infos) / _MEBIBYTE for name, key in ((GPU, "current"), (GPU_PEAK, "peak"))}


def _gpus() -> tuple[str, ...]:
    if TF_CONFIG in os.environ:  # with several machines, setting up devices for this would start a second server
        return ()
    try:
        if not tf.config.get_visible_devices("GPU"):
            return ()
        return tuple(device.name.removeprefix("/device:") for device in tf.config.list_logical_devices("GPU"))
    except (RuntimeError, ValueError, tf.errors.OpError) as error:
        log.debug("GPU memory is unknown: %s", error)
        return ()


def for_tensors(config: tf1.ConfigProto, used: Collection[str]) -> int | None:
    """Bytes for tensors on the smallest of the used GPUs (/device:GPU:0); None if no GPU is used.

    Makes TensorFlow create its devices with `config`, which binds all later sessions of the process. Raises tf.errors.OpError
    for an unusable GPU, see `gpu_failures`.
    """
    gpus = {name for name in used if "GPU" in name}
    if not gpus:
        return None
    with tf.Graph().as_default(), tf1.Session(config=config) as session:
        devices = session.list_devices()
    limits = [device.memory_limit_bytes for device in devices if f"/{device.name.rpartition('/')[2]}" in gpus]
    return min((limit for limit in limits if limit), default=None)  # 0 means unknown
