"""On what a batch job computes; no TensorFlow: --help is quick."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from bert_tf.engines.names import INT8, NAMES, TENSORFLOW
from bert_tf.jobs.settings import SpeedSettings
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import Setting, named, settings_of


class MachineSettings(NamedTuple):
    """On what to compute.

    Attributes:
      devices: of this machine; all that are seen compute, each with a copy of the model.
      precision: of matrix products.
      engine: what computes; a key of `engines.registry.ENGINES`, or `auto`.
      native_kernels: kernels built for the machine, where CPUs compute by TensorFlow.
    """

    devices: DeviceSettings
    precision: str
    engine: str = TENSORFLOW
    native_kernels: bool = True


# Settings of devices that are of training alone.
OF_TRAINING = {"log_device_placement", "strategy", "cross_device_ops", "all_reduce_alg", "check_replicas_every_n_steps"}
DEVICES = tuple(row for row in settings_of(DeviceSettings) if row.name not in OF_TRAINING)
_OF_SPEED = {row.name: row for row in settings_of(SpeedSettings)}
_TRAINED, NATIVE_KERNELS = _OF_SPEED["precision"], _OF_SPEED["native_kernels"]
PRECISION = _TRAINED._replace(choices=(*_TRAINED.choices, INT8), help=f"{_TRAINED.help}; {INT8} of --engine")
ENGINE = Setting("engine", str, TENSORFLOW, f"what computes: {', '.join(NAMES)} by what is installed", None, NAMES)
SETTINGS = (PRECISION, ENGINE, NATIVE_KERNELS, *DEVICES)


def configured(**values: Any) -> MachineSettings:
    """Returns settings by name.

    Args:
      **values: those of `SETTINGS`.

    Raises:
      FlagError: one is unknown, or has an unusable value.
    """
    given = named(SETTINGS, values)
    precision = given.pop(PRECISION.name, PRECISION.default)
    engine = given.pop(ENGINE.name, ENGINE.default)
    native_kernels = given.pop(NATIVE_KERNELS.name, NATIVE_KERNELS.default)
    return MachineSettings(DeviceSettings(**given), precision, engine, native_kernels)


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
    return machine._replace(devices=devices)
