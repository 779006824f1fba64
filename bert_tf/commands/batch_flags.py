"""Flags that the commands of batch jobs share."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from absl import flags

from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.flags import Flag, read, read_with_words
from bert_tf.errors import FlagError

if TYPE_CHECKING:
    from bert_tf.jobs.beam_job import Beam

BEAM = Flag("beam", bool, False, "as an Apache Beam pipeline; what follows -- goes to Beam: -- --runner=DirectRunner")
VERBOSITY = Flag("verbosity", int, 0, "-1 warnings only, 0 the log, 1 TensorFlow's own messages too")

_OWN = (BEAM, VERBOSITY)  # of a command, not of its configuration
_REST = "--"

Config = TypeVar("Config")


@dataclasses.dataclass(frozen=True)
class Settings(Generic[Config]):
    """What a command line says.

    Attributes:
      config: what to do.
      verbosity: see `setup_logging`.
      beam: arguments of Apache Beam; None without it.
    """

    config: Config
    verbosity: int
    beam: tuple[str, ...] | None = None

    def runner(self) -> Beam | None:
        """Returns how Apache Beam runs the job; None without it."""
        if self.beam is None:
            return None
        from bert_tf.jobs.beam_job import Beam  # it imports TensorFlow

        return Beam(self.beam, functools.partial(_begin_worker, self.verbosity))


def given(parsed: flags.FlagValues, rows: Iterable[Flag]) -> dict[str, Any]:
    """Returns the flags that stand on the command line, by name.

    Args:
      parsed: from `flags.read`.
      rows: which to look for.
    """
    return {row.name: parsed[row.name].value for row in rows if parsed[row.name].present}


def parse_with_name(
    argv: Sequence[str], rows: Sequence[Flag], configured: Callable[..., Config], *, kinds: str
) -> Settings[Config]:
    """Reads a command line of one name, of a model, and flags in any order.

    Args:
      argv: name of the command, then its arguments.
      rows: the table of flags, `VERBOSITY` among them.
      configured: makes the configuration of the name, and of the other flags by their names.
      kinds: what can be named, for the message.

    Raises:
      FlagError: a flag is unknown, missing or has an unusable value, or nothing is named, or several are.
      HelpAsked: instead of settings.
    """
    words, parsed = read_with_words(argv, rows)
    if len(words) != 1:
        raise FlagError(f"{argv[0]} takes {kinds}; {len(words)} are named")
    return Settings(configured(words[0], **_given(parsed, rows)), parsed[VERBOSITY.name].value)


def parse_with_beam(argv: Sequence[str], rows: Sequence[Flag], configured: Callable[..., Config]) -> Settings[Config]:
    """Reads a command line of flags that may end in `--` and arguments of Apache Beam.

    Args:
      argv: name of the command, then its arguments.
      rows: the table of flags, `BEAM` and `VERBOSITY` among them.
      configured: makes the configuration of the others, by their names.

    Raises:
      FlagError: a flag is unknown, missing or has an unusable value.
      HelpAsked: instead of settings.
    """
    end = argv.index(_REST) if _REST in argv else len(argv)
    parsed, rest = read(argv[:end], rows), tuple(argv[end + 1 :])
    if rest and not parsed[BEAM.name].value:
        raise FlagError(f"{rest[0]!r} after -- is for Apache Beam; add --beam")
    beam = rest if parsed[BEAM.name].value else None
    return Settings(configured(**_given(parsed, rows)), parsed[VERBOSITY.name].value, beam)


def _given(parsed: flags.FlagValues, rows: Iterable[Flag]) -> dict[str, Any]:
    return given(parsed, (row for row in rows if row not in _OWN))


def _begin_worker(verbosity: int) -> Mapping[str, str]:
    """Begins in a process that Beam has started; returns its environment."""
    setup_logging(verbosity)
    return os.environ
