"""Flags shared by commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from absl import flags

from bert_tf.cli.flags import Flag

VERBOSITY = Flag("verbosity", int, 0, "-1 warnings only, 0 the log, 1 TensorFlow's own messages too")


def given(parsed: flags.FlagValues, rows: Iterable[Flag]) -> dict[str, Any]:
    return {row.name: parsed[row.name].value for row in rows if parsed[row.name].present}
