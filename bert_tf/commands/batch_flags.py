"""Flags shared by the batch commands."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from absl import flags

from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.flags import Flag, read
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
    """A parsed command line."""

    config: Config
    verbosity: int  # see `setup_logging`
    beam: tuple[str, ...] | None = None  # arguments of Apache Beam; None without it

    def runner(self) -> Beam | None:
        if self.beam is None:
            return None
        from bert_tf.jobs.beam_job import Beam  # it imports TensorFlow

        return Beam(self.beam, functools.partial(_begin_worker, self.verbosity))


def given(parsed: flags.FlagValues, rows: Iterable[Flag]) -> dict[str, Any]:
    return {row.name: parsed[row.name].value for row in rows if parsed[row.name].present}


def parse_with_beam(argv: Sequence[str], rows: Sequence[Flag], configured: Callable[..., Config]) -> Settings[Config]:
    """Parses flags, optionally followed by `--` and arguments of Apache Beam; raises FlagError or HelpAsked."""
    end = argv.index(_REST) if _REST in argv else len(argv)
    parsed, rest = read(argv[:end], rows), tuple(argv[end + 1 :])
    if rest and not parsed[BEAM.name].value:
        raise FlagError(f"{rest[0]!r} after -- is for Apache Beam; add --beam")
    beam = rest if parsed[BEAM.name].value else None
    return Settings(configured(**_given(parsed, rows)), parsed[VERBOSITY.name].value, beam)


def _given(parsed: flags.FlagValues, rows: Iterable[Flag]) -> dict[str, Any]:
    return given(parsed, (row for row in rows if row not in _OWN))


def _begin_worker(verbosity: int) -> Mapping[str, str]:
    setup_logging(verbosity)
    return os.environ
