"""Trains a run: schedule, optimizer, intermediate evaluations, files about steps; the last function puts them together."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from bert_tf import run_layout
from bert_tf.batch.trained import are_finite
from bert_tf.checkpoints.reader import as_float32
from bert_tf.checkpoints.restore import RestorePlan
from bert_tf.estimator import describe, run_folder
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.estimator.pipeline import Phase
from bert_tf.estimator.progress_hook import RatesHook, log_interval
from bert_tf.estimator.run import Hook, Outcome, Training, make_estimator
from bert_tf.estimator.run import train as train_with
from bert_tf.estimator.update import Optimization
from bert_tf.features.batching import Schedule
from bert_tf.features.columns import Features, TrainingRows
from bert_tf.io import atomic
from bert_tf.io.log_form import log
from bert_tf.modeling.execution import WHOLE
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.optimization import parts
from bert_tf.optimization.optimizers import AdamWConfig
from bert_tf.profiling import diagnosis
from bert_tf.profiling.wall_clock import DATA, WALL
from bert_tf.runtime.precision import PRECISIONS, computed, slow_reason
from bert_tf.tasks.base import DEV
from bert_tf.tasks.evaluation import summarize
from bert_tf.training import speed
from bert_tf.training.record import extended, extended_from, make_record
from bert_tf.training.run import Run, features, training_rows

if TYPE_CHECKING:
    from bert_tf.estimator.evaluation_hook import EvaluationPlan
    from bert_tf.optimization.averaging import MovingAverage


def _later_phases(run: Run) -> tuple[Phase, ...]:
    phases = []
    for plan in run.phases[1:]:
        rows = training_rows(run, plan.split)
        schedule = Schedule(rows.units, plan.batch_size, 0.0, plan.steps)
        phases.append(Phase(rows, schedule, speed.batching(run.spec.speed, plan.max_seq_length)))
    return tuple(phases)


def forward_model(run: Run) -> Model:
    tokens = run.spec.data.max_seq_length
    execution = speed.execution(run.spec.speed, run.machine, recompute=run.spec.train.recompute)
    return Model(run.config, run.family.head, execution=execution.for_rows(run.config, tokens), max_seq_length=tokens)


@WALL.span(DATA)
def _claim(run: Run) -> Mapping[str, Any]:
    """Makes the output folder that of the run; returns its record."""
    record = extended(run, make_record(run))
    if not run.machine.is_chief:
        run_folder.await_claim(run.output_dir, record)
        return record
    run_folder.claim(run.output_dir, record, overwrite=run.spec.output.overwrite_output_dir)
    # The folder can then be evaluated, moved and trained from without its initial files.
    for name, text in run.vocabulary.files().items():
        atomic.write_text(run.output_dir / name, text)
    atomic.write_text(run.output_dir / run_layout.CONFIG, run.config.to_json())
    for part in run.parts.values():
        part.claimed(run)
    return record


def _record_schedule(run: Run, schedule: Schedule, examples: int, steps: int, *, stopped_at: int = 0) -> None:
    """`steps` are those of all phases; records call the later ones phase2. `stopped_at` is the step of an early end."""
    counts = {"train_examples": examples, "steps": schedule.steps}
    if schedule.rows != examples:
        counts["train_rows"] = schedule.rows
    if steps > schedule.steps:
        counts["phase2_steps"] = steps - schedule.steps
    if stopped_at:
        counts[run_folder.STOPPED] = stopped_at
    run_folder.add_to_record(run.output_dir, {run_folder.SCHEDULE: counts})


def _log_plan(run: Run, schedule: Schedule, examples: int, begin: int, steps: int) -> None:
    log.info("variables: %s", cast(RestorePlan, run.restore).summary())
    log.info("all variables are in %s, the first examples in %s", run_layout.VARIABLES, run_layout.EXAMPLES)
    freeze = run.spec.train.freeze
    rows = f" in {schedule.rows} rows" if schedule.rows != examples else ""
    log.info("***** Running training *****")
    log.info("  Num examples = %d%s", examples, rows)
    log.info("  Batch size = %d%s", schedule.batch_size, _parts(schedule.batch_size, run.machine.replicas))
    log.info("  Num steps = %d = %.2f epochs", schedule.steps, schedule.steps * schedule.batch_size / schedule.rows)
    if freeze:
        log.info("  Frozen = %s", freeze)
    if begin:
        text = "  Steps %d to %d extend the finished run, with a warm-up and a decay of their own and moments from zero"
        log.info(text, begin + 1, steps)
    for phase in run.phases[1:]:
        log.info("  Then %d steps of %d rows of up to %d tokens", phase.steps, phase.batch_size, phase.max_seq_length)


def _optimization(run: Run, end: int, begin: int) -> Optimization:
    train, computing, steps = run.spec.train, run.spec.speed, end - begin
    warmup_steps = train.num_warmup_steps
    if warmup_steps is None:
        warmup_steps = int(steps * train.warmup_proportion)
    return Optimization(
        learning_rate=train.learning_rate,
        warmup_steps=warmup_steps,
        total_steps=steps,
        begin=begin,
        schedule=train.learning_rate_schedule,
        polynomial_power=train.polynomial_power,
        layer_decay=parts.LayerDecay(train.layer_decay, run.config.weighted_layers),
        frozen=train.frozen,
        micro_batches=train.gradient_accumulation_steps,
        defer_embeddings=computing.defer_embeddings,
        loss_scaling=PRECISIONS[computing.precision].loss_scaling,
        optimizer=train.optimizer,
        adamw=AdamWConfig(
            bias_correction=train.adam_bias_correction, fused=computing.fused_adam, native=run.machine.native_kernels
        ),
        average=_average(train.ema),
    )


def _average(decay: float | None) -> MovingAverage | None:
    if decay is None:
        return None
    from bert_tf.optimization.averaging import MovingAverage

    return MovingAverage(decay)


def _checked_every(run: Run) -> int:
    """Steps between two comparisons of the replicas; 0 without."""
    return run.spec.devices.check_replicas_every_n_steps if run.machine.replicas > 1 else 0


def _model(run: Run, labelled: TrainingRows, end: int, begin: int) -> Model:
    """The model in training, without what it starts from; `labelled` are the rows whose classes count in its loss."""
    forward = forward_model(run)
    every = run.parts.values()
    adaptations = (part.adaptation(run, cast(RestorePlan, run.restore)) for part in every)
    adapted = next((adaptation for adaptation in adaptations if adaptation is not None), WHOLE)
    return dataclasses.replace(
        forward,
        execution=dataclasses.replace(forward.execution, adaptation=adapted),
        loss=run.loss_options(labelled) if isinstance(labelled, Features) else LossOptions(),  # on disk no classes are counted
        seed=run.spec.train.seed,
        optimization=_optimization(run, end, begin),
        check_replicas=_checked_every(run) > 0,
        around=run.around,
        dropout=all(part.dropout for part in every),
    )


def _watchers(run: Run, restore: RestorePlan, mean_batch: float) -> list[Hook]:
    watchers: list[Hook] = []
    if run.machine.is_chief:
        watchers += [hook for part in run.parts.values() for hook in part.hooks(run)]
        watchers.append(describe.VariablesHook(run.output_dir, restore.provided))
    return [*watchers, RatesHook(mean_batch, every_n_steps=run.spec.train.log_every_n_steps or 1)]


def _parts(batch_size: int, replicas: int) -> str:
    if replicas == 1:
        return ""
    least, larger = divmod(batch_size, replicas)
    return f" over {replicas} replicas, {least if not larger else f'{least} or {least + 1}'} each"


def _conditions(run: Run) -> diagnosis.Setting:
    plan, train, computing, devices = run.machine.plan, run.spec.train, run.spec.speed, run.spec.devices
    return diagnosis.Setting(
        gpu=run.machine.sees_gpu,
        replicas=run.machine.replicas,
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


def _evaluation_plan(run: Run, make_forward: Callable[[], Forward], begin: int) -> EvaluationPlan | None:
    train = run.spec.train
    if run.selection_metric is None:
        return None
    from bert_tf.estimator.evaluation_hook import EvaluationPlan

    of_splits = {split: features(run, split) for split in run.splits[DEV]} if run.machine.is_chief else {}
    family = run.task.family
    batching = speed.eval_batching(run.spec.speed, run.spec.data.max_seq_length, run.config, run.machine, trains=True)

    def measure(forward: Forward) -> dict[str, float]:
        evaluations = {}
        for split, columns in of_splits.items():
            outputs = forward.outputs(columns, batch_size=run.spec.inference.eval_batch_size, batching=batching)
            if not are_finite(outputs):  # metrics may take NaN for a rank of 1, or for the first class
                log.warning("%s: outputs are NaN or infinite, so there are no results; lower --learning_rate", split)
                return {f"eval_{name}": math.nan for name in (*family.metrics, "loss")}
            examples = run.examples[split]
            evaluations[split] = family.evaluation(family.predictions(outputs, columns, examples), examples)
        return {f"eval_{name}": value for name, value in summarize(evaluations).items()}

    return EvaluationPlan(
        every_n_steps=train.eval_every_n_steps,
        make_forward=make_forward,
        measure=measure,
        metric=run.selection_metric,
        patience=train.early_stopping_patience,
        target=run.target,
        stop_at_target=train.stop_at_target,
        begin=begin,
    )


def train(run: Run, *, make_forward: Callable[[], Forward], at_end: Callable[[], None] | None = None) -> Outcome:
    """Claims the output folder and trains; `make_forward` serves intermediate evaluations, see `EvaluationPlan`."""
    settings, machine, restore = run.spec.train, run.machine, cast(RestorePlan, run.restore)
    begin = extended_from(_claim(run))
    labelled = columns = training_rows(run, run.train_split)
    for part in run.parts.values():
        columns = part.rows(run, columns)
    schedule, later = run.schedule(columns.units), _later_phases(run)
    steps = schedule.steps + sum(phase.schedule.steps for phase in later)
    if machine.is_chief:
        _record_schedule(run, schedule, columns.examples, steps)
    _log_plan(run, schedule, columns.examples, begin, steps)
    model = _model(run, labelled, steps, begin)
    training = Training(
        schedule,
        save_checkpoints_steps=settings.save_checkpoints_steps if "save_checkpoints_steps" in run.spec.given else None,
        log_every_n_steps=settings.log_every_n_steps or log_interval(steps),
        keep_optimizer_slots=settings.keep_optimizer_slots,
        keep_checkpoint_max=settings.keep_checkpoint_max,
        check_replicas_every_n_steps=_checked_every(run),
        batching=speed.batching(run.spec.speed, run.spec.data.max_seq_length),
        evaluation=_evaluation_plan(run, make_forward, begin),
        setting=_conditions(run),
        then=later,
        at_end=at_end,
        begin=begin,
    )
    watchers = _watchers(run, restore, training.mean_batch(0))
    with as_float32(restore.prefix) if restore.prefix else contextlib.nullcontext("") as prefix:
        model = dataclasses.replace(model, restore=dataclasses.replace(restore, prefix=prefix))
        estimator = make_estimator(model, run.output_dir, machine)
        outcome = train_with(estimator, columns, training, seed=settings.seed, watchers=watchers, machine=machine)
    if machine.is_chief and outcome.stopped_by is None and outcome.step < steps:
        _record_schedule(run, schedule, columns.examples, steps, stopped_at=outcome.step)
    return outcome
