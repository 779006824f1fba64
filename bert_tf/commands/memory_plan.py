"""The forecast of the memory command: whether a training step fits, what takes the memory, and what would help."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import Flag, help_of, read
from bert_tf.commands.batch_flags import given
from bert_tf.jobs.memory_plan import SETTINGS, as_json, configured, describe, make_plan

FITS, DOES_NOT_FIT = 0, 1

FLAGS = (*SETTINGS, Flag("json", bool, False, "print one JSON object instead, sizes in bytes"))


def main(argv: Sequence[str]) -> int:
    """Returns 0 if the step fits, 1 if not, else see `ending.run_command`."""
    return run_command(lambda: _run(argv), help_text=help_text, stopped="stopped")


def help_text() -> str:
    usage = "Says before anything is built whether training fits: python -m bert_tf memory plan"
    status = "Exit status: 0 it fits, 1 it does not, 2 a flag or file is unusable."
    return help_of(usage, status, rows=FLAGS)


def _run(argv: Sequence[str]) -> int:
    values = read(argv, FLAGS)
    plan = make_plan(configured(**given(values, SETTINGS)))
    sys.stdout.write(as_json(plan) + "\n" if values["json"].value else describe(plan))
    return FITS if plan.fits else DOES_NOT_FIT
