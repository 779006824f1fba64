"""Flags that the commands of batch jobs share."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from bert_tf.commands.beginning import setup_logging
from bert_tf.commands.flags import Flag, read
from bert_tf.errors import FlagError

if TYPE_CHECKING:
    from bert_tf.jobs.beam_job import Beam

BEAM = Flag("beam", bool, False, "as an Apache Beam pipeline; what follows -- goes to Beam: -- --runner=DirectRunner")
VERBOSITY = Flag("verbosity", int, 0, "-1 warnings only, 0 the log, 1 TensorFlow's own messages too")

_REST = "--"


def given(parsed: flags.FlagValues, rows: Iterable[Flag]) -> dict[str, Any]:
    """Returns the flags that stand on the command line, by name.

    Args:
      parsed: from `flags.read`.
      rows: which to look for.
    """
    return {row.name: parsed[row.name].value for row in rows if parsed[row.name].present}


def read_with_beam(argv: Sequence[str], rows: Sequence[Flag]) -> tuple[flags.FlagValues, tuple[str, ...] | None]:
    """Reads a command line that may end in `--` and arguments of Apache Beam; see `flags.read`.

    Args:
      argv: name of the command, then its arguments.
      rows: the table of flags, `BEAM` among them.

    Returns:
      The flags; the arguments, None without Beam.
    """
    end = argv.index(_REST) if _REST in argv else len(argv)
    parsed, rest = read(argv[:end], rows), tuple(argv[end + 1 :])
    if rest and not parsed[BEAM.name].value:
        raise FlagError(f"{rest[0]!r} after -- is for Apache Beam; add --beam")
    return parsed, rest if parsed[BEAM.name].value else None


def beam_of(arguments: Sequence[str] | None, verbosity: int) -> Beam | None:
    """Returns how Apache Beam runs a job; None without it.

    Args:
      arguments: of Beam.
      verbosity: of the processes that it starts.
    """
    from bert_tf.jobs.beam_job import Beam  # it imports TensorFlow

    return None if arguments is None else Beam(arguments, functools.partial(_begin_worker, verbosity))


def _begin_worker(verbosity: int) -> Mapping[str, str]:
    """Begins in a process that Beam has started; returns its environment."""
    setup_logging(verbosity)
    return os.environ
