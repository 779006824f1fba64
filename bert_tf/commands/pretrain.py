"""The pretrain command: trains on unlabelled text to a checkpoint for fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence

from bert_tf.commands import classifier_flags
from bert_tf.commands.training import run_training
from bert_tf.jobs import pretrain_config
from bert_tf.jobs.fine_tune_config import FineTuneConfig

_NOTE = "Rows, masks and the order of both are functions of the seeds: the same command goes on where it was, to the same bits."


def main(argv: Sequence[str]) -> int:
    return run_training(lambda: parse(argv), help_text=help_text)


def help_text() -> str:
    title = "Learns from text without labels: python -m bert_tf pretrain --input_file='texts/*.txt' --output_dir=out/mine"
    return classifier_flags.listed(title, pretrain_config.GROUPS, _NOTE)


def parse(argv: Sequence[str]) -> tuple[FineTuneConfig, list[str]]:
    """Also returns the flags without effect; raises FlagError or HelpAsked."""
    given, idle = classifier_flags.given_settings(argv, pretrain_config.GROUPS)
    return pretrain_config.configured(**given), idle
