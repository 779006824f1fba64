"""Dev examples hidden from a search: the score of the best run is too high, since it was chosen by that score.

The hidden examples show how good the chosen settings are (Liu and Wang, 2021, arXiv 2106.09204, on how search overfits dev).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf import run_layout
from bert_tf.errors import DataError, FlagError
from bert_tf.features.columns import Numbers
from bert_tf.tasks.base import DEV, TRAIN, Unopened
from bert_tf.training import fine_tune, preparation
from bert_tf.training.fine_tune import FineTuned
from bert_tf.training.run_spec import RunSpec, all_rows, undecided
from bert_tf.training.sources import PartialTask, PartOfSplit, Whole

FOLDER = "held_out"  # in the run's folder

_SEED = 0  # the same examples for all runs


def train(config: RunSpec, share: float, environment: Mapping[str, str]) -> tuple[FineTuned, dict[str, float]]:
    """Trains and evaluates without a share of the dev examples; returns the metrics on these too, as held_out_accuracy."""
    task, data = preparation.find_task(config, None, None, environment)
    wholes: dict[str, Whole] = {}
    for purpose in (TRAIN, DEV):
        split, *_ = task.splits(data.folder, purpose)
        examples: Any = preparation.read_examples(task, data, [split], config)[split]
        if isinstance(examples, Unopened):
            raise DataError(f"--hold_out: {task.name} has no dev examples in memory", data.folder)
        wholes[purpose] = Whole(split, examples, config.output.folder / run_layout.FEATURES)
    seen, unseen = divided(len(wholes[DEV].examples), share)
    trained_on = PartOfSplit(wholes[TRAIN], np.arange(len(wholes[TRAIN].examples)))
    single = config.replaced(all_rows())
    tasks = [PartialTask(task, data, {TRAIN: trained_on, DEV: PartOfSplit(wholes[DEV], numbers)}) for numbers in (seen, unseen)]
    done = fine_tune.fine_tune(single, environment=environment, task=tasks[0])
    if done.stopped_by is not None:
        return done, {}
    folder = config.output.folder
    evaluated = {
        **undecided(),  # the rules of the run are followed
        "init_checkpoint": str(folder),
        "output_dir": str(folder / FOLDER),
        "do_train": False,
        "eval_every_n_steps": 0,
    }
    trained = single.without_predictions
    trained = dataclasses.replace(trained, given=trained.given | {"init_checkpoint"}).replaced(evaluated)
    of_unseen = fine_tune.fine_tune(trained, environment=environment, task=tasks[1])
    return done, {f"held_out_{name}": value for name, value in of_unseen.metrics.items()}


def divided(count: int, share: float) -> tuple[Numbers, Numbers]:
    """Indices of the visible examples, and of the hidden ones."""
    order = np.random.default_rng(_SEED).permutation(count)
    unseen = round(count * share)
    if unseen in (0, count):
        which, bound, limit = ("all", "most", count - 1) if unseen else ("none", "least", 1)
        raise FlagError(
            f"--hold_out={share:g}: that is {which} of {count} dev examples; hold out at {bound} {limit / count:.2g}"
        )
    return np.sort(order[unseen:]), np.sort(order[:unseen])
