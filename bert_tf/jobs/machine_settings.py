"""On what a batch job computes; no TensorFlow: --help is quick."""

from __future__ import annotations

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
    """

    devices: DeviceSettings
    precision: str
    engine: str = TENSORFLOW


# Settings of devices that are of training alone.
OF_TRAINING = {"log_device_placement", "strategy", "cross_device_ops", "all_reduce_alg", "check_replicas_every_n_steps"}
DEVICES = tuple(row for row in settings_of(DeviceSettings) if row.name not in OF_TRAINING)
(_TRAINED,) = (row for row in settings_of(SpeedSettings) if row.name == "precision")
PRECISION = _TRAINED._replace(choices=(*_TRAINED.choices, INT8), help=f"{_TRAINED.help}; {INT8} of --engine")
ENGINE = Setting("engine", str, TENSORFLOW, f"what computes: {', '.join(NAMES)} by what is installed", None, NAMES)
SETTINGS = (PRECISION, ENGINE, *DEVICES)


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
    return MachineSettings(DeviceSettings(**given), precision, engine)
