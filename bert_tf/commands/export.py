"""The export command: a trained model as what other software runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from bert_tf.commands.batch_flags import VERBOSITY, given
from bert_tf.commands.beginning import setup_logging
from bert_tf.commands.ending import run_command
from bert_tf.commands.flags import help_line, read_with_words
from bert_tf.errors import FlagError
from bert_tf.jobs.export_config import SETTINGS, ExportConfig, configured

FLAGS = (*SETTINGS, VERBOSITY)


class Settings(NamedTuple):
    """What is asked for."""

    config: ExportConfig
    verbosity: int


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.run_command`."""
    return run_command(lambda: _run(parse(argv)), help_text=help_text, stopped="stopped; nothing was written")


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line: a run and flags in any order.

    Args:
      argv: name and arguments.

    Raises:
      FlagError: a flag is unknown, missing or has an unusable value, or no run is named.
      HelpAsked: instead of settings.
    """
    runs, parsed = read_with_words(argv, FLAGS)
    if len(runs) != 1:
        raise FlagError(f"export: name one run or checkpoint, not {len(runs)}: python -m bert_tf export RUN --format=...")
    return Settings(configured(runs[0], **given(parsed, SETTINGS)), parsed[VERBOSITY.name].value)


def help_text() -> str:
    """Returns what --help prints."""
    example = "python -m bert_tf export RUN --format=saved_model --output=DIR"
    lines = [f"Writes a trained model as what other software runs (docs/export.md): {example}", ""]
    return "\n".join([*lines, *map(help_line, FLAGS)]) + "\n"


def _run(settings: Settings) -> int:
    setup_logging(settings.verbosity)
    from bert_tf.jobs.export import export  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    export(settings.config, environment=os.environ)
    return 0
