"""Placement log: the device of each training operation (docs/devices.md)."""

from __future__ import annotations

import dataclasses

from bert_tf.extension import Extension, Settings
from bert_tf.settings import training_setting

FILE = "device_placement.tsv"  # in a run's folder


@dataclasses.dataclass(frozen=True)
class PlacementLogSettings(Settings):
    log_device_placement: bool = training_setting(False, f"write the device of each training operation to {FILE}")


EXTENSION = Extension(
    settings=PlacementLogSettings,
    section="Output",
    part=f"{__name__}.hook:PlacementLog",
    files={(FILE,): "device of each operation (docs/devices.md)"},
)
