"""The mean of a run's last checkpoints, evaluated beside its own weights."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bert_tf import run_layout
from bert_tf.checkpoints import saved
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.extensions.average.mean import mean_weights
from bert_tf.io import atomic
from bert_tf.io.log_form import log
from bert_tf.training.part import Part
from bert_tf.training.run import Run


class AverageOfLast(Part):
    def check(self, run: Run) -> Iterator[str]:
        """An average is made at the end of training: it can be evaluated later, but not changed."""
        count, folder = self.settings.average_last, run.run_dir
        if not run.spec.actions.do_train and not (folder / run_layout.AVERAGE).is_dir():
            yield f"--average_last={count}: {folder} was trained without it; leave the flag out"

    def repeated(self, run: Run) -> dict[str, int]:
        del run
        return {"average_last": self.settings.average_last}

    def trained(self, run: Run, step: int) -> None:
        """Averages only checkpoints that are saved regardless of interruptions."""
        count, train = self.settings.average_last, run.spec.train
        every = [steps for steps in (train.save_checkpoints_steps, train.eval_every_n_steps) if steps]
        due = {due for steps in every for due in range(steps, step, steps)}
        last = sorted({*due, step})[-count:]
        prefixes = [os.fspath(run.output_dir / run_layout.of_step(run_layout.CHECKPOINTS, step)) for step in last]
        existing = [prefix for prefix in prefixes if Path(f"{prefix}.index").is_file()]
        if len(existing) < count:
            log.warning("--average_last=%d: only %d checkpoints are averaged: no others exist", count, len(existing))
        average = keep_mean(run.output_dir, existing, step)
        log.info("the mean of %s is %s", ", ".join(Path(prefix).name for prefix in existing), average)


def keep_mean(output_dir: Path, checkpoints: Sequence[str], step: int) -> str:
    """Saves the mean of checkpoints as the run's average at `step`, the last one's; returns its name."""
    folder = atomic.make_folder(output_dir / run_layout.AVERAGE, follows=False)
    name = folder / run_layout.of_step(run_layout.CHECKPOINTS, step)
    entries = mean_weights(checkpoints)
    with atomic.readable_errors(folder):
        write_checkpoint(name, entries)
    saved.keep_only(name, output_dir)
    return os.fspath(name)
