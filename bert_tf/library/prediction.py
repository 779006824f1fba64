"""Files of any size by a trained model, as a call."""

from __future__ import annotations

import os
from typing import Any

from bert_tf.jobs import predict as job
from bert_tf.jobs.predict_config import SETTINGS, configured
from bert_tf.library.beam_runner import Arguments, Written, runner, written
from bert_tf.library.keywords import takes


@takes(SETTINGS)
def predict_files(*, beam: Arguments = False, **settings: Any) -> tuple[Written, ...]:
    """Predicts files of any size; does what `python -m bert_tf predict` does. For rows in memory there is `Model.predict`.

        bert_tf.predict_files(checkpoint="out/mrpc", input="rows.tsv", output="predictions.tsv")

    Args:
      beam: arguments of Apache Beam, whose pipeline does it; True for none.
      **settings: those of the command, by the names of its flags.

    Returns:
      The files of predictions; of Beam the shards, as texts where they lie on another file system.

    Raises:
      BertError: something that the caller can fix.
    """
    by = runner(beam)
    config = configured(**settings)
    return written(job.predict(*config, environment=os.environ, beam=by))
