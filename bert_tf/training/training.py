"""Trains a job: schedule, optimizer, intermediate evaluations, files about steps."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import run_layout
from bert_tf.checkpoints import values
from bert_tf.checkpoints.restore import RestorePlan
from bert_tf.estimator import describe, run, run_folder
from bert_tf.estimator.evaluation_hook import EvaluationPlan
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.estimator.progress_hook import RatesHook, log_interval
from bert_tf.estimator.update import Optimization
from bert_tf.features.columns import Features, TrainingRows
from bert_tf.inputs.pipeline import Phase, Schedule
from bert_tf.io import atomic
from bert_tf.io.log_form import log
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.optimization import parts
from bert_tf.optimization.adamw import AdamWConfig
from bert_tf.optimization.averaging import MovingAverage
from bert_tf.profiling.timing import diagnosis
from bert_tf.profiling.timing.wall_clock import DATA, WALL
from bert_tf.runtime.precision import PRECISIONS, computed, slow_reason
from bert_tf.tasks.base import DEV
from bert_tf.tasks.evaluation import summarize
from bert_tf.training import longer, speed
from bert_tf.training.job import Job, features, training_rows
from bert_tf.training.record import make_record
from bert_tf.training.settings import TrainSettings


def train(
    job: Job, plan: RestorePlan, *, make_forward: Callable[[], Forward], at_end: Callable[[], None] | None = None
) -> run.Outcome:
    """Claims the output folder and trains; `make_forward` serves intermediate evaluations, see `EvaluationPlan`."""
    settings, machine = job.settings.train, job.machine
    with WALL.span(DATA):
        record = longer.extended(job, make_record(job))
        begin = longer.begin(record)
        if machine.is_chief:
            _claim(job, record)
        else:
            run_folder.await_claim(job.output_dir, record)
    labelled = training_rows(job, job.train_split)
    columns = labelled
    for part in job.parts.values():
        columns = part.rows(job, columns)
    schedule, then = job.schedule(columns.units), _then(job)
    steps = schedule.steps + sum(phase.schedule.steps for phase in then)
    if machine.is_chief:
        _record_schedule(job, schedule, columns.examples, steps)
    log.info("variables: %s", plan.summary())
    log.info("all variables are in %s, the first examples in %s", run_layout.VARIABLES, run_layout.EXAMPLES)
    _log_plan(job, schedule, columns.examples, begin, steps)
    check_every = job.settings.devices.check_replicas_every_n_steps if machine.replicas > 1 else 0
    model = dataclasses.replace(
        forward_model(job),
        loss=_loss_options(job, labelled),
        seed=settings.seed,
        optimization=_optimization(job, steps, begin),
        check_replicas=check_every > 0,
        around=next((around for part in job.parts.values() if (around := part.head()) is not None), None),
        dropout=all(part.dropout for part in job.parts.values()),
    )
    training = run.Training(
        schedule,
        settings.save_checkpoints_steps if "save_checkpoints_steps" in job.settings.given else None,
        settings.log_every_n_steps or log_interval(steps),
        settings.keep_optimizer_slots,
        settings.keep_checkpoint_max,
        check_every,
        speed.batching(job.settings.speed, job.settings.data.max_seq_length),
        _evaluation_plan(job, make_forward),
        _setting(job),
        then,
        at_end,
        begin,
    )
    watchers: list[run.Hook] = []
    if machine.is_chief:
        watchers += [hook for part in job.parts.values() for hook in part.hooks(job)]
        watchers.append(describe.VariablesHook(job.output_dir, plan.loaded))
    watchers.append(RatesHook(training.mean_batch(0), every_n_steps=settings.log_every_n_steps or 1))
    with values.as_float32(plan.prefix) if plan.prefix else contextlib.nullcontext("") as prefix:
        model = dataclasses.replace(model, restore=dataclasses.replace(plan, prefix=prefix))
        estimator = run.make_estimator(model, job.output_dir, machine)
        return run.train(estimator, columns, training, seed=settings.seed, watchers=watchers, machine=machine)


def _then(job: Job) -> tuple[Phase, ...]:
    phases = []
    for plan in job.phases[1:]:
        rows = training_rows(job, plan.split)
        schedule = Schedule(rows.units, plan.batch_size, 0.0, plan.steps)
        phases.append(Phase(rows, schedule, speed.batching(job.settings.speed, plan.max_seq_length)))
    return tuple(phases)


def _loss_options(job: Job, rows: TrainingRows) -> LossOptions:
    """Classes are counted in labelled rows, only for features in memory; heads without loss options ask for none."""
    return job.loss_options(rows) if isinstance(rows, Features) else LossOptions()


def forward_model(job: Job) -> Model:
    execution = speed.execution(job.settings.speed, job.machine, recompute=job.settings.train.recompute)
    tokens = job.settings.data.max_seq_length
    return Model(job.config, job.family.head, execution=execution, max_seq_length=tokens)


def _claim(job: Job, record: Mapping[str, Any]) -> None:
    run_folder.claim(job.output_dir, record, overwrite=job.settings.output.overwrite_output_dir)
    # The folder can then be evaluated, moved and trained from without its initial files.
    for name, text in job.vocabulary.files().items():
        atomic.write_text(job.output_dir / name, text)
    atomic.write_text(job.output_dir / run_layout.CONFIG, job.config.to_json())
    for part in job.parts.values():
        part.claimed(job)


def _record_schedule(job: Job, schedule: Schedule, examples: int, steps: int) -> None:
    """`steps` are those of all phases; records call the later ones phase2."""
    counts = {"train_examples": examples, "steps": schedule.steps}
    if schedule.rows != examples:
        counts["train_rows"] = schedule.rows
    if steps > schedule.steps:
        counts["phase2_steps"] = steps - schedule.steps
    run_folder.add_to_record(job.output_dir, {run_folder.SCHEDULE: counts})


def _log_plan(job: Job, schedule: Schedule, examples: int, begin: int, steps: int) -> None:
    freeze = job.settings.train.freeze
    rows = f" in {schedule.rows} rows" if schedule.rows != examples else ""
    log.info("***** Running training *****")
    log.info("  Num examples = %d%s", examples, rows)
    log.info("  Batch size = %d%s", schedule.batch_size, _parts(schedule.batch_size, job.machine.replicas))
    log.info("  Num steps = %d = %.2f epochs", schedule.steps, schedule.steps * schedule.batch_size / schedule.rows)
    if freeze:
        log.info("  Frozen = %s", freeze)
    if begin:
        text = "  Steps %d to %d extend the finished run, with a warm-up and a decay of their own and moments from zero"
        log.info(text, begin + 1, steps)
    for phase in job.phases[1:]:
        log.info("  Then %d steps of %d rows of up to %d tokens", phase.steps, phase.batch_size, phase.max_seq_length)


def _optimization(job: Job, end: int, begin: int) -> Optimization:
    train, computing, steps = job.settings.train, job.settings.speed, end - begin
    return Optimization(
        learning_rate=train.learning_rate,
        warmup_steps=_warmup_steps(train, steps),
        total_steps=steps,
        begin=begin,
        schedule=train.learning_rate_schedule,
        polynomial_power=train.polynomial_power,
        layer_decay=parts.LayerDecay(train.layer_decay, job.config.weighted_layers),
        frozen=train.frozen,
        micro_batches=train.gradient_accumulation_steps,
        defer_embeddings=computing.defer_embeddings,
        loss_scaling=PRECISIONS[computing.precision].loss_scaling,
        optimizer=train.optimizer,
        adamw=AdamWConfig(
            bias_correction=train.adam_bias_correction, fused=computing.fused_adam, native=job.machine.native_kernels
        ),
        average=None if train.ema is None else MovingAverage(train.ema),
    )


def _warmup_steps(train: TrainSettings, steps: int) -> int:
    return int(steps * train.warmup_proportion) if train.num_warmup_steps is None else train.num_warmup_steps


def _parts(batch_size: int, replicas: int) -> str:
    if replicas == 1:
        return ""
    least, larger = divmod(batch_size, replicas)
    return f" over {replicas} replicas, {least if not larger else f'{least} or {least + 1}'} each"


def _setting(job: Job) -> diagnosis.Setting:
    plan, train, computing, devices = job.machine.plan, job.settings.train, job.settings.speed, job.settings.devices
    return diagnosis.Setting(
        gpu=job.machine.sees_gpu,
        replicas=job.machine.replicas,
        machines=len(plan.cluster.workers) if plan.cluster else 1,
        strategy=plan.strategy,
        precision=computed(computing.precision),
        half_precision=next((name for name in ("bfloat16", "float16") if slow_reason(name) is None), None),
        xla=computing.xla,
        group_by_length=computing.group_by_length,
        accumulation_steps=train.gradient_accumulation_steps,
        cross_device_ops=devices.cross_device_ops,
        all_reduce_alg=devices.all_reduce_alg,
        intra_op_threads=devices.intra_op_threads,
        keep_memory=devices.keep_memory,
    )


def _evaluation_plan(job: Job, make_forward: Callable[[], Forward]) -> EvaluationPlan | None:
    train = job.settings.train
    if job.selection_metric is None:
        return None
    of_splits = {split: features(job, split) for split in job.splits[DEV]} if job.machine.is_chief else {}
    family = job.task.family
    batching = speed.eval_batching(job.settings.speed, job.settings.data.max_seq_length, job.config, job.machine, trains=True)

    def measure(forward: Forward) -> dict[str, float]:
        evaluations = {}
        for split, columns in of_splits.items():
            outputs = forward.outputs(columns, batch_size=job.settings.inference.eval_batch_size, batching=batching)
            examples = job.examples[split]
            evaluations[split] = family.evaluation(family.predictions(outputs, columns, examples), examples)
        return {f"eval_{name}": value for name, value in summarize(evaluations).items()}

    return EvaluationPlan(
        every_n_steps=train.eval_every_n_steps,
        make_forward=make_forward,
        measure=measure,
        metric=job.selection_metric,
        patience=train.early_stopping_patience,
        target=job.target,
        stop_at_target=train.stop_at_target,
    )
