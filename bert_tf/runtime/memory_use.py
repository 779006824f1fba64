"""Memory in use by this process, in MiB; cheap enough for every training report."""

from __future__ import annotations

import os

import psutil
import tensorflow as tf

from bert_tf.log_form import log
from bert_tf.runtime import cluster

HOST, GPU, GPU_PEAK = "host_memory_mb", "gpu_memory_mb", "gpu_memory_peak_mb"

_MEBIBYTE = 1 << 20


class MemoryUse:
    """Memory known to the operating system and, for visible GPUs, to TensorFlow."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._gpus = _gpus()

    def read(self) -> dict[str, float]:
        """Memory by name, unknown values omitted: HOST; GPU and GPU_PEAK of tensors on the fullest GPU."""
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
    if cluster.VARIABLE in os.environ:  # with several machines, setting up devices for this would start a second server
        return ()
    try:
        if not tf.config.get_visible_devices("GPU"):
            return ()
        return tuple(device.name.removeprefix("/device:") for device in tf.config.list_logical_devices("GPU"))
    except (RuntimeError, ValueError, tf.errors.OpError) as error:
        log.debug("no memory of GPUs: %s", error)
        return ()
