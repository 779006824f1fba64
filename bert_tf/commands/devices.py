"""The devices command: the machine's devices, those that TensorFlow cannot use, and what the flags would choose."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from absl import flags as absl_flags
from absl import logging

from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import Flag, by_name, help_of, read
from bert_tf.errors import DeviceError
from bert_tf.jobs.devices import as_json, describe, survey
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import settings_of

DEVICES = tuple(settings_of(DeviceSettings))
FLAGS = (Flag("json", bool, False, "print one JSON object instead"),)


class Settings(NamedTuple):
    devices: DeviceSettings
    json: bool


def main(argv: Sequence[str]) -> int:
    return run_command(lambda: _run(parse(argv)), help_text=help_text, stopped="stopped")


def parse(argv: Sequence[str]) -> Settings:
    values = read(argv, (*DEVICES, *FLAGS))
    return Settings(DeviceSettings(**by_name(values, DEVICES)), values["json"].value)


def help_text() -> str:
    return help_of(
        "Shows what there is to compute on, and what a run with the same flags would use: python -m bert_tf devices",
        rows=(*FLAGS, *DEVICES),
    )


def _run(settings: Settings) -> int:
    from bert_tf.runtime import (  # TensorFlow, and what imports it, waits until it is needed: --help is quick
        noise,
        quick_import,
    )

    logging.set_verbosity(logging.WARNING)
    logging.use_absl_handler()
    absl_flags.FLAGS.mark_as_parsed()
    quick_import.install()
    noise.quiet_before_import()
    noise.quiet_python()
    report = survey(settings.devices, environment=os.environ)
    print(as_json(report) + "\n" if settings.json else describe(report), end="")
    if report.problem:
        raise DeviceError(report.problem)
    return 0
