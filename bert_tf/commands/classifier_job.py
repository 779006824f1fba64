"""One classification job, from settings to files."""

from __future__ import annotations

from collections.abc import Mapping

from absl import logging

from bert_tf import atomic
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.checkpoints.restore import RestorePlan, plan_restore
from bert_tf.commands import results, speed
from bert_tf.commands.flags import Settings
from bert_tf.commands.job import Job, prepare
from bert_tf.commands.record import make_record
from bert_tf.commands.sources import SAMPLE_NOTE
from bert_tf.errors import CheckpointError, PreflightError
from bert_tf.estimator import describe, preflight, run, run_folder
from bert_tf.estimator.model_fn import Model
from bert_tf.estimator.placement_log import PlacementHook
from bert_tf.estimator.update import Optimization
from bert_tf.features import sentences
from bert_tf.features.spec import SentenceFeatures
from bert_tf.inputs import cache
from bert_tf.inputs.pipeline import Batching
from bert_tf.modeling.heads import CLASSIFICATION_VARIABLES
from bert_tf.optimization.adamw import AdamWConfig
from bert_tf.runtime import placement
from bert_tf.runtime.machine import describe as describe_machine
from bert_tf.runtime.machine import set_up
from bert_tf.runtime.precision import PRECISIONS
from bert_tf.tasks.base import DEV, TEST, TRAIN, file_digest
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

INTERRUPTED = 130

_SAVES = 5


def run_job(settings: Settings, *, environment: Mapping[str, str]) -> int:
    """Trains, evaluates and predicts, as the settings ask.

    Returns:
      Exit status: 0 done, 130 stopped by a signal with the state kept.

    Raises:
      BertError: something that the user can mend.
    """
    speed.set_up(settings.speed)
    machine = set_up(settings.devices, environment=environment, xla=settings.speed.xla)
    describe_machine(machine, settings.devices, environment)
    speed.warn(settings.speed)
    job = prepare(settings, machine, environment=environment)
    plan = _check(job)
    if job.settings.job.do_train:
        outcome = _train(job, plan)
        if outcome.stopped_by is not None:
            logging.warning("stopped by %s at step %d; the same command continues there", outcome.stopped_by.name, outcome.step)
            return INTERRUPTED
    if not machine.is_chief:
        logging.info("the chief evaluates and predicts; this worker is done")
        return 0
    model = Model(job.config, job.task.head, speed.execution(settings.speed))
    estimator = run.make_estimator(model, job.output_dir, machine.alone())
    if job.settings.job.do_eval:
        _evaluate(job, estimator)
    if job.settings.job.do_predict:
        _predict(job, estimator)
    return 0


def _check(job: Job) -> RestorePlan:
    data = job.settings.data
    problems = preflight.check_model(
        job.config, job.vocabulary, lower_case=data.do_lower_case, max_seq_length=data.max_seq_length
    )
    if TRAIN in job.examples:
        problems += preflight.check_training(job.examples[TRAIN], steps=job.schedule.steps)
        problems += preflight.check_batch(job.schedule.batch_size, replicas=job.machine.replicas)
        if any(path.resolve().parent == job.output_dir.resolve() for path in job.source.files):
            problems.append(f"{job.output_dir}: training starts from files in this folder; name another --output_dir")
    try:
        reader = CheckpointReader(job.source.checkpoint if TRAIN in job.examples else run.require_checkpoint(job.output_dir))
    except CheckpointError as error:
        raise PreflightError([*problems, str(error)]) from error
    if TRAIN not in job.examples:
        now = {"task_name": job.task.name, "vocabulary_sha256": job.vocabulary.fingerprint}
        problems += run_folder.misfits(job.output_dir, now)
    place = job.settings.devices.place
    if place:
        placement.check_layers(placement.parse(place), job.config.num_hidden_layers)
    plan = plan_restore(reader, job.config, CLASSIFICATION_VARIABLES)
    problems += preflight.check_checkpoint(reader, plan)
    preflight.refuse(problems)
    return plan


def _features(job: Job, split: str) -> SentenceFeatures:
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
        writes=job.machine.is_chief,
    )
    describe.log_examples(examples, features, job.vocabulary, max_seq_length=data.max_seq_length)
    logging.info(
        "%s: %d examples, %.1f tokens on average, %d truncated to %d%s",
        *(split, len(features), features.lengths.mean(), features.truncated, data.max_seq_length),
        " (from the cache)" if cached else "",
    )
    return features


def _claim(job: Job) -> None:
    run_folder.claim(job.output_dir, make_record(job), overwrite=job.settings.job.overwrite_output_dir)
    # The folder can be evaluated, moved and trained from without the files that it began with.
    atomic.write_text(job.output_dir / "vocab.txt", job.vocabulary.to_text())
    atomic.write_text(job.output_dir / "bert_config.json", job.config.to_json())


def _train(job: Job, plan: RestorePlan) -> run.Outcome:
    train, ways, schedule, machine = job.settings.train, job.settings.speed, job.schedule, job.machine
    if job.machine.is_chief:
        _claim(job)
    else:
        run_folder.await_claim(job.output_dir, make_record(job))
    features = _features(job, TRAIN)
    logging.info(plan.summary())
    logging.info("***** Running training *****")
    logging.info("  Num examples = %d", schedule.examples)
    logging.info("  Batch size = %d%s", schedule.batch_size, _parts(schedule.batch_size, machine.replicas))
    logging.info("  Num steps = %d (%d examples of the last epoch are left out)", schedule.steps, schedule.unseen)
    optimization = Optimization(
        learning_rate=train.learning_rate,
        warmup_steps=int(schedule.steps * train.warmup_proportion),
        total_steps=schedule.steps,
        defer_embeddings=ways.defer_embeddings,
        loss_scaling=PRECISIONS[ways.precision].loss_scaling,
        adamw=AdamWConfig(bias_correction=train.adam_bias_correction, fused=ways.fused_adam),
    )
    check_every = job.settings.devices.check_replicas_every_n_steps if machine.replicas > 1 else 0
    model = Model(
        job.config,
        job.task.head,
        speed.execution(ways),
        seed=train.seed,
        optimization=optimization,
        restore=plan,
        check_replicas=check_every > 0,
    )
    save_steps = train.save_checkpoints_steps
    if "save_checkpoints_steps" not in job.settings.given:  # a short run that is killed shall not begin again
        save_steps = min(save_steps, -(-schedule.steps // _SAVES))
    training = run.Training(
        schedule, save_steps, train.log_every_n_steps, train.keep_optimizer_slots, check_every, _batching(job)
    )
    estimator = run.make_estimator(model, job.output_dir, machine)
    hooks = [PlacementHook(job.output_dir)] if job.settings.devices.log_device_placement and machine.is_chief else []
    return run.train(estimator, features, training, seed=train.seed, hooks=hooks, machine=machine)


def _parts(batch_size: int, replicas: int) -> str:
    """Says what each replica computes of a batch, where there are several."""
    if replicas == 1:
        return ""
    least, larger = divmod(batch_size, replicas)
    return f" over {replicas} replicas, {least if not larger else f'{least} or {least + 1}'} each"


def _batching(job: Job) -> Batching:
    return speed.batching(job.settings.speed, job.settings.data.max_seq_length)


def _evaluate(job: Job, estimator: run.Estimator) -> None:
    features = _features(job, DEV)
    logging.info("***** Running evaluation *****")
    size = job.settings.job.eval_batch_size
    evaluation = run.evaluate(estimator, features, metrics=job.task.metrics, batch_size=size, batching=_batching(job))
    note = {"note": SAMPLE_NOTE} if job.data.is_sample else {}
    results.write_evaluation(job.output_dir, {**evaluation.results, **note})


def _predict(job: Job, estimator: run.Estimator) -> None:
    features = _features(job, TEST)
    logging.info("***** Running prediction *****")
    size = job.settings.job.predict_batch_size
    probabilities = run.predict(estimator, features, batch_size=size, batching=_batching(job))
    results.write_predictions(job.output_dir, job.examples[TEST], probabilities, job.task.labels)
