"""The predict command: files of any size, or a pipe, by one checkpoint."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bert_tf.commands.batch_flags import VERBOSITY, given
from bert_tf.commands.beginning import setup_logging
from bert_tf.commands.ending import run_command
from bert_tf.commands.flags import Flag, help_line, read
from bert_tf.errors import FlagError
from bert_tf.jobs.predict_config import SETTINGS, PredictConfig, configured

BEAM = Flag("beam", bool, False, "as an Apache Beam pipeline; what follows -- goes to Beam: -- --runner=DirectRunner")
FLAGS = (*SETTINGS, BEAM, VERBOSITY)

_REST = "--"


class Settings(NamedTuple):
    """The flags.

    Attributes:
      config: what to predict, and on what.
      verbosity: see `begin`.
      beam: arguments of Apache Beam; None without it.
    """

    config: PredictConfig
    verbosity: int
    beam: tuple[str, ...] | None


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.run_command`."""
    return run_command(
        lambda: _run(parse(argv)),
        help_text=help_text,
        stopped="stopped; the same command goes on where it was; pipes and --beam start anew",
    )


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line.

    Args:
      argv: name and arguments, those of Beam after `--`.

    Raises:
      FlagError: a flag is unknown or has an unusable value, or the job file has a mistake.
      HelpAsked: instead of settings.
    """
    end = argv.index(_REST) if _REST in argv else len(argv)
    parsed, rest = read(argv[:end], FLAGS), tuple(argv[end + 1 :])
    if rest and not parsed[BEAM.name].value:
        raise FlagError(f"{rest[0]!r} after -- is for Apache Beam; add --beam")
    config = configured(**given(parsed, SETTINGS))
    return Settings(config, parsed[VERBOSITY.name].value, rest if parsed[BEAM.name].value else None)


def help_text() -> str:
    """Returns what --help prints."""
    example = "python -m bert_tf predict --checkpoint=out/mrpc --input=FILE --output=FILE"
    lines = [f"Predicts files of any size (docs/batch_jobs.md): {example}", ""]
    return "\n".join([*lines, *map(help_line, FLAGS)]) + "\n"


def _run(settings: Settings) -> int:
    setup_logging(settings.verbosity)
    from bert_tf.jobs.beam_job import Beam
    from bert_tf.jobs.predict import predict  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    beam = None if settings.beam is None else Beam(settings.beam, functools.partial(_begin_worker, settings.verbosity))
    predict(*settings.config, environment=os.environ, beam=beam)
    return 0


def _begin_worker(verbosity: int) -> Mapping[str, str]:
    """Begins in a process that Beam has started; returns its environment."""
    setup_logging(verbosity)
    return os.environ
