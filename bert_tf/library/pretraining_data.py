"""Masked rows for pre-training, as a call."""

from __future__ import annotations

from typing import Any

from bert_tf.jobs import pretraining_data as job
from bert_tf.jobs.pretraining_data import Written
from bert_tf.jobs.pretraining_data_config import SETTINGS, configured
from bert_tf.library.beam_runner import Arguments, runner
from bert_tf.library.keywords import takes


@takes(SETTINGS)
def make_pretraining_data(*, beam: Arguments = False, **settings: Any) -> Written:
    """Writes text as shards of masked rows; as `python -m bert_tf pretraining-data`.

        bert_tf.make_pretraining_data(input_file="texts/*.txt", output_file="rows.tfrecord", vocab_file="vocab.txt")

    Args:
      beam: arguments of Apache Beam, to run as a pipeline; True for none.
      **settings: the command's flags, by name.

    Returns:
      The `paths` of the shards, the counts of `documents`, `sentences` and `pieces`, and a `tally` of the rows.

    Raises:
      BertError: invalid settings or input.
    """
    return job.make(configured(**settings), beam=runner(beam))
