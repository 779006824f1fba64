"""The pretrain command: text without labels in, a checkpoint to fine-tune from out."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bert_tf.commands import classifier_flags
from bert_tf.commands.beginning import setup_logging
from bert_tf.commands.classifier import STOPPED
from bert_tf.commands.ending import run_command
from bert_tf.commands.failure import reports_go_to
from bert_tf.jobs import pretrain_config
from bert_tf.jobs.fine_tune_config import FineTuneConfig
from bert_tf.log_form import log

_NOTE = "Rows, masks and the order of both are functions of the seeds: the same command goes on where it was, to the same bits."


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.run_command`; 130 too where a signal ended training."""
    stopped = "stopped at once; the same command continues from the last checkpoint"
    return run_command(lambda: _run(argv), help_text=help_text, stopped=stopped)


def help_text() -> str:
    """Returns what --help prints."""
    title = "Learns from text without labels: python -m bert_tf pretrain --input_file='texts/*.txt' --output_dir=out/mine"
    return classifier_flags.listed(title, pretrain_config.GROUPS, _NOTE)


def parse(argv: Sequence[str]) -> tuple[FineTuneConfig, list[str]]:
    """Returns the configuration of a command line, and the flags in it that have no effect.

    Args:
      argv: name and arguments.

    Raises:
      FlagError: a flag is unknown or has an unusable value, or contradicts another.
      HelpAsked: instead of the configuration.
    """
    given, idle = classifier_flags.given_settings(argv, pretrain_config.GROUPS)
    return pretrain_config.configured(**given), idle


def _run(argv: Sequence[str]) -> int:
    config, idle = parse(argv)
    setup_logging(config.output.verbosity, config.output.log_form)
    reports_go_to(config.output.folder)
    if idle:
        log.warning("there is no TPU here, so these change nothing: %s", ", ".join(idle))
    from bert_tf.jobs import fine_tune, seeds, seeds_table  # TensorFlow waits until it is needed: --help is quick

    if not config.train.seed_numbers:
        return STOPPED if fine_tune.fine_tune(config, environment=os.environ).stopped_by else 0
    series = seeds.fine_tune_seeds(config, environment=os.environ)
    if series.stopped_by:
        return STOPPED
    print("\n".join(seeds_table.table(series.results)))
    return 0
