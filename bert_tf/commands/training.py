"""Runs training commands: from a command line's settings to an exit status."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import STOPPED, run_command
from bert_tf.cli.failure import reports_go_to
from bert_tf.jobs.fine_tune_config import FineTuneConfig
from bert_tf.log_form import log


def run_training(read: Callable[[], tuple[FineTuneConfig, list[str]]], *, help_text: Callable[[], str]) -> int:
    """Returns the exit status, see `run_command`; 130 also if a signal ended training.

    `read` returns the configuration and the flags without effect.
    """
    stopped = "stopped at once; the same command continues from the last checkpoint"
    return run_command(lambda: _train(*read()), help_text=help_text, stopped=stopped)


def _train(config: FineTuneConfig, idle: Sequence[str]) -> int:
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
