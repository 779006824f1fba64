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
    """Learns from text without labels, and evaluates on held-out documents; does what `python -m bert_tf pretrain` does.

    The folder holds what the command leaves, `report.html` included. The same call again goes on where training was stopped.

        folder = bert_tf.pretrain("texts/*.txt", output_dir="out/mine", num_train_steps=10_000)
        model = bert_tf.fine_tune("MRPC", init_checkpoint=folder)

    Args:
      input_file: text files or shards, with commas or patterns; the bundled sample where none is named.
      output_dir: where checkpoints and results go; out/pretraining where it is not given.
      **settings: those of the command, by the names of its flags.

    Returns:
      The folder of the run, which `init_checkpoint` takes.

    Raises:
      BertError: something that the caller can fix, as a setting that is unknown; one line.
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
