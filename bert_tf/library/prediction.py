"""Files of any size by a trained model, as a call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.cluster import paths
from bert_tf.errors import FlagError
from bert_tf.jobs import predict as job
from bert_tf.jobs.beam_job import Beam
from bert_tf.jobs.predict_config import SETTINGS, configured
from bert_tf.library.keywords import takes


@takes(SETTINGS)
def predict_files(*, beam: bool | Sequence[str] = False, **settings: Any) -> tuple[Path | str, ...]:
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
    if isinstance(beam, str):
        raise FlagError(f"--beam={beam!r}: expected a list of arguments")
    config = configured(**settings)
    runner = None if beam is False else Beam(() if beam is True else tuple(beam), _begin_worker)
    written = job.predict(*config, environment=os.environ, beam=runner)
    return tuple(path if paths.has_scheme(path) else Path(path) for path in written)


def _begin_worker() -> Mapping[str, str]:
    """Begins in a process that Beam has started, where the import of this module has quieted TensorFlow."""
    return os.environ
