"""On what a batch job computes; no TensorFlow: --help is quick."""

from __future__ import annotations

from typing import NamedTuple

from bert_tf.runtime.settings import DeviceSettings


class MachineSettings(NamedTuple):
    """On what to compute.

    Attributes:
      devices: of this machine; one computes.
      precision: of matrix products.
    """

    devices: DeviceSettings
    precision: str
