"""Flags that the commands of batch jobs share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from absl import flags

from bert_tf.commands.flags import Flag, read
from bert_tf.errors import FlagError

VERBOSITY = Flag("verbosity", int, 0, "-1 warnings only, 0 the log, 1 TensorFlow's own messages too")

BEAM = Flag("beam", bool, False, "as an Apache Beam pipeline; what follows -- goes to Beam: -- --runner=DirectRunner")

_REST = "--"


def read_with_beam(argv: Sequence[str], rows: Sequence[Flag]) -> tuple[flags.FlagValues, tuple[str, ...] | None]:
    """Reads a command line; returns its flags, and the arguments of Apache Beam after `--`, None without it.

    Args:
      argv: name and arguments.
      rows: the flags, `BEAM` among them.

    Raises:
      FlagError: a flag is unknown or has an unusable value, or Beam has arguments and is not asked for.
      HelpAsked: instead of settings.
    """
    end = argv.index(_REST) if _REST in argv else len(argv)
    parsed, rest = read(argv[:end], rows), tuple(argv[end + 1 :])
    if rest and not parsed[BEAM.name].value:
        raise FlagError(f"{rest[0]!r} after -- is for Apache Beam; add --beam")
    return parsed, rest if parsed[BEAM.name].value else None


def given(parsed: flags.FlagValues, rows: Iterable[Flag]) -> dict[str, Any]:
    """Returns the flags that stand on the command line, by name.

    Args:
      parsed: from `flags.read`.
      rows: which to look for.
    """
    return {row.name: parsed[row.name].value for row in rows if parsed[row.name].present}
