"""One classification job, from settings to files."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

import bert_tf
from bert_tf import atomic
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.checkpoints.restore import RestorePlan, plan_restore
from bert_tf.commands import recipes, results
from bert_tf.commands.flags import Settings
from bert_tf.commands.sources import SAMPLE_NOTE, DataSource, ModelSource, find_data, find_model
from bert_tf.config import BertConfig
from bert_tf.estimator import describe, preflight, run, run_folder
from bert_tf.estimator.model_fn import Model, Optimization
from bert_tf.features import sentences
from bert_tf.features.spec import SentenceFeatures
from bert_tf.inputs import cache
from bert_tf.inputs.pipeline import Schedule
from bert_tf.modeling.heads import CLASSIFICATION_VARIABLES
from bert_tf.optimization.adamw import AdamWConfig
from bert_tf.tasks.base import DEV, TEST, TRAIN, SentenceExample, Task, file_digest
from bert_tf.tasks.glue import get_task
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

INTERRUPTED = 130


class _Job(NamedTuple):
    """Everything that is known before a graph is built."""

    settings: Settings
    task: Task
    data: DataSource
    source: ModelSource
    config: BertConfig
    vocabulary: Vocabulary
    examples: dict[str, Sequence[SentenceExample]]

    @property
    def output_dir(self) -> Path:
        return Path(self.settings.job.output_dir)

    @property
    def schedule(self) -> Schedule:
        train = self.settings.train
        return Schedule(len(self.examples[TRAIN]), train.train_batch_size, train.num_train_epochs)


def run_job(settings: Settings, *, environment: Mapping[str, str]) -> int:
    """Trains, evaluates and predicts, as the settings ask.

    Returns:
      Exit status: 0 done, 130 stopped by a signal with the state kept.

    Raises:
      BertError: something that the user can mend.
    """
    job = _prepare(settings, environment)
    plan = _check(job)
    if job.settings.job.do_train:
        outcome = _train(job, plan)
        if outcome.stopped_by is not None:
            logging.warning("stopped by %s at step %d; the same command continues there", outcome.stopped_by.name, outcome.step)
            return INTERRUPTED
    else:
        run.require_checkpoint(job.output_dir)
    estimator = run.make_estimator(Model(job.config, job.task.head), job.output_dir)
    if job.settings.job.do_eval:
        _evaluate(job, estimator)
    if job.settings.job.do_predict:
        _predict(job, estimator)
    return 0


def _prepare(settings: Settings, environment: Mapping[str, str]) -> _Job:
    task = get_task(settings.data.task_name)
    data = find_data(task, settings.data.data_dir, environment=environment)
    wanted = {TRAIN: settings.job.do_train, DEV: settings.job.do_eval, TEST: settings.job.do_predict}
    examples = {split: task.examples(data.folder, split) for split, do in wanted.items() if do}
    if not settings.job.do_train:
        settings = _as_trained(settings)
    source = find_model(settings.model, environment=environment)
    settings, chosen = recipes.apply(settings, default_checkpoint=source.is_default, sample_data=data.is_sample)
    logging.info("task %s, data from %s (%s)", task.name, data.folder, data.origin)
    if data.is_sample:
        logging.warning("this is the %s", SAMPLE_NOTE)
    logging.info("checkpoint %s (%s)", source.checkpoint, source.origin)
    for name, value in chosen.items():
        logging.info("--%s=%s from the recipe for the default checkpoint", name, value)
    logging.info("output to %s (%s)", settings.job.output_dir, "--output_dir" if "output_dir" in settings.given else "default")
    config = BertConfig.from_json_file(source.config)
    return _Job(settings, task, data, source, config, Vocabulary.from_file(source.vocabulary), examples)


def _as_trained(settings: Settings) -> Settings:
    """Takes what the command line leaves open from the run that the output folder holds."""
    folder = Path(settings.job.output_dir)
    run.require_checkpoint(folder)
    record = run_folder.load_record(folder)
    if record is None:
        return settings
    kept = {name: record["training"][name] for name in ("max_seq_length", "do_lower_case") if name not in settings.given}
    if not settings.given & {"init_checkpoint", "bert_config_file", "vocab_file"}:
        kept["init_checkpoint"] = str(folder)
    return recipes.with_values(settings, kept)


def _check(job: _Job) -> RestorePlan:
    data = job.settings.data
    problems = preflight.check_model(
        job.config, job.vocabulary, lower_case=data.do_lower_case, max_seq_length=data.max_seq_length
    )
    reader = CheckpointReader(job.source.checkpoint)
    plan = plan_restore(reader, job.config, CLASSIFICATION_VARIABLES)
    problems += preflight.check_checkpoint(reader, plan)
    if TRAIN in job.examples:
        problems += preflight.check_training(job.examples[TRAIN], steps=job.schedule.steps)
    preflight.refuse(problems)
    return plan


def _features(job: _Job, split: str) -> SentenceFeatures:
    data, examples = job.settings.data, job.examples[split]
    key = cache.CacheKey(
        task=job.task.name,
        split=split,
        labels=job.task.labels,
        file_digest=file_digest(job.task.file(job.data.folder, split)),
        vocabulary=job.vocabulary.fingerprint,
        lower_case=data.do_lower_case,
        max_seq_length=data.max_seq_length,
    )
    features, cached = cache.load_or_build(
        job.output_dir / "features",
        key,
        lambda: sentences.build(
            ((example.text_a, example.text_b) for example in examples),
            (example.label for example in examples),
            WordPieceTokenizer(job.vocabulary, lower_case=data.do_lower_case),
            label_names=job.task.labels,
            max_seq_length=data.max_seq_length,
        ),
    )
    describe.log_examples(examples, features, job.vocabulary, max_seq_length=data.max_seq_length)
    logging.info(
        "%s: %d examples, %.1f tokens on average, %d truncated to %d%s",
        *(split, len(features), features.lengths.mean(), features.truncated, data.max_seq_length),
        " (from the cache)" if cached else "",
    )
    return features


def _train(job: _Job, plan: RestorePlan) -> run.Outcome:
    train, schedule = job.settings.train, job.schedule
    run_folder.claim(job.output_dir, _record(job), overwrite=job.settings.job.overwrite_output_dir)
    # The folder can be evaluated, moved and trained from without the files that it began with.
    atomic.write_text(job.output_dir / "vocab.txt", job.vocabulary.to_text())
    atomic.write_text(job.output_dir / "bert_config.json", job.config.to_json())
    features = _features(job, TRAIN)
    logging.info(plan.summary())
    logging.info("***** Running training *****")
    logging.info("  Num examples = %d", schedule.examples)
    logging.info("  Batch size = %d", schedule.batch_size)
    logging.info("  Num steps = %d (%d examples of the last epoch are left out)", schedule.steps, schedule.unseen)
    optimization = Optimization(
        learning_rate=train.learning_rate,
        warmup_steps=int(schedule.steps * train.warmup_proportion),
        total_steps=schedule.steps,
        adamw=AdamWConfig(bias_correction=train.adam_bias_correction),
    )
    model = Model(job.config, job.task.head, seed=train.seed, optimization=optimization, restore=plan)
    training = run.Training(schedule, train.save_checkpoints_steps, train.log_every_n_steps, train.keep_optimizer_slots)
    return run.train(run.make_estimator(model, job.output_dir), features, training, seed=train.seed)


def _evaluate(job: _Job, estimator: tf.estimator.Estimator) -> None:
    features = _features(job, DEV)
    logging.info("***** Running evaluation *****")
    evaluation = run.evaluate(estimator, features, batch_size=job.settings.job.eval_batch_size, metrics=job.task.metrics)
    note = {"note": SAMPLE_NOTE} if job.data.is_sample else {}
    results.write_evaluation(job.output_dir, {**evaluation.results, **note})


def _predict(job: _Job, estimator: tf.estimator.Estimator) -> None:
    features = _features(job, TEST)
    logging.info("***** Running prediction *****")
    probabilities = run.predict(estimator, features, batch_size=job.settings.job.predict_batch_size)
    results.write_predictions(job.output_dir, job.examples[TEST], probabilities, job.task.labels)


def _record(job: _Job) -> dict[str, Any]:
    """Everything that determines the run, and the command line that repeats it."""
    settings = job.settings
    determining = {
        **dataclasses.asdict(settings.train),
        "task_name": job.task.name,
        "max_seq_length": settings.data.max_seq_length,
        "do_lower_case": settings.data.do_lower_case,
        "bert_config": dataclasses.asdict(job.config),
        "vocabulary_sha256": job.vocabulary.fingerprint,
        "train_file_sha256": file_digest(job.task.file(job.data.folder, TRAIN)),
        "checkpoint_sha256": _checkpoint_digest(job.source.checkpoint),
    }
    for name in ("save_checkpoints_steps", "keep_optimizer_slots", "log_every_n_steps"):
        del determining[name]  # they change what is kept and said, not what is learned
    repeat = {
        "task_name": job.task.name,
        "data_dir": str(job.data.folder.resolve()),
        "init_checkpoint": str(Path(job.source.checkpoint).resolve()),
        "bert_config_file": str(job.source.config.resolve()),
        "vocab_file": str(job.source.vocabulary.resolve()),
        **{k: v for k, v in dataclasses.asdict(settings.data).items() if k not in ("task_name", "data_dir")},
        **dataclasses.asdict(settings.train),
    }
    return {
        "training": determining,
        "data_note": SAMPLE_NOTE if job.data.is_sample else "",
        "command": " ".join(["python run_classifier.py", *(f"--{name}={value}" for name, value in repeat.items())]),
        "versions": {
            "bert_tf": bert_tf.__version__,
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "numpy": np.__version__,
        },
    }


def _checkpoint_digest(prefix: str) -> str:
    index = Path(f"{prefix}.index")
    return file_digest(index if index.is_file() else prefix)
