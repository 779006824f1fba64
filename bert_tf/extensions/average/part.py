"""The mean of a run's last checkpoints, evaluated beside its own weights."""

from __future__ import annotations

import functools
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

    def claimed(self, run: Run) -> None:
        """Lists checkpoints of interruptions first, so that they are deleted before those to average."""
        prefixes = saved.listed(run.output_dir)
        newest = max(prefixes, key=saved.step_of, default=None)
        if newest is not None and newest == saved.newest(run.output_dir).prefix:
            in_order = sorted(prefixes, key=lambda prefix: _is_due(saved.step_of(prefix), run))
            saved.write_list(run.output_dir, Path(newest).name, [Path(prefix).name for prefix in in_order])

    def trained(self, run: Run, step: int) -> None:
        """Averages only checkpoints that are saved regardless of interruptions."""
        count = self.settings.average_last
        last = sorted({*filter(functools.partial(_is_due, run=run), range(1, step)), step})[-count:]
        prefixes = [os.fspath(run.output_dir / run_layout.of_step(run_layout.CHECKPOINTS, step)) for step in last]
        existing = [prefix for prefix in prefixes if Path(f"{prefix}.index").is_file()]
        if len(existing) < count:
            log.warning("--average_last=%d: only %d checkpoints are averaged: no others exist", count, len(existing))
        average = keep_mean(run.output_dir, existing, step)
        log.info("the mean of %s is %s", ", ".join(Path(prefix).name for prefix in existing), average)


def _is_due(step: int, run: Run) -> bool:
    train = run.spec.train
    return any(every and step % every == 0 for every in (train.save_checkpoints_steps, train.eval_every_n_steps))


def keep_mean(output_dir: Path, checkpoints: Sequence[str], step: int) -> str:
    """Saves the mean of checkpoints as the run's average at `step`, the last one's; returns its name."""
    folder = atomic.make_folder(output_dir / run_layout.AVERAGE, follows=False)
    name = folder / run_layout.of_step(run_layout.CHECKPOINTS, step)
    entries = mean_weights(checkpoints)
    with atomic.readable_errors(folder):
        write_checkpoint(name, entries)
    saved.keep_only(name, output_dir)
    return os.fspath(name)
