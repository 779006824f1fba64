"""The pretrain command: text without labels in, a checkpoint to fine-tune from out."""

from __future__ import annotations

from collections.abc import Sequence

from bert_tf.commands import classifier_flags
from bert_tf.commands.training import run_training
from bert_tf.jobs import pretrain_config
from bert_tf.jobs.fine_tune_config import FineTuneConfig

_NOTE = "Rows, masks and the order of both are functions of the seeds: the same command goes on where it was, to the same bits."


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `training.run_training`."""
    return run_training(lambda: parse(argv), help_text=help_text)


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
