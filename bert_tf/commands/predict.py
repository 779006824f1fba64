"""The predict command: files of any size, or a pipe, by one checkpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from bert_tf.commands.batch_flags import BEAM, VERBOSITY, beam_of, given, read_with_beam
from bert_tf.commands.beginning import setup_logging
from bert_tf.commands.ending import run_command
from bert_tf.commands.flags import help_line
from bert_tf.jobs.predict_config import SETTINGS, PredictConfig, configured

FLAGS = (*SETTINGS, BEAM, VERBOSITY)


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
    parsed, beam = read_with_beam(argv, FLAGS)
    return Settings(configured(**given(parsed, SETTINGS)), parsed[VERBOSITY.name].value, beam)


def help_text() -> str:
    """Returns what --help prints."""
    example = "python -m bert_tf predict --checkpoint=out/mrpc --input=FILE --output=FILE"
    lines = [f"Predicts files of any size (docs/batch_jobs.md): {example}", ""]
    return "\n".join([*lines, *map(help_line, FLAGS)]) + "\n"


def _run(settings: Settings) -> int:
    setup_logging(settings.verbosity)
    from bert_tf.jobs.predict import predict  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    predict(*settings.config, environment=os.environ, beam=beam_of(settings.beam, settings.verbosity))
    return 0
