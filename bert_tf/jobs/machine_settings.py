"""Machine settings of a batch job; imports no TensorFlow, so that --help is quick."""

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
    "help": f"of matrix multiplications: float32 (strict), tf32, bfloat16, float16; {INT8} with an --engine",
}


@dataclasses.dataclass(frozen=True)
class MachineSettings:
    precision: str = same(SpeedSettings, "precision", help=_WITH_INT8, choices=(*PRECISIONS, INT8))  # of matrix products
    # key of `engines.registry.ENGINES`, or `auto`
    engine: str = setting(TENSORFLOW, f"what computes: {', '.join(NAMES)} by what is installed", choices=NAMES)
    native_kernels: bool = same(SpeedSettings, "native_kernels")  # for CPUs with TensorFlow
    # each visible one computes with a copy of the model
    devices: DeviceSettings = group(DeviceSettings, without=OF_TRAINING)  # all that are seen compute


SETTINGS = tuple(settings_of(MachineSettings))
PRECISION, ENGINE, NATIVE_KERNELS, *DEVICES = SETTINGS


def configured(**values: Any) -> MachineSettings:
    return read(MachineSettings, values)


def with_threads(machine: MachineSettings, threads: int | None) -> MachineSettings:
    """Sets the threads of each process on a shared machine, unless given; None if unknown."""
    given = machine.devices
    devices = dataclasses.replace(
        given, intra_op_threads=given.intra_op_threads or threads, inter_op_threads=given.inter_op_threads or threads
    )
    return dataclasses.replace(machine, devices=devices)
