"""Devices and memory forecasts, as calls."""

from __future__ import annotations

import os
from typing import Any

from bert_tf.jobs import devices as devices_job
from bert_tf.jobs import memory_plan as plan_job
from bert_tf.jobs.devices import Report
from bert_tf.jobs.memory_plan import Plan
from bert_tf.library.keywords import takes
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import named, settings_of

_DEVICES = tuple(settings_of(DeviceSettings))


@takes(_DEVICES)
def devices(**settings: Any) -> Report:
    """Reports the devices and what a run with these settings would use; as `python -m bert_tf devices`.

    It sets devices up, which happens once per process.

    Args:
      **settings: device flags, by name.

    Raises:
      BertError: the machine does not meet the settings.
    """
    return devices_job.survey(DeviceSettings(**named(_DEVICES, settings)), environment=os.environ)


@takes(plan_job.SETTINGS)
def memory_plan(**settings: Any) -> Plan:
    """Forecasts whether a training step fits into memory, and what helps; as `python -m bert_tf memory plan`.

        bert_tf.memory_plan(bert_config_file="bert_config.json", gpu_memory_mb=5175, train_batch_size=12).fits

    Args:
      **settings: the command's flags, by name.

    Raises:
      BertError: a setting is invalid, or the model's file cannot be read.
    """
    return plan_job.make_plan(plan_job.configured(**settings))
