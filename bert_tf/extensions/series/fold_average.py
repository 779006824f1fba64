"""Evaluates and predicts with the mean of the outputs of the folds' models, instead of a final model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from bert_tf.batch import average, loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.session import Predictor
from bert_tf.io.log_form import log
from bert_tf.tasks.base import DEV, TEST, Task
from bert_tf.training import batch_machine, preparation, results
from bert_tf.training.run_spec import RunSpec
from bert_tf.training.settings import MachineSettings
from bert_tf.training.sources import SAMPLE_NOTE, DataSource, checkpoint_of


def evaluate_and_predict(
    config: RunSpec,
    runs: Mapping[Path, int],
    task: Task,
    data: DataSource,
    *,
    evaluates: bool,
    environment: Mapping[str, str],
) -> None:
    """Writes eval_results and prediction files into the folder of the series; `runs` has the steps of each fold by folder."""
    prefixes = [str(checkpoint_of(run, environment=environment)) for run in runs]
    models = average.comparable([loading.load(prefix, ModelOverrides(), family=task.family) for prefix in prefixes])
    speed = config.speed
    machine = MachineSettings(precision=speed.precision, native_kernels=speed.native_kernels, devices=config.devices)
    inference = batch_machine.inference(
        machine, config.inference.eval_batch_size, environment=environment, checkpoints=prefixes
    )
    folder = config.output.folder
    log.info("***** Mean of the outputs of %d folds *****", len(models))
    with contextlib.closing(Predictor(models[0], task.family, average.averaging(models, inference))) as predictor:
        if evaluates:
            splits = preparation.read_examples(task, data, task.splits(data.folder, DEV), config)
            evaluations = {
                split: task.family.evaluation(predictor.predictions(examples), examples) for split, examples in splits.items()
            }
            note = SAMPLE_NOTE if data.is_sample else ""
            results.write_evaluation(folder, evaluations, step=max(runs.values()), note=note)
        for split in task.splits(data.folder, TEST) if config.actions.do_predict else ():
            examples = preparation.read_examples(task, data, [split], config)[split]
            results.write_predictions(folder, task, split, examples, predictor.predictions(examples))
    if config.inference.submission_zip:
        log.info("the files for GLUE's server are in %s", results.zip_submissions(folder))
