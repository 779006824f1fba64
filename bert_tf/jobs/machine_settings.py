"""On what a batch job computes; no TensorFlow: --help is quick."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.engines.names import INT8, NAMES, TENSORFLOW
from bert_tf.jobs.settings import PRECISIONS, SpeedSettings
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import group, read, same, setting, settings_of

# Settings of devices that are of training alone.
OF_TRAINING = {"log_device_placement", "strategy", "cross_device_ops", "all_reduce_alg", "check_replicas_every_n_steps"}
_WITH_INT8 = {
    "choices": (*PRECISIONS, INT8),
    "help": f"of matrix products: float32 (strict), tf32, bfloat16, float16; {INT8} of --engine",
}


@dataclasses.dataclass(frozen=True)
class MachineSettings:
    """On what to compute."""

    precision: str = same(SpeedSettings, "precision", help=_WITH_INT8, choices=(*PRECISIONS, INT8))
    engine: str = setting(TENSORFLOW, f"what computes: {', '.join(NAMES)} by what is installed", choices=NAMES)
    native_kernels: bool = same(SpeedSettings, "native_kernels")
    devices: DeviceSettings = group(DeviceSettings, without=OF_TRAINING)  # all that are seen compute


SETTINGS = tuple(settings_of(MachineSettings))
PRECISION, ENGINE, NATIVE_KERNELS, *DEVICES = SETTINGS


def configured(**values: Any) -> MachineSettings:
    """Returns settings by name; raises FlagError for one that is unknown, or has an unusable value."""
    return read(MachineSettings, values)


def with_threads(machine: MachineSettings, threads: int | None) -> MachineSettings:
    """Returns settings of one of several processes on a machine; what is given stays.

    Args:
      machine: as asked for.
      threads: that each process has; None where that is unknown.
    """
    given = machine.devices
    devices = dataclasses.replace(
        given, intra_op_threads=given.intra_op_threads or threads, inter_op_threads=given.inter_op_threads or threads
    )
    return dataclasses.replace(machine, devices=devices)
