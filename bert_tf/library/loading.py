"""Loads trained models from folders."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bert_tf.batch.job import ModelOverrides, Rules
from bert_tf.library.keywords import takes
from bert_tf.library.model import Model
from bert_tf.runtime.settings import ONE_DEVICE, DeviceSettings
from bert_tf.settings import MOST_EXAMPLES, group, read_settings, setting, settings_of
from bert_tf.tasks.base import Task
from bert_tf.tasks.families import with_rules
from bert_tf.tasks.rows_task import RowsTask
from bert_tf.training import batch_machine, sources
from bert_tf.training.settings import MachineSettings

if TYPE_CHECKING:
    from bert_tf.training.run_spec import RunSpec


@dataclasses.dataclass(frozen=True)
class LoadSettings:
    model: ModelOverrides = group(ModelOverrides)
    rules: Rules = group(Rules)
    batch_size: int | None = setting(
        None, "batch size per device; default: by length and GPU memory", lowest=1, highest=MOST_EXAMPLES
    )
    machine: MachineSettings = group(MachineSettings)


@takes(LoadSettings)
def load(
    path: str | os.PathLike[str],
    *,
    task: str | Task | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    batch_size: int | None = None,
    **settings: Any,
) -> Model:
    """Returns a trained model; its weights are loaded lazily.

    Args:
      path: a run folder (its best or newest checkpoint), or a checkpoint.
      task: the learned task, if no run record names it.
      data_dir: folder of the task's files for `Model.evaluate`; by default as the command finds it.
      batch_size: rows per batch on each device; None to choose it by their lengths.
      **settings: model settings such as `max_seq_length`, decoding options such as `n_best_size`, `engine`, `precision`
        and device settings, by the flag names of `python -m bert_tf predict`.

    Raises:
      CheckpointError: there is no trained model, a file is missing or damaged, or the task is unknown.
      FlagError: a setting is unknown or invalid.
    """
    return _loaded(path, read_settings(LoadSettings, {"batch_size": batch_size, **settings}), task, data_dir)


def load_trained(
    path: str | os.PathLike[str], spec: RunSpec, task: Task | None, data_dir: str | os.PathLike[str] | None
) -> Model:
    """Returns the model of a run that this process trained: on its devices, which TensorFlow keeps, and in its precision."""
    of_training = {row.name: row.default for row in settings_of(DeviceSettings) if row.of_training}
    kept = {"strategy": ONE_DEVICE} if spec.devices.strategy == ONE_DEVICE else {}
    devices = dataclasses.replace(spec.devices, **{**of_training, **kept})
    machine = MachineSettings(spec.speed.precision, native_kernels=spec.speed.native_kernels, devices=devices)
    return _loaded(path, LoadSettings(machine=machine), task, data_dir)


def _loaded(
    path: str | os.PathLike[str],
    load_settings: LoadSettings,
    task: str | Task | None,
    data_dir: str | os.PathLike[str] | None,
) -> Model:
    model = sources.find(path, load_settings.model, environment=os.environ, task=task).anchored
    model.refuse(model.task.family)
    folder = None if data_dir is None else os.path.abspath(data_dir)
    inference = batch_machine.inference(load_settings.machine, load_settings.batch_size, [model.prefix], environment=os.environ)
    family = with_rules(model.task.family.as_trained(model.record), load_settings.rules.given())
    return Model(model, model.task, inference, find_data=_finder(folder), family=family)


def _finder(data_dir: str | None) -> Callable[[Task], str]:
    def find(task: Task) -> str:
        if isinstance(task, RowsTask):
            return ""
        return str(sources.find_data(task, data_dir, environment=os.environ).folder)

    return find
