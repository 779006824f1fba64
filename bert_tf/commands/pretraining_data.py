"""The pretraining-data command: turns text into shards of masked rows."""

from __future__ import annotations

from collections.abc import Sequence

from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import help_of
from bert_tf.commands.batch_flags import BEAM, VERBOSITY, Settings, parse_with_beam
from bert_tf.jobs import pretraining_data
from bert_tf.jobs.pretraining_data_config import SETTINGS, PretrainingDataConfig, configured

FLAGS = (*SETTINGS, BEAM, VERBOSITY)


def main(argv: Sequence[str]) -> int:
    return run_command(
        lambda: _run(parse(argv)),
        help_text=help_text,
        stopped="stopped; the same command goes on where it was; pipes start anew",
    )


def parse(argv: Sequence[str]) -> Settings[PretrainingDataConfig]:
    return parse_with_beam(argv, FLAGS, configured)


def help_text() -> str:
    example = "python -m bert_tf pretraining-data --input_file=text.txt --output_file=rows.tfrecord --vocab_file=vocab.txt"
    return help_of(
        "Makes masked rows to pre-train on (docs/pretraining.md), by the flags of create_pretraining_data.py:",
        example,
        rows=FLAGS,
    )


def _run(settings: Settings[PretrainingDataConfig]) -> int:
    setup_logging(settings.verbosity)
    print(pretraining_data.make(settings.config, beam=settings.runner()), end="")
    return 0
