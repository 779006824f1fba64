"""Memory that this process has in use, cheap enough to ask for with every report of training; in MiB."""

from __future__ import annotations

import os

import psutil
import tensorflow as tf

from bert_tf.log_form import log
from bert_tf.runtime import cluster

HOST, GPU, GPU_PEAK = "host_memory_mb", "gpu_memory_mb", "gpu_memory_peak_mb"

_MEBIBYTE = 1 << 20


class MemoryUse:
    """Asks the operating system, and TensorFlow of the GPUs that it sees."""

    def __init__(self) -> None:
        """Looks for GPUs."""
        self._process = psutil.Process()
        self._gpus = _gpus()

    def read(self) -> dict[str, float]:
        """Returns the memory in use by name; what is not known is left out.

        `HOST` is what the process has in the machine's memory; `GPU` what tensors take on the GPU that has most, `GPU_PEAK`
        the most that they ever took there.
        """
        return {HOST: self._process.memory_info().rss / _MEBIBYTE, **self._on_gpus()}

    def _on_gpus(self) -> dict[str, float]:
        if not self._gpus:
            return {}
        try:
            found = [tf.config.experimental.get_memory_info(name) for name in self._gpus]
        except (RuntimeError, ValueError, tf.errors.OpError) as error:
            log.debug("no memory of GPUs: %s", error)
            self._gpus = ()
            return {}
        return {name: max(each[key] for each in found) / _MEBIBYTE for name, key in ((GPU, "current"), (GPU_PEAK, "peak"))}


def _gpus() -> tuple[str, ...]:
    """Returns the names of the GPUs; without one, nothing of TensorFlow is begun."""
    if cluster.VARIABLE in os.environ:  # with several machines, setting up devices for this would start a second server
        return ()
    try:
        if not tf.config.get_visible_devices("GPU"):
            return ()
        return tuple(device.name.removeprefix("/device:") for device in tf.config.list_logical_devices("GPU"))
    except (RuntimeError, ValueError, tf.errors.OpError) as error:
        log.debug("no memory of GPUs: %s", error)
        return ()
