"""The encode command: turns any number of texts into vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import help_of
from bert_tf.commands.batch_flags import BEAM, VERBOSITY, Settings, parse_with_beam
from bert_tf.jobs.encode_config import SETTINGS, EncodeConfig, configured

FLAGS = (*SETTINGS, BEAM, VERBOSITY)


def main(argv: Sequence[str]) -> int:
    return run_command(
        lambda: _run(parse(argv)),
        help_text=help_text,
        stopped="stopped; the same command goes on where it was; pipes and --beam start anew",
    )


def parse(argv: Sequence[str]) -> Settings[EncodeConfig]:
    return parse_with_beam(argv, FLAGS, configured)


def help_text() -> str:
    example = "python -m bert_tf encode --input=texts.txt --output=vectors.npz"
    return help_of(f"Turns texts into vectors (docs/vectors.md): {example}", rows=FLAGS)


def _run(settings: Settings[EncodeConfig]) -> int:
    setup_logging(settings.verbosity)
    from bert_tf.jobs.encode import encode  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    encode(settings.config, environment=os.environ, beam=settings.runner())
    return 0
