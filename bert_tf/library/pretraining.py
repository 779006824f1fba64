"""Pre-training as a call."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bert_tf import progress, run_layout
from bert_tf.errors import FlagError
from bert_tf.jobs import fine_tune as job
from bert_tf.jobs.pretrain_config import SETTINGS, configured
from bert_tf.library.fine_tuning import TURN
from bert_tf.library.keywords import takes
from bert_tf.profiling.timing.wall_clock import WALL


@takes(row for row in SETTINGS if row.name != "seeds")
def pretrain(
    input_file: str | os.PathLike[str] | None = None, *, output_dir: str | os.PathLike[str] | None = None, **settings: Any
) -> Path:
    """Trains on unlabelled text and evaluates on held-out documents; as `python -m bert_tf pretrain`.

    The folder receives the command's files, `report.html` included. Repeating the call resumes a stopped training.

        folder = bert_tf.pretrain("texts/*.txt", output_dir="out/mine", num_train_steps=10_000)
        model = bert_tf.fine_tune("MRPC", init_checkpoint=folder)

    Args:
      input_file: text files or shards, comma-separated or as patterns; by default the bundled sample.
      output_dir: for checkpoints and results; by default out/pretraining.
      **settings: the command's flags, by name.

    Returns:
      The folder of the run, which `init_checkpoint` accepts.

    Raises:
      BertError: invalid settings or input, such as an unknown setting; the message is one line.
      KeyboardInterrupt: Ctrl-C; a checkpoint was saved first.
    """
    if "seeds" in settings:
        raise FlagError("seeds: call it once for each seed, with an output_dir of its own")
    config = configured(**{**settings, "input_file": input_file, "output_dir": output_dir})
    with TURN:
        WALL.restart()
        done = job.fine_tune(config, environment=os.environ)
    if done.stopped_by is not None:
        raise KeyboardInterrupt(f"training was stopped at step {done.step}; the same call continues there")
    progress.say(f"the run is in {done.output_dir}, its page in {done.output_dir / run_layout.PAGE}")
    return done.output_dir
