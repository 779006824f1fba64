"""The machine of a batch job, set up as its flags say."""

from __future__ import annotations

from collections.abc import Mapping

from bert_tf.batch.computer import InferenceOptions
from bert_tf.config import BertConfig
from bert_tf.inputs.pipeline import Batching
from bert_tf.jobs import speed
from bert_tf.jobs.machine_settings import MachineSettings
from bert_tf.jobs.settings import SpeedSettings
from bert_tf.runtime import cluster
from bert_tf.runtime.machine import describe, set_up
from bert_tf.runtime.precision import computed


def inference(settings: MachineSettings, batch_size: int | None, *, environment: Mapping[str, str]) -> InferenceOptions:
    """Sets the machine up, and returns how to compute on it; once a process.

    Args:
      settings: the flags.
      batch_size: rows at a time on each device; None for as many as suit their lengths.
      environment: TensorFlow's own variables.

    Raises:
      DeviceError: the machine is not as the flags want it.
    """
    alone = {name: value for name, value in environment.items() if name != cluster.VARIABLE}
    chosen = SpeedSettings(precision=settings.precision)
    speed.set_up(chosen)
    machine = set_up(settings.devices, environment=alone)
    describe(machine, settings.devices, alone)
    speed.warn(chosen)

    def batching(config: BertConfig, max_seq_length: int) -> Batching:
        return speed.eval_batching(chosen, max_seq_length, config, machine)

    return InferenceOptions(machine, speed.execution(chosen), batching, computed(settings.precision), batch_size)
