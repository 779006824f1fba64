"""Checks that the parts of a job fit each other, before anything is written or computed."""

from __future__ import annotations

from collections.abc import Iterator

from bert_tf import run_layout
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.checkpoints.restore import RestorePlan, from_scratch, plan_restore
from bert_tf.errors import CheckpointError, FlagError, PreflightError
from bert_tf.estimator import preflight, run, run_folder
from bert_tf.estimator.evaluations import read as read_evaluations
from bert_tf.io.log_form import log
from bert_tf.modeling.heads import registry as heads
from bert_tf.optimization import parts
from bert_tf.profiling.timing.wall_clock import DATA, WALL
from bert_tf.runtime import placement
from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.on_disk import OnDisk
from bert_tf.training.job import Job, find_loss_options, find_metric, find_target

_NAMED = 3  # ids in a warning


@WALL.span(DATA)
def check(job: Job) -> RestorePlan:
    """Returns the restore plan; PreflightError has one line per problem, FlagError names a setting."""
    if job.settings.inference.submission_zip and not any(map(job.task.submission, job.splits.get(TEST, ()))):
        raise FlagError(f"--submission_zip: GLUE's server takes no predictions of {job.task.name}, or --do_predict is missing")
    find_target(job.settings.train, job.task)  # before the folder is claimed
    problems = job.weights.problems(trains=TRAIN in job.splits)
    for part in job.parts.values():
        problems += part.check(job)
    _refuse_several_losses(job)
    if TRAIN in job.splits:
        find_metric(job.settings.train, job.task)
        find_loss_options(job.settings.train, job.task)
        problems += _of_training(job)
    placement.check_layers(job.settings.devices.rules, job.config.num_hidden_layers)
    layers, count = job.config.weighted_layers, job.settings.train.reinit_layers
    shared = layers < job.config.num_hidden_layers
    parts.check_layers(job.settings.train.frozen, layers, shared=shared)
    if count > layers:
        raise FlagError(f"--reinit_layers={count}: the model has {parts.counted(layers, shared=shared)}")
    plan = _restored(job, problems)
    preflight.refuse(problems)
    preflight.refuse(list(_of_files(job)))
    _warn_of_leaks(job)
    return plan


def _refuse_several_losses(job: Job) -> None:
    changing = [name for name, part in job.parts.items() if part.head() is not None]
    if len(changing) > 1:
        raise FlagError(f"{' and '.join(changing)} change the loss: leave the settings of all but one out")


def _warn_of_leaks(job: Job) -> None:
    """Warns of rows to evaluate that are trained on."""
    held_out = [split for split in job.splits.get(DEV, ()) if not isinstance(job.examples[split], OnDisk)]
    if TRAIN not in job.splits or isinstance(job.examples[job.train_split], OnDisk):
        return
    texts = {hash(example.texts) for example in job.examples[job.train_split]} if held_out else set()
    for split in held_out:
        rows = job.examples[split]
        known = [example.guid for example in rows if hash(example.texts) in texts]
        if known:
            named = ", ".join(known[:_NAMED]) + ", ..." * (len(known) > _NAMED)
            log.warning(
                "%s: %d of %d rows are in train too, so their scores say little: %s", *(split, len(known), len(rows), named)
            )


def _restored(job: Job, problems: list[str]) -> RestorePlan:
    variables = heads.of(job.task.family.head).variables(job.config)
    if job.source.from_scratch:
        return from_scratch(job.config, tuple(variables))
    try:
        reader = CheckpointReader(job.weights.prefix)
    except CheckpointError as error:
        raise PreflightError([*problems, str(error)]) from error
    if TRAIN not in job.splits:
        problems += _of_trained(job)
    plan = plan_restore(reader, job.config, tuple(variables), job.layers, _new(job))
    problems += preflight.check_checkpoint(reader, plan)
    if TRAIN not in job.splits and not problems:
        problems += preflight.check_head(reader, variables)
    return plan


def _new(job: Job) -> list[str]:
    """Variables of --reinit_layers: of the top layers, and of the pooler (Zhang et al., 2021)."""
    count, layers = job.settings.train.reinit_layers, job.config.weighted_layers
    top = {parts.POOLER, *range(layers - count, layers)} if count else set()
    return [name for name in encoder_shapes(job.config) if parts.part_of(name) in top]


def _of_files(job: Job) -> Iterator[str]:
    """Yields problems with rows on disk; called last because making the rows can take long."""
    for split, examples in job.examples.items():
        if not isinstance(examples, OnDisk):
            continue
        count = len(examples)
        if split == job.splits.get(TRAIN, ("",))[0]:
            yield from preflight.check_training(examples, job.schedule(count))


def _of_training(job: Job) -> Iterator[str]:
    train = job.settings.train
    examples = job.examples[job.train_split]
    if not isinstance(examples, OnDisk):
        yield from preflight.check_training(examples, job.least_schedule)
    for phase in job.phases:
        yield from preflight.check_batch(
            phase.batch_size,
            replicas=job.machine.replicas,
            micro_batches=train.gradient_accumulation_steps,
            fewest=heads.of(job.task.family.head).fewest_examples,
            flag=f"{phase.prefix}train_batch_size",
        )
    for phase in job.phases[1:]:
        yield from preflight.check_length(f"{phase.prefix}max_seq_length", phase.max_seq_length, job.config)
    own = run_layout.own_folders(job.output_dir)
    if any(path.resolve().parent in own for path in job.source.files):
        yield f"{job.output_dir}: training starts from files in this folder; name another --output_dir"


def _of_trained(job: Job) -> Iterator[str]:
    family = job.task.family.as_trained(run_folder.trained(job.weights.folder))  # inherited settings may be overridden
    yield from run_folder.misfits(job.weights.folder, family.record())
    yield from _of_average(job)
    if job.target and not read_evaluations(job.run_dir, up_to=run.last_step(job.run_dir)):
        yield f"--target_metric: {job.run_dir} was not evaluated during training (--eval_every_n_steps)"


def _of_average(job: Job) -> Iterator[str]:
    """The moving average is made during training: it can be evaluated later but not changed."""
    train, folder = job.settings.train, job.weights.folder
    was = run_folder.trained(folder).get("ema")
    if train.ema is not None and train.ema != was:
        said = "without --ema" if was is None else f"with --ema={was:g}"
        yield f"--ema={train.ema:g}: {folder} was trained {said}; leave the flag out"
