"""Prediction of files of any size, as a call."""

from __future__ import annotations

import os
from typing import Any

from bert_tf.jobs import predict as job
from bert_tf.jobs.predict_config import SETTINGS, configured
from bert_tf.library.beam_runner import Arguments, Written, runner, written
from bert_tf.library.keywords import takes


@takes(SETTINGS)
def predict_files(*, beam: Arguments = False, **settings: Any) -> tuple[Written, ...]:
    """Predicts files of any size; as `python -m bert_tf predict`. For rows in memory use `Model.predict`.

        bert_tf.predict_files(checkpoint="out/mrpc", input="rows.tsv", output="predictions.tsv")

    Args:
      beam: arguments of Apache Beam, to run as a pipeline; True for none.
      **settings: the command's flags, by name.

    Returns:
      The files of predictions; with Beam the shards, as strings if they lie on another file system.

    Raises:
      BertError: invalid settings or input.
    """
    by = runner(beam)
    config = configured(**settings)
    return written(job.predict(*config, environment=os.environ, beam=by))
