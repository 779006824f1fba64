"""Rows to pre-train on, as a call."""

from __future__ import annotations

from typing import Any

from bert_tf.jobs import pretraining_data as job
from bert_tf.jobs.pretraining_data import Written
from bert_tf.jobs.pretraining_data_config import SETTINGS, configured
from bert_tf.library.beam_runner import Arguments, runner
from bert_tf.library.keywords import takes


@takes(SETTINGS)
def make_pretraining_data(*, beam: Arguments = False, **settings: Any) -> Written:
    """Writes text as shards of masked rows; does what `python -m bert_tf pretraining-data` does.

        bert_tf.make_pretraining_data(input_file="texts/*.txt", output_file="rows.tfrecord", vocab_file="vocab.txt")

    Args:
      beam: arguments of Apache Beam, whose pipeline does it; True for none.
      **settings: those of the command, by the names of its flags.

    Returns:
      The `paths` of the shards, how many `documents`, `sentences` and `pieces` there were, and a `tally` of the rows.

    Raises:
      BertError: something that the caller can fix.
    """
    return job.make(configured(**settings), beam=runner(beam))
