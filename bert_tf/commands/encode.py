"""The encode command: texts of any number become vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from bert_tf.commands.batch_flags import VERBOSITY, given
from bert_tf.commands.beginning import setup_logging
from bert_tf.commands.ending import run_command
from bert_tf.commands.flags import help_line, read
from bert_tf.jobs.encode_config import SETTINGS, EncodeConfig, configured

FLAGS = (*SETTINGS, VERBOSITY)


class Settings(NamedTuple):
    """The flags."""

    config: EncodeConfig
    verbosity: int


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.run_command`."""
    return run_command(
        lambda: _run(parse(argv)),
        help_text=help_text,
        stopped="stopped; the same command goes on where it was; pipes start anew",
    )


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line.

    Args:
      argv: name and arguments.

    Raises:
      FlagError: a flag is unknown, missing or has an unusable value.
      HelpAsked: instead of settings.
    """
    parsed = read(argv, FLAGS)
    return Settings(configured(**given(parsed, SETTINGS)), parsed[VERBOSITY.name].value)


def help_text() -> str:
    """Returns what --help prints."""
    example = "python -m bert_tf encode --input=texts.txt --output=vectors.npz"
    lines = [f"Turns texts into vectors (docs/vectors.md): {example}", ""]
    return "\n".join([*lines, *map(help_line, FLAGS)]) + "\n"


def _run(settings: Settings) -> int:
    setup_logging(settings.verbosity)
    from bert_tf.jobs.encode import encode  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    encode(settings.config, environment=os.environ)
    return 0
