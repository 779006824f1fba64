"""One classification job, from settings to files."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging

from bert_tf import atomic
from bert_tf.checkpoints import values
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.checkpoints.restore import RestorePlan, plan_restore
from bert_tf.commands import loss, memory_preflight, report, results, speed, submission
from bert_tf.commands.classifier_flags import Settings
from bert_tf.commands.evaluating import best_by, target
from bert_tf.commands.job import Job, prepare
from bert_tf.commands.record import make_record
from bert_tf.commands.sources import SAMPLE_NOTE
from bert_tf.errors import CheckpointError, FlagError, OutputError, PreflightError
from bert_tf.estimator import best, describe, metrics_log, preflight, run, run_folder, time_to_target
from bert_tf.estimator.evaluation_hook import EvaluationPlan
from bert_tf.estimator.evaluations import read as read_evaluations
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.memory_trace_hook import MemoryTraceHook
from bert_tf.estimator.model_fn import Model
from bert_tf.estimator.placement_log import PlacementHook
from bert_tf.estimator.profile_hook import ProfileHook
from bert_tf.estimator.rates_hook import RatesHook
from bert_tf.estimator.update import Optimization
from bert_tf.features import sentences
from bert_tf.features.spec import SentenceFeatures
from bert_tf.inputs import cache
from bert_tf.inputs.pipeline import Batching
from bert_tf.log_form import published
from bert_tf.modeling.heads import CLASSIFICATION_VARIABLES
from bert_tf.optimization import parts
from bert_tf.optimization.adamw import AdamWConfig
from bert_tf.profiling.timing import diagnosis, timing_file
from bert_tf.profiling.timing.step_range import StepRange
from bert_tf.profiling.timing.wall_clock import DATA, DEVICES, EVALUATION, FEATURES, PAGE, PREDICTION, WALL
from bert_tf.report import wording
from bert_tf.runtime import placement
from bert_tf.runtime.machine import Machine, set_up
from bert_tf.runtime.machine import describe as describe_machine
from bert_tf.runtime.precision import PRECISIONS, computed, misgiving
from bert_tf.tasks import labels, mistakes
from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.evaluation import Evaluation, evaluate_logits, summarize
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

INTERRUPTED = 130


@WALL.run()
def run_job(settings: Settings, *, environment: Mapping[str, str]) -> int:
    """Trains, evaluates and predicts, as the settings ask.

    Args:
      settings: all flags.
      environment: of the process.

    Returns:
      Exit status: 0 done, 130 stopped by a signal with the state kept.

    Raises:
      BertError: something that the user can fix.
    """
    with WALL.span(DEVICES):
        settings = dataclasses.replace(settings, speed=speed.continued(settings.speed, settings.job.output_dir))
        speed.set_up(settings.speed)
        machine = set_up(settings.devices, environment=environment, xla=settings.speed.xla)
        describe_machine(machine, settings.devices, environment)
        speed.warn(settings.speed)
        if settings.job.do_train:
            settings = _deferring(settings, machine)
    with run_folder.writing(settings.job.output_dir) if machine.is_chief else contextlib.nullcontext():
        return _run(settings, machine, environment)


def _deferring(settings: Settings, machine: Machine) -> Settings:
    on_gpu = machine.sees_gpu and not placement.hosts_words(settings.devices.place)
    ways = speed.deferring(settings.speed, deterministic=settings.devices.deterministic, on_gpu=on_gpu)
    return dataclasses.replace(settings, speed=ways)


def _run(settings: Settings, machine: Machine, environment: Mapping[str, str]) -> int:
    """Does the job on a machine that is set up; of several machines the chief alone writes to the output folder."""
    job = prepare(settings, machine, environment=environment)
    plan = _check(job)
    if job.settings.job.do_train:
        job = memory_preflight.fitted(job, machine.gpu_memory)
    if job.settings.job.do_train:
        outcome = _train(job, plan)
        if outcome.stopped_by is not None:
            logging.warning("stopped by %s at step %d; the same command continues there", outcome.stopped_by.name, outcome.step)
            _end(job)
            return INTERRUPTED
    if not machine.is_chief:
        logging.info("the chief evaluates and predicts; this worker is done")
        _end(job)
        return 0
    model = dataclasses.replace(_model(job), restore=plan)  # so that the log can mark variables
    estimator = run.make_estimator(model, job.output_dir, machine.alone())
    if job.settings.job.do_eval:
        _evaluate(job, estimator)
    if job.settings.job.do_predict:
        _predict(job, estimator)
    _end(job)
    return 0


def _end(job: Job) -> None:
    """Makes the page, and says where the wall time went: on the page, in timing.json of a run that was trained, in the log."""
    if job.machine.is_chief:
        kept = _keep_account(job)
        with WALL.span(PAGE):
            report.at_end(job.output_dir)
        if kept:
            _keep_account(job)
    logging.info("%s", WALL.account().text)


def _keep_account(job: Job) -> bool:
    """Writes the account of a run that was trained; returns whether there is one and it could be written."""
    account = WALL.account()
    try:
        if account.trained:
            timing_file.add_account(job.output_dir, account)
    except OutputError as error:  # what is trained is saved already
        logging.warning("%s", error)
        return False
    return account.trained


@WALL.span(DATA)
def _check(job: Job) -> RestorePlan:
    data = job.settings.data
    if job.settings.job.submission_zip and not any(map(job.task.submission, job.splits.get(TEST, ()))):
        raise FlagError(f"--submission_zip: GLUE's server takes no predictions of {job.task.name}, or --do_predict is missing")
    wanted = target(job.settings.train, job.task)
    problems = preflight.check_model(job.config, job.vocabulary, max_seq_length=data.max_seq_length)
    weights_in = job.trained.folder if job.trained else Path(job.source.checkpoint).parent
    if TRAIN in job.splits or data.do_lower_case != run_folder.trained(weights_in).get("do_lower_case"):
        problems += preflight.check_casing(job.vocabulary, lower_case=data.do_lower_case)
    if TRAIN in job.splits:
        best_by(job.settings.train, job.task)  # both refuse what they cannot understand before the folder is claimed
        loss.check(job.settings.train, job.task)
        problems += preflight.check_training(job.examples[job.train_split], steps=job.schedule.steps)
        problems += preflight.check_batch(
            job.schedule.batch_size,
            replicas=job.machine.replicas,
            parts=job.settings.train.gradient_accumulation_steps,
        )
        own = (job.output_dir.resolve(), (job.output_dir / best.BEST).resolve())
        if any(path.resolve().parent in own for path in job.source.files):
            problems.append(f"{job.output_dir}: training starts from files in this folder; name another --output_dir")
    try:
        reader = CheckpointReader(job.trained.checkpoint if job.trained else job.source.checkpoint)
    except CheckpointError as error:
        raise PreflightError([*problems, str(error)]) from error
    if TRAIN not in job.splits:
        now = {"labels": list(job.task.labels), "kind": job.task.head.kind}
        problems += run_folder.misfits(weights_in, now)
        if wanted and not read_evaluations(_of_run(job), up_to=run.last_step(_of_run(job))):
            problems.append(f"--target_metric: {_of_run(job)} was not evaluated while it trained (--eval_every_n_steps)")
    problems += run_folder.misfits_of_parts(weights_in, job.config, job.vocabulary)
    place = job.settings.devices.place
    if place:
        placement.check_layers(placement.parse(place), job.config.num_hidden_layers)
    parts.check_layers(parts.parse_frozen(job.settings.train.freeze), job.config.num_hidden_layers)
    plan = plan_restore(reader, job.config, CLASSIFICATION_VARIABLES)
    problems += preflight.check_checkpoint(reader, plan)
    if TRAIN not in job.splits and not problems:
        weights, bias = CLASSIFICATION_VARIABLES
        labels = job.task.head.num_labels
        problems += preflight.check_head(reader, {weights: (labels, job.config.hidden_size), bias: (labels,)})
    preflight.refuse(problems)
    return plan


@WALL.span(FEATURES)
def _features(job: Job, split: str) -> SentenceFeatures:
    data, examples = job.settings.data, job.examples[split]
    long_text = data.long_text
    if split in job.splits.get(TRAIN, ()) and long_text == "windows":
        long_text = "truncate"  # a window may lack what its label is for
    key = cache.CacheKey(
        task=job.task.name,
        split=split,
        labels=job.task.labels,
        kind=job.task.head.kind,
        examples=cache.examples_digest(examples),
        vocabulary=job.vocabulary.fingerprint,
        lower_case=data.do_lower_case,
        max_seq_length=data.max_seq_length,
        long_text=long_text,
    )
    features, cached = cache.load_or_build(
        job.output_dir / "features",
        key,
        lambda: sentences.build(
            ((example.text_a, example.text_b) for example in describe.counted(examples, len(examples))),
            labels.encode([example.label for example in examples], job.task.head, job.task.labels),
            WordPieceTokenizer(job.vocabulary, lower_case=data.do_lower_case),
            max_seq_length=data.max_seq_length,
            long_text=long_text,
        ),
        writes=job.machine.is_chief,
    )
    lines = describe.examples_lines(examples, features, job.vocabulary, max_seq_length=data.max_seq_length)
    for line in lines:
        published.info("%s", line)
    if job.machine.is_chief:
        describe.keep_examples(job.results_dir, split, lines)
    logging.info(
        "%s: %d examples, %.1f tokens on average, %d truncated to %d%s",
        *(split, features.examples, features.lengths.mean(), features.truncated, data.max_seq_length),
        " (from the cache)" if cached else "",
    )
    return features


def _claim(job: Job) -> None:
    run_folder.claim(job.output_dir, make_record(job), overwrite=job.settings.job.overwrite_output_dir)
    # The folder can be evaluated, moved and trained from without the files that it began with.
    atomic.write_text(job.output_dir / "vocab.txt", job.vocabulary.to_text())
    atomic.write_text(job.output_dir / "bert_config.json", job.config.to_json())


def _train(job: Job, plan: RestorePlan) -> run.Outcome:
    train, schedule, machine = job.settings.train, job.schedule, job.machine
    with WALL.span(DATA):
        if machine.is_chief:
            _claim(job)
        else:
            run_folder.await_claim(job.output_dir, make_record(job))
    features = _features(job, job.train_split)
    logging.info("variables: %s", plan.summary())
    logging.info("all variables are in %s, the first examples in %s", describe.VARIABLES_FILE, describe.EXAMPLES_FILE)
    _log_plan(job)
    check_every = job.settings.devices.check_replicas_every_n_steps if machine.replicas > 1 else 0
    model = Model(
        job.config,
        job.task.head,
        loss.loss_options(train, job.task, features.label_ids),
        speed.execution(job.settings.speed),
        seed=train.seed,
        optimization=_optimization(job),
        check_replicas=check_every > 0,
        max_seq_length=job.settings.data.max_seq_length,
    )
    training = run.Training(
        schedule,
        train.save_checkpoints_steps if "save_checkpoints_steps" in job.settings.given else None,
        train.log_every_n_steps or metrics_log.interval(schedule.steps),
        train.keep_optimizer_slots,
        train.keep_checkpoint_max,
        check_every,
        _batching(job),
        _evaluation_plan(job),
        _setting(job),
    )
    watchers = [*_watchers(job), describe.VariablesHook(job.output_dir, plan.loaded)] if machine.is_chief else []
    watchers.append(RatesHook(schedule.batch_size, every_n_steps=train.log_every_n_steps or 1))
    with values.as_float32(plan.prefix) as prefix:
        model = dataclasses.replace(model, restore=dataclasses.replace(plan, prefix=prefix))
        estimator = run.make_estimator(model, job.output_dir, machine)
        return run.train(estimator, features, training, seed=train.seed, watchers=watchers, machine=machine)


def _watchers(job: Job) -> list[run.Hook]:
    """Returns what writes files about steps, as far as it is asked for."""
    asked = job.settings.job
    hooks: list[run.Hook] = []
    if job.settings.devices.log_device_placement:
        hooks.append(PlacementHook(job.output_dir))
    if asked.profile_steps:
        steps = StepRange.parse("profile_steps", asked.profile_steps)
        hooks.append(ProfileHook(job.output_dir, steps, copies=_setting(job).gpu))
    if asked.memory_trace_step:
        hooks.append(MemoryTraceHook(job.output_dir, asked.memory_trace_step))
    return hooks


def _log_plan(job: Job) -> None:
    schedule, freeze = job.schedule, job.settings.train.freeze
    logging.info("***** Running training *****")
    logging.info("  Num examples = %d", schedule.examples)
    logging.info("  Batch size = %d%s", schedule.batch_size, _parts(schedule.batch_size, job.machine.replicas))
    logging.info("  Num steps = %d (%d examples of the last epoch are left out)", schedule.steps, schedule.unseen)
    if freeze:
        logging.info("  Frozen = %s", freeze)


def _optimization(job: Job) -> Optimization:
    train, ways, steps = job.settings.train, job.settings.speed, job.schedule.steps
    return Optimization(
        learning_rate=train.learning_rate,
        warmup_steps=int(steps * train.warmup_proportion),
        total_steps=steps,
        schedule=train.learning_rate_schedule,
        polynomial_power=train.polynomial_power,
        layer_decay=parts.LayerDecay(train.layer_decay, job.config.num_hidden_layers),
        frozen=parts.parse_frozen(train.freeze),
        micro_batches=train.gradient_accumulation_steps,
        defer_embeddings=ways.defer_embeddings,
        loss_scaling=PRECISIONS[ways.precision].loss_scaling,
        adamw=AdamWConfig(bias_correction=train.adam_bias_correction, fused=ways.fused_adam),
    )


def _parts(batch_size: int, replicas: int) -> str:
    """Says what each replica computes of a batch, where there are several."""
    if replicas == 1:
        return ""
    least, larger = divmod(batch_size, replicas)
    return f" over {replicas} replicas, {least if not larger else f'{least} or {least + 1}'} each"


def _batching(job: Job) -> Batching:
    return speed.batching(job.settings.speed, job.settings.data.max_seq_length)


def _eval_batching(job: Job, *, trains: bool = False) -> Batching:
    settings = job.settings
    return speed.eval_batching(settings.speed, settings.data.max_seq_length, job.config, job.machine, trains=trains)


def _setting(job: Job) -> diagnosis.Setting:
    """Returns what a diagnosis of the run's speed goes by."""
    plan, train, ways, devices = job.machine.plan, job.settings.train, job.settings.speed, job.settings.devices
    return diagnosis.Setting(
        gpu=job.machine.sees_gpu,
        replicas=job.machine.replicas,
        machines=len(plan.cluster.workers) if plan.cluster else 1,
        strategy=plan.strategy,
        precision=computed(ways.precision),
        half_precision=next((name for name in ("bfloat16", "float16") if misgiving(name) is None), None),
        xla=ways.xla,
        group_by_length=ways.group_by_length,
        accumulation_steps=train.gradient_accumulation_steps,
        cross_device_ops=devices.cross_device_ops,
        all_reduce_alg=devices.all_reduce_alg,
        intra_op_threads=devices.intra_op_threads,
    )


def _evaluation_plan(job: Job) -> EvaluationPlan | None:
    train = job.settings.train
    metric = best_by(train, job.task)
    if metric is None:
        return None
    features = {split: _features(job, split) for split in job.splits[DEV]} if job.machine.is_chief else {}

    def measure(forward: Forward) -> dict[str, float]:
        ways = {"batch_size": job.settings.job.eval_batch_size, "batching": _eval_batching(job, trains=True)}
        evaluations = {split: _measured(job, columns, forward.logits(columns, **ways)) for split, columns in features.items()}
        return {f"eval_{name}": value for name, value in summarize(evaluations).items()}

    make_forward = functools.partial(Forward, _model(job), job.machine)
    return EvaluationPlan(
        every_n_steps=train.eval_every_n_steps,
        make_forward=make_forward,
        measure=measure,
        metric=metric,
        patience=train.early_stopping_patience,
        target=target(train, job.task),
        stop_at_target=train.stop_at_target,
    )


def _model(job: Job) -> Model:
    """Returns the model without training."""
    tokens = job.settings.data.max_seq_length
    return Model(job.config, job.task.head, execution=speed.execution(job.settings.speed), max_seq_length=tokens)


@WALL.span(EVALUATION)
def _evaluate(job: Job, estimator: run.Estimator) -> None:
    logging.info("***** Running evaluation *****")
    evaluations, wrong, step = {}, {}, 0
    for split in job.splits[DEV]:
        features = _features(job, split)
        logits, step = _logits(job, estimator, features, job.settings.job.eval_batch_size)
        evaluations[split] = _measured(job, features, logits)
        labels_of_split = features.label_ids[features.first_rows]
        wrong[split] = mistakes.most_confident(job.task.head, job.task.labels, job.examples[split], logits, labels_of_split)
    note = SAMPLE_NOTE if job.data.is_sample else ""
    more = {"precision": computed(job.settings.speed.precision), **_time_to_target(job)}
    values = results.write_evaluation(job.results_dir, evaluations, step=step, note=note, more=more)
    results.write_mistakes(job.results_dir, wrong)
    run.report_to_tensorboard(estimator, values, step)


def _time_to_target(job: Job) -> dict[str, Any]:
    """Returns what eval_results.json says of --target_metric, and logs it; nothing where it is not given."""
    wanted = target(job.settings.train, job.task)
    if wanted is None:
        return {}
    found = time_to_target.summary(_of_run(job), wanted, up_to=run.last_step(_of_run(job)))
    logging.info("%s", wording.time_to_target(found))
    return {"time_to_target": found}


def _of_run(job: Job) -> Path:
    """Returns the folder of the run that is evaluated."""
    return job.trained.of_run if job.trained else job.output_dir


def _measured(job: Job, features: SentenceFeatures, logits: np.ndarray) -> Evaluation:
    return evaluate_logits(job.task.head, job.task.labels, job.task.metrics, logits, features.label_ids[features.first_rows])


@WALL.span(PREDICTION)
def _predict(job: Job, estimator: run.Estimator) -> None:
    logging.info("***** Running prediction *****")
    for split in job.splits[TEST]:
        logits, _ = _logits(job, estimator, _features(job, split), job.settings.job.predict_batch_size)
        separator = job.settings.custom.label_separator
        results.write_predictions(job.results_dir, job.task, split, job.examples[split], logits, label_separator=separator)
    if job.settings.job.submission_zip:
        logging.info("what GLUE's server takes is in %s", submission.zip_submissions(job.results_dir))


def _logits(job: Job, estimator: run.Estimator, features: SentenceFeatures, batch_size: int | None) -> tuple[np.ndarray, int]:
    checkpoint = job.trained.checkpoint if job.trained else None
    return run.forward(estimator, features, checkpoint, batch_size=batch_size, batching=_eval_batching(job))
